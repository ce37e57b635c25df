"""Runs in which the record is hardly ever sampled, against integrals, binomials and lattices."""

import functools
from fractions import Fraction
from math import comb

import jax
import mpmath
import numpy as np
import pytest
from by_day import every_value, first
from scipy.special import erfcx, ndtr

import jaxgdp
from jaxgdp.accounting.certify import closed_forms, seldom_sampled
from jaxgdp.accounting.certify.curve import GaussianParts
from jaxgdp.accounting.certify.seldom_sampled import Focus, Run, curve, laws
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import routes
from jaxgdp.mechanisms.random_allocation import dyadic_sum, pairwise_convolution
from jaxgdp.numerics.errors import NORMAL_TAIL, SELDOM, UNIT
from jaxgdp.quantities.registry import REGISTRY


@functools.cache
def _curve(run, finer, faint, focus=None):
    parts = GaussianParts(np.float64(np.sqrt(run.steps) / run.sigma), np.float64(0.0))
    with np.errstate(all="ignore"):
        return seldom_sampled.both_sides(run, parts, finer, faint, focus)


def _numbers(run, adjacency, asked, finer=1.0, faint=0.0, focus=None):
    """Numbers by the law given the record alone, whatever steering thinks of it."""
    question = Question(1e-3, 1e-10, adjacency, tuple((REGISTRY[n], at) for n, at in asked))
    with np.errstate(all="ignore"):
        oriented = closed_forms.oriented(_curve(run, finer, faint, focus), question.adjacency)
        return closed_forms.read([oriented], question)


def _call(strike, tau):
    """E(V − strike)₊ of V = e^{τz − τ²/2}, with relative accuracy."""
    some = strike > 0.0
    d = -np.log(np.where(some, strike, 1.0)) / tau + 0.5 * tau
    a, b = -d / np.sqrt(2.0), (tau - d) / np.sqrt(2.0)
    far = 0.5 * np.exp(-a * a) * (erfcx(np.maximum(a, 0.0)) - erfcx(np.maximum(b, 0.0)))
    near = ndtr(d) - strike * ndtr(d - tau)
    return np.where(some, np.where(d < 0.0, far, near), 1.0 - strike)


def _put(strike, tau):
    """E(strike − V)₊, with relative accuracy."""
    some = strike > 0.0
    d = -np.log(np.where(some, strike, 1.0)) / tau + 0.5 * tau
    a, b = d / np.sqrt(2.0), (d - tau) / np.sqrt(2.0)
    far = 0.5 * np.exp(-a * a) * (erfcx(np.maximum(b, 0.0)) - erfcx(np.maximum(a, 0.0)))
    near = strike * ndtr(tau - d) - ndtr(-d)
    return np.where(some, np.where(d > tau, far, near), 0.0)


def _two_steps(sigma, p, epsilon, order, nodes):
    """δ of two steps: the second one in closed form, the first by equal steps."""
    tau = 1.0 / sigma
    z = np.linspace(-12.0, tau + 12.0, nodes)
    w = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    first = np.log1p(p * np.expm1(tau * (z - 0.5 * tau)))
    if order == "remove":
        value = np.exp(first) * p * _call(np.expm1(epsilon - first) / p + 1.0, tau)
    else:
        value = np.exp(epsilon + first) * p * _put(np.expm1(-epsilon - first) / p + 1.0, tau)
    return float(w @ value)


# how many points there are, and part of the share of runs with the record that does not matter
_FEWER = ((0.5, 1e-18), (0.25, 0.0), (0.25, 1e-6), (0.125, 1e-2))


