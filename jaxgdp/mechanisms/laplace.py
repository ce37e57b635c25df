"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.normal import ndtri_half_plus, square_above
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import positive
from ..pairs.atoms import atom_cell, atom_cells
from ..pairs.cells import Cells
from ..pairs.known_curves import LaplaceCurve, reciprocal
from .base import EVERY_RECORD, Mechanism
from .subsampled_laplace import SubsampledLaplace

_GAUSS = np.polynomial.legendre.leggauss(62)


@pytree
@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on a query of sensitivity one: pure (1/b)-DP (Dwork et al. 2006).

    The pair is Lap(0, b) against Lap(1, b). With L = 1/b the privacy loss is −L with P-mass ½
    (outputs below 0), L with P-mass ½·e^{−L} (outputs above 1), and in between it has density
    ¼·e^{−(ℓ + L)/2} under P.

    Args:
        scale: b, scale of the noise over the sensitivity; > 0, any shape.

    Raises:
        ValueError: b is not a finite number > 0 (before tracing).

    Example:
        >>> Laplace(scale=[1.0, 2.0]).shape
        (2,)
    """

    scale: Parameter

    symmetric: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("scale",)
    relation: ClassVar[str] = "leaving out and adding a record"
    sampling: ClassVar[str] = EVERY_RECORD
    noise_scale: ClassVar[str] = "scale"
    examples: ClassVar[dict] = {"Laplace(1)": lambda: Laplace(1.0)}

    def __post_init__(self) -> None:
        check_fields(self, scale=positive)

    def subsampled(self, sampling_prob: float) -> SubsampledLaplace:
        """The subsampled Laplace of the same noise."""
        return SubsampledLaplace(self.scale, sampling_prob)

    def noise_tail(self, distance: float) -> float:
        """½·e^{−distance/b}, and ½ where the distance is negative."""
        return 0.5 * np.exp(-max(distance, 0.0) / float(self.scale))

    def known_curve(self) -> LaplaceCurve:
        """Its three pieces."""
        return LaplaceCurve(*reciprocal(float(self.scale)))

    def loss_nodes(self, depth: Array | float):
        """Both atoms, and Gauss-Legendre nodes between them."""
        largest = 1.0 / self.scale
        ends = xp.stack([-largest, largest])
        at_ends = np.log(0.5) + xp.stack([xp.zeros(()), -largest])
        loss = largest * _GAUSS[0]
        weight = xp.log(_GAUSS[1]) + xp.log(largest) + np.log(0.25) - 0.5 * (loss + largest)
        join = lambda a, ends: xp.concatenate([ends[:1], a, ends[1:]])
        return join(loss, ends), join(weight, at_ends)

    def tail_precision(self):
        """μ² with μ = 2Φ⁻¹(1 − ½·e^{−1/(2b)}), where the error rates are equal: largest μ of the
        curve (Liu 2022); rounded up.
        """
        half = 0.5 / self.scale
        return square_above(2.0 * ndtri_half_plus(-0.5 * xp.expm1(-half), np.log(0.5) - half))

    def loss_bounds(self):
        """∓1/b."""
        largest = 1.0 / self.scale
        return -largest, largest

    def loss_unit(self):
        """1/b: the atoms are at ∓1/b."""
        return 1.0 / self.scale

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between points ``ell``, and connect-the-dots shares.

        A stretch (a, c] between −L and L has P-mass ½·e^{−(a + L)/2}·(1 − e^{−(c − a)/2}) and
        Q-mass e^{(a + c)/2} times that, so both it and the atoms count as atoms, at (a + c)/2 and
        at ∓L. At the first cell past ``end``, the stretch of Q-mass beyond is lost as it
        is for atoms."""
        largest = 1.0 / self.scale
        # (a point at an end moves with it: a derivative takes the whole of what is there)
        inside = xp.where(xp.abs(ell) >= largest, xp.sign(ell) * largest, ell)
        bound = xp.stack([-largest, largest])
        edge = xp.concatenate([bound[:1], inside, bound[1:]])
        a, width = edge[:-1], xp.diff(edge)
        some = width > 0.0
        mass = xp.log(-xp.expm1(xp.where(some, -0.5 * width, -1.0)))
        log_x = xp.where(some, np.log(0.5) - 0.5 * (a + largest) + mass, -xp.inf)
        middle = a + 0.5 * width
        loss = xp.concatenate([middle, bound])
        log_p = xp.concatenate([log_x, np.log(0.5) - 0.5 * (bound + largest)])
        # (1/b is rounded, and so is what is taken off it)
        return atom_cells(loss, log_p, log_p + loss, ell, end, roundoff=largest)

    def atoms(self, ell: Array):
        """Those at ∓1/b."""
        largest = 1.0 / self.scale
        bound = xp.stack([-largest, largest])
        return atom_cell(bound, ell), bound, np.log(0.5) - 0.5 * (largest - bound)

    def replace_one(self) -> Laplace:
        """Replacing a record moves the query by up to 2: the scale over that is b/2."""
        return Laplace(self.scale / 2.0)
