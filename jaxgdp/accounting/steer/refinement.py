"""Which pass a setting gets next, and why: a pure policy, apart from whoever carries it out.

A *task* is one way to compute a setting: its whole curve down to the rates requested
(:class:`CurveTask`), or the neighbourhood of the one threshold where a quantity is read off
(:class:`PointTask`). :func:`refine` takes a task and what its last pass found, and decides what to
do next. Nothing here is part of a certificate: a poor choice makes a bracket wide, never wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from ..question import USUAL
from .lattice_choice import most_points
from .lattices import LatticeChoice

PIECES = (1, 8, 64)  # tilts along a half-curve, fewest first
LONGEST_PIECE = 12.0  # standard deviations one tilt serves at most
# −log of the density, per unit of rtol, that rounding leaves usable
_MAX_NEG_LOG_DENSITY = 24.5
_FEW_STEPS = 1000.0  # up to which their number does not matter
_TRIES, _FEW_TRIES = 6, 2  # lattices for one task, at most
_MORE_DENSE = 2  # … more, about one threshold, where sparse ones showed nothing
_VACUOUS = 0.3  # relative width of a bracket that says next to nothing
_STEPS = 12  # towards more detail, before there is said to be no finer lattice
# part of a threshold beyond which a step counts as a jump: in the first pass, in the second one, …
# (negative: only where about one is expected, as several are as a rule resolved by the saddle
# point; −1: nowhere)
JUMP_SHARES = (-0.15, -1.0, 0.06, 0.3)
# finer lattices that hardly helped about one threshold, after which the next one will not, and
# widths over the width promised that one may still bring below 1
_STALLED, _NEARLY = 2, 1.1
_MOST_MOVES = 2  # of a window that was off
# … about one threshold, which comes nearer by a spread with each of them, where a pass is cheap
_MOST_CHEAP_MOVES = 7


class Reach(NamedTuple):
    """How far out each of the two half-curves must be known.

    Attributes:
        thresholds: privacy losses |ℓ|, ∞ where that is not known.
        log_fprs: log of the FPR there, 0 where that is not known.
    """

    thresholds: tuple[float, float]
    log_fprs: tuple[float, float]


NO_KNOWN_REACH = Reach((np.inf, np.inf), (0.0, 0.0))


@dataclass(frozen=True, kw_only=True)
class _Task:
    """A way to compute one setting, and what has been tried.

    Attributes:
        setting: its row in the batch.
        max_neg_log_density: −log of the smallest density, under its tilt, at which a piece is used.
        detail: how many times finer a lattice than foreseen.
        dense: whether only dense lattices will do.
        tries: passes so far.
        window_moves: passes after which only the window was moved.
        gentler_tilts: how many times the tilt was weakened.
        stalled: passes on a finer lattice that hardly helped.
        size: lattice points of the last pass.
        excess: smallest excess so far (width over the width promised), of the quantities that the
            task serves.
    """

    setting: int
    max_neg_log_density: float = 19.0
    detail: float = 1.0
    dense: bool = False
    tries: int = 0
    window_moves: int = 0
    gentler_tilts: int = 0
    stalled: int = 0
    size: int = 0
    excess: float = np.inf


@dataclass(frozen=True, kw_only=True)
class CurveTask(_Task):
    """A setting's whole curve, down to the rates requested.

    Attributes:
        pieces: tilts along a half-curve.
        known_reach: how far out the halves have to be known, as the last pass found.
        quantity: None, as a curve serves all quantities.
        side: None, as it has both half-curves.
    """

    pieces: int = 1
    known_reach: Reach = NO_KNOWN_REACH
    quantity: ClassVar[None] = None
    side: ClassVar[None] = None


@dataclass(frozen=True, kw_only=True)
class PointTask(_Task):
    """The neighbourhood of one threshold, for the one quantity that is read off there.

    Attributes:
        quantity: its position in ``Question.asked``.
        threshold: privacy loss |ℓ| ≥ 0 in the middle of the window.
        side: the one half-curve it is about (0 for the pair as it is, 1 for the swapped one), None
            for both.
        pieces: one tilt is enough.
    """

    quantity: int
    threshold: float
    side: int | None = None
    pieces: ClassVar[int] = 1


Task: TypeAlias = CurveTask | PointTask
Choice: TypeAlias = Callable[[Task], LatticeChoice]


class PassResult(NamedTuple):
    """What one pass found for one task.

    Attributes:
        lattice: the lattice it had.
        excess: width over the width promised, the worst of the quantities the task serves, all
            passes so far taken together.
        required_reach: how far out each half must be known.
        planned_reach: thresholds out to which each half was planned.
        threshold: where the quantity was found to be read off; NaN if that is not known.
        spread: half the stretch of thresholds that the window resolves.
        several: whether several jumps lead there, which were not composed apart.
        mixed: whether the other half-curve had a sparse lattice beside a dense one.
    """

    lattice: LatticeChoice
    excess: float
    required_reach: Reach
    planned_reach: tuple[float, ...]
    threshold: float = np.nan
    spread: float = np.inf
    several: bool = False
    mixed: bool = False


@dataclass(frozen=True)
class Rules:
    """What the policy has to know of the question and of the mechanisms.

    Attributes:
        rtol: requested relative accuracy.
        max_size: largest dense lattice.
        tight: whether both sides are of the same pair, so that a finer lattice brings them
            together.
        keep: whether whole curves are kept.
        log_noise: log of how many times larger noise is than that of doubles.
    """

    rtol: float
    max_size: int
    tight: bool = True
    keep: bool = False
    log_noise: float = 0.0

    def max_neg_log_density(self, steps: float) -> float:
        """−log of the smallest usable density: rounding grows with the root of the steps."""
        usable = (
            _MAX_NEG_LOG_DENSITY
            - self.log_noise
            + np.log(self.rtol)
            - 0.5 * np.log(max(steps / _FEW_STEPS, 1.0))
        )
        return float(np.clip(usable, 6.0, 19.0))


PLAN, RUN, DONE = "plan", "run", "done"


class Decision(NamedTuple):
    """What to do next with a task, and why.

    Attributes:
        task: the task as it is from now on.
        action: ``PLAN`` it (anew), ``RUN`` it on another lattice, or nothing (``DONE``).
        why: the reason, in words.
    """

    task: Task
    action: str
    why: str


def whole_curve(setting: int, steps: float, rules: Rules) -> CurveTask:
    """The first task of a setting: its whole curve."""
    return CurveTask(
        setting=setting,
        pieces=PIECES[1 if rules.keep else 0],
        max_neg_log_density=rules.max_neg_log_density(steps),
    )


def one_threshold(
    setting: int,
    quantity: int,
    threshold: float,
    steps: float,
    rules: Rules,
    side: int | None = None,
) -> PointTask:
    """The first task for one quantity at its threshold: of one half-curve, or of both."""
    return PointTask(
        setting=setting,
        quantity=quantity,
        threshold=float(threshold),
        side=side,
        max_neg_log_density=rules.max_neg_log_density(steps),
    )


def more_pieces(task: Task, length: float, rtol: float) -> CurveTask | None:
    """The task with more tilts, where one piece is too long for one tilt; else None."""
    if isinstance(task, PointTask) or task.pieces == PIECES[-1]:
        return None
    if not length > _longest_piece(task, rtol):  # (of losses that overflow nothing is foreseen)
        return None
    return dataclasses.replace(task, pieces=next(more for more in PIECES if more > task.pieces))


def _longest_piece(task: CurveTask, rtol: float) -> float:
    """Standard deviations one tilt serves: beyond the usual accuracy no more than those between
    which a normal law has a usable density.
    """
    if rtol >= USUAL:
        return LONGEST_PIECE
    usable = task.max_neg_log_density * 2.0**task.gentler_tilts
    return min(LONGEST_PIECE, 2.0 * float(np.sqrt(2.0 * usable)))


def finer(task: Task, lattice: LatticeChoice, more: float, choice: Choice) -> Task | None:
    """The task with at least ``more`` times the detail on another lattice, if there is one."""
    for _ in range(_STEPS):
        task = dataclasses.replace(task, detail=task.detail * more)
        if choice(task) != lattice:
            return task
        more = max(more, 1.5)
    return None


def refine(task: Task, found: PassResult, rules: Rules, choice: Choice) -> Decision:
    """What to do after a pass.

    A window that was off is moved first. Where a finer lattice did not help, the tilt is weakened;
    then the task gets many more points, or more tilts where one step is most of the composition. It
    ends when it is accurate enough or nothing is left to try.

    Args:
        task: as the pass had it.
        found: what the pass found.
        rules: of the whole batch.
        choice: the lattice that a task would get.

    Method: docs/method/index.md#steering
    """
    lattice, excess = found.lattice, found.excess
    stuck = task.tries > 0 and excess > 0.9 * task.excess
    after = dataclasses.replace(
        task,
        tries=task.tries + 1,
        stalled=task.stalled + (stuck and lattice.size > task.size),
        size=lattice.size,
        excess=min(excess, task.excess),
    )
    if excess <= 1.0:
        return Decision(after, DONE, "accurate enough")
    if (moved := _moved(after, found)) is not None:
        return Decision(moved, PLAN, "the window was off")
    # (what a sparse lattice does not resolve a dense one may)
    by_jumps = lattice.kind == "jump" or (found.several and lattice.kind != "sparse")
    # (what is called no jump, however small, has none)
    none = found.several and JUMP_SHARES[after.gentler_tilts] > 0.0
    can_weaken = _can_weaken_tilt(after, by_jumps and not none)
    unresolved = by_jumps and excess * rules.rtol > _VACUOUS
    if (stuck or unresolved) and can_weaken and rules.tight:
        why = "a finer lattice did not help, or will not: a gentler tilt"
        return Decision(_with_gentler_tilt(after, found.several), PLAN, why)
    sparse, stalled = lattice.kind == "sparse", stuck and after.stalled > 0
    if isinstance(after, CurveTask) and not sparse and stalled and not can_weaken:
        return _in_more_pieces(after, lattice, rules) or Decision(
            after, DONE, "finer lattices do not help"
        )
    if isinstance(after, PointTask) and not sparse and stalled and _at_its_limit(after):
        return Decision(after, DONE, "finer lattices do not help")
    if (better := _on_finer_lattice(after, found, stuck, rules, choice)) is not None:
        return Decision(better, RUN, "wider than asked: a finer lattice")
    # (what is known by other means may be narrow while sparse lattices show nothing)
    if sparse and excess >= task.excess and not task.dense:
        if (better := finer(_on_dense_lattices(after), lattice, 1.0, choice)) is not None:
            return Decision(better, RUN, "sparse lattices showed nothing: a dense one")
    if (sparse or isinstance(task, PointTask)) and can_weaken and after.tries < _most_tries(rules):
        why = "no finer lattice: a gentler tilt"
        return Decision(_with_gentler_tilt(after, found.several), PLAN, why)
    more = _in_more_pieces(after, lattice, rules) if isinstance(after, CurveTask) else None
    return more or Decision(after, DONE, "nothing left to try")


def _on_dense_lattices(task: Task) -> Task:
    """The task on dense lattices alone; about one threshold sparse ones took no time."""
    dense = dataclasses.replace(task, dense=True, detail=1.0)
    return dataclasses.replace(dense, stalled=0) if isinstance(task, PointTask) else dense


def _at_its_limit(task: PointTask) -> bool:
    """Whether lattices each many times finer have left what is too wide as it was: where the two
    orders of a composition share a tangent, no lattice brings the sides together there.
    """
    return task.stalled >= _STALLED and task.excess > _NEARLY


def _most_tries(rules: Rules) -> int:
    return _TRIES if rules.tight else _FEW_TRIES


def _can_weaken_tilt(task: Task, by_jumps: bool) -> bool:
    """Whether a gentler tilt is left: one of a whole curve; about one threshold as many as there
    are other jumps, where there are any.
    """
    if isinstance(task, CurveTask):
        return task.gentler_tilts < 1
    return task.gentler_tilts < (len(JUMP_SHARES) - 1 if by_jumps else 0)


def _with_gentler_tilt(task: Task, several: bool) -> Task:
    # (where several jumps were left with the small steps already, to leave them is nothing new)
    left = several and isinstance(task, PointTask) and task.gentler_tilts == 0
    return dataclasses.replace(
        task,
        gentler_tilts=task.gentler_tilts + (2 if left else 1),
        max_neg_log_density=0.5 * task.max_neg_log_density,
        detail=task.detail if isinstance(task, CurveTask) else 1.0,
    )


def _on_finer_lattice(
    task: Task, found: PassResult, stuck: bool, rules: Rules, choice: Choice
) -> Task | None:
    """The task on a finer lattice, unless there is none or it was tried too many times."""
    lattice, focused = found.lattice, isinstance(task, PointTask)
    sparse = lattice.kind == "sparse"
    if not sparse and lattice.size >= most_points(
        lattice.kind, rules.max_size, focused, task.excess
    ):
        return None
    tried = task.tries - max(task.window_moves - _MOST_MOVES, 0)
    tried -= task.gentler_tilts if rules.tight and focused else 0
    tried -= _MORE_DENSE if rules.tight and focused and task.dense else 0
    if tried >= _most_tries(rules):
        return None
    nothing = found.excess * rules.rtol > _VACUOUS
    if (sparse and stuck or found.mixed) and nothing and not task.dense:
        return finer(_on_dense_lattices(task), lattice, 1.0, choice)
    more = 8.0 if stuck else float(np.clip(np.sqrt(found.excess / 0.8), 1.3, 4.0))
    return finer(task, lattice, more, choice)


def _in_more_pieces(task: CurveTask, lattice: LatticeChoice, rules: Rules) -> Decision | None:
    """A new start of a task of one tilt, with several, where they cost little.

    That is where one step is most of the composition, and where steps are many.

    The tilt that serves the far end may leave nothing to resolve at the near one; and where there
    is hardly any privacy loss at all, rates have to be more accurate than the rounding of a law
    whose far end is e^{-19} of its middle.
    """
    if not rules.tight or task.pieces != PIECES[0] or lattice.kind not in ("whole", "sparse"):
        return None
    fresh = dataclasses.replace(
        task,
        pieces=PIECES[1],
        max_neg_log_density=task.max_neg_log_density * 2.0**task.gentler_tilts,
        detail=1.0,
        gentler_tilts=0,
    )
    return Decision(fresh, PLAN, "neither a finer lattice nor a gentler tilt helped: more tilts")


def _moved(task: Task, found: PassResult) -> Task | None:
    """The task with its window where the last pass found that it should be, if it has to move."""
    if isinstance(task, PointTask):
        return _moved_to_threshold(task, found)
    if task.window_moves >= _MOST_MOVES or task.pieces != 1:
        return None
    # a window that reaches just as far as is needed is cheaper and sharper
    off = any(
        required < 0.9 * planned or (np.isfinite(required) and required > planned)
        for required, planned in zip(
            found.required_reach.thresholds, found.planned_reach, strict=True
        )
    )
    if not off:
        return None
    return dataclasses.replace(
        task, known_reach=found.required_reach, window_moves=task.window_moves + 1
    )


def _moved_to_threshold(task: PointTask, found: PassResult) -> PointTask | None:
    cheap = found.lattice.kind == "sparse"
    if task.window_moves >= (_MOST_CHEAP_MOVES if cheap else _MOST_MOVES):
        return None
    threshold = found.threshold
    off = np.isfinite(threshold) and abs(threshold - task.threshold) > 0.5 * found.spread
    if not off:
        return None
    return dataclasses.replace(task, threshold=float(threshold), window_moves=task.window_moves + 1)