def _two_steps_agree(sigma, p):
    run, adjacencies = Run(sigma, p, 2), ("remove", "add")
    share = -np.expm1(-run.log_never)
    for adjacency in adjacencies:
        losses = np.array([0.0, 0.4, 1.5, 4.0]) / sigma
        sign = 1.0 if adjacency == "remove" else -1.0
        # (in the other order the last digits of ε are all that is left of larger losses)
        for epsilon in sign * np.log1p(share * np.expm1(np.minimum(sign * losses, 18.0))):
            exact, rough = (_two_steps(sigma, p, epsilon, adjacency, n) for n in (200_001, 30_001))
            room = 3.0 * abs(exact - rough) + 1e-11 * exact
            low, high = _numbers(run, adjacency, [("delta", float(epsilon))])["delta"]
            assert low[0] <= exact + room and high[0] >= exact - room
            # (rates are logs that differ by a share of π, 1e-9 of which is not told from 0)
            if share > 1e-12:
                least = 1e-10 if exact > 1e-9 * share else 1e-9
                assert high[0] - low[0] <= 2e-3 * exact + least * share + room
            for finer, faint in _FEWER:
                few = [("delta", float(epsilon))], finer, faint * share
                low, high = _numbers(run, adjacency, *few)["delta"]
                assert low[0] <= exact + room and high[0] >= exact - room
            for finer, levels in ((0.375, 1), (0.25, 3)):
                focus = Focus(sign * float(epsilon), 3, levels)
                few = [("delta", float(epsilon))], finer, 0.0, focus
                low, high = _numbers(run, adjacency, *few)["delta"]
                assert low[0] <= exact + room and high[0] >= exact - room


@pytest.mark.parametrize(
    ("sigma", "p"), [(0.3, 1e-6), (7.0, 1e-8), (1.2, 0.3), (40.0, 3e-9), (0.7, 1e-100)]
)
def test_two_steps_by_integration(sigma, p):
    _two_steps_agree(sigma, p)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_two_random_steps_by_integration(seed):
    rng = np.random.default_rng(seed)
    _two_steps_agree(10.0 ** rng.uniform(-0.8, 1.7), 10.0 ** rng.uniform(-9.0, -0.1))


def _log_two_steps(sigma, p, epsilon, order, nodes):
    """log δ of two steps, however small."""
    tau = 1.0 / sigma
    z = np.linspace(-38.0, tau + 38.0, nodes)
    first = np.logaddexp(np.log1p(-p), np.log(p) + tau * (z - 0.5 * tau))
    side, call = (1.0, _call) if order == "remove" else (-1.0, _put)
    strike = np.expm1(np.minimum(side * epsilon - first, 700.0)) / p + 1.0
    log_value = np.log(p) + np.where(side > 0.0, first, epsilon + first)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_value = log_value + np.log(call(strike, tau)) - 0.5 * z * z
    some = np.isfinite(log_value)
    return np.logaddexp.reduce(log_value[some]) + np.log((z[1] - z[0]) / np.sqrt(2.0 * np.pi))


def _deep_tails_agree(sigma, p, depth):
    """δ where a step lies so many standard deviations out, removing a record."""
    run = Run(sigma, p, 2)
    epsilon = float(np.log1p(-np.expm1(-run.log_never) * np.expm1(depth / sigma)))
    exact, rough = (_log_two_steps(sigma, p, epsilon, "remove", n) for n in (60_001, 40_001))
    room, widths = 3.0 * abs(exact - rough) + 1e-10, []
    about = Focus(epsilon, 2), Focus(epsilon, 3, 3)
    for finer, focus in ((1.0, None), (0.25, about[0]), (0.75, about[0]), (0.5, about[1])):
        sides = _numbers(run, "remove", [("delta", epsilon)], finer, 0.0, focus)["delta"]
        with np.errstate(divide="ignore"):  # (a lower side may be 0)
            low, high = (float(np.log(side[0])) for side in sides)
        assert low <= exact + room
        assert exact - room <= high
        widths.append(high - low)
    return exact, widths[0]


@pytest.mark.parametrize(("sigma", "p", "depth"), [(3.3, 2e-4, 25.0), (0.7, 1e-3, 31.0)])
def test_deep_tails_of_two_steps(sigma, p, depth):
    exact, width = _deep_tails_agree(sigma, p, depth)
    assert -600.0 < exact < -250.0
    assert width < 0.6


def test_deepest_tails_of_two_steps():
    exact, width = _deep_tails_agree(3.3, 2e-4, 33.9)
    assert -670.0 < exact < -660.0
    assert width < 0.2


