"""What is read off a curve of which only a stretch of thresholds is known: never false, and sharp where the stretch decides."""

import jax
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import jaxgdp
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities.registry import REGISTRY

# thresholds that are kept, in nats; the first is the whole curve
STRETCHES = [(0.0, np.inf), (0.0, 0.5), (0.7, 1.6), (1.6, 2.0), (3.0, np.inf), (2.0, 2.0)]
ARGUMENTS = {
    "delta": [1e-9, 1e-4, 0.02, 0.2, 0.37],
    "epsilon": [0.0, 0.3, 1.0, 1.8, 4.0],
    "fpr": [1e-8, 1e-3, 0.1, 0.3, 0.45, 0.9],
    "d": [1e-8, 1e-3],
    "prior": [0.02, 0.2, 0.5, 0.7, 0.9],
    "fpr_floor": [1e-10, 1e-3],
    None: [None],
}


@pytest.fixture(scope="module")
def gaussian():
    """μ = 1, from its lattice alone."""
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    return curve._replace(tail_mu=np.inf, shown_mu=0.0)


def kept(curve, low, high):
    """Only the vertices with thresholds in [low, high], of both sides and both halves."""

    def cut(vertices):
        t = vertices.threshold()
        return vertices._replace(used=vertices.used & (t >= low) & (t <= high))

    return curve._replace(
        **{name: cut(getattr(curve, name)) for name in ("upper_plus", "upper_minus", "lower_plus", "lower_minus")}
    )


def read(record, curve, argument, symmetric=True):
    with np.errstate(all="ignore"):
        query = 0.0 if argument is None else record.query(argument)
        return record.settle(with_float64(record.read)(curve, query, symmetric=symmetric))


@pytest.mark.parametrize("record", [r for r in REGISTRY.values() if r.name != "regret"], ids=lambda r: r.name)
@pytest.mark.parametrize("stretch", STRETCHES, ids=str)
def test_nothing_false_on_a_stretch(gaussian, record, stretch):
    part = kept(gaussian, *stretch)
    for argument in ARGUMENTS[record.argument]:
        exact = approximate_mu(argument) if record.name == "approximate_mu" else record.of_gaussian(1.0, argument)
        for symmetric in (True, False):
            bracket, contradicted = read(record, part, argument, symmetric)
            assert not contradicted
            assert bracket.lower <= exact * (1 + 1e-12) and exact <= bracket.upper * (1 + 1e-12), (
                argument,
                bracket,
                exact,
            )


@pytest.mark.parametrize("stretch", STRETCHES, ids=str)
def test_the_regret_is_not_false_on_a_stretch(gaussian, stretch):
    """Of reporting μ = 1 there is none; of what a stretch certifies, at most ½."""
    bracket, contradicted = read(REGISTRY["regret"], kept(gaussian, *stretch), 1e-10)
    assert not contradicted and bracket.lower < 1e-12 and bracket.upper >= 0.0
    if stretch[0] > 0.0:
        assert bracket.upper == pytest.approx(0.5, abs=0.15)


def approximate_mu(d, mu=1.0):
    """max over α of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)), on a fine grid."""
    z = np.linspace(-8.0, 8.0, 400_001)
    alpha, tpr = ndtr(-z), ndtr(mu - z)
    with np.errstate(all="ignore"):
        value = ndtri((tpr - d) / (1 - d)) - ndtri(alpha / (1 - d))
    return np.nanmax(np.where((tpr > d) & (alpha < 1 - d), value, -np.inf))


def test_stretches_that_decide_are_as_sharp_as_the_whole_curve(gaussian):
    part = kept(gaussian, 0.7, 1.6)
    delta, prior = jaxgdp.gdp.delta(1.2, 1.0), 1 / (1 + np.exp(1.2))
    decided = {"epsilon": delta, "delta": 1.2, "bayes_risk": prior, "tpr": ndtr(-1.7), "beta": ndtr(1.7)}
    for name, argument in decided.items():
        bracket, _ = read(REGISTRY[name], part, argument)
        whole, _ = read(REGISTRY[name], gaussian, argument)
        assert np.allclose(bracket, whole, rtol=1e-9, atol=0.0), name


