"""Runs that are answered by their moments: very long ones, and those far from private."""

import dataclasses
import time

import jax
import numpy as np
import pytest
from by_day import first
from engine_run import question
from mechanisms_of_every_class import SETTINGS, composition
from mpmath import binomial, mp, mpf
from scipy.optimize import brentq
from scipy.special import erfcx, gammaln, logsumexp, ndtri_exp
from scipy.stats import norm

import jaxgdp
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import by_moments, engine
from jaxgdp.accounting.run.executors import EAGER
from jaxgdp.accounting.steer import limit_plan
from jaxgdp.quantities.registry import REGISTRY


def _by_moments(composition, quantity, value=None, adjacency="add_remove"):
    groups = jax.tree.map(lambda leaf: np.asarray(leaf)[None], composition.stacked())
    entry = REGISTRY[quantity]
    question = Question(
        1e-3,
        1e-10,
        adjacency,
        ((entry, value),),
        deepest=None if entry.rate is None else entry.rate(value),
    )
    long = by_moments.Long(*np.zeros((4, 1), bool))
    found = by_moments.answer(groups, np.array([0]), question, long).results[quantity]
    return float(found.lower[0]), float(found.upper[0])


def _delta(epsilon, uses, answer):
    """δ of randomised response, by enumeration."""
    e = mpf(epsilon)
    a = 1 / (1 + mp.exp(e))
    total = mpf(0)
    for k in range(uses + 1):
        loss = (2 * k - uses) * e
        if loss > answer:
            total += (
                binomial(uses, k) * a**k * (1 - a) ** (uses - k) * (mp.exp(loss) - mp.exp(answer))
            )
    return total


@pytest.mark.parametrize(
    "epsilon, uses, answer", [(0.1, 1, 0.0), (1.0, 3, 0.5), (0.02, 60, 0.3), (3.0, 40, 25.0)]
)
def test_few_uses_are_within_what_enumeration_has(epsilon, uses, answer):
    run = jaxgdp.compose([(jaxgdp.RandomizedResponse(epsilon), uses)])
    with mp.workdps(40):
        exact = float(_delta(epsilon, uses, mpf(answer)))
    low, high = _by_moments(run, "delta", answer)
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    low, high = _by_moments(run, "epsilon", exact)
    assert low - 1e-9 <= answer <= high + 1e-9


@pytest.mark.parametrize(
    "setting, delta, epsilon, near",
    [
        # ε of Gaussian DP with μ² = p²·T·(e^{1/σ²} − 1), to which so many steps come near
        ((1.0, 1e-6, 10**12), 1e-5, 6.0071, 1e-4),
        ((1.0, 1e-7, 2**31), 1e-5, None, 2e-3),
        ((1.0, 1e-12, 10**15), 1e-5, None, 1e-3),
    ],
)
def test_long_runs_of_tiny_rates(setting, delta, epsilon, near):
    sigma, p, steps = setting
    mu = p * np.sqrt(steps * np.expm1(sigma**-2))
    limit = jaxgdp.gdp.epsilon(delta=delta, mu=mu)
    assert epsilon is None or limit == pytest.approx(epsilon, abs=1e-4)
    started = time.process_time()
    found = jaxgdp.measure(jaxgdp.dpsgd(*setting), "epsilon", delta=delta)
    assert time.process_time() - started < 3.0
    assert found.status["epsilon"] == 0
    assert found.epsilon.lower * (1 - near) <= limit <= found.epsilon.upper * (1 + near)


def test_lattices_and_moments_agree():
    run = jaxgdp.dpsgd(3.0, 3e-3, 2 * 10**6)
    for quantity, value in (("epsilon", 1e-6), ("tpr", 1e-3), ("mu", None)):
        argument = {REGISTRY[quantity].argument: value} if value else {}
        lattice = jaxgdp.measure(run, quantity, **argument)[quantity]
        low, high = _by_moments(run, quantity, value)
        assert low <= lattice.upper and lattice.lower <= high
        assert high - low <= 0.02 * high


