"""A record in one of t steps of any mechanism, as a mechanism."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import BRACKETED, UNIT
from ...numerics.pytree import pytree
from ...numerics.recent import Recent
from ...numerics.shapes import Array
from ...pairs.cells import Cells
from ...pairs.table import Table
from ..base import Mechanism
from ..bracketed_pair import AttackPair, OpenPair, TailPair
from ..composition import Composition, compose
from .one_of_any import ONE_SIDED, tables
from .step_law import step_law

_TABLES = Recent(most=2**26)
_INFINITE = ONE_SIDED - 100.0  # a loss of an attack that stands for an infinite one


@pytree
@dataclass(frozen=True)
class EndedAttack(AttackPair):
    """An attack with outcomes that only one law has; only its cells are requested.

    Attributes:
        log_p_minus, log_q_plus: log masses of those outcomes, rounded down.
    """

    log_p_minus: Array
    log_q_plus: Array

    trailing: ClassVar[dict[str, int]] = dict.fromkeys(("loss", "log_p", "log_q"), 1)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Masses of the atoms by cell, with the mass at both infinities (unbatched)."""
        cells = super().cells(ell, end)
        none = xp.zeros(cells.log_x.shape[0] - 1) - xp.inf
        more_x = xp.concatenate([xp.reshape(self.log_p_minus, (1,)), none])
        more_y = xp.concatenate([none, xp.reshape(self.log_q_plus, (1,))])
        return cells._replace(
            log_x=xp.logaddexp(cells.log_x, more_x),
            log_y=xp.logaddexp(cells.log_y, more_y),
            log_p_minus=self.log_p_minus,
            log_q_plus=self.log_q_plus,
        )


@pytree
@dataclass(frozen=True)
class AllocatedPair(TailPair):
    """The tables of one of many steps; not checked.

    Attributes:
        attack_minus, attack_plus: log masses of the attack's outcomes that only one law has,
            rounded down; its tables hold them at losses that are next to infinite.
        largest, largest_swapped: losses that the pair, and the swapped one, never exceeds.
    """

    attack_minus: Array
    attack_plus: Array
    largest: Array
    largest_swapped: Array

    def lower_bound_member(self) -> EndedAttack:
        """The pair that the attack of the lower side is run on."""
        finite = xp.abs(self.attack_loss) < _INFINITE
        log_p, log_q = (xp.where(finite, a, -xp.inf) for a in (self.attack_p, self.attack_q))
        loss = xp.where(finite, self.attack_loss, 0.0)
        return EndedAttack(
            loss, log_p, log_q, self.attack_uncertain, self.attack_minus, self.attack_plus
        )

    def largest_losses(self) -> tuple[Array, Array]:
        """The last loss in either order, ∞ with mass at infinity."""
        return self.largest, self.largest_swapped


def single_use(mechanism: Any, num_selected: Array) -> Composition:
    """The mechanism of one step, as a composition of one use.

    Raises:
        ValueError: it is no mechanism, or used more than once, or more than one step is chosen;
            names the argument.
    """
    found = mechanism if isinstance(mechanism, Composition) else None
    if isinstance(mechanism, Mechanism):
        found = compose([mechanism])
    if found is None or len(found.mechanisms) != 1 or np.any(np.asarray(found.counts[0]) != 1.0):
        kind = type(mechanism).__name__ if found is None else "a composition of several"
        raise ValueError(f"mechanism must be one mechanism, the one of a single step, got {kind}")
    if np.any(np.asarray(num_selected) != 1):
        raise ValueError(
            "num_selected must be 1 where mechanism is given: several steps of many are known for"
            f" Gaussian noise only, got {np.max(num_selected):g}"
        )
    return Composition(found.mechanisms, (np.ones(()),))


