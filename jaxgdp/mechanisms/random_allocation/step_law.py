"""The likelihood ratio of one step of any mechanism, as two tables: from above and from below.

From above outcomes of one cell go to the ends of the cell with their Q-mass kept, from below they
are merged. Outcomes that one law alone has are kept apart: a likelihood ratio of 0 or ∞.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...numerics.errors import BRACKETED, CELL, EXP, SHARE, UNIT
from ...pairs import table
from ...pairs.cells import Cells
from ...pairs.known_curves import FiniteCurve
from ...pairs.table import Table
from ..base import Mechanism

LARGEST = 90.0  # losses beyond it are not told from infinite ones
_DEPTH = 100.0  # −log of the masses at which the law of one step ends
_FINEST, _SHARE = 1.0 / 300.0, 1.0 / 300.0  # between points, over the body's width and over ℓ
_COARSEST = 1.5e-3  # most between points, in nats
_BODY = 1e-7  # narrowest body, in nats, that points are laid out for
_WELL = 1e-11  # relative error of masses of a table that no point is taken out for
_TRIES = 8
_ROOM = 0.5 * BRACKETED * UNIT  # errors of losses that a table allows for
_FAINT = 1e-290  # mass that may have lost digits, and more than all that is no double


class StepLaw(NamedTuple):
    """One step.

    Attributes:
        above: a pair that dominates; its losses are known to a few hundred units.
        below: a pair that an attack achieves, with one-sided outcomes in ``p_minus`` and
            ``q_plus``.
        low, high: between which all finite losses lie; ∓∞ where that is not known.
    """

    above: Table
    below: Table
    low: float = -np.inf
    high: float = np.inf


def step_law(pair: Mechanism) -> StepLaw:
    """The law of one use of a mechanism in its canonical form (unbatched, on the host).

    Method: docs/method/dominating.md#one-of-many
    """
    tables: Any = pair.bracketed()
    if tables is not None:
        return _of_tables(tables)
    member = pair.lower_bound_member()
    known = pair.known_curve()
    if isinstance(known, FiniteCurve) and member is pair:
        return _of_atoms(known)
    points, cells = _lattice(pair)
    lower = cells if member is pair else member.cells(points, np.inf)
    low, high = (float(a) for a in pair.loss_bounds())
    return StepLaw(_dominating(points, cells), _merged(lower), low, high)


def _beyond(found: Table, poor: np.ndarray | bool = False) -> Table:
    """Losses that are too large, and ``poor`` ones, count as infinite: that moves mass apart, with
    its mean kept.
    """
    far = (np.abs(found.loss) > LARGEST) | poor
    if not np.any(far):
        return found
    rounded = 1.0 + found.error + 64.0 * UNIT
    return found._replace(
        loss=found.loss[~far],
        p=found.p[~far],
        q=found.q[~far],
        p_minus=(found.p_minus + float(found.p[far].sum())) * rounded + _FAINT,
        q_plus=(found.q_plus + float(found.q[far].sum())) * rounded + _FAINT,
    )


def _of_tables(pair: Any) -> StepLaw:
    """Of a pair that is known from tables."""
    real = np.asarray(pair.log_p) > -np.inf
    loss, log_p = np.asarray(pair.loss)[real], np.asarray(pair.log_p)[real]
    infinite = float(np.exp(pair.log_p_minus)), float(np.exp(pair.log_q_plus))
    above = Table(loss, np.exp(log_p), np.exp(log_p + loss), *infinite, float(pair.uncertain))
    real = np.asarray(pair.attack_p) > -np.inf
    loss, log_p, log_q = (
        np.asarray(a)[real] for a in (pair.attack_loss, pair.attack_p, pair.attack_q)
    )
    error = float(pair.attack_uncertain)
    below = Table(loss, np.exp(log_p), np.exp(log_q), 0.0, 0.0, error, float(pair.attack_apart))
    return StepLaw(_beyond(above), below, float(above.loss[0]), float(above.loss[-1]))


def _of_atoms(known: FiniteCurve) -> StepLaw:
    """Of a pair on finitely many outcomes: both tables are the pair itself."""
    loss, log_p, log_q = (np.asarray(a) for a in (known.loss, known.log_p, known.log_q))
    deepest = float(max(np.max(-log_p, initial=0.0), np.max(-log_q, initial=0.0)))
    error = known.mass_error + 2.0 * EXP + (CELL + 2.0 * deepest) * UNIT
    p, q = np.exp(log_p), np.exp(log_q)
    unlisted = float(np.exp(known.log_unlisted))
    minus, plus = float(np.exp(known.log_p_minus)), float(np.exp(known.log_q_plus))
    rounded = 1.0 + 2.0 * error
    above = Table(loss, p, q, (minus + unlisted) * rounded, (plus + unlisted) * rounded, error)
    # (an outcome whose loss is not known well, or that is no double, counts as infinite)
    poor = (np.asarray(known.loss_error) > _ROOM) | (p < _FAINT) | (q < _FAINT)
    less = 1.0 - known.infinite_error - 2.0 * error
    below = Table(loss, p, q, minus * less, plus * less, error, 2.0 * error)
    low, high = np.min(loss - known.loss_error), np.max(loss + known.loss_error)
    room = 4.0 * UNIT * max(abs(low), abs(high))
    return StepLaw(_beyond(above, poor), below, float(low) - room, float(high) + room)


def _lattice(pair: Mechanism) -> tuple[np.ndarray, Cells]:
    """Points that cover the losses of a mechanism, and its cells between them.

    Points that mass lies on are taken out: a share that is nearly 0 or 1 has no accuracy of its
    own, one in the middle of a cell has.
    """
    nodes, log_weight = (np.asarray(a, float) for a in pair.loss_nodes(_DEPTH))
    low, high = (float(a) for a in pair.loss_bounds())
    low = max(low, float(nodes[0])) if np.isfinite(low) else float(nodes[0])
    high = min(high, float(nodes[-1])) if np.isfinite(high) else float(nodes[-1])
    low, high = max(low, -LARGEST), min(high, LARGEST)
    some = (nodes >= low) & (nodes <= high) & (log_weight > -np.inf)
    loss = np.concatenate([[low], nodes[some], [high]])
    weight = np.concatenate([[0.0], np.exp(log_weight[some]), [0.0]])
    total = float(np.sum(weight))
    body = float(np.sum(weight * np.minimum(np.abs(np.expm1(loss)), 1.0))) / total
    finest = max(body, _BODY) * _FINEST
    points = table.grid(loss, weight, finest, _COARSEST, _SHARE)
    first, last = points[0] - (points[1] - points[0]), points[-1] + (points[-1] - points[-2])
    points = np.concatenate([[first], points, [last]])
    for _ in range(_TRIES):
        cells = pair.cells(points, np.inf)
        poor = _spread(cells)[1] > _WELL
        poor[[0, -1]] = False
        if not np.any(poor):
            break
        # (of two neighbours one is enough)
        poor[1:] &= ~poor[:-1]
        points = points[~poor]
    return points, pair.cells(points, np.inf)


def _masses_of(cells: Cells) -> tuple[np.ndarray, ...]:
    """P-masses, Q-masses and bounds on their relative errors."""
    x, y = np.exp(np.asarray(cells.log_x)), np.exp(np.asarray(cells.log_y))
    error = (np.asarray(cells.roundoff) + np.asarray(cells.jitter) + CELL) * UNIT
    return x, y, error + float(cells.uncertain)


def _spread(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """P-masses that interior cells leave at each point, and bounds on their relative errors."""
    x, _, error = (a[1:-1] for a in _masses_of(cells))
    up = np.asarray(cells.up)
    units = np.asarray(cells.roundoff)[1:-1] + 2.0 * np.asarray(cells.jitter)[1:-1] + SHARE
    share = units * UNIT + float(cells.uncertain)
    none = np.zeros(1)
    above, below = np.append(none, x * up), np.append(x * (1.0 - up), none)
    off = np.append(none, x * (up * error + share))
    off = off + np.append(x * ((1.0 - up) * error + share), none)
    mass = above + below
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(off > 0.0, off / mass, 0.0)
    return mass, relative


def _dominating(points: np.ndarray, cells: Cells) -> Table:
    """Each cell's mass at its ends; below the first point what belongs there and the rest at 0,
    beyond the last one all Q-mass at ∞.
    """
    x, y, error = _masses_of(cells)
    p, relative = _spread(cells)
    worst = float(np.max(relative, initial=0.0))
    # the first cell: Q-mass at the first point with the P-mass that belongs there
    first = min(float(y[0] * np.exp(-points[0])), float(x[0]))
    p[0] += first
    worst = max(worst, float(error[0]) + 2.0 * EXP)
    minus = (float(x[0]) - first + float(x[0] * (2.0 * error[0] + 4.0 * EXP))) if x[0] else 0.0
    p[-1] += x[-1]
    worst = max(worst, float(error[-1])) if x[-1] else worst
    plus = float(y[-1] * (1.0 + 2.0 * error[-1])) if y[-1] else 0.0
    lost = float(cells.lost) + float(cells.lost_error)
    some = p > 0.0
    points, p = points[some], p[some]
    found = Table(points, p, p * np.exp(points), minus, plus + lost, worst + 2.0 * EXP)
    return _beyond(found)


def _merged(cells: Cells) -> Table:
    """Each cell is one outcome."""
    x, y, error = _masses_of(cells)
    only_p, only_q = float(x[y == 0.0].sum()), float(y[x == 0.0].sum())
    some = (x > 0.0) & (y > 0.0)
    worst = float(np.max(error[(x > 0.0) | (y > 0.0)], initial=0.0))
    found = table.from_masses(x, y, worst)
    less = 1.0 - 2.0 * worst - len(x) * UNIT
    return found._replace(p_minus=only_p * less, q_plus=only_q * less) if np.any(some) else found
