"""Bounds from above and from below on a whole privacy profile, from finitely many of its points.

With γ = e^ε the profile h(γ) = δ(log γ) is convex, does not increase, has slopes in [−1, 0], and
holds for both orders of the neighbours: h(1/γ) = 1 − (1 − h(γ))/γ. Every point carries its error, a
box [γ] × [δ] that holds the true point. From above, h lies below the chords between upper right
corners, and every upper right corner is a line β ≥ 1 − δ − γ·α that no attack crosses. From below,
h lies above every chord prolonged past its ends; the slope of a chord is bounded over both boxes,
so that points closer than their errors have no effect and distant ones decide.

No result depends on a vertex being where it was computed: a bound is the best of several, each of
which holds for itself, rounded outwards. Everything is written in g = γ − 1 = expm1(ε), which keeps
its digits where ε is small."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..numerics.errors import QUANTILE, QUANTILE_AT_ZERO, SPACING

_UP, _DOWN = 1.0 + 8.0 * SPACING, 1.0 - 8.0 * SPACING  # a few roundings of positive terms


class Box(NamedTuple):
    """Points (g, δ), each between two known corners; arrays of one length, by increasing g."""

    low_g: np.ndarray
    high_g: np.ndarray
    low: np.ndarray
    high: np.ndarray


def mirrored(box: Box) -> Box:
    """Points with g ≥ 0, their mirror images, and h(0) = 1, by increasing g. With g and δ, 1 − (1 −
    δ)/γ is (g + δ)/(1 + g).
    """
    low_g, high_g, low, high = (a[::-1] for a in box)
    image = Box(
        -high_g / (1.0 + high_g) * _UP,
        -low_g / (1.0 + low_g) * _DOWN,
        (low_g + low) / (1.0 + low_g) * _DOWN,
        np.minimum((high_g + high) / (1.0 + high_g) * _UP, 1.0),
    )
    inside = low_g > 0.0
    start = (-1.0, -1.0, 1.0, 1.0)
    columns = zip(start, image, box, strict=True)
    return Box(*(np.concatenate([[first], a[inside], b]) for first, a, b in columns))


def _hull(g: Any, value: np.ndarray):
    """Indices of the lower convex hull of points in order; any choice of points is sound."""
    kept: list[int] = []
    for i in range(len(g)):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (value[b] - value[a]) * (g[i] - g[a]) < (value[i] - value[a]) * (g[b] - g[a]):
                break
            kept.pop()
        if not kept or (g[i] > g[kept[-1]] and value[i] < value[kept[-1]]):
            kept.append(i)
    return np.array(kept)


def _fixed_point(g: Any, delta: Any):
    """x = 1 − δ − γ·x, rounded down: where a line meets its mirror image."""
    return (1.0 - delta) / (2.0 + g) * _DOWN


def _fnr(g: Any, delta: Any, alpha: Any):
    """1 − δ − γ·α, rounded down; with the fixed point x of the line it is x + γ·(x − α), which does
    not cancel for α ≤ x.
    """
    x = _fixed_point(g, delta)
    ahead = x - alpha
    plain = np.maximum(1.0 - (delta + alpha + g * alpha) * _UP - 2.0 * SPACING, 0.0)
    return np.where(ahead >= 0.0, (x + (1.0 + g) * ahead) * _DOWN, plain)


class Above:
    """Upper bounds on the profile and on what an attacker reaches."""

    def __init__(self, box: Box):
        self.lines = box.high_g, np.minimum(box.high, 1.0)
        g, value = mirrored(box).high_g, mirrored(box).high
        order = np.lexsort((value, g))
        kept = order[_hull(g[order], value[order])]
        self.g, self.value = g[kept], value[kept]

    def delta(self, g: Any):
        """h at γ = 1 + g, on the chord of the hull."""
        g = np.asarray(g, float)
        k = np.searchsorted(self.g, g, side="right")
        right = np.minimum(k, len(self.g) - 1)
        left = np.maximum(right - 1, 0)
        width = np.where(right > left, self.g[right] - self.g[left], 1.0)
        value = (
            (self.value[left] * (self.g[right] - g) + self.value[right] * (g - self.g[left]))
            / width
            * _UP
        )
        return np.where(k == len(self.g), self.value[-1], np.minimum(value, self.value[left]))[()]

    def g_of(self, delta: float) -> float:
        """The g from which on h is at most δ: 0 where it is for γ ≥ 1, ∞ where none is known."""
        below = np.flatnonzero(self.value <= delta)
        if len(below) == 0:
            return np.inf
        k = int(below[0])
        left, right = self.g[k - 1], self.g[k]
        share = (self.value[k - 1] - delta) / (self.value[k - 1] - self.value[k])
        found = left + share * (right - left) + 8.0 * SPACING * (abs(left) + abs(right))
        return float(max(min(found, right), 0.0))

    def rates(self, alpha: Any):
        """(TPR, FNR) at FPR α: no attack has more, or less."""
        g, d = self.lines
        a = np.asarray(alpha, float)[..., None]
        tpr = np.min((d + a + g * a) * _UP, axis=-1)
        # the same statement with the rates exchanged: α ≥ 1 − δ − γ·β
        beta = np.max(np.maximum((1.0 - d) * _DOWN - a, 0.0) / (1.0 + g) * _DOWN, axis=-1)
        beta = np.maximum(beta, np.max(_fnr(g, d, a), axis=-1))
        return np.minimum(np.minimum(tpr, 1.0 - beta + 2.0 * SPACING), 1.0), beta

    def mu(self, floor: float, d: float) -> tuple[float, np.ndarray]:
        """μ over the curve's FPRs between the floor and f(floor), and the rates at which it was
        evaluated, the deciding one first.

        By symmetry both rates can be exchanged, so the smaller one, x, runs from ``floor``, or from
        f(floor) where that lies below, to the fixed point x = f(x). The region above a Gaussian
        curve is convex, so the μ of a straight piece is the larger of those at its ends. Beyond a
        lower bound of the fixed point both rates are at least that.

        Args:
            floor: in [0, 0.5).
            d: 0, or the d of a d-approximate μ, which has no floor.
        """
        g, delta = self.lines
        top = float(np.max(_fixed_point(g, delta)))
        if top <= 0.0:
            return np.inf, np.array([max(floor, 1e-300)])
        if d > 0.0:
            # TPR ≤ d up to here
            bottom = float(np.max((d - delta) / (1.0 + g))) * _DOWN
            if np.min(delta) > d:
                return np.inf, np.array([1e-300])
        else:
            bottom = floor if floor <= top else float(self.rates(floor)[1])
            if bottom <= 0.0:
                return np.inf, np.array([top])
        half = self.g >= 0.0
        g, delta = self.g[half], self.value[half]
        corners = -np.diff(delta) / np.diff(g)
        edges = np.minimum.accumulate(
            np.clip(np.concatenate([[top], corners, [bottom]]), min(bottom, top), top)
        )
        used = edges[1:] < edges[:-1]
        x = np.concatenate([edges[:-1][used], edges[1:][used]])
        g, delta = np.tile(g[used], 2), np.tile(delta[used], 2)
        steep = (delta + x + g * x) * _UP
        rest = 1.0 - d
        if d > 0.0:
            gain = delta - d + (x + g * x)
            gain = gain + 4.0 * SPACING * (np.abs(delta - d) + x + g * x)
            tpr = np.maximum(gain, 0.0) / rest * _UP
        else:
            tpr = steep
        beta = _fnr(g, delta, x) / rest * _DOWN
        # the upper end of the last piece is where both rates are equal
        x, tpr, beta = np.append(x, top), np.append(tpr, 1.0), np.append(beta, top / rest * _DOWN)
        mu = gaussian_mu(x / rest * _DOWN, tpr, beta, 1.0)
        order = np.argsort(-mu, kind="stable")
        return float(max(mu[order[0]], 0.0)), x[order]


class Below:
    """Lower bounds on an exact profile and on what an attacker can surely reach; of no points, what
    guessing reaches.
    """

    def __init__(self, box: Box | None):
        if box is None:
            # h ≥ max(1 − γ, 0)
            self.g, self.value = np.array([-1.0, 0.0]), np.array([1.0, 0.0])
            self.left, self.right = np.array([-1.0, 0.0]), np.array([-1.0, 0.0])
            return
        low_g, high_g, low, high = mirrored(box)
        number = len(low_g)
        left, right = np.full(number, -1.0), np.zeros(number)
        step = 1
        while step < number:
            fall = np.minimum(low[step:] - high[:-step], 0.0)
            gap = low_g[step:] - high_g[:-step]
            slope = np.where(gap > 0.0, fall / np.where(gap > 0.0, gap, 1.0) * _UP, -1.0)
            left[step:] = np.maximum(left[step:], slope)
            fall = np.minimum(high[step:] - low[:-step], 0.0)
            right[:-step] = np.minimum(
                right[:-step], fall / (high_g[step:] - low_g[:-step]) * _DOWN
            )
            step *= 2
        self.g, self.value = low_g, low
        self.left, self.right = left, np.maximum(right, -1.0)

    def _lines(self, g: Any):
        """Every prolonged chord at g, rounded down: from points left of it, then right."""
        move = g - self.g
        after = (
            self.value + self.left * move - 4.0 * SPACING * (self.value - self.left * np.abs(move))
        )
        before = (self.value + self.right * np.minimum(move, 0.0)) * _DOWN
        return np.where(move >= 0.0, after, -np.inf), np.where(move <= 0.0, before, -np.inf)

    def delta(self, g: float) -> float:
        """h at γ = 1 + g."""
        return float(max(np.max(self._lines(g)), -g, 0.0))

    def g_of(self, delta: float) -> float:
        """A g up to which h is above δ."""
        above, below = self.value > delta, (self.value <= delta) & (self.right < 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            reach = self.g + (self.value - delta) / -self.left * _DOWN
            back = self.g - (delta - self.value) / np.where(below, -self.right, 1.0) * _UP
        found = np.concatenate(
            [np.minimum(reach[above & (self.left < 0.0)], 1e300), back[below], self.g[above], [0.0]]
        )
        return float(max(np.max(found - 4.0 * SPACING * np.abs(found)), 0.0))

    def rates(self, alpha: Any):
        """(TPR, FNR, g) at FPR α: some attack has at least, and at most, as much; and the γ = 1 + g
        about which little is known there.

        Between two points h is at least the line A prolonged from the left one and the line B from
        the right one, so at least t·A + (1 − t)·B for every t in [0, 1]; t is chosen where the
        bound is best, and the bound is taken at both ends."""
        alpha = np.asarray(alpha, float)[..., None]
        last = len(self.g) - 1
        # pieces in γ ≥ 1; the last one goes on to infinity, where B = 0
        k = np.arange(last + 1)[np.append(self.g[1:] > 0.0, True)]
        inner = k < last
        following = np.minimum(k + 1, last)
        a, start = np.maximum(self.g[k], 0.0), self.g[k]
        b = np.where(inner, self.g[following], a)
        left, right = -self.left[k], np.where(inner, -self.right[following], 0.0)
        line_a = [self.value[k] - left * (end - start) for end in (a, b)]
        line_b = [np.where(inner, self.value[following] + right * (b - end), 0.0) for end in (a, b)]
        sizes = self.value[k] + left * (b - start), line_b[0]

        def mixture(t: Any):
            guard = 8.0 * SPACING * (t * sizes[0] + (1.0 - t) * sizes[1])
            return [t * p + (1.0 - t) * q - guard for p, q in zip(line_a, line_b, strict=True)]

        def share(numerator: np.ndarray, denominator: np.ndarray):
            flat = denominator <= 0.0
            with np.errstate(over="ignore"):
                return np.clip(
                    np.where(flat, 1.0, numerator / np.where(flat, 1.0, denominator)), 0.0, 1.0
                )

        t = share(alpha - right, left - right)
        values = [
            v + (alpha + end * alpha) * _DOWN for v, end in zip(mixture(t), (a, b), strict=True)
        ]
        # (past the last point the mixture with 0 does not fall faster than γ·α rises)
        tprs = np.minimum(*values)
        piece = np.argmin(tprs, axis=-1)
        tpr = np.min(tprs, axis=-1)
        # the other half of the curve: β = max (1 − h − α)/γ
        heights = [
            line + slope * (1.0 + a) for line, slope in ((line_a[0], left), (line_b[0], right))
        ]
        t = share(1.0 - alpha - heights[1], heights[0] - heights[1])
        values = [
            (1.0 - alpha - v + 4.0 * SPACING) / (1.0 + end) * _UP
            for v, end in zip(mixture(t), (a, b), strict=True)
        ]
        betas = np.maximum(*values)
        betas = np.where(inner, betas, np.maximum(betas, t * left * _UP))
        other = np.argmax(betas, axis=-1)
        beta = np.maximum(np.max(betas, axis=-1), 0.0)
        # the larger β of both halves holds; where they are well apart, it keeps the digits of its
        # own half
        alpha, excess = alpha[..., 0], beta - (1.0 - tpr)
        at = np.where(excess > 0.0, other, piece)
        sure = np.abs(excess) > 8.0 * SPACING
        from_tpr, from_beta = 1.0 - tpr + 4.0 * SPACING, 1.0 - beta - 4.0 * SPACING
        highest = np.where(sure & (excess > 0.0), beta, np.maximum(beta, from_tpr))
        lowest = np.where(sure & (excess < 0.0), tpr, np.minimum(tpr, from_beta))
        return (
            np.maximum(lowest, alpha),
            np.minimum(highest, 1.0 - alpha + SPACING),
            self._middle(k[at]),
        )

    def _middle(self, k: Any):
        """g where the lines of the piece behind point k meet, or well past the last point."""
        g, value = self.g, self.value
        following = np.minimum(k + 1, len(g) - 1)
        width = g[following] - g[k]
        spread = self.right[following] - self.left[k]
        move = (value[k] - value[following] + self.right[following] * width) / np.where(
            spread > 0.0, spread, 1.0
        )
        low, high = (np.log1p(np.maximum(g[i], 0.0)) for i in (k, following))
        meet = np.log1p(np.maximum(g[k] + np.clip(move, 0.0, width), 0.0))
        meet = np.clip(
            np.where(spread > 0.0, meet, 0.5 * (low + high)),
            0.9 * low + 0.1 * high,
            0.1 * low + 0.9 * high,
        )
        past = 1.3 * low + 0.25
        with np.errstate(over="ignore"):
            return np.expm1(np.where(k < len(g) - 1, meet, past))

    def mu(self, alpha: Any, floor: float, d: float) -> float:
        """μ that the attacks at these FPRs achieve over error rates from the floor on."""
        alpha = np.asarray(alpha, float)
        tpr, beta, _ = self.rates(alpha)
        rest = 1.0 - d
        if d > 0.0:
            gain = np.maximum(tpr - d - 2.0 * SPACING, 0.0)
            found = gaussian_mu(alpha / rest * _UP, gain / rest * _DOWN, beta / rest * _UP, -1.0)
        else:
            # a weaker test whose rates are at least the floor; where both are at most the floor,
            # the test itself
            most = np.where(beta < floor, 1.0 - floor - SPACING, tpr)
            weaker = gaussian_mu(
                np.maximum(alpha, floor), np.minimum(tpr, most), np.maximum(beta, floor), -1.0
            )
            plain = gaussian_mu(alpha, tpr, beta, -1.0)
            found = np.where((alpha <= floor) & (beta <= floor), plain, weaker)
        return float(max(np.max(found), 0.0))

    def gap(self, above: Above) -> float:
        """The most by which the bound from above exceeds the one from below at any ε ≥ 0: both are
        straight between their corners.
        """
        inside = np.append(self.g[1:] > 0.0, True)
        k = np.arange(len(self.g))[inside]
        following = np.minimum(k + 1, len(self.g) - 1)
        spread = self.right[following] - self.left[k]
        width = self.g[following] - self.g[k]
        move = (self.value[k] - self.value[following] + self.right[following] * width) / np.where(
            spread > 0, spread, 1.0
        )
        meet = self.g[k] + np.clip(move, 0.0, width)
        corners = np.concatenate([meet, self.g, above.g, [0.0]])
        return max(float(above.delta(g) - self.delta(g)) for g in corners[corners >= 0.0])


def gaussian_mu(alpha: Any, tpr: np.ndarray, beta: np.ndarray, sign: float):
    """Φ⁻¹(TPR) − Φ⁻¹(α), the TPR from the smaller of itself and FNR, moved by its rounding error in
    the direction of ``sign``.
    """
    by_tpr = tpr < beta
    z = ndtri(np.clip(np.where(by_tpr, tpr, beta), 0.0, 1.0))
    z_tpr, z_alpha = np.where(by_tpr, z, -z), ndtri(np.clip(alpha, 0.0, 1.0))
    with np.errstate(invalid="ignore"):
        value = (
            z_tpr
            - z_alpha
            + sign * (QUANTILE * (np.abs(z_tpr) + np.abs(z_alpha)) + 2.0 * QUANTILE_AT_ZERO)
        )
    # nothing is detected, or nothing is missed
    return np.where((z_tpr == -np.inf) | (z_alpha == np.inf), -np.inf, value)


__all__ = ["Above", "Below", "Box", "gaussian_mu", "mirrored"]
