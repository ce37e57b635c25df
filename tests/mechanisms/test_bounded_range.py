"""The exponential mechanism: the family it stands for, its worst member, and adaptive choices
played out.
"""

from math import comb

import jax
import mpmath
import numpy as np
import pytest
from exact_cells import cells_of, check_cells, check_masses

import jaxgdp
from jaxgdp import ExponentialMechanism, compose, tradeoff
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.mechanisms import bounded_range

POINTS = 41
SLACK = 1e-9


def member(t, epsilon):
    """(loss, P-mass, Q-mass) of the two outputs of the member with losses t and t − ε."""
    q = (np.exp(-t) - np.exp(-epsilon)) / -np.expm1(-epsilon)
    return ((t, q, np.exp(t) * q), (t - epsilon, 1.0 - q, 1.0 - np.exp(t) * q))


def nonadaptive_delta(k, epsilon, g):
    """Largest δ(g) of k equal members (Dong, Durfee & Rogers 2020, Theorem 2)."""
    best = 0.0
    for l in range(k + 1):
        t = np.clip((g + (l + 1) * epsilon) / (k + 1), 0.0, epsilon)
        q = member(t, epsilon)[0][1]
        terms = (
            comb(k, i)
            * q ** (k - i)
            * (1 - q) ** i
            * max(np.exp(k * t - i * epsilon) - np.exp(g), 0)
            for i in range(k + 1)
        )
        best = max(best, sum(terms))
    return best


def played(k, epsilon, gamma, choices):
    """δ that some adaptive choice of members achieves against e^ε = γ: a tree of all outcomes."""
    if k == 0:
        return max(1.0 - gamma, 0.0)
    values = []
    for t in choices:
        outputs = member(t, epsilon)
        values.append(
            sum(
                q * played(k - 1, epsilon, gamma * p / q, choices) for _, p, q in outputs if q > 0.0
            )
        )
    return max(values)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@mpmath.workdps(30)
def test_cells_of_the_dominating_pair(epsilon):
    e = mpmath.mpf(epsilon)
    below_p = lambda v: (1 - mpmath.exp(-(e + v) / 2)) / (1 - mpmath.exp(-e))
    below_q = lambda v: (mpmath.exp((v - e) / 2) - mpmath.exp(-e)) / (1 - mpmath.exp(-e))
    for low, high in ((-1.1, 1.2), (-0.5, 0.2)):
        ell = np.linspace(low * epsilon, high * epsilon, POINTS)
        cells = cells_of(ExponentialMechanism(epsilon), ell)
        check_cells(cells, ell)
        cuts = [-e, *(min(max(mpmath.mpf(float(v)), -e), e) for v in ell), e]
        exact = [
            (below_p(b) - below_p(a), below_q(b) - below_q(a))
            for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        ]
        check_masses(cells, exact)


def test_pair_is_the_upper_envelope_of_the_family():
    epsilon = 1.5
    curve = tradeoff(ExponentialMechanism(epsilon))
    t = np.linspace(0.0, epsilon, 3001)
    for g in (0.0, 0.3, 0.9, 1.4):
        outputs = [member(v, epsilon) for v in t]
        deltas = [sum(max(q - np.exp(g) * p, 0.0) for _, p, q in pair) for pair in outputs]
        found = curve.delta(g)
        exact = (1.0 - np.exp((g - epsilon) / 2.0)) ** 2 / -np.expm1(-epsilon)
        assert max(deltas) == pytest.approx(exact, rel=1e-5)
        assert found.upper >= max(deltas) * (1 - SLACK) and found.upper <= exact * (1 + 3e-3)
    # no member has more μ than the one with t = ε/2
    assert curve.tail_mu == pytest.approx(
        jaxgdp.gdp.mu_from_pure_dp(epsilon=epsilon / 2), rel=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0])
