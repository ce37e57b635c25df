"""The Poisson-subsampled Gaussian mechanism: one step of DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import CELL, EDGE, FAR, FAR_CELL, PRECISION, SHARE
from ..numerics.normal import LOG_SQRT_2PI, half_mills, inverse_square, precision_above
from ..numerics.pytree import check_fields, pytree, unchecked
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import positive, probability
from ..pairs.cells import Cells, exp_error, left_over
from ..pairs.known_curves import GaussianCurve, SampledCurve, reciprocal
from ..pairs.mixture import log_mixture, log_unmixed, unmixed_below
from .base import Mechanism, poisson_words

_NODES = 128  # quadrature nodes for cumulants; they steer tilts and windows, never a certificate
# distance of nodes, absolute and over σ, from which on more of them are about where the loss bends,
# and how many standard deviations about there have them nearly equally far apart
_STEP, _STEP_OVER_NOISE, _CORE = 0.5, 1.5, 4.0
_LEAST, _LARGEST = 1e-307, 1e307  # of 1/σ² as a double: beyond, a bound takes its place
_TOGETHER = 2**15  # points whose cells NumPy works out at once
# widest cell, in standard deviations and in its own scale, that the series serves: the first term
# that they leave out is 945·(w/2)¹⁰/11! at most there, a fifth of a unit
NARROW = 0.12


@pytree
@dataclass(frozen=True)
class SubsampledGaussian(Mechanism):
    """Gaussian noise on the sum over a Poisson sample: each record enters with probability p.

    The dominating pair (Abadi et al. 2016; Gomez 2025, Section 2) is P = N(0, σ²) against
    Q = (1 − p)·N(0, σ²) + p·N(1, σ²), with privacy loss ℓ(o) = log(1 − p + p·e^{(2o − 1)/(2σ²)}).

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        sampling_prob: p in (0, 1], broadcast against σ; 1 is the plain Gaussian mechanism.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> SubsampledGaussian(noise_multiplier=1.0, sampling_prob=0.01).shape
        ()
    """

    noise_multiplier: Parameter
    sampling_prob: Parameter

    atomic = False
    sums_to_one: ClassVar[bool] = True
    differentiable: ClassVar[tuple[str, ...]] = ("noise_multiplier", "sampling_prob")
    relation: ClassVar[str] = "leaving out and adding a record"
    noise_scale: ClassVar[str] = "noise_multiplier"
    examples: ClassVar[dict] = {"SubsampledGaussian(1, 0.1)": lambda: SubsampledGaussian(1.0, 0.1)}

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, sampling_prob=probability)

    def describe_sampling(self) -> str:
        """Poisson sampling, unless every record takes part."""
        return poisson_words(self.sampling_prob)

    def subsampled(self, sampling_prob: float) -> SubsampledGaussian:
        """A sample of a sample: the product of both probabilities."""
        return SubsampledGaussian(self.noise_multiplier, sampling_prob * self.sampling_prob)

    def collapse_gaussians(self, count: Array, into: float) -> tuple[SubsampledGaussian, Array]:
        """Replace ``count`` uses by ``into`` uses where that is exact: without subsampling T
        Gaussians are n, with noise σ·√(n/T).
        """
        plain = (self.sampling_prob == 1.0) & (count > 0.0)
        used = xp.where(plain, count, into)
        sigma = self.noise_multiplier * xp.sqrt(into / used)
        # (whatever is out of range by now was in range when it was given)
        collapsed = unchecked(
            SubsampledGaussian, noise_multiplier=sigma, sampling_prob=self.sampling_prob
        )
        return collapsed, xp.where(plain, into, count)

    def loss_nodes(self, depth: Array | float):
        """Quadrature nodes of the privacy loss under P and their log weights (unbatched).

        Equally spaced nodes in o/σ, spectrally accurate for the normal density, out to where both P
        and Q have a tail of e^{−depth}; where these would be far apart, closer ones about where the
        loss bends. The range matters: the loss is log-normal-like, so beyond some tilt its full
        cumulant generating function is all far tail, while the lattice moves that tail to the atom
        at infinity."""
        sigma, p = self.noise_multiplier, self.sampling_prob
        tail = xp.sqrt(2.0 * depth)
        low, high = -tail - 1.0, tail + 1.0 / sigma
        step = (high - low) / (_NODES - 1)
        even = low + step * xp.arange(_NODES)
        # (the loss bends within some σ of where both terms of the mixture are the same)
        odds = xp.log1p(-xp.minimum(p, 1.0 - 1e-9)) - xp.log(xp.maximum(p, 1e-300))
        bend = xp.clip(sigma * odds + 0.5 / sigma, low, high)
        close, log_slope = _closer_about(bend, low, high)
        rough = step > xp.minimum(_STEP, _STEP_OVER_NOISE * sigma)
        z = xp.where(rough, close, even)
        log_step = xp.where(rough, log_slope, xp.log(step))
        loss = log_mixture(p, z / sigma - 0.5 / sigma**2)
        weight = log_step - 0.5 * z * z - LOG_SQRT_2PI
        # (both masses are 1: an error of 1e-8 of either is one of several nats of 10⁹ uses; the
        # least loss stays what it is)
        weight = xp.where(rough, weight - xp.logsumexp(weight), weight)
        moved = xp.maximum(loss - xp.logsumexp(weight + loss), loss[0])
        rough = rough & (loss > loss[0])
        return xp.where(rough, moved, loss), weight

    def gaussian_precision(self):
        """1/σ² where the mechanism is exactly Gaussian (closed-form cumulants), else 0."""
        return xp.where(self.sampling_prob == 1.0, inverse_square(self.noise_multiplier), 0.0)

    def gaussian_part_precision(self):
        """1/σ² without subsampling, else 0; rounded down, and a finite number."""
        return xp.minimum(self.gaussian_precision() * (1.0 - PRECISION), _LARGEST)

    def tail_precision(self):
        """1/σ²: the squared GDP parameter that bounds one step as FPR → 0; rounded up.

        Method: docs/method/mu.md#tail
        """
        return precision_above(self.noise_multiplier)

    def known_curve(self) -> SampledCurve:
        """The sampled curve of μ = 1/σ."""
        base = GaussianCurve(*reciprocal(float(self.noise_multiplier)))
        return SampledCurve.of(base, self.sampling_prob)

    def largest_losses(self):
        """None of the pair; of the swapped one −log(1 − p), as Q is at least (1 − p)·P everywhere.

        Method: docs/method/reading.md#largest
        """
        plain = self.sampling_prob == 1.0
        rate = xp.where(plain, 0.5, self.sampling_prob)
        return xp.asarray(xp.inf), xp.where(plain, xp.inf, -xp.log1p(-rate))

    def replace_one(self) -> SubsampledGaussian:
        """Without subsampling (p = 1), that of the Gaussian mechanism: noise σ/2.

        With it no single pair is known to dominate every composition.

        Raises:
            ValueError: p < 1 somewhere.

        Method: docs/method/adjacency.md#relations
        """
        if not np.all(np.asarray(self.sampling_prob) == 1.0):
            raise ValueError(
                "adjacency must be one of 'add_remove', 'add', 'remove' for a SubsampledGaussian"
                " with sampling_prob < 1, got 'replace_one'"
            )
        return SubsampledGaussian(self.noise_multiplier / 2.0, self.sampling_prob)

    def log_ratio(self, ell: Array):
        """log r(ℓ), r = 1 + expm1(ℓ)/p: N(1, σ²)/N(0, σ²) likelihood ratio at loss ℓ.

        −inf at and below ℓ = log(1 − p), where no output lies.
        """
        return log_unmixed(self.sampling_prob, ell)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between points ``ell``, and connect-the-dots shares.

        With u = σ·log r + 1/(2σ) the output at a lattice point in standard deviations, a cell has
        P-mass x = Φ(u_j) − Φ(u_{j−1}), the N(1, σ²) part y₁ of its Q-mass is the same with u − 1/σ,
        and its share is (y₁/x − r_{j−1})/(r_j − r_{j−1}): p drops out. Narrow cells use the Hermite
        series about their midpoint, in which differences are taken term by term; wide cells use
        Mills ratios. The first cell past ``end`` is
        open: it holds the whole tail.

        Method: docs/method/dominating.md#subsampled
        """
        return _cells(self, ell, end)


