"""Laplace, randomized response, pure and approximate DP: closed forms, exact binomial sums, and
mixtures by quadrature.
"""

import itertools

import mpmath
import numpy as np
import pytest
from by_day import first
from engine_run import run_engine
from scipy.special import ndtri

import jaxgdp

DIGITS = 60
SLACK = 1e-9  # relative, for the oracle's own rounding and for a double's of (α, β)


def holds(found, exact, rtol, atol=1e-300):
    """The bracket holds the exact values and is as narrow as asked."""
    exact = np.asarray(exact, float)
    assert np.all(found.lower <= exact * (1 + SLACK) + atol), (found.lower, exact)
    assert np.all(found.upper >= exact * (1 - SLACK) - atol), (found.upper, exact)
    assert np.all(found.upper - found.lower <= rtol * exact + atol), (
        found.lower,
        found.upper,
        exact,
    )


# --- Laplace, one use -----------------------------------------------------------------------------

SCALES = np.array([0.05, 0.5, 1.0, 2.0, 30.0])


@pytest.fixture(scope="module")
def laplace():
    return jaxgdp.tradeoff(jaxgdp.Laplace(SCALES))


def laplace_beta(alpha, scale):
    """f(α) of Lap(0, b) against Lap(1, b): straight, hyperbolic, straight."""
    ratio = np.exp(-1.0 / scale)
    middle = ratio / (4.0 * np.maximum(alpha, 1e-300))
    low = 1.0 - alpha / ratio if ratio > 0 else 0.0 * alpha
    return np.where(alpha < 0.5 * ratio, low, np.where(alpha <= 0.5, middle, ratio * (1.0 - alpha)))


def test_laplace_mu(laplace):
    exact = 2.0 * ndtri(1.0 - 0.5 * np.exp(-0.5 / SCALES))
    for floor in (1e-3, 1e-10, 1e-300, 0.0):
        # (at b = 0.05 both rates of the symmetric point are above every floor but the first)
        rows = slice(None) if floor < 1e-3 else slice(1, None)
        found = laplace.mu(fpr_floor=floor)
        holds(jaxgdp.Bracket(found.lower[rows], found.upper[rows]), exact[rows], 1e-6)
    assert exact[2] == pytest.approx(1.030064, abs=1e-6) and exact[3] == pytest.approx(
        0.561764, abs=1e-6
    )
    assert np.allclose(laplace.tail_mu, exact, rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-200, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.999])
def test_laplace_trade_off_curve(laplace, alpha):
    exact = np.array([laplace_beta(np.array(alpha), b) for b in SCALES])
    found = laplace.beta(alpha)
    assert np.all(found.lower <= exact * (1 + SLACK)) and np.all(found.upper >= exact * (1 - SLACK))
    # vertices are some 1/(250·b) nats apart: a chord costs little, a kink costs the attack a corner
    # of its polygon
    assert np.all(exact - found.lower <= [1e-3, 2e-5, 2e-5, 2e-5, 2e-5] * exact)
    assert np.all(found.upper - found.lower <= 5e-3 * exact)


def test_laplace_profile(laplace):
    for share in (0.0, 0.3, 0.9, 1.0, 1.5):
        epsilon = share / SCALES
        holds(
            laplace.delta(epsilon),
            np.maximum(-np.expm1((epsilon - 1.0 / SCALES) / 2.0), 0.0),
            1e-4,
            atol=1e-11,
        )
    back = laplace.epsilon(1e-3)
    holds(back, 1.0 / SCALES + 2.0 * np.log1p(-1e-3), 1e-3)


# --- randomized response, one use -----------------------------------------------------------------


def test_binary_randomized_response():
    epsilon = np.array([1e-3, 0.5, 1.0, 2.0, 4.0, 30.0])
    curve = jaxgdp.tradeoff(jaxgdp.RandomizedResponse(epsilon))
    exact = jaxgdp.gdp.mu_from_pure_dp(epsilon=epsilon)
    holds(curve.mu(fpr_floor=1e-300), exact, 1e-4)
    assert np.allclose(exact[1:5], [0.623893, 1.232035, 2.357961, 4.194478], atol=1e-6)
    holds(curve.advantage(), np.tanh(epsilon / 2), 1e-4)
    holds(curve.delta(epsilon / 2), -np.expm1(-epsilon / 2) / (1 + np.exp(-epsilon)), 1e-3)
    assert np.all(curve.delta(epsilon).upper <= 1e-11 * epsilon)
    holds(jaxgdp.Bracket(*(side[2] for side in curve.regret())), 0.0575464, 1e-5, atol=1e-7)


