"""A pair whose privacy loss is a line in the output by intervals, of log-linear densities."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import PIECES
from ..numerics.normal import log_sub
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.atoms import _log_sums
from ..pairs.cells import Cells
from ..pairs.peak import bounded_mu, bounded_nodes
from ..pairs.stretches import position, stretch_cells
from .base import Mechanism
from .finite_pair import padded

# change of loss over an interval, relative to its size, below which it counts as one number
_FLAT = 1e-12
_CHAINS = 64  # most intervals that may share a loss


def log_sinhc(z: Array, xp: Any = xp):
    """log(sinh(z)/z) for any z; ``xp`` is jax.numpy or numpy."""
    z = xp.abs(z)
    near = z < 0.1
    small = xp.where(near, z, 0.0) ** 2
    series = small * (1 / 6 - small * (1 / 180 - small * (1 / 2835 - small / 37800)))
    big = xp.where(near, 1.0, z)
    return xp.where(near, series, big + xp.log(-xp.expm1(-2.0 * big) / (2.0 * big)))


class Infinity(NamedTuple):
    """Mass at an infinity: its log, rounded up, and a bound on what it is rounded up by."""

    log_mass: Array
    error: Array


@pytree
@dataclass(frozen=True)
class PiecewisePair(Mechanism):
    """Stretches of the loss with exponential densities in disjoint chains, and atoms.

    Attributes:
        low, high: ends of each stretch, increasing along the last axis, shape (…, chains,
            stretches); +∞ for padding.
        slope: change of the log of the P-density in loss from low to high.
        log_p, log_q: log masses of the stretches, −∞ for padding.
        atom, atom_p, atom_q: losses and log masses of the atoms, shape (…, atoms).
        log_p_minus: log P-mass at loss −∞.
        log_q_plus: log Q-mass at loss +∞.
        minus_error, plus_error: bounds on what these two masses are rounded up by.
    """

    low: Array
    high: Array
    slope: Array
    log_p: Array
    log_q: Array
    atom: Array
    atom_p: Array
    atom_q: Array
    log_p_minus: Array
    log_q_plus: Array
    minus_error: Array
    plus_error: Array

    trailing: ClassVar[dict[str, int]] = {
        **dict.fromkeys(("low", "high", "slope", "log_p", "log_q"), 2),
        **dict.fromkeys(("atom", "atom_p", "atom_q"), 1),
    }

    @classmethod
    def build(
        cls,
        first: np.ndarray,
        last: np.ndarray,
        slope: np.ndarray,
        log_p: np.ndarray,
        log_q: np.ndarray,
        live: np.ndarray,
        minus: Infinity,
        plus: Infinity,
    ) -> PiecewisePair:
        """Sort intervals (…, intervals) into chains of increasing loss, flat ones into atoms.

        Args:
            first, last: loss at the two ends of each interval.
            slope: change of the log P-density from the first to the last end.
            log_p, log_q: log masses.
            live: which intervals count.
            minus, plus: masses at the infinities.

        Raises:
            ValueError: some loss is taken on more than 64 intervals.
        """
        shape = live.shape[:-1]
        rows = [a.reshape(-1, a.shape[-1]) for a in (first, last, slope, log_p, log_q, live)]
        made = [_chains(*row) for row in zip(*rows, strict=True)]
        chains = max(len(c) for c, _ in made)
        if chains > _CHAINS:
            raise ValueError(
                f"log_q - log_p must take each value on at most {_CHAINS} intervals of outputs, got"
                f" {chains}"
            )
        length = padded(max((len(chain) for c, _ in made for chain in c), default=1))
        number = padded(max(len(atoms) for _, atoms in made))
        fill = np.array([np.inf, np.inf, 0.0, -np.inf, -np.inf])
        stretches = np.tile(fill, (len(made), max(chains, 1), length, 1))
        points = np.tile(np.array([0.0, -np.inf, -np.inf]), (len(made), number, 1))
        for row, (found, atoms) in enumerate(made):
            for i, chain in enumerate(found):
                stretches[row, i, : len(chain)] = chain
            points[row, : len(atoms)] = np.array(atoms).reshape(-1, 3)
        leaves = [stretches[..., i].reshape(*shape, *stretches.shape[1:3]) for i in range(5)]
        leaves += [points[..., i].reshape(*shape, number) for i in range(3)]
        return cls(*leaves, minus.log_mass, plus.log_mass, minus.error, plus.error)

    def loss_nodes(self, depth: Array | float):
        """Means of narrow cells."""
        return bounded_nodes(self)

    def tail_precision(self):
        """μ² of a pair on a fine lattice that dominates one use; ∞ with mass at an infinity."""
        return bounded_mu(self) ** 2

    def loss_bounds(self):
        """Smallest and largest finite loss."""
        stretch, atom = self.log_p > -xp.inf, self.atom_p > -xp.inf
        least = lambda a, real: xp.min(xp.where(real, a, xp.inf))
        low = xp.minimum(least(self.low, stretch), least(self.atom, atom))
        high = -xp.minimum(least(-self.high, stretch), least(-self.atom, atom))
        some = xp.isfinite(low)
        return xp.where(some, low, 0.0), xp.where(some, high, 0.0)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between the points ``ell`` (unbatched).

        In each chain a cell has the rest of the interval at its lower end, whole intervals (from
        cumulative sums), and the beginning of the interval at its upper end. Each part acts as an
        atom at log of its mass ratio."""
        n = ell.shape[0]
        bounds = xp.concatenate([xp.full((1,), -xp.inf), ell, xp.full((1,), xp.inf)])
        parts = xp.vmap(lambda *chain: _chain_parts(bounds, *chain))(
            self.low, self.high, self.slope, self.log_p, self.log_q
        )
        part_x, part_y, loss, unsure = (a.reshape(-1, n + 1) for a in parts)
        real = self.atom_p > -xp.inf
        atom = xp.where(real, self.atom, 0.0)
        cell = xp.where(real, xp.searchsorted(ell, atom), 0)
        gathered = [_log_sums(a, cell, n + 1)[0] for a in (self.atom_p, self.atom_q)]
        log_x, log_y = (
            xp.logsumexp(xp.concatenate([part, alone[None]]), axis=0)
            for part, alone in zip((part_x, part_y), gathered, strict=True)
        )
        some = log_x > -xp.inf
        base_x, base_y = xp.where(some, log_x, 0.0), xp.where(some, log_y, 0.0)
        weight_x, weight_y = xp.exp(part_x - base_x), xp.exp(part_y - base_y)
        moved = xp.sum(weight_x[:, 1:-1] * position(loss[:, 1:-1], ell[:-1], ell[1:]), axis=0)
        inner = (cell > 0) & (cell < n) & real
        lower, upper = (xp.where(inner, bounds[cell + i], atom + 2.0 * i - 1.0) for i in (0, 1))
        share = xp.where(
            inner, xp.exp(self.atom_p - base_x[cell]) * position(atom, lower, upper), 0.0
        )
        up = xp.at_add(xp.pad(moved, 1), cell, share)[1:-1]
        error = xp.maximum(xp.sum(weight_x * unsure, axis=0), xp.sum(weight_y * unsure, axis=0))
        cells = stretch_cells(
            log_x, base_y - base_x, ell, end, share=xp.clip(up, 0.0, 1.0), roundoff=PIECES + error,
            jitter=PIECES + error, minus=self.log_p_minus, plus=self.log_q_plus,
        )  # fmt: skip
        return cells._replace(minus_error=self.minus_error, plus_error=self.plus_error)


