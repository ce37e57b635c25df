"""The last step within a budget is found exactly, in few evaluations, and nothing shown up to it is
over the budget.
"""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgdp
from jaxgdp import gdp
from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities.epsilon import epsilon_at_less
from jaxgdp.training import overflow, plan_budget
from jaxgdp.training.budget import _grid
from jaxgdp.training.stopping import candidates, last_within

DELTA = 1e-6


@pytest.fixture
def plan():
    """Noise without subsampling, μ = √T/8: closed forms for every number of steps, a wide table."""
    return plan_budget(8.0, 1.0, 100, ("mu", "epsilon", "beta"), every=50, delta=DELTA, fpr=0.01)


@pytest.mark.parametrize(
    "limits", [{"epsilon": 3.7}, {"mu": 0.99}, {"beta": 0.93}, {"mu": 1.1, "epsilon": 4.1}]
)
def test_no_step_within_a_budget_shows_more_than_the_budget(plan, limits):
    before = plan.steps.copy(), jax.tree.map(np.copy, plan.upper)
    steps = plan.max_steps_within(**limits)
    assert 10 < steps < 95 and steps not in (0, 50)
    one_more = {
        "mu": np.sqrt(steps + 1) / 8,
        "epsilon": gdp.epsilon(delta=DELTA, mu=np.sqrt(steps + 1) / 8),
        "beta": gdp.beta(fpr=0.01, mu=np.sqrt(steps + 1) / 8),
    }
    # the next step is over one of the limits, to within the width of a bracket
    assert any(
        one_more[q] < b * (1 + 2e-3) if q == "beta" else one_more[q] > b * (1 - 2e-3)
        for q, b in limits.items()
    )
    ways = {
        "host": plan.at,
        "jit": jax.jit(lambda t: plan.at(t)),
        "argument": lambda t: jax.jit(lambda plan, t: plan.at(t))(plan, t),
        "vmap": jax.vmap(plan.at),
        "scan": lambda t: jax.lax.scan(lambda c, t: (c, plan.at(t)), 0, t)[1],
        "copy": copy.deepcopy(plan).at,
        "leaves": jax.tree.map(jnp.asarray, plan).at,
    }
    truth = {
        "mu": np.sqrt(np.arange(101)) / 8,
        "epsilon": np.zeros(101),
        "beta": np.full(101, 0.99),
    }
    truth["epsilon"][1:] = gdp.epsilon(delta=DELTA, mu=truth["mu"][1:])
    truth["beta"][1:] = gdp.beta(fpr=0.01, mu=truth["mu"][1:])
    for way, at in ways.items():
        shown = at(jnp.arange(101))
        for q, limit in limits.items():
            lower, upper = (np.asarray(side, np.float64) for side in shown[q])
            within = lower >= limit if q == "beta" else upper <= limit
            assert np.all(within[: steps + 1]), (way, q)
        for q in truth:
            lower, upper = (np.asarray(side, np.float64) for side in shown[q])
            assert np.all((lower <= truth[q]) & (truth[q] <= upper)), (way, q)
    # what the plan was made of has not changed, and asking again costs nothing
    assert np.array_equal(plan.steps, before[0])
    assert all(np.array_equal(plan.upper[q], before[1][q]) for q in plan.quantities)
    asked = []
    assert plan.max_steps_within(**limits, progress=asked.append) == steps and not asked


def test_limit_between_two_float32_numbers_is_kept_as_it_is_shown():
    plan = plan_budget(8.0, 1.0, 9, "mu", every=9)
    exact = float(jaxgdp.measure(jaxgdp.dpsgd(8.0, 1.0, 4), "mu").brackets["mu"].upper)
    limit = float(np.nextafter(exact, 2.0))  # certified in float64; the next float32 is above it
    assert float(np.float32(limit)) != limit
    steps = plan.max_steps_within(mu=limit)
    assert steps in (3, 4) and float(plan.at(steps)["mu"].upper) <= limit


def test_target_at_the_rates_of_the_plan_is_kept_too_and_limits_keep_their_own():
    plan = plan_budget(8.0, 1.0, 100, ("mu", "epsilon"), every=50, delta=DELTA)
    steps = plan.max_steps_within(jaxgdp.targets.EpsilonDelta(3.7, DELTA))
    exact = (
        np.flatnonzero(gdp.epsilon(delta=DELTA, mu=np.sqrt(np.arange(1, 101)) / 8) <= 3.7)[-1] + 1
    )
    assert exact - 1 <= steps <= exact and plan.at(steps)["epsilon"].upper <= 3.7
    # ε = 3 at δ = 1e-6 binds, ε = 3 at δ = 1e-2 does not: a limit is at the δ of the plan, whatever
    # the target's
    both = plan.max_steps_within(jaxgdp.targets.EpsilonDelta(3.0, 1e-2), epsilon=3.0)
    assert (
        both
        == plan.max_steps_within(epsilon=3.0)
        < plan.max_steps_within(jaxgdp.targets.EpsilonDelta(3.0, 1e-2))
    )
    assert plan.at(both)["epsilon"].upper <= 3.0


def test_refined_plans_lie_within_and_are_narrow_where_asked(plan):
    finer = plan.refined([4, 60])
    for steps, mu in ((4, 0.25), (60, np.sqrt(60) / 8)):
        assert finer.at(steps)["mu"].contains(mu) and finer.at(steps)["mu"].width < 2e-3 * mu
    every = np.arange(101)
    for q in plan.quantities:
        (a, b), (c, d) = plan.at(every)[q], finer.at(every)[q]
        assert np.all((a <= c) & (d <= b)), q
    assert finer.at(4)["epsilon"].upper < plan.at(4)["epsilon"].upper
    with pytest.raises(ValueError, match=r"steps must be a whole number in \[1, 100\], got 101"):
        plan.refined(101)


