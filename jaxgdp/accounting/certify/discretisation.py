"""From exact cell masses to two discrete pairs: one that dominates, one that an attack achieves.

The law of the loss on a lattice is what others call a *privacy loss distribution*. Both are handed
on tilted: mass·e^{s·ℓ}/M, with log M kept beside them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import AT_INFINITY, LOG1P, LOG_AT_INFINITY, NEAR_TERM, SUM_OF_LOGS, UNIT
from ...numerics.normal import log_sub
from ...numerics.shapes import Array, Bool, Float
from ...pairs.cells import Cells, left_over

WIDEST = 600.0  # nats of a cell, beyond which e^{−width} is next to no double
_FARTHEST = 300.0  # nats that exponents of both totals may reach
_ROW = 8  # masses that are added one after the other


class Weights(NamedTuple):
    """Tilted lattice masses of one mechanism, normalised to sum to one (unbatched).

    Attributes:
        weight: masses at the n lattice points, shape (n,).
        log_total: log of their sum before that.
        roundoff: bound on the error of that log, and on what all masses are uncertain by.
        noise: root of the summed squares of the masses' own rounding errors.
        jitter: the same for the positions of the cells' edges, errors that cancel between
            neighbours.
        relative: root of the mean squared relative error of the masses.
        moved: mean distance, in lattice points, that a misplaced cell edge moves mass by.
        error: relative error of each mass, shape (n,).
        defect: bound on what their sum, exactly taken, differs from 1 by.
    """

    weight: Float[Array, "*components points"]
    log_total: Float[Array, "*components"]
    roundoff: Float[Array, "*components"]
    noise: Float[Array, "*components"]
    jitter: Float[Array, "*components"]
    relative: Float[Array, "*components"]
    moved: Float[Array, "*components"]
    error: Float[Array, "*components points"]
    defect: Float[Array, "*components"]


def sum_defect(weight: Float[Array, " points"]) -> Float[Array, ""]:
    """Bound on what the exact sum of masses differs from 1 by.

    Method: docs/method/rounding.md#sums
    """
    total, additions = sum_of_rows(weight)
    return xp.abs(1.0 - total) + (additions + 1.0) * UNIT


def sum_of_rows(terms: Float[Array, " points"]) -> tuple[Float[Array, ""], int]:
    """Sum, and how many additions follow each other in it: of rows of eight, then of their sums.

    Args:
        terms: of any sign.

    Returns:
        The sum, off by at most so many units of the sum of absolute values; and that number.

    Method: docs/method/rounding.md#sums
    """
    additions, sums = 0, terms
    while (number := sums.shape[-1]) > 1:
        rows = -(-number // _ROW)
        sums = xp.sum(xp.pad(sums, (0, rows * _ROW - number)).reshape(rows, _ROW), axis=-1)
        additions += _ROW - 1
    return sums[0], additions


def _normalise(
    weight: Float[Array, " points"],
    scale: Float[Array, " points"],
    edge_error: Float[Array, " points"],
    gap: Float[Array, " points"],
    log_scale: Float[Array, ""],
    uncertain: Float[Array, ""] | float = 0.0,
) -> Weights:
    """Masses over their sum.

    ``scale`` and ``edge_error``: relative errors of the masses, in epsilons; ``gap``: lattice
    points between neighbours.

    ``uncertain``: bound on the relative error of every mass, which is one of the composition and no
    noise.

    Method: docs/method/rounding.md#shared
    """
    total = xp.sum(weight)
    weight = weight / total
    defect = sum_defect(weight)
    scaled, moved = weight * scale, weight * edge_error
    product = lambda a, b: xp.einsum("i,i->", a, b)
    return Weights(
        weight,
        log_scale + xp.log(total),
        UNIT * (xp.sum(scaled) + SUM_OF_LOGS[0]) + uncertain + defect,
        UNIT * xp.sqrt(product(scaled, scaled)),
        UNIT * xp.sqrt(product(moved, moved)),
        UNIT * xp.sqrt(product(scaled, scale)),
        UNIT * product(moved, gap),
        UNIT * (scale + edge_error),
        defect,
    )


def weights_of(
    mass: Float[Array, " points"], units: Float[Array, " points"], gap: Float[Array, " points"]
) -> Weights:
    """Masses at exact places, each known to so many units of itself, over their sum; ``gap``:
    lattice points between neighbours.
    """
    return _normalise(mass, units, 0.0 * units, gap, xp.zeros(()))


class _Total(NamedTuple):
    """What is known of the sum of masses that are parts of a law of total 1.

    Attributes:
        mass: the masses before they were tilted, shape (n,).
        missing: what they lack to a sum of 1.
        error: bound on the error of ``missing``.
        roundoff: bound on the relative errors of the masses, in units, shape (n,).
        moved: bound on the share of each mass that may belong to a neighbouring point, in units.
        at_infinity: bound on what the masses times e^ℓ lack to a sum of 1; None where they are no
            law's.
    """

    mass: Float[Array, " points"]
    missing: Float[Array, ""] | float
    error: Float[Array, ""] | float
    roundoff: Float[Array, " points"]
    moved: Float[Array, " points"]
    at_infinity: Float[Array, ""] | None = None


class _LogTotal(NamedTuple):
    """log M of tilted masses, and a bound on its error."""

    value: Float[Array, ""]
    error: Float[Array, ""]


def _by_total(
    weights: Weights, total: _Total, ell: Float[Array, " points"], tilt: Float[Array, ""]
) -> Weights:
    """The weights, with the log of their sum M from what is known of the masses' total, where that
    has the smaller bound: where steps are small.

    Args:
        weights: with log M from the sum itself.
        total: what is known of the sum of the masses m.
        ell: losses of the points.
        tilt: s.

    Method: docs/method/rounding.md#total
    """
    spread = xp.expm1(xp.minimum(xp.abs(tilt) * _reach(ell), 600.0))
    moved = UNIT * xp.sum(weights.weight * total.moved * spread)
    best = _LogTotal(weights.log_total, weights.roundoff + moved)
    others = [_of_one_total(weights, total, ell, tilt, moved)]
    if total.at_infinity is not None:
        others.append(_of_both_totals(weights, total, ell, tilt))
    for other in others:
        better = other.error < best.error
        best = _LogTotal(*(xp.where(better, a, b) for a, b in zip(other, best, strict=True)))
    return weights._replace(log_total=best.value, roundoff=best.error)


def _of_one_total(
    weights: Weights,
    total: _Total,
    ell: Float[Array, " points"],
    tilt: Float[Array, ""],
    moved: Float[Array, ""],
) -> _LogTotal:
    """From Σ m·e^{sℓ} − 1 = Σ m·(e^{sℓ} − 1) − (1 − Σ m); ``moved``: what masses at neighbouring
    points change, relative.

    Method: docs/method/rounding.md#total
    """
    mass, small = total.mass, xp.abs(tilt * ell) < 1.0
    near = xp.where(small, tilt * ell, 0.0)
    tilted = weights.weight * xp.exp(weights.log_total)
    more, additions = sum_of_rows(xp.where(small, mass * xp.expm1(near), tilted - mass))
    # (near ones: |e^x − 1| and |x|·e^x are at most e·|x|)
    size = xp.where(small, np.e * mass * xp.abs(near), tilted * (1.0 + xp.abs(tilt * ell)) + mass)
    rounded = UNIT * xp.sum(size * (total.roundoff + NEAR_TERM + additions))
    rounded = rounded + moved * xp.exp(weights.log_total)
    return _log_total(more - total.missing, rounded + 2.0 * UNIT * total.missing + total.error)


def _of_both_totals(
    weights: Weights, total: _Total, ell: Float[Array, " points"], tilt: Float[Array, ""]
) -> _LogTotal:
    """From Σ m·e^{sℓ} − 1 = Σ m·f(ℓ) − π + s·(π − λ), f(ℓ) = (e^{sℓ} − 1) − s·(e^ℓ − 1), where the
    Q-masses m·e^ℓ are known to add up to 1 − λ as well: an error of a mass comes with the square of
    a loss, and so does one of its place.

    Method: docs/method/rounding.md#total
    """
    mass, s, small = total.mass, xp.abs(tilt), xp.abs(tilt * ell) < 1.0
    near = xp.where(small, tilt * ell, 0.0)
    tilted = weights.weight * xp.exp(weights.log_total)
    terms = xp.where(small, mass * xp.expm1(near), tilted - mass)
    terms = terms - tilt * mass * xp.expm1(xp.minimum(ell, 600.0))
    more, additions = sum_of_rows(terms)
    # what the terms are made of: each to some units of its own size
    size = xp.where(small, np.e * mass * xp.abs(near), tilted * (1.0 + xp.abs(tilt * ell)) + mass)
    del small, near, tilted
    size = size + s * mass * xp.abs(ell) * xp.exp(xp.clip(ell, 0.0, 600.0))
    rounded = xp.sum(size * NEAR_TERM + xp.abs(terms) * (total.roundoff + additions + 2.0))
    del terms, size
    # |f'| = s·|e^{sy} − e^y|, y up to so far away
    gap = _reach(ell)
    far = xp.abs(ell) + gap
    slope = xp.exp(xp.minimum(far, 300.0)) * xp.expm1(xp.minimum(xp.abs(tilt - 1.0) * far, 300.0))
    slope = xp.where((ell + gap < 0.0) & (tilt >= 0.0), xp.minimum(slope, 1.0), slope)
    rounded = UNIT * (rounded + xp.sum(mass * total.moved * s * gap * slope))
    lost = xp.asarray(total.at_infinity)
    missing = (1.0 + s) * (2.0 * UNIT * total.missing + total.error) + s * lost
    found = _log_total(more + (tilt - 1.0) * total.missing, rounded + missing)
    # (beyond, exponentials were cut off: sum and bound lack what they stand for)
    held = (1.0 + s) * xp.max(far) < _FARTHEST
    return _LogTotal(found.value, xp.where(held, found.error, xp.inf))


def _log_total(more: Float[Array, ""], error: Float[Array, ""]) -> _LogTotal:
    """log M of M − 1, known to an error; nothing where it is not well above −1."""
    usable = more > -0.5
    more = xp.where(usable, more, 0.0)
    value = xp.log1p(more)
    share = error / (1.0 + more)
    # (|log(1 ± e)| ≤ e/(1 − e))
    error = share / xp.maximum(1.0 - share, 0.5) + LOG1P * UNIT * xp.abs(value)
    return _LogTotal(value, xp.where(usable & (share < 0.5), error, xp.inf))


def _reach(ell: Float[Array, " points"]) -> Float[Array, " points"]:
    """Distance between the second neighbours of each point, where an error at the edges of its
    cells may leave mass.
    """
    padded = xp.concatenate([ell[:1], ell[:1], ell, ell[-1:], ell[-1:]])
    return padded[4:] - padded[:-4]


def dominating_weights(
    cells: Cells,
    ell: Float[Array, " points"],
    gap: Float[Array, " points"],
    tilt: Float[Array, ""],
    log_scale: Float[Array, ""],
    change: Float[Array, " points"] | None = None,
    sums_to_one: bool = False,
) -> tuple[Weights, Float[Array, ""]]:
    """Connect the dots (Doroshenko et al. 2022): a pair at least as revealing, in both directions.

    Each interior cell's P-mass is split between its ends so that its Q-mass is kept too. Below the
    first point, Q-mass is moved up to it with the P-mass that belongs there and the other P-mass
    goes to −∞; beyond the last point, P-mass is moved down to it and the Q-mass left over goes to
    +∞. ``change``, from ``derivative.dominating_change``, replaces the derivative of the masses;
    ``sums_to_one`` as the mechanism says.

    Returns:
        The tilted P-masses, and the Q-mass at +∞.

    Method: docs/method/dominating.md#split
    Method: docs/method/tilting.md#tilt
    """
    log_x, log_y, _, lost, lost_error, roundoff, jitter, _, _, _, uncertain, *_ = cells
    weight, mass, below = _split(cells, ell, tilt, log_scale)
    if change is not None:
        weight = xp.stop_gradient(weight) + change
    top = left_over(log_x[-1], log_y[-1], ell[-1], roundoff[-1] + jitter[-1])
    at_infinity = (
        lost * (1.0 + uncertain)
        + lost_error
        + top.lost
        + top.error
        + 2.0 * xp.exp(log_y[-1]) * uncertain
        + _too_wide(log_y, ell)
    )
    of_both = lambda a: xp.maximum(a[:-1], a[1:])
    # (whatever has no name here is gone before more is made: lattices are long)
    weights = _normalise(
        weight, of_both(roundoff) + xp.abs(tilt * ell), of_both(jitter), gap, log_scale, uncertain
    )
    del weight
    if sums_to_one and change is None:
        total = _total_of_dominating(cells, below, mass)
        del mass
        weights = _by_total(weights, total._replace(at_infinity=at_infinity), ell, tilt)
    return weights, at_infinity


def _split(
    cells: Cells, ell: Float[Array, " points"], tilt: Float[Array, ""], log_scale: Float[Array, ""]
) -> tuple[Float[Array, " points"], Float[Array, " points"], Float[Array, ""]]:
    """Tilted masses of the points, the masses themselves, and the log of what the first point takes
    from the cell below it.

    Of the cell below a point goes up what connect-the-dots moves there, of the cell above it the
    rest.
    """
    log_x, log_y = cells.log_x, cells.log_y
    # (selecting by index and not padding or updating in place lets the compiler run this in
    # parallel)
    first = xp.arange(ell.shape[0]) == 0
    share = xp.concatenate([xp.ones(1), cells.up, xp.zeros(1)])
    below = xp.where(first, xp.minimum(log_y[:-1] - ell, log_x[:-1]), log_x[:-1])
    dropped = cells.dropped + xp.zeros_like(cells.up)
    stays = 1.0 - share[1:] - xp.concatenate([dropped, xp.zeros(1)])
    put = lambda base: xp.exp(below + base) * share[:-1] + xp.exp(log_x[1:] + base) * stays
    return put(tilt * ell - log_scale), put(0.0), below[0]


def _too_wide(log_y: Float[Array, " cells"], ell: Float[Array, " points"]) -> Float[Array, ""]:
    """Q-mass of cells so wide that no double holds the share that moves up: as if it were at +∞.

    Method: docs/method/dominating.md#split
    """
    return xp.sum(xp.where(xp.diff(ell) > WIDEST, (1.0 + AT_INFINITY) * xp.exp(log_y[1:-1]), 0.0))


def _total_of_dominating(
    cells: Cells, below: Float[Array, ""], mass: Float[Array, " points"]
) -> _Total:
    """What is known of the P-masses ``mass`` that connect-the-dots leaves on the lattice;
    ``below``: log of what it takes from the cell below the first point.

    Method: docs/method/rounding.md#total
    """
    of_both = lambda a: xp.maximum(a[:-1], a[1:])
    x, dropped = xp.exp(cells.log_x), cells.dropped + xp.zeros_like(cells.up)
    parts = xp.append(dropped * x[1:-1], x[0] - xp.exp(below))
    taken = xp.append(dropped * x[1:-1], x[0])
    room = xp.append(cells.roundoff[1:-1], cells.roundoff[0]) + (len(taken) + 4.0)
    zero = xp.zeros(1)
    split = xp.concatenate([zero, cells.share_error + xp.zeros_like(cells.up), zero])
    return _Total(
        mass,
        xp.sum(parts),
        UNIT * xp.sum(taken * room),
        of_both(cells.roundoff),
        of_both(split + 2.0 * cells.jitter),
    )


def attack_weights(
    cells: Cells,
    ell: Float[Array, " points"],
    gap: Float[Array, " points"],
    tilt: Float[Array, ""],
    sums_to_one: bool = False,
) -> tuple[Weights, Weights]:
    """A real test: every cell is labelled with its upper point, the sum has a threshold.

    The labels need not be the loss (the last one also stands for everything beyond the lattice). P-
    and Q-masses are tilted separately, by s and s − 1, so that both sit in the same place. Masses
    at −∞ and +∞ are left out: the first never leads to a rejection, the second always does.

    Returns:
        The tilted P-masses and the tilted Q-masses.

    Method: docs/method/attack.md#labels
    Method: docs/method/tilting.md#tilt
    """

    def tilted(log_mass, s, log_missing):
        roundoff, jitter = cells.roundoff[:-1], cells.jitter[:-1]
        last = xp.arange(ell.shape[0]) == ell.shape[0] - 1
        log_mass = xp.where(last, xp.logaddexp(log_mass[-2], log_mass[-1]), log_mass[:-1])
        log_tilted = log_mass + s * ell
        # (its own scale: the pair of the lower side may have much less mass far out than what was
        # planned for)
        largest = xp.max(log_tilted)
        weights = _normalise(
            xp.exp(log_tilted - largest),
            roundoff + xp.abs(s * ell),
            jitter,
            gap,
            largest,
            cells.uncertain,
        )
        del log_tilted
        if not sums_to_one:
            return weights
        missing = xp.exp(log_missing)
        room = AT_INFINITY + UNIT * xp.maximum(cells.roundoff[0], cells.roundoff[-1])
        roundoff = xp.where(last, xp.maximum(roundoff, cells.roundoff[-1]), roundoff)
        total = _Total(xp.exp(log_mass), missing, missing * room, roundoff, 2.0 * jitter)
        return _by_total(weights, total, ell, s)

    def of_x():
        first = xp.arange(cells.log_x.shape[0]) == 0
        return xp.where(first, _without(cells.log_x[0], cells.log_p_minus), cells.log_x)

    def of_y():
        last = xp.arange(cells.log_x.shape[0]) == ell.shape[0]
        # (where TPR is summed itself, what is uncertain of the last cell is left out of it: under a
        # steep tilt it would be more than everything else)
        mass = _without(cells.log_y[-1], cells.log_q_plus, tilt >= 1.0)
        return xp.where(last, mass, cells.log_y)

    of_p = tilted(of_x(), tilt, cells.log_p_minus)
    return of_p, tilted(of_y(), tilt - 1.0, cells.log_q_plus)


def _without(
    log_whole: Float[Array, ""], log_part: Array | float, below: Bool[Array, ""] | bool = False
) -> Float[Array, ""]:
    """log of a mass less a part of it, raised by the rounding error, or lowered by it."""
    rest, error = log_sub(log_whole, log_part), log_part + LOG_AT_INFINITY
    return xp.where(below, log_sub(rest, error), xp.logaddexp(rest, error))
