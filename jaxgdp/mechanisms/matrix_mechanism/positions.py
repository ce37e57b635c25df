"""Random positions: tables from above and from below for a Gram matrix of numbers ≥ 0.

The likelihood ratio of a position that is drawn evenly is L = Σ_j e^{u_j − Γ_jj/2}/b with u of
covariance Γ under the law without the record. E φ(L) of every convex φ grows with every entry of Γ
(Kahane's inequality), so simpler matrices on either side certify brackets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...numerics.shapes import Array, Float
from ...pairs import table
from ...pairs.hull import hull
from ...pairs.table import Table
from ..random_allocation import one_of_many
from . import banded_below, chains, markov_above
from .markov_above import CALL, PUT

SMALLEST, LARGEST = 2e-8, 24.0  # entries of Γ for which there are tables
_NORMAL = 4e-14  # of a normal call: two probabilities, each known to their own rounding
_KEPT, _COARSEST = 160.0, 1.0 / 96.0  # losses of a table per standard deviation, most between them
_CHUNK = 2**21


class Tables(NamedTuple):
    """A pair that dominates and one that an attack achieves; whether both are of one law."""

    above: Table
    below: Table
    tight: bool


def tables(gram: Float[Array, "cycle cycle"], columns: Float[Array, "cycle bands"]) -> Tables:
    """Tables for a Gram matrix, over σ².

    Args:
        gram: Γ.
        columns: what each position adds to its own and to the next outputs, over σ.

    Method: docs/method/kahane.md#positions
    """
    number, variance = len(gram), np.diag(gram)
    off = gram - np.diag(variance)
    if not np.any(off) and variance.min() == variance.max():
        sigma = float(variance[0]) ** -0.5
        return Tables(*_alone(sigma, number), True)
    return Tables(_above(gram), _below(gram, columns), False)


def _alone(sigma: float, number: int) -> tuple[Table, Table]:
    return one_of_many.dominating_table(sigma, number), one_of_many.attack_table(sigma, number)


def _above(gram: Float[Array, "cycle cycle"]) -> Table:
    """The least of what the chain, and what a common part, bounds."""
    common = _Common.of(gram)
    losses = common.losses()
    c = np.exp(losses)
    call, put = common.bounds(c)
    for chain in chains.candidates(gram):
        fine = markov_above.spacing(chain)
        if fine is not None:
            call = np.minimum(call, markov_above.law(chain, fine, CALL).call(c))
            put = np.minimum(put, markov_above.law(chain, fine, PUT).put(c))
            break
    return hull(*(np.asarray(a) for a in (losses, call, put)))


class _Common(NamedTuple):
    """Γ⁺ = a·11ᵀ + (v − a)·1, v the largest variance: one Gaussian for all, times 1 of b steps.

    Attributes:
        shared: a, the largest covariance of two positions.
        variance: v.
        alone: the pair of one of b steps of variance v − a.
    """

    shared: float
    variance: float
    alone: Table

    @classmethod
    def of(cls, gram: Float[Array, "cycle cycle"]) -> _Common:
        number, room = len(gram), 1.0 + 1e-11
        variance = float(np.diag(gram).max()) * room
        off = gram[~np.eye(number, dtype=bool)]
        shared = min(float(off.max(initial=0.0)) * room, variance)
        # (beyond what tables are made for, nothing of its own is left, or little more is shared)
        rest = variance - shared
        if rest < SMALLEST:
            rest = SMALLEST
        return cls(shared, shared + rest, one_of_many.dominating_table(rest**-0.5, number))

    def losses(self) -> Float[Array, " losses"]:
        """Losses at which bounds are made, with 0 among them."""
        one = self.alone
        mean = np.sum(one.p * np.exp(np.minimum(2.0 * one.loss, 600.0))) * math.exp(self.shared)
        deviation = math.sqrt(min(math.log(max(mean, 1.0 + 1e-12)), self.variance))
        reach = 15.0 * math.sqrt(self.shared) + 0.5 * self.shared
        ends = np.array([one.loss[0] - reach, one.loss[-1] + reach])
        middle = np.array([0.5, 0.5])
        finest = deviation / _KEPT
        found = table.grid(ends, middle, finest, max(finest, _COARSEST), 1.0 / _KEPT)
        centred = found - 0.5 * (ends[0] + ends[1])
        wide = np.concatenate([centred, centred[-1:] * 1.5, centred[:1] * 1.5])
        wide = wide[(wide >= ends[0]) & (wide <= ends[1])]
        return np.union1d(np.append(wide, ends), 0.0)

    def bounds(self, c: Float[Array, " levels"]) -> tuple[Array, Array]:
        """Bounds on E(L − c)₊ and E(c − L)₊."""
        one = self.alone
        u, p = np.exp(one.loss), one.p * (1.0 + one.error)
        call, put = np.empty(len(c)), np.empty(len(c))
        rows = max(1, _CHUNK // len(u))
        for first in range(0, len(c), rows):
            some = slice(first, first + rows)
            each = _normal_calls(u, c[some, None], self.shared)
            call[some], put[some] = (side @ p for side in each)
        return call + one.q_plus, put + c * one.p_minus


def _normal_calls(u: Array, c: Array, variance: float) -> tuple[Array, Array]:
    """E(u·e^{g − v/2} − c)₊ and E(c − u·e^{g − v/2})₊ of g ~ N(0, v), rounded up."""
    if variance == 0.0:
        return np.maximum(u - c, 0.0), np.maximum(c - u, 0.0)
    deviation = math.sqrt(variance)
    z = np.log(u / c) / deviation
    first, second = z + 0.5 * deviation, z - 0.5 * deviation
    room = _NORMAL * (1.0 + first * first + second * second)
    call = u * ndtr(first) * (1.0 + room) - c * ndtr(second)
    put = c * ndtr(-second) * (1.0 + room) - u * ndtr(-first)
    return np.maximum(call, 0.0), np.maximum(put, 0.0)


def _below(gram: Float[Array, "cycle cycle"], columns: Float[Array, "cycle bands"]) -> Table:
    """The better attack: on a few bands, or on the positions as if nothing was shared."""
    number, bands = columns.shape
    own = float(np.diag(gram).min())
    found = [one_of_many.attack_table(own**-0.5, number)] if own >= SMALLEST else []
    chosen = banded_below.choice(number, bands)
    if chosen is not None:
        most, cells = chosen
        alpha = banded_below.coefficients(gram, columns, most)
        found.append(banded_below.attack_table(alpha, cells))
    return max(found, key=_worth)


def _worth(pair: Table) -> float:
    """A number to choose attacks by: the mean of (L − 1)₊ and of its tail."""
    return float(np.maximum(pair.q - pair.p, 0.0).sum())


__all__ = ["Tables", "tables"]
