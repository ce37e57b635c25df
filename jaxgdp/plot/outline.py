"""Polygons that a certified trade-off curve lies between, with no corner on the unsafe side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..adjacency import Adjacency
from ..deprecation import renamed_arguments
from ..numerics.shapes import Array, ArrayLike

_NUMBER = 32
_TANGENTS = 96
_SMALL = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9)  # the first δ that is not below the mass at infinity
_MOST = 30.0  # nats


class Outline(NamedTuple):
    """Two polygons, FPRs ascending, with lower(α) ≤ f(α) ≤ upper(α) everywhere.

    Attributes:
        lower: (FPRs, FNRs) of the corners of an envelope of tangents.
        upper: those of chords.
    """

    lower: tuple[np.ndarray, np.ndarray]
    upper: tuple[np.ndarray, np.ndarray]


def outline(curve: Any, number: int = _NUMBER) -> Outline:
    """The outline of a certified trade-off curve f.

    f is convex, so the line between two of its points lies above it, on the unsafe side of what is
    to be reported. The lower polygon is made of the lines 1 − δ(ε) − e^ε·α and e^−ε·(1 − δ(ε) − α)
    instead, whose supremum f is (Dong, Roth and Su 2022, Proposition 6), with the upper side of δ;
    the upper one of chords between upper sides of f. Under the one-sided relations "add" and
    "remove", where one half of the lines is not known, the lower polygon is made of points of f
    (:func:`below`), at eight times as many rates.

    Args:
        curve: from ``jaxgdp.tradeoff``, of one mechanism.
        number: rates asked of each half of the curve, a whole number ≥ 2.

    Returns:
        :class:`Outline`.

    Raises:
        ValueError: the curve is one of several mechanisms, or ``number`` is below 2.

    Example:
        >>> import jaxgdp
        >>> sides = outline(jaxgdp.tradeoff(jaxgdp.Gaussian(1.0)))
        >>> bool((sides.lower[1] <= jaxgdp.gdp.beta(fpr=sides.lower[0], mu=1.0)).all())
        True
    """
    if curve.shape != ():
        raise ValueError(f"curve must be that of one mechanism, got shape {curve.shape}")
    if number < 2:
        raise ValueError(f"number must be a whole number >= 2, got {number!r}")
    if not Adjacency(curve.adjacency).symmetric:
        alpha = np.concatenate([[0.0], ndtr(np.linspace(-6.0, 6.0, 8 * number)), [1.0]])
        beta = curve.beta(alpha)
        return Outline(below(alpha, beta.lower), (alpha, np.asarray(beta.upper)))
    # the tangent of slope −1 touches a symmetric curve where f(α) = α = (1 − η)/2
    middle = 0.5 * (1.0 - float(curve.advantage().lower))
    alpha = np.concatenate([[0.0], ndtr(np.linspace(-6.0, ndtri(max(middle, 1e-9)), number))])
    beta = np.asarray(curve.beta(alpha).upper)
    upper = _through(np.concatenate([alpha, beta[::-1]]), np.concatenate([beta, alpha[::-1]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log(-np.diff(beta) / np.diff(alpha))
    epsilon = np.concatenate(
        [np.linspace(0.0, _last(curve), _TANGENTS), slopes[np.isfinite(slopes) & (slopes > 0.0)]]
    )
    epsilon = np.unique(epsilon)
    rest = 1.0 - np.asarray(curve.delta(epsilon).upper)
    steep, flat = (-np.exp(epsilon), rest), (-np.exp(-epsilon), np.exp(-epsilon) * rest)
    lines = (np.concatenate(pair) for pair in zip(steep, flat, strict=True))
    return Outline(_envelope(*lines), upper)


@renamed_arguments(alpha="fpr")
def below(fpr: ArrayLike, lower: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a polygon that lies below every falling convex curve through given points.

    Between two points such a curve lies above the lines through the two points before and through
    the two after, and is not below the second point; the straight line between them would lie above
    it.

    Args:
        fpr: FPRs, increasing.
        lower: FNRs there, of a convex curve; one-dimensional.

    Returns:
        (FPRs, FNRs) of the corners, the given points among them.

    Example:
        >>> import jaxgdp
        >>> corners = below([0.1, 0.2, 0.3, 0.4], jaxgdp.gdp.beta(fpr=[0.1, 0.2, 0.3, 0.4], mu=1.0))
        >>> bool((corners[1] <= jaxgdp.gdp.beta(fpr=corners[0], mu=1.0) + 1e-15).all())
        True
    """
    fpr, lower = np.asarray(fpr, float), np.asarray(lower, float)
    if len(fpr) < 3:
        return fpr, lower
    width, chord = np.diff(fpr), np.diff(lower) / np.diff(fpr)
    # slope of the line from the left into each cell; none into the first
    before = np.append(np.inf, chord[:-1])
    after = np.append(chord[1:], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # where lower[i] + before·x meets lower[i + 1] − after·(width − x)
        x = (lower[1:] - after * width - lower[:-1]) / (before - after)
    x = np.clip(np.where(np.isfinite(x), x, 0.0), 0.0, width)
    x[0] = 0.0
    corner = lower[1:] - after * (width - x)
    corner = np.minimum(corner, lower[:-1] + chord * x)  # (rounding may bend points the wrong way)
    order = np.argsort(np.concatenate([fpr, fpr[:-1] + x]), kind="stable")
    return np.concatenate([fpr, fpr[:-1] + x])[order], np.concatenate([lower, corner])[order]


def _last(curve: Any) -> float:
    """An ε beyond which tangents tell nothing that shows."""
    found = np.asarray(curve.epsilon(np.array(_SMALL)).upper)
    finite = found[np.isfinite(found)]
    return min(float(finite[0]), _MOST) if len(finite) else _MOST


def _through(alpha: Array, beta: Array) -> tuple[np.ndarray, np.ndarray]:
    """Corners in order of their FPR, and the end (1, 0) of every curve."""
    order = np.lexsort((-beta, alpha))
    return np.append(alpha[order], 1.0), np.append(beta[order], 0.0)


def _envelope(slope: Array, intercept: Array) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the largest of lines and of 0 on [0, 1]: the monotone chain by slope."""
    slope, intercept = np.append(slope, 0.0), np.append(intercept, 0.0)
    order = np.lexsort((intercept, slope))
    kept: list[tuple[float, float]] = []
    corners: list[float] = []
    for m, c in zip(slope[order], intercept[order], strict=True):
        while kept:
            last_m, last_c = kept[-1]
            if m == last_m:  # the higher of two parallel lines comes second
                kept.pop()
                corners = corners[: max(len(kept) - 1, 0)]
                continue
            at = (last_c - c) / (m - last_m)
            if corners and at <= corners[-1]:
                kept.pop()
                corners.pop()
                continue
            corners.append(at)
            break
        kept.append((m, c))
    lines = np.array(kept)
    alpha = np.unique(np.clip([0.0, *corners, 1.0], 0.0, 1.0))
    return alpha, np.max(lines[:, :1] * alpha + lines[:, 1:], axis=0)