def test_randomized_response_over_k_categories():
    epsilon, k = np.array([[0.1], [1.0], [5.0]]), np.array([2, 3, 10, 1000])
    curve = jaxgdp.tradeoff(jaxgdp.RandomizedResponse(epsilon, k))
    total = np.exp(epsilon) + k - 1
    assert curve.shape == (3, 4)
    holds(curve.advantage(), np.expm1(epsilon) / total, 1e-6)
    # vertices (1, k − 1 + …): the other answer; then all but the true one
    for alpha, beta in ((1 / total, (k - 1) / total), ((k - 1) / total, 1 / total)):
        found = curve.beta(alpha)
        assert np.all(found.lower <= beta * (1 + SLACK)) and np.all(
            found.upper >= beta * (1 - SLACK)
        )
        assert np.all(found.upper - found.lower <= 1e-6 * beta)
    holds(curve.mu(0.0), ndtri(1 - 1 / total) - ndtri((k - 1) / total), 1e-6)


# --- pure and approximate DP, many uses -----------------------------------------------------------

PURE = [(0.1, 10), (1.0, 10), (0.3, 50), (1.0, 50), (0.1, 200), (0.02, 2000)]


def binomial(epsilon, k):
    """Losses, P-masses and Q-masses of k-fold binary randomized response."""
    e = mpmath.mpf(float(epsilon))
    p = 1 / (1 + mpmath.exp(e))
    rows = []
    for i in range(k + 1):  # i answers at loss +ε
        many = mpmath.binomial(k, i)
        rows.append(
            ((2 * i - k) * e, many * p**i * (1 - p) ** (k - i), many * (1 - p) ** i * p ** (k - i))
        )
    return rows


def delta_of(rows, epsilon):
    return mpmath.fsum(max(q - mpmath.exp(epsilon) * p, mpmath.mpf(0)) for _, p, q in rows)


def tpr_of(rows, fpr):
    """Neyman-Pearson: reject from the largest loss down, the last atom in part."""
    alpha, tpr = mpmath.mpf(0), mpmath.mpf(0)
    for _, p, q in sorted(rows, key=lambda row: -row[0]):
        part = min(mpmath.mpf(1), (fpr - alpha) / p) if p > 0 else mpmath.mpf(1)
        alpha, tpr = alpha + part * p, tpr + part * q
        if part < 1:
            break
    return tpr


def mu_of(rows, floor=0.0):
    """Largest Φ⁻¹(1 − α) − Φ⁻¹(β) over the vertices with both rates above the floor."""
    alpha, best, beta = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
    for _, p, q in sorted(rows, key=lambda row: -row[0]):
        alpha, beta = alpha + p, beta - q
        if alpha > floor and beta > floor and alpha < 1:
            best = max(best, normal_quantile(1 - alpha) - normal_quantile(beta))
    return best


def normal_quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


@pytest.fixture(scope="module")
def pure():
    epsilon, k = np.array(PURE).T
    return jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.PureDP(epsilon), k)]))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.35, 0.7])
def test_composition_of_pure_dp_profile(pure, share):
    epsilon = [share * e * np.sqrt(k) * 3 for e, k in PURE]
    exact = [float(delta_of(binomial(e, k), t)) for (e, k), t in zip(PURE, epsilon, strict=True)]
    holds(pure.delta(np.array(epsilon)), exact, 2e-3, atol=1e-14)
    if share == 0.0:
        holds(pure.advantage(), exact, 1e-5)


@pytest.mark.parametrize("fpr", [0.2, 1e-2, 1e-5, 1e-10])
def test_composition_of_pure_dp_tpr(pure, fpr):
    exact = [float(tpr_of(binomial(e, k), mpmath.mpf(fpr))) for e, k in PURE]
    holds(pure.tpr(fpr), exact, 2e-3)


def test_composition_of_pure_dp_mu(pure):
    assert np.all(pure.status == 0)
    exact = [float(mu_of(binomial(e, k), 1e-10)) for e, k in PURE]
    holds(pure.mu(), exact, 1e-4)
    # far below what the components' own μ add up to, and never above it
    assert np.all(
        pure.mu().upper
        <= np.sqrt([k for _, k in PURE]) * jaxgdp.gdp.mu_from_pure_dp(epsilon=[e for e, _ in PURE])
    )


