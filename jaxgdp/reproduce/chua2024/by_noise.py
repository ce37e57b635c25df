"""Figures 1, 4 and 5 of Chua 2024: ε against the noise multiplier."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from ...plot.style import power
from ..result import Finding, Number, Result, drawn
from ..verdict import shown
from . import figures
from .samplers import Compared, over_noise

_SIGMAS, _QUICK = np.linspace(0.35, 1.5, 24), np.linspace(0.4, 1.2, 5)
_AXIS = "noise_multiplier"
_LITTLE = 0.01  # relative, of what is "not much amplification"


@functools.cache
def _found(batches: int, delta: float, named: float, quick: bool) -> Compared:
    sigma = np.unique(np.round(np.append(_QUICK if quick else _SIGMAS, named), 6))
    return over_noise(sigma, batches, delta, quick)


def _result(
    found: Compared, answers: Mapping[str, Number | Finding], name: str, batches: int, delta: float
) -> Result:
    title = rf"$T = {batches:,}$, $\delta = {power(delta)}$"
    texts, table = (r"noise multiplier $\sigma$", r"$\varepsilon$", title), found.table(_AXIS)
    return drawn(name, answers, table, figures.compared, found, *texts, None, size=(5.2, 3.6))


def figure_1(quick: bool) -> Result:
    """T = 100,000 at δ = 1e-6: shuffling hardly helps where σ is small."""
    found = _found(100_000, 1e-6, 0.4, quick)
    here = found.at(0.4)
    near = (here.shuffled.lower > (1.0 - _LITTLE) * here.deterministic.upper) and (
        here.shuffled.lower > here.poisson.upper
    )
    answers = {
        "figure-1-poisson": Number(here.poisson),
        "figure-1-shuffled": Number(here.shuffled),
        "figure-1-amplification": Finding(
            f"σ = 0.4: fixed order {shown(here.deterministic)}, shuffled {shown(here.shuffled)},"
            f" Poisson {shown(here.poisson)}",
            bool(near),
            f"the lower side of shuffled batches is within {_LITTLE:.0%} of a fixed order's ε and"
            " above Poisson sampling's upper side",
        ),
    }
    return _result(found, answers, "figure-1", 100_000, 1e-6)


def _appendix(name: str, batches: int, delta: float, sigma: float, quick: bool) -> Result:
    found = _found(batches, delta, sigma, quick)
    here = found.at(sigma)
    theirs = (
        f"Rényi DP at the orders of the paper's accountant gives {here.renyi:.4g}, an upper bound"
    )
    answers = {
        f"{name}-poisson": Number(here.poisson),
        f"{name}-renyi": Number(here.poisson, note=theirs),
        f"{name}-shuffled": Number(here.shuffled),
        f"{name}-deterministic": Number(here.deterministic),
    }
    return _result(found, answers, name, batches, delta)


def figure_4(quick: bool) -> Result:
    """T = 10,000 at δ = 1e-6."""
    return _appendix("figure-4", 10_000, 1e-6, 0.5, quick)


def figure_5(quick: bool) -> Result:
    """T = 1000 at δ = 1e-5."""
    return _appendix("figure-5", 1000, 1e-5, 0.7, quick)
