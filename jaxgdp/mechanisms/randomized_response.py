"""Randomized response over k categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import UNIT
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, nonnegative
from ..pairs.atoms import atom_cell, atom_cells
from ..pairs.cells import Cells
from ..pairs.known_curves import FiniteCurve
from .base import EVERY_RECORD, Mechanism

_LEAST = 1e-9  # a loss below this is planned for as if it were this large


@pytree
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Report one's category with probability e^ε/(e^ε + k − 1), else another (Warner 1965).

    The pair is the reports of two different true categories. Merging outputs of equal loss leaves
    three atoms: −ε, 0 and ε with P-masses e^ε, k − 2 and 1, over e^ε + k − 1. Replacing a record is
    its only neighbouring relation, and the pair is symmetric.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.
        num_categories: k, a whole number ≥ 2, broadcast against ε.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> RandomizedResponse(epsilon=1.0, num_categories=[2, 10]).shape
        (2,)
    """

    epsilon: Parameter
    num_categories: Parameter = default(2)

    symmetric: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("epsilon",)
    undifferentiable: ClassVar[str] = "that is a whole number"
    relation: ClassVar[str] = "both the same: another true answer, in either order"
    sampling: ClassVar[str] = EVERY_RECORD
    examples: ClassVar[dict] = {"RandomizedResponse(1)": lambda: RandomizedResponse(1.0)}

    def __post_init__(self) -> None:
        check_fields(self, epsilon=nonnegative, num_categories=_categories)

    def _atoms(self, epsilon: Array):
        """Losses in increasing order and log P-masses."""
        others = self.num_categories - 2.0
        log_others = xp.where(others > 0.0, xp.log(xp.where(others > 0.0, others, 1.0)), -xp.inf)
        # over e^ε, so that nothing overflows
        log_p = xp.stack([xp.zeros(()), log_others - epsilon, -epsilon])
        log_total = xp.log1p((self.num_categories - 1.0) * xp.exp(-epsilon))
        return epsilon * xp.array([-1.0, 0.0, 1.0]), log_p - log_total

    def known_curve(self) -> FiniteCurve:
        """The three atoms: losses as they were given, masses to a few roundings."""
        loss, log_p = self._atoms(np.asarray(self.epsilon, float))
        return FiniteCurve.of_atoms(loss, log_p, log_p[::-1], mass_error=16.0 * UNIT)

    def loss_nodes(self, depth: Array | float):
        """The three atoms."""
        return self._atoms(xp.maximum(self.epsilon, _LEAST))

    def tail_precision(self):
        """μ² of μ = −2Φ⁻¹(1/(1 + e^ε)), as of any ε-DP mechanism (Gomez 2025), up."""
        return square_above(pure_dp_mu(self.epsilon))

    def loss_bounds(self):
        """∓ε."""
        return -self.epsilon, self.epsilon

    def loss_unit(self):
        """ε."""
        return self.epsilon

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the atoms by cell (unbatched)."""
        loss, log_p = self._atoms(self.epsilon)
        # (logs of the number of categories are rounded in units of their own size)
        categories = 4.0 * xp.log(self.num_categories)
        return atom_cells(loss, log_p, log_p[::-1], ell, end, roundoff=categories)

    def atoms(self, ell: Array):
        """The three atoms."""
        loss, log_p = self._atoms(self.epsilon)
        return atom_cell(loss, ell), loss, log_p[::-1]

    def replace_one(self) -> RandomizedResponse:
        """Itself: the pair is that of two different true answers."""
        return self


def _categories(name: str, value: ArrayLike) -> Array:
    return checked(name, value, "a whole number >= 2", lambda a: (a >= 2.0) & (a == np.floor(a)))
