"""Tests against a mixture with far shifts: some output is large, or the near ones are told."""

from __future__ import annotations

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.normal import log_error, log_ndtr, log_sub
from ....numerics.shapes import Array, Float
from ..counted_jumps import BINOMIAL, Test
from ..curve import Curve, points
from ..vertices import Vertices
from .law import Atoms
from .others import Others
from .split import FarShifts, log_hit, log_missed
from .tables import rates_at, rates_of

_ROUNDED = 64.0 * UNIT
_CUTS, _NEAR_TESTS = 61, 192  # outputs that are large, and tests of near shifts, that are tried
_BEYOND = 8.0  # deviations beyond the smallest far shift that cuts go
_OFFSETS = np.array([0.0, 1.0, 10.0, 40.0])  # nats that thresholds of a term are beyond others


def tests(
    far: FarShifts,
    draws: Atoms,
    near: Curve | None,
    others: Others,
    t: Float[Array, " thresholds"],
    at: Float[Array, " places"],
) -> tuple[list[Test], list[Test]]:
    """Tests of both orders, rates from the certified sides.

    Args:
        far, draws, near, others: as for ``both_sides``.
        t: thresholds.
        at: places at which draws are looked at.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    plus, minus = _cut(far, near)
    terms = _terms(far, draws, others, t, at)
    alone = [[] if side is None else [side] for side in (others.plus, others.minus)]
    return [*plus, terms[0], *alone[0]], [*minus, terms[1], *alone[1]]


def _cut(far: FarShifts, near: Curve | None) -> tuple[list[Test], list[Test]]:
    """Some output is larger than a cut, or a test of the near shifts rejects."""
    top, first = float(far.near[-1]), float(far.low.min())
    cut = np.linspace(top + 0.02 * (first - top), first + _BEYOND, _CUTS)
    absent = np.minimum(np.log(far.steps) + log_ndtr(-cut) * (1.0 - _ROUNDED) + BINOMIAL, 0.0)
    missed, hit = log_missed(far, cut)[:, None], log_hit(far, cut)[:, None]
    absent = absent[:, None]
    none = np.array([-np.inf])
    nothing = (none, none, np.zeros(1))  # (a test that never rejects, and one that always does)
    always = (np.zeros(1), np.zeros(1), none)
    plus, minus = (
        (nothing, always)
        if near is None
        else (_with(_some(near.lower_plus), nothing), _with(_some(near.lower_minus), always))
    )
    with np.errstate(all="ignore"):
        alpha, tpr, beta = plus
        log_alpha = np.logaddexp(alpha, absent)
        log_beta = np.logaddexp(far.log_none + beta, missed)
        log_tpr = np.logaddexp(far.log_none + tpr, hit)
        of_plus = _rates(log_alpha, log_tpr, log_beta)
        alpha, tpr, beta = minus
        log_alpha = np.logaddexp(far.log_none + alpha, missed)
        log_beta = np.logaddexp(beta, absent)
        log_tpr = np.where(tpr > absent, log_sub(np.maximum(tpr, absent), absent), -np.inf)
        of_minus = _rates(log_alpha, log_tpr, log_beta)
    return [of_plus], [of_minus]


def _rates(log_alpha: Array, log_tpr: Array, log_beta: Array) -> Test:
    shape = np.broadcast_shapes(*(np.shape(a) for a in (log_alpha, log_tpr, log_beta)))
    a, t, b = (np.broadcast_to(x, shape).reshape(-1) for x in (log_alpha, log_tpr, log_beta))
    t = np.where(np.isnan(t), -np.inf, t - BINOMIAL)
    return np.minimum(a + BINOMIAL, 0.0), np.minimum(t, 0.0), np.minimum(b + BINOMIAL, 0.0)


def _some(half: Vertices) -> Test:
    """At most so many tests of a half-curve."""
    found = points(half)
    used = np.flatnonzero(np.asarray(found.used))
    if len(used) > _NEAR_TESTS:
        used = used[np.unique(np.rint(np.linspace(0, len(used) - 1, _NEAR_TESTS)).astype(int))]
    alpha, tpr, beta = (
        np.asarray(a)[used] for a in (found.log_alpha, found.log_tpr, found.log_beta)
    )
    return alpha, tpr, beta


def _with(one: Test, other: Test) -> Test:
    alpha, tpr, beta = (np.concatenate(both) for both in zip(one, other, strict=True))
    return alpha, tpr, beta


def _terms(
    far: FarShifts, draws: Atoms, others: Others, t: Array, places: Array
) -> tuple[Test, Test]:
    """Some term of the likelihood ratio, with all near shifts taken for 0, times the ratio that
    others show, is beyond a threshold.

    The ratio is at least each of its terms, so the FPR is at most e^{−t}; and it is at most the
    sum over all terms.
    """
    at = np.unique(np.concatenate([t + more for more in _OFFSETS]))
    table = rates_of(draws, np.unique(np.concatenate([places, at])))
    log_tpr, misses, log_fpr = np.full((3, len(at)), -np.inf)
    for loss, log_mass, log_most in zip(*others[4:7], strict=True):
        moved = at - loss
        less = _ROUNDED * (np.abs(at) + abs(loss)) if loss != 0.0 else 0.0
        seen, missed, _ = rates_at(table, moved + less)
        log_tpr = np.logaddexp(log_tpr, seen + log_mass)
        misses = np.logaddexp(misses, missed + log_most)
        # (of others e^{−loss} of their mass, and no more than all)
        absent = min(float(log_most - loss + log_error(log_most, loss)), 0.0)
        false = rates_at(table, moved - less)[2] + absent
        log_fpr = np.logaddexp(log_fpr, false)
    misses = np.logaddexp(np.logaddexp(misses, far.log_none), draws.log_rest) + BINOMIAL
    log_fpr, misses = np.minimum(log_fpr + BINOMIAL, -at), np.minimum(misses, 0.0)
    log_tpr = np.minimum(log_tpr - BINOMIAL, 0.0)
    unknown = np.full_like(log_tpr, -np.inf)
    return (log_fpr, log_tpr, misses), (misses, unknown, log_fpr)
