"""A few uses of pairs on a few outputs: the outputs of all of them, counted and not convolved."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...numerics.errors import UNIT
from ...numerics.shapes import Array, Int
from .finite import FiniteCurve

_NEGLIGIBLE = -45.0  # log of a mass whose square does not count, whatever the number of uses


def number_of_outputs(pieces: Sequence[tuple[FiniteCurve, int]]) -> int:
    """How many outputs the composition has, those of the same counts taken together."""
    return math.prod(math.comb(uses + len(one.loss) - 1, uses) for one, uses in pieces)


def composed(pieces: Sequence[tuple[FiniteCurve, int]]) -> FiniteCurve:
    """The composition of so many uses of each pair.

    Outputs are told apart by how many times each output of each pair occurs: with counts k_i, a
    mass is n!/Π k_i!·Π p_i^{k_i} and a loss Σ k_i·ℓ_i.

    Args:
        pieces: pairs and their numbers of uses.

    Method: docs/method/known.md#few
    """
    parts = [_powered(one, uses) for one, uses in pieces]
    whole = parts[0]
    for other in parts[1:]:
        whole = _product(whole, other)
    return whole


def _product(one: FiniteCurve, other: FiniteCurve) -> FiniteCurve:
    """Both pairs together."""
    plus = lambda name: np.add.outer(getattr(one, name), getattr(other, name)).reshape(-1)
    loss, log_p, log_q, error = (plus(n) for n in ("loss", "log_p", "log_q", "loss_error"))
    exact = np.add.outer(_long(one), _long(other)).reshape(-1)
    size = np.add.outer(np.abs(one.loss), np.abs(other.loss)).reshape(-1)
    deepest = float(np.max(np.abs(log_p)) + np.max(np.abs(log_q)))
    return FiniteCurve.of_atoms(
        loss := exact.astype(float),
        log_p,
        log_q,
        mass_error=one.mass_error + other.mass_error + UNIT * deepest,
        loss_error=error + _rounding(size),
        loss_rest=(exact - loss).astype(float),
        log_p_minus=_either(float(one.log_p_minus), float(other.log_p_minus)),
        log_q_plus=_either(float(one.log_q_plus), float(other.log_q_plus)),
        log_unlisted=float(np.logaddexp(one.log_unlisted, other.log_unlisted)),
    )


def _powered(one: FiniteCurve, uses: int) -> FiniteCurve:
    """So many uses of a pair."""
    counts = _counts(len(one.loss), uses)
    ways = np.array([_log_ways(row) for row in counts.tolist()])
    exact = counts.astype(np.longdouble) @ _long(one)
    loss = exact.astype(float)
    log_p, log_q = counts @ one.log_p + ways, counts @ one.log_q + ways
    # (each log mass is known to a few units of itself, and so are its multiples and their sum)
    size = np.maximum(counts @ np.abs(one.log_p), counts @ np.abs(one.log_q)) + ways
    units = 4.0 + len(one.loss) + 4.0
    return FiniteCurve.of_atoms(
        loss,
        log_p,
        log_q,
        mass_error=uses * one.mass_error + units * UNIT * float(np.max(size)),
        loss_error=counts @ one.loss_error + len(one.loss) * _rounding(counts @ np.abs(one.loss)),
        loss_rest=(exact - loss).astype(float),
        log_p_minus=_any_of(float(one.log_p_minus), uses),
        log_q_plus=_any_of(float(one.log_q_plus), uses),
        log_unlisted=float(one.log_unlisted + np.log(uses)),
    )


def _counts(outputs: int, uses: int) -> Int[np.ndarray, "ways outputs"]:
    """All ways to share so many uses among outputs."""
    bars = itertools.combinations(range(uses + outputs - 1), outputs - 1)
    ends = np.array([(-1, *row, uses + outputs - 1) for row in bars])
    return np.diff(ends, axis=1) - 1


def _log_ways(counts: list[int]) -> float:
    """log of a multinomial coefficient, of a whole number."""
    ways, left = 1, sum(counts)
    for k in counts:
        ways *= math.comb(left, k)
        left -= k
    return math.log(ways)


def _long(one: FiniteCurve) -> Array:
    """Losses in the longest floating-point numbers that there are."""
    return one.loss.astype(np.longdouble) + one.loss_rest


def _rounding(size: Array) -> Array:
    """Of a sum of two such losses, and of its two doubles."""
    return 4.0 * float(np.finfo(np.longdouble).eps) * size


def _any_of(log_mass: float, uses: int) -> float:
    """log of the probability that an output of this mass occurs at least once."""
    if log_mass < _NEGLIGIBLE:
        return log_mass + math.log(uses)
    return math.log(-math.expm1(uses * math.log1p(-math.exp(log_mass))))


def _either(one: float, other: float) -> float:
    """log of a + b − ab."""
    return float(np.logaddexp(one, other + np.log1p(-np.exp(one))))
