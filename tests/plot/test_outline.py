"""The polygons that stand for a trade-off curve lie on their own sides of it, between their corners
too.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import jaxgdp
from jaxgdp.plot import below, outline

RATES = np.unique(np.concatenate([np.linspace(0.0, 1.0, 401), ndtr(np.linspace(-8.0, 0.0, 81))]))


def laplace(alpha, scale):
    """The exact curve of Laplace noise, by inverting its two tails (Dong, Roth and Su 2022,
    Appendix A.1).
    """
    e = np.exp(1.0 / scale)
    middle = 1.0 / (4.0 * e * np.where(alpha > 0.0, alpha, 1.0))
    return np.select([alpha < 0.5 / e, alpha <= 0.5], [1.0 - e * alpha, middle], (1.0 - alpha) / e)


def randomized_response(alpha, epsilon):
    return np.maximum(1.0 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1.0 - alpha)).clip(0.0)


@pytest.mark.parametrize(
    "mechanism, exact",
    [
        (jaxgdp.Gaussian(1.0), lambda a: jaxgdp.gdp.beta(fpr=a, mu=1.0)),
        (jaxgdp.Gaussian(0.2), lambda a: jaxgdp.gdp.beta(fpr=a, mu=5.0)),
        (jaxgdp.Laplace(0.5), lambda a: laplace(a, 0.5)),
        (jaxgdp.RandomizedResponse(epsilon=1.5), lambda a: randomized_response(a, 1.5)),
        (
            jaxgdp.ApproximateDP(epsilon=1.0, delta=0.2),
            lambda a: np.maximum(1 - 0.2 - np.e * a, np.exp(-1) * (1 - 0.2 - a)).clip(0.0),
        ),
    ],
    ids=["gaussian", "little noise", "laplace", "randomized response", "mass at infinity"],
)
def test_polygons_enclose_the_exact_curve(mechanism, exact):
    sides = outline(jaxgdp.tradeoff(mechanism))
    lower, upper = (np.interp(RATES, *side) for side in sides)
    truth = exact(RATES)
    assert np.all(lower <= truth + 1e-12) and np.all(truth <= upper + 1e-12)
    # and closely: moved along the diagonal by less than the width of a line they change sides
    step = 3e-3
    inside = RATES[RATES <= 1.0 - step]
    assert np.all(np.interp(inside + step, *sides.upper) - step <= exact(inside))
    assert np.all(np.interp(inside, *sides.lower) + step >= exact(inside + step))
    for alpha, _ in sides:
        assert alpha[0] == 0.0 and alpha[-1] == 1.0 and np.all(np.diff(alpha) >= 0.0)


def test_chords_of_the_lower_side_would_not_do():
    """What is drawn between points of the curve itself lies above it."""
    alpha = np.linspace(0.0, 1.0, 21)
    chord = np.interp(RATES, alpha, jaxgdp.gdp.beta(fpr=alpha, mu=1.0))
    assert np.max(chord - jaxgdp.gdp.beta(fpr=RATES, mu=1.0)) > 1e-2


@pytest.mark.parametrize(
    "exact",
    [
        lambda a: jaxgdp.gdp.beta(fpr=a, mu=1.0),
        lambda a: jaxgdp.gdp.beta(fpr=a, mu=5.0),
        lambda a: laplace(a, 0.5),
        lambda a: randomized_response(a, 1.5),
    ],
    ids=["gaussian", "little noise", "laplace", "randomized response"],
)
@pytest.mark.parametrize("number", [3, 5, 21, 200])
def test_line_through_points_lies_below_the_curve(exact, number):
    alpha = np.linspace(0.0, 1.0, number)
    corners = below(alpha, exact(alpha))
    inside = RATES[RATES > 0.0]  # (the first corner is twofold)
    assert np.all(np.interp(inside, *corners) <= exact(inside) + 1e-12)
    assert np.all(np.diff(corners[0]) >= 0.0) and np.isin(alpha, corners[0]).all()
    drawn = np.interp(alpha[1:], *corners)
    np.testing.assert_allclose(drawn, exact(alpha[1:]), atol=1e-12)


def test_one_sided_relations_are_outlined_too():
    curve = jaxgdp.tradeoff(jaxgdp.SubsampledGaussian(1.0, 0.3), adjacency="remove", rtol=1e-2)
    sides = outline(curve)
    middle = 0.5 * (sides.lower[0][1:] + sides.lower[0][:-1])[::16]
    exact = np.asarray(curve.beta(middle).lower)
    assert np.max(np.abs(np.interp(middle, *sides.lower) - exact)) < 1e-3


def test_outline_takes_one_curve_at_a_time():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"curve must be that of one mechanism, got shape \(2,\)"):
        outline(curve)
    with pytest.raises(ValueError, match="number must be a whole number >= 2, got 1"):
        outline(jaxgdp.tradeoff(jaxgdp.Gaussian(1.0)), number=1)


def test_curve_draws_itself_with_its_floor():
    figures = pytest.importorskip("matplotlib.figure")
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0), fpr_floor=1e-6)
    ax = figures.Figure().add_subplot()
    assert curve.plot(ax) is ax
    labels = ax.get_legend_handles_labels()[1]
    assert labels[0] == "certified" and r"FPR $\geq 10^{-6}$" in labels[1] and "1.0" in labels[1]
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    try:
        own = curve.plot()
        assert own is pyplot.gca()
    finally:
        pyplot.close("all")
