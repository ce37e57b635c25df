"""Vertices of a curve that is known in closed form, for readings that have no closed form of their
own: the polygon of its tangents from above, its own points from below.
"""

from __future__ import annotations

import numpy as np

from ....numerics.normal import log_error, log_sub
from ....numerics.shapes import Array, Float
from ....pairs.known_curves import FiniteCurve, KnownCurve, Tests
from ....pairs.known_curves.base import ADD, REMOVE
from ..curve import Curve, GaussianParts, safe_log1m
from ..finite_laws import finite_curve, padded
from ..vertices import Vertices

LEAST, MOST = 1024, 2**16  # vertices of a half-curve
_MOST_NUMBERS = 2**17  # that vertices take, some seconds
_ROOT = 128.0  # vertices for each 1/√rtol: what a curve bends between two of them is a small part


def number_of_vertices(rtol: float) -> int:
    """How many vertices leave a bracket as narrow as that; a power of two."""
    wanted = _ROOT / np.sqrt(rtol)
    return int(np.clip(2 ** np.ceil(np.log2(wanted)), LEAST, MOST))


def known_vertices(known: KnownCurve, parts: GaussianParts, rtol: float) -> Curve:
    """A curve in vertices (a single setting), in the pair's own order.

    Args:
        known: its closed form.
        parts: the Gaussian curves that it lies between.
        rtol: relative width that what is read off shall have.

    Method: docs/method/known.md#vertices
    """
    if isinstance(known, FiniteCurve):
        return finite_curve(known, parts)
    number = max(min(number_of_vertices(rtol), _MOST_NUMBERS // known.size), LEAST)
    with np.errstate(all="ignore"):
        halves = [_half(known, order, number) for order in (REMOVE, ADD)]
    (plus, below_plus), (minus, below_minus) = halves
    return Curve(*padded([plus, minus, below_plus, below_minus]), *parts)


def _half(known: KnownCurve, order: int, number: int) -> tuple[Vertices, Vertices]:
    """One half from above and from below."""
    tests = known.tests(order, number)
    top = float(known.largest_loss(order))
    at = np.maximum.accumulate(np.maximum(tests.threshold, 0.0))
    at = np.minimum(at, top)
    if np.isfinite(top):
        at[-1] = top
    above = _tangents(known, order, at, tests, top)
    ends = np.append(at, at[-1])
    used = (tests.log_tpr.lower > tests.log_alpha.upper) & (tests.log_alpha.upper < 0.0)
    rows = (tests.log_alpha.upper, tests.log_tpr.lower, tests.log_beta.upper, used, used)
    none = np.full(1, -np.inf)
    below = Vertices(np.zeros(1), np.ones(1), *(a[None] for a in rows), none, none, ends[None])
    return above, below


def _tangents(
    known: KnownCurve, order: int, at: Float[Array, " tests"], tests: Tests, top: float
) -> Vertices:
    """Vertices above the curve: between two thresholds s < t any FPR with the larger of the two
    lines δ(s) + e^s·α and δ(t) + e^t·α is one, as δ is convex in e^ε; past the last threshold its δ
    at FPR 0. The FPR at which both lines meet is the best one.
    """
    log_delta = known.log_delta(order, at).upper
    log_rest = known.log_one_minus_delta(order, at).lower
    s, t = at[:-1], at[1:]
    log_alpha = log_sub(log_delta[:-1], log_delta[1:]) - t - safe_log1m(np.minimum(s - t, 0.0))
    least, most = tests.log_alpha.lower[1:], tests.log_alpha.upper[:-1]
    log_alpha = np.where(np.isnan(log_alpha), least, np.clip(log_alpha, least, most))
    # (where rounding takes the meeting point above TPR 1 the line of t meets it at a smaller FPR)
    log_alpha = np.minimum.accumulate(np.minimum(log_alpha, log_rest[1:] - t))
    lines = [
        np.logaddexp(log_delta[:-1], s + log_alpha),
        np.logaddexp(log_delta[1:], t + log_alpha),
    ]
    log_tpr = np.maximum(*lines)
    log_tpr = np.minimum(log_tpr + log_error(log_tpr, t, log_alpha), 0.0)
    rests = [
        log_sub(rest, end + log_alpha + log_error(end, log_alpha))
        for rest, end in ((log_rest[:-1], s), (log_rest[1:], t))
    ]
    log_beta = np.maximum(np.minimum(*rests), safe_log1m(log_tpr))
    log_beta = np.minimum(log_beta - log_error(log_beta), 0.0)
    if not np.isfinite(top):
        log_alpha = np.append(log_alpha, -np.inf)
        log_tpr, log_beta = np.append(log_tpr, log_delta[-1]), np.append(log_beta, log_rest[-1])
        at = np.append(at, np.nextafter(at[-1], np.inf))
    used = np.ones(len(log_alpha), bool)
    rows = (a[None] for a in (log_alpha, log_tpr, log_beta, used, used))
    ends = np.full(1, top), np.full(1, -np.inf)
    return Vertices(np.zeros(1), np.ones(1), *rows, *ends, at[None])