def test_fifty_uses_of_a_fifth():
    """The composition example of Liu 2022: 50 uses of 0.2-DP."""
    curve = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.PureDP(0.2), 50)]))
    rows = binomial(0.2, 50)
    holds(curve.mu(), float(mu_of(rows, 1e-10)), 1e-5)
    for delta in (1e-3, 1e-6):
        found = curve.epsilon(delta)
        # δ(ε) falls, so the ends of the bracket enclose δ
        assert delta_of(rows, found.lower) >= delta * (1 - SLACK) and delta_of(
            rows, found.upper
        ) <= delta * (1 + SLACK)
        assert found.upper - found.lower <= 1e-4


def test_composition_of_approximate_dp():
    epsilon, delta, k = 0.3, np.array([1e-6, 1e-3]), 20
    curve = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.ApproximateDP(epsilon, delta), k)]))
    kept = (1 - delta) ** k
    rows = binomial(epsilon, k)
    # Kairouz et al. 2015, Theorem 3.3, at its own ε values, and against the pure composition in
    # between
    for i in range(0, k // 2 + 1):
        terms = (
            mpmath.binomial(k, m)
            * (mpmath.exp((k - m) * epsilon) - mpmath.exp((k - 2 * i + m) * epsilon))
            for m in range(i)
        )
        pure = float(mpmath.fsum(terms) / (1 + mpmath.exp(epsilon)) ** k)
        holds(curve.delta((k - 2 * i) * epsilon), 1 - kept * (1 - pure), 1e-4)
        assert pure == pytest.approx(
            float(delta_of(rows, (k - 2 * i) * mpmath.mpf(epsilon))), abs=1e-14
        )
    holds(curve.delta(0.77), 1 - kept * (1 - float(delta_of(rows, 0.77))), 1e-4)
    assert np.all(
        curve.delta(100.0).lower >= (1 - kept) * (1 - 1e-9)
    )  # mass at infinity is never dropped
    assert np.all(curve.epsilon((1 - kept) / 2).lower == np.inf)
    # TPR at FPR 0 is that mass
    holds(curve.tpr(0.0), 1 - kept, 1e-9)
    # and what is left is the pure composition, for a d that is above that mass (but for its
    # rounding), and nothing for one below
    lost = -np.expm1(k * np.log1p(-delta))
    holds(curve.approximate_mu(lost * (1 + 1e-12)), np.full(2, float(mu_of(rows))), 1e-3)
    assert np.all(curve.approximate_mu(lost).lower <= float(mu_of(rows)) * (1 + SLACK))
    assert np.all(curve.approximate_mu(lost * (1 - 1e-12)).lower == np.inf)


def test_mass_at_infinity_makes_mu_infinite_at_floor_zero():
    curve = jaxgdp.tradeoff(jaxgdp.ApproximateDP(1.0, [0.0, 1e-5]))
    assert curve.mu(0.0).lower[1] == np.inf and curve.tail_mu[1] == np.inf
    holds(
        jaxgdp.Bracket(*(side[0] for side in curve.mu(0.0))),
        jaxgdp.gdp.mu_from_pure_dp(epsilon=1.0),
        1e-6,
    )
    # at the floor the curve is the straight line from (0, δ)
    exact = ndtri(1e-5 + np.e * 1e-10) - ndtri(1e-10)
    holds(jaxgdp.Bracket(*(side[1] for side in curve.mu(1e-10))), exact, 1e-5)
    holds(jaxgdp.Bracket(*(side[1] for side in curve.epsilon(1e-5))), 1.0, 1e-9)


def test_zero_epsilon_is_perfect_privacy():
    curve = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.ApproximateDP(0.0, [0.0, 0.2]), 3)]))
    for bracket in (
        curve.mu(),
        curve.advantage(),
        curve.delta(0.5),
        curve.regret(),
        curve.tpr(0.1),
    ):
        assert not np.any(np.isnan(bracket.lower)) and not np.any(np.isnan(bracket.upper))
    assert curve.mu().upper[0] == 0.0 and curve.advantage().upper[0] <= 1e-9
    holds(curve.delta(1.0), [0.0, 1 - 0.8**3], 1e-9, atol=1e-9)


# --- mixtures -------------------------------------------------------------------------------------