@pytest.mark.parametrize(
    ("sigma", "p", "steps", "epsilon"),
    [(1.47891, 1.0454573e-8, 17165, 6.1621), (3.0, 1e-9, 1000, 1.6e-4), (0.9, 1e-12, 10**6, 12.6)],
)
def test_rates_next_to_the_least_doubles(sigma, p, steps, epsilon):
    """T times δ of one step: two of them hardly ever are large, and all others, whose losses have a
    deviation of 1e-6 at most, move it by less than 1e-6 of itself."""
    found = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, steps), "delta", epsilon=epsilon, adjacency="remove"
    )
    with mpmath.workdps(60):
        s, q, e = map(mpmath.mpf, (sigma, p, epsilon))
        z = s * mpmath.log((mpmath.expm1(e) + q) / q) + 1 / (2 * s)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2
        one = (1 - q) * tail(z) + q * tail(z - 1 / s) - mpmath.exp(e) * tail(z)
        exact = steps * one
        assert 1e-296 < exact < 1e-280
        assert found.delta.lower <= exact * (1 + 1e-6) and exact * (1 - 1e-6) <= found.delta.upper
    assert found.status["delta"] == 0


def test_sums_of_products_that_are_no_doubles_are_off_by_a_least_one_each():
    """Exact fractions: what is off beside the share that is counted is at most a least double for
    each product, which is what is lost of a run of one step.
    """
    rng = np.random.default_rng(0)
    a, b = (10.0 ** rng.uniform(-180.0, -130.0, n) for n in (40, 30))
    found = pairwise_convolution.convolve(a, b, 129)
    least = Fraction(5, 10**324)
    for k in range(len(found)):
        terms = [(i, k - i) for i in range(len(a)) if 0 <= k - i < len(b)]
        exact = sum((Fraction(a[i]) * Fraction(b[j]) for i, j in terms), Fraction(0))
        share = pairwise_convolution.units(40, 129) * Fraction(UNIT)
        assert abs(Fraction(float(found[k])) - exact) <= share * exact + len(terms) * least
    tally = dyadic_sum.Tally(usual=40.0 * 30.0)
    assert not laws._flushed()
    assert laws._lost(Run(1.0, 0.1, 1), tally) >= 40 * 30 * float(least)


def test_more_is_lost_where_least_doubles_are_made_0(monkeypatch):
    usual = laws._lost(Run(1.0, 0.1, 1000), dyadic_sum.Tally())
    monkeypatch.setattr(laws, "_flushed", lambda: True)
    assert laws._lost(Run(1.0, 0.1, 1000), dyadic_sum.Tally()) == pytest.approx(2.0**52 * usual)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_random_deep_tails_of_two_steps(seed):
    rng = np.random.default_rng([7, seed])
    _deep_tails_agree(10.0 ** rng.uniform(-0.5, 1.7), 10.0 ** rng.uniform(-6.0, -0.3), 28.0)


