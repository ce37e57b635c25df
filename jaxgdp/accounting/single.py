"""One use of a law on finitely many losses, as an attack: its error rates are sums of its masses, and no lattice is needed."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.errors import UNIT
from ..numerics.precision import with_float64
from .curve import Curve
from .question import Question
from .vertices import Vertices

_SIDE = 0.05  # nats below 0 from which on thresholds are looked at


def attack_curve(loss, log_p, log_q, error: float) -> Curve:
    """The curve of which the lower side is that of one use of a finite pair, and of which the upper side is not known.

    Args:
        loss, log_p, log_q: log Q/P, log P and log Q of the outcomes in any order, shape (outcomes,); log_p −inf for padding.
        error: bound on the relative error of any mass.

    Method: docs/method/attack.md#family
    """
    real = np.isfinite(log_p) & np.isfinite(log_q)
    order = np.argsort(loss[real], kind="stable")
    loss, log_p, log_q = (a[real][order] for a in (loss, log_p, log_q))
    slack = np.log1p(error + 4.0 * len(loss) * UNIT)
    plus = _half(loss, log_p, log_q, slack)
    minus = _half(-loss[::-1], log_q[::-1], log_p[::-1], slack)
    unknown = plus._replace(used=np.zeros_like(plus.used), firm=np.zeros_like(plus.firm))
    return Curve(unknown, unknown, plus, minus, np.float64(np.inf), np.float64(0.0))


def _half(loss, log_p, log_q, slack: float) -> Vertices:
    """Tests "the loss is at least that of outcome k" for increasing losses, rates moved to the certified side."""
    above = lambda a: np.logaddexp.accumulate(a[::-1])[::-1]  # noqa: E731
    below = np.append(-np.inf, np.logaddexp.accumulate(log_q)[:-1])
    log_alpha = np.minimum(above(log_p) + slack, 0.0)
    log_tpr, log_beta = np.minimum(above(log_q) - slack, 0.0), np.minimum(below + slack, 0.0)
    # whichever of TPR and FNR is the smaller one is a sum of its own
    with np.errstate(divide="ignore"):
        log_tpr = np.where(log_beta < np.log(0.5), np.log1p(-np.exp(log_beta)) - slack, log_tpr)
        log_beta = np.where(log_beta < np.log(0.5), log_beta, np.log1p(-np.exp(log_tpr)) + slack)
    used = (loss >= -_SIDE) & (log_tpr > log_alpha) & (log_alpha < 0.0)
    step = max(float(loss[-1]), 1.0) / len(loss)
    return Vertices(np.zeros(1), np.array([step]), *(a[None] for a in (log_alpha, log_tpr, log_beta, used, used)))


@with_float64
def read(curves, question: Question) -> dict:
    """Both sides of every quantity of a question, of one curve for each setting; those from above know nothing.

    Args:
        curves: from :func:`attack_curve`. question: as for the engine, with one row for each curve, or single numbers.

    Returns:
        name → Bracket of arrays of shape (curves,).
    """
    symmetric = question.adjacency == "add_remove"
    queries = question.rates(len(curves)).queries
    found = {}
    for (record, _), rows in zip(question.asked, queries, strict=True):
        sides = []
        for curve, row in zip(curves, rows, strict=True):
            if question.adjacency == "add":
                curve = curve._replace(lower_plus=curve.lower_minus, lower_minus=curve.lower_plus)
            with np.errstate(all="ignore"):
                sides.append(record.read(curve, row, symmetric=symmetric))
        columns = ([getattr(both, side) for both in sides] for side in Bracket._fields)
        found[record.name] = Bracket(*(np.array(column, float) for column in columns))
    return found
