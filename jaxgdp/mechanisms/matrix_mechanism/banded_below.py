"""From below: random positions of a banded strategy by an attack on coarse outputs.

With u_j = Σ_m α_{j,m}·z_{j+m} for independent normal z, the likelihood ratio of a random position
is the mean of V_j = Π_m e^{α_{j,m}·z_{j+m} − α²_{j,m}/2}. An attacker who knows only in which of a
few cells each z lies sees the product of their conditional means instead, and a label S of their
sum. The masses of S without the record, and weighted by Σ V_j, follow from step to step, given the
cells of the last few z: that is data processing, whatever the labels are."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from ...numerics.errors import ALLOCATION, UNIT
from ...numerics.shapes import Array, Float
from ...pairs import table
from ...pairs.table import Table

# (bands, cells) that are tried, best first
CHOICES = ((4, 8), (4, 6), (3, 10), (3, 8), (2, 16), (2, 10), (2, 6))
_MOST_WORK = 3e8  # products of an attack, some seconds
_BODY = 30.0  # labels per standard deviation of the sum, at least
_SPAN = 9.0
_OCTAVE = 24
_ROOM = 1e-11


def coefficients(
    gram: Float[Array, "cycle cycle"], columns: Float[Array, "cycle bands"], most: int
) -> Float[Array, "cycle bands"]:
    """Coefficients α of at most ``most`` bands whose inner products are at most a Gram matrix.

    Args:
        gram: Γ, of numbers ≥ 0.
        columns: a first guess of the bands of each position.
    """
    number = len(gram)
    guess = np.zeros((number, most))
    width = min(most, columns.shape[1])
    guess[:, :width] = columns[:, :width]
    found = [_scaled(gram, guess)]
    moving = _moving_average([float(np.diagonal(gram, m).min()) for m in range(min(most, number))])
    if moving is not None and columns.shape[1] > most:
        found.append(
            _scaled(gram, np.tile(np.append(moving, np.zeros(most - len(moving))), (number, 1)))
        )
    return max(found, key=lambda alpha: float(banded_gram(alpha).sum()))


def _moving_average(covariances: list[float]) -> Float[Array, " bands"] | None:
    """Coefficients α ≥ 0 with Σ_m α_m·α_{m+d} = covariances[d]; None where there are none."""
    if len(covariances) < 2 or covariances[-1] <= 0.0:
        return None
    roots = np.roots(covariances[:0:-1] + covariances)
    inside = roots[np.argsort(np.abs(roots))][: len(covariances) - 1]
    alpha = np.real(np.poly(inside))
    alpha *= math.sqrt(covariances[0] / float(alpha @ alpha))
    own = np.correlate(alpha, alpha, "full")[len(alpha) - 1 :]
    close = np.allclose(own, covariances, rtol=1e-6, atol=0.0)
    return alpha if close and np.all(alpha > 0.0) else None


def _scaled(gram: Array, guess: Array) -> Array:
    """The guess, scaled so that its inner products are at most those of a Gram matrix."""
    number, most = guess.shape
    alpha = guess.copy()
    for m in range(1, most):
        alpha[max(number - m, 0) :, m] = 0.0  # (nothing goes around the end of a cycle)
    own = banded_gram(alpha)
    some = own > 0.0
    scale = float(np.min(gram[some] / own[some])) if np.any(some) else 0.0
    return alpha * math.sqrt(max(scale, 0.0) * (1.0 - _ROOM))


def banded_gram(alpha: Float[Array, "cycle bands"]) -> Float[Array, "cycle cycle"]:
    """Σ_m α_{j,m}·α_{j',m'} over j + m = j' + m'."""
    number, most = alpha.shape
    full = np.zeros((number, number + most))
    for m in range(most):
        full[np.arange(number), np.arange(number) + m] = alpha[:, m]
    return full @ full.T


def work(number: int, bands: int, cells: int) -> float:
    """About how many products :func:`attack_table` takes."""
    points = 2.0 * _SPAN * max(_BODY, 4.0 * math.sqrt(number)) + 150.0
    return cells**bands * points * number


def choice(number: int, bands: int) -> tuple[int, int] | None:
    """The best (bands, cells) that does not take too long; None where there is none."""
    for most, cells in CHOICES:
        if most <= max(bands, 2) and most <= number and work(number, most, cells) <= _MOST_WORK:
            return most, cells
    return None


def _cells(number: int) -> Float[Array, " edges"]:
    """Edges of cells that lose little of e^z: equal in the mass of a wider normal law."""
    return np.concatenate(
        [[-np.inf], math.sqrt(3.0) * ndtri(np.arange(1.0, number) / number), [np.inf]]
    )


def _means(edges: Float[Array, " edges"], alpha: float) -> Float[Array, " cells"]:
    """E(e^{αz − α²/2} | cell): the mass of each cell with the record over that without."""
    return _masses(edges - alpha) / _masses(edges)


def _masses(edges: Float[Array, " edges"]) -> Float[Array, " cells"]:
    """Normal masses between edges, from the side with less."""
    low, high = edges[:-1], edges[1:]
    right = low >= 0.0
    return np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _labels(number: int, terms: int, spread: float, largest: float) -> Float[Array, " labels"]:
    whole = spread * math.sqrt(number)
    step = whole / max(_BODY, 4.0 * math.sqrt(number))
    width = _SPAN * spread * math.sqrt(terms) + 2.0 * step
    body = np.arange(
        math.floor(max(terms - width, 0.0) / step), math.ceil((terms + width) / step) + 1
    )
    points, gap = list(body * step), step
    while points[-1] < largest * min(terms, 8):
        gap = max(gap, (points[-1] - terms) / _OCTAVE)
        points.append(points[-1] + gap)
    return np.array(points)


def attack_table(alpha: Float[Array, "cycle bands"], cells: int) -> Table:
    """The pair that the attack achieves.

    Method: docs/method/kahane.md#coarse
    """
    number, bands = alpha.shape
    edges = _cells(cells)
    mass = _masses(edges)
    gram = banded_gram(alpha)
    variance = float(np.expm1(np.minimum(gram, 30.0)).sum()) / number
    spread = math.sqrt(min(variance, 4.0 * number))
    # (P-mass and mass weighted by Σ V; cells of the last bands − 1 outputs; label)
    shape = (cells,) * (bands - 1)
    first = np.ones(())
    for _ in range(bands - 1):
        first = np.multiply.outer(first, mass)
    labels = np.zeros(1)
    law = np.stack([first, np.zeros(shape)])[..., None]
    most = 1
    for j in range(number):
        value = np.ones((cells,) * bands)
        for m in range(bands):
            axis = [1] * bands
            axis[m] = cells
            value = value * _means(edges, float(alpha[j, m])).reshape(axis)
        after = _labels(number, j + 1, spread, float(value.max()))
        law, joined = _step(law, value, mass, labels, after)
        labels, most = after, max(most, joined)
    p, q = law.reshape(2, -1, len(labels)).sum(axis=1)
    error = number * (4.0 * bands * ALLOCATION + (most + 8) * UNIT) + p.size * UNIT
    return table.from_masses(p, q / number, error, 2.0 * error)


def _step(law: Array, value: Array, mass: Array, labels: Array, after: Array) -> tuple[Array, int]:
    """One more position: cells (k_1, …, k_{q−1}), label → cells (k_2, …, k_q), label."""
    cells, size = len(mass), len(after)
    states = value.size // cells  # of the cells that are left
    flat = value.reshape(cells, states)
    place = np.clip(labels + flat[..., None], after[0], after[-1])  # (k_1, state, label)
    low = np.clip(np.searchsorted(after, place, "right") - 1, 0, size - 2)
    up = (place - after[low]) / (after[low + 1] - after[low])
    at = np.arange(states)[None, :, None] * size + low
    index = np.concatenate([at.ravel(), at.ravel() + 1])
    share = np.concatenate([(1.0 - up).ravel(), up.ravel()])
    before = law.reshape(2, cells, -1, len(labels))  # k_1, (k_2 … k_{q−1}), label
    drawn = before[:, :, :, None, :] * mass[:, None]
    p, m = drawn.reshape(2, cells, states, len(labels))
    m = m + p * flat[..., None]
    out = [np.bincount(index, np.tile(each.ravel(), 2) * share, states * size) for each in (p, m)]
    joined = int(np.bincount(index, minlength=states * size).max())
    return np.stack(out).reshape(2, *law.shape[1:-1], size), joined
