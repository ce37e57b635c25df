"""Discrete Gaussian and discrete Laplace: exact masses with mpmath, exact sums for compositions,
the census.
"""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from exact_cells import cells_of, check_cells, check_masses, reverse_of
from scipy.special import log_ndtr

import jaxgdp
from jaxgdp import DiscreteGaussian, DiscreteLaplace, compose, tradeoff

POINTS = 41
SLACK = 1e-9


# --- discrete Gaussian: cells ---------------------------------------------------------------------


@mpmath.workdps(40)
def gaussian_masses(sigma, s, ell):
    """Exact cell masses: sums over the integers between floor(ℓσ²/s + s/2)."""
    reach = int(60 * sigma) + s + 20
    g = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
        for k in range(reach + s + 1)
    ]
    total = g[0] + 2 * mpmath.fsum(g[1:])
    sums = [mpmath.mpf(0)]
    for k in range(-reach - s, reach + s + 1):
        sums.append(sums[-1] + g[abs(k)] / total)
    up_to = lambda k: sums[min(max(k, -reach - s - 1), reach + s) + reach + s + 1]
    right = lambda k: up_to(-k - 1)
    cuts = [
        int(mpmath.floor(mpmath.mpf(float(v)) * mpmath.mpf(sigma) ** 2 / s + mpmath.mpf(s) / 2))
        for v in ell
    ]
    cuts = [-reach - s - 1, *cuts, reach + s]

    def between(a, b, shift):
        a, b = a - shift, b - shift
        return right(a) - right(b) if a >= 0 else up_to(b) - up_to(a)

    return [(between(a, b, 0), between(a, b, s)) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


@pytest.mark.parametrize(
    ("sigma", "s"),
    [
        (0.2, 1),
        (0.7, 1),
        (1.3, 2),
        (3.0, 1),
        (9.9, 1),
        (10.0, 1),
        (12.3, 3),
        (60.0, 1),
        (60.0, 16),
        (400.0, 1),
    ],
)
def test_gaussian_cells_are_exact(sigma, s):
    # from a few integers per cell to a few cells per integer, and into the far tail
    for span in (20.0, 0.7, 25.0 / sigma):
        ell = (np.linspace(-span, 1.03 * span, POINTS) + 0.0137) * s / sigma
        cells = cells_of(DiscreteGaussian(sigma, s), ell)
        check_cells(cells, ell)
        check_masses(cells, gaussian_masses(sigma, s, ell), deepest=-1000)
        back = reverse_of(cells, ell)
        check_cells(back, -ell[::-1])


def test_gaussian_cells_on_atoms_and_uneven_points():
    k = np.arange(POINTS) - POINTS // 2
    for sigma in (2.0, 25.0):
        ell = (2.0 * k - 1.0) / (2.0 * sigma**2)
        check_cells(cells_of(DiscreteGaussian(sigma), ell), ell)
    ell = np.sort(np.random.default_rng(0).normal(size=POINTS)) * 0.3
    check_masses(
        cells_of(DiscreteGaussian(17.0), ell), gaussian_masses(17.0, 1, ell), deepest=-1000
    )


def test_very_wide_gaussian_is_normal():
    # at σ = 10⁴ sums over integers are integrals to 1/(24σ²)
    ell = np.linspace(-6e-4, 6e-4, POINTS)
    cells = cells_of(DiscreteGaussian(1e4), ell)
    cuts = np.floor(ell * 1e8 + 0.5) + 0.5
    normal = np.diff(np.exp(log_ndtr(np.append(cuts, np.inf) / 1e4)), prepend=0.0)
    assert np.allclose(np.exp(cells.log_x), normal, rtol=1e-6)
    check_cells(cells, ell)


# --- discrete Gaussian: one use is exactly μ-GDP --------------------------------------------------


def quantile(mass):
    """−Φ⁻¹(mass) for small masses."""
    start = mpmath.sqrt(max(-2 * mpmath.log(mass) - 1, mpmath.mpf("0.01")))
    return mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(mass), start)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 2.0, 5.0, 40.0])
