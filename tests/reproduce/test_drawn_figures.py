"""Figures that the quick reproductions of these tests leave out, drawn from closed forms, can be
read.
"""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from jaxgdp import Bracket, gdp
from jaxgdp.plot import faults
from jaxgdp.reproduce import chua2024, gomez2025, liu2022


def drawn(size, draw, *given):
    figure = Figure(figsize=size, layout="constrained")
    draw(*given, figure)
    return figure


def point(values):
    return Bracket(values, values)


@pytest.mark.parametrize("epsilons", [(1, 2, 4, 8), (8, 4, 2, 1)])
def test_curves_and_their_differences(epsilons):
    """Figures 5 and 6 of Gomez 2025."""
    alpha = np.geomspace(1e-7, 1.0, 80)
    lines = []
    for k, epsilon in enumerate(epsilons):
        mu = 0.3 * epsilon
        gap = SimpleNamespace(
            alpha=alpha,
            beta=point(gdp.beta(fpr=alpha, mu=mu)),
            gaussian=gdp.beta(fpr=alpha, mu=1.01 * mu),
        )
        lines.append(
            SimpleNamespace(
                label=f"ε = {epsilon}", noise_multiplier=9.4 * (k + 1), gap=gap, fpr_floor=1e-10
            )
        )
    assert faults(drawn((7.2, 3.5), gomez2025.training.figures.curves_and_gaps, lines)) == []


def test_sampled_transformations():
    """Figure E.2 of Liu 2022."""
    epsilon = np.linspace(0.0, 1.1, 41)
    rows = [
        (rate, point(rate * np.sqrt(np.maximum(1.0 - epsilon / rate, 0.0))))
        for rate in (1.0, 0.5, 0.25, 0.1)
    ]
    assert faults(drawn((5.6, 3.8), liu2022.measuring.figures.sampled, epsilon, rows)) == []


@pytest.mark.parametrize(
    ("title", "least"), [(r"$\sigma = 0.4$, $T = 10{,}000$", 1e-12), (r"$T = 100{,}000$", None)]
)
@pytest.mark.parametrize("shuffled", [True, False])
def test_samplers_side_by_side(title, least, shuffled):
    """Figures 1 to 7 of Chua 2024."""
    x = np.linspace(0.0, 12.0, 25)
    low = np.exp(-x * x)
    found = SimpleNamespace(
        x=x,
        deterministic=point(np.exp(-0.1 * x)),
        poisson=Bracket(low, 1.2 * low),
        shuffled=Bracket(np.exp(-0.2 * x), np.exp(-0.1 * x)) if shuffled else None,
        renyi=np.exp(-0.5 * x) if shuffled else None,
    )
    draw = chua2024.by_epsilon.figures.compared
    assert faults(drawn((5.2, 3.6), draw, found, r"$\varepsilon$", r"$\delta$", title, least)) == []