def sampled_gaussian(noise_multiplier: Array, sampling_prob: Array) -> SubsampledGaussian:
    """A Poisson-subsampled Gaussian of numbers that are known to be in range (unchecked)."""
    return unchecked(
        SubsampledGaussian, noise_multiplier=noise_multiplier, sampling_prob=sampling_prob
    )


@xp.custom_jvp
def _cells(step: SubsampledGaussian, ell: Array, end: Array | float) -> Cells:
    before = xp.concatenate([xp.full((1,), -xp.inf), ell[:-1]])
    if (
        xp.is_jax(step.noise_multiplier, step.sampling_prob, ell, end)
        or ell.shape[-1] <= 2 * _TOGETHER
    ):
        return _cells_between(step, ell, before, end)
    return _in_blocks(step, ell, before, end)


def _in_blocks(step: SubsampledGaussian, ell: Array, before: Array, end: Array | float) -> Cells:
    """Cells of very many points, so many at a time: what each takes stays close by.

    A cell depends on its two points and the one before them alone, so these are the very same."""
    number, parts = ell.shape[-1], []
    for start in range(0, number - 1, _TOGETHER):
        some = slice(start, min(start + _TOGETHER + 1, number))
        parts.append(_cells_between(step, ell[some], before[some], end))
    last = len(parts) - 1

    def joined(name: str) -> Array:
        # (the ends of a block are open: they are cells only at the ends of all)
        some = (
            getattr(part, name)[(1 if i > 0 else 0) : (None if i == last else -1)]
            for i, part in enumerate(parts)
        )
        return np.concatenate(list(some))

    rows = {name: joined(name) for name in ("log_x", "log_y", "roundoff", "jitter")}
    between = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("up", "share_error")
    }
    largest = {
        name: np.max([getattr(part, name) for part in parts]) for name in ("lost", "lost_error")
    }
    return Cells(**rows, **between, **largest)


