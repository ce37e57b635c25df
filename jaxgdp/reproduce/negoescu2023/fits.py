"""Figure 6 of Negoescu 2023: Kolmogorov-Smirnov p-values of mixtures fitted to losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...audit import mixtures
from ..result import Finding, Result, Table, drawn
from . import figures
from .landscapes import parts, two
from .training import Strategy

COMPONENTS, SAMPLES = (1, 2, 3, 4, 5, 7, 10, 15, 20), (100, 300, 1000)
QUICK_COMPONENTS, QUICK_SAMPLES = (1, 3), (50, 100)
_LEVEL = 0.05


class Fits(NamedTuple):
    """p-values of one model.

    Attributes:
        name: of the model.
        components, samples: numbers of each that were tried.
        pvalues: shape (samples, components).
    """

    name: str
    components: tuple[int, ...]
    samples: tuple[int, ...]
    pvalues: np.ndarray


def fits(strategy: Strategy, quick: bool) -> Fits:
    """p-values of the first model of a strategy, of every number of components and of samples."""
    components, samples = (QUICK_COMPONENTS, QUICK_SAMPLES) if quick else (COMPONENTS, SAMPLES)
    values, _ = mixtures.transformed(strategy.member[0], strategy.nonmember[0])
    samples = tuple(n for n in samples if n <= len(values) // 2)
    found = [[float(mixtures.goodness_of_fit(values, k, n)) for k in components] for n in samples]
    return Fits(strategy.name, components, samples, np.array(found))


def figure_6(quick: bool) -> Result:
    """A model without DP-SGD, and one with."""
    data, strategies, missing = two(quick)
    (*_, plain), (private, *_) = parts(strategies)
    panels = [fits(s, quick) for s in (plain, private)]
    shares = [float(np.mean(p.pvalues > _LEVEL)) for p in panels]
    one = [float(np.mean(p.pvalues[:, 0] > _LEVEL)) for p in panels]
    where = f"on {data.name}" + (f" ({missing})" if missing else "")
    answers = {
        "figure-6-above": Finding(
            f"{100 * shares[0]:.0f} % without DP ({plain.name}), {100 * shares[1]:.0f} % with"
            f" ({private.name})",
            min(shares) > 0.5,
            where,
        ),
        "figure-6-dp": Finding(
            f"one component: {100 * one[0]:.0f} % of sample sizes above 0.05 without DP,"
            f" {100 * one[1]:.0f} % with",
            one[1] >= one[0] if one[1] != one[0] else None,
            where + "; a large p-value does not show that a fit is good",
        ),
    }
    rows = [
        (p.name, str(n), str(k), p.pvalues[i, j])
        for p in panels
        for i, n in enumerate(p.samples)
        for j, k in enumerate(p.components)
    ]
    table = Table.of_rows("model samples components p_value", rows, digits=6)
    return drawn("figure-6", answers, table, figures.fits, panels, size=(7.6, 3.0))
