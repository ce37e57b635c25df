"""Mechanisms that the pair of Laplace noise dominates, each with an attack of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from ..numerics.errors import UNIT
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.known_curves import LaplaceCurve, reciprocal
from ..pairs.table import Table
from . import growth
from .bracketed_pair import AttackPair, OpenPair
from .laplace import Laplace

_LARGEST = 500.0  # ε of a table


@pytree
@dataclass(frozen=True)
class LaplaceWorst(Laplace):
    """The pair of Laplace noise, all of whose points are reached in one use, on data sets of their
    own; not checked.

    Attributes:
        scale: b; the losses are up to 1/b.
        attack_loss, attack_p, attack_q: losses and log masses of one attack, shape (…, atoms).
        attack_uncertain: bound on their relative error.

    Method: docs/method/noisy-maximum.md#pure
    """

    attack_loss: Array
    attack_p: Array
    attack_q: Array
    attack_uncertain: Array

    tight: ClassVar[bool] = False
    differentiable: ClassVar[tuple[str, ...]] = ()
    noise_scale: ClassVar[str] = ""
    trailing: ClassVar[dict[str, int]] = dict.fromkeys(("attack_loss", "attack_p", "attack_q"), 1)

    def known_curve(self) -> LaplaceCurve:
        """That of one use; the scale was rounded down."""
        low, high = reciprocal(float(self.scale))
        return LaplaceCurve(low * (1.0 - 8.0 * UNIT), high)

    def lower_bound_member(self) -> AttackPair:
        """The pair that the attack of the lower side is run on."""
        return AttackPair(self.attack_loss, self.attack_p, self.attack_q, self.attack_uncertain)


@pytree
@dataclass(frozen=True)
class LaplaceAbove(LaplaceWorst):
    """The same, where the pair of Laplace noise is only known to be enough."""

    def known_curve(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: both sides are of different pairs."""

    def bracketed(self) -> OpenPair | None:
        """Tables of both sides (unbatched), which are enough for one use; none of an ε whose
        masses are no doubles.
        """
        epsilon = float(1.0 / np.asarray(self.scale)) * (1.0 + 4.0 * UNIT)
        if epsilon > _LARGEST:
            return None
        some = np.asarray(self.attack_p) > -np.inf
        below = Table(
            np.asarray(self.attack_loss)[some],
            np.exp(np.asarray(self.attack_p)[some]),
            np.exp(np.asarray(self.attack_q)[some]),
            0.0,
            0.0,
            float(self.attack_uncertain) + 16.0 * UNIT,
        )
        below = below._replace(apart=2.0 * below.error)
        sides = np.empty((2, 1), object)
        sides[:, 0] = growth.table(growth.pure_lines(), epsilon, epsilon), below
        precision = np.reshape(self.tail_precision(), 1)
        return jax.tree.map(lambda a: a[0], OpenPair.build(*sides, precision))


def with_attacks(kind: type[LaplaceWorst], scale: Array, attacks: np.ndarray) -> LaplaceWorst:
    """Pairs of Laplace noise with the attacks of object arrays of tables, of one shape."""
    rows: Sequence[Table] = list(attacks.flat)
    number = max(len(table.loss) for table in rows)
    shape = attacks.shape

    def column(values: Sequence[Array], empty: float | None) -> Array:
        padded = [
            np.pad(a, (0, number - len(a)), mode="edge")
            if empty is None
            else np.pad(a, (0, number - len(a)), constant_values=empty)
            for a in values
        ]
        return np.stack(padded).reshape(*shape, number)

    return kind(
        np.asarray(scale),
        column([table.loss for table in rows], None),
        column([np.log(table.p) for table in rows], -np.inf),
        column([np.log(table.q) for table in rows], -np.inf),
        np.array([table.error for table in rows]).reshape(shape),
    )
