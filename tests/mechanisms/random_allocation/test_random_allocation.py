"""Random allocation against closed forms, quadrature, published numbers and simulation."""

import dataclasses
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from by_day import first
from scipy.special import ndtr

import jaxgdp
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.mechanisms.random_allocation import dyadic_sum, label_attack, one_of_many
from jaxgdp.mechanisms.random_allocation.pairwise_convolution import convolve, units
from jaxgdp.numerics.errors import ALLOCATION, UNIT


def _delta(table, epsilon, direction):
    """δ(ε) of a table as it stands."""
    gain, rest = (table.q, table.p) if direction == "remove" else (table.p, table.q)
    return np.maximum(gain - math.exp(epsilon) * rest, 0.0).sum() + (
        table.q_plus if direction == "remove" else table.p_minus
    )


def _measured(mechanism, quantity, **asked):
    found = jaxgdp.measure(mechanism, quantity, **asked)
    return found.brackets[quantity]


# σ, t, δ, ε of removing, ε of adding: by a grid uniform in U with 2²¹ points and a second one
# geometric in V, to six digits
PUBLISHED = [
    (1.0, 1000, 1e-5, 0.138847, 0.126294),
    (0.8, 1000, 1e-5, 0.283583, 0.184927),
    (1.0, 100, 1e-5, 0.620940, 0.421953),
    (2.0, 100, 1e-6, 0.204930, 0.200679),
]


@pytest.mark.parametrize(("sigma", "steps", "delta", "remove", "add"), PUBLISHED)
def test_published_epsilons(sigma, steps, delta, remove, add):
    mechanism = jaxgdp.RandomAllocation(sigma, steps)
    for adjacency, exact in (("remove", remove), ("add", add)):
        found = _measured(mechanism, "epsilon", delta=delta, adjacency=adjacency)
        assert found.lower <= exact + 5e-7 and found.upper >= exact - 5e-7
        assert found.upper - found.lower <= 1e-3 * found.upper


def test_mu_and_advantage_are_as_narrow_as_promised():
    mechanism = jaxgdp.RandomAllocation([1.0, 3.0, 0.5], [100, 10_000, 2276])
    found = jaxgdp.measure(mechanism, ("mu", "advantage"))
    for bracket in found.brackets.values():
        assert np.all(bracket.lower > 0.0)
        assert np.all(bracket.upper - bracket.lower <= 1e-3 * bracket.upper)


def test_million_steps_of_much_noise():
    # E(U − 1)₊ of a mean of t independent V: half of E|U − 1|, within E|V − 1|³/(variance·t) of
    # that of a normal law (Goldstein 2010, in the distance of functions of slope one)
    sigma = np.array([3.0, 10.0, 50.0])
    steps, variance = 1e6, np.expm1(sigma**-2.0)
    z = np.linspace(-12.0, 14.0, 200_001)
    third = [
        np.trapezoid(np.abs(np.expm1(z / s - 0.5 / s**2)) ** 3 * np.exp(-0.5 * z * z), z)
        for s in sigma
    ]
    off = 0.5 * np.array(third) / math.sqrt(2.0 * math.pi) / (variance * steps)
    normal = np.sqrt(variance / (2.0 * math.pi * steps))
    lower, upper = _measured(jaxgdp.RandomAllocation(sigma, steps), "advantage")
    assert np.all(lower <= normal + off) and np.all(upper >= normal - off)
    assert np.all(upper - lower <= 1e-3 * lower)


@pytest.mark.parametrize("floor", [1e-6, 1e-15, 1e-20])
def test_mu_is_as_narrow_at_other_floors(floor):
    # one tilt does not serve a log-normal's far end and its middle together
    alone = jaxgdp.measure(jaxgdp.RandomAllocation(0.5, 2276), "mu", fpr_floor=floor).brackets["mu"]
    assert 0.0 < alone.upper - alone.lower <= 1e-3 * alone.upper


def _call(forward, strike, sigma):
    """E(V·forward − strike)₊ for log-normal V with mean 1, and the intrinsic value for strikes
    below 0 (Black 1976).
    """
    positive = strike > 0.0
    k = np.where(positive, strike, 1.0)
    d = sigma * np.log(forward / k) + 0.5 / sigma
    inside = forward * ndtr(d) - k * ndtr(d - 1.0 / sigma)
    return np.where(positive, inside, forward - strike)


