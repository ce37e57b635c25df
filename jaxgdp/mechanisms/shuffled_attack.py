"""An attack on shuffled batches: laws of the observed sums where the record is in one of T batches
at a secret position (Chua et al. 2024, §4.3).

Let every other record point away from the attacked one. Among the T noisy sums, moved so that a
batch without it has mean 0, one has mean b where the record is there and mean a where it is not: P
= avg_t N(a·e_t, σ²I) against Q = avg_t N(b·e_t, σ²I). Under the zero-out relation (a, b) = (1, 2),
under replacing a record (0, 2). The attacker may use any function of the T sums; here it is the
slice of a partition of the line in which the largest of them lies, whose masses are known in closed
form. So every number computed from the two laws of the slice is achieved by an attack."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from ..numerics import namespace as xp
from ..numerics.errors import SLICES, UNIT
from ..numerics.normal import log1mexp, log_sub
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.atoms import atom_cells
from ..pairs.cells import Cells
from .base import Mechanism
from .finite_pair import FinitePair, usual_place

_SLICES = 4096
_DEEPEST = 690.0  # −log of the smallest mass of a tail that has slices of its own
_BODY = 28.0  # −log of the tails beyond which slices are wider
_HALVINGS = 60


@pytree
@dataclass(frozen=True)
class Slices(Mechanism):
    """Laws of a slice number with and without the record; nothing is checked.

    Attributes:
        loss, log_p: log Q/P and log P of each slice, shape (…, slices).
        error: bound on the relative error of any mass.
    """

    loss: Array
    log_p: Array
    error: Array

    trailing: ClassVar[dict[str, int]] = {"loss": 1, "log_p": 1}

    def _pair(self) -> FinitePair:
        none = xp.asarray(-xp.inf)
        place, rest = usual_place(self.loss), xp.zeros_like(self.loss)
        return FinitePair(self.loss, self.log_p, self.log_p + self.loss, none, none, place, rest)

    def loss_nodes(self, depth: Array | float):
        """The slices, gathered."""
        return self._pair().loss_nodes(depth)

    def tail_precision(self):
        """μ² of one use, from all its error rates."""
        return self._pair().tail_precision() * (1.0 + 2.0 * self.error)

    def loss_bounds(self):
        """Smallest and largest loss."""
        return self._pair().loss_bounds()

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the slices by cell (unbatched)."""
        log_q = self.log_p + self.loss
        return atom_cells(self.loss, self.log_p, log_q, ell, end, roundoff=self.error / UNIT)


def log_below(
    threshold: Array, noise_multiplier: Array | float, num_batches: Array | float, mean: float
):
    """log Pr[all T noisy sums are below C]: log Φ((C − m)/σ) + (T − 1)·log Φ(C/σ).

    Args:
        threshold: C, any shape.
        noise_multiplier: σ.
        num_batches: T.
        mean: m, of the one sum that is not centred.
    """
    rest = (num_batches - 1.0) * log_ndtr(threshold / noise_multiplier)
    return log_ndtr((threshold - mean) / noise_multiplier) + rest


@functools.lru_cache(maxsize=512)
def slices(noise_multiplier: float, num_batches: float, means: tuple[float, float]):
    """log Q/P, log P and a bound on the relative error of the masses, for one setting: arrays of
    ``_SLICES`` numbers, and a number.

    Method: docs/method/attack.md#family
    """
    with np.errstate(divide="ignore"):
        return _slices(noise_multiplier, num_batches, means)


def _slices(noise_multiplier: float, num_batches: float, means: tuple[float, float]):
    below = [
        functools.partial(
            log_below, noise_multiplier=noise_multiplier, num_batches=num_batches, mean=m
        )
        for m in means
    ]
    low, high = (
        _where(below[1], -_DEEPEST, means, noise_multiplier),
        _where(below[0], _DEEPEST, means, noise_multiplier),
    )
    body = (
        _where(below[1], -_BODY, means, noise_multiplier),
        _where(below[1], _BODY, means, noise_multiplier),
    )
    ends = (
        np.linspace(low, body[0], _SLICES // 4 + 1)[:-1],
        np.linspace(body[1], high, _SLICES // 4)[1:],
    )
    edges = np.unique(np.concatenate([ends[0], np.linspace(*body, _SLICES // 2), ends[1]]))
    # (what a rounding has made equal)
    (log_p, errors_p), (log_q, errors_q) = (_masses(one(edges)) for one in below)
    missing = _SLICES - len(log_p)
    log_p, log_q = (np.pad(a, (0, missing), constant_values=-np.inf) for a in (log_p, log_q))
    some = (log_p > -np.inf) & (log_q > -np.inf)
    loss = np.where(some, log_q - np.where(some, log_p, 0.0), 0.0)
    return loss, np.where(some, log_p, -np.inf), max(errors_p, errors_q)


def _where(log_cdf: Callable, depth: float, means: tuple[float, float], sigma: float) -> float:
    """The threshold with a lower tail of e^{depth}, or for depth > 0 an upper of e^{−depth}."""
    low, high = -100.0 * sigma, max(means) + 100.0 * sigma
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        at = log_cdf(middle)
        beyond = at > depth if depth < 0.0 else log1mexp(at) < -depth
        low, high = (low, middle) if beyond else (middle, high)
    return high


def _masses(log_cdf: np.ndarray):
    """log masses of the slices between edges, ends included, and the largest relative error of one.

    Differences of lower tails below the median and of upper tails above it. A log of a tail is
    known to ``SLICES`` relative, so a slice over which it changes by d is to that times the size of
    both, over 1 − e^{−d}."""
    log_tail = log1mexp(log_cdf)
    left = log_cdf < np.log(0.5)
    lower, upper = (
        np.concatenate([[-np.inf], log_cdf, [0.0]]),
        np.concatenate([[0.0], log_tail, [-np.inf]]),
    )
    by_lower = np.append(left, False)
    log_mass = np.where(by_lower, log_sub(lower[1:], lower[:-1]), log_sub(upper[:-1], upper[1:]))
    larger, smaller = (
        np.where(by_lower, *both) for both in ((lower[1:], upper[:-1]), (lower[:-1], upper[1:]))
    )
    # each tail is off by its own share: of the smaller one little is left where it is far smaller
    own = (1.0 + np.abs(larger)) * np.exp(np.minimum(larger - log_mass, 30.0))
    some = smaller > -np.inf
    depth = np.where(some, smaller, 0.0)
    other = np.where(
        some, (1.0 + np.abs(depth)) * np.exp(np.minimum(smaller - log_mass, 30.0)), 0.0
    )
    known = np.where(log_mass > -np.inf, SLICES * (own + other), 0.0)
    return log_mass, float(np.max(known))


def attack(noise_multiplier: Array, num_batches: Array, means: tuple[float, float]) -> Slices:
    """The slices of settings of one shape.

    Args:
        noise_multiplier: σ.
        num_batches: T.
        means: (a, b) of the sum that the record is in, without and with it.
    """
    found = [
        slices(float(s), float(t), means)
        for s, t in zip(np.ravel(noise_multiplier), np.ravel(num_batches), strict=True)
    ]
    loss, log_p, error = (np.stack(column) for column in zip(*found, strict=True))
    shape = np.shape(noise_multiplier)
    return Slices(loss.reshape(*shape, -1), log_p.reshape(*shape, -1), error.reshape(shape))
