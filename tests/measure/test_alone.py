"""Numbers of a kept curve that are asked alone, against exact sums."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import log_ndtr

import jaxgdp

SIGMA, STEPS, EPSILON, USES = 10.5466, 63, 0.76482, 107


def rates(threshold: float) -> tuple[float, float]:
    """Logs of FPR and FNR of the test "loss beyond a threshold" of Gaussian noise and
    ε-differentially private uses together: sums over how many of these have the loss +ε.
    """
    mu = np.sqrt(STEPS) / SIGMA
    up = np.arange(USES + 1)
    loss = (2 * up - USES) * EPSILON
    under = lambda p: stats.binom.logpmf(up, USES, p)
    more, less = 1.0 / (1.0 + np.exp(-EPSILON)), 1.0 / (1.0 + np.exp(EPSILON))
    fpr = under(less) + log_ndtr(-(threshold - loss + 0.5 * mu**2) / mu)
    fnr = under(more) + log_ndtr((threshold - loss - 0.5 * mu**2) / mu)
    return float(np.logaddexp.reduce(fpr)), float(np.logaddexp.reduce(fnr))


@pytest.fixture(scope="module")
def curve():
    run = jaxgdp.compose([(jaxgdp.Gaussian(SIGMA), STEPS), (jaxgdp.PureDP(EPSILON), USES)])
    return jaxgdp.tradeoff(run)


@pytest.mark.parametrize("fpr", [1.34e-6, 1e-9])
def test_single_numbers_of_a_curve_are_as_accurate_as_asked(curve, fpr):
    place = brentq(lambda t: rates(t)[0] - np.log(fpr), -200.0, 200.0, xtol=1e-12)
    truth = np.exp(rates(place)[1])
    found, status = curve.answer("beta", fpr)
    assert status == 0 and found.width <= 1.1e-3 * found.upper
    assert found.lower <= truth * (1.0 + 1e-9) and truth * (1.0 - 1e-9) <= found.upper
    assert curve.beta(fpr) == found
    # (many at once are those of the curve, which hold the truth, too)
    many = curve.beta(np.full(8, fpr))
    assert np.all(many.lower <= truth * (1.0 + 1e-9)) and np.all(truth * (1 - 1e-9) <= many.upper)


def test_numbers_asked_one_by_one_are_those_of_a_few_at_once(curve):
    rates_asked = [1e-9, 1.34e-6]
    together = curve.beta(rates_asked)
    for k, fpr in enumerate(rates_asked):
        one = curve.beta(fpr)
        assert (one.lower, one.upper) == (together.lower[k], together.upper[k])


def test_status_of_a_curve_is_that_of_its_mu():
    # (the kept curve alone leaves μ nearly three times as wide as that)
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(3.5059761139405854, 2.0929365621037975e-05, 3_251_399))
    mu, status = curve.answer("mu")
    assert int(curve.status) == int(status) == 0
    # the limit of many small steps: p·√(T·(e^{1/σ²} − 1)), to a percent
    limit = 2.0929365621037975e-05 * np.sqrt(3_251_399 * np.expm1(3.5059761139405854**-2.0))
    assert mu.lower == pytest.approx(limit, rel=0.02)
