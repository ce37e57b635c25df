"""A comparison of samplers as plain text."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Dataset
from ..numerics.rounding import rounded_outward
from ..quantities.registry import named
from .dataset import quantities_of

DIMENSIONS = ("noise_multiplier", "batch_size", "num_epochs")


def answers(found: Dataset) -> list[str]:
    """ "I shuffle, but I accounted for Poisson sampling: how wrong am I?", a line for each setting.

    Args:
        found: from :func:`compare_samplers`, with "shuffled" and "poisson" and any quantity that
            grows with the privacy loss.

    Returns:
        Lines of plain text; none where a sampler or a quantity is missing.
    """
    if not {"shuffled", "poisson"} <= set(found["sampler"].values.tolist()):
        return []
    grows = [name for name in quantities_of(found) if named(name).grows]
    if not grows:
        return []
    name = grows[0]
    lines = []
    for index in np.ndindex(*(found.sizes[axis] for axis in DIMENSIONS)):
        at = found.isel(dict(zip(DIMENSIONS, index, strict=True)))
        told, truth = (_bracket(at.sel(sampler=s), name) for s in ("poisson", "shuffled"))
        batches = int(np.ceil(found.attrs["dataset_size"] / float(at["batch_size"])))
        epochs = int(at["num_epochs"])
        where = (
            f"sigma = {float(at['noise_multiplier']):g}, {batches} batches an epoch, {epochs}"
            f" epoch{'s' * (epochs > 1)}"
        )
        point = found[name].attrs.get("at")
        argument = "" if point is None else f" ({named(name).argument} = {point:g})"
        reported, low, high = (
            rounded_outward(value, up=up, digits=4)
            for value, up in ((told.upper, True), (truth.lower, False), (truth.upper, True))
        )
        lines.append(
            f"{where}: shuffled, but accounted for as Poisson sampling: the {name} reported is"
            f" {reported}, the true one is between {low} and {high},"
            f" {_how_wrong(told, truth)}{argument}"
        )
    return lines


def _bracket(one: Dataset, name: str) -> Bracket:
    return Bracket(float(one[f"{name}_lower"]), float(one[f"{name}_upper"]))


def _how_wrong(told: Bracket, truth: Bracket) -> str:
    if truth.lower > told.upper:
        return f"at least {np.floor(10.0 * truth.lower / told.upper) / 10.0:g} times as much"
    if truth.upper <= told.upper:
        return "not more than that"
    return (
        f"which may be up to {np.ceil(10.0 * truth.upper / told.lower) / 10.0:g} times as much and"
        " is not known"
    )


def summary_text(found: Dataset) -> str:
    """Both sides of every quantity by sampler, and the answers, as plain text."""
    own = quantities_of(found)
    columns = "".join(f"  {name + ' lower':>18}  {name + ' upper':>18}" for name in own)
    lines = [f"{'sigma':>8}  {'batch':>8}  {'epochs':>6}  {'sampler':<19}{columns}"]
    for index in np.ndindex(*(found.sizes[axis] for axis in DIMENSIONS)):
        at = found.isel(dict(zip(DIMENSIONS, index, strict=True)))
        where = (
            f"{float(at['noise_multiplier']):>8g}  {int(at['batch_size']):>8d} "
            f" {int(at['num_epochs']):>6d}"
        )
        for sampler in found["sampler"].values.tolist():
            one = at.sel(sampler=sampler)
            sides = "".join(f"  {x:>18.6g}" for name in own for x in _bracket(one, name))
            lines.append(f"{where}  {sampler:<19}{sides}")
    lines += ["", *answers(found)]
    if "left_out" in found.attrs:
        lines += ["", f"left out: {found.attrs['left_out']}"]
    if "as_implemented" in found.attrs:
        lines += ["", *found.attrs["as_implemented"].split("; ")]
    if "loose" in found.attrs:
        lines += ["", found.attrs["loose"]]
    return "\n".join(lines)