def test_a_delta_above_those_of_the_stretch_is_not_zero_epsilon(gaussian):
    """δ(ε) at ε = 1.6 is below 0.2, so ε(0.2) lies before: nothing but 'at most 1.6' can be said."""
    bracket, _ = read(REGISTRY["epsilon"], kept(gaussian, 1.6, 2.0), 0.2)
    assert bracket.contains(jaxgdp.gdp.epsilon(0.2, 1.0)) and bracket.upper == pytest.approx(1.6, abs=0.05)


@pytest.mark.parametrize("name", ["mu", "approximate_mu"])
def test_what_needs_the_whole_curve_says_nothing_without_its_middle(gaussian, name):
    for argument in (1e-10, 1e-3):
        assert read(REGISTRY[name], kept(gaussian, 0.7, np.inf), argument)[0].upper == np.inf
        assert read(REGISTRY[name], gaussian, argument)[0].upper < 1.01


FPRS = np.array([1e-8, 1e-3, 0.05, 0.2, 0.35, 0.6, 0.9])


@pytest.mark.parametrize("name", ["tpr", "beta"])
@pytest.mark.parametrize("adjacency", ["add_remove", "remove", "add"])
def test_thresholds_of_rates(name, adjacency):
    """One step of DP-SGD: FPR and privacy loss of every threshold on the output are known."""
    sigma, p = 0.8, 0.3
    curve = jaxgdp.tradeoff(jaxgdp.SubsampledGaussian(sigma, p), adjacency=adjacency)._curves[0][-1]
    record, symmetric = REGISTRY[name], adjacency == "add_remove"

    def loss(z):
        return np.log1p(p * np.expm1((2 * z - 1) / (2 * sigma**2)))

    for fpr in FPRS:
        if adjacency == "add":
            # the mixture is the null distribution, and small outputs are rejected
            z = np.linspace(-10.0, 10.0, 200_001)
            exact = np.interp(fpr, (1 - p) * ndtr(z / sigma) + p * ndtr((z - 1) / sigma), -loss(z))
        else:
            exact = loss(-sigma * ndtri(fpr))
        found = with_float64(record.locate)(curve, np.log(fpr), symmetric=symmetric)
        if symmetric and exact < 0.0:
            # past the middle the curve is its own mirror image: f(f(α)) = α
            other = jaxgdp.tradeoff(jaxgdp.SubsampledGaussian(sigma, p)).beta(fpr).midpoint
            exact = max(loss(-sigma * ndtri(other)), 0.0)
        assert found == pytest.approx(abs(exact), abs=0.02), (fpr, exact)


def test_thresholds_of_epsilon_delta_and_prior():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    record = REGISTRY["epsilon"]
    assert with_float64(record.locate)(curve, np.log(1e-5), symmetric=True) == pytest.approx(
        jaxgdp.gdp.epsilon(1e-5, 1.0), rel=1e-3
    )
    assert REGISTRY["delta"].threshold(1.5) == 1.5
    assert np.allclose(REGISTRY["bayes_risk"].threshold(np.array([0.2, 0.5, 0.8])), [np.log(4.0), 0.0, np.log(4.0)])


def test_locating_is_traced_too():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    with jax.enable_x64(True):
        for name, query in (("tpr", np.log(1e-3)), ("epsilon", np.log(1e-5))):
            locate = REGISTRY[name].locate
            traced = jax.jit(lambda c, q, locate=locate: locate(c, q, symmetric=True))(curve, query)
            assert float(traced) == pytest.approx(float(locate(curve, query, symmetric=True)), rel=1e-9)
