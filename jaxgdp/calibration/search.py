"""The search of one batch of calibrations, here or in pieces by the workers of a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Client
from ..progress import show_progress
from ..targets import Regret, Target
from . import regret
from .families import DPSGD, UNKNOWNS, Epochs
from .solver import Solved, Solver

# that a batch is cut into for the workers of a client, at least, unless they would be too small
_PIECES = 32
_SIZES = (8, 256)  # calibrations of a piece, from and to

_Piece = tuple[int, str, dict[str, Any], Target, float, str]


def search(
    family: Any,
    target: Target,
    tolerance: float,
    adjacency: str,
    progress: Callable[[int], object] | bool | None = None,
    client: Client | str | None = None,
    limit: Any = None,
) -> Solved:
    """Search every calibration of a batch.

    Args:
        family: of the batch, with a client DP-SGD or epochs of a sampler.
        target: flat, of the same length.
        tolerance, adjacency, progress: as for :func:`jaxgdp.calibrate`.
        client: ``dask.distributed.Client`` or the address of a scheduler; None for here.
        limit: the target's quantity without noise, where it is known; it only guides the search.

    Returns:
        :class:`jaxgdp.calibration.solver.Solved`, one row each.
    """
    if client is None:
        function = progress if callable(progress) else None
        with show_progress("calibrating", 0, None if function else progress) as evaluated:
            if isinstance(target, Regret):
                return regret.solve(family, target, tolerance, adjacency, function, evaluated)
            return Solver(family, target, tolerance, adjacency, function, evaluated, limit).run()
    from ..scale.cluster import each

    found = empty(len(target.goal))
    with show_progress("calibrating", len(target.goal), progress, "calibrations") as count:
        for start, part in each(client, _piece, _pieces(family, target, tolerance, adjacency)):
            put(found, np.arange(start, start + len(part.value)), part)
            count(len(part.value))
    return found


def _pieces(family: Any, target: Target, tolerance: float, adjacency: str) -> list[_Piece]:
    number = len(target.goal)
    size = int(np.clip(-(-number // _PIECES), *_SIZES))
    pieces = []
    for start in range(0, number, size):
        rows = np.arange(start, min(start + size, number))
        known = {name: value[rows] for name, value in family.known.items()}
        kind = family.sampler if isinstance(family, Epochs) else family.unknown.name
        pieces.append((start, kind, known, target.take(rows), tolerance, adjacency))
    return pieces


def _piece(piece: _Piece) -> tuple[int, Solved]:
    """The task of a worker."""
    start, kind, known, target, tolerance, adjacency = piece
    shape = (len(target.goal),)
    family = DPSGD(UNKNOWNS[kind], shape, known) if kind in UNKNOWNS else Epochs(kind, shape, known)
    return start, search(family, target, tolerance, adjacency)


def empty(number: int) -> Solved:
    """Answers of so many calibrations before there are any."""
    blank = lambda: np.full(number, np.nan)
    count = lambda: np.zeros(number, np.int64)
    return Solved(
        blank(),
        Bracket(blank(), blank()),
        blank(),
        Bracket(blank(), blank()),
        count(),
        count(),
        count(),
    )


def put(found: Solved, rows: np.ndarray, part: Solved) -> None:
    """Write the answers of some rows."""
    for whole, piece in zip(found, part, strict=True):
        for kept, new in (
            zip(whole, piece, strict=True) if isinstance(whole, Bracket) else ((whole, piece),)
        ):
            kept[rows] = new
