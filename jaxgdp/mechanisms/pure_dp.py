"""Whatever is ε-differentially private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numerics.pytree import pytree
from ..numerics.validation import nonnegative
from .base import Mechanism
from .randomized_response import RandomizedResponse


@pytree
@dataclass(frozen=True)
class PureDP(Mechanism):
    """Any ε-DP mechanism, known only as such: its dominating pair is binary randomized response
    (Kairouz et al. 2015).

    The pair holds for whatever neighbouring relation ε was stated for.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.

    Raises:
        ValueError: ε is negative or not a finite number (before tracing).

    Example:
        >>> PureDP(epsilon=[0.1, 1.0]).shape
        (2,)
    """

    epsilon: Any

    differentiable: ClassVar[tuple[str, ...]] = ("epsilon",)
    relation: ClassVar[str] = "those that ε was stated for"

    def __post_init__(self):
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))

    def canonical(self) -> RandomizedResponse:
        """Binary randomized response, so that compositions stack both kinds together."""
        return RandomizedResponse(self.epsilon, np.full((), 2.0))

    def replace_one(self) -> PureDP:
        """Itself, for an ε stated for replacing a record."""
        return self
