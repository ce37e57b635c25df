"""One reading off many certified curves: by NumPy where they are few, else compiled."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np

from ..accounting.certify.curve import Curve
from ..accounting.run.executors import COMPILED, choose
from ..bracket import Bracket
from ..numerics import batching
from ..numerics.compiling import Program
from ..numerics.once import sharing
from ..numerics.recent import Recent
from ..numerics.shapes import ArrayLike
from ..numerics.validation import broadcast
from ..quantities.base import Quantity

_AT_ONCE = 2**20  # vertices looked at together
_IN_CACHE = 2**18  # numbers in an array of many readings that NumPy makes at once, at most
_READS = 8  # readings that take as long as one setting of ``measure``
_SHARED = Recent(2**25, each=2**7)  # bytes: what readings of the same curves have in common
_ARRAYS = 8  # times the bytes of a curve that what its readings need may take
_COMPILED: set = set()  # readings whose program is compiled


@functools.partial(Program, static_argnames=("quantity", "symmetric"))
def _ask_all(curves: Curve, queries: np.ndarray, *, quantity: Quantity, symmetric: bool) -> Bracket:
    """Every curve of a stack (leading axis) at each of its own queries (second axis)."""
    return jax.vmap(
        lambda c, row: jax.vmap(lambda q: quantity.read(c, q, symmetric=symmetric))(row)
    )(curves, queries)


def read_curves(
    curves: tuple, quantity: Quantity, values: ArrayLike, shape: tuple[int, ...], symmetric: bool
) -> Bracket:
    """The common part of all readings of each of many mechanisms, not yet compared.

    Args:
        curves: for each mechanism of ``shape`` a row of its certified curves.
        quantity: what is read.
        values: what it is read at, broadcast against ``shape``.
        shape: that of the mechanisms.
        symmetric: whether both orders of the pair count.

    Returns:
        The narrowest sides, of the broadcast shape.
    """
    wide = broadcast(mechanism=np.empty(shape), argument=values)
    owner = np.broadcast_to(np.arange(len(curves)).reshape(shape), wide).reshape(-1)
    flat = np.broadcast_to(np.asarray(values, float), wide).reshape(-1)
    low, high = np.full(flat.shape, -np.inf), np.full(flat.shape, np.inf)
    # a place belongs to one curve
    entries = [
        (i, curve)
        for i, row in enumerate(curves)
        for curve in (row[-1:] if quantity.of_one_curve else row)
    ]
    of_setting = [np.flatnonzero(owner == i) for i in range(len(curves))]
    where = [of_setting[i] for i, _ in entries]
    if quantity.read_known is not None:
        for (_, curve), rows in zip(entries, where, strict=True):
            _read_known(curve, quantity, symmetric, rows, flat, low, high)
    entries = [(i, curve._replace(known=None)) for i, curve in entries]
    number = sum(map(len, where))
    executor = choose(-(-number // _READS), (quantity, symmetric) in _COMPILED)
    if executor is COMPILED:
        _read_compiled(quantity, symmetric, entries, where, flat, low, high)
    else:
        for (_, curve), rows in zip(entries, where, strict=True):
            if len(rows) > 0:
                found = _read_by_numpy(curve, quantity, flat[rows], symmetric)
                low[rows] = np.maximum(low[rows], found.lower)
                high[rows] = np.minimum(high[rows], found.upper)
    return Bracket(low.reshape(wide), high.reshape(wide))


def _read_by_numpy(
    curve: Curve, quantity: Quantity, queries: np.ndarray, symmetric: bool
) -> Bracket:
    """A curve at its queries: what several readings need of it alone is computed once."""
    room = min(len(queries), _IN_CACHE // np.size(curve.upper_plus.log_alpha))
    # (what a large curve needs is kept no longer than it is read, and so is what many rows share)
    small = 8 * sum(map(np.size, jax.tree.leaves(curve))) <= _SHARED.most // _ARRAYS
    read = functools.partial(quantity.read, symmetric=symmetric)
    with np.errstate(all="ignore"), sharing(_SHARED if small and room <= 1 else None):
        return batching.run(read, (queries,), room, alike=(curve,))


def _read_known(
    curve: Curve,
    quantity: Quantity,
    symmetric: bool,
    rows: np.ndarray,
    flat: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Narrow ``low`` and ``high`` by what is known of a curve in closed form."""
    if curve.known is None or quantity.read_known is None or len(rows) == 0:
        return
    parts = curve.known.expanded() if curve.known.curve.batched else curve.known
    with np.errstate(all="ignore"):
        found = quantity.read_known(parts, flat[rows], symmetric=symmetric)
    if found is not None:
        low[rows], high[rows] = (
            np.maximum(low[rows], found.lower),
            np.minimum(high[rows], found.upper),
        )


def _read_compiled(
    quantity: Quantity,
    symmetric: bool,
    entries: list[tuple[int, Curve]],
    where: Sequence[np.ndarray],
    flat: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Narrow ``low`` and ``high`` by every curve at its own queries, many at a time."""
    _COMPILED.add((quantity, symmetric))
    kinds: dict[tuple, list[int]] = {}
    for k, (_, curve) in enumerate(entries):
        kinds.setdefault(tuple(np.shape(leaf) for leaf in jax.tree.leaves(curve)), []).append(k)
    for members in kinds.values():
        longest = max(len(where[k]) for k in members)
        if longest == 0:
            continue
        # bounded memory: so many curves at a time, each at so many of its queries
        points = np.size(entries[members[0]][1].upper_plus.log_alpha)
        wide = min(longest, max(1, _AT_ONCE // points))
        many = min(len(members), max(1, _AT_ONCE // (points * wide)))
        for start in range(0, len(members), many):
            part = (members[start : start + many] * many)[:many]
            stack = jax.tree.map(lambda *leaves: np.stack(leaves), *(entries[k][1] for k in part))
            for first in range(0, longest, wide):
                columns = np.arange(first, first + wide)
                rows = np.stack(
                    [np.resize(where[k], longest).take(columns, mode="wrap") for k in part]
                )
                found = _ask_all(stack, flat[rows], quantity=quantity, symmetric=symmetric)
                np.maximum.at(low, rows, np.asarray(found.lower))
                np.minimum.at(high, rows, np.asarray(found.upper))