def _quadrature(sigma, steps, epsilon, nodes):
    """(δ of removing, δ of adding): the last step in closed form, the others by Gauss–Hermite
    rules, each multiset of nodes once.
    """
    if steps == 2:
        # smooth, but not analytic where the other step alone reaches the strike: equal steps
        z = np.linspace(-11.0, 13.0, nodes)
        w = (z[1] - z[0]) * np.exp(-0.5 * z * z)
    else:
        z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / math.sqrt(2.0 * math.pi)
    v = np.exp(z / sigma - 0.5 / sigma**2)
    chosen = np.array(list(itertools.combinations_with_replacement(range(nodes), steps - 1)))
    others, weight = v[chosen].sum(axis=1), w[chosen].prod(axis=1)
    ways = np.full(len(chosen), math.factorial(steps - 1), float)
    run = np.ones(len(chosen))
    for i in range(1, steps - 1):
        run = np.where(chosen[:, i] == chosen[:, i - 1], run + 1.0, 1.0)
        ways /= run
    weight = weight * ways
    remove = float(weight @ _call(1.0, steps * math.exp(epsilon) - others, sigma)) / steps
    # E(1 − e^ε·U)₊ = E(e^ε·U − 1)₊ + 1 − e^ε
    add = (
        math.exp(epsilon)
        * float(weight @ _call(1.0, steps * math.exp(-epsilon) - others, sigma))
        / steps
    )
    return remove, add + 1.0 - math.exp(epsilon)


@pytest.mark.parametrize(
    ("sigma", "steps", "nodes"),
    [(1.0, 2, 100_000), (0.7, 2, 100_000), (1.5, 3, 120), (2.0, 4, 60), (3.0, 5, 40), (2.0, 6, 26)],
)
def test_exact_quadrature_of_few_steps(sigma, steps, nodes):
    above, below = (
        one_of_many.dominating_table(sigma, steps),
        one_of_many.attack_table(sigma, steps),
    )
    for epsilon in (0.0, 0.1, 0.3):
        exact, rough = (
            _quadrature(sigma, steps, epsilon, nodes),
            _quadrature(sigma, steps, epsilon, nodes - 6),
        )
        for direction, value, other in zip(("remove", "add"), exact, rough, strict=True):
            error = abs(value - other) + 1e-13
            assert error < 2e-4 * value
            low, high = _delta(below, epsilon, direction), _delta(above, epsilon, direction)
            assert low <= value + error and high >= value - error
            assert high - low <= 1e-3 * value


def _simulated(sigma, steps, epsilon, rng, draws=30_000):
    """δ of removing and of adding with standard errors, by draws with the record."""
    z = rng.standard_normal((draws, steps))
    z[:, 0] += 1.0 / sigma
    ratio = np.exp(z / sigma - 0.5 / sigma**2).mean(axis=1)
    remove = np.maximum(1.0 - math.exp(epsilon) / ratio, 0.0)
    add = np.maximum(1.0 / ratio - math.exp(epsilon), 0.0)
    return [(x.mean(), x.std() / math.sqrt(draws)) for x in (remove, add)]


@pytest.mark.parametrize("sigma", first(4, [0.3, 0.7, 1.5, 10.0, 0.5, 1.0, 3.0]))
def test_simulation(sigma):
    rng = np.random.default_rng(7)
    for steps in (4, 100) if sigma < 0.5 else (4, 21, 100):
        above, below = (
            one_of_many.dominating_table(sigma, steps),
            one_of_many.attack_table(sigma, steps),
        )
        for epsilon in (0.0, 0.5 / (sigma * math.sqrt(steps))):
            found = _simulated(sigma, steps, epsilon, rng)
            for direction, (mean, error) in zip(("remove", "add"), found, strict=True):
                assert _delta(below, epsilon, direction) <= mean + 5.0 * error
                assert _delta(above, epsilon, direction) >= mean - 5.0 * error