def _cells_between(
    step: SubsampledGaussian, ell: Array, before: Array, end: Array | float
) -> Cells:
    """Cells between points ``ell``, of which each has one ``before`` it."""
    sigma, p = step.noise_multiplier, step.sampling_prob
    tau = 1.0 / sigma
    log_r = step.log_ratio(ell)
    u = xp.where(before >= end, xp.inf, sigma * log_r + 0.5 * tau)
    inf = xp.full((1,), xp.inf)
    a, b = xp.concatenate([-inf, u]), xp.concatenate([u, inf])

    width = b - a
    bounded = xp.isfinite(a) & xp.isfinite(b)
    width = xp.where(bounded, width, xp.inf)
    middle = xp.where(bounded, 0.5 * (a + b), 0.0)
    reach = 1.0 + xp.maximum(xp.abs(middle), xp.abs(middle - tau))
    narrow = bounded & (width * reach < NARROW) & (0.5 * width * tau < NARROW)
    w, m = xp.where(narrow, width, 0.1), xp.where(narrow, middle, 0.0)
    m1 = m - tau
    series0, series1 = hermite_series(m, w), hermite_series(m1, w)
    log_x = log_normal_mass(u, narrow, w, m, series0)
    log_y1 = log_normal_mass(u - tau, narrow, w, m1, series1)

    # log of y₁/x, and of y/x = 1 + p·(y₁/x − 1)
    empty = (log_x == -xp.inf) | (log_y1 == -xp.inf)
    log_rho = xp.where(empty, 0.0, log_y1 - xp.where(empty, 0.0, log_x))
    log_ratio = log_mixture(p, log_rho)
    log_y = log_x + log_ratio

    # share of a narrow cell: E[expm1(t/σ)] about the midpoint, from the difference of the two
    # series
    drop = xp.expm1(-0.5 * w * tau)
    excess = hermite_difference(m, m1, w) / (1.0 + series0)
    narrow_up = (drop - excess) * (1.0 + drop) / (drop * (2.0 + drop))
    # share of a wide cell, in units of r_hi: (ρ − r_lo)/(r_hi − r_lo); r_lo may lie below zero at
    # the bottom
    lo, hi = log_r[:-1], log_r[1:]
    inside = lo > -xp.inf
    below = unmixed_below(p, ell[:-1], xp.where(hi > -xp.inf, hi, 0.0))
    r_lo = xp.where(inside, xp.exp(xp.where(inside, lo, 0.0) - xp.where(inside, hi, 0.0)), below)
    rho = xp.exp(xp.minimum(log_rho[1:-1] - xp.where(hi > -xp.inf, hi, 0.0), 0.0))
    wide_up = (rho - r_lo) / xp.where(r_lo < 1.0, 1.0 - r_lo, 1.0)
    up = xp.where(narrow[1:-1], narrow_up[1:-1], wide_up)
    up = xp.where(empty[1:-1], 1.0, xp.clip(up, 0.0, 1.0))
    # the open cell: its P-mass stays at the lower end, and the Q-mass this leaves over is lost to
    # +∞
    opened = (ell[:-1] >= end) & (before[:-1] < end)
    up = xp.where(opened, 0.0, up)

    # narrow cells are exact for the edges as rounded; wide ones feel each edge's rounding
    # separately
    edge = EDGE + tau + xp.abs(middle)
    # (in a tail the density at an edge is up to 1 + |u| times the mass beyond it)
    steepest = 1.0 / xp.clip(width, 1e-3, 1.0) + xp.minimum(xp.abs(middle), 4.0)
    jitter = xp.where(narrow | ~bounded, 0.0, edge * steepest)
    # (what is next to the smallest loss, log(1 − p), lies there to an epsilon of it, and both
    # masses know log(1 − p) as well as that) (far out a mass feels the rounding of its edge u by
    # u², that is twice its own log)
    far = FAR_CELL * xp.maximum(xp.abs(log_x) - FAR, 0.0)
    depth = xp.where(log_x == -xp.inf, 0.0, xp.abs(log_x) + far + 2.0 * xp.abs(log_ratio))
    roundoff = CELL + exp_error(depth)
    lost, lost_error = (
        xp.max(xp.where(opened, one, 0.0), initial=0.0)
        for one in left_over(log_x[1:-1], log_y[1:-1], ell[:-1], roundoff[1:-1])
    )
    # a wide cell's share is a quotient of differences of ratios, which are known as well as masses
    steep = -xp.expm1(-xp.where(narrow | ~bounded, 1.0, xp.minimum(width * tau, 1.0)))
    split = xp.where(narrow, SHARE, (2.0 * (roundoff + jitter) + SHARE) / steep)[1:-1]
    split = xp.where(opened, 0.0, split)
    return Cells(log_x, log_y, up, lost, lost_error, roundoff, jitter, share_error=split)