class _Piece(NamedTuple):
    """log P- and Q-mass of a part of a stretch (−∞ where it is empty), and their error in units."""

    log_x: Array
    log_y: Array
    unsure: Array


def _piece(log_p: Array, slope: Array, low: Array, width: Array, u: Array, v: Array) -> _Piece:
    """What lies between u ≤ v, which are counted from the lower end of a stretch.

    Where the density falls by a factor e^{−slope} over the stretch, a place in it to a unit is a
    mass to so many units: places are taken from its end and not as losses, which may be far larger
    than the stretch is wide. A whole stretch is as it is."""
    some = v > u
    share = xp.where(some, v - u, 1.0) / width
    middle = 0.5 * (u + v)
    half = 0.5 * slope * share
    own = log_sinhc(half)
    log_x = log_p + xp.log(share) + slope * (middle / width - 0.5) + own - log_sinhc(0.5 * slope)
    log_x = xp.where(share == 1.0, log_p, log_x)
    log_y = log_x + (low + middle) + log_sinhc(half + 0.5 * width * share) - own
    unsure = 8.0 * (xp.abs(slope) + xp.where(some, xp.abs(xp.log(share)), 0.0))
    return _Piece(xp.where(some, log_x, -xp.inf), xp.where(some, log_y, -xp.inf), unsure)


