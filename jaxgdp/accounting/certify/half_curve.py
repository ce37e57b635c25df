"""Half of a trade-off curve: vertices at thresholds ℓ ≥ 0, certified on one side, in the log.

The half-curve of (Q‖P) holds the slopes −e^ℓ, ℓ ≥ 0, of the trade-off curve of P against Q; the
half-curve of the swapped pair holds its other slopes, mirrored. Together they are the curve of the
mechanism."""

from __future__ import annotations

from typing import NamedTuple

import jax

from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.errors import CURVE_END
from ...numerics.normal import safe_log
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .composed import Composed, Window
from .curve_end import has_curve_end, with_curve_end
from .discretisation import Weights
from .half_vertices import attack_vertices, dominating_vertices
from .lattice import Grid, Placement, placement
from .low_frequencies import Sums
from .steps import Steps, step
from .vertices import Vertices

# components from which on NumPy composes one law after the other: side by side, what it lays by for
# each takes hundreds of MiB
_MANY_COMPONENTS = 256
_MANY_POINTS = 2**20  # … and points of all their lattices


class Half(NamedTuple):
    """One piece of a half-curve.

    Attributes:
        above: vertices of the dominating pair, the upper side of privacy loss.
        below: vertices that the attack achieves, the lower side.
    """

    above: Vertices
    below: Vertices


class BareHalf(NamedTuple):
    """The same, with the dominating vertices without their allowance for errors, where that leaves
    something: no bound, but the place to look for where a curve touches another one.
    """

    above: Vertices
    below: Vertices
    bare: Vertices


class _ComposedLaws(NamedTuple):
    """Block sums of each of ``steps.Laws``, and the shift of the attack's window in points."""

    dominating: Composed
    attack_p: Composed
    attack_q: Composed
    shift: Float[Array, ""]


def half_curve(
    groups: Groups,
    count: Float[Array, " components"],
    plan: Plan,
    grid: Grid,
    reverse: Bool[Array, ""] | bool,
    bare: bool = False,
    known: tuple[Steps, Sums] | None = None,
) -> Half | BareHalf:
    """Vertices of one piece from the dominating pair (upper) and the attack (lower side).

    Args:
        groups: tuple of (stacked mechanism, counts), one entry per class, Gaussians collapsed.
        count: all counts in a row.
        plan: tilt and windows of the piece.
        grid: its lattice.
        reverse: whether the pair is swapped (the half-curve of adding a record).
        bare: whether a :class:`BareHalf` is wanted.
        known: the steps (:func:`steps.step`), and the frequencies of each of their laws, where
            they were worked out before.

    Method: docs/method/blocks.md#halves
    Method: docs/method/frequencies.md#blur
    """
    place = placement(plan, grid)
    steps, sums = (step(groups, plan, grid, reverse), None) if known is None else known
    dominating, *attack, shift = _compose(steps, sums, count, plan, grid, place)
    above = dominating_vertices(dominating, plan, place, steps.log_not_at_infinity)
    log_certain = safe_log(-xp.expm1(steps.log_not_certain)) - CURVE_END
    wide = plan if steps.more is None else _wider(plan)
    below = attack_vertices(*attack, wide, place, shift / grid.block, log_certain)
    if not has_curve_end(groups):
        below = below._replace(top=None, log_infinity_mass=None)
    ended = lambda v: with_curve_end(v, groups, steps.log_infinity_mass, reverse)
    if not bare:
        return Half(ended(above), below)
    exactly = dominating._replace(
        **{name: xp.zeros(()) for name in ("roundoff", "noise", "escaped")}
    )
    found = dominating_vertices(exactly, plan, place, steps.log_not_at_infinity)
    found = found._replace(used=found.used & (above.log_alpha > -xp.inf))
    return BareHalf(ended(above), below, ended(found))


def _wider(plan: Plan) -> Plan:
    """With more of the window: labels far above their losses have their own tilt elsewhere."""
    low, room = plan.cut_low, 2.0 * plan.spread
    low = xp.where(low > 0.0, xp.maximum(low - room, 0.5 * low), low)
    return plan._replace(cut_low=low, cut_high=plan.cut_high + room)


def _compose(
    steps: Steps,
    sums: Sums | None,
    count: Float[Array, " components"],
    plan: Plan,
    grid: Grid,
    place: Placement,
) -> _ComposedLaws:
    """Self-composition of all three laws."""
    laws, centre, h = steps.laws, steps.centre, place.h
    loss_mean = xp.sum(count * plan.centre) / h
    if steps.more is not None:
        count = xp.append(count, steps.more)
    base = xp.sum(count * centre)
    # the labels' mean differs from the loss's: move the attack's window by as much
    label_mean = xp.sum(count * (xp.matmul(laws.attack_p.weight, grid.offset) + centre))
    shift = xp.round(label_mean - loss_mean)
    tilts = xp.stack([plan.tilt, plan.tilt, plan.tilt - 1.0])
    shifts = xp.stack([xp.zeros(()), shift, shift])

    def run(weights: Weights, tilt: Array, shift: Array, sums: Sums | None = None) -> Composed:
        start = xp.round(place.first * grid.block) + shift + 1.0 - base
        window = Window(start, tilt, h, plan.miss_low, plan.miss_high)
        return grid.compose(weights, count, window, plan, centre, shift, sums).sound()

    of_each = (tilts, shifts, *([] if sums is None else [sums]))
    large = count.shape[0] > _MANY_COMPONENTS or count.shape[0] * grid.widest >= _MANY_POINTS
    if large and not xp.is_jax(count):
        rows = (jax.tree.map(lambda x: x[i], of_each) for i in range(len(laws)))  # noqa: B023
        return _ComposedLaws(*map(lambda law, row: run(law, *row), laws, rows), shift)
    stacked = jax.tree.map(lambda *x: xp.stack(x), *laws)
    composed = xp.vmap(run)(stacked, *of_each)
    each = (jax.tree.map(lambda x: x[i], composed) for i in range(len(laws)))  # noqa: B023
    return _ComposedLaws(*each, shift)
