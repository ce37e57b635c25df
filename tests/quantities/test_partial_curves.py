"""What is read off a curve of which only a stretch of thresholds is known: never false, and sharp
where the stretch decides.
"""

import jax
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

import jaxgdp
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities.mu import mu
from jaxgdp.quantities.reading.quantiles import mu_in_gaps
from jaxgdp.quantities.registry import REGISTRY

# thresholds that are kept, in nats; the first is the whole curve
STRETCHES = [(0.0, np.inf), (0.0, 0.5), (0.7, 1.6), (1.6, 2.0), (3.0, np.inf), (2.0, 2.0)]
ARGUMENTS = {
    "delta": [1e-9, 1e-4, 0.02, 0.2, 0.37],
    "epsilon": [0.0, 0.3, 1.0, 1.8, 4.0],
    "fpr": [1e-8, 1e-3, 0.1, 0.3, 0.45, 0.9],
    "approximation": [1e-8, 1e-3],
    "prior": [0.02, 0.2, 0.5, 0.7, 0.9],
    "fpr_floor": [1e-10, 1e-3],
    None: [None],
}


@pytest.fixture(scope="module")
def gaussian():
    """μ = 1, from its lattice alone."""
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    return curve._replace(tail_mu=np.inf, gaussian_part_mu=0.0)


def kept(curve, low, high):
    """Only the vertices with thresholds in [low, high], of both sides and both halves."""

    def cut(vertices):
        t = vertices.threshold()
        return vertices._replace(used=vertices.used & (t >= low) & (t <= high))

    return curve._replace(
        **{
            name: cut(getattr(curve, name))
            for name in ("upper_plus", "upper_minus", "lower_plus", "lower_minus")
        }
    )


def read(record, curve, argument, symmetric=True):
    with np.errstate(all="ignore"):
        query = 0.0 if argument is None else record.query(argument)
        return record.settle(with_float64(record.read)(curve, query, symmetric=symmetric))


@pytest.mark.parametrize(
    "record", [r for r in REGISTRY.values() if r.name != "regret"], ids=lambda r: r.name
)
@pytest.mark.parametrize("stretch", STRETCHES, ids=str)
def test_brackets_of_a_stretch_are_true(gaussian, record, stretch):
    part = kept(gaussian, *stretch)
    for argument in ARGUMENTS[record.argument]:
        exact = (
            approximate_mu(argument)
            if record.name == "approximate_mu"
            else record.of_gaussian(1.0, argument)
        )
        for symmetric in (True, False):
            bracket, contradicted = read(record, part, argument, symmetric)
            assert not contradicted
            assert bracket.lower <= exact * (1 + 1e-12) and exact <= bracket.upper * (1 + 1e-12), (
                argument,
                bracket,
                exact,
            )


@pytest.mark.parametrize("stretch", STRETCHES, ids=str)
def test_regret_is_not_false_on_a_stretch(gaussian, stretch):
    """Of reporting μ = 1 there is none; of what a stretch certifies, at most ½."""
    bracket, contradicted = read(REGISTRY["regret"], kept(gaussian, *stretch), 1e-10)
    assert not contradicted and bracket.lower < 1e-12 and bracket.upper >= 0.0
    if stretch[0] > 0.0:
        # no μ is certified, and ∞ is off by (1 − δ(0))/2
        assert bracket.upper >= (1.0 - jaxgdp.gdp.advantage(mu=1.0)) / 2.0


def approximate_mu(d, mu=1.0):
    """max over α of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)), on a fine grid."""
    z = np.linspace(-8.0, 8.0, 400_001)
    alpha, tpr = ndtr(-z), ndtr(mu - z)
    with np.errstate(all="ignore"):
        value = ndtri((tpr - d) / (1 - d)) - ndtri(alpha / (1 - d))
    return np.nanmax(np.where((tpr > d) & (alpha < 1 - d), value, -np.inf))


def test_stretches_that_decide_are_as_sharp_as_the_whole_curve(gaussian):
    part = kept(gaussian, 0.7, 1.6)
    delta, prior = jaxgdp.gdp.delta(epsilon=1.2, mu=1.0), 1 / (1 + np.exp(1.2))
    decided = {
        "epsilon": delta,
        "delta": 1.2,
        "bayes_risk": prior,
        "tpr": ndtr(-1.7),
        "beta": ndtr(0.7),
    }
    for name, argument in decided.items():
        bracket, _ = read(REGISTRY[name], part, argument)
        whole, _ = read(REGISTRY[name], gaussian, argument)
        assert np.allclose(bracket, whole, rtol=1e-9, atol=0.0), name


def test_delta_above_those_of_the_stretch_is_not_zero_epsilon(gaussian):
    """δ(ε) at ε = 1.6 is below 0.2, so ε(0.2) lies before: nothing but 'at most 1.6' can be
    said.
    """
    bracket, _ = read(REGISTRY["epsilon"], kept(gaussian, 1.6, 2.0), 0.2)
    assert bracket.contains(
        jaxgdp.gdp.epsilon(delta=0.2, mu=1.0)
    ) and bracket.upper == pytest.approx(1.6, abs=0.05)