@pytest.mark.filterwarnings("ignore:.*look swapped:UserWarning")
@pytest.mark.parametrize(
    "setting, quantity, argument, bounds",
    [
        ((0.05, 0.5, 10**6), "mu", {}, (14000.0, 14100.0)),
        ((0.01, 0.5, 10**6), "mu", {}, (70000.0, 71000.0)),
        ((0.5, 0.5, 10**6), "epsilon", {"delta": 1e-5}, (669000.0, 671000.0)),
        ((0.9, 0.01, 10**12), "mu", {}, (15300.0, 15400.0)),
        ((0.5, 0.5, 10**6), "tpr", {"fpr": 1e-9}, (1.0 - 1e-9, 1.0)),
        ((0.5, 0.5, 10**6), "delta", {"epsilon": 5.0}, (1.0 - 1e-9, 1.0)),
    ],
)
def test_work_is_bounded_however_far_from_private(setting, quantity, argument, bounds):
    started = time.process_time()
    found = jaxgdp.measure(jaxgdp.dpsgd(*setting), quantity, **argument)
    assert time.process_time() - started < 5.0
    low, high = found[quantity]
    assert bounds[0] <= low <= high <= bounds[1]
    assert high - low <= 2e-3 * high


# (compositions of few uses, what is asked, and bounds by what the parts are alone: μ of Gaussian
# parts from below, ε at most the sum of largest losses and the ε of the rest; of k Laplace steps
# with 1/b = L the loss is k·L − 2·(a sum of at most k standard exponentials) under Q)
_HARDLY_ANY_NOISE = [
    ([(jaxgdp.Gaussian(1e-150), 1), (jaxgdp.Laplace(1.0), 1)], "mu", {}, (1e150, 1e150)),
    ([(jaxgdp.Gaussian(1e-30), 1), (jaxgdp.Laplace(1.0), 1)], "mu", {}, (1e30, 1e30)),
    (
        [(jaxgdp.Gaussian(1e-8), 3), (jaxgdp.SubsampledGaussian(1.0, 0.01), 100)],
        "mu",
        {},
        (np.sqrt(3.0) * 1e8, np.sqrt(3.0) * 1e8 * (1.0 + 1e-12)),
    ),
    (
        [(jaxgdp.Laplace(1e-7), 3), (jaxgdp.Gaussian(1.0), 1)],
        "epsilon",
        {"delta": 1e-5},
        (3e7 - 2.0 * 40.0, 3e7 + 6.0),
    ),
    ([(jaxgdp.Laplace(1e-6), 2), (jaxgdp.Laplace(1.0), 3)], "tpr", {"fpr": 1e-3}, (1.0, 1.0)),
    (
        [(jaxgdp.DiscreteGaussian(0.05), 2), (jaxgdp.Gaussian(1e-5), 1)],
        "epsilon",
        {"delta": 0.5},
        (0.5e10, 0.5e10 + 1e5),
    ),
]


@pytest.mark.parametrize(("uses", "quantity", "argument", "bounds"), _HARDLY_ANY_NOISE)
def test_few_uses_that_hide_hardly_anything_take_no_lattice(uses, quantity, argument, bounds):
    started = time.thread_time()
    found = jaxgdp.measure(jaxgdp.compose(uses), quantity, **argument)
    assert time.thread_time() - started < 5.0  # (26 s by lattices)
    low, high = found[quantity]
    assert low <= bounds[1] and bounds[0] <= high
    assert low >= bounds[0] * (1.0 - 1e-3) and high <= bounds[1] * (1.0 + 1e-3)
    assert found.status[quantity] == 0