def test_single_batch_is_the_gaussian_mechanism():
    found = _measured(jaxgdp.RandomAllocation(2.0, 1), "mu")
    assert found.lower == pytest.approx(0.5, rel=1e-12) and found.upper == pytest.approx(
        0.5, rel=1e-12
    )
    all_of_four = _measured(jaxgdp.RandomAllocation(2.0, 4, 4), "mu")
    assert all_of_four.lower == pytest.approx(
        1.0, rel=1e-12
    ) and all_of_four.upper == pytest.approx(1.0, rel=1e-12)


def test_tables_of_one_step_bracket_the_gaussian_mechanism():
    for sigma in (0.3, 1.0, 8.0):
        above, below = one_of_many.dominating_table(sigma, 1), one_of_many.attack_table(sigma, 1)
        for epsilon in (0.0, 0.5 / sigma, 3.0 / sigma):
            exact = float(jaxgdp.gdp.delta(epsilon=epsilon, mu=1.0 / sigma))
            for direction in ("remove", "add"):
                assert (
                    _delta(below, epsilon, direction) <= exact <= _delta(above, epsilon, direction)
                )


@pytest.mark.parametrize(("sigma", "steps"), [(0.2, 1), (0.2, 3), (50.0, 1), (50.0, 10), (5.0, 30)])
def test_tables_are_as_narrow_at_the_ends_of_the_range(sigma, steps):
    above, below = (
        one_of_many.dominating_table(sigma, steps),
        one_of_many.attack_table(sigma, steps),
    )
    for epsilon in (0.0, 0.3 / (sigma * math.sqrt(steps))):
        for direction in ("remove", "add"):
            low, high = _delta(below, epsilon, direction), _delta(above, epsilon, direction)
            assert 0.0 < low <= high <= (1.0 + 1e-3) * low


def test_points_of_a_layout_are_where_values_are_placed():
    for layout in (
        dyadic_sum.Layout(0.0, -8, 8, 64),
        dyadic_sum.Layout(3.0, -4, 16, 32),
        dyadic_sum.Layout(0.0, -300, 4, 8),
        dyadic_sum.Layout(0.0, -8, 8, 16, fine=-2, octaves=3),
        dyadic_sum.Layout(2.0, -6, 4, 16, fine=-6, octaves=2, levels=3),
        dyadic_sum.Layout(0.0, -5, 4, 8, fine=-6, octaves=4, levels=2),
        dyadic_sum.Layout(0.0, -5, 6, 12, fine=-6, octaves=4, levels=2),
        dyadic_sum.Layout(21 / 32, -7, 12, 24, fine=-1, octaves=2, unit=21 / 32),
    ):
        values = layout.between(layout.centre, layout.centre + 1e9)
        level, index, part = layout.locate(values)
        assert np.all(part == 0.0) and np.all(np.diff(values) > 0.0)
        distance = layout.unit * np.ldexp(index.astype(float), level)
        assert np.all(layout.centre + distance == values)
        # each level has no more points than a law has room for
        reach = layout.frame.reach(layout.frame.rank(level))
        assert np.all(np.abs(index) <= reach)


def test_level_of_a_distance_is_the_first_that_reaches_farther():
    for octave in (1, 3, 4, 6, 8, 12, 256, 384):
        for end in (1.0, octave, 2 * octave, 2.0**-70 * octave, 1.2345, 7e100):
            for distance in (end, np.nextafter(end, 0.0), np.nextafter(end, np.inf)):
                level = int(dyadic_sum.level_of(-distance, octave))
                assert Fraction(distance) < 2 * octave * Fraction(2) ** level
                assert Fraction(distance) >= octave * Fraction(2) ** level


