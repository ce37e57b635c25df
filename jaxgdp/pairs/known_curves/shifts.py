"""The curve of N(0, 1) against a mixture of shifted normal laws, Σ_i ω_i·N(τ_i, 1), all τ_i > 0.

The likelihood ratio L = Σ ω_i·r_i rises with the output z, and so does every r_i. So with v_i the
log of r_i at the root z of L = e^v

    E(L − e^v)₊ = Σ ω_i·E(r_i − e^{v_i})₊,

a sum of Gaussian profiles in which nothing cancels. For other v_i with Σ ω_i·e^{v_i} ≤ e^v it is an
upper bound, and for the v_i of an output where L ≥ e^v a lower one: a root need not be exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...bracket import Bracket
from ...numerics import gaussian_profile
from ...numerics.errors import CLOSED_FORM, LOG, LOGS, UNIT
from ...numerics.first_double import first_double
from ...numerics.shapes import Array
from .base import REMOVE, KnownCurve, Middle, Rates, Tests, log1mexp, opened, together
from .gaussian import log_tail, quantile, shifted
from .normal_gain import mu_of_sum

_NEWTON = 60  # most steps; each visits one more shift, or doubles the digits
_FARTHEST = 1e250  # output beyond which nothing is looked for
_REACH = 39.0  # standard deviations beyond which every rate is below 1e-320


class _Ratio(NamedTuple):
    """log(L·e^{−v}) at outputs: bounds on it, and its slope.

    Attributes:
        value, low, high: the log of the ratio, as computed and bounded.
        slope: its derivative along the output.
    """

    value: Array
    low: Array
    high: Array
    slope: Array


@dataclass(frozen=True)
class ShiftsCurve(KnownCurve):
    """N(0, 1) against Σ ω_i·N(τ_i, 1); the last axis of every field belongs to one pair.

    Attributes:
        low, high: bounds on τ_i > 0, apart by their rounding.
        log_w: log ω_i, to units of itself and one of ω_i; the ω_i sum to 1.

    Method: docs/method/known.md#shifts
    """

    low: Array
    high: Array
    log_w: Array

    trailing = 1

    @property
    def size(self) -> int:
        """How many shifts there are."""
        return int(np.shape(self.low)[-1])

    def _ratio(self, z: Array, v: Array, exponents: Array, exact: bool) -> _Ratio:
        """log Σ ω_i·e^{v_i − v}, where the v_i are numbers as they are, or those of an output z."""
        tau, log_w = self.low, self.log_w
        x = np.minimum(exponents - v[..., None], 700.0 - log_w)
        place = np.abs(exponents) + np.abs(v)[..., None]
        if not exact:
            place = place + 4.0 * tau * (np.abs(z)[..., None] + 0.5 * tau)
        weight, one = np.exp(log_w), np.exp(log_w + x)
        near = np.abs(x) < 0.5
        # (the weights sum to one: what they are off by counts times e^x − 1)
        more = np.where(near, weight * np.expm1(np.where(near, x, 0.0)), one - weight)
        units = 4.0 * place * one
        units = units + (40.0 + self.size + 6.0 * (np.abs(log_w) + np.abs(x))) * np.abs(more)
        excess, room = np.sum(more, axis=-1), UNIT * np.sum(units, axis=-1)
        total = np.maximum(1.0 + excess, 1e-300)
        logs = [np.log1p(np.maximum(excess + s * room, -1.0)) for s in (-1.0, 0.0, 1.0)]
        size = 4.0 * UNIT * np.where(np.isfinite(logs[1]), np.abs(logs[1]), 0.0)
        # (where exponents are so large that their rounding is, each term has its own)
        each = UNIT * (4.0 * place + 8.0 * np.abs(log_w) + 40.0 + self.size)
        low, high = (np.logaddexp.reduce(log_w + x + s * each, axis=-1) for s in (-1.0, 1.0))
        low, high = np.maximum(low, logs[0] - size), np.minimum(high, logs[2] + size)
        slope = np.maximum(np.sum(tau * one, axis=-1) / total, np.min(tau, axis=-1))
        return _Ratio(logs[1], low, high, slope)

    def _exponents(self, z: Array) -> Array:
        """v_i = τ_i·(z − τ_i/2)."""
        return self.low * (z[..., None] - 0.5 * self.low)

    def _root(self, v: Array) -> Array:
        """About the output at which L = e^v, from above.

        log L is convex in the output, and the least of the roots that single terms have lies on the
        right of its root, from where Newton's method comes down to it.
        """
        with np.errstate(all="ignore"):
            z = np.min((v[..., None] - self.log_w) / self.low + 0.5 * self.low, axis=-1)
            z = np.clip(z, -_FARTHEST, _FARTHEST)
            z = self._down(z, v)
            for _ in range(2):
                found = self._ratio(z, v, self._exponents(z), True)
                step = found.value / found.slope
                z = np.where(np.isfinite(z - step), z - step, z)
        return z

    def _down(self, z: Array, v: Array) -> Array:
        """Newton's method, without care for roundings."""
        done = np.zeros(np.shape(z), bool)
        for _ in range(_NEWTON):
            one = np.exp(self.log_w + self._exponents(z) - v[..., None])
            total = np.sum(one, axis=-1)
            step = np.log(total) * total / np.sum(self.low * one, axis=-1)
            # (each by itself: what is found at a point does not depend on the others)
            done = done | ~(np.abs(step) > 1e-9 * np.abs(z)) | ~np.isfinite(z - step)
            z = np.where(done, z, z - step)
            if np.all(done):
                break
        return z

    def _before(self, z: Array, v: Array) -> Array:
        """An output at which L ≤ e^v for certain, a little before one that is about a root."""
        found = self._ratio(z, v, self._exponents(z), False)
        over = np.maximum(found.high, 0.0)
        step = 2.0 * over / found.slope + 2.0 * UNIT * np.abs(z)
        near = z - step
        sure = self._ratio(near, v, self._exponents(near), False).high <= 0.0
        # (no slope is less than the smallest shift)
        far = z - over / np.min(self.low, axis=-1) * (1.0 + 8.0 * UNIT) - 2.0 * UNIT * np.abs(z)
        return np.where(sure, near, far)

    def _after(self, z: Array, v: Array) -> Array:
        """An output at which L ≥ e^v for certain: log L is convex."""
        found = self._ratio(z, v, self._exponents(z), False)
        step = np.maximum(-found.low, 0.0) / found.slope * (1.0 + 64.0 * UNIT)
        return z + step + 2.0 * UNIT * (np.abs(z) + step)

    def _thresholds(self, order: int, z: Array, v: Array) -> tuple[Array, Array]:
        """Thresholds v_i of a lower and of an upper side.

        Those of the lower side are of an output, moved by their own rounding to where less is
        found; those of the upper side are any numbers with Σ ω_i·e^{v_i} on the right side of e^v.
        """
        sign = 1.0 if order == REMOVE else -1.0
        with np.errstate(all="ignore"):
            own = self._exponents(z)
            found = self._ratio(z, v, own, True)
            # (however far off: a sum that is less than it may be serves as well)
            over = np.maximum(found.high, -1.0) if order == REMOVE else np.minimum(found.low, 1.0)
            upper = own - over[..., None]
            upper = upper - sign * 4.0 * UNIT * (np.abs(own) + np.abs(over)[..., None])
            end = self._after(z, v) if order == REMOVE else self._before(z, v)
            at = self._exponents(end)
            room = 8.0 * UNIT * self.low * (np.abs(end)[..., None] + 0.5 * self.low)
            lower = at + sign * (room + 2.0 * UNIT * np.abs(at))
        return lower, upper

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log Σ ω_i·E(r_i − e^{v_i})₊, or ε + log Σ ω_i·E(e^{v_i} − r_i)₊ at e^{−ε}."""
        return self._profile(order, epsilon)[0]

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log Σ ω_i·E min(r_i, e^{v_i}), plus ε at e^{−ε} in the other order."""
        return self._profile(order, epsilon)[1]

    def _profile(self, order: int, epsilon: Array) -> tuple[Bracket, Bracket]:
        """log δ and log(1 − δ), each with the help of the other one."""
        v = np.asarray(epsilon, float)
        with np.errstate(all="ignore"):
            if order == REMOVE:
                z = self._root(v)
                low, high = caps = self._thresholds(REMOVE, z, v)
                gains = _log_above(low, self.low), _log_above(high, self.high)
                shift = 0.0
            else:
                z, shift = self._root(-v), v[..., None]
                low, high = self._thresholds(order, z, -v)
                # (e^{v_i} − r_i is e^{v_i} times what it is in the other order, at −v_i)
                gains = tuple(
                    shift + at + _log_above(-at, tau)
                    for at, tau in ((low, self.low), (high, self.high))
                )
                caps = self._thresholds(REMOVE, z, -v)
            # (E min(L, e^v) grows with the thresholds, whatever the order)
            rests = [
                shift + _log_below(at, tau)
                for at, tau in ((caps[1], self.high), (caps[0], self.low))
            ]
            return together(Rates(self._summed(*gains), self._summed(*rests)))

    def _summed(self, low: Array, high: Array) -> Bracket:
        """log Σ ω_i·e^{a_i} of both sides, to the promise of Gaussian profiles."""
        room = CLOSED_FORM + (64.0 + 2.0 * self.size) * UNIT
        sides = []
        for logs, s, unknown in ((low, -1.0, -np.inf), (high, 1.0, -self.log_w)):
            # (beyond all doubles a term is what it may be, a probability)
            logs = np.where(np.isnan(logs), unknown, logs)
            finite = np.where(np.isfinite(logs), np.abs(logs), 0.0)
            each = logs + self.log_w + s * LOG * UNIT * (finite + np.abs(self.log_w))
            sides.append(np.logaddexp.reduce(each, axis=-1))
        return Bracket(opened(sides[0], room).lower, opened(sides[1], room).upper)

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates | None:
        """TPR = Σ ω_i·Φ(Φ⁻¹(α) + τ_i) of removing; None for the other order."""
        if tuple(orders) != (REMOVE,):
            return None
        return self._rates_at(quantile(np.asarray(log_fpr, float)))

    def _rates_at(self, z: Bracket) -> Rates:
        """Rates of the test that rejects beyond −z."""
        ends = Bracket(z.lower[..., None], z.upper[..., None])
        moved = shifted(ends, Bracket(self.low, self.high))
        tpr, beta = log_tail(moved), log_tail(Bracket(-moved.upper, -moved.lower))
        with np.errstate(all="ignore"):
            return together(Rates(self._mean(tpr), self._mean(beta)))

    def _mean(self, logs: Bracket) -> Bracket:
        room = (8.0 + 2.0 * self.size) * UNIT + LOGS
        sides = []
        for side, s in zip(logs, (-1.0, 1.0), strict=True):
            each = side + self.log_w + s * LOG * UNIT * np.abs(self.log_w)
            sides.append(np.logaddexp.reduce(each, axis=-1))
        return Bracket(opened(sides[0], room).lower, opened(sides[1], room).upper)

    def _zero(self) -> Bracket:
        """The output at which L = 1, by trying."""
        tau = self.low.reshape(-1, self.size)
        each = ShiftsCurve(
            *(a.reshape(-1, 1, self.size) for a in (self.low, self.high, self.log_w))
        )
        ends = np.zeros(len(tau)), 0.5 * tau.max(axis=-1) * (1.0 + 1e-12)
        with np.errstate(all="ignore"):
            ratio = lambda z: each._ratio(z, np.zeros_like(z), each._exponents(z), False)
            after = first_double(lambda z: ratio(z).low >= 0.0, *ends).after
            before = first_double(lambda z: ~(ratio(z).high <= 0.0), *ends).before
        shape = self.low.shape[:-1]
        return Bracket(before.reshape(shape), after.reshape(shape))

    def middle(self) -> Middle:
        """Error rates of the test that rejects where L > 1."""
        z = self._zero()
        end = Bracket(-z.upper, -z.lower)
        return Middle(log_tail(end), self._rates_at(end).log_beta)

    def mu_of_sample(self, log_p: Array, log_floor: Array) -> Bracket:
        """μ at an FPR of (1 − p)·N(0, 1) + p·Σ ω_i·N(τ_i, 1) against N(0, 1)."""
        room = (8.0 + 2.0 * self.size) * UNIT + LOG * UNIT * np.abs(self.log_w)
        log_w = Bracket(self.log_w - room, self.log_w + room)
        return mu_of_sum(quantile(log_floor), Bracket(self.low, self.high), log_w, log_p)

    def tests(self, order: int, number: int) -> Tests:
        """Tests at outputs from where L = 1 on, dense within reach of either law."""
        start, centres = float(self._zero().upper), np.append(0.0, self.low)
        if order == REMOVE:
            z = _spread(start, float(self.high.max()) + _REACH, centres, number)
        else:
            z = -_spread(-start, _REACH, -centres, number)
        with np.errstate(all="ignore"):
            logs = self.log_w + self._exponents(z)
            threshold = np.logaddexp.reduce(logs, axis=-1)
            found = self._rates_at(Bracket(-z, -z))
            absent, below = log_tail(Bracket(-z, -z)), log_tail(Bracket(z, z))
        sign = 1.0 if order == REMOVE else -1.0
        threshold = np.append(0.0, np.maximum(sign * threshold[1:], 0.0))
        if order == REMOVE:
            return Tests(threshold, absent, *found)
        return Tests(threshold, found.log_beta, below, absent)