@pytest.mark.parametrize("name", ["mu", "approximate_mu"])
def test_quantities_of_the_whole_curve_are_idle_without_its_middle(gaussian, name):
    for argument in (1e-10, 1e-3):
        assert read(REGISTRY[name], kept(gaussian, 0.7, np.inf), argument)[0].upper == np.inf
        assert read(REGISTRY[name], gaussian, argument)[0].upper < 1.01


@pytest.mark.parametrize(
    "end, floor", [(0.5, 0.1), (0.5, 1e-2), (2.0, 1e-3), (3.0, 1e-4), (0.0, 0.3)]
)
def test_mu_beyond_the_last_vertex_is_that_of_its_line(gaussian, end, floor):
    """The tangent with slope e^{end} at α = Φ(−½ − end), down to the floor, or to FNR = floor where
    that comes first.
    """
    alpha, tpr = ndtr(-0.5 - end), ndtr(0.5 - end)
    at_floor = ndtri(tpr + np.exp(end) * (floor - alpha)) - ndtri(floor)
    bracket, contradicted = read(REGISTRY["mu"], kept(gaussian, 0.0, end), floor)
    assert not contradicted and bracket.lower <= 1.0 <= bracket.upper
    assert floor < alpha and bracket.upper == pytest.approx(max(at_floor, 1.0), rel=1e-2)


@pytest.mark.parametrize(
    "pieces, expected",
    [
        ([[0.3, 0.1], [0.1, 0.01], [0.02, 1e-3]], -np.inf),
        ([[0.3, 0.1], [0.05, 0.01], [0.02, 1e-3]], ndtri(0.1**0.5) - ndtri(0.05)),
        # nothing in a piece: the next one goes on where the one before it left off
        ([[0.3, 0.1], [], [0.2, 0.01]], -np.inf),
        ([[0.3, 0.1], [], [0.04, 0.01]], ndtri(0.1**0.5) - ndtri(0.04)),
        ([[0.3, 0.1], [0.2, 0.05], []], -np.inf),
        ([[], [0.3, 0.1], [0.02, 1e-3]], ndtri(0.1**0.5) - ndtri(0.02)),
        ([[], [], [0.3, 0.1]], -np.inf),
        ([[], [], []], -np.inf),
        # below the floor of 1e-6 no gap matters; where it begins above it, it does
        ([[0.3, 1e-7], [1e-9, 1e-12], []], -np.inf),
        ([[0.3, 1e-5], [1e-9, 1e-12], []], ndtri(1e-5**0.5) - ndtri(1e-9)),
    ],
)
def test_gaps_between_pieces(gaussian, pieces, expected):
    rates = np.array([[*piece, *[0.5] * (2 - len(piece))] for piece in pieces])
    used = np.array([[True] * len(piece) + [False] * (2 - len(piece)) for piece in pieces])
    tpr = np.sqrt(rates)
    vertices = gaussian.upper_plus._replace(
        log_alpha=np.log(rates), log_tpr=np.log(tpr), log_beta=np.log1p(-tpr), used=used
    )
    found = with_float64(mu_in_gaps)(vertices, lambda alpha, tpr, beta: alpha >= np.log(1e-6))
    assert found == pytest.approx(expected, rel=1e-12, abs=0.0) and found >= expected


def test_pieces_that_say_nothing_are_gaps():
    """Of a curve that lost one of its pieces μ is no less than before, and no more than the ends of
    the neighbouring pieces leave.
    """
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(1.0, 0.05, 2000), rtol=1e-3)._curves[0][-1]
    half, floor = curve.upper_plus, np.log(1e-10)
    pieces = half.log_alpha.shape[0]
    assert pieces > 2
    with np.errstate(all="ignore"):
        before = with_float64(mu)(curve, floor)
    for lost in range(1, pieces - 1):
        row = np.arange(pieces)[:, None] == lost
        silent = half._replace(
            log_alpha=np.where(row, -np.inf, half.log_alpha),
            log_tpr=np.where(row, 0.0, half.log_tpr),
            log_beta=np.where(row, -np.inf, half.log_beta),
        )
        with np.errstate(all="ignore"):
            found = with_float64(mu)(curve._replace(upper_plus=silent), floor)
        end = np.argmin(np.where(half.used[lost - 1], half.log_alpha[lost - 1], np.inf))
        next_alpha = np.max(np.where(half.used[lost + 1], half.log_alpha[lost + 1], -np.inf))
        most = -ndtri(np.exp(next_alpha)) - ndtri(np.exp(half.log_beta[lost - 1, end]))
        assert before.upper <= found.upper <= max(before.upper, most * (1.0 + 1e-9))
        assert found.lower == before.lower


