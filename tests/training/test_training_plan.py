"""Plans: certified at every step, looked up inside compiled float32 code, and the number of steps a
budget allows.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

import jaxgdp
from jaxgdp.bracket import Bracket
from jaxgdp.training import (
    ExampleGradients,
    plan_budget,
    poisson_sampler,
    privatize,
    shuffle_sampler,
)
from jaxgdp.training.float32 import above, below

SIGMA, RATE, STEPS = 1.0, 0.1, 400
QUANTITIES = ("mu", "epsilon", "advantage", "beta")


@pytest.fixture(scope="module")
def gaussian():
    """Noise without subsampling: closed forms for every number of steps."""
    return plan_budget(8.0, 1.0, 100, QUANTITIES, every=7, delta=1e-6, fpr=0.01)


@pytest.fixture(scope="module")
def subsampled():
    return plan_budget(SIGMA, RATE, STEPS, QUANTITIES, every=100, delta=1e-6, fpr=0.01)


def closed_forms(steps):
    mu = np.sqrt(steps) / 8.0
    return {
        "mu": mu,
        "epsilon": np.where(steps == 0, 0.0, jaxgdp.gdp.epsilon(delta=1e-6, mu=mu)),
        "advantage": jaxgdp.gdp.advantage(mu=mu),
        "beta": jaxgdp.gdp.beta(fpr=0.01, mu=mu),
    }


def test_plan_holds_at_every_step_and_is_narrow_where_it_was_computed(gaussian):
    steps = np.arange(101)
    found, truth = gaussian.at(steps), closed_forms(steps)
    for name in QUANTITIES:
        lower, upper = (np.asarray(side, np.float64) for side in found[name])
        assert np.all(lower <= truth[name]) and np.all(truth[name] <= upper), name
        computed = (steps % 7 == 0) | (steps == 100)
        assert np.all(
            (upper - lower)[computed] <= 3e-3 * np.maximum(truth[name], 1e-3)[computed]
        ), name
        # between computed steps: the safe side is that of more steps, the other that of fewer
        assert np.all(np.diff(upper) * (-1 if name == "beta" else 1) >= 0), name
    assert [float(found[name].upper[0]) for name in ("mu", "epsilon", "advantage")] == [
        0.0,
        0.0,
        0.0,
    ]


def test_plan_promises_nothing_beyond_the_last_step(gaussian):
    found = gaussian.at(jnp.array([101, 2**30]))
    assert np.all(np.isinf(found["mu"].upper)) and np.all(np.isinf(found["epsilon"].upper))
    assert np.all(found["advantage"].upper == 1.0) and np.all(found["beta"].lower == 0.0)
    assert np.all(found["mu"].lower >= 1.24)


def test_plan_agrees_with_measure_at_other_steps(subsampled):
    steps = np.array([150, 237, 399])
    direct = jaxgdp.measure(
        jaxgdp.dpsgd(SIGMA, RATE, steps), QUANTITIES, delta=1e-6, fpr=0.01
    ).brackets
    found = subsampled.at(steps)
    for name, bracket in direct.items():
        assert np.all(found[name].lower <= bracket.upper) and np.all(
            bracket.lower <= found[name].upper
        ), name
    assert np.all(found["mu"].upper[:1] < 1.2 * direct["mu"].upper[:1])


def test_best_attack_on_real_runs_is_as_good_as_the_plan_says(subsampled):
    """Batches, clipping and noise as they run, 100 steps, watched by an attacker who knows all
    gradients; with and without the record.
    """
    steps, runs = 100, 20_000
    sampler = poisson_sampler(5, RATE, max_steps=steps)

    def statistic(seed, present):
        noise, sampling = jax.random.split(jax.random.key(seed))
        transformation = privatize(0.5, SIGMA, key=noise, sampler=sampler)
        gradients = jnp.zeros((5, 2)).at[0, 0].set(7.0 * present)  # clipped to the norm 1/2

        def step(state, _):
            batch = sampler.sample(sampling, state.step)
            update, state = transformation.update(
                sampler.take(batch, gradients), state, mask=batch.mask
            )
            output = update[0] * sampler.expected_batch_size / 0.5
            return state, jnp.log1p(RATE * jnp.expm1((output - 0.5) / SIGMA**2))

        return jnp.sum(jax.lax.scan(step, transformation.init(None), None, length=steps)[1])

    attack = jax.jit(jax.vmap(statistic, in_axes=(0, None)))
    absent, present = (np.sort(attack(jnp.arange(runs) + runs * i, float(i))) for i in (0, 1))
    promised = subsampled.at(steps)
    advantage = ks_2samp(absent, present).statistic
    assert abs(advantage - promised["advantage"].upper) < 3.0 / np.sqrt(runs)
    detected = np.mean(present > absent[int(0.99 * runs)])
    assert abs(detected - (1.0 - promised["beta"].lower)) < 0.03
    assert detected > 0.08


def test_plan_works_in_compiled_float32_code_without_retracing(subsampled):
    assert not jax.config.jax_enable_x64
    traces = []

    @jax.jit
    def run(plan, first):
        def step(t, _):
            traces.append(1)
            return t + 1, plan.at(t)

        return jax.lax.scan(step, first, None, length=450)[1]

    found = run(subsampled, 0)
    run(subsampled, 10)
    assert len(traces) == 1
    eager = subsampled.at(np.arange(450))
    mapped = jax.vmap(subsampled.at)(jnp.arange(450))
    for name in QUANTITIES:
        for side in (0, 1):
            assert found[name][side].dtype == jnp.float32
            assert np.array_equal(found[name][side], eager[name][side]) and np.array_equal(
                mapped[name][side], eager[name][side]
            )
    assert all(
        leaf.dtype in (np.float32, np.int16, np.int32) for leaf in jax.tree.leaves(subsampled)
    )
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(subsampled)) < 3000


@pytest.mark.parametrize("limit", [0.1251, 0.7, 1.0001, 1.2])
def test_steps_within_a_limit_are_exact(gaussian, limit):
    # T steps have μ = √T/8, certified to a thousandth
    steps = gaussian.max_steps_within(mu=limit)
    assert (limit * (1 - 2e-3)) ** 2 * 64 - 1 <= steps <= limit**2 * 64
    brackets = jaxgdp.measure(jaxgdp.dpsgd(8.0, 1.0, np.array([steps, steps + 1])), "mu").brackets[
        "mu"
    ]
    assert brackets.upper[0] <= limit and brackets.upper[1] > limit * (1 - 1e-6)


def test_steps_within_several_limits_and_at_the_ends(gaussian, subsampled):
    each = [
        gaussian.max_steps_within(mu=1.0),
        gaussian.max_steps_within(advantage=0.3),
        gaussian.max_steps_within(beta=0.9),
    ]
    assert gaussian.max_steps_within(mu=1.0, advantage=0.3, beta=0.9) == min(each) < max(each)
    assert gaussian.max_steps_within(mu=0.01) == 0 and gaussian.max_steps_within(mu=5.0) == 100
    middle = float(subsampled.at(200)["mu"].upper)
    assert 200 <= subsampled.max_steps_within(mu=middle) <= 201


def test_limit_is_not_rounded_to_float32(gaussian):
    upper = float(gaussian.at(49)["mu"].upper)
    assert gaussian.max_steps_within(mu=upper) >= 49
    # the same number in float32, but smaller
    assert np.float32(upper * (1 - 1e-9)) == np.float32(upper)
    table = dataclasses.replace(
        gaussian, steps=gaussian.steps[:8], upper={"mu": gaussian.upper["mu"][:8]}, max_steps=49
    )
    table = dataclasses.replace(table, lower={"mu": gaussian.lower["mu"][:8]})
    assert table.max_steps_within(mu=upper) == 49 > table.max_steps_within(mu=upper * (1 - 1e-9))


class EpsilonTarget:
    """The interface of the targets of calibration."""

    quantity, shape = "epsilon", ()

    def __init__(self, epsilon, delta):
        self.epsilon, self.delta = epsilon, delta

    def parameters(self):
        return {"delta": np.array(self.delta)}

    def read(self, bracket):
        return bracket

    def meets(self, own):
        return own.upper <= self.epsilon


def test_steps_within_a_target_with_its_own_delta(gaussian):
    # the plan is at δ = 1e-6
    steps = gaussian.max_steps_within(EpsilonTarget(2.0, 1e-3))
    exact = (
        np.flatnonzero(jaxgdp.gdp.epsilon(delta=1e-3, mu=np.sqrt(np.arange(1, 101)) / 8.0) <= 2.0)[
            -1
        ]
        + 1
    )
    assert exact - 1 <= steps <= exact and steps > 1.2 * gaussian.max_steps_within(epsilon=2.0)


def test_overflow_is_paid_for_on_the_safe_side():
    d, mu, names = (
        1e-4,
        np.sqrt(2.0) / 8.0,
        ("mu", "epsilon", "delta", "advantage", "beta", "tpr", "bayes_risk"),
    )
    asked = {
        "delta": 1e-3,
        "epsilon": 0.3,
        "fpr": 0.01,
        "prior": 0.5,
        "fpr_floor": 1e-3,
        "every": 2,
    }
    plan = plan_budget(8.0, 1.0, 2, names, overflow=d, **asked)
    clean = plan_budget(8.0, 1.0, 2, names, **asked)
    found, exact = plan.at(2), clean.at(2)
    # with probability d a run shows everything: f'(α) = (1 − d)·f(α/(1 − d)), δ' = d + (1 − d)·δ
    curve = lambda alpha: (1 - d) * jaxgdp.gdp.beta(fpr=alpha / (1 - d), mu=mu)
    alpha = np.geomspace(1e-3, curve(1e-3), 400)
    truth = {
        "mu": np.max(norm.isf(alpha) - norm.ppf(curve(alpha))),
        "epsilon": jaxgdp.gdp.epsilon(delta=(1e-3 - d) / (1 - d), mu=mu),
        "delta": d + (1 - d) * jaxgdp.gdp.delta(epsilon=0.3, mu=mu),
        "advantage": d + (1 - d) * jaxgdp.gdp.advantage(mu=mu),
        "tpr": 1 - curve(0.01),
        "beta": curve(0.01),
        "bayes_risk": (1 - d) * jaxgdp.gdp.bayes_risk(prior=0.5, mu=mu),
    }
    for name, value in truth.items():
        if name in ("beta", "bayes_risk"):
            assert (
                found[name].lower <= value < exact[name].lower
                and found[name].upper == exact[name].upper
            ), name
            assert found[name].lower > value - 5e-4, name
        else:
            assert (
                found[name].upper >= value > exact[name].lower
                and found[name].lower == exact[name].lower
            ), name
            # not much more than the truth
            assert found[name].upper <= value + {"mu": 0.15, "epsilon": 3e-3}.get(name, 5e-4), name
        assert found[name] != exact[name], name


def test_float32_is_rounded_outward():
    values = np.array([0.0, 1e-60, 1e-39, 1e-38, 0.1, 1.0, 1.0 + 1e-12, np.pi, 1e30, 1e300, np.inf])
    low, high = below(values), above(values)
    assert low.dtype == high.dtype == np.float32
    assert np.all(low.astype(np.float64) <= values) and np.all(values <= high.astype(np.float64))
    inside = (values > 1e-37) & (values < 1e38)
    assert np.all(high[inside] - low[inside] <= 2.4e-7 * values[inside])
    # nothing that a device could flush to zero on the unsafe side
    assert high[1] == np.finfo(np.float32).tiny and low[9] < np.inf and low[5] == high[5] == 1.0


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier must be a finite number > 0, got 0"),
        ({"noise_multiplier": [1.0, 2.0]}, "noise_multiplier must be a single number"),
        ({"sampling_prob": 1.5}, "sampling_prob"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": 2**25}, "max_steps"),
        ({"quantities": ("mu", "privacy")}, "quantity"),
        ({"quantities": ()}, "quantities"),
        ({"quantities": ("regret",)}, "every must be 1"),
        ({"every": 0}, "every"),
        ({"delta": 2.0}, "delta"),
        ({"delta": [1e-5]}, "delta must be a single number"),
        ({"overflow": 0.1}, "overflow"),
        ({"delta": 1e-5, "overflow": 1e-4}, "delta must be above the overflow 0.0001, got 1e-05"),
        ({"fpr_floor": 0.6}, "fpr_floor"),
        ({"adjacency": "sideways"}, "adjacency"),
    ],
)
def test_bad_input_is_named(bad, named):
    with pytest.raises(ValueError, match=named):
        plan_budget(**({"noise_multiplier": 1.0, "sampling_prob": 0.1, "max_steps": 10} | bad))


def test_bad_queries_are_named(gaussian):
    with pytest.raises(ValueError, match="step must be an integer"):
        gaussian.at(1.5)
    with pytest.raises(ValueError, match="needs a target or a limit"):
        gaussian.max_steps_within()
    with pytest.raises(
        ValueError, match="limit must be one of 'mu', 'epsilon', 'advantage', 'beta', got 'delta'"
    ):
        gaussian.max_steps_within(delta=1e-5)
    with pytest.raises(ValueError, match="mu must be a finite number >= 0"):
        gaussian.max_steps_within(mu=-1.0)
    with pytest.raises(ValueError, match="target must be a scalar target"):
        gaussian.max_steps_within(3.0)


@pytest.mark.parametrize("number", [600, pytest.param(2000, marks=pytest.mark.nightly)])
def test_plan_holds_between_computed_steps(number):
    """Any step of a long run, by the accountant asked directly: no side of the plan contradicts it,
    none is wider than the next entry.
    """
    rng = np.random.default_rng(20261122)
    names = ("mu", "epsilon", "advantage", "delta", "tpr", "bayes_risk")
    sigma, p = float(rng.uniform(0.9, 3.0)), float(10.0 ** rng.uniform(-2.5, -1.0))
    plan = plan_budget(sigma, p, number, names, overflow=1e-18)
    computed = plan.steps[1:].astype(int)
    asked = np.unique(rng.integers(100, number + 1, size=3))
    following = computed[np.searchsorted(computed, asked)]
    direct = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, np.concatenate([asked, following])), names
    ).brackets
    found = plan.at(asked)
    for name in names:
        own, later = (Bracket(*(np.split(side, 2)[i] for side in direct[name])) for i in (0, 1))
        assert np.all(own.lower <= found[name].upper) and np.all(found[name].lower <= own.upper), (
            name
        )
        room = 1e-6  # float32, and the rounding of another batch
        if name == "bayes_risk":
            assert np.all(found[name].lower >= later.lower * (1 - room)), name
        else:
            assert np.all(found[name].upper <= later.upper * (1 + room)), name


def _above(live, final, name):
    """By how much the safe side of a plan is worse than that of ``measure``, relatively."""
    if name in ("beta", "bayes_risk"):
        return np.asarray(final.lower) / np.asarray(live.lower, np.float64) - 1.0
    return np.asarray(live.upper, np.float64) / np.maximum(final.upper, 1e-37) - 1.0


LIVE = ("mu", "epsilon", "advantage", "beta", "tpr", "delta")


@pytest.mark.parametrize("compiled", [False, True])
def test_live_numbers_agree_with_final_ones_at_every_step(compiled):
    """What the loop shows is at most half a per cent above what ``measure`` finds in the end."""
    steps = np.arange(1, 161)
    plan = plan_budget(10.0, 1.0, 160, LIVE, fpr=0.01)
    assert len(plan.steps) < 25
    final = jaxgdp.measure(jaxgdp.dpsgd(10.0, 1.0, steps), LIVE, delta=1e-5, fpr=0.01)
    live = jax.jit(plan.at)(steps) if compiled else plan.at(steps)
    for name in LIVE:
        assert np.all(_above(live[name], final[name], name) <= 5e-3), name
        assert np.all(np.asarray(live[name].lower) <= final[name].upper), name


def test_look_up_computes_what_it_needs_and_remembers_it():
    plan = plan_budget(1.0, 0.01, 1200, "advantage")
    before = len(plan.steps)
    live = plan.at(601)["advantage"].upper
    final = jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.01, np.array([601])), "advantage")["advantage"]
    assert final.lower[0] <= live <= 1.005 * final.upper[0]
    known = plan._latest()
    assert before < len(known.steps) <= before + 9 and len(plan.steps) == before
    assert plan.at(601)["advantage"].upper == live and plan._latest() is known
    # what was asked before decides nothing
    other = plan_budget(1.0, 0.01, 1200, "advantage")
    other.at(np.array([500, 1100]))
    assert other.at(601)["advantage"].upper == live
    assert sum(leaf.nbytes for leaf in known._leaves()) < 4 * 1200


@pytest.mark.parametrize("number, most", [(160, 500), (1200, 1000)])
def test_compiled_table_is_small_for_short_and_long_runs(number, most):
    plan = plan_budget(10.0, 1.0, number)
    table = sum(leaf.nbytes for leaf in jax.tree.leaves(plan))
    assert table < most < sum(leaf.nbytes for leaf in plan._latest()._leaves())


def test_table_of_lines_stays_right_when_it_is_copied_refined_and_searched():
    plan = plan_budget(10.0, 1.0, 400, "mu")
    stop = plan.max_steps_within(mu=1.0)
    copy = jax.tree.map(np.array, plan)
    assert copy.lines and len(copy.steps) < 60
    steps = np.arange(1, 401)
    for now in (copy, copy.refined([250]), jax.tree.map(jnp.asarray, plan)):
        upper = np.asarray(now.at(steps)["mu"].upper, np.float64)
        assert np.all(upper >= np.sqrt(steps) / 10.0) and np.all(upper[:stop] <= 1.0)
        assert np.all(upper <= 1.005 * (1 + 1e-3) * np.sqrt(steps) / 10.0)
    assert copy.max_steps_within(mu=1.0) == stop


@pytest.mark.nightly
@pytest.mark.parametrize(
    "sigma, p, number, names, asked",
    [
        (1.0, 0.01, 1200, ("mu", "epsilon", "advantage"), {}),
        (2.0, 0.1, 400, LIVE, {}),
        (0.8, 0.001, 3000, ("epsilon", "advantage"), {"delta": 1e-7}),
        (5.0, 0.3, 150, LIVE, {"epsilon": 3.0, "fpr": 1e-4}),
    ],
)
def test_live_numbers_of_subsampled_runs_agree_with_final_ones(sigma, p, number, names, asked):
    plan = plan_budget(sigma, p, number, names, **asked)
    steps = np.unique(np.concatenate([np.arange(1, 130, 7), np.arange(101, number, 23)]))
    final = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), names, **{"delta": 1e-5} | asked)
    some = {now: plan.at(int(now)) for now in steps[::9]}
    compiled = jax.jit(plan.at)(steps)
    assert plan._latest().wide == 0
    for name in names:
        assert np.all(_above(compiled[name], final[name], name) <= 5e-3), name
        for i, now in enumerate(steps[::9]):
            alone = Bracket(*(side[9 * i] for side in final[name]))
            assert _above(some[now][name], alone, name) <= 5e-3, (name, now)


def test_plan_of_a_schedule_is_that_of_its_composition():
    """Three stages of noise, looked up within each and at their ends."""
    noise = lambda step: (2.0, 1.5, 1.0)[min(step // 40, 2)]
    sampler = poisson_sampler(500, 0.1, max_steps=100)
    plan = plan_budget(noise, sampler=sampler, quantities=("mu", "epsilon"), every=20)
    for steps, counts in ((20, (20,)), (40, (40,)), (60, (40, 20)), (100, (40, 40, 20))):
        run = jaxgdp.compose(
            [
                (jaxgdp.SubsampledGaussian(s, 0.1), n)
                for s, n in zip((2.0, 1.5, 1.0), counts, strict=False)
            ]
        )
        direct = jaxgdp.measure(run, ("mu", "epsilon"), delta=1e-5)
        for name in ("mu", "epsilon"):
            live = plan.at(steps)[name]
            assert live.lower <= direct[name].upper and direct[name].lower <= live.upper
            assert live.upper <= 1.003 * direct[name].upper
        assert tuple(map(int, plan.composition(steps).counts)) == counts
    shown = np.asarray(jax.jit(plan.noise_at)(jnp.arange(110)))
    assert np.array_equal(shown, [noise(t) for t in range(110)])
    optimiser = plan.privatize(1.0, jax.random.key(0))
    state = optimiser.init(jnp.zeros(3))._replace(step=jnp.asarray(85, jnp.int32))
    assert int(optimiser.init(jnp.zeros(3)).max_steps) == 100
    rows = ExampleGradients(
        jnp.zeros((sampler.padded_size, 3)), sampler.sample(jax.random.key(1), 0).mask
    )
    late, _ = optimiser.update(rows, state)
    plain = privatize(1.0, 1.0, key=jax.random.key(0), sampler=sampler)
    assert np.allclose(late, plain.update(rows, state)[0])
    with pytest.raises(ValueError, match="must have at most 64 stages"):
        plan_budget(lambda t: 1.0 + t, 0.1, 100)
    with pytest.raises(ValueError, match="must be a number for batches by shuffled"):
        plan_budget(noise, sampler=shuffle_sampler(100, 10), max_steps=20)
