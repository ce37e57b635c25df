"""Where a curve has about the largest μ of all rates that are asked about: thresholds that are
close there narrow it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ...bracket import Bracket
from ...numerics.normal import ndtri_exp
from ...numerics.shapes import Array, Float
from ..certify.curve import Curve
from ..certify.vertices import Vertices
from ..question import Question
from ..steer import limit_plan

# thresholds between the two beside the one at which it is largest
_BETWEEN = 33


def asked(question: Question) -> bool:
    """Whether a question is about one number that is the largest of all rates."""
    some = question.asked
    return len(some) == 1 and some[0][0].of_all_rates


def all_asked(question: Question) -> bool:
    """Whether all that a question is about is the largest of all rates."""
    some = question.asked
    return bool(some) and all(quantity.of_all_rates for quantity, _ in some)


def values(question: Question, log_alpha: Array, log_tpr: Array, log_beta: Array) -> Array:
    """About the μ that points of a curve have, −∞ for those that do not matter.

    Args:
        question: about one setting, as ``asked``.
        log_alpha, log_tpr, log_beta: logs of FPR, TPR and FNR.
    """
    rate = float(question.rates(1).queries[0][0])
    with np.errstate(all="ignore"):
        if question.asked[0][0].rate is None:  # (of rates from a floor on)
            used = (log_alpha >= rate) | (log_beta <= rate)
        else:
            used = log_tpr > rate
            log_tpr = log_tpr + np.log(-np.expm1(np.minimum(rate - log_tpr, 0.0)))
        small = log_tpr < log_beta
        z = ndtri_exp(np.where(small, log_tpr, log_beta))
        value = np.where(small, z, -z) - ndtri_exp(log_alpha)
    return np.where(used & ~np.isnan(value), value, -np.inf)


def of_vertices(question: Question, half: Vertices) -> Float[np.ndarray, " vertices"]:
    """The same of the vertices of a row."""
    rates = (getattr(half, name)[0] for name in ("log_alpha", "log_tpr", "log_beta"))
    return np.where(half.used[0], values(question, *rates), -np.inf)


def about(thresholds: Array, value: Array) -> Float[np.ndarray, " more"]:
    """More thresholds about the one that has the largest of some values.

    Args:
        thresholds: increasing.
        value: of each, or of what lies between it and the next one.
    """
    if not np.any(value > -np.inf):
        return np.zeros(0)
    k = int(np.argmax(value))
    ends = thresholds[max(k - 1, 0)], thresholds[min(k + 2, len(thresholds) - 1)]
    return np.linspace(*ends, _BETWEEN)


def about_largest(question: Question, curve: Curve) -> Float[np.ndarray, " more"]:
    """More thresholds of the bounds from above of a curve, in the order of removing a record."""
    found = []
    for half in (curve.upper_plus, curve.upper_minus):
        found.append(about(half.threshold()[0], of_vertices(question, half)))
    more = np.concatenate(found)
    return more[np.isfinite(more)]


def between(
    question: Question, curve: Curve, results: Mapping[str, Bracket], row: int
) -> tuple[Array, Array]:
    """Thresholds of both halves of a curve by moments, as many between two of them as bring the
    corner there near what is achieved.

    Args:
        question: about one setting, all of it the largest of all rates.
        curve: in the order of removing a record.
        results: what is known, of all settings.
        row: the setting's.

    Method: docs/method/limit.md#long-runs
    """
    halves = (curve.upper_plus, curve.lower_plus), (curve.upper_minus, curve.lower_minus)
    found: list[list[Array]] = [[], []]
    for one in question.asked:
        own = dataclasses.replace(question, asked=(one,))
        known = float(results[one[0].name].lower[row])
        for thresholds, (above, below) in zip(found, halves, strict=True):
            assert above.at is not None  # losses are not equally far apart
            ends, at, tested = (np.asarray(a[0]) for a in (above.at, below.threshold(), below.used))
            if not np.any(tested):
                continue
            achieved = np.interp(ends, at[tested], of_vertices(own, below)[tested])
            corners = of_vertices(own, above)
            more = limit_plan.between(ends, corners, achieved, known, question.rtol)
            thresholds.append(more)
    plus, minus = (np.unique(np.concatenate([np.zeros(0), *each])) for each in found)
    return plus, minus