@mpmath.workdps(30)
def test_steps_of_the_normal_quantile_fall(sigma):
    terms = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
        for k in range(int(30 * sigma) + 30)
    ]
    total = terms[0] + 2 * mpmath.fsum(terms[1:])
    last = min(10, int(20 * sigma) + 3)
    z = [quantile(mpmath.fsum(terms[m:]) / total) for m in range(1, last)]
    steps = [2 * z[0], *(b - a for a, b in zip(z[:-1], z[1:], strict=True))]
    assert all(a > b > 1 / sigma for a, b in zip(steps[:-1], steps[1:], strict=True))
    for s, exact in ((1, 2 * z[0]), (2, z[0] + z[1]), (3, 2 * z[1])):
        with jax.enable_x64(True):
            found = float(
                jnp.sqrt(
                    DiscreteGaussian(jnp.asarray(sigma), jnp.asarray(float(s))).tail_precision()
                )
            )
        assert 0.0 <= found / float(exact) - 1.0 < 2e-13


# --- discrete Gaussian: curves --------------------------------------------------------------------

SIGMAS = np.array([0.5, 1.0, 3.0, 30.0])


@pytest.fixture(scope="module")
def gaussian():
    return tradeoff(DiscreteGaussian(SIGMAS))


def mass(sigma, reach):
    k = np.arange(-reach, reach + 1)
    p = np.exp(-0.5 * (k / sigma) ** 2)
    return k, p / p.sum()


def test_single_use(gaussian):
    mu = gaussian.mu()
    assert np.all(mu.upper - mu.lower <= 1e-3 * mu.upper)
    for i, sigma in enumerate(SIGMAS):
        k, p = mass(sigma, int(12 * sigma) + 8)
        q = np.roll(p, 1)
        alpha, tpr = (np.cumsum(a[::-1])[::-1] for a in (p, q))
        for epsilon in (0.0, 0.3 / sigma, 1.0 / sigma):
            exact = np.maximum(q - np.exp(epsilon) * p, 0.0).sum()
            found = gaussian.delta(epsilon)
            assert found.lower[i] <= exact * (1 + SLACK) and found.upper[i] >= exact * (1 - SLACK)
            assert found.upper[i] - found.lower[i] <= 2e-3 * exact
        # at its own breakpoints the curve is known exactly
        middle = np.abs(k) <= max(1, int(2 * sigma))
        for a, t in list(zip(alpha[middle], tpr[middle], strict=True))[:: max(1, int(sigma))]:
            found = gaussian.tpr(a)
            assert found.lower[i] <= t * (1 + SLACK) and found.upper[i] >= t * (1 - SLACK)
            assert found.upper[i] - found.lower[i] <= 5e-3 * t
        exact = jaxgdp.gdp.delta(epsilon=0.0, mu=mu.upper[i])
        assert exact >= (q - p).clip(0).sum() * (1 - SLACK)


def test_composition_of_two_sigmas_against_all_pairs():
    sigmas, counts = (0.8, 1.3), (2, 1)
    curve = tradeoff(
        compose([(DiscreteGaussian(s), n) for s, n in zip(sigmas, counts, strict=True)])
    )
    loss, p = np.zeros(1), np.ones(1)
    for sigma, count in zip(sigmas, counts, strict=True):
        for _ in range(count):
            k, own = mass(sigma, 12)
            loss = (loss[:, None] + (2 * k - 1) / (2 * sigma**2)).reshape(-1)
            p = (p[:, None] * own).reshape(-1)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        exact = np.sum(np.where(loss > epsilon, p * (np.exp(loss) - np.exp(epsilon)), 0.0))
        found = curve.delta(epsilon)
        assert found.lower <= exact * (1 + SLACK) and found.upper >= exact * (1 - SLACK)
        assert found.upper - found.lower <= 2e-2 * exact
    # above, the mechanism's privacy by concentrated differential privacy: δ ≤ e^{−(ε − ρ)²/(4ρ)}
    rho = sum(n / (2 * s**2) for s, n in zip(sigmas, counts, strict=True))
    assert curve.delta(6.0).upper <= np.exp(-((6.0 - rho) ** 2) / (4 * rho))