def atoms_of(parts):
    """All sums of atoms (loss, P, Q) of independent parts, by enumeration."""
    rows = [(mpmath.mpf(0), mpmath.mpf(1), mpmath.mpf(1))]
    for part in parts:
        merged = {}
        for (a, p, q), (b, x, y) in itertools.product(rows, part):
            key = mpmath.nstr(a + b, 30)
            old = merged.get(key, (a + b, 0, 0))
            merged[key] = (a + b, old[1] + p * x, old[2] + q * y)
        rows = list(merged.values())
    return rows


def categories(epsilon, k):
    e = mpmath.mpf(epsilon)
    total = mpmath.exp(e) + k - 1
    return [
        (-e, mpmath.exp(e) / total, 1 / total),
        (0, (k - 2) / total, (k - 2) / total),
        (e, 1 / total, mpmath.exp(e) / total),
    ]


def test_mixture_of_incommensurable_atoms():
    # ε with four arbitrary digits each, so that no two losses have a common unit
    mechanism = jaxgdp.compose(
        [
            (jaxgdp.RandomizedResponse(0.7312, 4), 3),
            (jaxgdp.PureDP(0.3183), 4),
            (jaxgdp.RandomizedResponse(1.1031, 2), 1),
            (jaxgdp.ApproximateDP(0.2, 1e-4), 2),
        ]
    )
    curve = jaxgdp.tradeoff(mechanism)
    parts = (
        [categories(0.7312, 4)] * 3
        + [categories(0.3183, 2)] * 4
        + [categories(1.1031, 2)]
        + [categories(0.2, 2)] * 2
    )
    rows, kept = atoms_of(parts), (1 - 1e-4) ** 2
    for epsilon in (0.0, 0.4, 1.3, 3.0, 4.5):
        exact = 1 - kept * (1 - float(delta_of(rows, epsilon)))
        holds(curve.delta(epsilon), exact, 5e-3)
    for fpr in (1e-6, 1e-3, 0.1):
        exact = 1 - kept + kept * float(tpr_of(rows, mpmath.mpf(fpr) / kept))
        holds(curve.tpr(fpr), exact, 5e-3)


def test_mixture_with_gaussian_and_laplace():
    """δ(ε) is the mean of the Gaussian δ(ε − l) over the other parts' loss l under Q: a sum and a
    quadrature.
    """
    sigma, scale, rr = 1.7, 1.4, 0.6
    mechanism = jaxgdp.compose(
        [(jaxgdp.Gaussian(sigma), 2), jaxgdp.Laplace(scale), (jaxgdp.PureDP(rr), 2)]
    )
    mu, length = mpmath.sqrt(2) / sigma, 1 / mpmath.mpf(scale)

    def gaussian_delta(epsilon):
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )

    def exact(epsilon):
        total = mpmath.mpf(0)
        for loss, _, q in binomial(rr, 2):
            shifted = epsilon - loss
            total += q * mpmath.exp(-length) / 2 * gaussian_delta(shifted + length)
            total += q / 2 * gaussian_delta(shifted - length)
            total += q * mpmath.quad(
                lambda l, s=shifted: mpmath.exp((l - length) / 2) / 4 * gaussian_delta(s - l),
                [-length, 0, length],
            )
        return float(total)

    curve = jaxgdp.tradeoff(mechanism)
    with mpmath.workdps(20):
        grid = [0.0, 0.5, 1.5, 3.0, 6.0]
        deltas = [exact(mpmath.mpf(e)) for e in grid]
    for epsilon, delta in zip(grid, deltas, strict=True):
        holds(curve.delta(epsilon), delta, 5e-3)
    holds(curve.advantage(), deltas[0], 1e-3)
    through = jaxgdp.gdp.mu_from_epsilon_delta(epsilon=np.array(grid), delta=np.array(deltas))
    # no point of the profile may lie above the reported Gaussian
    assert np.all(through <= curve.mu().upper * (1 + SLACK))
    assert curve.mu().upper - curve.mu().lower <= 1e-3 * curve.mu().upper


def test_order_and_splitting_change_nothing():
    parts = [
        (jaxgdp.Laplace(2.0), 3),
        (jaxgdp.PureDP(0.4), 5),
        (jaxgdp.ApproximateDP(0.1, 1e-6), 1),
    ]
    whole = jaxgdp.tradeoff(jaxgdp.compose(parts))
    split = jaxgdp.tradeoff(
        jaxgdp.compose([(jaxgdp.PureDP(0.4), 2), *parts[::2], (jaxgdp.PureDP(0.4), 3)])
    )
    for name, argument in (("delta", 0.5), ("tpr", 1e-3), ("mu", 1e-10)):
        a, b = getattr(whole, name)(argument), getattr(split, name)(argument)
        assert a.lower <= b.upper * (1 + SLACK) and b.lower <= a.upper * (1 + SLACK)
        assert a.upper == pytest.approx(b.upper, rel=1e-3)