@pytest.mark.parametrize(
    "uses",
    [
        [(jaxgdp.ApproximateDP(1e5, 1e-3), 2), (jaxgdp.Laplace(1.0), 1)],
        [(jaxgdp.FromPMFs([1.0, 0.0], [0.9998, 2e-4]), 266), (jaxgdp.Gaussian(1e-4), 2)],
    ],
)
def test_few_uses_that_may_tell_all_have_an_infinite_epsilon(uses):
    """(the mass at infinity is 2e-3 and 0.05)"""
    found = jaxgdp.measure(jaxgdp.compose(uses), "epsilon", delta=1e-5)
    assert tuple(found.epsilon) == (np.inf, np.inf)
    assert found.status["epsilon"] == 0


def test_hardly_subsampled_runs_are_nearly_those_without_subsampling():
    """(far from private, with the answer known: μ = √T/σ without subsampling)"""
    found = jaxgdp.measure(jaxgdp.dpsgd(2.0, 1.0 - 1e-13, 10**6), "mu").mu
    assert 500.0 * (1 - 2e-3) <= found.lower <= 500.0
    assert found.upper >= 500.0 * (1 - 1e-6)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_gaussian_parts_are_what_is_exactly_gaussian(name):
    # (discrete noise has the cumulants of a Gaussian, and is none; the lower side of a shuffled
    # epoch is of another law)
    row = jax.tree.map(lambda leaf: np.asarray(leaf)[:1], composition(name).stacked())
    with np.errstate(all="ignore"):
        sides = by_moments._Sides(row, 0, 40.0, 64)
    exactly = name in ("Gaussian", "Deterministic")
    assert (sides.above.precision > 0.0) == (sides.below.precision > 0.0) == exactly


# (1 − δ of a δ of 1e-15 lost its digits where thresholds were taken off its log and added again)
DEEP = [
    ((18.647089285647393, 0.003037095913643153, 243312945), 3.1846573007146232e-15),
    pytest.param(
        (0.05124818549663003, 4.23016004574753e-08, 10135909),
        2.0189491908179028e-15,
        marks=pytest.mark.nightly,
    ),
    ((1.0, 1e-4, 20_000_000), 1e-13),
]


@pytest.mark.parametrize(("run", "delta"), DEEP)
def test_small_deltas_agree_with_a_lattice(run, delta):
    lower, upper = _by_moments(jaxgdp.dpsgd(*run), "epsilon", delta, "remove")
    entry = REGISTRY["epsilon"]
    question = Question(1e-3, 1e-10, "remove", ((entry, delta),), deepest=entry.rate(delta))
    groups = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jaxgdp.dpsgd(*run).stacked())
    by_lattice = engine.Engine(groups, question, lambda done: None, 2**20, EAGER).answer()
    below, above = (float(np.squeeze(side)) for side in by_lattice.results["epsilon"])
    assert lower <= above and below <= upper


class _PlainLaw:
    """P- and Q-law of the loss of DP-SGD, by a plain discrete transform that shares no code.

    One use is split among three neighbours on a lattice so that mass, mean and variance stay.
    """

    def __init__(self, sigma, p, steps, number=2**18):
        z = np.linspace(-9.0, 1.0 / sigma + 9.0, 40_001)
        of_p = np.exp(-0.5 * z * z)
        of_p = of_p / np.sum(of_p)
        loss = np.log1p(p * np.expm1(z / sigma - 0.5 / sigma**2))
        of_q = of_p * np.exp(loss)
        jump = loss - np.log1p(-p)
        ends = [
            (steps * np.sum(w * jump), 12.0 * np.sqrt(steps * np.sum(w * jump * jump)))
            for w in (of_p, of_q)
        ]
        low = max(min(mean - far for mean, far in ends), 0.0)
        h = (max(mean + far for mean, far in ends) + 3.0 * jump[-1] - low) / number
        first, nearest = int(low / h), np.rint(jump / h).astype(int)
        s = jump / h - nearest
        shares = (-1, 0.5 * s * (s - 1.0)), (0, 1.0 - s * s), (1, 0.5 * s * (s + 1.0))
        laws = []
        for w in (of_p, of_q / np.sum(of_q)):
            one = sum(np.bincount((nearest + d) % number, w * c, number) for d, c in shares)
            composed = np.fft.irfft(np.exp(steps * np.log(np.fft.rfft(one))), number)
            laws.append(np.roll(composed, -(first % number)))
        self.p, self.q = laws
        self.loss = steps * np.log1p(-p) + h * (first + np.arange(number))

    def order(self, adjacency):
        """Losses, FPR-law and TPR-law of an order, most suspicious first."""
        if adjacency == "remove":
            return self.loss[::-1], self.p[::-1], self.q[::-1]
        return -self.loss, self.q, self.p

    def delta(self, epsilon, adjacency):
        loss, p, q = self.order(adjacency)
        return float(np.sum(np.where(loss > epsilon, q - np.exp(epsilon) * p, 0.0)))

    def tpr(self, fpr, adjacency):
        _, p, q = self.order(adjacency)
        return float(np.interp(fpr, np.cumsum(p), np.cumsum(q)))


