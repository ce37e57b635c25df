"""The curve of a Poisson sample: a pair, symmetric or of shifts, used with probability p."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import UNIT
from ...numerics.first_double import first_double
from ...numerics.shapes import Array
from ..mixture import log_mixture
from .base import (
    ADD,
    REMOVE,
    KnownCurve,
    Middle,
    Rates,
    Tests,
    log_one_minus,
    narrower,
    opened,
    together,
)
from .gaussian import GaussianCurve, quantile
from .laplace import LaplaceCurve
from .shifts import ShiftsCurve

_ROOM = 8.0 * UNIT  # of what half a dozen operations make of positive numbers
_DEEPEST, _HIGHEST = -1e300, 800.0  # log-odds between which a rate is looked for


class _Unsampled(NamedTuple):
    """Where a loss of the sample is one of the pair without sampling, and with which weight.

    Attributes:
        loss: v ≥ 0, a bracket.
        log_weight: log w, with δ(ε) = w·δ₁(v); a bracket.
        log_rest: log(1 − w), so that 1 − δ(ε) = 1 − w + w·(1 − δ₁(v)); a bracket.
    """

    loss: Bracket
    log_weight: Bracket
    log_rest: Bracket


@dataclass(frozen=True)
class SampledCurve(KnownCurve):
    """P against (1 − p)·P + p·Q₁, of a pair (P, Q₁) that is symmetric or one of shifts.

    Attributes:
        base: the curve of (P, Q₁).
        sampling_prob: p in (0, 1].
        log_rest: log(1 − p), −∞ only where there is no rest: next to 1, p has lost its digits.

    Method: docs/method/known.md#sampled
    """

    base: GaussianCurve | LaplaceCurve | ShiftsCurve
    sampling_prob: Array
    log_rest: Array

    @classmethod
    def of(cls, base: GaussianCurve | LaplaceCurve, sampling_prob: Array) -> SampledCurve:
        """With 1 − p as it is for the double p."""
        p = np.asarray(sampling_prob, float)
        with np.errstate(divide="ignore"):
            rest = np.where(p < 0.5, np.log1p(-np.minimum(p, 0.5)), np.log(1.0 - p))
        return cls(base, p, rest)

    @property
    def size(self) -> int:
        """Of the pair without sampling."""
        return self.base.size

    def _plain(self) -> Array:
        """Where everything is sampled."""
        return np.isneginf(self.log_rest)

    def _unsampled(self, order: int, epsilon: Array) -> _Unsampled:
        with np.errstate(all="ignore"):
            found = self._removed(epsilon) if order == REMOVE else self._added(epsilon)
        return found

    def _removed(self, epsilon: Array) -> _Unsampled:
        """w = p and e^v = 1 + (e^ε − 1)/p."""
        p, rest, plain = np.asarray(self.sampling_prob), self.log_rest, self._plain()
        near = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / p)
        far = epsilon - np.log(p) + np.log1p(-np.exp(rest - epsilon))
        v = np.where(plain, epsilon, np.where(epsilon <= 1.0, near, far))
        room = np.where(plain, 0.0, _ROOM)
        return _Unsampled(
            Bracket(v * (1.0 - room), v * (1.0 + room)), opened(np.log(p)), _exact_at(rest, -np.inf)
        )

    def _added(self, epsilon: Array) -> _Unsampled:
        """w = 1 − e^ε·(1 − p) and e^{−v} = 1 − (1 − e^{−ε})/p."""
        p, rest, plain = np.asarray(self.sampling_prob), self.log_rest, self._plain()
        room = 4.0 * UNIT * (epsilon + np.where(np.isfinite(rest), np.abs(rest), 0.0))
        exponent = epsilon + rest
        weight = [
            -np.expm1(np.minimum(exponent - s * room, 0.0)) * (1.0 + s * _ROOM) for s in (-1.0, 1.0)
        ]
        fall, log_p = np.expm1(-epsilon) / p, np.log(p)
        near = -np.log1p(np.maximum(fall, -0.5))
        # (beyond, 1 + the fall is a difference: e^{−ε}·w/p is none)
        far = [log_p + epsilon - np.log(w) for w in reversed(weight)]
        v = []
        for other, s in _outward(far):
            size = 1.0 + np.minimum(np.abs(other), 1e300) + epsilon - log_p
            other = np.clip(np.minimum(other, 1e300) + s * _ROOM * size, 0.0, 1e300)
            v.append(np.where(fall > -0.5, near * (1.0 + s * _ROOM), other))
        v = [np.where(plain, epsilon, side) for side in v]
        log_rest = _exact_at(np.minimum(exponent, 0.0), -np.inf, room)
        log_weight = Bracket(*(np.where(plain, 0.0, np.log(w)) for w in weight))
        return _Unsampled(Bracket(*v), log_weight, log_rest)

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """w·δ₁(v), which falls as v grows."""
        at = self._unsampled(order, epsilon)
        with np.errstate(invalid="ignore"):
            lower = at.log_weight.lower + self.base.log_delta(order, at.loss.upper).lower
            upper = at.log_weight.upper + self.base.log_delta(order, at.loss.lower).upper
        return Bracket(opened(lower).lower, opened(upper).upper)

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """1 − w + w·(1 − δ₁(v)): nothing cancels."""
        at = self._unsampled(order, epsilon)
        low = self.base.log_one_minus_delta(order, at.loss.lower).lower
        high = self.base.log_one_minus_delta(order, at.loss.upper).upper
        lower = np.logaddexp(at.log_rest.lower, at.log_weight.lower + low)
        upper = np.logaddexp(at.log_rest.upper, at.log_weight.upper + high)
        return Bracket(opened(lower).lower, opened(upper).upper)

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates:
        """Rates at an FPR: of one order, or of the envelope of both.

        Up to the FPR at which the tangent has slope −1 the envelope is the curve of removing, from
        the mirror image of that point on the one of adding, and straight in between.
        """
        first = self._rates_removed(log_fpr)
        if tuple(orders) == (REMOVE,):
            return first
        second = self._rates_added(log_fpr)
        if len(orders) == 1:
            return second
        middle, fpr = self.base.middle(), np.exp(log_fpr)
        start = Bracket(*map(np.exp, middle.log_alpha))
        end = self._mirrored(middle)
        zero = np.zeros(np.shape(self.sampling_prob))
        gain = Bracket(
            *(np.exp(g) * (1.0 + s * _ROOM) for g, s in _outward(self.log_delta(REMOVE, zero)))
        )
        straight = self._straight(fpr, start, end, gain)
        left, right = log_fpr <= middle.log_alpha.lower, fpr >= end.upper

        def pick(one: Bracket, between: Bracket, other: Bracket) -> Bracket:
            sides = zip(one, between, other, strict=True)
            return Bracket(*(np.where(left, a, np.where(right, c, b)) for a, b, c in sides))

        return Rates(*map(pick, first, straight, second))

    def _mirrored(self, middle: Middle) -> Bracket:
        """(1 − p)·(1 − α) + p·β of the test whose threshold is 0: that of the pair without
        sampling.
        """
        p, rest = np.asarray(self.sampling_prob), np.exp(self.log_rest)
        sides = zip(middle.log_alpha[::-1], middle.log_beta, (-1.0, 1.0), strict=True)
        return Bracket(
            *((-rest * np.expm1(a) + p * np.exp(b)) * (1.0 + s * _ROOM) for a, b, s in sides)
        )

    def _straight(self, fpr: Array, start: Bracket, end: Bracket, gain: Bracket) -> Rates:
        """Rates on the straight part: TPR = α + gain, β = start + (end − α)."""
        with np.errstate(divide="ignore"):
            tpr = [np.log(fpr + g) for g in gain]
            far = (np.maximum(e - fpr + s * _ROOM * e, 0.0) for e, s in _outward(end))
            beta = [np.log(m + rest) for m, rest in zip(start, far, strict=True)]
        return together(
            Rates(*(Bracket(opened(low).lower, opened(high).upper) for low, high in (tpr, beta)))
        )

    def _rates_removed(self, log_fpr: Array) -> Rates:
        """TPR = (1 − p)·α + p·TPR₁(α), and the same of 1 − α and β₁."""
        log_p, rest = np.log(self.sampling_prob), self.log_rest
        found = self.base.rates((REMOVE,), log_fpr)
        assert found is not None  # (a base knows its own)
        tpr, beta = found
        with np.errstate(divide="ignore"):
            log_other = np.log(-np.expm1(np.minimum(log_fpr, 0.0)))
        mixed = lambda one, log_rate: Bracket(
            opened(np.logaddexp(rest + log_rate, log_p + one.lower)).lower,
            opened(np.logaddexp(rest + log_rate, log_p + one.upper)).upper,
        )
        return together(Rates(mixed(tpr, log_fpr), mixed(beta, log_other)))

    def _rates_added(self, log_fpr: Array) -> Rates:
        """The inverse of the other curve: β is the FPR x at which that one has the FNR α.

        x is looked for by its log-odds, so that x and 1 − x have all their digits.
        """
        shape = np.broadcast_shapes(np.shape(log_fpr), np.shape(self.sampling_prob))
        goal = np.broadcast_to(log_fpr, shape).reshape(-1)
        each = self.expanded()
        log_x = lambda y: -np.logaddexp(0.0, -y)
        ends = np.full(goal.shape, _DEEPEST), np.full(goal.shape, _HIGHEST)
        fnr = lambda y: each._rates_removed(log_x(y)).log_beta
        with np.errstate(all="ignore"):
            above = first_double(lambda y: fnr(y).upper <= goal[:, None], *ends).after
            below = first_double(lambda y: fnr(y).lower < goal[:, None], *ends).before
        sides = [y.reshape(shape) for y in (below, above)]
        log_beta = Bracket(opened(log_x(sides[0])).lower, opened(log_x(sides[1])).upper)
        log_tpr = Bracket(opened(log_x(-sides[1])).lower, opened(log_x(-sides[0])).upper)
        return Rates(log_tpr, log_beta)

    def mu(self, log_floor: Array) -> Bracket | None:
        """μ at the end of the range of FPRs with the least one: it falls as the FPR grows.

        That is the floor, or the FPR at which β is the floor if β lies below it there."""
        unsampled = self.base.mu(log_floor) if np.all(self._plain()) else None
        if unsampled is not None:
            return unsampled
        at_floor = self.base.mu_of_sample(np.log(self.sampling_prob), log_floor)
        if at_floor is None:
            return None
        beta = self._rates_removed(log_floor).log_beta
        # (where β is small its own log says more than what is left of the gain)
        own = self._difference(log_floor, beta)
        none = ~np.isfinite(own.lower) | ~np.isfinite(own.upper)
        own = Bracket(np.where(none, -np.inf, own.lower), np.where(none, np.inf, own.upper))
        at_floor = narrower(at_floor, own)
        above, below = beta.lower >= log_floor, beta.upper < log_floor
        if np.all(above):
            return at_floor
        beyond = self._mu_beyond(log_floor)
        lower = np.where(
            above,
            at_floor.lower,
            np.where(below, beyond.lower, np.minimum(at_floor.lower, beyond.lower)),
        )
        upper = np.where(
            above,
            at_floor.upper,
            np.where(below, beyond.upper, np.maximum(at_floor.upper, beyond.upper)),
        )
        return Bracket(lower, upper)

    def _mu_beyond(self, log_floor: Array) -> Bracket:
        """Φ⁻¹(1 − floor) − Φ⁻¹(x) at the FPR x whose FNR is the floor."""
        return self._difference(log_floor, self._rates_added(log_floor).log_beta)

    def _difference(self, log_floor: Array, log_x: Bracket) -> Bracket:
        """Φ⁻¹(1 − floor) − Φ⁻¹(x)."""
        z, floor = (
            Bracket(quantile(log_x.lower).lower, quantile(log_x.upper).upper),
            quantile(log_floor),
        )
        room = _ROOM * (np.abs(z.lower) + np.abs(floor.lower))
        return Bracket(-floor.upper - z.upper - room, -floor.lower - z.lower + room)

    def tests(self, order: int, number: int) -> Tests:
        """The tests of the pair without sampling, or their mirror images, at the losses they have
        here.
        """
        v, alpha, tpr, beta = self.base.tests(order, number)
        log_p, rest = np.log(self.sampling_prob), self.log_rest

        def mixed(one: Bracket, other: Bracket) -> Bracket:
            low, high = (np.logaddexp(rest + a, log_p + b) for a, b in zip(one, other, strict=True))
            return Bracket(opened(low).lower, opened(high).upper)

        with np.errstate(all="ignore"):
            if order == ADD:
                at = -self._mixed(-v)
                return Tests(at, mixed(tpr, alpha), tpr, beta)
            at, below = self._mixed(v), log_one_minus(alpha)
            return Tests(at, alpha, mixed(alpha, tpr), mixed(below, beta))

    def _mixed(self, v: Array) -> Array:
        """log(1 − p + p·e^v)."""
        p = np.asarray(self.sampling_prob)
        # (where little is left of Q₁, what is left of P counts, however little that is)
        low = np.logaddexp(self.log_rest, np.log(p) + v)
        return np.where((p > 0.5) & (v < -1.0), low, log_mixture(p, v))

    def largest_loss(self, order: int) -> Array:
        """log(1 − p + p·e^L), or −log(1 − p + p·e^{−L}): rounded up."""
        largest, sign = np.asarray(self.base.largest_loss(order)), 1.0 if order == REMOVE else -1.0
        with np.errstate(all="ignore"):
            found = sign * self._mixed(sign * largest)
            found = np.where(np.isinf(largest), -self.log_rest if sign < 0.0 else np.inf, found)
        return np.where(np.isfinite(found), found * (1.0 + 16.0 * UNIT), np.inf)


def _exact_at(log_value: Array, exact: float, error: Array | float = 0.0) -> Bracket:
    """A log with its rounding, but for one value that has none."""
    sides = opened(log_value, error)
    return Bracket(*(np.where(log_value == exact, exact, side) for side in sides))


def _outward(sides: Iterable[Array]) -> zip:
    """Both sides, with the sign of the direction that is outward."""
    return zip(sides, (-1.0, 1.0), strict=True)
