"""Bounds by the number of steps with the record, against exact single steps and exact binomials."""

import jax
import numpy as np
import pytest
from by_day import every_value
from mpmath import mp, mpf

import jaxgdp
from jaxgdp.accounting.certify import closed_forms, counted_jumps, jump_sides, located_jumps
from jaxgdp.accounting.certify.counted_jumps import Jumps, SampledRun
from jaxgdp.accounting.certify.curve import GaussianParts
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import by_jumps
from jaxgdp.accounting.steer import limit_plan
from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities.registry import REGISTRY
from tests.exact_mixtures import exact_delta

ASKED = [
    ("tpr", 1e-12),
    ("tpr", 1e-6),
    ("tpr", 0.01),
    ("tpr", 0.4),
    ("delta", 0.01),
    ("delta", 3.0),
]
ASKED += [("epsilon", 1e-9), ("epsilon", 1e-3), ("advantage", None), ("mu", None)]
ASKED += [("bayes_risk", 0.1), ("beta", 1e-4), ("approximate_mu", 1e-7)]


def _brackets(run, adjacency, asked=ASKED):
    """Numbers of a run, whatever steering thinks of it."""
    jumps = run if isinstance(run, Jumps) else Jumps(run, (run,))
    thresholds, above = limit_plan.jump_thresholds(jumps), jumps.above
    parts = GaussianParts(np.float64(np.sqrt(above.steps) / above.sigma), np.float64(0.0))
    with np.errstate(all="ignore"):
        curve = jump_sides.both_sides(jumps, thresholds, 40, parts, limit_plan.jump_places)
        for name, at in asked:
            question = Question(1e-3, 1e-10, adjacency, ((REGISTRY[name], at),))
            oriented = closed_forms.oriented(curve, question.adjacency)
            found = closed_forms.read([oriented], question)[name]
            yield name, at, float(found.lower[0]), float(found.upper[0])


@pytest.mark.parametrize(
    ("step", "adjacency"),
    every_value(
        ((0.1, 0.01), (0.2, 1e-7), (0.3, 0.5), (0.9, 0.03), (3.0, 0.2)),
        ("remove", "add", "add_remove"),
    ),
)
def test_single_steps_are_within_both_sides(step, adjacency):
    sigma, p = step
    step = jaxgdp.SubsampledGaussian(sigma, p)  # (one use is known in closed form)
    for name, at, low, high in _brackets(SampledRun(sigma, p, 1.0), adjacency):
        given = {} if at is None else {REGISTRY[name].argument: at}
        exact = jaxgdp.measure(step, name, adjacency=adjacency, **given)[name]
        assert low <= exact.upper * (1.0 + 1e-9) + 1e-300
        assert exact.lower <= high * (1.0 + 1e-9) + 1e-300


def _without_noise(p, steps):
    """TPR at FPR 0, and the advantage, where a jump is told from others for certain."""
    return float(-mp.expm1(steps * mp.log1p(-mpf(p))))


@pytest.mark.parametrize(
    "sigma, p, steps", [(0.05, 0.01, 1000), (0.05, 4e-8, 10**7), (0.03, 1e-3, 20), (0.02, 0.5, 30)]
)
def test_jumps_that_are_certain_leave_their_number(sigma, p, steps):
    exact = _without_noise(p, steps)
    asked = [("advantage", None)]
    ((_, _, low, high),) = _brackets(SampledRun(sigma, p, steps), "add", asked)
    assert low <= exact <= high and high - low <= 1e-5 * exact
    low, high = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), "tpr", fpr=1e-7).tpr
    # (TPR is at most that, and a share of what is left)
    assert low <= exact + 1e-7 and exact * (1.0 - 1e-6) <= high
    assert high - low <= 1e-3 * high


@pytest.mark.parametrize(
    "steps, p",
    [
        (1, 0.3),
        (7, 0.9),
        (400, 0.02),
        (10**9, 3e-7),
        (10**12, 1e-14),
        pytest.param(10**9, 2e-6, marks=pytest.mark.nightly),
        pytest.param(8000, 0.99, marks=pytest.mark.nightly),
    ],
)
def test_counts_hold_binomial_probabilities(steps, p):
    found = counted_jumps.counts(float(steps), float(np.log(p)))
    with mp.workdps(60):
        share = mp.exp(mpf(float(np.log(p))))
        exact = [
            mp.log(mp.binomial(steps, j)) + j * mp.log(share) + (steps - j) * mp.log1p(-share)
            for j in range(len(found.log_mass))
        ]
        assert all(abs(a - mpf(b)) < 1e-9 for a, b in zip(exact, found.log_mass, strict=True))
        left = 1 - mp.fsum(mp.exp(x) for x in exact)
        assert left <= mp.exp(mpf(found.log_rest)) * (1 + mpf(10) ** -30) + mpf(10) ** -50


