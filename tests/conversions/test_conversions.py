"""Conversions against closed forms, long arithmetic and published numbers; every root on its safe
side.
"""

import mpmath as mp
import numpy as np
import pytest

from jaxgdp import conversions, gdp

ALPHAS = (1e-200, 1e-10, 1e-3, 0.2, 0.5, 0.9, 0.999999)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def divergence(order, heads, other):
    """D_t between coins with chances ``heads`` and ``other`` of heads, straight from the
    definition.
    """
    p, q = mp.mpf(heads), mp.mpf(other)
    if order == 1:
        return p * mp.log(p / q) + (1 - p) * mp.log((1 - p) / (1 - q))
    total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return mp.log(total) / (order - 1)


def excess(order, alpha, beta):
    """The larger of both directions."""
    return max(
        divergence(order, 1 - mp.mpf(beta), alpha), divergence(order, alpha, 1 - mp.mpf(beta))
    )


def just_above(alpha, beta, slack):
    """β and a little more: relative to β and to 1 − α − β, and a few last digits of a double."""
    beta = mp.mpf(beta)
    return beta + slack * min(beta, 1 - mp.mpf(alpha) - beta) + mp.mpf("4e-15") * beta


@pytest.mark.parametrize("order", [0.5, 0.75, 1.0, 1.001, 1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("rho", [1e-8, 0.02, 0.7, 20.0])
@mp.workdps(330)
def test_rdp_curve_is_the_root_from_below(order, rho):
    found = conversions.beta_from_rdp(
        fpr=ALPHAS, orders=[order], rho=np.full((len(ALPHAS), 1), rho)
    )
    for alpha, beta in zip(ALPHAS, found, strict=True):
        if beta == 0.0:
            assert excess(mp.mpf(order), alpha, mp.mpf("1e-306")) <= mp.mpf(rho)
            continue
        assert excess(mp.mpf(order), alpha, beta) >= mp.mpf(rho) * (1 - mp.mpf(10) ** -30)
        # and no more than rounding below the root
        above = just_above(alpha, beta, 1e-7 if rho < 1e-6 else 1e-10)
        assert above >= 1 - mp.mpf(alpha) or excess(mp.mpf(order), alpha, above) <= mp.mpf(rho)


def test_order_infinity_is_pure_dp_and_more_orders_never_hurt():
    alphas = np.array([0.0, 1e-12, 0.01, 0.3, 0.7, 1.0])
    pure = conversions.beta_from_rdp(fpr=alphas, orders=[np.inf], rho=np.full((6, 1), 1.3))
    np.testing.assert_allclose(
        pure, conversions.beta_from_approximate_dp(fpr=alphas, epsilon=1.3, delta=0.0), rtol=1e-12
    )
    one = conversions.beta_from_rdp(fpr=alphas, orders=[2.0], rho=np.full((6, 1), 1.0))
    two = conversions.beta_from_rdp(fpr=alphas, orders=[2.0, 5.0], rho=np.tile([1.0, 2.0], (6, 1)))
    assert np.all(two >= one) and np.any(two > one)
    np.testing.assert_array_equal(
        conversions.beta_from_rdp(
            fpr=alphas, orders=[2.0, 4.0], rho=np.tile([1.0, np.inf], (6, 1))
        ),
        one,
    )


def test_zcdp_curve_meets_its_numbers():
    found = conversions.beta_from_zcdp(fpr=[0.1, 0.2, 0.3], rho=0.5)
    np.testing.assert_allclose(found, [0.516272, 0.338569, 0.228618], atol=6e-7)
    # 0.875405 was found on a coarser grid of orders: a valid bound, a little looser than the best
    # order
    assert 0.875405 <= conversions.beta_from_zcdp(fpr=0.01, rho=0.5) <= 0.875415
    assert conversions.advantage_from_zcdp(rho=0.5) == pytest.approx(0.479098, abs=6e-7)


@pytest.mark.parametrize(
    ("alpha", "rho"), [(1e-8, 0.3), (0.01, 0.5), (0.1, 1e-4), (0.3, 0.5), (0.45, 4.0), (0.99, 0.05)]
)
def test_zcdp_curve_is_the_best_over_all_orders(alpha, rho):
    beta = mp.mpf(float(conversions.beta_from_zcdp(fpr=alpha, rho=rho)))

    def largest(point):
        """max over t of D_t − tρ, by golden section about the best of a grid of orders."""

        def gap(log_s):
            order = 1 + mp.e**log_s
            return excess(order, alpha, point) - order * rho

        grid = [mp.mpf(k) / 10 for k in range(-60, 120)]
        start = max(grid, key=gap)
        low, high = start - mp.mpf(1) / 10, start + mp.mpf(1) / 10
        ratio = (mp.sqrt(5) - 1) / 2
        for _ in range(80):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (a, high) if gap(a) < gap(b) else (low, b)
        return max(gap((low + high) / 2), excess(mp.mpf(1), alpha, point) - rho)

    assert largest(beta) >= 0
    above = just_above(alpha, beta, mp.mpf("1e-8"))
    assert above >= 1 - mp.mpf(alpha) or largest(above) <= 0


def test_real_mechanisms_obey_the_curves_implied_by_their_zcdp():
    alphas = np.array([1e-9, 1e-4, 0.01, 0.1, 0.4, 0.8])
    for mu in (0.1, 1.0, 3.0):
        rho = gdp.zcdp(mu=mu)
        assert np.all(
            conversions.beta_from_zcdp(fpr=alphas, rho=rho) <= gdp.beta(fpr=alphas, mu=mu)
        )
        assert conversions.advantage_from_zcdp(rho=rho) >= gdp.advantage(mu=mu)
        epsilons = np.array([0.1, 1.0, 5.0])
        assert np.all(
            conversions.delta_from_zcdp(epsilon=epsilons, rho=rho)
            >= gdp.delta(epsilon=epsilons, mu=mu)
        )
    for eps in (0.2, 1.0, 5.0):
        curve = conversions.beta_from_approximate_dp(fpr=alphas, epsilon=eps, delta=0.0)
        assert np.all(
            conversions.beta_from_zcdp(fpr=alphas, rho=conversions.zcdp_from_pure_dp(epsilon=eps))
            <= curve
        )


def test_gaussian_rdp_at_one_order_matches_its_closed_form():
    orders = np.array([1.5, 2.0, 10.0])
    eta = conversions.advantage_from_rdp(orders=orders, rho=gdp.rdp(order=orders, mu=1.0))
    exact = []
    for t in orders:
        gap = lambda L: mp.log(mp.cosh((t - 0.5) * L) / mp.cosh(L / 2)) - (t - 1) * t / 2  # noqa: B023
        exact.append(mp.tanh(mp.findroot(gap, (0.1, 3.0), solver="anderson") / 2))
    assert eta >= min(exact)
    assert float(eta) == pytest.approx(float(min(exact)), rel=1e-12)


@pytest.mark.parametrize("rho", [1e-6, 0.1, 0.5, 3.0, 50.0])
def test_zcdp_advantage_is_the_symmetric_point(rho):
    eta = float(conversions.advantage_from_zcdp(rho=rho))
    alpha = 0.5 * (1.0 - eta)
    if alpha > 1e-12:
        assert conversions.beta_from_zcdp(fpr=alpha, rho=rho) == pytest.approx(alpha, rel=1e-9)
    # beyond Pinsker: η ≤ √(ρ/2), and η < 1 always
    assert eta <= min(np.sqrt(rho / 2.0), 1.0)


@pytest.mark.parametrize(
    ("delta", "rho"), [(1e-10, 2.56), (1e-5, 0.01), (0.3, 1.0), (1e-200, 5.0), (1e-6, 1e-9)]
)
def test_zcdp_to_epsilon_is_the_minimum_over_orders(delta, rho):
    found = float(conversions.epsilon_from_zcdp(delta=delta, rho=rho))

    def bound(log_s):
        s = mp.e**log_s
        t = 1 + s
        return t * rho + mp.log(1 - 1 / t) - (mp.log(mp.mpf(delta)) + mp.log(t)) / s

    grid = [mp.mpf(k) / 8 for k in range(-80, 240)]
    start = min(grid, key=bound)
    low, high = start - mp.mpf(1) / 8, start + mp.mpf(1) / 8
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if bound(a) < bound(b) else (a, high)
    best = max(bound((low + high) / 2), 0)
    assert found >= best
    assert found <= float(best) * (1 + 1e-10) + 1e-300
    assert found <= float(conversions.simple_epsilon_from_zcdp(delta=delta, rho=rho)) * (1 + 1e-15)
    if found > 0.0:
        assert float(conversions.delta_from_zcdp(epsilon=found, rho=rho)) == pytest.approx(
            delta, rel=1e-6
        )


def test_census_epsilons_as_published():
    """Abowd et al. 2022: ε = 17.14 for persons and 2.47 for units at δ = 1e-10; the simple formula
    gives more.
    """
    rho = np.array([(542 / 339) ** 2, (3379 / 12343) ** 2])
    np.testing.assert_allclose(
        conversions.simple_epsilon_from_zcdp(delta=1e-10, rho=rho), [17.9002, 2.7022], atol=5e-5
    )
    np.testing.assert_array_equal(
        conversions.epsilon_from_zcdp(delta=1e-10, rho=rho).round(2), [17.14, 2.47]
    )


def test_simple_conversions_are_inverse():
    eps = conversions.simple_epsilon_from_zcdp(delta=1e-7, rho=[0.0, 0.01, 2.0])
    np.testing.assert_allclose(
        conversions.simple_delta_from_zcdp(epsilon=eps, rho=[0.0, 0.01, 2.0]),
        [0.0, 1e-7, 1e-7],
        rtol=1e-12,
    )
    assert conversions.simple_delta_from_zcdp(epsilon=0.5, rho=1.0) == 1.0


def test_rdp_to_epsilon_and_back():
    orders = np.array([0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0])
    rho = gdp.rdp(order=orders, mu=0.8)
    eps = conversions.epsilon_from_rdp(delta=[1e-3, 1e-6], orders=orders, rho=rho)
    np.testing.assert_allclose(
        conversions.delta_from_rdp(epsilon=eps, orders=orders, rho=rho), [1e-3, 1e-6], rtol=1e-10
    )
    pairs = [(mp.mpf(t), mp.mpf(r)) for t, r in zip(orders, rho, strict=True) if t > 1.0]
    best = min(
        r + mp.log(1 - 1 / t) - (mp.log(mp.mpf(1e-6)) + mp.log(t)) / (t - 1) for t, r in pairs
    )
    assert best <= eps[1] <= float(best) * (1 + 1e-13)
    assert np.all(eps >= gdp.epsilon(delta=[1e-3, 1e-6], mu=0.8))
    # few orders give no better answer than all of them
    assert np.all(eps >= conversions.epsilon_from_zcdp(delta=[1e-3, 1e-6], rho=0.32))
    assert conversions.epsilon_from_rdp(delta=0.5, orders=[0.5, 1.0], rho=[1.0, 1.0]) == np.inf
    assert conversions.delta_from_rdp(epsilon=0.5, orders=[0.5, 1.0], rho=[1.0, 1.0]) == 1.0
    # an infinite order is pure DP: δ(ε) of randomized response
    assert conversions.delta_from_rdp(epsilon=0.5, orders=[np.inf], rho=[1.0]) == pytest.approx(
        (np.e - np.exp(0.5)) / (1 + np.e), rel=1e-13
    )
    assert conversions.epsilon_from_rdp(
        delta=(np.e - np.exp(0.5)) / (1 + np.e), orders=[np.inf], rho=[1.0]
    ) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_zcdp_of_pure_dp_is_the_largest_divergence_per_order(eps):
    heads = 1 / (1 + mp.e ** -mp.mpf(eps))
    ratios = [divergence(mp.mpf(t), heads, 1 - heads) / t for t in (1, 1.0001, 1.1, 2, 5, 50, 500)]
    assert all(a > b for a, b in zip(ratios, ratios[1:], strict=False))
    assert float(conversions.zcdp_from_pure_dp(epsilon=eps)) == pytest.approx(
        float(ratios[0]), rel=1e-14
    )
    assert conversions.zcdp_from_pure_dp(epsilon=eps) <= eps * eps / 2


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_zcdp_of_the_exponential_mechanism_covers_its_pairs(eps):
    """Pairs of an ε-bounded-range mechanism: q = (e^{−t} − e^{−ε})/(1 − e^{−ε}), losses t and t −
    ε.
    """
    rho = float(conversions.zcdp_from_exponential_mechanism(epsilon=eps))
    for share in np.linspace(0.05, 0.95, 19):
        t = mp.mpf(share) * eps
        q = (mp.exp(-t) - mp.exp(-mp.mpf(eps))) / (1 - mp.exp(-mp.mpf(eps)))
        p = mp.exp(t) * q
        for order in (1, 1.5, 2, 10, 100):
            assert divergence(mp.mpf(order), p, q) <= order * rho
            assert divergence(mp.mpf(order), q, p) <= order * rho


def test_propositions_6_1_and_6_2():
    eps = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    expected = [0.0, 0.623893, 1.232035, 2.357961, 4.194478]
    np.testing.assert_allclose(
        conversions.mu_from_approximate_dp(epsilon=eps, delta=0.0), expected, atol=6e-7
    )
    assert np.all(np.isinf(conversions.mu_from_approximate_dp(epsilon=eps, delta=1e-300)))
    # f(0) = 1 − δ < 1 = f_μ(0): why no finite μ will do
    assert conversions.beta_from_approximate_dp(fpr=0.0, epsilon=1.0, delta=0.25) == 0.75


def test_approximate_dp_curve_and_advantage():
    alphas = np.linspace(0.0, 1.0, 100_001)
    for eps, delta in ((0.0, 0.0), (0.3, 0.1), (1.0, 1e-5), (2.0, 0.0), (800.0, 0.5)):
        curve = conversions.beta_from_approximate_dp(fpr=alphas, epsilon=eps, delta=delta)
        assert np.all(np.diff(curve) <= 0.0) and np.all(curve <= 1.0 - alphas)
        best = np.max(1.0 - alphas - curve)
        found = conversions.advantage_from_approximate_dp(epsilon=eps, delta=delta)
        assert best - 1e-12 <= found <= best + 3e-5
        # symmetric: f(f(α)) = α where f is strictly decreasing
        inside = (alphas > 0.0) & (curve > 0.0) & (curve < 1.0 - delta)
        if np.any(inside):
            twice = conversions.beta_from_approximate_dp(
                fpr=curve[inside], epsilon=eps, delta=delta
            )
            np.testing.assert_allclose(twice, alphas[inside], atol=1e-9)


def test_table_3_of_the_paper():
    found = conversions.table3()
    assert found.shape == (8, 3)
    np.testing.assert_array_equal(found.round(2), conversions.TABLE3_PRINTED)
    eps, delta = np.meshgrid(conversions.TABLE3_EPSILONS, conversions.TABLE3_DELTAS, indexing="ij")
    np.testing.assert_allclose(gdp.delta(epsilon=eps, mu=found), delta, rtol=1e-9)
    # the paper's remark: (8, 1e-9) is more private than (6, 1e-5)
    assert found[6, 2] < found[5, 0]


def tail_after_shift(alpha, mu):
    """Φ(Φ⁻¹(α) + μ) for small α."""
    z = mp.findroot(
        lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2) - mp.log(alpha), mp.sqrt(-2 * mp.log(alpha))
    )
    return mp.erfc((z - mu) / mp.sqrt(2)) / 2


@pytest.mark.parametrize("mu", [1e-3, 0.2, 1.0, 4.0, 12.0])
def test_mu_implies_the_other_quantities(mu):
    m = mp.mpf(mu)
    assert float(gdp.advantage(mu=mu)) == pytest.approx(float(2 * mp.ncdf(m / 2) - 1), rel=1e-14)
    assert float(gdp.advantage(mu=mu)) == pytest.approx(
        float(gdp.delta(epsilon=0.0, mu=mu)), rel=1e-12
    )
    assert float(gdp.mu_from_advantage(advantage=gdp.advantage(mu=0.5 * mu))) == pytest.approx(
        0.5 * mu, rel=1e-6
    )
    fprs = np.array([1e-200, 1e-9, 0.1, 0.5])
    np.testing.assert_allclose(
        gdp.tpr(fpr=fprs[1:], mu=mu), 1.0 - gdp.beta(fpr=fprs[1:], mu=mu), rtol=1e-6
    )
    assert float(gdp.tpr(fpr=1e-200, mu=mu)) == pytest.approx(
        float(tail_after_shift(mp.mpf("1e-200"), m)), rel=1e-10
    )
    np.testing.assert_allclose(
        gdp.mu_from_rates(fpr=fprs[1:], tpr=np.minimum(gdp.tpr(fpr=fprs[1:], mu=0.5), 0.9))
        <= 0.5 + 1e-12,
        True,
    )
    # Rényi divergence and KL of N(μ, 1) from N(0, 1) by quadrature
    density = lambda x, c: mp.npdf(x, c, 1)
    if mu <= 4.0:
        moment = mp.quad(lambda x: density(x, m) ** 2 / density(x, 0), mp.linspace(-12, 20, 9))
        assert float(gdp.rdp(order=2.0, mu=mu)) == pytest.approx(float(mp.log(moment)), rel=1e-9)
    assert float(gdp.zcdp(mu=mu)) == pytest.approx(mu * mu / 2)
    assert float(gdp.mu_from_zcdp_of_gaussian(rho=gdp.zcdp(mu=mu))) == pytest.approx(mu)
    grid = np.concatenate([np.geomspace(1e-30, 0.5, 20_000), np.linspace(0.5, 1.0, 10_001)])
    for prior in (0.01, 0.5, 0.8):
        errors = prior * grid + (1.0 - prior) * gdp.beta(fpr=grid, mu=mu)
        assert gdp.bayes_risk(prior=prior, mu=mu) <= np.min(errors) + 1e-15
        assert gdp.bayes_risk(prior=prior, mu=mu) == pytest.approx(
            min(np.min(errors), 1.0 - prior), rel=1e-4
        )


def test_limits_of_gaussian_numbers():
    np.testing.assert_array_equal(
        gdp.bayes_risk(prior=[0.0, 0.3, 1.0], mu=[[0.0], [2.0]])[:, [0, 2]], 0.0
    )
    assert gdp.bayes_risk(prior=0.3, mu=0.0) == pytest.approx(0.3)
    assert gdp.advantage(mu=0.0) == 0.0 and gdp.tpr(fpr=0.25, mu=0.0) == pytest.approx(0.25)


def test_trivial_ends_and_broadcasting():
    np.testing.assert_array_equal(
        conversions.beta_from_zcdp(fpr=[0.0, 0.25, 1.0], rho=0.0), [1.0, 0.75, 0.0]
    )
    np.testing.assert_array_equal(conversions.beta_from_zcdp(fpr=[0.0, 1.0], rho=3.0), [1.0, 0.0])
    assert (
        conversions.advantage_from_zcdp(rho=0.0)
        == conversions.epsilon_from_zcdp(delta=0.1, rho=0.0)
        == 0.0
    )
    assert conversions.delta_from_zcdp(epsilon=1.0, rho=0.0) == 0.0
    grid = conversions.beta_from_zcdp(fpr=np.array([[0.1], [0.2]]), rho=np.array([0.1, 0.5, 2.0]))
    assert grid.shape == (2, 3) and grid.dtype == np.float64
    assert grid[1, 1] == conversions.beta_from_zcdp(fpr=0.2, rho=0.5)
    assert conversions.epsilon_from_zcdp(delta=[[1e-5], [1e-6]], rho=[0.1, 0.2, 0.3]).shape == (
        2,
        3,
    )
    assert conversions.beta_from_rdp(
        fpr=[0.1, 0.2], orders=[2.0, 3.0], rho=np.ones((4, 1, 2))
    ).shape == (4, 2)
    assert conversions.advantage_from_rdp(orders=[2.0, 3.0], rho=np.ones((5, 2))).shape == (5,)
    # curves decrease in α and in ρ
    assert np.all(np.diff(grid, axis=0) < 0.0) and np.all(np.diff(grid, axis=1) < 0.0)


BAD = [
    (lambda: conversions.beta_from_zcdp(fpr=1.5, rho=0.5), "fpr must be"),
    (lambda: conversions.beta_from_zcdp(fpr=0.5, rho=-1.0), "rho must be"),
    (lambda: conversions.beta_from_zcdp(fpr=[0.1, 0.2], rho=[1.0, 2.0, 3.0]), "shapes"),
    (lambda: conversions.advantage_from_zcdp(rho=np.nan), "rho must be"),
    (lambda: conversions.epsilon_from_zcdp(delta=-0.1, rho=1.0), "delta must be"),
    (lambda: conversions.delta_from_zcdp(epsilon=-1.0, rho=1.0), "epsilon must be"),
    (lambda: conversions.simple_epsilon_from_zcdp(delta=1.5, rho=1.0), "delta must be"),
    (lambda: conversions.simple_delta_from_zcdp(epsilon=np.inf, rho=1.0), "epsilon must be"),
    (
        lambda: conversions.beta_from_rdp(fpr=0.1, orders=[0.4], rho=[1.0]),
        "orders must be >= 0.5, got 0.4",
    ),
    (lambda: conversions.beta_from_rdp(fpr=0.1, orders=[np.nan], rho=[1.0]), "orders must be"),
    (lambda: conversions.beta_from_rdp(fpr=0.1, orders=[], rho=[]), "orders must be"),
    (lambda: conversions.beta_from_rdp(fpr=0.1, orders=2.0, rho=[1.0]), "orders must be"),
    (
        lambda: conversions.beta_from_rdp(fpr=0.1, orders=[2.0, 3.0], rho=[1.0]),
        "one value per order",
    ),
    (
        lambda: conversions.beta_from_rdp(fpr=0.1, orders=[2.0], rho=[-1.0]),
        "rho must be >= 0, got -1",
    ),
    (lambda: conversions.beta_from_rdp(fpr=0.1, orders=[2.0], rho=[np.nan]), "rho must be"),
    (lambda: conversions.beta_from_rdp(fpr=0.1, orders=["two"], rho=[1.0]), "numbers"),
    (lambda: conversions.epsilon_from_rdp(delta=2.0, orders=[2.0], rho=[1.0]), "delta must be"),
    (
        lambda: conversions.delta_from_rdp(epsilon=np.nan, orders=[2.0], rho=[1.0]),
        "epsilon must be",
    ),
    (lambda: conversions.zcdp_from_pure_dp(epsilon=-0.1), "epsilon must be"),
    (lambda: conversions.zcdp_from_exponential_mechanism(epsilon=np.inf), "epsilon must be"),
    (lambda: conversions.mu_from_approximate_dp(epsilon=1.0, delta=1.5), "delta must be"),
    (lambda: conversions.beta_from_approximate_dp(fpr=-0.1, epsilon=1.0, delta=0.1), "fpr must be"),
    (lambda: conversions.advantage_from_approximate_dp(epsilon=-1.0, delta=0.1), "epsilon must be"),
    (lambda: conversions.table3(epsilons=1.0), "epsilons must be one-dimensional"),
    (lambda: conversions.table3(deltas=[0.0]), "delta must be"),
    (lambda: gdp.tpr(fpr=1.5, mu=1.0), "fpr must be"),
    (lambda: gdp.advantage(mu=-1.0), "mu must be"),
    (lambda: gdp.bayes_risk(prior=2.0, mu=1.0), "prior must be"),
    (lambda: gdp.rdp(order=0.0, mu=1.0), "order must be"),
    (lambda: gdp.zcdp(mu=np.nan), "mu must be"),
    (lambda: gdp.mu_from_advantage(advantage=1.0), "advantage must be"),
    (lambda: gdp.mu_from_rates(fpr=0.0, tpr=0.5), "fpr must be"),
    (lambda: gdp.mu_from_zcdp_of_gaussian(rho=-1.0), "rho must be"),
]


@pytest.mark.parametrize(("call", "named"), BAD)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_extremes_stay_ordered():
    alphas = np.array([1e-300, 1e-12, 1e-3, 0.1, 0.5, 0.9, 1.0 - 1e-9])
    rhos = np.array([1e-300, 1e-14, 1e-3, 1.0, 1e3, 1e6])[:, None]
    curve = conversions.beta_from_zcdp(fpr=alphas, rho=rhos)
    assert np.all((curve >= 0.0) & (curve <= 1.0 - alphas))
    assert np.all(np.diff(curve, axis=0) <= 0.0) and np.all(np.diff(curve, axis=1) <= 0.0)
    eta = conversions.advantage_from_zcdp(rho=rhos[:, 0])
    assert np.all(np.diff(eta) >= 0.0) and np.all(
        eta >= gdp.advantage(mu=gdp.mu_from_zcdp_of_gaussian(rho=rhos[:, 0]))
    )
    deltas = np.array([1e-300, 1e-10, 0.5, 1.0 - 1e-12])
    eps = conversions.epsilon_from_zcdp(delta=deltas, rho=rhos)
    assert (
        np.all(np.isfinite(eps))
        and np.all(np.diff(eps, axis=0) >= 0.0)
        and np.all(np.diff(eps, axis=1) <= 0.0)
    )
    epsilons = np.array([0.0, 1e-6, 1.0, 10.0, 1e3])
    delta = conversions.delta_from_zcdp(epsilon=epsilons, rho=rhos)
    assert np.all(delta >= gdp.delta(epsilon=epsilons, mu=np.sqrt(2.0 * rhos)) * (1.0 - 1e-12))
    assert np.all(
        delta
        <= conversions.simple_delta_from_zcdp(epsilon=epsilons, rho=rhos) * (1.0 + 1e-9) + 1e-300
    )


def test_curve_of_zcdp_is_convex():
    alphas = np.linspace(0.001, 0.999, 999)
    assert np.min(np.diff(conversions.beta_from_zcdp(fpr=alphas, rho=0.5), 2)) >= -1e-12


def test_epsilon_at_delta_0_and_1_is_the_largest_loss_and_nothing():
    """A bounded loss has ε(0) < ∞; ρ-zCDP and Rényi orders bound none; δ = 1 asks nothing."""
    ends = [0.0, 1.0]
    for convert in (conversions.epsilon_from_zcdp, conversions.simple_epsilon_from_zcdp):
        assert convert(delta=ends, rho=0.5).tolist() == [np.inf, 0.0]
        assert convert(delta=ends, rho=0.0).tolist() == [0.0, 0.0]
    finite = conversions.epsilon_from_rdp(delta=ends, orders=[2.0], rho=[1.0])
    assert finite.tolist() == [np.inf, 0.0]
    pure = conversions.epsilon_from_rdp(delta=ends, orders=[2.0, np.inf], rho=[1.0, 3.0])
    assert pure[0] == pytest.approx(3.0, rel=1e-9) and pure[0] >= 3.0 and pure[1] == 0.0