def test_steps_of_any_type_and_size_never_show_too_little(plan):
    beyond = [
        -1,
        2**33 + 5,
        np.int64(2**32 + 5),
        np.array([2**40], np.int64),
        np.uint32(2**32 - 1),
        np.uint64(2**63 + 3),
        jnp.int32(-1),
        jnp.uint32(2**32 - 1),
    ]
    for step in beyond:
        assert np.all(np.isinf(plan.at(step)["mu"].upper)) and np.all(
            plan.at(step)["beta"].lower == 0.0
        ), step
    for kind in (np.int8, np.uint8, np.int16, np.uint32, np.int64, jnp.int8, jnp.uint8):
        assert plan.at(kind(100))["mu"].upper == plan.at(100)["mu"].upper, kind
    long = jax.tree.map(np.copy, plan)
    assert type(long.at(3)["mu"].upper) is np.float32  # nothing is compiled on the host
    with pytest.raises(ValueError, match="on the host only"):
        jax.jit(lambda plan: plan.max_steps_within(mu=1.0))(plan)


@pytest.mark.parametrize("power", [0.5, 1.0, 0.1, 3.0])
@pytest.mark.parametrize("most", [1, 2, 7, 5000, 2**24])
def test_search_is_exact_and_short(power, most):
    for last in sorted({0, 1, most // 5, most // 3, most - 1, most}):
        seen = []

        def evaluate(steps):
            seen.extend(steps.tolist())  # noqa: B023
            return steps <= last, (steps / (last + 0.5)) ** power  # noqa: B023

        assert last_within(evaluate, 0, most + 1) == last
        assert (
            len(seen) == len(set(seen)) and len(seen) <= 12 and all(1 <= t <= most for t in seen)
        ), seen


def test_search_is_exact_without_numbers_to_steer_by():
    for last in (0, 77, 4999):
        assert last_within(lambda t: (t <= last, np.full(len(t), np.nan)), 0, 5001) == last  # noqa: B023
        assert last_within(lambda t: (t <= last, np.where(t <= last, 0.0, np.inf)), 0, 5001) == last  # noqa: B023


def test_candidates_lie_strictly_inside_the_gap():
    rng = np.random.default_rng(0)
    for _ in range(300):
        good = int(rng.integers(0, 1000))
        bad = good + int(rng.integers(2, 5000))
        scores = {
            good: float(rng.uniform(0, 1)),
            bad: float(rng.choice([1.0, 1.0 + 1e-9, 1.5, 40.0, np.inf, np.nan])),
        }
        tried = candidates(good, bad, scores, int(rng.integers(0, 7)))
        assert (
            1 <= len(tried) <= 4
            and good < tried[0]
            and tried[-1] < bad
            and np.all(np.diff(tried) > 0)
        )


def test_computed_numbers_of_steps_are_few_and_near_each_other():
    # what a plan costs before its first look-up, which computes what is missing around it
    assert len(_grid(5000, None)) <= 30
    for most in (1, 2, 99, 100, 101, 999, 1000, 5000, 2**24):
        steps = _grid(most, None)
        assert (
            steps[-1] == most
            and np.all(np.diff(steps) > 0)
            and steps[0] == (1 if most < 1000 else 100)
        )
        late = steps[steps >= 100]
        assert len(late) < 2 or np.all(np.diff(late) <= np.maximum(1, 0.15 * late[:-1] + 1))
    assert _grid(10, 4).tolist() == [4, 8, 10]


def test_epsilon_at_slightly_less_than_delta_is_bounded_without_another_evaluation(monkeypatch):
    steps = np.array([1, 4, 64, 400])
    mu, run = np.sqrt(steps) / 8.0, jaxgdp.dpsgd(8.0, 1.0, steps)
    rough = overflow._rough_epsilon(run, Adjacency.ADD_REMOVE)
    for delta in (1e-3, 1e-5, 1e-9):
        at = gdp.epsilon(delta=delta, mu=mu)
        for share in (1e-15, 1e-9, 1e-3, 0.3, 0.5):
            less = delta * (1.0 - share)
            bound, truth = (epsilon_at_less(at, delta, less, rough), gdp.epsilon(delta=less, mu=mu))
            assert np.all(truth <= bound)
            assert np.all(bound - truth <= (1.5 * share + 1e-11) * truth), (delta, share)
        assert np.all(np.isinf(epsilon_at_less(at, delta, 0.4 * delta, rough)))
    measured, calls = overflow.measure, []
    monkeypatch.setattr(
        overflow, "measure", lambda *args, **asked: calls.append(asked) or measured(*args, **asked)
    )
    padded = plan_budget(8.0, 1.0, 64, "epsilon", every=64, overflow=1e-20).at(64)["epsilon"]
    clean = plan_budget(8.0, 1.0, 64, "epsilon", every=64).at(64)["epsilon"]
    assert (
        len(calls) == 2
        and padded.contains(gdp.epsilon(delta=1e-5, mu=1.0))
        and padded.upper <= clean.upper * (1 + 1e-6)
    )
    # an overflow that matters is computed at its own rate
    plan_budget(8.0, 1.0, 64, "epsilon", every=64, overflow=1e-6)
    assert len(calls) == 4 and calls[-1]["delta"] < 1e-5 * (1 - 0.09)
