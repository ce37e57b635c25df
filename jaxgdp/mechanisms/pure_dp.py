"""Whatever is ε-differentially private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Parameter
from ..numerics.validation import nonnegative
from .base import FIXED_GUARANTEE, Mechanism
from .randomized_response import RandomizedResponse


@pytree
@dataclass(frozen=True)
class PureDP(Mechanism):
    """Any ε-DP mechanism of which nothing else is known: its dominating pair is binary randomized
    response (Kairouz et al. 2015).

    The pair holds for whatever neighbouring relation ε was stated for.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.

    Raises:
        ValueError: ε is negative or not a finite number (before tracing).

    Example:
        >>> PureDP(epsilon=[0.1, 1.0]).shape
        (2,)
    """

    epsilon: Parameter

    differentiable: ClassVar[tuple[str, ...]] = ("epsilon",)
    relation: ClassVar[str] = "those that ε was stated for"
    sampling: ClassVar[str] = FIXED_GUARANTEE
    examples: ClassVar[dict] = {"PureDP(1)": lambda: PureDP(1.0)}

    def __post_init__(self) -> None:
        check_fields(self, epsilon=nonnegative)

    def canonical(self) -> RandomizedResponse:
        """Binary randomized response, so that compositions stack both kinds together."""
        return RandomizedResponse(self.epsilon, np.full((), 2.0))

    def replace_one(self) -> PureDP:
        """Itself, for an ε stated for replacing a record."""
        return self
