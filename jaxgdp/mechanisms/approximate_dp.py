"""Whatever is (ε, δ)-differentially private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp

from ..normal import ndtri_exp
from ..validation import broadcast, checked, nonnegative
from .atoms import atom_cells
from .base import Mechanism
from .cells import Cells
from .pytree import pytree

_LEAST = 1e-9  # a loss below this is planned for as if it were this large


@pytree
@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any (ε, δ)-DP mechanism, known only as such (Kairouz et al. 2015, Theorem 3.4).

    Its dominating pair has four outputs: with probability δ one that only Q shows (loss +∞) or only P shows (−∞), else
    binary randomized response. Where δ > 0 no finite μ holds at every FPR (Gomez 2025, Proposition 6.2). The
    pair holds for whatever neighbouring relation (ε, δ) was stated for.

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

    def __post_init__(self):
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checked("delta", self.delta, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))
        broadcast(epsilon=self.epsilon, delta=self.delta)

    def _atoms(self, epsilon):
        """Finite losses in increasing order and log P-masses."""
        log_p = jnp.log1p(-self.delta) - jnp.stack([jnp.zeros(()), epsilon]) - jnp.log1p(jnp.exp(-epsilon))
        return epsilon * jnp.array([-1.0, 1.0]), log_p

    def loss_nodes(self, depth):
        """The two finite atoms."""
        return self._atoms(jnp.maximum(self.epsilon, _LEAST))

    def tail_precision(self):
        """∞ where δ > 0, else that of pure ε-DP."""
        return jnp.where(self.delta > 0.0, jnp.inf, 4.0 * ndtri_exp(-jnp.logaddexp(0.0, self.epsilon)) ** 2)

    def loss_bounds(self):
        """∓ε."""
        return -self.epsilon, self.epsilon

    def loss_unit(self):
        """ε."""
        return self.epsilon

    def cells(self, ell, end) -> Cells:
        """Exact masses of the atoms by cell, with δ at both infinities (unbatched)."""
        loss, log_p = self._atoms(self.epsilon)
        some = self.delta > 0.0
        log_delta = jnp.where(some, jnp.log(jnp.where(some, self.delta, 1.0)), -jnp.inf)
        return atom_cells(loss, log_p, log_p[::-1], ell, end, log_p_minus=log_delta, log_q_plus=log_delta)

    def replace_one(self) -> ApproximateDP:
        """Itself, for (ε, δ) stated for replacing a record."""
        return self
