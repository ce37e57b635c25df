"""The Poisson-subsampled Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import PRECISION
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import positive, probability
from ..pairs.cells import Cells
from ..pairs.known_curves import LaplaceCurve, SampledCurve, reciprocal
from ..pairs.mixture import log_mixture, log_unmixed, unmixed_below
from ..pairs.peak import bounded_mu, bounded_nodes
from ..pairs.stretches import position, stretch_cells
from .base import Mechanism, poisson_words


@pytree
@dataclass(frozen=True)
class SubsampledLaplace(Mechanism):
    """Laplace noise on a query of sensitivity one over a Poisson sample of the records.

    The pair is P = Lap(0, b) against Q = (1 − p)·Lap(0, b) + p·Lap(1, b). With v = log of the
    Laplace likelihood ratio, from −1/b (P-mass ½) to 1/b (P-mass ½·e^{−1/b}) and of density
    ¼·e^{−(v + 1/b)/2} under P in between, the privacy loss is log(1 − p + p·e^v).

    Args:
        scale: b, scale of the noise over the sensitivity; > 0, any shape.
        sampling_prob: p in (0, 1], broadcast against b; 1 is the plain Laplace mechanism.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> SubsampledLaplace(scale=1.0, sampling_prob=[0.01, 0.1]).shape
        (2,)
    """

    scale: Parameter
    sampling_prob: Parameter

    differentiable: ClassVar[tuple[str, ...]] = ("scale", "sampling_prob")
    relation: ClassVar[str] = "leaving out and adding a record"
    noise_scale: ClassVar[str] = "scale"
    examples: ClassVar[dict] = {"SubsampledLaplace(1, 0.1)": lambda: SubsampledLaplace(1.0, 0.1)}

    def __post_init__(self) -> None:
        check_fields(self, scale=positive, sampling_prob=probability)

    def describe_sampling(self) -> str:
        """Poisson sampling, unless every record takes part."""
        return poisson_words(self.sampling_prob)

    def subsampled(self, sampling_prob: float) -> SubsampledLaplace:
        """A sample of a sample: the product of both probabilities."""
        return SubsampledLaplace(self.scale, sampling_prob * self.sampling_prob)

    def known_curve(self) -> SampledCurve:
        """The sampled curve of the Laplace mechanism."""
        base = LaplaceCurve(*reciprocal(float(self.scale)))
        return SampledCurve.of(base, self.sampling_prob)

    def loss_nodes(self, depth: Array | float):
        """Means of narrow cells."""
        return bounded_nodes(self)

    def tail_precision(self):
        """μ² of a pair on a fine lattice that dominates one use."""
        return bounded_mu(self) ** 2

    def loss_bounds(self):
        """log(1 − p + p·e^{∓1/b}), rounded outward."""
        largest = (1.0 + PRECISION) / self.scale
        return self._loss(-largest) * (1.0 + PRECISION), self._loss(largest) * (1.0 + PRECISION)

    def _loss(self, v: Array):
        """log(1 − p + p·e^v)."""
        return log_mixture(self.sampling_prob, v)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between points ``ell``, and connect-the-dots shares.

        A stretch of v from a to c has P-mass ½·e^{−(a + 1/b)/2}·(1 − e^{−(c − a)/2}) and Lap(1, b)
        mass e^{(a + c)/2} times that: it acts as an atom at v = (a + c)/2. Shares are taken in the
        likelihood ratio r = e^v = 1 + expm1(ℓ)/p, in which p drops out."""
        p, largest = self.sampling_prob, 1.0 / self.scale
        v = log_unmixed(p, ell)
        bound = xp.stack([-largest, largest])
        # (a point at an end moves with it: a derivative takes the whole of what is there)
        edge = xp.concatenate(
            [
                bound[:1],
                xp.where(v >= largest, largest, xp.where(v <= -largest, -largest, v)),
                bound[1:],
            ]
        )
        a, width = edge[:-1], xp.diff(edge)
        some = width > 0.0
        w = xp.where(some, width, 1.0)
        body = np.log(0.5) - 0.5 * (a + largest) + xp.log(-xp.expm1(-0.5 * w))
        body = xp.where(some, body, -xp.inf)
        middle = a + 0.5 * width
        # the two atoms, each in a cell of its own
        where = xp.searchsorted(v, bound)
        mass = np.log(0.5) - 0.5 * (bound + largest)

        log_x = body
        log_y1 = body + middle
        for i in (0, 1):
            log_x = xp.at_set(log_x, where[i], xp.logaddexp(log_x[where[i]], mass[i]))
            log_y1 = xp.at_set(log_y1, where[i], xp.logaddexp(log_y1[where[i]], mass[i] + bound[i]))
        filled = log_x > -xp.inf
        rho = xp.where(filled, log_y1 - xp.where(filled, log_x, 0.0), 0.0)

        # shares, in units of the upper end's r; below ℓ = log(1 − p) the lower end's r is not
        # positive
        lower, upper = v[:-1], v[1:]
        inside = lower > -xp.inf
        top = xp.where(upper > -xp.inf, upper, 0.0)
        below = unmixed_below(p, ell[:-1], top)

        def share(u: Array):
            near = position(u, xp.where(inside, lower, -1.0), xp.where(inside, upper, 1.0))
            deep = (xp.exp(xp.minimum(u - top, 0.0)) - below) / xp.where(
                below < 1.0, 1.0 - below, 1.0
            )
            return xp.where(inside, near, xp.clip(deep, 0.0, 1.0))

        up = (
            share(middle[1:-1])
            * xp.exp(xp.where(filled, body - xp.where(filled, log_x, 0.0), -xp.inf))[1:-1]
        )
        for i in (0, 1):
            here = (where[i] > 0) & (where[i] < ell.shape[0])
            k = xp.clip(where[i] - 1, 0, ell.shape[0] - 2)
            atom = share(xp.broadcast_to(bound[i], lower.shape))[k]
            weight = xp.exp(xp.where(here, mass[i] - log_x[where[i]], -xp.inf))
            up = xp.at_add(up, k, weight * atom)
        return stretch_cells(
            log_x, self._loss(rho), ell, end, share=xp.clip(up, 0.0, 1.0), jitter=xp.abs(a)
        )

    def atoms(self, ell: Array):
        """Those at the ends, v = ∓1/b."""
        largest = 1.0 / self.scale
        bound = xp.stack([-largest, largest])
        loss = self._loss(bound)
        log_ratio = log_unmixed(self.sampling_prob, ell)
        return xp.searchsorted(log_ratio, bound), loss, np.log(0.5) - 0.5 * (bound + largest) + loss
