"""A user's own mechanism: two probability mass functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import ClassVar

import numpy as np

from ..numerics.pytree import pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import broadcast, checked, known
from .base import Mechanism
from .finite_pair import FinitePair

_SUM = 1e-9  # how far from one a sum may be


@pytree
@dataclass(frozen=True)
class FromPMFs(Mechanism):
    """A mechanism with finitely many outputs, from probabilities without and with the record.

    The privacy loss of output o is log(q_o/p_o): the table is a *privacy loss distribution*.
    Outputs that are possible only under Q have loss +∞, those possible only under P loss −∞. This
    *infinity mass* is carried as such, so put there whatever a longer table would have held (the
    mass lost by *truncation*). The pair has to dominate every pair of neighbouring data sets of the
    relation it is meant for.

    Args:
        p: probabilities without the record, shape (…, outputs), summing to one along the last axis.
        q: probabilities with the record, of as many outputs; leading axes broadcast.

    Raises:
        ValueError: a value outside [0, 1], a sum that is not one within 1e-9 (sums within that are
            divided out), different numbers of outputs, leading shapes that do not broadcast, or no
            output that is possible under both: any output then gives the record away, and nothing
            is left to account for (before tracing).

    Example:
        >>> FromPMFs(p=[0.5, 0.5], q=[[0.4, 0.6], [0.3, 0.7]]).shape
        (2,)
    """

    p: Parameter
    q: Parameter

    trailing: ClassVar[dict[str, int]] = {"p": 1, "q": 1}
    sampling: ClassVar[str] = "whatever is in the given probabilities"
    examples: ClassVar[dict] = {
        "FromPMFs, same outputs": lambda: FromPMFs([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]),
        "FromPMFs, one output of Q only": lambda: FromPMFs([0.6, 0.4, 0.0], [0.5, 0.4, 0.1]),
    }

    def __post_init__(self):
        known(self, p=self.p, q=self.q)
        for name in ("p", "q"):
            value = checked(
                name, getattr(self, name), "in [0, 1]", lambda a: (a >= 0.0) & (a <= 1.0)
            )
            if value.ndim == 0:
                raise ValueError(
                    f"{name} must hold probabilities along its last axis, got the number {value:g}"
                )
            object.__setattr__(self, name, value)
        if self.p.shape[-1] != self.q.shape[-1]:
            raise ValueError(
                f"p and q must have equally many outputs, got {self.p.shape[-1]} and"
                f" {self.q.shape[-1]}"
            )
        broadcast(p=self.p[..., 0], q=self.q[..., 0])
        if np.any(np.all((self.p == 0.0) | (self.q == 0.0), axis=-1)):
            raise ValueError(
                "p and q must have an output in common: without one whoever sees an output knows"
                " all, μ = ε = ∞"
            )
        for name in ("p", "q"):
            value = getattr(self, name)
            total = _sums(value)
            if np.any(np.abs(total - 1.0) > _SUM):
                worst = total.flat[np.argmax(np.abs(total - 1.0))]
                raise ValueError(
                    f"{name} must sum to 1 along its last axis (within {_SUM:g}), got a sum of"
                    f" {worst:.12g}"
                )

    def canonical(self) -> FinitePair:
        """Losses and log masses, sorted."""
        p, q = self.p / _sums(self.p)[..., None], self.q / _sums(self.q)[..., None]
        p, q = np.broadcast_arrays(p, q)
        both, only_p, only_q = (p > 0.0) & (q > 0.0), (p > 0.0) & (q == 0.0), (p == 0.0) & (q > 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_p, log_q = np.where(both, np.log(p), -np.inf), np.where(both, np.log(q), -np.inf)
            # exact differences where p and q are close
            near = np.abs(q - p) < 0.5 * p
            loss = np.where(near, np.log1p((q - p) / p), log_q - log_p)
            minus, plus = (
                np.log(_sums(np.where(only, a, 0.0))) for only, a in ((only_p, p), (only_q, q))
            )
        return FinitePair.build(np.where(both, loss, 0.0), log_p, log_q, minus, plus)

    def replace_one(self) -> FromPMFs:
        """Itself, for a pair that is meant for replacing a record."""
        return self


def _sums(value: Array):
    """Correctly rounded sums along the last axis."""
    return np.apply_along_axis(fsum, -1, value)