@_cells.defjvp
def _cells_jvp(primals: tuple, tangents: tuple):
    """How masses between fixed points of the loss change with σ and p; points stay.

    The output u at a point moves by ∂u/∂σ = log r − 1/(2σ²) and ∂u/∂p = −σ(1 − 1/r)/p and takes
    P-mass φ(u)·du and Q-mass e^ℓ·φ(u)·du across it; in between, Q itself changes by p·(φ(u_a − 1/σ)
    − φ(u_b − 1/σ))·d(1/σ) and (y − x)/p·dp. As y = x·(e^{lower} + up·(e^{upper} − e^{lower})), the
    shares follow from both masses."""
    (step, ell, end), (moved, _, _) = primals, tangents
    cells = _cells(step, ell, end)
    sigma, p = step.noise_multiplier, step.sampling_prob
    dsigma, dp = (xp.asarray(t, float) for t in (moved.noise_multiplier, moved.sampling_prob))
    tau = 1.0 / sigma
    log_r = step.log_ratio(ell)
    before = xp.concatenate([xp.full((1,), -xp.inf), ell[:-1]])
    real = (log_r > -xp.inf) & (before < end)
    log_r = xp.where(real, log_r, 0.0)
    u = sigma * log_r + 0.5 * tau
    log_density = xp.where(real, -0.5 * u * u - LOG_SQRT_2PI, -xp.inf)
    # (what 1/r multiplies is the density, which vanishes faster)
    du = (log_r - 0.5 * tau**2) * dsigma + sigma / p * xp.expm1(xp.minimum(-log_r, 600.0)) * dp
    end_points = xp.full((1,), -xp.inf)

    def change(log_flux: Array, rate: Array, log_mass: Array):
        """Σ over both ends of a cell of flux·rate over the cell's mass."""
        rate = xp.concatenate([xp.zeros((1,)), rate, xp.zeros((1,))])
        log_flux = xp.concatenate([end_points, log_flux, end_points])
        some = log_mass > -xp.inf
        share = xp.exp(
            xp.where(some, xp.minimum(log_flux[1:] - xp.where(some, log_mass, 0.0), 600.0), -xp.inf)
        )
        below = xp.exp(
            xp.where(
                some, xp.minimum(log_flux[:-1] - xp.where(some, log_mass, 0.0), 600.0), -xp.inf
            )
        )
        return share * rate[1:] - below * rate[:-1]

    dx = change(log_density, du, cells.log_x)
    dy = change(log_density + ell, du, cells.log_y)
    dy = dy + change(log_density + log_r + xp.log(p), xp.full_like(u, tau**2) * dsigma, cells.log_y)
    some = (cells.log_y > -xp.inf) & (cells.log_x > -xp.inf)
    log_ratio = xp.where(some, cells.log_y - xp.where(some, cells.log_x, 0.0), 0.0)
    dy = dy + xp.where(some, -xp.expm1(xp.minimum(-log_ratio, 600.0)) / p, 0.0) * dp
    growth = xp.where(some[1:-1], xp.exp(xp.clip(log_ratio[1:-1] - ell[:-1], -600.0, 600.0)), 0.0)
    interior = (cells.up > 0.0) & (cells.up < 1.0)
    dup = xp.where(interior, growth / xp.expm1(xp.diff(ell)), 0.0) * (dy - dx)[1:-1]
    zero = jax.tree.map(xp.zeros_like, cells)
    return cells, zero._replace(log_x=dx, log_y=dy, up=dup)