@pytest.mark.parametrize(
    ("run", "finer"),
    [
        (Run(0.4, 1e-5, 1000), 1),
        (Run(3.0, 1e-8, 77), 1),
        (Run(20.0, 1e-7, 10**7), 1),
        (Run(4.5, 1.4e-9, 146335213), 4),
        (Run(1.1, 3e-7, 950_000_001), 1),
        (Run(0.3, 0.04, 10_007), 1),
    ],
)
def test_masses_and_means_add_up(run, finer):
    for law in (laws.dominating(run, finer), laws.attack(run, finer)):
        p, m = np.exp(law.log_p).sum(), np.exp(law.log_m).sum()
        assert abs(p - 1.0) <= law.error
        assert abs(m / np.expm1(run.log_never) - 1.0) <= law.error + law.near
        units = law.error / (UNIT * run.steps)
        # (most roundings cancel of a law that is known to add up to 1; what its computed sum is
        # off by, some tenths of a unit of each step, depends on the CPU's exponentials)
        assert run.steps < 10**8 or units <= 3.3
        assert units <= (850.0 if finer == 1 else 300.0) and law.near <= 1e-8


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [
        (0.09, 0.5, 40),
        (0.3, 0.6, 24),
        pytest.param(0.0723, 2.06e-4, 94858, marks=pytest.mark.nightly),
        pytest.param(0.15, 1e-6, 12 * 10**6, marks=pytest.mark.nightly),
        pytest.param(0.0501, 2.67e-5, 14153329, marks=pytest.mark.nightly),
        pytest.param(0.0801, 0.8, 250, marks=pytest.mark.nightly),
    ],
)
def test_records_that_are_all_but_certainly_sampled(sigma, p, steps):
    """Tests "the largest output is below a place" have rates in closed form, in both orders."""
    run = Run(sigma, p, steps)
    with mpmath.workdps(50):
        tau, q, below = 1 / mpmath.mpf(sigma), mpmath.mpf(p), mpmath.ncdf
        ends = [-mpmath.log1p(-q) * steps]
        for z in map(mpmath.mpf, (0.45 / sigma + 1.5, 0.5 / sigma + 3.0)):
            p_rate = mpmath.exp(steps * mpmath.log1p(-below(-z)))
            q_rate = mpmath.exp(steps * mpmath.log1p(-(1 - q) * below(-z) - q * below(tau - z)))
            found = _numbers(run, "remove", [("beta", float(1 - p_rate))])["beta"]
            assert found[0][0] <= q_rate * (1 + mpmath.mpf(1e-13))
            found = _numbers(run, "add", [("tpr", float(q_rate))])["tpr"]
            assert found[1][0] >= p_rate * (1 - mpmath.mpf(1e-13))
            for delta in (1e-6, 1e-12):
                ends.append(mpmath.log(max(p_rate - delta, q_rate)) - mpmath.log(q_rate))
                found = _numbers(run, "add", [("epsilon", delta)])["epsilon"]
                # (no more than a record that is added ever loses)
                assert found[0][0] <= ends[0] * (1 + 1e-15)
                assert found[1][0] >= ends[-1]
                assert found[0][0] <= found[1][0]


def test_masses_of_one_step_are_as_exact_as_stated():
    rng, most = np.random.default_rng(5), []
    for _ in range(40):
        tau, z = 10.0 ** rng.uniform(-2.0, 1.5), rng.uniform(-26.0, 36.0)
        width = rng.uniform(0.02, 1.0) * min(9.0 / (abs(z) + tau), 4.0)
        ends = np.array([z, z + width])
        cells = laws._cells(Run(1.0 / tau, 1e-6, 3), ends)
        if (cells.first, cells.last) != (0, 1):
            continue
        for moved in (0.0, tau if z - tau > -36.0 else 0.0):
            found = float(np.sum(cells.density(moved=moved)))
            with mpmath.workdps(60):
                a, b = ((mpmath.mpf(float(end)) - moved) / mpmath.sqrt(2) for end in ends)
                exact = (mpmath.erfc(a) - mpmath.erfc(b)) / 2
                if a < 0:
                    exact = (mpmath.erfc(-b) - mpmath.erfc(-a)) / 2
                most.append(float(abs(found / exact - 1)) / UNIT)
    # (two exponents, of up to 10 and 10, and the sum of nodes)
    assert len(most) >= 40
    assert max(most) <= 0.5 * (SELDOM[0] * 20.0 + SELDOM[1])


@pytest.mark.parametrize("finer", [0.25, 2.0])
def test_masses_are_the_same_however_many_cells_are_worked_on_at_once(finer, monkeypatch):
    run, both = Run(0.8, 1e-3, 3), (laws.dominating, laws.attack)
    whole = [law(run, finer) for law in both]
    monkeypatch.setattr(laws, "_TOGETHER", 100)
    for law, one in zip(both, whole, strict=True):
        for part, of_whole in zip(law(run, finer), one, strict=True):
            np.testing.assert_array_equal(part, of_whole)


