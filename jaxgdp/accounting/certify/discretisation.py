"""From exact cell masses to two discrete pairs: one that dominates, one that an attack achieves.

The law of the loss on a lattice is what others call a *privacy loss distribution*. Both are handed
on tilted: mass·e^{s·ℓ}/M, with log M kept beside them.
"""

from __future__ import annotations

from typing import NamedTuple

from ...numerics import namespace as xp
from ...numerics.errors import LOG_AT_INFINITY, UNIT
from ...numerics.normal import log_sub
from ...numerics.shapes import Array, Float
from ...pairs.cells import Cells


class Weights(NamedTuple):
    """Tilted lattice masses of one mechanism, normalised to sum to one (unbatched).

    Attributes:
        weight: masses at the n lattice points, shape (n,).
        log_total: log of the sum they were divided by.
        roundoff: bound on the relative rounding error of that sum, and on what all masses are
            uncertain by.
        noise: root of the summed squares of the masses' own rounding errors.
        jitter: the same for the positions of the cells' edges, errors that cancel between
            neighbours.
        relative: root of the mean squared relative error of the masses.
        moved: mean distance, in lattice points, that a misplaced cell edge moves mass by.
        error: relative error of each mass, shape (n,).
    """

    weight: Float[Array, "*components points"]
    log_total: Float[Array, "*components"]
    roundoff: Float[Array, "*components"]
    noise: Float[Array, "*components"]
    jitter: Float[Array, "*components"]
    relative: Float[Array, "*components"]
    moved: Float[Array, "*components"]
    error: Float[Array, "*components points"]


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
    scaled, moved = weight * scale, weight * edge_error
    product = lambda a, b: xp.einsum("i,i->", a, b)
    return Weights(
        weight,
        log_scale + xp.log(total),
        UNIT * xp.sum(scaled) + uncertain,
        UNIT * xp.sqrt(product(scaled, scaled)),
        UNIT * xp.sqrt(product(moved, moved)),
        UNIT * xp.sqrt(product(scaled, scale)),
        UNIT * product(moved, gap),
        UNIT * (scale + edge_error),
    )


def dominating_weights(
    cells: Cells,
    ell: Float[Array, " points"],
    gap: Float[Array, " points"],
    tilt: Float[Array, ""],
    log_scale: Float[Array, ""],
    change: Float[Array, " points"] | None = None,
) -> tuple[Weights, Float[Array, ""]]:
    """Connect the dots (Doroshenko et al. 2022): a pair at least as revealing, in both directions.

    Each interior cell's P-mass is split between its ends so that its Q-mass is kept too. Below the
    first point, Q-mass is moved up to it with the P-mass that belongs there and the other P-mass
    goes to −∞; beyond the last point, P-mass is moved down to it and the Q-mass left over goes to
    +∞. ``change``, from ``derivative.dominating_change``, replaces the derivative of the masses.

    Returns:
        The tilted P-masses, and the Q-mass at +∞.

    Method: docs/method/dominating.md#split
    Method: docs/method/tilting.md#tilt
    """
    log_x, log_y, up, lost, roundoff, jitter, _, _, dropped, uncertain = cells
    point = xp.arange(ell.shape[0])
    first = point == 0
    # of the cell below a point goes up what connect-the-dots moves there, of the cell above it the
    # rest (selecting by index and not padding or updating in place lets the compiler run this in
    # parallel)
    share = xp.concatenate([xp.ones(1), up, xp.zeros(1)])
    below = xp.where(first, xp.minimum(log_y[:-1] - ell, log_x[:-1]), log_x[:-1])
    base = tilt * ell - log_scale
    stays = 1.0 - share[1:] - xp.concatenate([dropped + xp.zeros_like(up), xp.zeros(1)])
    weight = xp.exp(below + base) * share[:-1] + xp.exp(log_x[1:] + base) * stays
    if change is not None:
        weight = xp.stop_gradient(weight) + change
    scale = xp.maximum(roundoff[:-1], roundoff[1:]) + xp.abs(tilt * ell)
    edge_error = xp.maximum(jitter[:-1], jitter[1:])
    q_top = xp.exp(log_y[-1])
    at_infinity = (
        lost * (1.0 + uncertain)
        + xp.maximum(q_top - xp.exp(log_x[-1] + ell[-1]), 0.0)
        + q_top * (roundoff[-1] * UNIT + uncertain)
    )
    return _normalise(weight, scale, edge_error, gap, log_scale, uncertain), at_infinity


def attack_weights(
    cells: Cells, ell: Float[Array, " points"], gap: Float[Array, " points"], tilt: Float[Array, ""]
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

    def tilted(log_mass, s):
        scale = cells.roundoff[:-1] + xp.abs(s * ell)
        last = xp.arange(ell.shape[0]) == ell.shape[0] - 1
        log_mass = xp.where(last, xp.logaddexp(log_mass[-2], log_mass[-1]), log_mass[:-1]) + s * ell
        # (its own scale: the pair of the lower side may have much less mass far out than what was
        # planned for)
        largest = xp.max(log_mass)
        return _normalise(
            xp.exp(log_mass - largest), scale, cells.jitter[:-1], gap, largest, cells.uncertain
        )

    cell = xp.arange(cells.log_x.shape[0])
    log_x = xp.where(cell == 0, _without(cells.log_x[0], cells.log_p_minus), cells.log_x)
    log_y = xp.where(cell == ell.shape[0], _without(cells.log_y[-1], cells.log_q_plus), cells.log_y)
    return tilted(log_x, tilt), tilted(log_y, tilt - 1.0)


def _without(log_whole: Float[Array, ""], log_part: Array | float) -> Float[Array, ""]:
    """log of a mass less a part of it, raised by the rounding error (it sits at an end point, whose
    mass is in the guard).
    """
    return xp.logaddexp(log_sub(log_whole, log_part), log_part + LOG_AT_INFINITY)
