"""Mechanisms from densities, probabilities and profiles: exact sums, quadrature, and the mechanisms
they reproduce.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from by_day import every_value
from exact_cells import cells_of, check_cells, check_masses, reverse_of
from scipy.special import ndtri

import jaxgdp
from jaxgdp import ApproximateDP, FromDensities, FromPMFs, FromProfile, Laplace, compose, tradeoff
from jaxgdp.mechanisms.piecewise_pair import log_sinhc

POINTS = 41
SLACK = 1e-9


def holds(found, exact, rtol):
    assert found.lower <= exact * (1 + SLACK) and found.upper >= exact * (1 - SLACK), (found, exact)
    assert found.upper - found.lower <= rtol * exact, (found, exact)


# --- two PMFs -------------------------------------------------------------------------------------

P = np.array([0.1, 0.25, 0.3, 0.349, 0.001, 0.0])
Q = np.array([0.3, 0.25, 0.1, 0.348, 0.0, 0.002])


def test_cells_of_pmfs():
    ell = np.linspace(-1.3, 1.2, POINTS)
    cells = cells_of(FromPMFs(P, Q), ell)
    check_cells(cells, ell)
    check_cells(reverse_of(cells, ell), -ell[::-1])
    with np.errstate(divide="ignore"):
        where = np.searchsorted(ell, np.log(Q) - np.log(P))
    assert np.allclose(
        np.exp(cells.log_x), np.bincount(where, P, POINTS + 1), rtol=1e-13, atol=1e-17
    )
    assert np.allclose(
        np.exp(cells.log_y), np.bincount(where, Q, POINTS + 1), rtol=1e-13, atol=1e-17
    )
    assert np.exp([cells.log_p_minus, cells.log_q_plus]) == pytest.approx([0.001, 0.002], rel=1e-13)


@pytest.fixture(scope="module")
def three_uses():
    return tradeoff(compose([(FromPMFs(P, Q), 3)]), adjacency="remove")


def test_composition_of_pmfs_against_all_outcomes(three_uses):
    p, q = (np.array([np.prod(c) for c in itertools.product(law, repeat=3)]) for law in (P, Q))
    for epsilon in (0.0, 0.5, 1.5, 2.5):
        holds(three_uses.delta(epsilon), np.maximum(q - np.exp(epsilon) * p, 0.0).sum(), 5e-3)
    # beyond every finite loss only what Q alone shows is left, and that for certain
    holds(three_uses.delta(4.0), 1.0 - 0.998**3, 1e-9)
    holds(three_uses.tpr(1e-250), 1.0 - 0.998**3, 1e-9)
    assert np.isinf(three_uses.tail_mu) and np.isinf(three_uses.mu(fpr_floor=0.0).upper)


def test_single_use_of_pmfs():
    curve = tradeoff(FromPMFs([0.2, 0.3, 0.5], [[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]]))
    exact = np.array([-ndtri(0.2), max(ndtri(0.3) - ndtri(0.2), ndtri(0.6) - ndtri(0.5))])
    found = curve.mu()
    assert (
        np.all(found.lower <= exact)
        and np.all(found.upper >= exact)
        and np.all(found.upper - found.lower <= 1e-3 * exact)
    )
    assert np.all((curve.tail_mu >= exact) & (curve.tail_mu <= exact * (1 + 1e-10)))


def test_sums_that_are_one_but_for_rounding_are_divided_out():
    p = np.full(10, 0.1) * (1 + 3e-10)
    cells = cells_of(FromPMFs(p, p[::-1]), np.linspace(-1.0, 1.0, POINTS))
    check_cells(cells, np.linspace(-1.0, 1.0, POINTS))


# --- profile --------------------------------------------------------------------------------------

PROFILES = [
    ([0.0, 0.5, 1.0], [0.4, 0.2, 0.1]),
    ([1.0], [1e-5]),
    ([0.3, 1.0, 2.0, 4.0, 8.0], [0.3, 0.1, 0.02, 1e-5, 1e-20]),
    ([0.0, 1.0, 2.0, 3.0], [0.5, 0.45, 0.1, 0.2]),
    ([0.0, 1.0], [0.9, 0.0]),
    ([0.5, 1.0], [0.3, 0.3]),
    ([0.0], [0.25]),
]


def hull(epsilons, deltas):
    """The lower convex hull by brute force: at each γ the least over all chords of points and
    mirror images, and the flat end.
    """
    points = [(0.0, 1.0)]
    for e, d in zip(epsilons, deltas, strict=True):
        points += [(np.exp(e), d), (np.exp(-e), 1.0 - np.exp(-e) * (1.0 - d))]

    def at(gamma):
        best = min(d for g, d in points if g <= gamma)
        for (a, x), (b, y) in itertools.permutations(points, 2):
            if a <= gamma <= b and a < b:
                best = min(best, (x * (b - gamma) + y * (gamma - a)) / (b - a))
        return best

    return at


@pytest.mark.parametrize(("epsilons", "deltas"), PROFILES)
def test_pair_of_a_profile_is_its_hull(epsilons, deltas):
    pair = FromProfile(epsilons, deltas).canonical()
    p, q = np.exp(pair.log_p), np.exp(pair.log_q)
    assert p.sum() + np.exp(pair.log_p_minus) == pytest.approx(1.0, abs=1e-14)
    assert q.sum() + np.exp(pair.log_q_plus) == pytest.approx(1.0, abs=1e-14)
    exact = hull(epsilons, deltas)
    for epsilon in [*epsilons, *(-e for e in epsilons), 0.0, 0.7, 1.7, 5.0, 20.0, -1.3]:
        above = pair.loss > epsilon
        delta = np.exp(pair.log_q_plus) + np.sum((q - np.exp(epsilon) * p)[above])
        assert delta == pytest.approx(
            exact(np.exp(epsilon)), rel=1e-9, abs=1e-15 if epsilon < 7.0 else 1e-30
        )
        # the other direction is the same
        below = pair.loss < -epsilon
        other = np.exp(pair.log_p_minus) + np.sum((p - np.exp(epsilon) * q)[below])
        assert other == pytest.approx(delta, rel=1e-9, abs=1e-15 if epsilon < 7.0 else 1e-30)


def test_pair_of_a_simple_profile_is_approximate_dp():
    ell = np.linspace(-1.5, 1.4, POINTS)
    one, other = cells_of(FromProfile([1.0], [1e-5]), ell), cells_of(ApproximateDP(1.0, 1e-5), ell)
    check_cells(one, ell)
    for name in ("log_x", "log_y", "up", "log_p_minus", "log_q_plus"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-14), name


def test_composition_of_profiles():
    # the curve of the pair, and that of an honest mechanism with this profile: it is below
    # everywhere
    epsilons = np.linspace(0.0, 1.0, 6)
    deltas = -np.expm1((epsilons - 1.0) / 2.0)  # Laplace, b = 1
    given = tradeoff(compose([(FromProfile(epsilons, deltas), 4)]))
    laplace = tradeoff(compose([(Laplace(1.0), 4)]))
    assert given.mu().upper >= laplace.mu().lower and given.mu().upper <= 1.02 * laplace.mu().upper
    for epsilon in (0.0, 0.5, 2.0):
        assert given.delta(epsilon).upper >= laplace.delta(epsilon).lower
    mu = given.mu()
    assert mu.upper - mu.lower <= 1e-3 * mu.upper


# --- densities ------------------------------------------------------------------------------------


@mpmath.workdps(30)
def test_log_sinhc():
    for z in (0.0, 1e-9, 1e-3, 0.0999, 0.1001, 1.0, -3.0, 40.0, 900.0):
        exact = mpmath.log(mpmath.sinh(z) / z) if z else mpmath.mpf(0)
        assert float(abs(log_sinhc(np.array(z), np) - exact)) <= 4e-16 * max(1.0, abs(z))


def laplace_densities(b, points):
    x = np.unique(
        np.concatenate(
            [
                np.linspace(-60 * b, 0, points),
                np.linspace(0, 1, points),
                np.linspace(1, 1 + 60 * b, points),
            ]
        )
    )
    return FromDensities.normalized(x, -np.abs(x) / b, -np.abs(x - 1) / b)


def test_laplace_from_densities():
    ell = np.linspace(-1.13, 1.2, POINTS)
    for points in (3, 30):
        one, other = cells_of(laplace_densities(1.0, points), ell), cells_of(Laplace(1.0), ell)
        check_cells(one, ell)
        for name in ("log_x", "log_y", "up"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-13), (
                name
            )
        assert one.log_p_minus == -np.inf and one.log_q_plus == -np.inf


def wavy(points=25, seed=3):
    """Densities whose log ratio goes up and down, with a stretch that only P has and one that only
    Q has.
    """
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2.0, 2.0, points))
    log_p, log_q = rng.normal(size=(2, points)) * 1.5
    log_p[3:5], log_q[10:12] = -np.inf, -np.inf
    x[15] = x[14]  # a jump
    total = lambda a: np.log(sum(float(v) for v in piece_masses(x, a)))
    # a hundredth of P and a fiftieth of Q are missing
    return x, log_p - total(log_p) + np.log(0.99), log_q - total(log_q) + np.log(0.98)


def piece_masses(x, log_density):
    """Integrals of each log-linear piece, with mpmath."""
    masses = []
    for i in range(len(x) - 1):
        ends = log_density[i], log_density[i + 1]
        if not np.all(np.isfinite(ends)) or x[i + 1] == x[i]:
            masses.append(mpmath.mpf(0))
            continue
        a, b = (mpmath.mpf(float(v)) for v in ends)
        width = mpmath.mpf(float(x[i + 1])) - mpmath.mpf(float(x[i]))
        masses.append(
            width * (mpmath.exp(a) if a == b else mpmath.exp(a) * mpmath.expm1(b - a) / (b - a))
        )
    return masses


@mpmath.workdps(30)
def wavy_masses(x, log_p, log_q, ell):
    """Cell masses: every piece cut where its loss crosses a lattice point."""
    cells = [[mpmath.mpf(0), mpmath.mpf(0)] for _ in range(len(ell) + 1)]
    wholes = piece_masses(x, log_p), piece_masses(x, log_q)
    for i in range(len(x) - 1):
        ends = [[mpmath.mpf(float(a[i])), mpmath.mpf(float(a[i + 1]))] for a in (log_p, log_q)]
        if wholes[0][i] == 0 or wholes[1][i] == 0:
            cells[0][0] += wholes[0][i]
            cells[-1][1] += wholes[1][i]
            continue
        l0, l1 = ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]
        cuts = sorted(
            {mpmath.mpf(0), mpmath.mpf(1), *((mpmath.mpf(float(v)) - l0) / (l1 - l0) for v in ell)}
        )
        cuts = [t for t in cuts if 0 <= t <= 1]
        for s, t in zip(cuts[:-1], cuts[1:], strict=True):
            cell = int(np.searchsorted(ell, float(l0 + (l1 - l0) * (s + t) / 2)))
            for law, (a, b) in enumerate(ends):
                share = (mpmath.exp(b * t + a * (1 - t)) - mpmath.exp(b * s + a * (1 - s))) / (
                    mpmath.exp(b) - mpmath.exp(a)
                )
                cells[cell][law] += wholes[law][i] * share
    cells[0][0] += 1 - mpmath.fsum(wholes[0])
    cells[-1][1] += 1 - mpmath.fsum(wholes[1])
    return cells


@pytest.mark.parametrize("span", [9.0, 1.0])
def test_cells_of_wavy_densities(span):
    x, log_p, log_q = wavy()
    mechanism = FromDensities(x, log_p, log_q)
    ell = np.linspace(-span, 1.1 * span, POINTS) + 0.0123
    cells = cells_of(mechanism, ell)
    check_cells(cells, ell)
    check_cells(reverse_of(cells, ell), -ell[::-1])
    check_masses(cells, wavy_masses(x, log_p, log_q, ell))


def test_single_use_of_wavy_densities():
    x, log_p, log_q = wavy()
    curve = tradeoff(FromDensities(x, log_p, log_q), adjacency="remove")
    fine = 4000
    t = (np.arange(fine) + 0.5) / fine
    for epsilon in (0.0, 1.0, 3.0):
        exact = 0.0
        for i in range(len(x) - 1):
            p, q = (
                (1 - t) * a[i] + t * a[i + 1]
                if np.isfinite(a[i] + a[i + 1])
                else np.full(fine, -np.inf)
                for a in (log_p, log_q)
            )
            exact += (x[i + 1] - x[i]) * np.mean(np.maximum(np.exp(q) - np.exp(epsilon + p), 0.0))
        found = curve.delta(epsilon)
        assert found.lower <= (exact + 0.02) * (1 + 1e-5) and found.upper >= (exact + 0.02) * (
            1 - 1e-5
        )
        assert found.upper - found.lower <= 5e-3 * found.upper


@pytest.mark.parametrize(("missing", "uses"), every_value((5e-14, 1e-9), (1, 1000)))
def test_mass_that_densities_lack_goes_to_infinity(missing, uses):
    """However little it is: nothing else is left of δ beyond the largest finite loss."""
    x = np.array([-2.0, 0.0, 1.0, 3.0])
    log_p, log_q = -np.abs(x), -np.abs(x - 1.0)
    whole = float(mpmath.log(mpmath.fsum(piece_masses(x, log_p))))
    log_q = log_q - whole + np.log1p(-missing)
    exact = max(1 - mpmath.fsum(piece_masses(x, log_q)), mpmath.mpf(0))
    exact = -mpmath.expm1(uses * mpmath.log1p(-exact))
    found = jaxgdp.measure(
        compose([(FromDensities(x, log_p - whole, log_q), uses)]), "delta", epsilon=1.5 * uses
    ).delta
    assert found.lower <= exact <= found.upper <= exact * (1 + 1e-3) + uses * 1e-17


def test_densities_of_which_nothing_is_missing_say_so():
    x = np.linspace(-30.0, 31.0, 123)
    log_p, log_q = -np.abs(x) - np.log(2.0), -np.abs(x - 1.0) - np.log(2.0)
    outside = 0.5 * (np.exp(-30.0) + np.exp(-31.0))
    given, whole = FromDensities(x, log_p, log_q), FromDensities.normalized(x, log_p, log_q)
    declared = FromDensities(x, log_p, log_q, complete=True)
    for log_mass in (given.canonical().log_p_minus, given.canonical().log_q_plus):
        exact = 1 - mpmath.fsum(piece_masses(x, log_p))
        assert exact <= mpmath.exp(mpmath.mpf(float(log_mass))) <= exact * (1 + 1e-4)
        assert float(exact) == pytest.approx(outside, rel=0.5)
    for mechanism in (whole, declared):
        assert mechanism.complete and mechanism.canonical().log_q_plus == -np.inf
    for bad, named in (({"complete": 1}, "complete"), ({"complete": True}, "integrate to 1")):
        with pytest.raises(ValueError, match=named):
            FromDensities(x, log_p - 1.0, log_q, **bad)


def test_mixture_of_classes():
    # the same mechanism written twice: as Laplace, and by its densities
    b = 0.7
    two = tradeoff(compose([(laplace_densities(b, 20), 1), (Laplace(b), 2)])).mu()
    one = tradeoff(compose([(Laplace(b), 3)])).mu()
    assert (
        two.lower <= one.upper
        and one.lower <= two.upper
        and two.upper - two.lower <= 1e-3 * two.upper
    )


BAD = [
    (lambda: FromPMFs([0.5, 0.6], [0.5, 0.5]), "p must sum to 1"),
    (lambda: FromPMFs([0.5, 0.5], [0.5, -0.5]), "q"),
    (lambda: FromPMFs([0.5, 0.5], [0.2, 0.3, 0.5]), "outputs"),
    (lambda: FromPMFs(0.5, [0.5, 0.5]), "p must"),
    (lambda: FromPMFs([[0.5, 0.5]] * 2, [[0.5, 0.5]] * 3), "shapes"),
    (lambda: FromPMFs([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [0.0, 0.5, 0.5]), "in common"),
    (lambda: FromPMFs([0.5, np.nan], [0.5, 0.5]), "p"),
    (lambda: FromProfile([0.0, 1.0], [0.1]), "equally many"),
    (lambda: FromProfile([1.0, 1.0], [0.2, 0.1]), "increase"),
    (lambda: FromProfile([-1.0, 1.0], [0.2, 0.1]), "epsilons"),
    (lambda: FromProfile([0.0, 1.0], [0.2, 1.1]), "deltas"),
    (lambda: FromProfile([0.0, 1.0], [1.0, 1.0]), "deltas"),
    (lambda: FromProfile(1.0, 0.1), "epsilons"),
    (lambda: FromDensities([0.0, 1.0], [0.5, 0.5], [0.0, 0.0]), "log_p must integrate"),
    (lambda: FromDensities([0.0, -1.0], [-1.0, -1.0], [0.0, 0.0]), "outputs"),
    (lambda: FromDensities([0.0, 1.0], [-1.0, np.nan], [0.0, 0.0]), "log_p"),
    (lambda: FromDensities([0.0, 1.0], [-1.0, np.inf], [0.0, 0.0]), "log_p"),
    (lambda: FromDensities([0.0, 1.0], [-1.0, -1.0], [0.0, 0.0, 0.0]), "log_q"),
    (lambda: FromDensities([0.0], [0.0], [0.0]), "outputs"),
    (lambda: FromDensities.normalized([0.0, 1.0], [-np.inf, 0.0], [0.0, 0.0]), "log_p"),
]


@pytest.mark.parametrize(("call", "named"), BAD)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_replacing_a_record_and_batches():
    profile = FromProfile([[0.0, 1.0], [0.0, 2.0]], [0.2, 0.1])
    assert profile.replace_one() is profile and profile.shape == (2,)
    assert profile.canonical().shape == (2,)
    densities = FromDensities.normalized(
        np.linspace(-1, 1, 9), np.zeros(9), [np.linspace(0, s, 9) for s in (1.0, 2.0)]
    )
    assert densities.shape == (2,) and densities.canonical().shape == (2,)
    mu = tradeoff(
        compose([densities, (FromPMFs(P[:4] / P[:4].sum(), Q[:4] / Q[:4].sum()), [1, 2])])
    ).mu()
    assert mu.lower.shape == (2,) and mu.lower[0] < mu.upper[0] < mu.lower[1] < mu.upper[1]
    assert jaxgdp.compose([(profile, [1, 2])]).shape == (2,)


def test_pmfs_are_exact_for_the_numbers_given():
    found = jaxgdp.advantage(jaxgdp.FromPMFs([1, 1e-30], [1, 1e-20]))
    assert found.lower <= 1e-20 * (1.0 - 1e-10) <= found.upper
    assert found.upper - found.lower < 1e-30
    # the first law's mass beside 1, which no double shows
    faint = jaxgdp.FromPMFs([1, 6.418e-18], [1, 0])
    for adjacency in ("remove", "add"):
        one = jaxgdp.delta(faint, epsilon=0.0, adjacency=adjacency)
        assert one.lower <= 6.418e-18 <= one.upper and one.upper - one.lower < 1e-29
    nine = jaxgdp.delta(jaxgdp.compose([(faint, 9)]), epsilon=0.0, adjacency="remove")
    assert nine.lower <= 9 * 6.418e-18 <= nine.upper


def test_logs_of_masses_that_are_no_doubles():
    faint = jaxgdp.FromPMFs.from_logs([0.0, -2000.0], [0.0, -1000.0])
    bracket = jaxgdp.tradeoff(faint).log_delta(500.0)
    assert bracket.lower <= -1000.0 <= bracket.upper < bracket.lower + 1e-10
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    both = jaxgdp.FromPMFs(p, q), jaxgdp.FromPMFs.from_logs(np.log(p), np.log(q))
    one, other = (jaxgdp.delta(mechanism, epsilon=0.2) for mechanism in both)
    assert one.upper == pytest.approx(other.upper, rel=1e-12)
    with pytest.raises(ValueError, match="log_p must hold logs of probabilities"):
        jaxgdp.FromPMFs.from_logs([0.5, -1.0], [0.0, -1.0])
    with pytest.raises(ValueError, match="must sum to 1"):
        jaxgdp.FromPMFs.from_logs([-1.0, -1.0], np.log([0.5, 0.5]))


def test_profile_at_an_atom_of_a_long_table():
    """The truncated double geometric law, at the ε that its authors state."""
    k = np.arange(-1177, 1178)
    mass = np.exp(-0.1 * np.abs(k))
    mass = mass / math.fsum(mass)
    nothing = np.zeros(1000)
    table = jaxgdp.FromPMFs(np.append(mass, nothing), np.append(nothing, mass))
    found = jaxgdp.delta(table, epsilon=100.0, adjacency="remove")
    # 50 digits, of the doubles of the table: 9.7656337733288948e-09
    assert found.lower <= 9.7656337733288948e-09 <= found.upper
    assert found.upper - found.lower < 1e-6 * found.upper