@pytest.mark.parametrize("sigma, steps", [(0.05, 7900), (0.15, 3000), (1e-6, 5000)])
@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_thousands_of_jumps_that_are_certain_are_a_gaussian_mechanism(sigma, steps, adjacency):
    """All steps have the record but in one run of 2^−30 or fewer, which an approximation leaves
    out.
    """
    run = SampledRun(sigma, 1.0 - 2.0**-45, float(steps))
    jumps = Jumps(run, (run,))
    thresholds, parts = limit_plan.located_thresholds(jumps), GaussianParts(np.inf, 0.0)
    exact = np.sqrt(steps) / sigma
    asked = ((REGISTRY["approximate_mu"], 1e-6), (REGISTRY["mu"], 1e-6))
    question = Question(1e-3, 1e-10, Adjacency.checked(adjacency), asked)
    with np.errstate(all="ignore"):
        curve = jump_sides.located_tests(jumps, thresholds, parts)
        found = closed_forms.read([closed_forms.oriented(curve, question.adjacency)], question)
    for bracket in found.values():
        assert 0.999 * exact < bracket.lower[0] <= exact * (1.0 + 1e-9)
        assert bracket.upper[0] == np.inf  # (nothing is said from above)


@pytest.mark.parametrize("sigma, p, steps", [(0.06, 1e-5, 10**8), (0.1, 0.02, 20_000)])
def test_sets_of_fewer_steps_than_ever_have_the_record_add_nothing(monkeypatch, sigma, p, steps):
    run = SampledRun(sigma, p, float(steps))
    terms, at = located_jumps.located(run), limit_plan.located_thresholds(Jumps(run, (run,)))
    ((alpha, tpr, beta),), _ = located_jumps.achieved_tests(terms, at)
    monkeypatch.setattr(located_jumps, "least_number", lambda run: 0)
    ((more_alpha, more_tpr, less_beta),), _ = located_jumps.achieved_tests(terms, at)
    # fewer sets: neither rate is larger, and the TPR by no more than such runs are
    assert np.all(alpha <= more_alpha + 1e-6) and np.all(tpr <= more_tpr + 1e-6)
    some = more_tpr > -40.0
    assert np.all(tpr[some] >= more_tpr[some] - 1e-3) and np.any(some)
    some = less_beta > -40.0
    assert np.all(np.abs(beta - less_beta)[some] <= 1e-3)


def _exact_of_two(sigma, p, epsilon, swapped):
    """δ(ε) of two steps: over the first output, of the exact profile of the second at what is left
    of ε.
    """
    s, p = mpf(sigma), mpf(p)
    normal = lambda x, at: mp.exp(-(((x - at) / s) ** 2) / 2) / (s * mp.sqrt(2 * mp.pi))
    mixed = lambda x: (1 - p) * normal(x, 0) + p * normal(x, 1)
    loss = lambda x: mp.log(1 - p + p * mp.exp((2 * x - 1) / (2 * s * s)))
    beyond = lambda x, at: mp.erfc((x - at) / s / mp.sqrt(2)) / 2

    def single(x):
        """Of one step: Q(o > o*) − e^x·P(o > o*), or with P and Q swapped and below o*."""
        edge = mp.exp(-x if swapped else x) - 1 + p
        place = -mp.inf if edge <= 0 else s * s * mp.log(edge / p) + mpf(1) / 2
        q = (1 - p) * beyond(place, 0) + p * beyond(place, 1)
        if swapped:
            return mp.mpf(0) if place == -mp.inf else 1 - beyond(place, 0) - mp.exp(x) * (1 - q)
        return q - mp.exp(x) * beyond(place, 0)

    first = (lambda x: normal(x, 0)) if swapped else mixed
    value = lambda x: first(x) * single(epsilon + (1 if swapped else -1) * loss(x))
    # (what is left of ε passes log(1 − p) within s² of here)
    turn = s * s * (epsilon - mp.log(p)) + mpf(1) / 2
    ends = [c + k * s for c in (0, 1) for k in (-13, -8, -4, 0, 4, 8, 13)]
    ends += [turn + k * s * s for k in (-60, -20, -8, -3, 0, 3, 8, 20, 60)] + [mpf(1) / 2]
    return mp.quad(value, sorted({e for e in ends if -13 * s <= e <= 1 + 13 * s}))