def test_tails_of_one_step_are_as_exact_as_stated():
    rng = np.random.default_rng(6)
    with mpmath.workdps(60):
        for _ in range(200):
            z, moved = (
                rng.uniform(-3.0, 37.0),
                rng.choice([0.0, -1.0, 1.0]) * rng.uniform(0.0, 33.0),
            )
            if z - moved > 37.5:
                continue
            exact = mpmath.erfc((mpmath.mpf(z) - moved) / mpmath.sqrt(2)) / 2
            assert abs(laws._tail(z, moved) / exact - 1) <= 0.5 * NORMAL_TAIL * UNIT
            # exponents are those of a sum of two numbers
            part = z * z / 2.0 - rng.uniform(0.0, 30.0)
            exact = mpmath.exp(mpmath.mpf(part) - mpmath.mpf(z) ** 2 / 2)
            assert abs(float(laws._normal(np.array(z), 0.0, part)) / exact - 1) <= 8.0 * UNIT


def test_no_more_jumps_than_are_counted():
    for run in (Run(1.0, 0.01, 200), Run(1.0, 0.5, 60), Run(1.0, 1e-9, 50)):
        p, number = Fraction(run.p), run.steps
        most = laws.most_jumps(run)
        likely = [comb(number, j) * p**j * (1 - p) ** (number - j) for j in range(most + 1)]
        share = 1 - likely[0]
        assert 1 - sum(likely) <= share * Fraction(1, 10**290)


def test_share_of_each_jump_in_all_sets_is_no_more_than_stated():
    for run in (Run(1.0, 0.01, 200), Run(1.0, 0.5, 60), Run(1.0, 1e-9, 50)):
        p, number, each = Fraction(run.p), run.steps, Fraction(1, 10**8)
        likely = [comb(number, j) * p**j * (1 - p) ** (number - j) for j in range(number + 1)]
        more = [(1 + each) ** j - 1 for j in range(number + 1)]
        exact = sum(a * b for a, b in zip(likely, more, strict=True)) / (1 - likely[0])
        _, _, most = laws._apart(run, 1e-6, 1e-8)
        assert exact <= most <= 1.03 * float(exact)
    assert laws._apart(run, 0.1, 1e-8)[2] == np.inf


def test_records_that_change_next_to_nothing_are_known_to_many_digits():
    """Their advantage is a hundred thousandth of the rates that it is the difference of."""
    run = Run(42.1122045974221, 7.258281658776215e-9, 4096)
    found = (_numbers(run, "add", [("advantage", None)], k)["advantage"] for k in (2, 8))
    ends = [[float(side[0]) for side in bracket] for bracket in found]
    (low, high), (lower, upper) = ends
    assert low <= lower <= upper <= high
    assert upper - lower <= 5e-6 * upper


@pytest.mark.parametrize(
    ("run", "adjacency"),
    [
        (Run(0.6, 0.01, 200), "add_remove"),
        *(
            pytest.param(run, adjacency, marks=pytest.mark.nightly)
            for run in (Run(1.0, 1e-3, 1000), Run(5.0, 1e-4, 10**4), Run(0.5, 0.2, 120))
            for adjacency in ("remove", "add", "add_remove")
        ),
    ],
)
def test_runs_that_lattices_know_are_within_both(run, adjacency):
    asked = [("mu", None), ("advantage", None), ("epsilon", 1e-7), ("delta", 0.01), ("tpr", 0.01)]
    asked += [("beta", 0.2), ("bayes_risk", 0.4), ("regret", None), ("approximate_mu", 1e-6)]
    own = _numbers(run, adjacency, asked)
    setting = jaxgdp.dpsgd(run.sigma, run.p, run.steps)
    for name, at in asked:
        given = {} if at is None else {REGISTRY[name].argument: at}
        other = jaxgdp.measure(setting, name, adjacency=adjacency, **given).brackets[name]
        low, high = (float(side[0]) for side in own[name])
        assert low <= other.upper and other.lower <= high
        # (a lattice has more of a small δ, and of a regret)
        if name not in ("regret", "delta"):
            if name == "beta" and high < 1e-6:  # far out, where usual points leave a little more
                finer = _numbers(run, adjacency, [(name, at)], 2.0)[name]
                assert low <= finer.lower[0] <= finer.upper[0] <= high
                low, high = (float(side[0]) for side in finer)
            assert high - low <= 2e-3 * high, name


