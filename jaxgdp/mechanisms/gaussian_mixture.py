"""Gaussian noise on a sum that a user moves by a random amount: groups of records, and more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import PRECISION, UNIT
from ..numerics.normal import LOG_SQRT_2PI
from ..numerics.pytree import put, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import broadcast, checked, nonnegative, positive
from ..pairs.cells import Cells
from ..pairs.known_curves import SampledCurve, mixture_curve
from .base import Mechanism
from .mixture_cells import Shifts, loss_of_output, mixture_cells, shifts_of

_NODES = 256  # quadrature nodes for cumulants; they steer tilts and windows, never a certificate
_LEAST = 1e-307  # μ² as a double
_MOST_KNOWN = 65  # shifts up to which one use is answered in closed form
_SUM = 1e-9  # by which given weights may miss the sum 1


@pytree
@dataclass(frozen=True)
class GaussianMixture(Mechanism):
    """Gaussian noise on a sum that moves by a random shift: w_i is the probability of c_i.

    The pair is P = N(0, σ²) against Q = Σ_i w_i·N(c_i, σ²), in the order of ``SubsampledGaussian``:
    "remove" takes the mixture first. The shifts are not negative, so the privacy loss ℓ(o) =
    log Σ_i w_i·e^{c_i·o/σ² − c_i²/(2σ²)} rises with the output o, and every event that matters is a
    half-line. The shifts (0, 1) with weights (1 − p, p) are ``SubsampledGaussian(σ, p)``. It
    dominates sums of vectors that are shifted by c_i in norm (Choquette-Choo, Ganesh, Steinke &
    Thakurta 2024, Corollary 4.7).

    Args:
        noise_multiplier: σ, standard deviation of the noise; > 0, any shape.
        shifts: c_i, finite numbers ≥ 0; the last axis belongs to one mechanism.
        weights: w_i ≥ 0, along the last axis as many as shifts and with the sum 1 (up to 1e-9; the
            sum is divided out). Leading axes of all three broadcast.

    Raises:
        ValueError: an argument is out of range, shifts of both signs, weights that do not sum to 1,
            different numbers of shifts and weights, or shapes that do not broadcast (before
            tracing).

    Example:
        >>> import jaxgdp
        >>> twice = GaussianMixture(1.0, shifts=[0.0, 1.0, 2.0], weights=[0.81, 0.18, 0.01])
        >>> run = jaxgdp.compose([(twice, 100)])
        >>> bool(jaxgdp.epsilon(run, delta=1e-5).contains(16.2309))
        True

    Method: docs/method/dominating.md#mixtures
    """

    noise_multiplier: Parameter
    shifts: Parameter
    weights: Parameter

    atomic = False
    sums_to_one: ClassVar[bool] = True
    trailing: ClassVar[dict[str, int]] = {"shifts": 1, "weights": 1}
    undifferentiable: ClassVar[str] = "the edges of its cells are found by iteration"
    relation: ClassVar[str] = "leaving out and adding a user"
    beside_noise: ClassVar[str] = "all records of a user"
    sampling: ClassVar[str] = "a random shift, drawn anew at every step, as its weights have it"
    noise_scale: ClassVar[str] = "noise_multiplier"
    examples: ClassVar[dict] = {
        "GaussianMixture(1, 2 records at 0.1)": lambda: GaussianMixture(
            1.0, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01]
        )
    }

    def __post_init__(self) -> None:
        put(
            self,
            noise_multiplier=positive("noise_multiplier", self.noise_multiplier),
            shifts=_shifts("shifts", self.shifts),
            weights=_weights("weights", self.weights),
        )
        number = np.shape(self.shifts)[-1], np.shape(self.weights)[-1]
        if number[0] != number[1]:
            raise ValueError(
                f"weights must be as many as shifts, {number[0]}, along the last axis, got"
                f" {number[1]}"
            )
        leading = self.shifts[..., 0], self.weights[..., 0]
        broadcast(noise_multiplier=self.noise_multiplier, shifts=leading[0], weights=leading[1])

    def tau(self) -> Shifts:
        """Shifts in standard deviations, and their weights (unbatched)."""
        return shifts_of(self.shifts / self.noise_multiplier, self.weights)

    def loss_nodes(self, depth: Array | float) -> tuple[Array, Array]:
        """Equally spaced outputs out to where both P and Q have a tail of e^{−depth}."""
        law = self.tau()
        tail = xp.sqrt(2.0 * depth)
        low, high = -tail - 1.0, tail + xp.maximum(law.largest, 1e-300)
        step = (high - low) / (_NODES - 1)
        z = low + step * xp.arange(_NODES)
        return loss_of_output(law, z), xp.log(step) - 0.5 * z * z - LOG_SQRT_2PI

    def gaussian_precision(self) -> Array:
        """(c/σ)² where there is one shift, c, and that for certain; else 0."""
        law = self.tau()
        plain = (law.log_rest == -xp.inf) & (law.smallest == law.largest)
        return xp.where(plain, law.largest**2, 0.0)

    def gaussian_part_precision(self) -> Array:
        """The same, rounded down."""
        return self.gaussian_precision() * (1.0 - 8.0 * PRECISION)

    def tail_precision(self) -> Array:
        """(max c/σ)², rounded up: every shift is at most the largest one."""
        return xp.maximum(self.tau().largest ** 2 * (1.0 + 8.0 * PRECISION), _LEAST)

    def largest_losses(self) -> tuple[Array, Array]:
        """None of the pair; of the swapped one −log w_0, as Q is at least w_0·P everywhere."""
        rest = self.tau().log_rest
        return xp.asarray(xp.inf), -rest * (1.0 + 8.0 * UNIT) + 16.0 * UNIT

    def work_per_point(self) -> float:
        """Each shift adds about a quarter of a pass."""
        return 1.0 + 0.25 * np.shape(self.shifts)[-1]

    def subsampled(self, sampling_prob: float) -> GaussianMixture:
        """No shift unless sampled."""
        zero = np.zeros(np.shape(self.shifts)[:-1] + (1,))
        shifts = np.concatenate([zero, self.shifts], axis=-1)
        w = np.asarray(self.weights) * sampling_prob
        rest = np.full(np.shape(w)[:-1] + (1,), 1.0 - sampling_prob)
        return GaussianMixture(self.noise_multiplier, shifts, np.concatenate([rest, w], axis=-1))

    def reveals_nothing(self) -> Array:
        """Whether no shift but 0 has a weight."""
        return self.tau().largest == 0.0

    def known_curve(self) -> SampledCurve | None:
        """A sampled curve of the shifts that are not 0, of weights added up exactly; None where
        there are so many of them that a lattice is faster.
        """
        if np.shape(self.shifts)[-1] > _MOST_KNOWN:
            return None
        return mixture_curve(float(self.noise_multiplier), self.shifts, self.weights)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between points ``ell``, and connect-the-dots shares.

        The edges are the outputs u_j of loss ℓ_j, found by Newton's method; how far off the loss at
        a computed edge may be is computed and goes into the bounds. The P-mass of a cell is a
        difference of normal probabilities, its Q-mass the weighted sum of those of the shifts, and
        the share of its mass that goes up the mean of the shares that each shift alone would have,
        weighted by w_i·(r_i(u_j) − r_i(u_{j−1})) with r_i the likelihood ratio of shift i: a mean
        of numbers in [0, 1], in which nothing cancels.

        Method: docs/method/dominating.md#mixtures
        """
        return mixture_cells(self.tau(), ell, end)


def _shifts(name: str, value: ArrayLike) -> Array:
    return _with_axis(name, nonnegative(name, value))


def _weights(name: str, value: ArrayLike) -> Array:
    found = _with_axis(name, nonnegative(name, value))
    if isinstance(found, np.ndarray):
        total = found.sum(axis=-1)
        valid = "numbers >= 0 that sum to 1 along the last axis (within 1e-9)"
        checked(f"sum of {name}", total, valid, lambda a: np.abs(a - 1.0) <= _SUM)
    return found


def _with_axis(name: str, value: Any) -> Any:
    if np.ndim(value) == 0:
        raise ValueError(f"{name} must have an axis, one entry a shift, got a single number")
    return value