def _jumps_and_normal_sums(number, seed):
    """Settings with hardly any jumps, with a few, and with so many that their sum is normal."""
    generator = np.random.default_rng(seed)
    log_uniform = lambda low, high: float(np.exp(generator.uniform(np.log(low), np.log(high))))
    while number:
        steps, sigma = int(log_uniform(1e3, 1e8)), log_uniform(0.3, 3.0)
        spread = np.sqrt(steps * np.expm1(sigma**-2))
        p = log_uniform(1e-8, min(0.1, 4.0 / spread, 1e4 / steps))
        largest = np.log1p(p * np.expm1(9.0 / sigma + 0.5 / sigma**2))
        h, deviation = (24.0 * p * spread + 3.0 * largest) / 2**18, p * spread
        # (so that the transform's lattice does not show, not in the third cumulant either)
        if deviation > 30.0 * h and p * steps * h**2 < 0.01 * deviation**3:
            number -= 1
            yield sigma, p, steps


def _holds_truth(run):
    """Brackets of many numbers by moments, steering left out, against a plain transform."""
    groups = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jaxgdp.dpsgd(*run).stacked())
    law = _PlainLaw(*run)
    asked = [("tpr", fpr) for fpr in (1e-8, 1e-5, 1e-3, 0.02, 0.3)]
    asked += [("delta", epsilon) for epsilon in (0.01, 0.3, 2.0)]
    with np.errstate(all="ignore"):
        reach = limit_plan.Reach(6.4, 5.5)
        curve = by_moments._curve(groups, 0, reach, 1e-3, (1, 1))
        for adjacency in ("remove", "add"):
            for name, at in asked:
                question = Question(1e-3, 1e-10, adjacency, ((REGISTRY[name], at),))
                oriented = closed_forms.oriented(curve, question.adjacency)
                found = closed_forms.read([oriented], question)[name]
                low, high = float(found.lower[0]), float(found.upper[0])
                if name == "tpr" and at < 1e-4:
                    continue  # (too deep for a transform whose roundings do not decay)
                exact = getattr(law, name)(at, adjacency)
                assert low <= exact * 1.01 + 2e-6, (run, name, at, adjacency)
                assert high >= exact * 0.99 - 2e-6, (run, name, at, adjacency)


# (corners above TPR 1 were lowered to it and kept their FPR: the upper side was that of no privacy
# lost at all)
CUT_CORNERS = [
    (0.3474584474124295, 1.2777468634629144e-07, 6712960),
    (0.32837009613659, 2.6466152378387643e-07, 68944),
]


@pytest.mark.parametrize("run", [*CUT_CORNERS, *_jumps_and_normal_sums(8, 35)])
def test_bounds_by_moments_hold_whatever_the_sum_looks_like(run):
    _holds_truth(run)