def test_batch_equals_loop():
    epsilon, scale, count = (
        np.array([0.2, 1.0, 0.5]),
        np.array([1.0, 3.0, 0.7]),
        np.array([1, 7, 30]),
    )
    batch = jaxgdp.tradeoff(
        jaxgdp.compose([(jaxgdp.PureDP(epsilon), count), jaxgdp.Laplace(scale)])
    )
    for i in range(3):
        one = jaxgdp.tradeoff(
            jaxgdp.compose([(jaxgdp.PureDP(epsilon[i]), count[i]), jaxgdp.Laplace(scale[i])])
        )
        for name, argument in (("mu", 1e-10), ("delta", 0.5), ("tpr", 1e-3)):
            together, alone = getattr(batch, name)(argument), getattr(one, name)(argument)
            assert np.allclose([together.lower[i], together.upper[i]], alone, rtol=1e-6)


# --- adjacency ------------------------------------------------------------------------------------


def test_replace_one():
    pairs = [
        (jaxgdp.Gaussian(3.0), jaxgdp.Gaussian(1.5)),
        (jaxgdp.Laplace(3.0), jaxgdp.Laplace(1.5)),
        (jaxgdp.dpsgd(3.0, 1.0, 2), jaxgdp.dpsgd(1.5, 1.0, 2)),
        (jaxgdp.PureDP(0.7), jaxgdp.PureDP(0.7)),
        (jaxgdp.ApproximateDP(0.7, 1e-3), jaxgdp.ApproximateDP(0.7, 1e-3)),
        (jaxgdp.RandomizedResponse(0.7, 5), jaxgdp.RandomizedResponse(0.7, 5)),
    ]
    for mechanism, same in pairs:
        replaced = jaxgdp.tradeoff(mechanism, adjacency="replace_one")
        expected = jaxgdp.tradeoff(same)
        assert replaced.adjacency == "replace_one"
        assert np.allclose(replaced.mu(), expected.mu(), rtol=1e-12)
        assert np.allclose(replaced.delta(0.3), expected.delta(0.3), rtol=1e-12)


def test_replace_one_is_refused_where_unsound():
    mechanism = jaxgdp.compose(
        [(jaxgdp.Laplace(1.0), 2), (jaxgdp.SubsampledGaussian(1.0, [1.0, 0.5]), 3)]
    )
    with pytest.raises(
        ValueError,
        match="adjacency must be one of .* for a SubsampledGaussian .* got 'replace_one'",
    ):
        jaxgdp.tradeoff(mechanism, adjacency="replace_one")
    assert "replace_one" in jaxgdp.report(jaxgdp.PureDP(1.0), adjacency="replace_one").to_markdown()


def test_symmetric_pairs_have_one_curve():
    mechanism = jaxgdp.compose([(jaxgdp.Laplace(1.0), 2), (jaxgdp.RandomizedResponse(0.5, 3), 2)])
    curves = [jaxgdp.tradeoff(mechanism, adjacency=a) for a in ("add", "remove", "add_remove")]
    for curve in curves[:2]:
        assert np.allclose(curve.mu(), curves[2].mu(), rtol=1e-6)
        assert np.allclose(curve.delta([0.2, 1.0]), curves[2].delta([0.2, 1.0]), rtol=1e-4)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: jaxgdp.Laplace(0.0), "scale"),
        (lambda: jaxgdp.Laplace(np.nan), "scale"),
        (lambda: jaxgdp.RandomizedResponse(-1.0), "epsilon"),
        (lambda: jaxgdp.RandomizedResponse(1.0, 1), "num_categories"),
        (lambda: jaxgdp.RandomizedResponse(1.0, 2.5), "num_categories"),
        (lambda: jaxgdp.RandomizedResponse([1.0, 2.0], [2, 3, 4]), "epsilon .* num_categories"),
        (lambda: jaxgdp.PureDP(np.inf), "epsilon"),
        (lambda: jaxgdp.PureDP("much"), "epsilon"),
        (lambda: jaxgdp.ApproximateDP(1.0, 1.0), "delta"),
        (lambda: jaxgdp.ApproximateDP(1.0, -1e-9), "delta"),
        (lambda: jaxgdp.ApproximateDP(-1.0, 0.1), "epsilon"),
    ],
)
def test_bad_parameters(build, name):
    with pytest.raises(ValueError, match=name):
        build()