@pytest.mark.parametrize(
    ("run", "adjacency"),
    every_value((Run(0.3, 1e-3, 77), Run(8.0, 1e-6, 3001), Run(0.09, 0.02, 12)), ("remove", "add")),
)
def test_fewer_points_and_less_depth_leave_wider_brackets_of_the_same(run, adjacency):
    asked = [("mu", None), ("epsilon", 1e-8), ("delta", 1e-4), ("tpr", 1e-6), ("beta", 0.1)]
    fine = _numbers(run, adjacency, asked, 2.0)
    share = -np.expm1(-run.log_never)
    for finer, faint in ((0.5, 1e-22), *_FEWER):
        found = _numbers(run, adjacency, asked, finer, faint * share)
        for name, _ in asked:
            low, high = (float(side[0]) for side in found[name])
            assert low <= fine[name].upper[0] and high >= fine[name].lower[0]
            # (as deep as is asked few points are enough; how deep a δ is, is not known)
            if (finer, faint) == (0.5, 1e-22) and name != "delta":
                assert high - low <= 5e-3 * high


# (quantity, σ, p, T, order, what it is asked at) of runs whose brackets were wide
_WIDE = [
    ("mu", 0.315, 7.25e-7, 3, "add", {}),
    ("mu", 0.3445, 1.43e-9, 59942, "add_remove", {}),
    ("mu", 64.2, 1.63e-9, 24520648, "remove", {}),
    ("mu", 7.1, 1.3e-8, 248, "add", {}),
    ("approximate_mu", 0.365, 0.0213, 7, "add", {"approximation": 3.75e-12}),
    ("approximate_mu", 0.199, 4.24e-7, 1844579, "remove", {"approximation": 2.68e-9}),
    ("approximate_mu", 0.077, 7e-8, 90, "add", {"approximation": 5.9e-15}),
    # (one side of which few steps with the record say, the other one more points)
    ("mu", 0.05685, 3.749e-5, 11580279, "remove", {}),
    ("mu", 0.061724, 1.6627e-4, 362042, "remove", {}),
]


@pytest.mark.parametrize(
    ("name", "sigma", "p", "steps", "adjacency", "at"),
    [
        *_WIDE[2:5],
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in _WIDE[:2] + _WIDE[4:]),
    ],
)
def test_runs_that_lattices_left_wide_are_narrow(name, sigma, p, steps, adjacency, at):
    asked = {"adjacency": adjacency, **at}
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), name, **asked)
    assert found.status[name] == 0
    # less noise shows more
    more = jaxgdp.measure(jaxgdp.dpsgd(0.97 * sigma, p, steps), name, **asked).brackets[name]
    assert found.brackets[name].lower <= more.upper
    assert found.brackets[name].upper <= more.upper * (1.0 + 1e-3)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        (Run(0.819, 2.48e-8, 2), 23.4),  # δ of 3e-246
        (Run(2.31, 6.86e-7, 643), 0.702),  # of 7e-238
        (Run(0.607, 0.000885, 1543), 46.3),  # of 5e-90, by several large steps
        (Run(1.03, 3.01e-9, 9963601), 5.43),  # of 6e-146
        (Run(1.24, 7.03e-8, 295526636), 0.26),  # of 1e-76, about a mean
    ],
)
def test_points_about_a_loss_narrow_what_is_read_off_there(run, epsilon):
    asked = [("delta", epsilon)]
    low, high = (float(side[0]) for side in _numbers(run, "remove", asked)["delta"])
    for octaves, levels in ((2, 1), (2, 3)):
        focus = Focus(epsilon, octaves, levels)
        found = _numbers(run, "remove", asked, focus=focus)["delta"]
        inner, outer = float(found.lower[0]), float(found.upper[0])
        # brackets on different points hold the same number, this one at most at a third of the
        # width
        assert max(low, inner) <= min(high, outer)
        assert 0.0 < outer - inner <= (high - low) / 2.0
        if levels == 3:
            assert outer - inner <= (high - low) / 3.0