def test_largest_mu_is_in_the_middle(epsilon):
    from scipy.special import ndtri

    t = np.linspace(0.0, epsilon, 20001)[1:-1]
    alpha, beta = (
        (np.exp(-t) - np.exp(-epsilon)) / -np.expm1(-epsilon),
        np.expm1(t) * np.exp(-epsilon) / -np.expm1(-epsilon),
    )
    mu = -ndtri(alpha) - ndtri(beta)
    assert mu.max() <= jaxgdp.gdp.mu_from_pure_dp(epsilon=epsilon / 2) * (1 + 1e-9)


def test_single_use():
    epsilons = np.array([0.5, 1.0, 4.0])
    mu = tradeoff(ExponentialMechanism(epsilons)).mu()
    exact = jaxgdp.gdp.mu_from_pure_dp(epsilon=epsilons / 2)
    assert (
        np.all(mu.lower <= exact)
        and np.all(mu.upper >= exact)
        and np.all(mu.upper - mu.lower <= 1e-6 * exact)
    )


@pytest.mark.parametrize(
    ("k", "epsilon", "g", "known"), [(5, 0.5, 1, 0.0152472178), (10, 0.5, 1, 0.0647438899)]
)
def test_several_uses(k, epsilon, g, known):
    assert nonadaptive_delta(k, epsilon, g) == pytest.approx(known, rel=1e-8)
    curve = tradeoff(compose([(ExponentialMechanism(epsilon), k)]))
    delta = curve.delta(float(g))
    # any member is below, also the one that the attack is run on; adaptive choices have a little
    # more
    assert delta.lower <= known <= delta.upper <= 1.08 * known
    mu = curve.mu()
    assert mu.upper - mu.lower <= 0.06 * mu.upper
    # ε²/8-concentrated per use: δ(g) ≤ e^{−(g − ρ)²/(4ρ)}
    rho = k * epsilon**2 / 8
    assert curve.delta(3.0).lower <= np.exp(-((3.0 - rho) ** 2) / (4 * rho))


def test_adaptive_choices_stay_below():
    epsilon, k = 1.0, 3
    grid, deltas = bounded_range._profiles(epsilon, 4)[k - 1]
    for g in (0.0, 0.5, 1.2, 2.4):
        value = played(k, epsilon, np.exp(g), np.linspace(0.0, epsilon, 9))
        bound = np.interp(np.exp(g), np.exp(grid), deltas)
        assert value <= bound * (1 + SLACK)
        # (few of the choices there are; close to the largest loss each counts)
        assert bound <= value * (1.05 if g < 2.0 else 1.3)
    # and adapting does help
    assert (
        played(k, epsilon, np.exp(0.75), np.linspace(0.0, epsilon, 9))
        > nonadaptive_delta(k, epsilon, 0.75) * 1.05
    )


def test_profiles_in_extended_precision_agree(monkeypatch):
    bounded_range._profiles.cache_clear()
    plain = bounded_range._profiles(0.05, 16)
    monkeypatch.setattr(bounded_range, "_PRECISE", 1.0)
    bounded_range._profiles.cache_clear()
    precise = bounded_range._profiles(0.05, 16)
    bounded_range._profiles.cache_clear()
    for (_, a), (_, b) in zip(plain, precise, strict=True):
        inside = b > 0.0
        assert np.all(np.abs(a[inside] / b[inside] - 1.0) < 1e-12)
        # (the far larger allowance for rounding that both include)
        assert bounded_range.PROFILE > 1e-12


def test_uses_beyond_a_block():
    mu = tradeoff(compose([(ExponentialMechanism(0.1), [100, 3, 1])])).mu()
    assert np.all(mu.lower <= mu.upper) and np.all(
        mu.upper - mu.lower <= [0.03 * mu.upper[0], 0.1, 1e-6]
    )
    # many uses: nearly Gaussian with ε²/4 of μ² each
    assert mu.upper[0] == pytest.approx(np.sqrt(100) * 0.05, rel=0.03)
    split = compose([(ExponentialMechanism(0.1), 40), (ExponentialMechanism(0.1), 60)]).stacked()
    whole = compose([(ExponentialMechanism(0.1), 100)]).stacked()
    assert jax.tree.all(jax.tree.map(np.array_equal, split, whole))


