"""Exact laws of the index of the largest noisy score: what attacks on it are made of."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp

from ..numerics.errors import INDEX_LAW, UNIT
from ..numerics.shapes import Array
from ..pairs.table import NOTHING, Table, from_masses

_GAUSS = np.polynomial.legendre.leggauss(16)
_PANEL = 0.5  # of the noise's scale
_FAR = 38.0  # standard deviations of normal noise, beyond which nothing is
_TAIL = 60.0  # scales of other noise, beyond the log of the number of scores
_PLACES = 48  # offsets of a group of scores from the rest
_LEAST = 1e-290
# scales of noise that scores of an attack move by, at most: those of neighbours may move less
FARTHEST = 60.0
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


def log_density(noise: str, x: Array) -> Array:
    """log g(x) of noise of scale 1: "gaussian", "laplace", "exponential" or "gumbel"."""
    if noise == "gaussian":
        return -0.5 * x * x - _LOG_ROOT
    if noise == "laplace":
        return -np.abs(x) - np.log(2.0)
    if noise == "gumbel":
        return -x - np.exp(np.minimum(-x, 700.0))
    return np.where(x >= 0.0, -x, -np.inf)


def log_below(noise: str, x: Array) -> Array:
    """log G(x), the log of the probability that noise of scale 1 is at most x."""
    if noise == "gaussian":
        return log_ndtr(x)
    if noise == "gumbel":
        return -np.exp(np.minimum(-x, 700.0))
    tail = np.exp(-np.maximum(x, 0.0))
    with np.errstate(divide="ignore"):
        if noise == "laplace":
            return np.where(x < 0.0, x - np.log(2.0), np.log1p(-0.5 * tail))
        return np.where(x > 0.0, np.log(-np.expm1(-np.maximum(x, 0.0))), -np.inf)


def nodes(noise: str, kinks: Array, log_number: float) -> tuple[Array, Array]:
    """Nodes and log weights of integrals over a noisy score, along the last axis.

    Args:
        noise: its law, of scale 1.
        kinks: where an integrand may have a kink, along the last axis.
        log_number: log of the number of scores.
    """
    low, high = np.min(kinks, -1, keepdims=True), np.max(kinks, -1, keepdims=True)
    before = _FAR if noise == "gaussian" else 0.0 if noise == "exponential" else _TAIL
    after = _FAR if noise == "gaussian" else _TAIL + log_number
    first, last = low - before, high + after
    number = int(np.ceil(np.max(last - first) / _PANEL)) + 1
    even = first + (last - first) * np.linspace(0.0, 1.0, number)
    edges = np.sort(np.concatenate([even, kinks], axis=-1), axis=-1)
    half = 0.5 * np.diff(edges)[..., None]
    x = edges[..., :-1, None] + half * (1.0 + _GAUSS[0])
    with np.errstate(divide="ignore"):
        weight = np.log(half * _GAUSS[1])
    flat = (*x.shape[:-2], -1)
    return x.reshape(flat), weight.reshape(flat)


class Rates(NamedTuple):
    """Points of trade-off curves that events have, each on data sets of its own.

    Attributes:
        alpha, beta: probability of the event on one data set, and of its opposite on the other.
        power: 1 − beta.
    """

    alpha: Array
    beta: Array
    power: Array


def log_wins(noise: str, group: float, others: float, ahead: Array) -> Array:
    """log Pr[the largest of ``group`` noisy scores, ``ahead`` of all others, is the largest].

    Args:
        noise: its law, of scale 1.
        group, others: how many scores there are of each.
        ahead: by how much scores of the group are larger, any shape.
    """
    d = np.asarray(ahead, float)[..., None]
    kinks = np.concatenate([np.zeros_like(d), -d], axis=-1)
    x, weight = nodes(noise, kinks, float(np.log(group + others)))
    inside = weight + np.log(group) + log_density(noise, x)
    if group > 1.0:
        inside = inside + (group - 1.0) * log_below(noise, x)
    return np.asarray(logsumexp(inside + others * log_below(noise, x + d), axis=-1))


def rates(noise: str, group: float, others: float, ahead: Array, shift: float) -> Rates:
    """Of the event that one of a group has the largest score, which moves ahead by ``shift``.

    Rates are rounded to the safe side: an attack that is worse at every rate.

    Method: docs/method/noisy-maximum.md#gaussian
    """
    alpha = np.exp(log_wins(noise, group, others, ahead)) * (1.0 + INDEX_LAW)
    beta = np.exp(log_wins(noise, others, group, -(ahead + shift))) * (1.0 + INDEX_LAW)
    power = np.exp(log_wins(noise, group, others, ahead + shift)) * (1.0 - INDEX_LAW)
    return Rates(np.clip(alpha, _LEAST, 1.0), np.clip(beta, _LEAST, 1.0), power)


@functools.lru_cache(maxsize=256)
def every_rate(noise: str, candidates: int, shift: float) -> Rates:
    """Of events for groups of several sizes and at many distances, by increasing ``alpha`` each."""
    half, shift = candidates // 2, min(shift, FARTHEST)
    reach = 9.0 + np.sqrt(2.0 * np.log(candidates)) if noise == "gaussian" else 32.0
    reach += 0.0 if noise == "gaussian" else np.log(candidates)
    # (even where the shift is far larger than the noise)
    ahead = np.linspace(-reach, reach, _PLACES) - 0.5 * shift
    groups = sorted({1, max(half // 8, 1), half})
    found = [rates(noise, float(m), float(candidates - m), ahead, shift) for m in groups]
    return Rates(*(np.stack(column) for column in zip(*found, strict=True)))


def hull_of(points: Rates) -> Table:
    """The pair of the convex hull of points and their mirror images, what one use shows at least.

    Every point is reached on data sets of its own, and so is the hull, by tossing a coin.

    Method: docs/method/noisy-maximum.md#gaussian
    """
    alpha, beta, power = (np.ravel(a) for a in points)
    mirrored = alpha > beta
    alpha, beta = np.where(mirrored, beta, alpha), np.where(mirrored, alpha, beta)
    power = np.where(mirrored, np.minimum(1.0 - beta, 1.0), power)
    order = np.lexsort((beta, alpha))
    vertices: list[tuple[float, float, float]] = [(0.0, 1.0, 0.0)]
    for point in zip(
        alpha[order].tolist(), beta[order].tolist(), power[order].tolist(), strict=True
    ):
        if point[0] <= vertices[-1][0] or _slope(vertices[-1], point) <= 1.0 + 1e-9:
            continue
        while len(vertices) > 1 and _slope(vertices[-2], vertices[-1]) <= _slope(
            vertices[-1], point
        ):
            vertices.pop()
        vertices.append(point)
    if len(vertices) == 1:
        return NOTHING
    p = np.diff([v[0] for v in vertices])
    q = np.array([_gain(*pair) for pair in zip(vertices, vertices[1:], strict=False)])
    same = max(vertices[-1][1] - vertices[-1][0], 0.0)
    p, q = np.concatenate([p, [same], q]), np.concatenate([q, [same], p])
    return from_masses(p, q, 64.0 * UNIT * len(p))


def _gain(first: tuple, second: tuple) -> float:
    """How much power there is between two points, to its own digits."""
    return second[2] - first[2] if second[2] < 0.5 else first[1] - second[1]


def _slope(first: tuple, second: tuple) -> float:
    return _gain(first, second) / (second[0] - first[0])


def bit(alpha: float, beta: float) -> Table:
    """The pair of one event and its opposite."""
    if alpha + beta >= 1.0:
        return NOTHING
    return from_masses(np.array([1.0 - alpha, alpha]), np.array([beta, 1.0 - beta]), 8.0 * UNIT)
