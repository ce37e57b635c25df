"""The discrete Gaussian mechanism, of the 2020 United States census among others."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import ClassVar

import numpy as np
from scipy.special import bernoulli

from ..numerics import namespace as xp
from ..numerics.errors import DISCRETE, INTEGERS, UNIT
from ..numerics.normal import LOG_SQRT_2PI, half_mills, ndtri_half_plus, square_above
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, positive
from ..pairs.atoms import atom_cell, atom_cells
from ..pairs.cells import Cells, exp_error
from ..pairs.known_curves import FiniteCurve
from .base import EVERY_RECORD, Mechanism
from .subsampled_gaussian import NARROW, hermite_series

_FEW = 10.0  # σ below which every integer is looked at
_INTEGERS = 1024  # how many of them, 48 σ to both sides
_GAUSSIAN = 1.5  # σ above which cumulants are those of a Gaussian to 1e-19
_NODES = 128
_TERMS = 16  # integers of a cell that are added one by one
_STEEP = 2.25  # loss per unit of output beyond which those are all that matter
_LISTED, _BEYOND = 256.0, -1000.0  # σ up to which integers are listed, and log of what is beyond
_MOST = 16  # largest sensitivity


def _edge_coefficients(terms: int = 16, orders: int = 5):
    """c[j, i] with E(λ) = Σ_{j,i} c[j, i]·σ^{−2i}·λ^{2j + 1}, see ``_edge``.

    F(v) = 1/v − 1/(2·sinh(v/2)) = Σ_r f_r·v^{2r + 1}, f_r = −B_{2r + 2}(1/2)/(2r + 2)!, and
    E(λ) = Σ_i F^{(2i)}(−λ)/(2i)!·(−1)^i·(2i − 1)!!·σ^{−2i}.
    """
    number = terms + orders
    b = bernoulli(2 * number)
    f = [-(2.0 ** (1 - k) - 1.0) * b[k] / factorial(k) for k in range(2, 2 * number + 1, 2)]
    odd = [1.0, 1.0, 3.0, 15.0, 105.0, 945.0]
    rows = range(terms)
    return np.array(
        [
            [-f[j + i] * comb(2 * (j + i) + 1, 2 * i) * (-1.0) ** i * odd[i] for i in range(orders)]
            for j in rows
        ]
    )


_EDGE = _edge_coefficients()


@pytree
@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Noise on the integers with mass ∝ e^{−k²/(2σ²)}, on an integer query (Canonne et al. 2020).

    The pair is N_Z(0, σ²) against N_Z(s, σ²), with privacy loss (2ks − s²)/(2σ²) at the integer k:
    atoms s/σ² apart.

    One use is exactly μ-GDP, with μ = 2Φ⁻¹(Pr[k ≥ 0]) for s = 1, about (1 + 1/(24σ²))/σ: with z_m
    the normal quantile of Pr[k < m], the steps z_{m+1} − z_m fall with |m|. (Compare p with the
    normal masses q that have the step and the cell of index m: log p/q has a second difference that
    grows away from the centre of q, because a normal law cut to a window of fixed width varies most
    in the middle. If the next step were longer, log p/q would be concave between m and its mirror
    image, and p would have less mass than q to the left of m, although both have the same.)

    Args:
        sigma: σ > 0, any shape. It is a little more than the standard deviation where σ is small.
        sensitivity: s, a whole number from 1 to 16, broadcast against σ.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> DiscreteGaussian(sigma=[2.0, 8.28]).shape
        (2,)
    """

    sigma: Parameter
    sensitivity: Parameter = default(1)

    symmetric: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("sigma",)
    undifferentiable: ClassVar[str] = "that is a whole number"
    relation: ClassVar[str] = "leaving out and adding a record"
    sampling: ClassVar[str] = EVERY_RECORD
    noise_scale: ClassVar[str] = "sigma"
    examples: ClassVar[dict] = {"DiscreteGaussian(2)": lambda: DiscreteGaussian(2.0)}

    def __post_init__(self) -> None:
        check_fields(self, sigma=positive, sensitivity=_sensitivity)

    def _loss(self, k: Array):
        """Privacy loss at the integers k."""
        return self.sensitivity / self.sigma**2 * (k - 0.5 * self.sensitivity)

    def _total(self):
        """Σ e^{−k²/(2σ²)} over all integers: σ√(2π) but for e^{−2π²σ²} where σ is large."""
        k = xp.arange(1.0, 10.0)
        few = 1.0 + 2.0 * xp.sum(xp.exp(-0.5 * (k / xp.minimum(self.sigma, 1.0)) ** 2))
        many = 2.0 * xp.exp(-2.0 * (np.pi * xp.clip(self.sigma, 1.0, 10.0)) ** 2)
        return xp.where(self.sigma < 1.0, few, self.sigma * np.sqrt(2.0 * np.pi) * (1.0 + many))

    def _log_total(self):
        """log of the total."""
        return xp.log(self._total())

    def known_curve(self) -> FiniteCurve | None:
        """The atoms of all integers with a mass of e^{−1100} and more, for σ up to 256."""
        sigma, s = float(self.sigma), float(self.sensitivity)
        if sigma > _LISTED:
            return None
        reach = np.ceil(48.0 * sigma) + s
        k = np.arange(-reach, reach + s + 1.0)
        total = float(self._log_total())
        log_p, log_q = (-0.5 * ((k - shift) / sigma) ** 2 - total for shift in (0.0, s))
        loss = self._loss(k)
        off, _ = INTEGERS
        return FiniteCurve.of_atoms(
            loss,
            log_p,
            log_q,
            mass_error=2.0 * off * UNIT,
            loss_error=8.0 * UNIT * np.abs(loss),
            log_unlisted=_BEYOND,
        )

    def loss_nodes(self, depth: Array | float):
        """Integers around the centre where σ is small, else nodes of a Gaussian."""
        tail = xp.sqrt(2.0 * depth)
        low, high = -tail - 1.0, tail + self.sensitivity / self.sigma
        step = (high - low) / (_NODES - 1)
        z = low + step * xp.arange(_NODES)
        k = xp.floor(0.5 * self.sensitivity) + xp.arange(_NODES) - _NODES // 2
        few = self.sigma < _GAUSSIAN
        loss = self._loss(xp.where(few, k, z * self.sigma))
        by_integer = -0.5 * (k / self.sigma) ** 2 - self._log_total()
        return loss, xp.where(few, by_integer, xp.log(step) - 0.5 * z * z - LOG_SQRT_2PI)

    def gaussian_precision(self):
        """s²/σ² where the cumulants are those of a Gaussian, K(t) = t(t − 1)s²/(2σ²), else 0."""
        return xp.where(self.sigma >= _GAUSSIAN, (self.sensitivity / self.sigma) ** 2, 0.0)

    def tail_precision(self):
        """μ² of one use: (z_m + z_{s+1−m})², m = ⌊s/2⌋ + 1, up by no more than 1e-13 relative."""
        middle = xp.floor(0.5 * self.sensitivity) + 1.0
        return square_above(
            self._quantile(middle) + self._quantile(self.sensitivity + 1.0 - middle)
        )

    def limit_precision(self):
        """(s/σ)²: far out the masses fall like the normal density."""
        return (self.sensitivity / self.sigma) ** 2

    def _quantile(self, m: Array):
        """z_m = Φ⁻¹(Pr[k < m]) for 1 ≤ m ≤ 9."""
        k = xp.arange(1.0, 0.5 * _MOST + 1.0)
        inside = 0.5 + xp.sum(xp.where(k < m, xp.exp(-0.5 * (k / self.sigma) ** 2), 0.0))
        # Pr[k < m] − ½, and beyond, where the number of integers to be summed is small, log Pr[k ≥
        # m]
        excess = inside / self._total()
        exponent = (
            -0.5 * ((m + xp.arange(_INTEGERS // 2)) / xp.minimum(self.sigma, 2.0 * _FEW)) ** 2
        )
        return ndtri_half_plus(xp.minimum(excess, 0.5), xp.logsumexp(exponent) - self._log_total())

    def loss_unit(self):
        """s/σ², or half of that where s is odd."""
        odd = self.sensitivity - 2.0 * xp.floor(0.5 * self.sensitivity)
        return self.sensitivity / self.sigma**2 * (1.0 - 0.5 * odd)

    def replace_one(self) -> DiscreteGaussian:
        """Replacing a record moves the query by up to 2s.

        Raises:
            ValueError: 2s is larger than 16.
        """
        return DiscreteGaussian(self.sigma, 2 * np.asarray(self.sensitivity))

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between points ``ell``, and connect-the-dots shares.

        If σ is small, they come from the list of all integers that carry mass; else from sums over
        the integers of each cell."""
        return xp.cond(self.sigma < _FEW, lambda: self._few(ell, end), lambda: self._many(ell))

    def atoms(self, ell: Array):
        """All integers where σ is small, else the middle of each cell's."""
        few = self.sigma < _FEW
        centre = xp.floor(0.5 * self.sensitivity)
        k = centre + xp.arange(_INTEGERS) - _INTEGERS // 2
        log_q = -0.5 * ((k - self.sensitivity) / self.sigma) ** 2 - self._log_total()
        many = self._many(ell)
        some = (many.log_x > -xp.inf) & ~few
        loss = xp.where(some, many.log_y - xp.where(some, many.log_x, 0.0), 0.0)
        middle = xp.stop_gradient(loss * self.sigma**2 / self.sensitivity + 0.5 * self.sensitivity)
        single = self._loss(k)
        return (
            xp.concatenate([atom_cell(single, ell), xp.arange(loss.shape[0])]),
            xp.concatenate([single, self._loss(middle)]),
            xp.concatenate([xp.where(few, log_q, -xp.inf), xp.where(some, many.log_y, -xp.inf)]),
        )

    def _few(self, ell: Array, end: Array | float) -> Cells:
        """Cells from a list of integers; what lies beyond it has mass below e^{−1000}."""
        sigma = xp.minimum(self.sigma, _FEW)
        k = xp.floor(0.5 * self.sensitivity) + xp.arange(_INTEGERS) - _INTEGERS // 2
        shift = self._log_total()
        log_p, log_q = (
            -0.5 * (k / sigma) ** 2 - shift,
            -0.5 * ((k - self.sensitivity) / sigma) ** 2 - shift,
        )
        cells = atom_cells(self._loss(k), log_p, log_q, ell, end)
        # losses and masses come from σ² after a few roundings, each place from a few more
        more, each = DISCRETE
        return cells._replace(
            lost_error=more * cells.lost_error,
            roundoff=more * cells.roundoff,
            jitter=more * cells.jitter + each,
        )

    def _many(self, ell: Array) -> Cells:
        """Cells for σ ≥ 10, by number of integers in each.

        A cell of the integers a..b is summed one by one if they are few, or from its heavier end if
        the masses fall quickly; else it is a normal probability between a − ½ and b + ½ and a
        correction at both ends (``_edge``). All masses are taken relative to one integer (or the
        middle), so that the loss there enters the share exactly."""
        sigma, s = xp.maximum(self.sigma, _FEW), self.sensitivity
        reach = xp.ceil(80.0 * sigma) + s
        # the last integer of each cell, with outer ends past all mass (slices of one array:
        # concatenations are slow)
        bound = xp.concatenate([xp.full((1,), -xp.inf), ell, xp.full((1,), xp.inf)])
        last = xp.clip(xp.floor(bound * sigma**2 / s + 0.5 * s), -reach, reach)
        a, b = last[:-1] + 1.0, last[1:]
        number = b - a + 1.0
        middle = 0.5 * (a + b)

        right = middle >= 0.5 * s
        sign, start = xp.where(right, 1.0, -1.0), xp.where(right, a, b)
        steep = sign * (start - xp.where(right, s, 0.0)) >= _STEEP * sigma**2
        direct = (number <= _TERMS) | steep
        width, m = number / sigma, middle / sigma
        reach_m = 1.0 + xp.maximum(xp.abs(m), xp.abs(m - s / sigma))
        narrow = ~direct & (width * reach_m < NARROW)
        wide = ~direct & ~narrow
        coefficients = xp.asarray(_EDGE) @ sigma ** (-2.0 * xp.arange(_EDGE.shape[1]))

        def law(shift: Array | float):
            """log of the mass relative to e^{−r²/2}/√(2π) at a reference point r standard
            deviations out, and log of that.
            """
            u = (last + 0.5 - shift) / sigma
            edge = _edge(u, sigma, coefficients)
            first = _sum(sign * (start - shift), number, sigma) / sigma
            centre = xp.where(narrow, m - shift / sigma, 0.0)
            second = _narrow(xp.where(narrow, width, 0.0), centre, edge)
            third, base = _wide(u, edge)
            mass = xp.where(direct, first, xp.where(narrow, second, third))
            reference = xp.where(direct, (start - shift) / sigma, centre)
            return xp.log(xp.where(mass > 0.0, mass, 1.0)), xp.where(
                wide, base, -0.5 * reference**2
            ) - LOG_SQRT_2PI

        some = number > 0.0
        (more_x, base_x), (more_y, base_y) = law(0.0), law(s)
        log_x, log_y = (
            xp.where(some, base_x + more_x, -xp.inf),
            xp.where(some, base_y + more_y, -xp.inf),
        )
        # log y/x, exact at the reference point
        reference = self._loss(xp.where(direct, start, middle))
        log_rho = xp.where(wide, base_y - base_x, reference) + more_y - more_x
        known, log_rho = ~wide, log_rho[1:-1]
        lower, upper = ell[:-1], ell[1:]
        share = xp.exp(xp.minimum(log_rho - upper, 0.0)) * xp.expm1(
            xp.minimum(lower - log_rho, 0.0)
        )
        share = xp.clip(share / xp.expm1(lower - upper), 0.0, 1.0)
        share = xp.where(some[1:-1] & xp.isfinite(share), share, 1.0)

        depth = xp.where(xp.isfinite(log_x), xp.abs(log_x), 0.0) + xp.where(
            xp.isfinite(log_y), xp.abs(log_y), 0.0
        )
        mass, where = INTEGERS
        place = where + 4.0 * xp.where(known, xp.abs(reference), depth)
        gap = xp.diff(bound)
        jitter = xp.where(some, place * (1.0 + 1.0 / gap), 0.0)
        return Cells(
            log_x, log_y, share, xp.zeros(()), xp.zeros(()), mass + exp_error(4.0 * depth), jitter,
            xp.asarray(-xp.inf, log_x.dtype), xp.asarray(-xp.inf, log_x.dtype),
        )  # fmt: skip


def _sum(start: Array, number: Array, sigma: Array):
    """Σ e^{−((start + i)² − start²)/(2σ²)} over 0 ≤ i < min(number, 16), term by term."""
    ratio = xp.exp(-(xp.maximum(start, -2.0 * _TERMS) + 0.5) / sigma**2)
    fall = xp.exp(-1.0 / sigma**2)
    term, total = xp.ones_like(start), xp.ones_like(start)
    for i in range(1, _TERMS):
        term = term * ratio
        ratio = ratio * fall
        total = total + xp.where(i < number, term, 0.0)
    return total


def _edge(u: Array, sigma: Array, coefficients: Array):
    """The excess of sums over the integers beyond σu (a half) over the integral, relative to
    e^{−u²/2}, over σ.

    Σ_{k > x} g(k) = ∫_x^∞ g + g(x)·E(x/σ²) at a half-integer x, g(x) = e^{−x²/(2σ²)}: as an
    operator the sum is −1/(2·sinh(D/2)), which is −1/D + F(D), and D acts on g near x as −x/σ² and
    a little spread. The rest after the terms kept is an asymptotic series of complex Mills ratios,
    below 2e−5·σ^{−10}. E is odd."""
    slope = xp.clip(u / sigma, -_STEEP, _STEEP)
    v = slope * slope
    value = xp.full_like(v, coefficients[-1])
    for j in range(coefficients.shape[0] - 2, -1, -1):
        value = value * v + coefficients[j]
    return value * slope / sigma


def _narrow(width: Array, m: Array, edge: Array):
    """Mass of narrow cells of middle m over e^{−m²/2}: Hermite series, and both edges."""
    z = 0.125 * width * width
    fall = 1.0 - z * (1.0 - z * (1 / 2 - z * (1 / 6 - z * (1 / 24 - z / 120))))
    rise = xp.exp(xp.minimum(0.5 * width * m, 1.0))
    ends = fall * (edge[:-1] * rise - edge[1:] / rise)
    return width * (1.0 + hermite_series(m, width)) + ends


def _wide(u: Array, edge: Array):
    """Mass of cells between consecutive u over e^{base}, and the base.

    From tails e^{−u²/2}·G, with G the Mills ratio and what the edge adds; cells across 0 are one
    minus both tails."""
    g = np.sqrt(2.0 * np.pi) * half_mills(u) + xp.where(u < 0.0, -edge, edge)
    e = -0.5 * u * u
    tail = xp.exp(e) * g
    right, left = u[:-1] >= 0.0, u[1:] <= 0.0
    fall = xp.exp(-xp.abs(xp.diff(e)))
    mass = xp.where(right, g[:-1] - fall * g[1:], g[1:] - fall * g[:-1])
    across = np.sqrt(2.0 * np.pi) - tail[:-1] - tail[1:]
    outside = right | left
    return xp.where(outside, mass, across), xp.where(right, e[:-1], xp.where(left, e[1:], 0.0))


def _sensitivity(name: str, value: ArrayLike) -> Array:
    valid = f"a whole number from 1 to {_MOST}"
    return checked(name, value, valid, lambda a: (a >= 1) & (a <= _MOST) & (a == np.floor(a)))
