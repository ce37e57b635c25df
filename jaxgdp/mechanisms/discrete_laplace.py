"""The discrete Laplace (two-sided geometric) mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics.errors import UNIT
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Parameter
from ..numerics.validation import positive
from ..pairs.known_curves import FiniteCurve
from .base import EVERY_RECORD, Mechanism
from .from_pmfs import FromPMFs
from .randomized_response import RandomizedResponse


@pytree
@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Noise on the integers with mass ∝ e^{−|k|/b}, sensitivity one (Ghosh et al. 2009).

    Every integer has privacy loss 1/b or −1/b, and Pr[k ≥ 1] = 1/(1 + e^{1/b}): one use is binary
    randomized response at ε = 1/b, the dominating pair of pure ε-DP.

    Args:
        scale: b > 0, any shape.

    Raises:
        ValueError: b is not a finite number > 0 (before tracing).

    Example:
        >>> DiscreteLaplace(scale=[1.0, 2.0]).shape
        (2,)
    """

    scale: Parameter

    differentiable: ClassVar[tuple[str, ...]] = ("scale",)
    relation: ClassVar[str] = "leaving out and adding a record"
    sampling: ClassVar[str] = EVERY_RECORD
    noise_scale: ClassVar[str] = "scale"
    examples: ClassVar[dict] = {"DiscreteLaplace(1)": lambda: DiscreteLaplace(1.0)}

    def __post_init__(self) -> None:
        check_fields(self, scale=positive)

    def canonical(self) -> RandomizedResponse:
        """Binary randomized response at ε = 1/b."""
        return ReciprocalResponse(1.0 / self.scale, np.full((), 2.0), self.scale)

    def replace_one(self) -> FromPMFs:
        """Replacing a record moves the query by up to 2.

        With r = e^{−1/b}: loss −2/b below 1, 0 at 1 and 2/b above, of P-masses 1, r − r² and r²,
        over 1 + r."""
        r = np.exp(-1.0 / np.asarray(self.scale, dtype=float))
        p = (
            np.stack([np.ones_like(r), -r * np.expm1(-1.0 / self.scale), r * r], axis=-1)
            / (1.0 + r)[..., None]
        )
        return FromPMFs(p, p[..., ::-1])


@pytree
@dataclass(frozen=True)
class ReciprocalResponse(RandomizedResponse):
    """Binary randomized response at ε = 1/b, which is no double as a rule; not checked.

    Attributes:
        reciprocal: b.
    """

    reciprocal: Parameter = default(1.0)

    def __post_init__(self) -> None:
        """Nothing: b was checked."""

    def known_curve(self) -> FiniteCurve:
        """The atoms at ∓1/b, with what the double next to it leaves."""
        loss, log_p = self._atoms(np.asarray(self.epsilon, float))
        with np.errstate(over="ignore"):
            rest = float(1.0 / np.longdouble(self.reciprocal) - np.longdouble(self.epsilon))
        unit = 2.0 * float(np.finfo(np.longdouble).eps)
        return FiniteCurve.of_atoms(
            loss,
            log_p,
            log_p[::-1],
            mass_error=20.0 * UNIT,
            loss_error=unit * np.abs(loss),
            loss_rest=rest * np.sign(loss),
        )
