"""A pair on finitely many outputs: its profile is a sum of what is positive."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import PAIRWISE, UNIT
from ...numerics.shapes import Array
from .base import ADD, KnownCurve, opened


@dataclass(frozen=True)
class FiniteCurve(KnownCurve):
    """The law of a finite pair, a single one.

    Attributes:
        loss, log_p, log_q: log Q/P, log P and log Q of the outputs that both laws have, shape
            (outputs,).
        log_p_minus, log_q_plus: log masses of the outputs that only one of them has.
        infinite_error: by how much at most those have been rounded up, relatively.
        mass_error: bound on the relative error of every mass, beside a few units of its log.
        loss_error: bound on the error of every loss, in nats, shape (outputs,).
        loss_rest: what is to be added to the losses, far below their last digits.
        log_unlisted: log of a bound on the mass under either law of outputs that are left out.

    Method: docs/method/known.md#finite
    """

    loss: Array
    log_p: Array
    log_q: Array
    log_p_minus: Array | float
    log_q_plus: Array | float
    mass_error: float
    loss_error: Array
    loss_rest: Array
    log_unlisted: float = -np.inf
    infinite_error: float = 0.0

    batched = False

    @classmethod
    def of_atoms(
        cls,
        loss: Array,
        log_p: Array,
        log_q: Array,
        *,
        mass_error: float,
        loss_error: Array | float = 0.0,
        loss_rest: Array | float = 0.0,
        log_p_minus: Array | float = -np.inf,
        log_q_plus: Array | float = -np.inf,
        log_unlisted: float = -np.inf,
    ) -> FiniteCurve:
        """Of atoms in any order; those without mass are left out."""
        columns = [
            np.asarray(a, float)
            for a in np.broadcast_arrays(loss, log_p, log_q, loss_error, loss_rest)
        ]
        real = np.isfinite(columns[1]) & np.isfinite(columns[2])
        order = np.argsort(columns[0][real], kind="stable")
        loss, log_p, log_q, error, rest = (a[real][order] for a in columns)
        ends = float(log_p_minus), float(log_q_plus)
        return cls(loss, log_p, log_q, *ends, mass_error, error, rest, log_unlisted)

    def oriented(self, order: int) -> FiniteCurve:
        """The pair as it is, or swapped."""
        if order != ADD:
            return self
        return replace(
            self,
            loss=-self.loss[::-1],
            log_p=self.log_q[::-1],
            log_q=self.log_p[::-1],
            log_p_minus=self.log_q_plus,
            log_q_plus=self.log_p_minus,
            loss_error=self.loss_error[::-1],
            loss_rest=-self.loss_rest[::-1],
        )

    def largest_loss(self, order: int) -> Array:
        """The last atom's loss, rounded up unless it is exact; 0 where that is smaller."""
        pair = self.oriented(order)
        more = pair.loss_error + np.maximum(pair.loss_rest, 0.0)
        ends = np.where(more > 0.0, np.nextafter(pair.loss + more, np.inf), pair.loss)
        return np.asarray(max(float(np.max(ends)), 0.0))

    def log_infinity_mass(self, order: int) -> float:
        """That of the outputs that only one law has, and what is not listed."""
        return float(np.logaddexp(self.oriented(order).log_q_plus, self.log_unlisted))

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log of q(+∞) + Σ q_i·(1 − e^{ε − ℓ_i}) over the losses above ε.

        A loss that is off by η moves its term by at most q_i·η·e^{ε − ℓ_i}, and one that lies below
        ε by less than η may belong above.
        """
        return self._each(self.oriented(order)._log_delta, epsilon)

    def epsilon_span(self, order: int, log_delta: float) -> tuple[float, float]:
        """Two numbers that ε(δ) most likely lies between, from sums over the outputs."""
        pair = self.oriented(order)
        above = lambda logs: np.logaddexp.accumulate(logs[::-1])[::-1]
        with np.errstate(all="ignore"):
            tpr, alpha = np.logaddexp(above(pair.log_q), pair.log_q_plus), above(pair.log_p)
            root = np.where(
                tpr > log_delta, tpr + np.log(-np.expm1(log_delta - tpr)) - alpha, -np.inf
            )
        middle = max(float(np.max(root, initial=0.0)), 0.0)
        room = 1e-9 * middle + 1e-12
        return max(middle - room, 0.0), middle + room

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log of Σ q_i·min(1, e^{ε − ℓ_i})."""
        return self._each(self.oriented(order)._log_rest, epsilon)

    def _each(self, function, epsilon: Array) -> Bracket:
        found = [function(float(e)) for e in np.ravel(epsilon)]
        return Bracket(*(np.reshape(side, np.shape(epsilon)) for side in zip(*found, strict=True)))

    def _log_delta(self, epsilon: float) -> Bracket:
        fall = (epsilon - self.loss) - self.loss_rest
        with np.errstate(divide="ignore", over="ignore"):
            terms = self.log_q + np.log(-np.expm1(np.minimum(fall, 0.0)))
            near = fall < self.loss_error
            moved = (
                self.log_q + np.minimum(fall, 0.0) + np.log(np.where(near, self.loss_error, 0.0))
            )
            infinite = np.append(self.log_q_plus, [])
            above = _log_sum(np.concatenate([terms, infinite]) + self._room(1.0, terms, infinite))
            below = _log_sum(np.concatenate([terms, infinite]) + self._room(-1.0, terms, infinite))
            apart = _log_sum(moved + 1e-3)
            upper = np.logaddexp(np.logaddexp(above, apart), self.log_unlisted)
            lower = below + np.log(-np.expm1(min(apart - below, 0.0))) if apart > -np.inf else below
        return Bracket(opened(np.asarray(lower)).lower, opened(np.asarray(upper)).upper)

    def _log_rest(self, epsilon: float) -> Bracket:
        terms = self.log_q + np.minimum(epsilon - self.loss, 0.0)
        none = np.zeros(0)
        sides = []
        for sign in (-1.0, 1.0):
            moved = np.where(epsilon < self.loss + self.loss_error, self.loss_error, 0.0)
            sides.append(_log_sum(terms + sign * moved + self._room(sign, terms, none)))
        upper = np.logaddexp(sides[1], self.log_unlisted)
        return Bracket(opened(sides[0]).lower, opened(upper).upper)

    def _room(self, sign: float, terms: Array, infinite: Array) -> Array:
        """Rounding of the log of every term, the mass's own error included."""
        logs = np.concatenate([terms, infinite])
        size = np.where(np.isfinite(logs), np.abs(logs), 0.0) + PAIRWISE
        size[: len(terms)] += np.abs(self.log_q)
        return sign * (self.mass_error + 4.0 * UNIT * size)


def _log_sum(logs: Array) -> float:
    """log Σ e^a, to ``errors.PAIRWISE``."""
    top = float(np.max(logs, initial=-np.inf))
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.sum(np.exp(logs - top)))) if len(logs) else -np.inf