def _whole(log_mass: Array, first: Array, after: Array):
    """log of the sum of the masses first ≤ i < after, and its relative error in epsilons.

    From cumulative sums of the side that has less; a single mass as it is.
    """
    scan = lambda a: xp.cumulative_logaddexp(a)
    none = xp.full((1,), -xp.inf)
    left = xp.concatenate([none, scan(log_mass)])
    right = xp.concatenate([scan(log_mass[::-1])[::-1], none])
    after = xp.maximum(after, first)
    by_left = left[after] < right[first]
    most = xp.where(by_left, left[after], right[first])
    mass = xp.where(by_left, log_sub(left[after], left[first]), log_sub(right[first], right[after]))
    single = after == first + 1
    mass = xp.where(single, log_mass[xp.minimum(first, log_mass.shape[0] - 1)], mass)
    mass = xp.where(after > first, mass, -xp.inf)
    real = (mass > -xp.inf) & ~single
    steps = 8.0 + 4.0 * np.log2(log_mass.shape[0])
    return mass, xp.where(real, steps * xp.exp(most - xp.where(real, mass, most)), 0.0)


def _chain_parts(bounds: Array, low: Array, high: Array, slope: Array, log_p: Array, log_q: Array):
    """The three parts of each cell between ``bounds``: log masses, loss, error in epsilons."""
    end = xp.full((1,), xp.inf)
    log_p, log_q = xp.concatenate([log_p, -end]), xp.concatenate([log_q, -end])
    at = xp.searchsorted(high, bounds)
    real = log_p > -xp.inf
    low = xp.where(real, xp.concatenate([low, end]), 0.0)
    width = xp.where(real, xp.concatenate([high, end]) - low, 1.0)
    slope = xp.concatenate([slope, xp.zeros((1,))])
    # each bound's stretch, cut to it
    own = [a[at] for a in (log_p, slope, low, width)]
    inside = xp.clip(bounds - own[2], 0.0, own[3])
    here, there = [a[:-1] for a in own], [a[1:] for a in own]
    first, last = at[:-1], at[1:]
    same = first == last
    upper = xp.where(same, inside[1:], here[3])
    begin = _piece(*here, inside[:-1], upper)
    finish = _piece(*there, xp.where(same, inside[1:], 0.0), inside[1:])
    whole_x, error_x = _whole(log_p, first + 1, last)
    whole_y, error_y = _whole(log_q, first + 1, last)
    log_x = xp.stack([begin.log_x, whole_x, finish.log_x])
    log_y = xp.stack([begin.log_y, whole_y, finish.log_y])
    some = (log_x > -xp.inf) & (log_y > -xp.inf)
    loss = xp.where(some, log_y - xp.where(some, log_x, 0.0), 0.0)
    error = xp.stack([begin.unsure, xp.maximum(error_x, error_y), finish.unsure])
    return log_x, log_y, loss, error


def _chains(
    first: np.ndarray,
    last: np.ndarray,
    slope: np.ndarray,
    log_p: np.ndarray,
    log_q: np.ndarray,
    live: np.ndarray,
):
    """Chains of (low, high, slope, log P-mass, log Q-mass), increasing, and atoms, of one row."""
    first, last, slope, log_p, log_q = (a[live] for a in (first, last, slope, log_p, log_q))
    flat = np.abs(last - first) <= _FLAT * np.maximum(1.0, np.abs(first))
    atoms = np.stack([log_q - log_p, log_p, log_q], axis=-1)[flat]
    swap = last < first
    low, high = np.where(swap, last, first), np.where(swap, first, last)
    rows = np.stack([low, high, np.where(swap, -slope, slope), log_p, log_q], axis=-1)[~flat]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    chains: list[list] = []
    ends: list[tuple[float, int]] = []
    for row in rows:
        # the chain that ended first takes the next stretch, if it has ended
        if ends and ends[0][0] <= row[0]:
            _, i = heapq.heappop(ends)
        else:
            i = len(chains)
            chains.append([])
        chains[i].append(row)
        heapq.heappush(ends, (row[1], i))
    return chains, atoms