@pytest.mark.parametrize("adjacency", ["remove", "add", "add_remove"])
def test_epoch_read_off_its_tables_is_within_what_a_lattice_finds(adjacency, monkeypatch):
    epoch = jaxgdp.RandomAllocation(1.3, 40)
    names = ("mu", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk")
    asked = {"delta": 1e-6, "epsilon": 0.4, "fpr": 1e-4, "prior": 0.3, "adjacency": adjacency}
    read = jaxgdp.measure(epoch, names, **asked)
    assert read.lattice_size == 0
    curve = jaxgdp.tradeoff(epoch, adjacency=adjacency)
    monkeypatch.setattr(closed_forms, "find", lambda groups: [None])
    other = jaxgdp.measure(epoch, names, **asked)
    assert other.lattice_size > 0
    for name in names:
        mine, theirs = read.brackets[name], other.brackets[name]
        assert mine.lower <= theirs.upper and theirs.lower <= mine.upper
        assert mine.upper - mine.lower <= 1.05 * (theirs.upper - theirs.lower) + 1e-9
        kept = curve.quantity(
            name,
            {"epsilon": 1e-6, "delta": 0.4, "tpr": 1e-4, "beta": 1e-4, "bayes_risk": 0.3}.get(name),
        )
        assert kept.lower == pytest.approx(float(mine.lower), rel=1e-9)
        assert kept.upper == pytest.approx(float(mine.upper), rel=1e-9)


def test_epoch_beside_settings_of_other_kinds_is_what_it_is_alone():
    mixed = jaxgdp.measure(
        jaxgdp.RandomAllocation(2.0, 12, np.array([1.0, 3.0])), "mu", rtol=1e-2
    ).brackets["mu"]
    alone = _measured(jaxgdp.RandomAllocation(2.0, 12), "mu", rtol=1e-2)
    assert (mixed.lower[0], mixed.upper[0]) == (alone.lower, alone.upper)


def test_deep_tails_of_removing_are_those_of_one_large_step():
    # for U far above its body, δ(ε) ≥ E((V − 1 + 1)/t + … − e^ε)₊ with the other steps at their
    # mean (Jensen), a closed form
    sigma, steps = 1.0, 1000
    above, below = (
        one_of_many.dominating_table(sigma, steps),
        one_of_many.attack_table(sigma, steps),
    )
    for epsilon in (1.0, 1.5):
        jensen = float(_call(1.0, steps * math.exp(epsilon) - (steps - 1.0), sigma))
        assert jensen < 1e-12
        low, high = _delta(below, epsilon, "remove"), _delta(above, epsilon, "remove")
        assert jensen <= high and high <= 1.01 * low
        assert low >= 0.5 * jensen and high <= 3.0 * jensen


def _ratio(v, selected):
    """Likelihood ratio of k of t: the elementary symmetric mean of the steps' own ratios, draws
    along the first axis.
    """
    steps = v.shape[1]
    e = np.zeros((len(v), selected + 1))
    e[:, 0] = 1.0
    for i in range(steps):
        # e_j(V_1 … V_{i+1})/C(i + 1, j), so that nothing overflows
        j = np.arange(1, selected + 1)
        e[:, 1:] = (
            e[:, 1:] * np.maximum(1.0 - j / (i + 1.0), 0.0)
            + e[:, :-1] * (j / (i + 1.0)) * v[:, i : i + 1]
        )
    return e[:, selected]


@pytest.mark.parametrize(
    ("sigma", "steps", "selected"),
    first(2, [(2.0, 20, 4), (0.7, 9, 8), (1.0, 11, 3), (4.0, 100, 30)]),
)
def test_several_of_many_against_simulation_of_the_exact_ratio(sigma, steps, selected):
    rng = np.random.default_rng(11)
    z = rng.standard_normal((40_000, steps))
    z[:, :selected] += 1.0 / sigma
    ratio = _ratio(np.exp(z / sigma - 0.5 / sigma**2), selected)
    mechanism = jaxgdp.RandomAllocation(sigma, steps, selected)
    for adjacency, gain in (("remove", 1.0 - 1.5 / ratio), ("add", 1.0 / ratio - 1.5)):
        gain = np.maximum(gain, 0.0)
        mean, error = gain.mean(), 5.0 * gain.std() / math.sqrt(len(gain))
        found = _measured(mechanism, "delta", epsilon=math.log(1.5), adjacency=adjacency, rtol=1e-2)
        assert found.lower <= mean + error and found.upper >= mean - error
        assert found.lower > 0.8 * mean


def test_width_of_several_of_many():
    found = _measured(
        jaxgdp.RandomAllocation(2.0, 100, 10), "epsilon", delta=1e-6, adjacency="remove"
    )
    # an attack and an upper bound computed elsewhere
    assert found.lower <= 2.4265 and found.upper >= 2.4031
    assert found.upper - found.lower <= 0.02 * found.upper


def test_attack_by_labels_is_no_better_than_the_exact_law_of_one_of_many():
    pair, above = label_attack.attack_table(1.0, 60, 1), one_of_many.dominating_table(1.0, 60)
    below = one_of_many.attack_table(1.0, 60)
    for epsilon in (0.0, 0.2):
        for direction in ("remove", "add"):
            found = _delta(pair, epsilon, direction)
            assert found <= _delta(above, epsilon, direction) * (1.0 + 1e-9)
            assert found >= 0.99 * _delta(below, epsilon, direction)


def test_selected_steps_show_more_if_they_are_more():
    found = _measured(jaxgdp.RandomAllocation(3.0, 12, np.array([1.0, 3.0, 12.0])), "mu", rtol=1e-2)
    assert np.all(np.diff(found.lower) > 0.0) and np.all(np.diff(found.upper) > 0.0)
    assert found.upper[-1] == pytest.approx(math.sqrt(12.0) / 3.0, rel=1e-3)


def test_sides_fall_with_noise_and_steps():
    noise, steps = np.array([0.7, 1.0, 2.0]), np.array([5.0, 60.0])
    found = _measured(jaxgdp.RandomAllocation(noise[:, None], steps), "advantage", rtol=1e-3)
    for side in (found.lower, found.upper):
        assert np.all(np.diff(side, axis=0) < 0.0) and np.all(np.diff(side, axis=1) < 0.0)


def test_epochs_compose_and_mix_with_poisson_sampling():
    epoch = jaxgdp.RandomAllocation(2.0, 20)
    once = _measured(epoch, "mu")
    twice = _measured(jaxgdp.compose([(epoch, 2)]), "mu")
    mixed = _measured(
        jaxgdp.compose([(epoch, 2), (jaxgdp.SubsampledGaussian(2.0, 0.05), 20)]), "mu"
    )
    assert once.upper < twice.lower < twice.upper < mixed.lower
    assert twice.upper - twice.lower <= 2e-3 * twice.upper
    # advantage of two epochs by simulation
    rng = np.random.default_rng(3)
    z = rng.standard_normal((100_000, 2, 20))
    z[:, :, 0] += 0.5
    ratio = np.exp(z / 2.0 - 0.125).mean(axis=2).prod(axis=1)
    gain = np.maximum(1.0 - 1.0 / ratio, 0.0)
    found = _measured(jaxgdp.compose([(epoch, 2)]), "advantage")
    error = 5.0 * gain.std() / math.sqrt(len(gain))
    assert found.lower <= gain.mean() + error and found.upper >= gain.mean() - error


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0.0, 10), "noise_multiplier"),
        ((0.01, 10), "noise_multiplier"),
        ((0.19, 10), "noise_multiplier"),
        ((1.0, 10.5), "num_steps"),
        ((1.0, 0), "num_steps"),
        ((1.0, 10**8), "num_steps"),
        ((1.0, 10, 11), "num_selected"),
        ((1.0, 10, 1.5), "num_selected"),
        ((1.0, [10, 20], [5, 30]), "num_selected"),
        (([1.0, 2.0], [10, 20, 30]), "shapes"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.RandomAllocation(*arguments)


def test_unknown_pairs_are_refused_by_name():
    with pytest.raises(ValueError, match="RandomAllocation"):
        jaxgdp.measure(jaxgdp.RandomAllocation(1.0, 10), "mu", adjacency="replace_one")


def _law(rng, layout, low, high, number, sets=1):
    values = rng.uniform(low, high, number)
    return dyadic_sum.spread(
        layout, values, rng.uniform(0.1, 1.0, (sets, number)), 0.0, 0.0
    ), values


def test_masses_of_cells_are_as_accurate_as_stated():
    with mpmath.workdps(60):
        for low in (-13.9, -6.0, -0.03, 2.0, 18.5):
            for width in (1e-3, 0.05, 0.5):
                _, masses = one_of_many.quadrature(np.array([low]), np.array([low + width]))
                tails = [
                    mpmath.erfc(abs(mpmath.mpf(z)) / mpmath.sqrt(2)) / 2 for z in (low, low + width)
                ]
                exact = (
                    abs(tails[0] - tails[1])
                    if low * (low + width) > 0.0
                    else 1 - tails[0] - tails[1]
                )
                assert abs(mpmath.mpf(float(masses.sum())) / exact - 1) < ALLOCATION


def test_spreading_keeps_masses_and_means():
    rng = np.random.default_rng(5)
    values, masses = rng.lognormal(0.0, 3.0, 300), rng.uniform(0.1, 1.0, (2, 300))
    for layout in (
        dyadic_sum.Layout(0.0, -8, 8, 32),
        dyadic_sum.Layout(3.0, -4, 16, 32),
        dyadic_sum.Layout(0.0, -30, 4, 8),
        dyadic_sum.Layout(0.0, -8, 8, 16, fine=-2, octaves=3),
        dyadic_sum.Layout(2.0, -6, 4, 16, fine=-6, octaves=2, levels=3),
        dyadic_sum.Layout(2.25, -6, 6, 24, fine=-6, octaves=2, levels=3, unit=0.75),
    ):
        law = dyadic_sum.spread(layout, values, masses, 0.0, 0.0)
        at, found = law.flat()
        assert found.sum(axis=1) == pytest.approx(masses.sum(axis=1), rel=1e-13)
        assert found @ at == pytest.approx(masses @ values, rel=1e-13)
        # convex functions only grow
        for strike in (0.1, 1.0, 7.3, 50.0):
            grown, before = (
                m @ np.maximum(x - strike, 0.0) for x, m in ((at, found), (values, masses))
            )
            assert np.all(grown >= (1.0 - 1e-13) * before)


@pytest.mark.parametrize(
    ("short", "long", "core"),
    [(31, 60, 512), (900, 1025, 512), (700, 9000, 4096), (515, 515, 4096), (516, 517, 4096)]
    + [(1025, 4000, 4096), (2051, 5000, 512), (2053, 5000, 512), (6000, 7001, 4096)],
)
def test_sums_of_products_are_as_exact_as_counted(short, long, core):
    rng = np.random.default_rng(short)
    # (one product in ten decides, wherever the others are)
    a, b = (rng.lognormal(0.0, spread, n) for spread, n in ((1.0, short), (20.0, long)))
    width, block = 2 * core + 1, dyadic_sum.Frame(core).block
    for one, other in ((a, b), (b, a)):
        found = convolve(one, other, block)
        assert found.shape == (short + long - 1,)
        for at in (0, 1, short - 1, short, (short + long) // 2, short + long - 2):
            terms = range(max(0, at - long + 1), min(short, at + 1))
            exact = sum(Fraction(float(a[i])) * Fraction(float(b[at - i])) for i in terms)
            off = abs(Fraction(float(found[at])) / exact - 1)
            assert off <= units(width, block) * Fraction(UNIT)


def test_halves_are_rounded_once():
    for level in (-1060, -40, -3, 0, 5, 8, 20):
        down, up = dyadic_sum.Layout(0.0, level, 8, 32, of_logs=True).halves(level)
        with mpmath.workdps(60):
            half = mpmath.mpf(min(math.ldexp(1.0, level), 500.0)) / 2
            for found, exact in (
                (down, 1 / (1 + mpmath.exp(half))),
                (up, 1 / (1 + mpmath.exp(-half))),
            ):
                assert abs(found / exact - 1) <= UNIT
    assert dyadic_sum.Layout(0.0, 0, 8, 32).halves(3) == (0.5, 0.5)


def test_levels_are_numbered_in_order():
    for frame in (
        dyadic_sum.Frame(8),
        dyadic_sum.Frame(8, -2, 3),
        dyadic_sum.Frame(16, 5, 2, 3),
        dyadic_sum.Frame(4, -7, 0, 2),
    ):
        ranks = range(-20, 20)
        exponents = [frame.exponent(rank) for rank in ranks]
        assert [frame.rank(exponent) for exponent in exponents] == list(ranks)
        assert np.all(np.diff(exponents) >= 1)
        # each level reaches twice as far as the one before, but the first that is finer, which
        # stands for those in between
        reach = np.array([frame.reach(r) * 2.0**e for r, e in zip(ranks, exponents, strict=True)])
        ratio = reach[1:] / reach[:-1]
        first = -1 if frame.fine is None else frame.fine - 1 - ranks[0]
        assert np.all((ratio == 2.0) | (np.arange(len(ratio)) == first))
        assert frame.fine is None or ratio[first] == 2.0 ** (frame.octaves + 1)
        starts = [frame.start(rank, ranks[0]) for rank in (*ranks, ranks.stop)]
        assert starts == frame.starts(ranks)


def test_logs_that_are_no_doubles_are_counted():
    # 3·2⁻⁵⁸ and some hundred have more digits between them than a double
    layout = dyadic_sum.Layout(3.0 * 2.0**-58, -58, 4, 8, of_logs=True)
    law = dyadic_sum.spread(layout, np.array([layout.centre, 150.0]), np.ones((1, 2)), 0.0, 0.0)
    values, _, error, _ = dyadic_sum.add(law, law)
    distance = [value - 2 * Fraction(layout.centre) for value in map(Fraction, values.tolist())]
    assert any(each.denominator > 2**40 for each in distance)  # not on a point
    assert error >= 3.0 * float(np.max(values)) * UNIT
    about_0 = dataclasses.replace(layout, centre=0.0)
    law = dyadic_sum.spread(about_0, np.array([2.0**-50, 150.0]), np.ones((1, 2)), 0.0, 0.0)
    assert dyadic_sum.add(law, law)[2] < error - 2.9 * float(np.max(values)) * UNIT


_PLAIN = dyadic_sum.Layout(2.0, -3, 4, 16), dyadic_sum.Layout(1.0, -2, 4, 16)
_FINE = {"fine": -2, "octaves": 2, "levels": 2}
# … in units of which centres are multiples
_UNITS = {"octave": 6, "core": 12, "unit": 0.8125}


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(
    "layouts",
    [
        _PLAIN,
        tuple(dataclasses.replace(layout, **_FINE) for layout in _PLAIN),
        tuple(
            dataclasses.replace(layout, **_FINE, **_UNITS, centre=0.8125 * layout.centre)
            for layout in _PLAIN
        ),
    ],
)
def test_sums_are_those_of_exact_arithmetic(layouts, same):
    rng = np.random.default_rng(6)
    one, _ = _law(rng, layouts[0], 0.5, 30.0, 40, 2)
    two = one if same else _law(rng, layouts[1], 0.5, 9.0, 25, 2)[0]
    values, masses, error, apart = dyadic_sum.add(one, two)
    assert error < 1e-13 and apart < 2e-13
    # without the coarser view of inner points every pair of points would be a term of its own:
    # total, mean and carried masses are the same
    (a, p), (b, q) = one.flat(), two.flat()
    exact = lambda x: [Fraction(float(i)) for i in x]
    total = sum(exact(p[0])) * sum(exact(q[0]))
    assert float(abs(sum(exact(masses[0])) / total - 1)) < 1e-13
    mean = sum(x * y for x, y in zip(exact(a), exact(p[0]), strict=True)) * sum(exact(q[0])) + sum(
        x * y for x, y in zip(exact(b), exact(q[0]), strict=True)
    ) * sum(exact(p[0]))
    assert (
        float(
            abs(sum(x * y for x, y in zip(exact(values), exact(masses[0]), strict=True)) / mean - 1)
        )
        < 1e-13
    )
    carried = sum(exact(p[1])) * sum(exact(q[0])) + sum(exact(p[0])) * sum(exact(q[1]))
    assert float(abs(sum(exact(masses[1])) / carried - 1)) < 1e-13
    # and convex functions only grow
    pairs = a[:, None] + b
    for strike in (3.0, 11.0, 25.0):
        least = np.sum(p[0][:, None] * q[0] * np.maximum(pairs - strike, 0.0))
        assert masses[0] @ np.maximum(values - strike, 0.0) >= (1.0 - 1e-13) * least
