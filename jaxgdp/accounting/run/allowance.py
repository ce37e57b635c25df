"""How many lattice points the passes over each setting may have in all, and which whole curves are
only composed as finely as tells where quantities are read off."""

from __future__ import annotations

import numpy as np

from ...mechanisms.composition import collapse_gaussians
from ..question import USUAL, Question
from ..steer.lattices import Lattices
from ..steer.refinement import PIECES, CurveTask, PointTask, Task

# lattice points of all passes over one setting, for each quantity (of three at most), which take
# NumPy up to 1.5 μs for each component; three times as many from rtol 1e-4 on. At the usual
# accuracy so many in all components, of which up to four are counted: some ten seconds
_MOST_POINTS, _MOST_USUAL, _MOST_COMPONENTS = 1.7e7, 1.2e7, 4
_FIRST_SHARE = 0.1  # of them, that every first pass may have
# lattice points of a first pass over a whole curve that only tells where quantities are read off
_SCOUT = 2**22
_UNFORESEEN = 2**15  # … of one of which nothing is foreseen


def _points(question: Question, groups: tuple) -> float:
    """Lattice points that all passes over one setting may have: fewer of a mechanism whose cells
    take longer, and at the usual accuracy of several components, each of which takes as long."""
    each = max(mechanism.work_per_point() for mechanism, _ in groups)
    most = _MOST_POINTS * (3.0 if question.rtol <= 1e-4 else 1.0)
    if question.rtol >= USUAL and not question.keep:
        components = sum(count.shape[-1] for _, count in collapse_gaussians(groups))
        most = _MOST_USUAL / min(components, _MOST_COMPONENTS)
    return most * min(max(len(question.asked), 1), 3) / each


class Allowance:
    """What passes over the settings of one batch may still cost.

    Args:
        groups: of the batch, as for the engine.
        question: what to compute.
        part: of the usual number of lattice points.
        scouts: whether first passes over whole curves only tell where quantities are read off,
            which then get tasks of their own.
    """

    def __init__(self, groups: tuple, question: Question, part: float, scouts: bool):
        self._most = part * _points(question, groups)
        self._left = np.full(groups[0][1].shape[0], self._most)
        self._scouts = scouts
        # setting → lattices of a whole curve that only told where quantities are read off
        self._scouted: dict[int, Lattices] = {}
        # settings whose whole curve is composed as finely as it takes
        self._in_full: set[int] = set()

    def first(self, task: Task, lattices: Lattices, foreseen: bool) -> Lattices:
        """The lattices that a first pass gets: smaller ones where little is left, or where they
        are to tell no more than where quantities are read off.

        Args:
            task: of the pass.
            lattices: the ones that its plan asks for.
            foreseen: whether the plan says how long its pieces are.
        """
        i = task.setting
        lattices = lattices.within(max(self._left[i], _FIRST_SHARE * self._most))
        if isinstance(task, PointTask):
            return lattices
        if self._scouts and i not in self._in_full:
            smaller = lattices.within(_SCOUT)
            if smaller != lattices:
                self._scouted[i] = smaller
            lattices = smaller
        if not foreseen:  # (losses that overflow show nothing on a larger one)
            lattices, self._left[i] = lattices.within(_UNFORESEEN), 0.0
        return lattices

    def spend(self, task: Task, lattices: Lattices) -> bool:
        """Take what a pass costs off what is left; whether it may run, as it takes no more than
        that and is not the first one once more.
        """
        i = task.setting
        if task.tries > 0:
            in_vain = lattices.points > self._left[i]
        else:
            again = isinstance(task, CurveTask) and i in self._in_full
            in_vain = again and lattices == self._scouted.get(i)
        if not in_vain:
            self._left[i] -= lattices.points
        return not in_vain

    def scouted(self, setting: int) -> bool:
        """Whether a setting's whole curve has only told where quantities are read off."""
        return setting in self._scouted

    def of_many_tilts(self, setting: int) -> bool:
        """Whether the whole curve of a setting has as many tilts as there may be: what is known of
        a place already, by whatever means, is more than lattices of all of them show.
        """
        scouted = self._scouted.get(setting)
        return scouted is not None and scouted.pieces == PIECES[-1]

    def compose_in_full(self, setting: int) -> bool:
        """Compose a whole curve as finely as it takes from now on; whether that is new."""
        new = setting not in self._in_full
        self._in_full.add(setting)
        return new