@pytest.mark.parametrize(("epsilon", "uses"), [(1e-3, 7), (0.2, 10), (3.0, 64)])
def test_block_read_off_its_tables_is_within_what_a_lattice_finds(epsilon, uses, monkeypatch):
    names, block = (
        ("mu", "delta", "tpr", "bayes_risk"),
        compose([(ExponentialMechanism(epsilon), uses)]),
    )
    asked = {"epsilon": 0.1 * epsilon, "fpr": 1e-3, "prior": 0.3}
    read = jaxgdp.measure(block, names, **asked)
    assert read.lattice_size == 0
    monkeypatch.setattr(closed_forms, "find", lambda groups: [None])
    other = jaxgdp.measure(block, names, **asked)
    assert other.lattice_size > 0
    for name in names:
        mine, theirs = read.brackets[name], other.brackets[name]
        assert mine.lower <= theirs.upper and theirs.lower <= mine.upper
        assert mine.upper - mine.lower <= 1.001 * (theirs.upper - theirs.lower) + 1e-11


@mpmath.workdps(40)
def test_attack_in_tables_is_on_exact_binomials():
    (part, _), *_ = compose([(ExponentialMechanism(8.0), 64)]).stacked()
    seen = jax.tree.map(lambda a: a[0], part).bracketed()
    up = 1 / (1 + mpmath.exp(-4))
    for i in range(65):
        choose = mpmath.binomial(64, i)
        p, q = choose * (1 - up) ** i * up ** (64 - i), choose * up**i * (1 - up) ** (64 - i)
        off = [
            abs(mpmath.expm1(mpmath.mpf(float(a[i])) - mpmath.log(b)))
            for a, b in ((seen.attack_p, p), (seen.attack_q, q))
        ]
        assert max(off) <= seen.attack_uncertain
    assert seen.attack_uncertain < 1e-12


def test_bad_input():
    for epsilon in (-0.1, np.nan, np.inf, "one"):
        with pytest.raises(ValueError, match="epsilon"):
            ExponentialMechanism(epsilon)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1.0, 30.0, 2e6, 1e300])
def test_one_use_is_known_in_closed_form(epsilon):
    """The largest profile over t of all members, at their own losses and beyond them."""
    mechanism, length = ExponentialMechanism(epsilon), mpmath.mpf(epsilon)
    for share in (0.0, 0.3, 0.999, 1.0, 2.0):
        at = min(share * epsilon, 1e308)
        left = -mpmath.expm1((min(mpmath.mpf(at), length) - length) / 2)
        exact = left**2 / -mpmath.expm1(-length)
        found = jaxgdp.delta(mechanism, epsilon=at)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 1e-9 * exact
    for fpr in (1e-300, 1e-5, 0.4, 1.0 - 1e-9):
        odds = mpmath.exp(length) * mpmath.mpf(fpr) / (1 - mpmath.mpf(fpr))
        found, missed = jaxgdp.tpr(mechanism, fpr=fpr), jaxgdp.beta(mechanism, fpr=fpr)
        assert found.lower <= odds / (1 + odds) <= found.upper
        assert missed.lower <= 1 / (1 + odds) <= missed.upper
    found = jaxgdp.epsilon(mechanism, delta=1e-12 * -np.expm1(-epsilon))
    assert found.lower <= epsilon and epsilon * (1.0 - 1e-5) <= found.upper <= epsilon


def test_huge_range_of_an_index_is_the_largest_epsilon():
    """Gumbel noise far smaller than what scores move by: (2/b)-DP, and not more."""
    found = jaxgdp.epsilon(jaxgdp.NoisyMaximum(1e-6, 5, "gumbel"), delta=1e-5)
    exact = 2e6 + 2 * mpmath.log1p(-mpmath.sqrt(mpmath.mpf(1e-5)))
    assert exact - 1e-6 <= found.lower <= exact * (1 + mpmath.mpf("1e-16"))
    assert exact <= found.upper <= exact + 1e-6