def gathered(
    mechanism: Mechanism, num_steps: Any, shape: tuple[int, ...], count: Array
) -> list[tuple[Mechanism, Array]]:
    """The mechanism itself where there is one step, else tables of one of many.

    Raises:
        ValueError: the mechanism is no single pair; names it.
    """
    steps = np.broadcast_to(np.asarray(num_steps, float), shape)
    if np.all(steps == 1.0):
        return list(mechanism.canonical().gathered(count))
    above, below = np.empty(shape, object), np.empty(shape, object)
    precision, limit = np.empty(shape), np.empty(shape)
    for index in np.ndindex(shape):
        pair = _pair(_element(mechanism, shape, index))
        key = _key(pair), int(steps[index])
        make = lambda pair=pair, number=key[1]: _made(pair, number)
        above[index], below[index], precision[index], limit[index] = _TABLES.get(key, make)
    pair = TailPair.of(OpenPair.build(above, below, precision), limit)
    fields = {field.name: getattr(pair, field.name) for field in dataclasses.fields(pair)}
    ends = np.array([_ends(a, b) for a, b in zip(above.flat, below.flat, strict=True)])
    ends = np.moveaxis(ends.reshape(*shape, 4), -1, 0)
    names = ("attack_minus", "attack_plus", "largest", "largest_swapped")
    fields.update(zip(names, ends, strict=True))
    return [(AllocatedPair(**fields), np.asarray(count))]


def _ends(above: Table, below: Table) -> tuple[float, float, float, float]:
    """The last four fields of :class:`AllocatedPair`."""
    less = 1.0 - 2.0 * below.error - (len(below.loss) + 4.0) * UNIT
    with np.errstate(divide="ignore"):
        minus = float(np.log(np.sum(below.p[below.loss < -_INFINITE]) * less))
        plus = float(np.log(np.sum(below.q[below.loss > _INFINITE]) * less))
    room = BRACKETED * UNIT
    highest = float(above.loss[-1]) + room if above.q_plus == 0.0 else np.inf
    lowest = -float(above.loss[0]) + room if above.p_minus == 0.0 else np.inf
    return minus, plus, highest, lowest


def _limit(pair: Mechanism) -> float:
    """limsup ε/√(−2 log δ(ε)), squared: that of one step, where its losses are bounded, as then
    those of many are; else not known.
    """
    found = float(pair.limit_precision())
    return found if np.isinf(found) or found == 0.0 else np.nan


def _element(mechanism: Mechanism, shape: tuple[int, ...], index: tuple[int, ...]) -> Mechanism:
    """The mechanism at one index of a shape that it broadcasts to."""
    leaves, structure = jax.tree.flatten(mechanism)
    inner = [kept for _, kept in mechanism.parameter_shapes().values()]
    taken = [
        np.broadcast_to(np.asarray(leaf), shape + kept)[index]
        for leaf, kept in zip(leaves, inner, strict=True)
    ]
    return jax.tree.unflatten(structure, taken)


def is_single(mechanism: Mechanism) -> bool:
    """Whether one use of a mechanism is one pair."""
    parts = mechanism.canonical().gathered(np.ones(()))
    return len(parts) == 1 and bool(np.all(np.asarray(parts[0][1]) == 1.0))


def _pair(mechanism: Mechanism) -> Mechanism:
    """The pair of one use."""
    if not is_single(mechanism):
        raise ValueError(
            "mechanism must be a single pair to be allocated at random, but one use of"
            f" {type(mechanism).__name__} is a composition of several"
        )
    return mechanism.canonical().gathered(np.ones(()))[0][0]


def _key(pair: Mechanism) -> tuple:
    leaves, structure = jax.tree.flatten(pair)
    return str(structure), tuple(
        (np.shape(leaf), np.asarray(leaf, float).tobytes()) for leaf in leaves
    )


def _made(pair: Mechanism, number: int) -> tuple[Table, Table, float, float]:
    """Tables from above and below, the square of a bound on μ, and the limit."""
    with np.errstate(all="ignore"):  # (losses that are infinite, and masses that are no doubles)
        # (whoever is told which step it is sees one use; and no step shows a larger loss)
        return *tables(step_law(pair), number), float(pair.tail_precision()), _limit(pair)
