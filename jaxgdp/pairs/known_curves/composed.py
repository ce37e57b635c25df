"""A few uses of pairs on a few outputs: the outputs of all of them, counted and not convolved."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...numerics.errors import PAIRWISE, UNIT
from ...numerics.shapes import Array, Int
from .finite import FiniteCurve

_NEGLIGIBLE = -45.0  # log of a mass whose square does not count, whatever the number of uses

_EVEN = math.log(0.5)


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
    found = FiniteCurve.of_atoms(
        loss := exact.astype(float),
        log_p,
        log_q,
        mass_error=one.mass_error + other.mass_error + UNIT * deepest,
        loss_error=error + _rounding(size),
        loss_rest=(exact - loss).astype(float),
        log_unlisted=float(np.logaddexp(one.log_unlisted, other.log_unlisted)),
    )
    return _with_ends(
        found,
        _either(float(one.log_p_minus), float(other.log_p_minus)),
        _either(float(one.log_q_plus), float(other.log_q_plus)),
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
    found = FiniteCurve.of_atoms(
        loss,
        log_p,
        log_q,
        mass_error=uses * one.mass_error + units * UNIT * float(np.max(size)),
        loss_error=counts @ one.loss_error + len(one.loss) * _rounding(counts @ np.abs(one.loss)),
        loss_rest=(exact - loss).astype(float),
        log_unlisted=float(one.log_unlisted + np.log(uses)),
    )
    return _with_ends(
        found, _any_of(float(one.log_p_minus), uses), _any_of(float(one.log_q_plus), uses)
    )


def _with_ends(found: FiniteCurve, minus: _Mass, plus: _Mass) -> FiniteCurve:
    """With the masses that only one law has rounded up, and by how much.

    A mass next to 1 is known better by what the other outputs leave of it.

    Method: docs/method/known.md#few
    """
    error = 2.0 * max(minus.error, plus.error)
    return replace(
        found,
        log_p_minus=_rounded_up(minus, found.log_p, found.mass_error),
        log_q_plus=_rounded_up(plus, found.log_q, found.mass_error),
        mass_error=found.mass_error + error,
        infinite_error=error,
    )


def _rounded_up(end: _Mass, log_mass: Array, mass_error: float) -> float:
    above = min(end.log + end.error, 0.0)
    return min(above, _left_by(log_mass, mass_error)) if above > _EVEN else above


def _left_by(log_mass: Array, mass_error: float) -> float:
    """log of what masses leave of 1, from above."""
    if not len(log_mass):
        return 0.0
    rounded = mass_error + 8.0 * UNIT * (float(np.max(np.abs(log_mass))) + PAIRWISE)
    total = float(np.logaddexp.reduce(log_mass)) - len(log_mass) * UNIT * 4.0 - rounded
    share = math.exp(min(total, 0.0)) * (1.0 - 4.0 * UNIT)
    return math.log1p(-share) * (1.0 - 4.0 * UNIT) if share < 1.0 else -math.inf


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


class _Mass(NamedTuple):
    """log of a mass, and a bound on its relative error."""

    log: float
    error: float


def _any_of(log_mass: float, uses: int) -> _Mass:
    """Probability that an output of this mass occurs at least once.

    It is relatively no more uncertain than the mass itself, as n·x·(1 − x)^{n−1} is at most
    1 − (1 − x)^n.
    """
    if log_mass == -math.inf:
        return _Mass(-math.inf, 0.0)
    if log_mass < _NEGLIGIBLE:
        found = log_mass + math.log(uses)
    elif log_mass < 0.0:
        # (what a mass leaves, from its log where it is next to 1)
        large = log_mass > -math.log(2.0)
        rest = math.log(-math.expm1(log_mass)) if large else math.log1p(-math.exp(log_mass))
        found = math.log(-math.expm1(uses * rest))
    else:
        found = 0.0
    return _Mass(found, UNIT * (4.0 * abs(log_mass) + 2.0 * abs(found) + 24.0))


def _either(one: float, other: float) -> _Mass:
    """Probability a + b − ab of at least one of two independent events."""
    if max(one, other) == -math.inf:
        return _Mass(-math.inf, 0.0)
    with np.errstate(divide="ignore"):
        found = float(np.logaddexp(one, other + np.log1p(-np.exp(min(one, 0.0)))))
    size = sum(abs(log) for log in (one, other) if log > -math.inf)
    return _Mass(min(found, 0.0), UNIT * (2.0 * size + 24.0))
