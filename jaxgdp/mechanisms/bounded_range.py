"""Adaptive mechanisms of bounded range: their largest profile, by dynamic programming."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from ..numerics import namespace as xp
from ..numerics.errors import BINOMIAL, PROFILE, TABLE, UNIT
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.atoms import atom_cells
from ..pairs.cells import Cells
from .base import Mechanism
from .bracketed_pair import OpenPair
from .finite_pair import FinitePair, padded, usual_place
from .from_profile import FromProfile

MOST_USES = 64  # of one block
LEAST_EPSILON = 1e-5  # below, the lattice of the program is too fine for its arithmetic
_POINTS = 32  # lattice points per ε
_PRECISE = 0.02  # ε below which extended precision is used


@pytree
@dataclass(frozen=True)
class RangeMember(Mechanism):
    """k uses of randomized response at ε/2, a member of the family; only its cells are requested.

    Attributes:
        loss, log_p: atoms, shape (…, atoms).
    """

    loss: Array
    log_p: Array

    trailing: ClassVar[dict[str, int]] = {"loss": 1, "log_p": 1}

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the atoms by cell (unbatched)."""
        log_q = self.log_p + self.loss
        return atom_cells(self.loss, self.log_p, log_q, ell, end, roundoff=BINOMIAL)


@pytree
@dataclass(frozen=True)
class BoundedRangeBlock(Mechanism):
    """A pair that dominates k adaptive mechanisms of ε-bounded range, and a member; not checked.

    Attributes:
        pair: loss, log_p of the dominating pair (symmetric, without mass at infinity), shape (…,
            atoms).
        member_loss, member_p: the same for k uses of randomized response at ε/2.
        epsilon, uses: ε and k.
    """

    loss: Array
    log_p: Array
    member_loss: Array
    member_p: Array
    epsilon: Array
    uses: Array

    tight: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True
    trailing: ClassVar[dict[str, int]] = dict.fromkeys(
        ("loss", "log_p", "member_loss", "member_p"), 1
    )

    @classmethod
    def build(cls, epsilon: np.ndarray, uses: np.ndarray, most: int) -> BoundedRangeBlock:
        """For arrays of ε and of k ≤ 64 of one shape; k = 0 is a mechanism that reveals nothing.
        Padded as for ``most`` uses.
        """
        pairs = [
            _pair(float(e), int(k))
            for e, k in zip(epsilon.reshape(-1), uses.reshape(-1), strict=True)
        ]
        length, number = padded(2 * _POINTS * most + 2), padded(most + 1)
        rows = []
        for (loss, log_p), e, k in zip(pairs, epsilon.reshape(-1), uses.reshape(-1), strict=True):
            i = np.arange(int(k) + 1.0)
            choose = gammaln(k + 1.0) - gammaln(i + 1.0) - gammaln(k - i + 1.0)
            member_p = choose - 0.5 * i * e - k * np.log1p(np.exp(-0.5 * e))
            rows.append(_pad(loss, log_p, length) + _pad((2.0 * i - k) * 0.5 * e, member_p, number))
        columns = [
            np.stack(column).reshape(*epsilon.shape, -1) for column in zip(*rows, strict=True)
        ]
        return cls(*columns, epsilon, uses.astype(float))

    def _dominating(self) -> FinitePair:
        none = xp.asarray(-xp.inf)
        place, rest = usual_place(self.loss), xp.zeros_like(self.loss)
        return FinitePair(self.loss, self.log_p, self.log_p + self.loss, none, none, place, rest)

    def lower_bound_member(self) -> RangeMember:
        """The member of the family on which the attack of the lower side is run."""
        return RangeMember(self.member_loss, self.member_p)

    def bracketed(self) -> OpenPair:
        """Both pairs as tables (unbatched), for whoever needs no cells."""
        member_q, none = self.member_p + self.member_loss, np.float64(-np.inf)
        # (a binomial coefficient, and terms that are rounded in units of their logs)
        deepest = np.max(
            np.where(self.member_p > -np.inf, np.abs(self.member_p) + np.abs(member_q), 0.0)
        )
        off = (BINOMIAL + 8.0 * (deepest + BINOMIAL)) * UNIT
        return OpenPair(
            self.loss, self.log_p, none, none, TABLE * UNIT, self.member_loss, self.member_p,
            member_q, off, off, self.tail_precision(), self.loss, self.log_p,
        )  # fmt: skip

    def reveals_nothing(self):
        """Whether no table holds a loss but 0."""
        return xp.all(self.loss == 0.0) & xp.all(self.member_loss == 0.0)

    def loss_nodes(self, depth: Array | float):
        """The atoms, gathered."""
        return self._dominating().loss_nodes(depth)

    def tail_precision(self):
        """The smaller of that of k separate uses and that of the pair."""
        single = square_above(pure_dp_mu(0.5 * self.epsilon))
        return xp.minimum(self.uses * single, self._dominating().tail_precision())

    def loss_bounds(self):
        """Smallest and largest loss with mass."""
        return self._dominating().loss_bounds()

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the atoms by cell (unbatched)."""
        return self._dominating().cells(ell, end)


def _pad(loss: Array, log_p: Array, number: int):
    extra = number - len(loss)
    return np.pad(loss, (0, extra), mode="edge"), np.pad(log_p, (0, extra), constant_values=-np.inf)


def _pair(epsilon: float, uses: int):
    """Losses and log P-masses of the dominating pair of ``uses`` uses."""
    if uses == 0 or epsilon == 0.0:
        return np.zeros(1), np.zeros(1)
    most = 1 << (uses - 1).bit_length()
    found = FromProfile(*_profiles(epsilon, most)[uses - 1]).canonical()
    return found.loss, found.log_p


@functools.lru_cache(maxsize=64)
def _profiles(epsilon: float, uses: int):
    """(ε_i, δ_i), ε_i ≥ 0, that bound the profiles of 1, …, ``uses`` adaptive uses from above.

    h_k(γ) = max over t of p_t·h_{k−1}(γe^{−t}) + (1 − q_t)·e^{t−ε}·h_{k−1}(γe^{ε−t}), with p_t =
    e^t·q_t, from h_0(γ) = (1 − γ)₊: the mechanisms are chosen adaptively by an adversary, and for
    each γ takes the worst t (Dong, Durfee & Rogers 2020). Each h is convex, so chords between
    lattice points bound it; within a lattice cell the chords' maximum over t is at u = e^t =
    √(B/A), for a function C − A·u − B/u."""
    real = np.longdouble if epsilon < _PRECISE else np.float64
    eps, m = real(epsilon), _POINTS
    d, n = eps / m, uses * m
    g = np.exp(d * np.arange(-n - m, n + m + 1, dtype=real))
    zero, c = n + m, -np.expm1(-eps)
    h = np.maximum(1 - g, 0)
    profiles = []
    for k in range(1, uses + 1):
        at = zero + np.arange(k * m)
        best = np.zeros(len(at), real)
        for a in range(m):
            (low1, fall1, h1), (low2, fall2, h2) = (
                _chords(g, h, at + shift) for shift in (-a, m - a)
            )
            curb = np.maximum(h1 + fall1 * low1 - h2 - fall2 * low2, 0) * np.exp(-eps)
            lift = np.maximum(fall1 - fall2, 0) * g[at]
            inner = (
                np.log(
                    np.where((curb > 0) & (lift > 0), lift, 1)
                    / np.where((curb > 0) & (lift > 0), curb, 1)
                )
                / 2
            )
            t = np.clip(inner, a * d, (a + 1) * d)
            first = -np.expm1(t - eps) * (h1 - fall1 * (g[at] * np.exp(-t) - low1))
            second = np.exp(-eps) * np.expm1(t) * (h2 - fall2 * (g[at] * np.exp(eps - t) - low2))
            best = np.maximum(best, (first + second) / c)
        h = np.maximum(1 - g, 0)
        h[at] = best
        h[zero - np.arange(1, k * m)] = 1 - (1 - best[1:]) / g[at[1:]]
        deltas = np.append(np.minimum(best.astype(float) * (1.0 + PROFILE), 1.0), 0.0)
        # the far end, where nothing is left, cannot be nudged up; an underflow there is as good as
        # zero
        profiles.append(((d * np.arange(k * m + 1)).astype(float), deltas))
    return tuple(profiles)


def _chords(g: np.ndarray, h: np.ndarray, upper: np.ndarray):
    """Left end of lattice cells below points ``upper``, how h falls over them, h there."""
    low = g[upper - 1]
    return low, (h[upper - 1] - h[upper]) / (g[upper] - low), h[upper - 1]