@pytest.mark.nightly
@pytest.mark.parametrize("run", list(_jumps_and_normal_sums(200, 36)))
def test_bounds_by_moments_hold_at_many_settings(run):
    _holds_truth(run)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "setting, bounds",
    [((0.1, 0.1, 10**4), (280.6, 281.7)), ((0.05, 0.01, 1000), (10.2874, 10.2875))],
)
def test_wide_brackets_of_lattices_are_narrowed(setting, bounds):
    """(lattices alone have [87, 1000] and [10, 632])"""
    started = time.process_time()
    low, high = jaxgdp.measure(jaxgdp.dpsgd(*setting), "mu", executor="eager").mu
    assert time.process_time() - started < 10.0
    assert bounds[0] <= low <= high <= bounds[1]


def test_losses_that_only_rounding_tells_apart_have_moments():
    """Without noise to speak of the loss is that of a binomial number of normal ones."""
    sigma, p, steps = 0.06631497280604327, 0.20308868998162707, 2_093_658
    each = 0.5 / sigma**2 + np.log(p) - np.log1p(-p)
    number = p * steps
    mean = number * each + steps * np.log1p(-p)
    deviation = np.sqrt(number * (1.0 - p) * each**2 + number / sigma**2)
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), "epsilon", delta=6.456e-6)
    assert found.status["epsilon"] == 0
    low, high = found["epsilon"]
    assert mean + 4.0 * deviation < low
    assert high < mean + 4.7 * deviation


def test_jumps_first_say_what_lattices_say():
    """Each order's brackets hold what the other way of asking finds, and the worse of both, too."""
    run, at = jaxgdp.dpsgd(0.1, 0.02, 2500), {"delta": 1e-5, "rtol": 0.01}
    both = jaxgdp.measure(run, "epsilon", **at).epsilon
    one, other = (
        jaxgdp.measure(run, "epsilon", adjacency=order, **at).epsilon for order in ("remove", "add")
    )
    assert max(one.lower, other.lower) <= both.upper and both.lower <= max(one.upper, other.upper)


@pytest.mark.parametrize("rtol, first", [(1e-3, False), (1e-4, True)])
def test_weak_privacy_is_left_to_lattices_at_the_usual_accuracy(rtol, first):
    """Batches of such settings took ten times as long by moments."""
    run = jaxgdp.dpsgd(0.5, [0.3, 0.8], [2000, 1000])
    flat = run.stacked()
    some = np.ones(2, bool)
    found = by_moments.served(flat, some, rtol)
    assert np.all(found.tried == first) and not np.any(found.hopeless)
    far = by_moments.served(jaxgdp.dpsgd([0.05], [0.5], [10**6]).stacked(), some[:1], rtol)
    assert np.all(far.tried & far.hopeless)


def test_long_curves_are_by_moments_first_where_lattices_have_many_tilts():
    """64 of them took fifty times as long, and said less."""
    run = jaxgdp.dpsgd([0.06, 0.5], [0.25, 0.3], [25_000, 2000])
    found = by_moments.served(run.stacked(), np.ones(2, bool), 1e-3)
    assert found.tried.tolist() == found.briefly.tolist() == [True, False]


@pytest.mark.parametrize(
    "sigma, p, steps, name, at",
    first(
        2,
        [
            (25.066, 0.27536, 548_581_612, "approximate_mu", {"approximation": 8.7e-12}),
            (79.6, 0.618, 157_000_000, "mu", {}),
            (22.413, 0.88322, 9_327_551, "approximate_mu", {"approximation": 7.7e-4}),
        ],
    ),
)
def test_mu_that_is_as_large_everywhere_has_as_many_thresholds_as_it_takes(
    sigma, p, steps, name, at
):
    """Long sums that are next to normal, against the limit of many steps."""
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = jaxgdp.measure(run, name, executor="eager", **at)
    assert found.status[name] == 0
    limit = p * np.sqrt(steps * np.expm1(1.0 / sigma**2))
    np.testing.assert_allclose([found[name].lower, found[name].upper], limit, rtol=0.02)