def _signed(v: Array) -> tuple[Array, Array, Array]:
    """Where v < 0, and |v| there and elsewhere."""
    negative = v < 0.0
    return negative, np.where(negative, -v, 0.0), np.where(negative, 0.0, v)


def _log_above(v: Array, tau: Array) -> Array:
    """log E(r − e^v)₊ of N(τ, 1) against N(0, 1), for v of either sign."""
    v, tau = np.broadcast_arrays(v, tau)
    negative, least, most = _signed(v)
    delta = gaussian_profile.log_delta(least + most, tau)
    # (E(r − e^v)₊ = 1 − e^v + E(e^v − r)₊, a sum of what is positive for v < 0)
    return np.where(negative, np.logaddexp(log1mexp(-least), delta - least), delta)


def _log_below(v: Array, tau: Array) -> Array:
    """log E min(r, e^v), for v of either sign: it is e^v·E min(r, e^{−v})."""
    v, tau = np.broadcast_arrays(v, tau)
    _, least, most = _signed(v)
    return gaussian_profile.log_one_minus_delta(least + most, tau) - least


def _spread(start: float, end: float, centres: Array, number: int) -> Array:
    """Points from one place to another, equally far apart within reach of some centre."""
    order = np.sort(centres)
    low, high = np.clip(order - _REACH, start, end), np.clip(order + _REACH, start, end)
    low = np.maximum(low, np.maximum.accumulate(np.append(start, high[:-1])))
    length = np.append(0.0, np.cumsum(np.maximum(high - low, 0.0)))
    at = np.linspace(0.0, length[-1], number)
    k = np.clip(np.searchsorted(length, at, "right") - 1, 0, len(order) - 1)
    found = np.clip(low[k] + (at - length[k]), start, end)
    found[0] = start
    return np.maximum.accumulate(found)
