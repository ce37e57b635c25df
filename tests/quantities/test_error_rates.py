"""Error rates at the ends of the range and between the corners of a curve of few segments."""

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import jaxgdp

CURVES = {
    "gaussian": (jaxgdp.Gaussian(1.0), lambda a: jaxgdp.gdp.beta(fpr=a, mu=1.0)),
    "randomized response": (
        jaxgdp.RandomizedResponse(1.0),
        lambda a: np.maximum(1.0 - np.e * a, (1.0 - a) / np.e),
    ),
}


@pytest.fixture(scope="module", params=list(CURVES))
def case(request):
    mechanism, exact = CURVES[request.param]
    return jaxgdp.tradeoff(mechanism), exact


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-12, 0.1, 0.25, 0.3, 0.6, 0.999, 1.0])
def test_fnr_and_tpr_hold_the_exact_curve(case, alpha):
    curve, exact = case
    found, true = curve.beta(alpha), exact(alpha)
    assert found.lower <= true + 1e-12 and found.upper >= true - 1e-12
    assert found.width <= 1e-3
    tpr = curve.tpr(alpha)
    assert tpr.lower <= 1.0 - true + 1e-12 and tpr.upper >= 1.0 - true - 1e-12


def test_attack_reaches_the_curve_between_corners():
    found = jaxgdp.tradeoff(CURVES["randomized response"][0]).beta([0.01, 0.1, 0.2, 0.4, 0.9])
    assert np.max(found.width) <= 1e-9


@pytest.mark.parametrize(
    "epsilon, uses, least", [(14.0, 5, 3), (12.0, 5, 3), (16.0, 5, 3), (15.0, 3, 1), (30.0, 3, 1)]
)
def test_small_fnrs_next_to_small_fprs_keep_their_digits(epsilon, uses, least):
    """ε-DP, several times: just beyond the corner at the loss ``least``·ε TPR is 1 to rounding, and
    β is a sum of few binomial terms.

    One less TPR is then no bound on β: the rounding of a log next to 0 was 1e-5 of it.
    """
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(epsilon))
        # losses (2k − uses)·ε with probability C(uses, k)·p^k·(1 − p)^{uses − k} under P, and with
        # k and uses − k exchanged under Q
        law = lambda k: mpmath.binomial(uses, k) * p**k * (1 - p) ** (uses - k)
        above = [k for k in range(uses + 1) if 2 * k - uses >= least]
        corner = mpmath.fsum(map(law, above))
        missed = mpmath.fsum(law(uses - k) for k in range(uses + 1) if k not in above)
        fpr = [float(corner * factor) for factor in (1.0, 1.001, 1.1, 2.0)]
        found = jaxgdp.measure(
            jaxgdp.compose([(jaxgdp.PureDP(epsilon), uses)]),
            ("beta", "tpr"),
            fpr=np.array(fpr),
            adjacency="remove",
        )
        beta, tpr = found.brackets["beta"], found.brackets["tpr"]
        assert np.all(found.status["beta"] < 2) and np.all(found.status["tpr"] < 2)
        for i, alpha in enumerate(fpr):
            slope = mpmath.exp(epsilon * (least - 2 if alpha > corner else least))
            true = missed - slope * (alpha - corner)
            assert beta.lower[i] <= true <= beta.upper[i], alpha
            assert beta.width[i] <= 1e-3 * true or found.status["beta"][i] == 1
            assert tpr.lower[i] <= 1 - true <= tpr.upper[i], alpha