def _mu_of_many(sigma, p, steps, floor):
    """μ of so many steps that rates are those of the tilted sum at its mean: log moments by a
    quadrature, and Mills ratios."""
    x = np.linspace(-12.0 * sigma, 1.0 + 12.0 * sigma, 4001)
    loss = np.logaddexp(np.log1p(-p), np.log(p) + (2.0 * x - 1.0) / (2.0 * sigma**2))
    log_p = norm.logpdf(x, scale=sigma) + np.log(x[1] - x[0])

    def moments(tilt):
        weight = np.exp(log_p + tilt * loss - np.max(log_p + tilt * loss))
        value = np.max(log_p + tilt * loss) + np.log(np.sum(weight))
        mean = weight @ loss / np.sum(weight)
        return steps * np.array([value, mean, weight @ (loss - mean) ** 2 / np.sum(weight)])

    def log_rates(tilt):
        value, mean, variance = moments(tilt)
        mills = np.log(0.5 * erfcx(np.sqrt(0.5 * variance) * np.array([tilt, 1.0 - tilt])))
        return value + mean * np.array([-tilt, 1.0 - tilt]) + mills

    close = 1e-3 / np.sqrt(moments(1.0)[2])
    ends = [
        brentq(lambda tilt, k=k: log_rates(tilt)[k] - np.log(floor), *at)
        for k, at in enumerate([(close, 0.5), (0.5, 1.0 - close)])
    ]
    return max(-np.sum(ndtri_exp(log_rates(tilt))) for tilt in np.linspace(*ends, 201))


@pytest.mark.parametrize(
    ("sigma", "p", "steps", "adjacency"),
    [
        (5.297, 0.7286, 195_000_000, "add"),
        (2.0, 0.95, 30_000_000, "remove"),
        (11.0, 0.35, 900_000_000, "add_remove"),
    ],
)
def test_mu_of_thousands_has_thresholds_where_it_is_largest(sigma, p, steps, adjacency):
    """With what the curves by moments alone take, and beside the limit of many steps."""
    run, begin = jaxgdp.dpsgd(sigma, p, steps), time.process_time()
    found = jaxgdp.measure(run, "mu", adjacency=adjacency, executor="eager")
    assert time.process_time() - begin < 5.0
    assert found.status["mu"] == 0 and found.lattice_size == 0
    exact = _mu_of_many(sigma, p, steps, 1e-10)
    assert found["mu"].lower <= exact * (1.0 + 1e-5)
    assert found["mu"].upper >= exact * (1.0 - 1e-5)


def _largest_of_likelihood_ratios(uses, faint, floor):
    """The largest μ that tests by the likelihood ratio have, of so many uses of a table with
    outcomes of mass ``faint`` and one of Gaussian(1), by enumeration of how many uses show one."""
    gap, count = np.log(0.5 / faint), np.arange(uses + 1.0)
    up, down = count[:, None], count  # uses that show each of both faint differences, under P
    rest = uses - up - down
    ways = gammaln(uses + 1.0) - gammaln(up + 1.0) - gammaln(down + 1.0)
    ways = np.where(rest >= 0.0, ways - gammaln(np.maximum(rest, 0.0) + 1.0), -np.inf)
    log_p = ways + up * np.log(faint) + (uses - up) * np.log(0.5)
    net = np.arange(-uses, uses + 1.0)
    log_p = np.array([logsumexp(log_p[up - down == n]) for n in net])
    at = np.linspace(0.0, 0.6 * uses, 4001)[:, None] * gap
    log_fpr = logsumexp(log_p + norm.logsf(at - net * gap + 0.5), axis=-1)
    log_fnr = logsumexp(log_p + net * gap + norm.logcdf(at - net * gap - 0.5), axis=-1)
    deep = (log_fnr <= np.log(floor)) | (log_fpr >= np.log(floor))
    return np.max(-ndtri_exp(log_fnr[deep]) - ndtri_exp(log_fpr[deep]))


