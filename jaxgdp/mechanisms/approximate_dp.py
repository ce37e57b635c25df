"""Whatever is (ε, δ)-differentially private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..numerics import namespace as xp
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import pytree
from ..numerics.validation import broadcast, checked, nonnegative
from ..pairs.atoms import atom_cell, atom_cells
from ..pairs.cells import Cells
from .base import Mechanism

_LEAST = 1e-9  # a loss below this is planned for as if it were this large


@pytree
@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any (ε, δ)-DP mechanism, known only as such (Kairouz et al. 2015, Theorem 3.4).

    Its dominating pair has four outputs: with probability δ one that only Q shows (loss +∞) or only
    P shows (−∞), else binary randomized response. Where δ > 0 no finite μ holds at every FPR (Gomez
    2025, Proposition 6.2). The pair holds for whatever neighbouring relation (ε, δ) was stated for.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.
        delta: δ in [0, 1), broadcast against ε.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> ApproximateDP(epsilon=1.0, delta=[1e-6, 1e-5]).shape
        (2,)
    """

    epsilon: Any
    delta: Any

    symmetric: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    relation: ClassVar[str] = "those that (ε, δ) was stated for"

    def __post_init__(self):
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(
            self,
            "delta",
            checked("delta", self.delta, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)),
        )
        broadcast(epsilon=self.epsilon, delta=self.delta)

    def _atoms(self, epsilon):
        """Finite losses in increasing order and log P-masses."""
        log_p = (
            xp.log1p(-self.delta) - xp.stack([xp.zeros(()), epsilon]) - xp.log1p(xp.exp(-epsilon))
        )
        return epsilon * xp.array([-1.0, 1.0]), log_p

    def loss_nodes(self, depth):
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

    def cells(self, ell, end) -> Cells:
        """Exact masses of the atoms by cell, with δ at both infinities (unbatched).

        Method: docs/method/dominating.md#profile
        """
        loss, log_p = self._atoms(self.epsilon)
        some = self.delta > 0.0
        log_delta = xp.where(some, xp.log(xp.where(some, self.delta, 1.0)), -xp.inf)
        return atom_cells(
            loss, log_p, log_p[::-1], ell, end, log_p_minus=log_delta, log_q_plus=log_delta
        )

    def atoms(self, ell):
        """The two finite atoms."""
        loss, log_p = self._atoms(self.epsilon)
        return atom_cell(loss, ell), loss, log_p[::-1]

    def replace_one(self) -> ApproximateDP:
        """Itself, for (ε, δ) stated for replacing a record."""
        return self