# --- many random mixtures, in the batched path that asks for single numbers -----------------------


def float_atoms(parts):
    """Losses, P- and Q-masses of a composition of two- and three-point laws in float64, all sums of
    atoms.
    """
    loss, p, q = np.zeros(1), np.ones(1), np.ones(1)
    for a, x in parts:
        x = np.asarray(x)
        loss = np.add.outer(loss, a).ravel()
        p, q = np.multiply.outer(p, x).ravel(), np.multiply.outer(q, x[::-1]).ravel()
    order = np.argsort(-loss)
    return loss[order], p[order], q[order]


@pytest.mark.parametrize("number", first(1, (25, 60)))
def test_random_mixtures_hold_the_exact_numbers(number):
    rng = np.random.default_rng(3)
    floor = 1e-10
    epsilon = np.exp(rng.uniform(np.log(0.01), np.log(4.0), (3, number)))
    k, count = rng.integers(2, 50, number), rng.integers(1, 4, (3, number))
    delta = np.where(rng.random(number) < 0.5, 0.0, 10.0 ** rng.uniform(-9, -2, number))
    mechanism = jaxgdp.compose(
        [
            (jaxgdp.RandomizedResponse(epsilon[0], k), count[0]),
            (jaxgdp.PureDP(epsilon[1]), count[1]),
            (jaxgdp.ApproximateDP(epsilon[2], delta), count[2]),
        ]
    )
    names = {"mu": None, "advantage": None, "delta": 1.0, "tpr": 1e-3, "epsilon": 1e-5}
    found = run_engine(mechanism, names, fpr_floor=floor)
    for name, bracket in found.brackets.items():
        assert not np.any(np.isnan(bracket)) and np.all(bracket.lower <= bracket.upper), name
        assert np.all(found.status[name] == 0), name

    def check(name, i, exact, rtol):
        bracket = found.brackets[name]
        holds(jaxgdp.Bracket(bracket.lower[i], bracket.upper[i]), exact, rtol, atol=1e-12)

    for i in range(number):
        total = np.exp(epsilon[0, i]) + k[i] - 1
        three = np.array([np.exp(epsilon[0, i]), k[i] - 2, 1.0]) / total
        parts = [(epsilon[0, i] * np.array([-1, 0, 1]), three)] * count[0, i]
        for j in (1, 2):
            two = np.exp(epsilon[j, i]) / (1 + np.exp(epsilon[j, i]))
            parts += [(epsilon[j, i] * np.array([-1, 1]), np.array([two, 1 - two]))] * count[j, i]
        loss, p, q = float_atoms(parts)
        lost = -np.expm1(count[2, i] * np.log1p(-delta[i]))
        p, q = (1 - lost) * p, (1 - lost) * q
        check("advantage", i, lost + np.sum(np.maximum(q - p, 0)), 1e-2)
        check("delta", i, lost + np.sum(np.maximum(q - np.e * p, 0)), 2e-2)
        alpha, tpr = np.cumsum(p), lost + np.cumsum(q)
        check("tpr", i, np.interp(1e-3, np.append(0, alpha), np.append(lost, tpr)), 2e-2)
        beta = (1 - lost) - np.cumsum(q)
        inside = (alpha >= floor) & (
            beta >= 1e-7
        )  # (below, a sum from the right has lost its digits)
        at_floor = np.interp(floor, np.append(0, alpha), np.append(lost, tpr))
        mu = np.max(
            np.append(-ndtri(beta[inside]) - ndtri(alpha[inside]), ndtri(at_floor) - ndtri(floor))
        )
        check("mu", i, mu, 1e-3)
        upper, lower = found.brackets["epsilon"].upper[i], found.brackets["epsilon"].lower[i]
        for side, sign in ((upper, 1), (lower, -1)):
            if np.isfinite(side) and side > 0:
                here = lost + np.sum(np.maximum(q - np.exp(side) * p, 0))
                assert sign * (1e-5 - here) >= -1e-12
        assert np.isinf(upper) == (lost > 1e-5)