def test_work_of_tables_of_faint_outcomes_beside_noise_is_bounded():
    """(64 tilts of two components took 22 s)"""
    table = jaxgdp.FromPMFs([0.5, 0.5 - 1e-300, 1e-300], [1e-300, 0.5, 0.5 - 1e-300])
    run, begin = jaxgdp.compose([(table, 200), (jaxgdp.Gaussian(1.0), 1)]), time.process_time()
    found = jaxgdp.measure(run, "mu", executor="eager")
    assert time.process_time() - begin < 10.0
    assert found["mu"].upper >= _largest_of_likelihood_ratios(200, 1e-300, 1e-10) * (1.0 - 1e-9)


def test_losses_that_overflow_take_one_small_lattice():
    """(64 tilts, four times, took 50 s)"""
    mechanism, begin = jaxgdp.ThresholdedGaussian(2.8e-199, 1, 7), time.process_time()
    found = jaxgdp.measure(mechanism, "mu", executor="eager")
    assert time.process_time() - begin < 5.0
    # (it shows less than all counts with their noise do, but for a leak)
    assert found["mu"].lower <= np.sqrt(7.0) / 2.8e-199 <= found["mu"].upper


@pytest.mark.parametrize(
    "names, keep, times",
    [
        ({"epsilon": 1e-7}, False, 1),
        ({"delta": 3.0, "advantage": None}, False, 1),
        ({"epsilon": 1e-7, "mu": None}, False, 5),
        ({"epsilon": 1e-7}, True, 5),
    ],
)
def test_finer_curves_have_more_thresholds_where_it_is_unknown_which_ones_tell(names, keep, times):
    own = dataclasses.replace(question(names), keep=keep)
    groups = jaxgdp.dpsgd([30.0], [0.01], [10**7]).stacked()
    curve = by_moments._curve(groups, 0, by_moments._reach(own, ()), 1e-3, (1, 1))
    second = by_moments._finer(by_moments.Look((1, 1)), own, curve)
    assert second.finer == (2, times)
    third = by_moments._finer(second, own, curve)
    assert third.finer == (8, times) and by_moments._finer(third, own, curve) is None


def test_finer_curves_have_more_thresholds_where_the_last_one_did_not_tell(monkeypatch):
    own = question({"epsilon": 1e-7})
    monkeypatch.setattr(by_moments, "_located", lambda curve, asked: ())
    assert by_moments._finer(by_moments.Look((1, 1)), own, None).finer == (2, 5)


@pytest.mark.nightly
def test_epsilon_of_thousands_of_jumps_is_their_quantile_and_takes_seconds():
    sigma, p, steps, delta = 0.0919, 0.0014434, 1682336, 4.42e-9
    start = time.process_time()
    found = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, steps), "epsilon", delta=delta, adjacency="remove", nested=False
    )
    taken = time.process_time() - start
    sides = found.brackets["epsilon"]
    # (a step with the record shows a normal loss of some 53 nats, one without it −p: the quantile
    # of a compound Poisson law by Cornish and Fisher, off by some part in 10⁴)
    mean, variance = 0.5 / sigma**2 + np.log(p), 1.0 / sigma**2
    rate, z = p * steps, norm.isf(delta)
    deviation = np.sqrt(rate * (mean**2 + variance))
    skewness = rate * (mean**3 + 3.0 * mean * variance) / deviation**3
    quantile = rate * mean - rate + deviation * (z + skewness * (z**2 - 1.0) / 6.0)
    assert sides.lower * (1.0 - 5e-4) < quantile < sides.upper * (1.0 + 5e-4)
    assert sides.upper - sides.lower < 3e-3 * sides.upper and taken < 30.0
