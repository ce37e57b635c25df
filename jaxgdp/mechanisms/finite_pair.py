"""A pair on finitely many losses: the form in which compositions stack users' tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import TABLE, UNIT
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.atoms import atom_cells, atom_nodes
from ..pairs.cells import Cells
from ..pairs.known_curves import FiniteCurve
from ..pairs.peak import largest_mu
from .base import Mechanism

# width of a law, over its largest loss, below which it is planned for as if it were this wide
_LEAST = 0.25


@pytree
@dataclass(frozen=True)
class FinitePair(Mechanism):
    """Atoms of the privacy loss in increasing order, with mass at both infinities; not checked.

    Attributes:
        loss: shape (…, atoms), finite and not decreasing.
        log_p, log_q: log masses under P and Q, shape (…, atoms), log_q = log_p + loss; −inf for
            padding.
        log_p_minus: log P-mass at loss −∞.
        log_q_plus: log Q-mass at loss +∞.
        place: bound on the error of every loss, in nats, shape (…, atoms).
        loss_rest: what is to be added to the losses for that, far below the last digit of each.
    """

    loss: Array
    log_p: Array
    log_q: Array
    log_p_minus: Array
    log_q_plus: Array
    place: Array
    loss_rest: Array

    trailing: ClassVar[dict[str, int]] = dict.fromkeys(
        ("loss", "log_p", "log_q", "place", "loss_rest"), 1
    )

    @classmethod
    def build(
        cls,
        loss: np.ndarray,
        log_p: np.ndarray,
        log_q: np.ndarray,
        log_p_minus: Array,
        log_q_plus: Array,
        place: np.ndarray | None = None,
        loss_rest: np.ndarray | None = None,
    ) -> FinitePair:
        """Sorted, and padded to a power of two so that pairs of similar size share a program.

        Losses are differences of logs, known to a few epsilons of 1 and of themselves, unless
        ``place`` is given.
        """
        places = usual_place(loss) if place is None else place
        rests = np.zeros_like(loss) if loss_rest is None else loss_rest
        order = np.argsort(loss, axis=-1, kind="stable")
        columns = (loss, log_p, log_q, places, rests)
        columns = [np.take_along_axis(a, order, axis=-1) for a in np.broadcast_arrays(*columns)]
        number = columns[0].shape[-1]
        wide = [(0, 0)] * (columns[0].ndim - 1) + [(0, padded(number) - number)]
        loss, place, loss_rest = (np.pad(columns[i], wide, mode="edge") for i in (0, 3, 4))
        log_p, log_q = (np.pad(a, wide, constant_values=-np.inf) for a in columns[1:3])
        return cls(loss, log_p, log_q, log_p_minus, log_q_plus, place, loss_rest)

    def known_curve(self) -> FiniteCurve | None:
        """The atoms and the masses at both infinities."""
        return FiniteCurve.of_atoms(
            self.loss,
            self.log_p,
            self.log_q,
            mass_error=TABLE * UNIT,
            loss_error=self.place,
            loss_rest=self.loss_rest,
            log_p_minus=self.log_p_minus,
            log_q_plus=self.log_q_plus,
        )

    def loss_nodes(self, depth: Array | float):
        """The atoms, gathered if many; a single loss is planned for with a little width."""
        loss, log_weight = atom_nodes(self.loss, self.log_p)
        low, high, width = self._span()
        narrow = width < _LEAST * xp.maximum(xp.abs(low), xp.abs(high))
        # (what a single loss has in variance is what windows and tilts are measured by)
        room = xp.where(
            narrow, xp.maximum(_LEAST * xp.maximum(xp.abs(low), xp.abs(high)), 1e-12), 0.0
        )
        # (half of the mass: all of it is no more than there is, however many uses there are)
        aside = xp.where(narrow, xp.logsumexp(log_weight) - 2.0 * np.log(2.0), -xp.inf)
        log_weight = xp.where(narrow, log_weight - np.log(2.0), log_weight)
        ends = xp.stack([loss[0] - room, loss[-1] + room])
        join = lambda a, ends: xp.concatenate([ends[:1], a, ends[1:]])
        return join(loss, ends), join(log_weight, xp.stack([aside, aside]))

    def _span(self):
        """Smallest and largest loss, and how far they lie apart."""
        low, high = self.loss_bounds()
        return low, high, high - low

    def loss_unit(self):
        """The loss, where there is a single one; else 0."""
        low, high, width = self._span()
        return xp.where(width <= 4e-15 * xp.abs(high), xp.abs(high), 0.0)

    def tail_precision(self):
        """μ² of one use, from all its error rates; ∞ with mass at an infinity."""
        infinite = (self.log_p_minus > -xp.inf) | (self.log_q_plus > -xp.inf)
        return xp.where(infinite, xp.inf, largest_mu(self.log_p, self.log_q) ** 2)

    def loss_bounds(self):
        """Smallest and largest finite loss."""
        real = self.log_p > -xp.inf
        low = xp.min(xp.where(real, self.loss, xp.inf))
        high = xp.max(xp.where(real, self.loss, -xp.inf))
        some = xp.any(real)
        return xp.where(some, low, 0.0), xp.where(some, high, 0.0)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the atoms by cell, with the mass at both infinities (unbatched)."""
        infinity = {"log_p_minus": self.log_p_minus, "log_q_plus": self.log_q_plus}
        cells = atom_cells(self.loss, self.log_p, self.log_q, ell, end, **infinity, roundoff=TABLE)
        # a loss, as a difference of logs, is known to a few epsilons whatever its size
        gap = xp.concatenate([xp.full((1,), xp.inf), xp.diff(ell), xp.full((1,), xp.inf)])
        place = xp.where(cells.log_x > -xp.inf, xp.max(self.place) / UNIT / gap, 0.0)
        off = xp.where(self.loss > end, xp.exp(self.log_q) * self.place, 0.0)
        return cells._replace(
            lost_error=cells.lost_error + xp.sum(off), jitter=2.0 * cells.jitter + place
        )


def usual_place(loss: Array) -> Array:
    """How far off a loss may be that is a difference of logs."""
    return TABLE * UNIT + 4.0 * UNIT * xp.abs(loss)


def padded(number: int):
    """The next power of two, at least 8."""
    return max(8, 1 << (number - 1).bit_length())
