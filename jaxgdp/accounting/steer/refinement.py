"""Which look a setting gets next, and why: a pure policy, apart from whoever carries it out.

A *view* is one way of looking at a setting: at its whole curve down to the rates asked for, or at
the neighbourhood of one threshold, where one quantity is read off. :func:`refine` takes a view and
what its last look found and says what to do next. Nothing here is part of a certificate: a poor
choice makes a bracket wide, never wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .lattice_choice import Lattice, most_points

WHOLE = -1  # aim of a view of the whole curve; others are positions in ``Question.asked``
PIECES = (1, 8, 64)  # tilts along a half-curve, fewest first
LONGEST_PIECE = 12.0  # standard deviations one tilt serves
NOTHING_SEEN = ((np.inf, np.inf), (0.0, 0.0))
_FAINTEST = 24.5  # −log of the density, per unit of rtol, that rounding leaves usable
_FEW_STEPS = 1000.0  # up to which their number does not matter
_TRIES, _FEW_TRIES = 6, 2  # lattices for one view, at most
_VACUOUS = 0.3  # relative width of a bracket that tells next to nothing
_STEPS = 12  # towards more detail, before there is said to be no finer lattice
JUMP_SHARES = (
    0.15,
    0.06,
    0.3,
    0.0,
)  # of a threshold: what counts as a jump, at the first look, the second one, …
_MOST_AGAIN = 2  # looks again at a window that was off
_MOST_STEPS = (
    7  # … of one threshold, which comes nearer by a spread with each of them, where a look is cheap
)


@dataclass(frozen=True)
class View:
    """A way of looking at one setting, and what has been tried.

    Attributes:
        setting: its row in the batch.
        aim: ``WHOLE``, or the position of the one quantity the view is for.
        threshold: privacy loss |ℓ| that a view of one quantity is centred at (NaN for the whole
            curve).
        pieces: tilts along a half-curve.
        faintest: −log of the smallest density, under its tilt, at which a piece is used.
        seen: thresholds, and log FPRs there, at which either half was seen to be deep enough; see
            ``windows.plan_whole``.
        detail: how many times finer a lattice than foreseen.
        dense: whether only dense lattices will do.
        tries: looks so far. again: those that only moved the window. closer: those from nearer to
            the far end. idle: those on a finer lattice that hardly helped. size: lattice points of
            the last one.
        excess: smallest excess so far (width over the width promised), of the quantities that the
            view serves.
    """

    setting: int
    aim: int = WHOLE
    threshold: float = np.nan
    pieces: int = 1
    faintest: float = 19.0
    seen: tuple = NOTHING_SEEN
    detail: float = 1.0
    dense: bool = False
    tries: int = 0
    again: int = 0
    closer: int = 0
    idle: int = 0
    size: int = 0
    excess: float = np.inf


class Outcome(NamedTuple):
    """What one look found.

    Attributes:
        lattice: the lattice it had.
        excess: width over the width promised, the worst of the quantities the view serves, all
            looks so far taken together.
        ends: thresholds, and log FPRs there, out to which each half has to be known.
        reach: thresholds out to which each half was planned.
        threshold: where the quantity was found to be read off; NaN if that is not known.
        spread: half the stretch of thresholds that the window resolves.
    """

    lattice: Lattice
    excess: float
    ends: tuple
    reach: tuple
    threshold: float = np.nan
    spread: float = np.inf


@dataclass(frozen=True)
class Rules:
    """What the policy has to know of the question and of the mechanisms.

    Attributes:
        rtol: relative accuracy asked for.
        max_size: largest dense lattice.
        tight: whether both sides are of the same pair, so that a finer lattice brings them
            together.
        keep: whether whole curves are kept.
        coarse: log of how many times larger noise is than that of doubles.
    """

    rtol: float
    max_size: int
    tight: bool = True
    keep: bool = False
    coarse: float = 0.0

    def faintest(self, steps) -> float:
        """−log of the smallest usable density: rounding errors grow with the root of the number of
        steps.
        """
        usable = (
            _FAINTEST - self.coarse + np.log(self.rtol) - 0.5 * np.log(max(steps / _FEW_STEPS, 1.0))
        )
        return float(np.clip(usable, 6.0, 19.0))


PLAN, RUN, DONE = "plan", "run", "done"


class Step(NamedTuple):
    """What to do next with a view: plan it (anew), run it on another lattice, or nothing; and
    why.
    """

    view: View
    action: str
    why: str


def whole(setting: int, steps: float, rules: Rules) -> View:
    """The first view of a setting's whole curve."""
    return View(setting, pieces=PIECES[1 if rules.keep else 0], faintest=rules.faintest(steps))


def focus(setting: int, aim: int, threshold: float, steps: float, rules: Rules) -> View:
    """The first view of one quantity at its threshold."""
    return View(setting, aim, float(threshold), 1, rules.faintest(steps))


def more_pieces(view: View, length: float) -> View | None:
    """The view with more tilts, where one piece is too long for one tilt."""
    if view.aim != WHOLE or length <= LONGEST_PIECE or view.pieces == PIECES[-1]:
        return None
    return dataclasses.replace(view, pieces=next(more for more in PIECES if more > view.pieces))


