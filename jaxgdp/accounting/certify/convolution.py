"""Self-composition by FFT: block sums of the T-fold convolution of tilted lattice masses, with
their error.

Indices add modulo N, so no zero padding is needed; the mass that would wrap is bounded from the
lattice masses. The transform is taken of (masses − point mass at the centre), which is φ − 1 to
relative accuracy, and φ^T = exp(T·log1p(φ − 1))."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import ARCTAN2, FFT, LOG1P, SUM_OF_LOGS
from ...numerics.errors import UNIT as _EPS
from .derivative import uses_change

_LARGEST_EXPONENT = 690.0  # e to the power of it, times the number of points, is still a double
_COARSE = 2048  # points of the lattice on which a tilt is chosen


class Composed(NamedTuple):
    """Block sums of the composed, tilted masses W (unbatched); block k covers lattice points J_k <
    J ≤ J_k + M.

    Attributes:
        plain: Σ W_J·e^{−s(ℓ_J − t_k)} over the block, shape (blocks,), t_k the threshold before the
            block.
        split: the same, weighted with the share that connect-the-dots moves to the block's upper
            end.
        log_total: log of the composed normalisation Π M^T.
        roundoff: bound on the relative error of the normalisation.
        noise: root of the summed squares of the rounding errors of all W_J.
        escaped: bound on the mass that wraps around, and on frequencies left out.
    """

    plain: Any
    split: Any
    log_total: Any
    roundoff: Any
    noise: Any
    escaped: Any

    def guard(self, rate, h, size):
        """Bound on the error of Σ e^{−rate·i·h}·W over any stretch of the window (Cauchy–Schwarz on
        the rounding).

        Method: docs/method/rounding.md#guard
        Method: docs/method/windows.md#escaped
        """
        terms = xp.minimum(-1.0 / xp.expm1(-2.0 * xp.maximum(rate * h, 1e-12)), size * 1.0)
        bound = 2.0 * self.noise * xp.sqrt(terms) + self.escaped
        # (what is not a number vouches for nothing)
        return xp.where(bound < xp.inf, bound, xp.inf)

    def sound(self) -> Composed:
        """Itself, or, where some block sum is not a finite number, no sums at all and an error of
        everything.

        Method: docs/method/rounding.md#guard
        """
        finite = xp.isfinite(
            xp.sum(self.plain) + xp.sum(self.split) + self.log_total + self.roundoff
        )
        clean = lambda a: xp.where(finite, a, 0.0)
        return Composed(
            clean(self.plain), clean(self.split), clean(self.log_total), clean(self.roundoff), self.noise,
            xp.where(finite, self.escaped, xp.inf),
        )  # fmt: skip


def log_transform(re, im):
    """log|φ| and arg φ from the real and imaginary part of φ − 1, and a bound on their rounding
    errors.

    From φ − 1 where φ is near 1, from φ itself elsewhere; φ = 0 to rounding is kept finite.

    Method: docs/method/frequencies.md#transform
    """
    square = (1.0 + re) * (1.0 + re) + im * im
    near = square > 0.25
    near_log = xp.log1p(xp.where(near, 2.0 * re + re * re + im * im, 0.0))
    log_abs = 0.5 * xp.where(near, near_log, xp.log(xp.maximum(square, 1e-280)))
    # (at φ = 0 the angle means nothing and has no derivative)
    arg = xp.arctan2(im, xp.where(square > 0.0, 1.0 + re, 1.0))
    return log_abs, arg, _EPS * (LOG1P * xp.abs(log_abs) + ARCTAN2 * xp.abs(arg))


def normalisation(weights, count):
    """log Π M^T of the composed masses and a bound on its error.

    Method: docs/method/rounding.md#shared
    """
    log_total = count @ weights.log_total
    each, whole = SUM_OF_LOGS
    return log_total, count @ (weights.roundoff + each * _EPS) + whole * _EPS * xp.abs(log_total)


def log_moment(mass, exponent):
    """log(1 + Σ mass·(e^{exponent} − 1)) for every component; masses of shape (components, points),
    at most one in all.

    The largest exponent is taken out where e^{exponent} would overflow.

    Method: docs/method/windows.md#escaped
    """
    largest = xp.max(xp.where(mass > 0.0, exponent, 0.0), axis=-1)
    out = xp.maximum(largest - _LARGEST_EXPONENT, 0.0)
    growth = xp.sum(
        mass * xp.expm1(xp.minimum(exponent - out[:, None], _LARGEST_EXPONENT)), axis=-1
    )
    # (what is at 0 stays there: 1 − Σ mass, less all that expm1 took off)
    rest = xp.expm1(-out)
    return out + xp.log1p(rest + growth - rest * xp.sum(mass, axis=-1))


def escaped_mass(w, count, steps, start, length, h, miss_low, miss_high):
    """Chernoff bound on the composed mass outside a window of ``length`` that begins at ``start``,
    relative to the centres.

    The exponential moments are those of the very masses ``w`` (components, points) at ``steps``
    that are composed. The two end points hold whole tails: that any step lands there is bounded by
    T times their mass. Where even the sum of every component's largest (smallest) step stays
    inside, nothing wraps.

    Method: docs/method/windows.md#escaped
    """
    inner = xp.at_set(xp.at_set(w, (slice(None), 0), 0.0), (slice(None), -1), 0.0)

    def moment(a):
        return xp.sum(count * log_moment(inner, a * steps))

    above = xp.exp(moment(miss_high) - miss_high * (start + length))
    below = xp.exp(moment(-miss_low) + miss_low * (start - h))
    last = w.shape[-1] - 1
    largest = xp.take(steps, last - xp.argmax(inner[:, ::-1] > 0.0, axis=-1))
    smallest = xp.take(steps, xp.argmax(inner > 0.0, axis=-1))
    above = xp.where(count @ largest < start + length - 0.5 * h, 0.0, above)
    below = xp.where(count @ smallest > start - 0.5 * h, 0.0, below)
    return xp.sum(count * (w[:, 0] + w[:, -1])) + above + below


def compose_blocks(
    weights, count, start, tilt, h, miss_low, miss_high, *, left, size, block, centre=None
):
    """Compose the mechanisms of one setting on a circular lattice of ``size`` points (unbatched).

    Args:
        weights: ``discretisation.Weights`` with a leading axis of components; index ``left`` is the
            centre.
        count: uses of each component, shape (components,).
        start: offset (in points, from the sum of centres) of the first point of the first block.
        tilt: decay rate s of the block weights e^{−s·i·h}.
        h: lattice spacing.
        miss_low, miss_high: tilt offsets for the Chernoff bounds on the wrapped mass.
        size: N, a power of two. block: M, points per block, a power of two.
        centre: centres of the components in points; given where derivatives in the numbers of uses
            are wanted.

    Method: docs/method/frequencies.md#transform
    """
    w = weights.weight
    n = w.shape[-1]
    offset = xp.arange(-left, n - left)
    rest = xp.at_set(w, (slice(None), left), 0.0)
    d = xp.at_set(rest, (slice(None), left), -xp.sum(rest, axis=-1))
    gap = xp.zeros((w.shape[0], size - n), d.dtype)
    circular = xp.concatenate([d[:, left:], gap, d[:, :left]], axis=-1)
    transform = xp.rfft(circular)
    re, im = transform.real, transform.imag
    log_abs, arg, log_error = log_transform(re, im)
    used = count
    if centre is not None:
        # (what the numbers of uses change is added as one, below)
        count, start = xp.stop_gradient(count), xp.stop_gradient(start)
    log_power, angle = count @ log_abs, count @ arg
    if centre is not None:
        more, turned = uses_change(used, weights.log_total, log_abs, arg, centre, size)
        log_power, angle = log_power + more, angle + turned

    # rounding of each frequency: of the transform (through T/|φ|), of log1p and of the power itself
    size_d = xp.sqrt(xp.sum(d * d, axis=-1))
    transform_error = FFT * np.log2(size) * _EPS * size_d + weights.noise
    wave = 2.0 * np.sin(np.pi * np.arange(size // 2 + 1) / size)
    inverse = xp.exp(-log_abs)
    relative = xp.einsum("c,ck->k", count * transform_error, inverse)
    relative = relative + wave * xp.einsum("c,ck->k", count * weights.jitter, inverse)
    relative = relative + count @ log_error
    power = xp.exp(log_power)
    error = power * (relative + FFT * np.log2(size) * _EPS)
    noise = xp.sqrt(2.0 * xp.sum(error * error) / size)
    escaped = escaped_mass(w, count, h * offset, h * start, h * size, h, miss_low, miss_high)

    spectrum = _shifted(power, angle, start, size)
    return Composed(
        *_block_sums(spectrum, tilt, h, size, block), *normalisation(weights, count), noise, escaped
    )


def _shifted(power, angle, start, size):
    """The spectrum with absolute values ``power`` and angles, moved so that the window's first
    point comes first.
    """
    k = xp.arange(size // 2 + 1, dtype=float)
    turns = k * (start % size) / size
    angle = angle + (2.0 * np.pi) * (turns - xp.floor(turns))
    return xp.complex(power * xp.cos(angle), power * xp.sin(angle))


def _block_sums(spectrum, tilt, h, size, block):
    """``plain`` and ``split`` of ``Composed``, by short kernels.

    Method: docs/method/blocks.md#thinning
    """
    i = xp.arange(1.0, block + 1.0)
    decay = xp.exp(-tilt * i * h)
    share = xp.expm1(i * h) / xp.expm1(block * h)
    masses = xp.irfft(spectrum, size).reshape(size // block, block)
    return masses @ decay, masses @ (decay * share)


def compose_jumps(
    weights, count, start, tilt, h, miss_low, miss_high, beyond, from_point, *, left, size, block
):
    """The part of the composition in which at least one step is a jump (unbatched); see
    ``compose_blocks``.

    Where one large step carries the sum past a threshold, tilting alone shows that part beside a
    law of many small steps that is larger by far more than rounding allows. With φ = φ_small +
    φ_jump the difference φ^T − φ_small^T = φ_small^T·expm1(T·log1p(φ_jump/φ_small)) has relative
    accuracy. What is left out, no jump at all, is bounded (Chernoff) beyond ``from_point``: use no
    vertex below it.

    Args:
        beyond: which masses are jumps, shape (components, points).
        from_point: first lattice point (from the sum of centres) that is looked at.

    Method: docs/method/frequencies.md#jumps
    """
    w = weights.weight
    n = w.shape[-1]
    offset = xp.arange(-left, n - left)
    small, jump = xp.where(beyond, 0.0, w), xp.where(beyond, w, 0.0)

    def transform(a):
        gap = xp.zeros((a.shape[0], size - n))
        return xp.rfft(xp.concatenate([a[:, left:], gap, a[:, :left]], axis=-1))

    total = xp.sum(small, axis=-1)
    rest = xp.at_set(small, (slice(None), left), 0.0)
    d = xp.at_set(rest, (slice(None), left), -xp.sum(rest, axis=-1)) / total[:, None]
    near = transform(d)
    log_abs, arg, log_error = log_transform(near.real, near.imag)
    far = transform(jump)
    # (φ = 0 to rounding is kept finite, as in its log)
    some = xp.abs(1.0 + near.real) + xp.abs(near.imag) > 1e-140
    phi = xp.complex(xp.where(some, 1.0 + near.real, 1e-140), xp.where(some, near.imag, 0.0))
    ratio = far / (phi * total[:, None])
    re, im = ratio.real, ratio.imag
    log_ratio, angle_ratio, ratio_error = log_transform(
        re, im
    )  # of 1 + ratio, which may be next to 1
    real, imaginary = count @ log_ratio, count @ angle_ratio
    log_power = count @ (log_abs + xp.log(total)[:, None])
    angle = count @ arg
    # times e^{a + ib} − 1 = expm1(a)·cos b − 2·sin²(b/2) + i·e^a·sin b; where φ_small is next to
    # nothing e^a alone may overflow
    power, whole = xp.exp(log_power), xp.exp(xp.minimum(log_power + real, 0.0))
    half, cosine = xp.sin(0.5 * imaginary), xp.cos(imaginary)
    tame = xp.abs(real) < 1.0
    shrunk = xp.where(tame, real, 0.0)
    more_re = xp.where(
        tame, power * (xp.expm1(shrunk) * cosine - 2.0 * half * half), whole * cosine - power
    )
    more_im = whole * xp.sin(imaginary)
    more = xp.sqrt(more_re * more_re + more_im * more_im)

    # rounding: of φ_small as in ``compose_blocks``, seen through the part with jumps; of φ_jump,
    # relative to its own mass
    wave = 2.0 * np.sin(np.pi * np.arange(size // 2 + 1) / size)
    depth = FFT * np.log2(size) * _EPS
    inverse = xp.exp(-log_abs) / total[:, None]
    size_d = total * xp.sqrt(xp.sum(d * d, axis=-1))
    single = (
        (depth * size_d + weights.noise)[:, None] + wave * weights.jitter[:, None]
    ) * inverse + 4.0 * _EPS
    own = depth * xp.sqrt(xp.sum(jump * jump, axis=-1)) + xp.sum(jump * weights.error, axis=-1)
    moved = own[:, None] * inverse + xp.sqrt(re * re + im * im) * (single + log_error)
    least = xp.maximum(xp.sqrt((1.0 + re) ** 2 + im * im), 1e-100)
    error = more * (count @ (single + log_error) + depth) + whole * (
        count @ (moved / least + ratio_error)
    )
    error = error + xp.where(tame, 0.0, (power + whole) * (count @ (single + log_error) + depth))
    noise = xp.sqrt(2.0 * xp.sum(error * error) / size)
    escaped = escaped_mass(w, count, h * offset, h * start, h * size, h, miss_low, miss_high)

    def no_jump(a, mass, offset):
        return (
            xp.sum(count * (log_moment(mass, a * h * offset) + xp.log(total))) - a * h * from_point
        )

    # (any tilt gives a bound: the best one on a coarse lattice will do)
    share, tilts = small / total[:, None], miss_high * 2.0 ** xp.arange(-6.0, 9.0)
    coarse = _coarser(share, left)
    best = xp.argmin(xp.stack([no_jump(tilts[i], *coarse) for i in range(15)]))
    escaped = escaped + xp.exp(xp.minimum(no_jump(xp.take(tilts, best), share, offset), 0.0))
    spectrum = _shifted(xp.ones_like(power), angle, start, size) * xp.complex(more_re, more_im)
    return Composed(
        *_block_sums(spectrum, tilt, h, size, block), *normalisation(weights, count), noise, escaped
    )


def _coarser(mass, left):
    """Masses (components, points) and offsets on a lattice of about so many points, each mass
    shared by the two points beside it.
    """
    each = max(1, mass.shape[-1] // _COARSE)
    cells = -(-mass.shape[-1] // each)
    rows = xp.pad(mass, ((0, 0), (0, cells * each - mass.shape[-1]))).reshape(-1, cells, each)
    above = rows @ (np.arange(each) / each)
    below = xp.sum(rows, axis=-1) - above
    return (
        xp.pad(below, ((0, 0), (0, 1))) + xp.pad(above, ((0, 0), (1, 0))),
        each * np.arange(cells + 1.0) - left,
    )


def tail_sums(blocks, ratio, base=32):
    """A_k = Σ_{i ≥ 0} ratio^i·blocks_{k+i} for 0 ≤ ratio ≤ 1; shape (blocks,), a power of two.

    Rows of ``base`` are summed by one small triangular product; the rows' own totals by the same
    method.

    Method: docs/method/blocks.md#thinning
    """
    length = blocks.shape[-1]
    base = min(base, length)
    lag = np.arange(base)[:, None] - np.arange(base)[None, :]
    log_ratio = xp.log(xp.maximum(ratio, 1e-300))
    decay = xp.where(lag >= 0, xp.exp(xp.maximum(log_ratio * np.maximum(lag, 0), -700.0)), 0.0)
    rows = blocks.reshape(length // base, base)
    inner = rows @ decay
    if length == base:
        return inner[0]
    later = tail_sums(inner[:, 0], xp.exp(xp.maximum(base * log_ratio, -700.0)), base)
    later = xp.pad(later[1:], (0, 1))
    remaining = xp.exp(xp.maximum(log_ratio * (base - np.arange(base)), -700.0))
    return (inner + later[:, None] * remaining).reshape(length)