@pytest.mark.parametrize("fpr", [1e-4, 0.05, 0.2, 0.48, 0.7])
@pytest.mark.parametrize("executor", ["eager", "compiled"])
def test_envelope_of_both_orders_has_slope_minus_one_in_the_middle(fpr, executor):
    """Where steps with the record are certain to be told, removing has the curve α → c + (1 − c)·α
    with c = 1 − (1 − p)^T, and its envelope with the inverse is α → c + α up to TPR 1.
    """
    p, steps = 0.01, 10
    told = -np.expm1(steps * np.log1p(-p))
    exact = min(told + fpr, 1.0)
    # (noise of 0.02: a step is mistaken with probability Φ(−25))
    found = jaxgdp.measure(
        jaxgdp.dpsgd(0.02, p, steps), ("tpr", "beta"), fpr=fpr, rtol=1e-3, executor=executor
    )
    for bracket, truth in ((found.tpr, exact), (found.beta, 1.0 - exact)):
        assert bracket.lower <= truth * (1.0 + 1e-12) and truth * (1.0 - 1e-12) <= bracket.upper
        assert bracket.width <= 1e-6 * bracket.upper


@pytest.mark.parametrize("sigma, p", [(0.3, 0.01), (1.0, 0.2), (0.1, 0.5)])
def test_middle_of_the_envelope_of_one_use_is_guessing_plus_the_advantage(sigma, p):
    with mpmath.workdps(30):
        # sup TPR − FPR: outputs beyond 1/2, where N(1, σ²) is denser than N(0, σ²)
        gain = mpmath.mpf(p) * (2 * mpmath.ncdf(mpmath.mpf(0.5) / mpmath.mpf(sigma)) - 1)
        alpha = mpmath.ncdf(-mpmath.mpf(0.5) / mpmath.mpf(sigma))
    for fpr in np.linspace(float(alpha) * 1.001, float(1 - gain - alpha) * 0.999, 5):
        found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, 1), ("tpr", "beta"), fpr=fpr, rtol=1e-3)
        for bracket, truth in ((found.tpr, fpr + gain), (found.beta, 1 - fpr - gain)):
            truth = float(truth)
            assert bracket.lower <= truth * (1.0 + 1e-12) and truth * (1.0 - 1e-12) <= bracket.upper
            assert bracket.width <= 1e-3 * bracket.upper


def test_order_whose_losses_are_larger_counts_at_a_rate_of_both_orders():
    """The β of four outcomes used 128 times, by the logs of all 366,145 numbers of times that each
    may be seen: the most powerful test of removing a record misses 1e46 times as seldom as that of
    adding one, and the line that touches it there lies below both curves.
    """
    p = np.array([0.10680819, 0.08980494, 0.28804702, 0.51533985])
    q = np.array([0.14992691, 0.82572094, 0.01569111, 0.00866104])
    p, q, uses, fpr = p / p.sum(), q / q.sum(), 128, 0.15487504982210767
    found = jaxgdp.measure(jaxgdp.compose([(jaxgdp.FromPMFs(p=p, q=q), uses)]), "beta", fpr=fpr)
    each = np.indices((uses + 1,) * 3).reshape(3, -1)
    each = each[:, each.sum(axis=0) <= uses]
    each = np.vstack([each, uses - each.sum(axis=0)])
    ways = gammaln(uses + 1.0) - gammaln(each + 1.0).sum(axis=0)
    log_p, log_q = ways + np.log(p) @ each, ways + np.log(q) @ each
    # (outcomes with the largest Q-mass for their P-mass first, until their P-mass is the FPR)
    order = np.argsort(log_p - log_q)
    total = np.cumsum(np.exp(log_p[order]))
    last = int(np.searchsorted(total, fpr))
    part = (total[last] - fpr) / np.exp(log_p[order[last]])
    missed = np.append(log_q[order[last + 1 :]], log_q[order[last]] + np.log(part))
    log_beta = logsumexp(missed)
    slope = log_q[order[last]] - log_p[order[last]]
    of_other = logsumexp(np.minimum(log_p, slope + log_q))
    assert of_other >= np.logaddexp(log_beta, slope + np.log(fpr))
    low, high = np.log(found.beta)
    assert low - 1e-9 <= log_beta <= high + 1e-9
    assert found.status["beta"] == 0
