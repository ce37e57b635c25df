"""Whatever is (ε, δ)-differentially private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import UNIT
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, nonnegative
from ..pairs.atoms import atom_cell, atom_cells
from ..pairs.cells import Cells
from ..pairs.known_curves import FiniteCurve
from .base import FIXED_GUARANTEE, Mechanism

_LEAST = 1e-9  # a loss below this is planned for as if it were this large


@pytree
@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any (ε, δ)-DP mechanism, known only as such (Kairouz et al. 2015, Theorem 3.4).

    Its dominating pair has four outputs: with probability δ one that is possible only under Q (loss
    +∞) or only under P (−∞), the *infinity mass*, else binary randomized response. If δ > 0, no
    finite μ holds at every FPR (Gomez 2025, Proposition 6.2). The pair holds for whatever
    neighbouring relation (ε, δ) was stated for.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.
        delta: δ in [0, 1), broadcast against ε.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> ApproximateDP(epsilon=1.0, delta=[1e-6, 1e-5]).shape
        (2,)
    """

    epsilon: Parameter
    delta: Parameter

    symmetric: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    relation: ClassVar[str] = "those that (ε, δ) was stated for"
    sampling: ClassVar[str] = FIXED_GUARANTEE
    examples: ClassVar[dict] = {"ApproximateDP(1, 1e-6)": lambda: ApproximateDP(1.0, 1e-6)}

    def __post_init__(self) -> None:
        check_fields(self, epsilon=nonnegative, delta=_below_one)

    def _atoms(self, epsilon: Array):
        """Finite losses in increasing order and log P-masses."""
        log_p = (
            xp.log1p(-self.delta) - xp.stack([xp.zeros(()), epsilon]) - xp.log1p(xp.exp(-epsilon))
        )
        return epsilon * xp.array([-1.0, 1.0]), log_p

    def known_curve(self) -> FiniteCurve:
        """The two finite atoms, with δ at both infinities."""
        loss, log_p = self._atoms(np.asarray(self.epsilon, float))
        with np.errstate(divide="ignore"):
            log_delta = np.log(self.delta)
        return FiniteCurve.of_atoms(
            loss,
            log_p,
            log_p[::-1],
            mass_error=16.0 * UNIT,
            log_p_minus=log_delta,
            log_q_plus=log_delta,
        )

    def loss_nodes(self, depth: Array | float):
        """The two finite atoms."""
        return self._atoms(xp.maximum(self.epsilon, _LEAST))

    def tail_precision(self):
        """∞ where δ > 0, else that of pure ε-DP."""
        return xp.where(self.delta > 0.0, xp.inf, square_above(pure_dp_mu(self.epsilon)))

    def loss_bounds(self):
        """∓ε."""
        return -self.epsilon, self.epsilon

    def loss_unit(self):
        """ε."""
        return self.epsilon

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the atoms by cell, with δ at both infinities (unbatched).

        Method: docs/method/dominating.md#profile
        """
        loss, log_p = self._atoms(self.epsilon)
        some = self.delta > 0.0
        log_delta = xp.where(some, xp.log(xp.where(some, self.delta, 1.0)), -xp.inf)
        return atom_cells(
            loss, log_p, log_p[::-1], ell, end, log_p_minus=log_delta, log_q_plus=log_delta
        )

    def atoms(self, ell: Array):
        """The two finite atoms."""
        loss, log_p = self._atoms(self.epsilon)
        return atom_cell(loss, ell), loss, log_p[::-1]

    def replace_one(self) -> ApproximateDP:
        """Itself, for (ε, δ) stated for replacing a record."""
        return self


def _below_one(name: str, value: ArrayLike) -> Array:
    return checked(name, value, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0))