def test_census_allocation_of_2022():
    """ρ = 3.65 over 8 levels of 10 queries (Gomez 2025, Table 4): μ = 2.701853, hardly any
    regret.
    """
    shares = np.array([2.0, 27.4, 8.5, 13.1, 13.1, 23.8, 11.8, 0.3]) / 100
    sigmas = np.sqrt(1.0 / (2.0 * 3.65 * shares / 10))
    curve = tradeoff(compose([(DiscreteGaussian(s), 10) for s in sigmas]))
    mu = curve.mu()
    assert mu.lower <= 2.701853 * (1 + 1e-7) and mu.upper >= 2.701853 * (1 - 1e-7)
    assert mu.upper - mu.lower <= 1e-3 * mu.upper
    assert curve.regret().upper <= 3e-4
    epsilon = curve.epsilon(1e-10)
    assert epsilon.lower <= 20.3247 <= epsilon.upper * (1 + 2e-6) and epsilon.upper < 20.34


def test_equal_mechanisms_count_as_one():
    apart = compose(
        [DiscreteGaussian(2.0), (DiscreteGaussian(3.0), 2), DiscreteGaussian(2.0)]
    ).stacked()
    together = compose([(DiscreteGaussian(2.0), 2), (DiscreteGaussian(3.0), 2)]).stacked()
    assert jax.tree.all(jax.tree.map(np.array_equal, apart, together))


def test_replacing_a_record_doubles_the_shift():
    assert DiscreteGaussian([2.0, 3.0]).replace_one().sensitivity == 2.0
    with pytest.raises(ValueError, match="sensitivity"):
        DiscreteGaussian(2.0, 16).replace_one()


# --- discrete Laplace -----------------------------------------------------------------------------


def laplace_pair(scale, shift):
    """P-masses by loss of the two-sided geometric law against itself moved by ``shift``, from a
    long table.
    """
    k = np.arange(-4000, 4000 + shift)
    p, q = np.exp(-np.abs(k) / scale), np.exp(-np.abs(k - shift) / scale)
    p, q = p / p.sum(), q / q.sum()
    loss = np.round((np.abs(k) - np.abs(k - shift)).astype(float))
    return [(v / scale, p[loss == v].sum(), q[loss == v].sum()) for v in np.unique(loss)]


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.0])
def test_discrete_laplace_is_randomized_response(scale):
    ell = np.linspace(-2.3, 2.2, POINTS) / scale
    for mechanism, shift in (
        (DiscreteLaplace(scale), 1),
        (DiscreteLaplace(scale).replace_one(), 2),
    ):
        cells = cells_of(mechanism, ell)
        check_cells(cells, ell)
        table = laplace_pair(scale, shift)
        x, y = np.zeros(POINTS + 1), np.zeros(POINTS + 1)
        for loss, p, q in table:
            x[np.searchsorted(ell, loss)] += p
            y[np.searchsorted(ell, loss)] += q
        assert np.allclose(np.exp(cells.log_x), x, rtol=1e-12, atol=1e-15)
        assert np.allclose(np.exp(cells.log_y), y, rtol=1e-12, atol=1e-15)


BAD = [
    (lambda: DiscreteGaussian(0.0), "sigma"),
    (lambda: DiscreteGaussian([1.0, np.nan]), "sigma"),
    (lambda: DiscreteGaussian(1.0, 0), "sensitivity"),
    (lambda: DiscreteGaussian(1.0, 1.5), "sensitivity"),
    (lambda: DiscreteGaussian(1.0, 17), "sensitivity"),
    (lambda: DiscreteGaussian([1.0, 2.0], [1, 2, 3]), "shapes"),
    (lambda: DiscreteLaplace(-1.0), "scale"),
]


@pytest.mark.parametrize(("call", "named"), BAD)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()