def _closer_about(bend: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes from ``low`` to ``high``, and logs of their weights: A·sinh(t) from ``bend``, at equal
    distances of t.
    """
    ends = xp.stack([low - bend, high - bend]) / _CORE
    size = xp.abs(ends)
    start, stop = xp.sign(ends) * xp.log(size + xp.sqrt(size * size + 1.0))
    step = (stop - start) / (_NODES - 1)
    grown = xp.exp(start + step * xp.arange(_NODES))
    z = bend + 0.5 * _CORE * (grown - 1.0 / grown)
    return z, xp.log(0.5 * _CORE * step * (grown + 1.0 / grown))


def hermite_series(m: Array, w: Array):
    """∫φ(m + t) over |t| ≤ w/2, divided by w·φ(m), minus 1: Σ He_{2k}(m)·(w/2)^{2k}/(2k + 1)!."""
    v, q = m * m, 0.25 * w * w
    he8 = (((v - 28.0) * v + 210.0) * v - 420.0) * v + 105.0
    he6 = ((v - 15.0) * v + 45.0) * v - 15.0
    he4 = (v - 6.0) * v + 3.0
    return q * ((v - 1.0) / 6.0 + q * (he4 / 120.0 + q * (he6 / 5040.0 + q * he8 / 362880.0)))


def hermite_difference(m: Array, m1: Array, w: Array):
    """series(m1) − series(m), with the factor m1² − m² taken out so that nothing cancels."""
    v, v1, q = m * m, m1 * m1, 0.25 * w * w
    first = (m1 - m) * (m1 + m)
    one, two = v1 + v, v1 * v1 + v1 * v + v * v
    d4 = one - 6.0
    d6 = two - 15.0 * one + 45.0
    d8 = (v1 * v1 + v * v) * one - 28.0 * two + 210.0 * one - 420.0
    return first * q * (1.0 / 6.0 + q * (d4 / 120.0 + q * (d6 / 5040.0 + q * d8 / 362880.0)))


def log_normal_mass(u: Array, narrow: Array, w: Array, m: Array, series: Array):
    """log of the normal mass of cells between consecutive u, both unbounded ends too (n + 1).

    Narrow cells (width w, midpoint m) use their series; cells in a tail a difference of Mills
    ratios with the larger exponential factored out; the others, across 0, one minus both tails."""
    g = half_mills(u)
    e = -0.5 * xp.where(xp.isinf(u), 1e300, u * u)
    tail = xp.exp(e) * g
    zero, inf, bottom = xp.zeros((1,)), xp.full((1,), xp.inf), xp.full((1,), -5e299)
    a, b = xp.concatenate([-inf, u]), xp.concatenate([u, inf])
    ga, gb = xp.concatenate([zero, g]), xp.concatenate([g, zero])
    ea, eb = xp.concatenate([bottom, e]), xp.concatenate([e, bottom])
    right, left = a >= 0.0, b <= 0.0
    fall = xp.exp(-xp.abs(eb - ea))
    mass = xp.where(right, ga - fall * gb, gb - fall * ga)
    across = 1.0 - xp.concatenate([zero, tail]) - xp.concatenate([tail, zero])
    base = xp.where(right, ea, xp.where(left, eb, 0.0))
    mass = xp.where(right | left, mass, across)
    base = xp.where(narrow, -0.5 * m * m - LOG_SQRT_2PI, base)
    mass = xp.where(narrow, w * (1.0 + series), mass)
    real = (mass > 0.0) & (base > -1e299)
    return xp.where(real, base + xp.log(xp.where(real, mass, 1.0)), -xp.inf)
