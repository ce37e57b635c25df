"""The regret landscape: Figure 3 of Gomez 2025 and what its Section 5 reads off it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...grids.landscape import RULE_LIMIT, landscape, rule_of_thumb
from ...numerics.optional import Dataset
from ...plot import regret_panels
from ..result import Finding, Number, Result, Table, drawn

_AXES = ("noise_multiplier", "sampling_prob", "num_steps")
# a few settings, the rule of thumb's worst one among them
_QUICK = {
    "noise_multiplier": (1.0, 2.0, 4.0),
    "sampling_prob": (1e-3, 1e-2, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0),
    "num_steps": (400, 2000),
}


def figure_3(quick: bool) -> Result:
    """Δ against sampling rate for each σ and T."""
    dataset = landscape(**_QUICK if quick else {}).transpose(*_AXES)
    lower, upper = dataset["regret_lower"].values, dataset["regret_upper"].values
    answers: dict[str, Number | Finding] = {
        "figure-3-rule": _rule(dataset),
        "figure-3-steps": _always_lowers(lower, upper, dataset, 2),
        "figure-3-noise": _always_lowers(lower, upper, dataset, 0),
        "figure-3-rate": _not_monotonic(lower, upper),
    }
    columns = ("mu_lower", "mu_upper", "regret_lower", "regret_upper", "status")
    axes = np.meshgrid(*(dataset[name].values for name in _AXES), indexing="ij")
    values = [a.ravel() for a in (*axes, *(dataset[name].values for name in columns))]
    table, floor = Table.of_columns((*_AXES, *columns), *values, digits=17), dataset.fpr_floor
    return drawn(
        "figure-3", answers, table, regret_panels, dataset, size=(10.2, 4.2), fpr_floor=floor
    )


def _rule(dataset: Dataset) -> Finding:
    """σ ≥ 2 and T ≥ 400 imply Δ < 0.01?"""
    verdicts = rule_of_thumb(dataset)
    failed = [v for v in verdicts if v.verdict == "fails"]
    undecided = [v for v in verdicts if v.verdict == "undecided"]
    settings = sum(dataset.sizes["sampling_prob"] for _ in verdicts)
    inside = dataset.where(
        (dataset.noise_multiplier >= 2.0) & (dataset.num_steps >= 400), drop=True
    )
    worst = inside.regret_lower.argmax(...)
    at = inside.isel(worst)
    text = (
        f"largest Δ at least {float(at.regret_lower):.4g} (σ = {float(at.noise_multiplier):g}, T ="
        f" {int(at.num_steps)}, p = {float(at.sampling_prob):.3g}), over {settings} settings"
    )
    if failed:
        where = "; ".join(
            f"σ = {v.noise_multiplier:g}, T = {v.num_steps}: p = {min(v.sampling_probs):.3g} to"
            f" {max(v.sampling_probs):.3g}"
            for v in failed
        )
        return Finding(
            text, False, f"the certified lower side of Δ reaches {RULE_LIMIT:g} at {where}"
        )
    if undecided:
        return Finding(text, None, "some brackets straddle it")
    return Finding(text, True, "every upper side is below it")


def _setting(dataset: Dataset, index: Iterable[int]) -> str:
    sigma, rate, steps = (
        float(dataset[name].values[i]) for name, i in zip(_AXES, index, strict=True)
    )
    return f"σ = {sigma:g}, p = {rate:.3g}, T = {steps:g}"


def _always_lowers(lower: np.ndarray, upper: np.ndarray, dataset: Dataset, axis: int) -> Finding:
    """Whether Δ falls from each grid point to the next along an axis, by the brackets."""
    low, high = np.moveaxis(lower, axis, -1), np.moveaxis(upper, axis, -1)
    falls, rises = high[..., 1:] < low[..., :-1], low[..., 1:] > high[..., :-1]
    total = falls.size
    unknown = total - int(falls.sum()) - int(rises.sum())
    text = (
        f"of {total} neighbouring pairs {int(falls.sum())} fall, {int(rises.sum())} rise, {unknown}"
        " have overlapping brackets"
    )
    if rises.any():
        growth = np.where(rises, low[..., 1:] - high[..., :-1], 0.0)
        worst = [int(i) for i in np.unravel_index(np.argmax(growth), growth.shape)]
        index = [*worst[:-1]]
        index.insert(axis, worst[-1])
        after = list(index)
        after[axis] += 1
        name = ("σ", "p", "T")[axis]
        there = f"{float(dataset[_AXES[axis]].values[after[axis]]):g}"
        values = f"{upper[tuple(index)]:.3g} to at least {lower[tuple(after)]:.3g}"
        return Finding(
            text,
            False,
            f"Δ rises from at most {values} between {_setting(dataset, index)} and {name} ="
            f" {there}",
        )
    if unknown:
        return Finding(text, None, "no certified rise; where the brackets overlap they cannot tell")
    return Finding(text, True, "every pair falls, by the brackets")


def _not_monotonic(lower: np.ndarray, upper: np.ndarray) -> Finding:
    """Whether Δ both rises and falls with the sampling rate, by the brackets."""
    low, high = np.moveaxis(lower, 1, -1), np.moveaxis(upper, 1, -1)
    peak = np.max(low, axis=-1)
    both = (peak > high[..., 0]) & (peak > high[..., -1])
    text = f"Δ rises and then falls with p for {int(both.sum())} of {both.size} pairs (σ, T)"
    return Finding(
        text,
        True if both.any() else None,
        "the largest lower side exceeds the upper sides at both ends of the range",
    )