def finer(
    view: View, lattice: Lattice, more: float, choice: Callable[[View], Lattice]
) -> View | None:
    """The view with at least ``more`` times the detail on another lattice, if there is one."""
    for _ in range(_STEPS):
        view = dataclasses.replace(view, detail=view.detail * more)
        if choice(view) != lattice:
            return view
        more = max(more, 1.5)
    return None


def refine(view: View, found: Outcome, rules: Rules, choice: Callable[[View], Lattice]) -> Step:
    """What to do after a look.

    A window that was off is moved first; where a finer lattice did not help, the view looks from
    nearer to the far end, then uses many more points, or where one step is most of it more tilts;
    and it ends when it is accurate enough or nothing is left to try.

    Args:
        view: as it was looked at. found: what was found. rules: of the whole batch.
        choice: the lattice that a view would get.

    Method: docs/method/index.md#steering
    """
    lattice, excess = found.lattice, found.excess
    stuck = view.tries > 0 and excess > 0.9 * view.excess
    idle = view.idle + (stuck and lattice.size > view.size)
    after = dataclasses.replace(
        view, tries=view.tries + 1, idle=idle, size=lattice.size, excess=min(excess, view.excess)
    )
    if excess <= 1.0:
        return Step(after, DONE, "accurate enough")
    most = _TRIES if rules.tight else _FEW_TRIES
    moved = _moved(after, found)
    if moved is not None:
        return Step(moved, PLAN, "the window was off")
    detail = after.detail if view.aim == WHOLE else 1.0
    closer = dataclasses.replace(
        after, closer=after.closer + 1, faintest=0.5 * after.faintest, detail=detail
    )
    # not yet as near as can be (a view of one threshold comes nearer by other jumps, where there
    # are any)
    near = after.closer < (
        1 if view.aim == WHOLE else len(JUMP_SHARES) - 1 if lattice.kind == "jump" else 0
    )
    unseen = lattice.kind == "jump" and excess * rules.rtol > _VACUOUS
    if (stuck or unseen) and near and most > _FEW_TRIES:
        return Step(
            closer,
            PLAN,
            "a finer lattice did not help, or will not: look from nearer to the far end",
        )
    sparse = lattice.kind == "sparse"
    if not sparse and view.aim == WHOLE and stuck and idle > 0 and not near:
        return _in_more_pieces(after, lattice, rules) or Step(
            after, DONE, "finer lattices do not help"
        )
    focused = view.aim != WHOLE
    largest = not sparse and lattice.size >= most_points(
        lattice.kind, rules.max_size, focused, after.excess
    )
    tried = (
        after.tries
        - max(after.again - _MOST_AGAIN, 0)
        - (after.closer if rules.tight and focused else 0)
    )
    if tried < most and not largest:
        more, next_view = 8.0 if stuck else float(np.clip(np.sqrt(excess / 0.8), 1.3, 4.0)), after
        if sparse and stuck and excess * rules.rtol > _VACUOUS:
            next_view, more = dataclasses.replace(after, dense=True, detail=1.0), 1.0
        better = finer(next_view, lattice, more, choice)
        if better is not None:
            return Step(better, RUN, "wider than asked: a finer lattice")
    if (sparse or view.aim != WHOLE) and near and after.tries < most:
        return Step(closer, PLAN, "no finer lattice: look from nearer to the far end")
    return Step(after, DONE, "nothing left to try")


def _in_more_pieces(view: View, lattice: Lattice, rules: Rules) -> Step | None:
    """Another start of a view of one tilt, with some, where one step is most of the composition:
    they cost little there.

    The tilt that serves the far end may lose sight of the near one.
    """
    if not rules.tight or view.pieces != PIECES[0] or lattice.kind != "whole":
        return None
    faintest = view.faintest * 2.0**view.closer
    fresh = dataclasses.replace(view, pieces=PIECES[1], faintest=faintest, detail=1.0, closer=0)
    return Step(fresh, PLAN, "neither a finer lattice nor a nearer look helped: more tilts")


def _moved(view: View, found: Outcome) -> View | None:
    """The view with its window where the last look says it should be, if that was elsewhere."""
    cheap = view.aim != WHOLE and found.lattice.kind == "sparse"
    if view.again >= (_MOST_STEPS if cheap else _MOST_AGAIN) or view.pieces != 1:
        return None
    if view.aim != WHOLE:
        off = (
            np.isfinite(found.threshold)
            and abs(found.threshold - view.threshold) > 0.5 * found.spread
        )
        return (
            dataclasses.replace(view, threshold=float(found.threshold), again=view.again + 1)
            if off
            else None
        )
    # a window that reaches just as far as is needed is cheaper and sharper
    off = any(
        t < 0.9 * reach or (np.isfinite(t) and t > reach)
        for t, reach in zip(found.ends[0], found.reach, strict=True)
    )
    return dataclasses.replace(view, seen=found.ends, again=view.again + 1) if off else None
