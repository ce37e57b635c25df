"""One half-curve from above of several that bound the same one, each where it says most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...numerics.normal import log1mexp, log_error
from ...numerics.shapes import Array
from .curve import log_intercept
from .normal_curve import Profile, profile_half
from .vertices import Vertices


class Bounds(NamedTuple):
    """Upper bounds on log δ, and lower ones on log(1 − δ), at thresholds of at least 0.

    Attributes:
        loss: the thresholds, in any order.
        log_delta, log_rest: the bounds.
        top: threshold beyond which nothing but the mass at +∞ is left, ∞ where none is known.
        log_infinity_mass: log of that mass, from above.
    """

    loss: Array
    log_delta: Array
    log_rest: Array
    top: float = np.inf
    log_infinity_mass: float = -np.inf


def beyond_largest(loss: float) -> Bounds:
    """That no loss is larger than one, not even at +∞.

    Method: docs/method/mu.md#joined
    """
    if not 0.0 < loss < np.inf:
        none = np.zeros(0)
        return Bounds(none, none, none)
    return Bounds(np.array([loss]), np.array([-np.inf]), np.zeros(1), loss)


def bounds(half: Vertices) -> Bounds:
    """What the vertices of a dominating half-curve say at both ends of their slopes.

    A vertex has δ(ε) ≤ TPR − e^ε·α for all of its slopes, and the two ends say all of that again:
    δ is convex in e^ε.

    Args:
        half: on the leading axis units (host arrays).

    Method: docs/method/mu.md#joined
    """
    low, high = np.maximum(half.threshold(), 0.0), half.slopes_end()
    some = half.used & (high > low) & np.isfinite(high)
    alpha, tpr, beta = (a[some] for a in (half.log_alpha, half.log_tpr, half.log_beta))
    loss = np.concatenate([low[some], high[some]])
    alpha, tpr, beta = (np.tile(a, 2) for a in (alpha, tpr, beta))
    log_delta = log_intercept(loss, alpha, tpr)
    rest = np.logaddexp(beta, loss + alpha)
    log_rest = np.minimum(rest - log_error(rest, loss, alpha), 0.0)
    # (what is no number says nothing)
    log_delta = np.where(np.isnan(log_delta), 0.0, log_delta)
    log_rest = np.where(np.isnan(log_rest), -np.inf, log_rest)
    if half.top is None or half.log_infinity_mass is None:
        return Bounds(loss, log_delta, log_rest)
    top, mass = float(half.top[0]), float(half.log_infinity_mass[0])
    if not 0.0 < top < np.inf:
        return Bounds(loss, log_delta, log_rest)
    end = np.array([mass])
    columns = ((loss, [top]), (log_delta, end), (log_rest, log1mexp(end) - log_error()))
    return Bounds(*(np.append(*column) for column in columns), top, mass)


def joined(several: Sequence[Bounds]) -> Vertices:
    """The half-curve that all bounds together leave: the lower convex hull of bounds on δ, one
    piece with nothing between its vertices.

    Args:
        several: all of the same half-curve.

    Method: docs/method/mu.md#joined
    """
    columns = ([0.0], *(b.loss for b in several)), ([0.0], *(b.log_delta for b in several))
    t, log_delta = (np.concatenate(column) for column in columns)
    log_rest = np.concatenate([[-np.inf], *(b.log_rest for b in several)])
    order = np.argsort(t, kind="stable")
    t = t[order]
    first = np.flatnonzero(np.append(True, np.diff(t) > 0.0))
    found = Profile(
        np.minimum.reduceat(log_delta[order], first), np.maximum.reduceat(log_rest[order], first)
    )
    end = min(several, key=lambda b: b.top)
    return _with_misses(profile_half(t[first], found, end.top, end.log_infinity_mass))


def _with_misses(half: Vertices) -> Vertices:
    """The half-curve with some FNR in place of none: half of the FPR α is given for e^t·α/2 of it,
    t being the least of the slopes of the vertex, at which both say the same; for the others the
    new vertex says less, FNR + e^ε·FPR is no more than it was.

    Method: docs/method/mu.md#joined
    """
    t, alpha = half.threshold(), half.log_alpha - np.log(2.0)
    some = half.used & (half.log_beta == -np.inf) & (half.log_tpr > -np.log(2.0))
    some = some & np.isfinite(alpha) & np.isfinite(t)
    alpha = alpha - log_error(alpha, t)
    beta = np.minimum(t + alpha, -np.log(2.0))
    beta = beta - log_error(beta, t)
    return half._replace(
        log_alpha=np.where(some, alpha, half.log_alpha),
        log_tpr=np.where(some, np.minimum(log1mexp(beta) + log_error(), 0.0), half.log_tpr),
        log_beta=np.where(some, beta, half.log_beta),
    )
