"""How a calibration is searched for, what was found, and the result that is made of it, or the
error where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ..adjacency import Adjacency
from ..bracket import Bracket, plain
from ..measure import measure
from ..mechanisms import Composition
from ..numerics.optional import Client
from ..numerics.shapes import Array
from ..targets import TPR, Target
from .families import BATCH_SIZE, SAMPLING_PROB, After, Unknown
from .result import Calibration
from .solver import Solved
from .status import EVERY, NONE

Family: TypeAlias = Any  # DPSGD, Epochs, Scaled or black boxes


@dataclass(frozen=True)
class How:
    """How a calibration is searched for, checked; see :func:`calibrate`."""

    rtol: float
    adjacency: Adjacency
    infeasible: str
    progress: Callable[[int], object] | bool | None
    client: Client | str | None
    after: Composition | None = None


class Found(NamedTuple):
    """Answers, and which of them closed forms gave."""

    found: Solved
    closed: Array


def _impossible(found: Solved, family: Family) -> Array:
    """Which elements have no answer; a sampling rate of 1, or a batch of all data, is one."""
    bounded = family.unknown is SAMPLING_PROB or family.unknown.name == BATCH_SIZE
    return (found.status == NONE) | ((found.status == EVERY) & (not bounded))


def complain(found: Solved, family: Family, target: Target) -> NoReturn:
    """Raise for the first element that cannot be had."""
    bad = np.flatnonzero(_impossible(found, family))
    flat, row = target.flat(family.shape), bad[0]
    known = "".join(
        f", {name} {value[row]:g}" for name, value in getattr(family, "known", {}).items()
    )
    others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    if len(found.status) > 1:
        others += "; infeasible='flag' leaves that in status and returns the other elements"
    why = _why(found, row, family.unknown)
    raise ValueError(f"target {one_target(flat, row).describe()}{known} {why}{others}")


def _why(found: Solved, row: int, unknown: Unknown) -> str:
    """What is known of an element without an answer, and how far it was searched."""
    name, up = unknown.name, unknown.sign > 0
    if found.status[row] == EVERY:
        if np.isnan(found.value[row]):
            return f"is a target weaker than no noise: every {name} meets it"
        end = "down" if up else "up"
        return f"is met by every {name} tried, {end} to {found.value[row]:g}"
    if unknown.whole:
        return f"cannot be met: no {name} meets it, not even {found.rejected[row]:g}"
    end = "up" if up else "down"
    return f"cannot be met: no {name} was found that meets it, {end} to {found.rejected[row]:g}"


def one_target(flat: Target, row: int) -> Target:
    return flat.take(np.array([row]))


def finish(answer: Found, family: Family, target: Target, how: How) -> Calibration:
    """The result in the user's shape."""
    found, closed = answer
    shape = family.shape
    if how.infeasible == "raise" and np.any(_impossible(found, family)):
        complain(found, family, target)

    def measure_tpr(fprs: tuple[float, ...]) -> Bracket:
        """TPR of the calibrated mechanisms at a few FPRs, along one more axis."""
        some = np.flatnonzero(np.isfinite(found.value) & (found.status != EVERY))
        sides = np.full((2, len(found.value), len(fprs)), np.nan)
        if hasattr(family, "box"):
            for row in some:
                for k, fpr in enumerate(fprs):
                    sides[:, row, k] = family.box(float(found.value[row])).read(
                        TPR(0.5 + 0.5 * fpr, fpr)
                    )
        elif len(some):
            rows = np.repeat(some, len(fprs))
            asked = np.tile(np.asarray(fprs), len(some))
            mechanism = family.at(found.value[rows], rows)
            if how.after is not None:
                every = np.arange(len(found.value))
                mechanism = After(family, how.after, every).at(np.asarray(found.value)[rows], rows)
            part = measure(
                mechanism, ("tpr",), fpr=asked, fpr_floor=0.5 * asked, adjacency=how.adjacency
            ).brackets["tpr"]
            sides[:, some] = np.reshape(part, (2, len(some), len(fprs)))
        return Bracket(*(side.reshape(*shape, len(fprs)) for side in sides))

    def shaped(bracket: Bracket) -> Bracket:
        return plain(Bracket(*(side.reshape(shape) for side in bracket)))

    return Calibration(
        found.value.reshape(shape), shaped(found.achieved),
        found.rejected.reshape(shape), shaped(found.rejected_achieved),
        found.status.reshape(shape), found.iterations.reshape(shape),
        found.evaluations.reshape(shape), how.rtol, target, family.unknown.name,
        str(how.adjacency), closed.reshape(shape), measure_tpr,
    )  # fmt: skip
