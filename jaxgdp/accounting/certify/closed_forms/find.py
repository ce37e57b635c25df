"""Which settings of a batch have a curve in closed form: found by asking their mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ....mechanisms.bracketed_pair import BracketedPair
from ....mechanisms.composition import Groups
from ....numerics import batching
from ....numerics import namespace as xp
from ....numerics.errors import COMPOSED_MU
from ....numerics.shapes import Array, Bool
from ....pairs.known_curves import (
    FiniteCurve,
    GaussianCurve,
    KnownCurve,
    composed,
    number_of_outputs,
)
from ..curve import GaussianParts

_ROOM = 2**14  # components that are asked at once
_SAME = 1e-13  # relative distance up to which both Gaussian bounds are one curve
_MOST_OUTPUTS = 1024  # of a few uses, that are counted
# outputs times the log of the least mass, up to which rounding leaves some ten digits
_MOST_ROUNDING = 4e5


# of mechanisms without a privacy loss but 0
_NOTHING = FiniteCurve.of_atoms(np.zeros(1), np.zeros(1), np.zeros(1), mass_error=0.0)


class Found(NamedTuple):
    """What is known of one setting.

    Attributes:
        known: its curve in closed form; None where two tables are known instead.
        tables: the pair of tables.
        parts: the Gaussian curves that it lies between.
        counted: it has several uses, whose outputs were counted.
    """

    known: KnownCurve | None
    tables: BracketedPair | None
    parts: GaussianParts
    counted: bool = False


def find(groups: Groups) -> list[Found | None]:
    """What is known of each setting, None where a lattice is needed.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).

    Method: docs/method/known.md#which
    """
    found: list[Found | None] = [None] * groups[0][1].shape[0]
    gaussian = _gaussian(groups)
    for row in np.flatnonzero(gaussian.alone):
        parts = GaussianParts(gaussian.tail[row], gaussian.part[row])
        sides = np.array([gaussian.part[row], gaussian.tail[row]])
        curve = GaussianCurve(*(sides * (1.0 + COMPOSED_MU * np.array([-1.0, 1.0]))))
        found[row] = Found(curve, None, parts)
    shown = [_shown(mechanism, count) for mechanism, count in groups]
    uses = sum(
        np.sum(np.where(s, count, 0.0), axis=-1)
        for s, (_, count) in zip(shown, groups, strict=True)
    )
    for row in np.flatnonzero(uses == 0.0):
        found[row] = Found(_NOTHING, None, GaussianParts(np.zeros(()), np.zeros(())))
    for row in np.flatnonzero((uses == 1.0) & ~gaussian.alone):
        for (mechanism, _), own in zip(groups, shown, strict=True):
            for k in np.flatnonzero(own[row]):
                found[row] = _one_use(jax.tree.map(lambda a: a[row, k], mechanism))  # noqa: B023
    few = (uses > 1.0) & (uses < _MOST_OUTPUTS) & ~gaussian.alone
    for (mechanism, _), own in zip(groups, shown, strict=True):
        few &= mechanism.atomic | ~np.any(own, axis=-1)
    for row in np.flatnonzero(few):
        found[row] = _few_uses(groups, shown, int(row))
    return found


def _few_uses(
    groups: Groups, shown: list[Bool[Array, "settings components"]], row: int
) -> Found | None:
    """What is known of a few uses of pairs on a few outputs each."""
    pieces: list[tuple[FiniteCurve, int]] = []
    tail = part = 0.0
    with np.errstate(all="ignore"):
        for (stacked, counts), own in zip(groups, shown, strict=True):
            for k in np.flatnonzero(own[row]):
                mechanism = jax.tree.map(lambda a: a[row, k], stacked)  # noqa: B023
                count = float(counts[row, k])
                known = mechanism.known_curve() if count.is_integer() else None
                alike = mechanism.lower_bound_member() is mechanism
                if not isinstance(known, FiniteCurve) or not alike:
                    return None
                pieces.append((known, int(count)))
                if number_of_outputs(pieces) > _MOST_OUTPUTS:
                    return None
                tail += count * float(mechanism.tail_precision())
                part += count * float(mechanism.gaussian_part_precision())
        whole = composed(pieces)
        deepest = float(max(np.max(np.abs(whole.log_p)), np.max(np.abs(whole.log_q))))
    if len(whole.loss) * deepest > _MOST_ROUNDING:
        return None
    return Found(whole, None, GaussianParts(np.sqrt(tail), np.sqrt(part)), True)


class _Gaussian(NamedTuple):
    alone: Bool[Array, " settings"]
    tail: Array
    part: Array


def _gaussian(groups: Groups) -> _Gaussian:
    """Settings whose Gaussian bounds from both sides are one curve."""
    none = np.zeros(groups[0][1].shape[0], bool)
    each = lambda read: [np.asarray(of_each(read, mechanism)) for mechanism, _ in groups]
    parts = each(lambda m: m.gaussian_part_precision())
    used = [count > 0.0 for _, count in groups]
    for part, use in zip(parts, used, strict=True):
        if not np.any(np.all((part > 0.0) | ~use, axis=-1)):
            return _Gaussian(none, none, none)
    tails = each(lambda m: m.tail_precision())
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        tail, part = (
            np.sqrt(
                sum(
                    np.sum(np.where(count > 0.0, count * a, 0.0), axis=-1)
                    for a, (_, count) in zip(precisions, groups, strict=True)
                )
            )
            for precisions in (tails, parts)
        )
        alone = (part > 0.0) & (tail <= part * (1.0 + _SAME)) & np.isfinite(tail)
    return _Gaussian(alone, tail, part)


def _shown(mechanism: Any, count: Array) -> Bool[Array, "settings components"]:
    """Components that reveal anything."""
    used = np.asarray(count) > 0.0
    with np.errstate(all="ignore"):
        nothing = of_each(lambda m: m.reveals_nothing(), mechanism)
    return used & ~np.asarray(nothing, bool)


def of_each(read: Callable, stacked: Any) -> Any:
    """``read`` of the mechanism of every component of every setting."""
    return batching.run(xp.vmap(read), (stacked,), _ROOM)


def _one_use(mechanism: Any) -> Found | None:
    """What one mechanism (unbatched) knows of its curve."""
    with np.errstate(all="ignore"):
        parts = GaussianParts(
            np.sqrt(mechanism.tail_precision()), np.sqrt(mechanism.gaussian_part_precision())
        )
        tables = mechanism.bracketed()
        if tables is not None:
            return Found(None, tables, parts)
        known = mechanism.known_curve()
    return None if known is None else Found(known, None, parts)
