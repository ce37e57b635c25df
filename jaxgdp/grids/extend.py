"""A store that is filled, or extended: of more values on its axes only new settings are computed.

An extension is a store of its own beside the old one, ``<store>.extended``. Known numbers are
copied from the old store, new ones computed; when it is whole it takes the name of the old one. A
process that is killed on the way leaves the old store as it was, and the next call goes on.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.optional import Client
from ..numerics.shapes import Array
from ..scale.compute import compute_missing
from ..scale.layout import Region
from ..scale.lock import locked
from ..scale.store import undamaged
from ..scale.template import OWN, Template
from .grid import Count, Grid


def fill(
    path: Path,
    grid: Grid,
    chunk_size: int,
    any_executor: bool,
    skip: Count,
    progress: Count,
    client: Client | str | None = None,
) -> None:
    """Compute whatever a store lacks, and extend a store that holds a part of the grid.

    Args:
        path: of the store, made if there is none.
        grid: the whole grid.
        chunk_size: settings of a chunk, at most.
        any_executor: whether nobody chose one, so that an extension keeps that of its store.
        skip, progress, client: as for ``compute_missing``.

    Raises:
        ValueError: the store belongs to another question or version.
        OSError: as by ``compute_missing``.
    """
    beside = path.with_name(path.name + ".extended")
    if not path.exists() and beside.exists():  # (killed between two renames)
        os.rename(beside, path)
    old = _question(path)
    if old is not None and any_executor and _extends(grid._replace(executor=None), old, True):
        grid = grid._replace(executor=old["executor"])
    template = grid.template(chunk_size)
    if old is None or not _extends(grid, old):
        compute_missing(path, template, grid.measured, skip, progress, client)
        return
    with locked(path):
        undamaged(path)
        _versions_agree(path, old, template)
        compute = functools.partial(measured_beside, grid, path)
        compute_missing(beside, template, compute, skip, progress, client)
        gone = path.with_name(path.name + ".replaced")
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(path, gone)
        os.rename(beside, path)
        shutil.rmtree(gone)
        lock = beside.with_name(beside.name + ".lock")
        lock.unlink(missing_ok=True)


def _question(path: Path) -> dict[str, Any] | None:
    """The question of a store, or None where there is none that can be read."""
    try:
        return json.loads((path / OWN / "zarr.json").read_bytes())["attributes"]["question"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _extends(grid: Grid, old: dict[str, Any], any_executor: bool = False) -> bool:
    """Whether the grid holds all of a store's values and more, at the same question."""
    mine = grid.template(1).question
    free = {*grid.axes, "chunk", *(["executor"] if any_executor else [])}
    if any(mine.get(name) != old.get(name) for name in (mine.keys() | old.keys()) - free):
        return False
    held = [set(old.get(name, ())) <= set(values.tolist()) for name, values in grid.axes.items()]
    same = all(len(old.get(name, ())) == len(values) for name, values in grid.axes.items())
    return all(held) and not same


def _versions_agree(path: Path, old: dict[str, Any], template: Template) -> None:
    from ..scale.template import versions

    own = json.loads((path / OWN / "zarr.json").read_bytes())["attributes"]["versions"]
    for name, here in versions().items():
        if own.get(name) != here:
            raise ValueError(
                f"store {path} is of another version: its {name} is {own.get(name)}, here it is"
                f" {here}; give another store"
            )


def measured_beside(
    grid: Grid,
    old: Path,
    region: Region,
    progress: Count | None,
    client: Client | str | None = None,
) -> dict[str, Array]:
    """All variables of a part of the grid: those of the old store copied, the others computed."""
    known = _known(grid, old, region)
    status = known["status"].reshape(-1)
    wanted = status < 0
    if progress is not None:
        getattr(progress, "skip", progress)(int(np.sum(~wanted)))
    if not np.any(wanted):
        return known
    found = grid.measured(region, progress, client, wanted)
    return {
        name: np.where(wanted.reshape(a.shape), found[name], a).astype(a.dtype)
        for name, a in known.items()
    }


def _known(grid: Grid, old: Path, region: Region) -> dict[str, Array]:
    """Every variable of a part of the grid, as far as the old store has it; status -1 elsewhere."""
    import zarr

    root = zarr.open_group(old, mode="r")
    here, there = [], []
    for (name, values), part in zip(grid.axes.items(), region, strict=True):
        place = {value: i for i, value in enumerate(np.asarray(root[name]).tolist())}
        mine = values[part].tolist()
        here.append([i for i, value in enumerate(mine) if value in place])
        there.append([place[value] for value in mine if value in place])
    shape = tuple(part.stop - part.start for part in region)
    found = {}
    for name, array in root.arrays():
        if array.ndim != len(shape):
            continue
        filled = np.full(shape, array.fill_value, array.dtype)
        if all(map(len, here)):
            filled[np.ix_(*here)] = array.oindex[tuple(there)]
        found[name] = filled
    return found