@pytest.mark.parametrize(
    "sigma, p",
    [
        (0.03, 0.3),
        pytest.param(0.06, 1e-3, marks=pytest.mark.nightly),
        pytest.param(0.09, 0.9, marks=pytest.mark.nightly),
    ],
)
def test_two_steps_are_within_both_sides(sigma, p):
    one = 0.5 / sigma**2
    for swapped in (False, True):
        adjacency = "add" if swapped else "remove"
        epsilons = (0.05,) if swapped else (one, 2.0 * one - 9.0)
        asked = [("delta", float(e)) for e in epsilons]
        for _, epsilon, low, high in _brackets(SampledRun(sigma, p, 2.0), adjacency, asked):
            with mp.workdps(20):
                exact = _exact_of_two(sigma, p, epsilon, swapped)
            assert low <= exact * (1 + mpf(10) ** -12), (epsilon, adjacency)
            assert exact * (1 - mpf(10) ** -12) <= high, (epsilon, adjacency)


@pytest.mark.parametrize(
    "sigma, p, steps", [(1e-4, 0.01, 300), (0.0035, 0.04, 260), (0.03, 0.02, 5000), (0.025, 0.3, 4)]
)
def test_epsilon_of_little_noise_is_as_accurate_as_asked(sigma, p, steps):
    """And the bracket holds what jumps without their places say from above."""
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), "epsilon", delta=1e-5)
    assert found.status["epsilon"] == 0
    # Pr[J ≥ k] falls below δ at some number of jumps, each of which adds 1/(2σ²), about
    j = np.arange(steps + 1.0)
    left = np.array([float(mp.betainc(k, steps - k + 1, 0, p, regularized=True)) for k in j[1:200]])
    most = 1 + int(np.sum(left >= 1e-5))
    assert (most - 1) * (0.5 / sigma**2 - 12.0 / sigma) < found.epsilon.upper
    assert found.epsilon.lower < most * (0.5 / sigma**2 + 12.0 / sigma)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(16))
def test_lattices_and_jumps_agree(seed):
    """Wherever both know something, whatever steering thinks of it."""
    generator = np.random.default_rng([35, seed])
    log_uniform = lambda low, high: float(np.exp(generator.uniform(np.log(low), np.log(high))))
    sigma, steps = log_uniform(0.12, 2.0), round(log_uniform(1.0, 1e5))
    p = log_uniform(1e-8, min(0.5, 50.0 / steps))
    adjacency = str(generator.choice(["remove", "add", "add_remove"]))
    run = jaxgdp.dpsgd(sigma, p, steps)
    asked = [ASKED[int(k)] for k in generator.permutation(len(ASKED))[:3]]
    for name, at, low, high in _brackets(SampledRun(sigma, p, float(steps)), adjacency, asked):
        given = {} if at is None else {REGISTRY[name].argument: at}
        lattice = jaxgdp.measure(run, name, adjacency=adjacency, executor="eager", **given)[name]
        assert low <= lattice.upper * (1.0 + 1e-9) + 1e-300, (sigma, p, steps, name, at)
        assert lattice.lower <= high * (1.0 + 1e-9) + 1e-300, (sigma, p, steps, name, at)


def test_other_compositions_are_left_alone():
    for run in (
        jaxgdp.compose([(jaxgdp.SubsampledGaussian(0.1, 0.1), 3), (jaxgdp.Laplace(1.0), 1)]),
        jaxgdp.compose([(jaxgdp.SubsampledGaussian(0.1, p), 3) for p in (0.1, 0.2)]),
        jaxgdp.RandomizedResponse(1.0),
    ):
        stacked = jaxgdp.compose([(run, 1)]).stacked()
        groups = jax.tree.map(lambda leaf: np.asarray(leaf)[None], stacked)
        assert by_jumps.jumps_of(groups, 0) is None


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize(
    "sigma, shifts, weights",
    [
        (1e-6, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01]),
        (0.2, [0.0, 0.5, 1.0, 4.0], [0.9, 0.05, 0.04, 0.01]),
        (0.5, [3.0, 0.0, 1.0], [1e-7, 1.0 - 2e-7, 1e-7]),
        (1.0, [0.5, 2.0], [0.5, 0.5]),
    ],
)
def test_single_uses_of_mixtures_are_within_both_sides(sigma, shifts, weights, adjacency):
    jumps = counted_jumps.jumps_of_shifts(sigma, np.array(shifts), np.array(weights), 1.0)
    asked = [("delta", at) for at in (0.0, 0.01, 1.0, 5.0)]
    for _, epsilon, low, high in _brackets(jumps, adjacency, asked):
        exact = exact_delta(sigma, shifts, weights, epsilon, adjacency)
        assert low <= exact * (1.0 + 1e-12) and exact * (1.0 - 1e-12) <= high


