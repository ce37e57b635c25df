"""Numbers of a kept curve that are asked alone, against exact sums."""

import numpy as np
import pytest
from by_day import every_value
from scipy import stats
from scipy.optimize import brentq
from scipy.special import log_ndtr

import jaxgdp
from jaxgdp.quantities.registry import REGISTRY

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


@pytest.mark.nightly
def test_status_of_a_curve_is_that_of_its_mu():
    # (the kept curve alone leaves μ nearly three times as wide as that)
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(3.5059761139405854, 2.0929365621037975e-05, 3_251_399))
    mu, status = curve.answer("mu")
    assert int(curve.status) == int(status) == 0
    # the limit of many small steps: p·√(T·(e^{1/σ²} − 1)), to a percent
    limit = 2.0929365621037975e-05 * np.sqrt(3_251_399 * np.expm1(3.5059761139405854**-2.0))
    assert mu.lower == pytest.approx(limit, rel=0.02)


# (each leaves numbers far out wide: FNRs, the Bayes risk, tiny δ)
HARD = [
    jaxgdp.dpsgd(2.732312499384973, 0.2681526618727022, 7777),
    jaxgdp.compose([(jaxgdp.PureDP(0.15701164), 74), (jaxgdp.Gaussian(40.60324684), 143)]),
]
AT = {"delta": 1e-12, "epsilon": 30.0, "fpr": 1.9e-4, "prior": 0.22, "approximation": 1e-12}


@pytest.mark.parametrize(
    ("which", "adjacency"), every_value((0, 1), ("add_remove", "add", "remove"))
)
def test_every_quantity_is_as_accurate_as_asked_and_agrees_with_measure(which, adjacency):
    run = HARD[which]
    curve = jaxgdp.tradeoff(run, adjacency=adjacency)
    for name, quantity in REGISTRY.items():
        argument = quantity.own_argument
        at = {argument: AT[argument]} if argument in AT else {}
        bracket, status = curve.answer(name, *at.values())
        other = jaxgdp.measure(run, name, adjacency=adjacency, **at)
        assert status == 0 or other.status[name] == 1, name
        assert max(bracket.lower, other[name].lower) <= min(bracket.upper, other[name].upper), name


@pytest.mark.parametrize("run", HARD, ids=["sampled", "mixed"])
def test_finer_curve_stays_within_a_coarser_one(run):
    curves = [jaxgdp.tradeoff(run, rtol=rtol) for rtol in (1e-2, 1e-3, 1e-4)]
    for name, quantity in REGISTRY.items():
        at = [AT[quantity.own_argument]] if quantity.own_argument in AT else []
        found = [curve.quantity(name, *at) for curve in curves]
        for coarse, fine in zip(found, found[1:], strict=False):
            assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper, name


def test_floor_0_is_left_to_the_curve():
    mu = jaxgdp.tradeoff(HARD[0]).mu(0.0)
    # √(T/σ²), the limit as the floor goes to 0
    assert mu.upper == pytest.approx(np.sqrt(7777) / 2.732312499384973, rel=1e-9)