def test_gaps_where_nothing_is_asked(gaussian):
    """Over 1 − d = 0.5: a gap beyond it counts nothing, one with its upper end there anything."""
    for rates, expected in (([0.9, 0.7, 0.6, 0.55], -np.inf), ([0.9, 0.7, 0.4, 0.3], np.inf)):
        rates = np.array(rates).reshape(2, 2)
        vertices = gaussian.upper_plus._replace(
            log_alpha=np.log(rates),
            log_tpr=np.zeros((2, 2)),
            log_beta=np.full((2, 2), -np.inf),
            used=np.ones((2, 2), bool),
        )
        with np.errstate(all="ignore"):
            found = with_float64(mu_in_gaps)(
                vertices,
                lambda *_: np.ones(1, bool),
                lambda *logs: tuple(np.minimum(log - np.log(0.5), 0.0) for log in logs),
            )
        assert found == expected


@pytest.mark.parametrize("uses", [1, 3])
def test_approximate_mu_of_kept_curves_of_few_atoms(uses):
    """Any d, those next to a TPR included, against the vertices of the exact curve."""
    rng = np.random.default_rng(uses)
    assert jaxgdp.tradeoff(jaxgdp.FromPMFs([0.4, 0.6], [0.9999, 0.0001])).approximate_mu(0.9) == (
        0.0,
        0.0,
    )
    for _ in range(8):
        p, q = rng.dirichlet(np.full(3, 0.7), 2) * 0.99 + 1 / 300
        mass_p, mass_q = np.ones(1), np.ones(1)
        for _ in range(uses):
            mass_p, mass_q = (
                np.multiply.outer(a, b).ravel() for a, b in ((mass_p, p), (mass_q, q))
            )
        curve = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.FromPMFs(p, q), uses)]))
        order = np.argsort(mass_p / mass_q)
        rates = [(mass_p[order], mass_q[order]), (mass_q[order[::-1]], mass_p[order[::-1]])]
        for d in [*rng.uniform(0.01, 0.99, 2), *np.cumsum(mass_q[order])[:2] * (1 + 1e-9)]:
            exact = [0.0]
            for alpha, tpr in rates:
                alpha, tpr = np.cumsum(alpha), np.cumsum(tpr)
                asked = (tpr > d) & (alpha < 1.0 - d) & (tpr < 1.0 - 1e-12)
                z = ndtri((tpr[asked] - d) / (1 - d)) - ndtri(alpha[asked] / (1 - d))
                exact = [*exact, *z]
            found = curve.approximate_mu(d)
            assert found.lower <= max(exact) + 1e-5 and max(exact) - 1e-5 <= found.upper < np.inf


@pytest.mark.parametrize("name", ["tpr", "beta"])
def test_thresholds_of_rates_of_a_gaussian(gaussian, name):
    """ℓ = μ·Φ⁻¹(1 − α) − μ²/2 has the FPR α; from the middle of the symmetric curve on, its mirror
    image.
    """
    for fpr in (1e-8, 1e-3, 0.05, 0.2, 0.3, 0.4, 0.6, 0.9):
        found = with_float64(REGISTRY[name].locate)(gaussian, np.log(fpr), symmetric=True)
        assert found == pytest.approx(abs(-ndtri(fpr) - 0.5), abs=0.03), fpr


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_thresholds_of_rates_of_a_pair_of_binomials(adjacency):
    """Each order has its own FPRs, and rates beyond the middle lie on the other half."""
    n, few, many = 60, 0.3, 0.45
    k = np.arange(n + 1)
    null, shown = binom(n, few), binom(n, many)
    loss = k * np.log(many / few) + (n - k) * np.log((1 - many) / (1 - few))
    mechanism = jaxgdp.FromPMFs(null.pmf(k), shown.pmf(k))
    curve = jaxgdp.tradeoff(mechanism, adjacency=adjacency)._curves[0][-1]
    for at in (12, 16, 20, 22, 24, 28, 32):
        # rejecting above ``at``, or up to it where the other count is the null
        fpr, ends = (
            (null.sf(at), loss[at : at + 2])
            if adjacency == "remove"
            else (shown.cdf(at), -loss[at : at + 2])
        )
        found = with_float64(REGISTRY["tpr"].locate)(curve, np.log(fpr), symmetric=False)
        low, high = sorted(np.abs(ends))
        low = 0.0 if np.prod(ends) < 0.0 else low
        assert low - 0.02 <= found <= high + 0.02, (at, fpr, found, ends)


def test_thresholds_of_epsilon_delta_and_prior():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    record = REGISTRY["epsilon"]
    assert with_float64(record.locate)(curve, np.log(1e-5), symmetric=True) == pytest.approx(
        jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0), rel=1e-3
    )
    assert REGISTRY["delta"].threshold(1.5) == 1.5
    assert np.allclose(
        REGISTRY["bayes_risk"].threshold(np.array([0.2, 0.5, 0.8])), [np.log(4.0), 0.0, np.log(4.0)]
    )


def test_locating_is_traced_too():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))._curves[0][-1]
    with jax.enable_x64(True):
        for name, query in (("tpr", np.log(1e-3)), ("epsilon", np.log(1e-5))):
            locate = REGISTRY[name].locate
            traced = jax.jit(lambda c, q, locate=locate: locate(c, q, symmetric=True))(curve, query)
            assert float(traced) == pytest.approx(
                float(locate(curve, query, symmetric=True)), rel=1e-9
            )