def test_sizes_of_shifts_bound_a_mixture():
    """Larger shifts are more than one size, smaller ones less; orders and zeros do not count."""
    shifts, weights = np.array([2.0, 0.0, 1.0, 5.0]), np.array([0.1, 0.6, 0.3, 0.0])
    jumps = counted_jumps.jumps_of_shifts(0.1, shifts, weights, 7.0)
    assert jumps.above == pytest.approx((0.05, 0.4, 7.0, 0.6), rel=1e-15)
    below = [(0.1, 0.4, 7.0, 0.6), (0.05, 0.1, 7.0, 0.9)]
    assert np.allclose(jumps.below, below, rtol=1e-15)
    assert counted_jumps.jumps_of_shifts(0.1, shifts, [0.0, 1.0, 0.0, 0.0], 7.0) is None


def test_users_without_noise_show_whether_they_took_part():
    """Whatever can be told is whether any of the records was ever in a batch."""
    run = jaxgdp.dpsgd(1e-6, 0.01, 100, records_per_user=4)
    exact, found = _without_noise(0.01, 400), jaxgdp.measure(run, "delta").delta
    assert found.lower <= exact <= found.upper and found.width <= 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_mixtures_by_lattices_and_by_jumps_agree(seed):
    generator = np.random.default_rng([36, seed])
    number = int(generator.integers(2, 6))
    shifts = np.append(0.0, np.exp(generator.uniform(-1.0, 1.5, number)))
    p = float(np.exp(generator.uniform(np.log(1e-6), np.log(0.3))))
    weights = np.append(1.0 - p, p * generator.dirichlet(np.ones(number)))
    sigma, steps = float(np.exp(generator.uniform(-2.0, 0.5))), int(generator.integers(1, 60))
    run = jaxgdp.compose([(jaxgdp.GaussianMixture(sigma, shifts, weights), steps)])
    jumps = counted_jumps.jumps_of_shifts(sigma, shifts, weights, float(steps))
    for adjacency in ("remove", "add"):
        for name, at, low, high in _brackets(jumps, adjacency, ASKED[:9]):
            given = {} if at is None else {REGISTRY[name].argument: at}
            other = jaxgdp.measure(run, name, adjacency=adjacency, executor="eager", **given)[name]
            assert low <= other.upper * (1.0 + 1e-9) + 1e-300, (name, at)
            assert other.lower <= high * (1.0 + 1e-9) + 1e-300, (name, at)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 60.0])
@pytest.mark.parametrize(
    "sigma, p, steps", [(0.3, 1e-5, 1), (2.0, 0.1, 1), (0.8, 0.01, 3), (5.0, 1e-3, 40)]
)
def test_far_out_is_above_single_steps_and_above_sums_over_jumps(sigma, p, steps, epsilon):
    given = (np.array([float(x)]) for x in (sigma, p, steps, epsilon))
    (bound,) = counted_jumps.log_delta_far_out(*given)
    with mp.workdps(60):
        # (the larger order of one use, which any number of uses has at least)
        rest = mpf(p) ** -1 * (mp.exp(mpf(epsilon)) - 1 + mpf(p))
        mu, v = 1 / mpf(sigma), mp.log(rest)
        delta = mp.ncdf(mu / 2 - v / mu) - rest * mp.ncdf(-mu / 2 - v / mu)
        assert bound >= mp.log(p * delta) - mpf(10) ** -12
        # (what it bounds: the sum over all numbers of jumps)
        total = mpf(0)
        for j in range(1, steps + 1):
            mu = mp.sqrt(j) / sigma
            weight = mp.binomial(steps, j) * mpf(p) ** j * (1 - mpf(p)) ** (steps - j)
            near, far = mp.ncdf(mu / 2 - epsilon / mu), mp.ncdf(-mu / 2 - epsilon / mu)
            total += weight * (near - mp.exp(mpf(epsilon)) * far)
        assert bound >= mp.log(total) - mpf(10) ** -12