def test_products_of_sums_are_counted_where_they_are_taken():
    run, parts = Run(0.6, 1e-3, 100), GaussianParts(np.float64(20.0), np.float64(0.0))
    with np.errstate(all="ignore"):
        plain, few, many = (
            seldom_sampled.counted(run, parts, 0.25, 0.0, focus)[1]
            for focus in (None, Focus(3.0, 3), Focus(3.0, 4))
        )
    assert plain.usual > 0.0 and plain.finer == 0.0
    # four times as many on levels of twice as many points; those elsewhere are no more than before
    assert 3.0 * few.finer <= many.finer <= 5.0 * few.finer
    assert max(few.usual, many.usual) <= plain.usual


@pytest.mark.parametrize(
    ("sigma", "p", "steps"), first(1, [(18.89, 1.967e-9, 11527830), (22.2, 8.32e-8, 40068039)])
)
def test_many_million_steps_are_as_accurate_as_asked(sigma, p, steps):
    run = jaxgdp.dpsgd(sigma, p, steps)
    assert jaxgdp.measure(run, "mu", rtol=1e-5, executor="eager").status["mu"] == 0


def test_kept_curves_of_seldom_sampled_records_agree():
    run = jaxgdp.dpsgd(1.4, 4.6e-8, 171)
    curve = jaxgdp.tradeoff(run)
    for name, at in (("mu", None), ("advantage", None), ("tpr", 1e-3)):
        given = {} if at is None else {REGISTRY[name].argument: at}
        number = jaxgdp.measure(run, name, **given).brackets[name]
        kept = curve.quantity(name, at)
        assert kept.lower <= number.upper and number.lower <= kept.upper
        assert kept.upper - kept.lower <= 2.0 * (number.upper - number.lower)


@pytest.mark.parametrize("run", [(1.0, 1e-3, 5000), (2.03, 0.00469, 103)])
def test_whole_curves_of_rare_steps_take_no_lattice(run):
    run = jaxgdp.dpsgd(*run)
    groups = jax.tree.map(lambda a: np.asarray(a)[None], run.stacked())
    question = Question(1e-3, 1e-10, "add_remove", (), 1e-300, keep=True)
    assert routes.answer(groups, question).sizes[0] == 0
    curve = jaxgdp.tradeoff(run)
    asked = {"mu": {}, "advantage": {}, "epsilon": {"delta": 1e-60}, "delta": {"epsilon": 0.1}}
    for name, at in asked.items():
        # (numbers alone are read off lattices)
        found, other = getattr(curve, name)(**at), jaxgdp.measure(run, name, **at)[name]
        assert found.lower <= other.upper and other.lower <= found.upper, name
        assert found.upper <= found.lower * (1.0 + 1.1e-3), name


@pytest.mark.parametrize(
    ("p", "steps"), [(3.0e-9, 38), (2.6e-6, 1_219_676), (1e-4, 20), (0.01, 900), (0.3, 2)]
)
def test_rates_of_the_mixture_are_off_by_what_they_are_moved(p, steps):
    """log((1 − π)·e^b + π·e^r) of random logs b and r, near each other and far, in 60 digits."""
    run, rng = Run(1.0, p, steps), np.random.default_rng(steps)
    base = -np.exp(rng.uniform(np.log(1e-14), np.log(600.0), 300))
    apart = rng.choice([-1.0, 1.0], 300) * np.exp(rng.uniform(np.log(1e-14), np.log(50.0), 300))
    other = np.minimum(base + apart, 0.0)
    share = float(np.log(-np.expm1(-run.log_never))), run.log_never
    low, high = (curve._near(*share, base, other, side) for side in (-1.0, 1.0))
    with mpmath.workdps(60):
        never = (1 - mpmath.mpf(p)) ** steps
        each = zip(low.tolist(), high.tolist(), base.tolist(), other.tolist(), strict=True)
        for below, above, b, r in each:
            exact = mpmath.log(never * mpmath.exp(b) + (1 - never) * mpmath.exp(r))
            assert below <= exact <= above
            assert above - below <= 40.0 * UNIT * (1.0 + abs(b) + abs(r))
            if abs(r - b) < 0.9 and 1 - never < 1e-6:
                # (little more than five units of the log itself either way)
                assert above - below <= UNIT * (12.0 * abs(b) + 1e-3)
