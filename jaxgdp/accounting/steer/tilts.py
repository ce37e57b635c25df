"""Exponential tilts: where the saddle point of an error rate or of a threshold lies.

All functions work on arrays with the two directions of the pair on the last axis, "sides". They
only guide the search; no certificate depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float
from .cumulants import LossQuadrature, composed

_BETWEEN, _OFF = (0.05, 0.95), 0.1  # tilts at ℓ = 0, and standard deviations it may be off by
_CLOSE = 1e-6  # a Newton step of a tilt, relative, after which there is no other
_FEW_JUMPS = (
    40.0  # −log of how many jumps are expected, at most: a second one is then outside of the window
)
_UNSURE = 10.0  # by which −log of a mass may be more than follows from a mean and a variance
_SOME_JUMPS, _HARDLY_ONE = 1.0, -8.0  # log of how many jumps are several, and hardly one
_SEVERAL = 6.0  # … where several jumps lead to the threshold
_HIDDEN = 8.0  # −log of the part of what takes a jump that is about the threshold, at most
MARGIN = 0.05  # how far past the asked depth, in standard deviations, the pieces reach


class Depths(NamedTuple):
    """Saddle-point depths of the two error rates at a tilt; shapes (…, sides).

    Attributes:
        fpr: r_X in standard deviations, FPR ≈ Φ(−r_X).
        tpr: r_Y in standard deviations, TPR ≈ Φ(−r_Y).
        threshold: Λ', the mean of the composed loss under the tilt.
        variance: Λ'', its variance.
    """

    fpr: Array
    tpr: Array
    threshold: Array
    variance: Array


def depths(loss: LossQuadrature, s: Float[Array, "... sides"]) -> Depths:
    """Saddle-point depths of both rates at tilt s.

    r_X² = 2(sΛ' − Λ) and r_Y² = 2((s − 1)Λ' − Λ), with the sign of s − 1."""
    value, mean, square = composed(loss, s)
    r_x = xp.sqrt(xp.maximum(2.0 * (s * mean - value), 1e-30))
    r_y = xp.sign(s - 1.0) * xp.sqrt(xp.maximum(2.0 * ((s - 1.0) * mean - value), 0.0))
    return Depths(r_x, r_y, mean, square)


def at_depth(loss: LossQuadrature, low: Array, target: Array, of_y: Array) -> Array:
    """The tilt above ``low`` at which r_X (or r_Y, where ``of_y``) equals ``target``.

    Method: docs/method/tilting.md#saddle
    """

    def error(s):
        r_x, r_y, _, square = depths(loss, s)
        near = xp.abs(r_y) < 1e-6
        slope_y = xp.where(near, xp.sqrt(square), (s - 1.0) * square / xp.where(near, 1.0, r_y))
        return xp.where(of_y, r_y, r_x) - target, xp.where(of_y, slope_y, s * square / r_x)

    scale = xp.sqrt(composed(loss, low)[2])
    start = xp.where(of_y, 1.0 + xp.abs(target) / scale, target / scale)
    return _increasing_root(error, xp.maximum(low, 1e-3), start)


def at_threshold(
    loss: LossQuadrature, low: Array, target: Array, wanted: Array | bool = True
) -> Array:
    """The tilt above ``low`` at which the mean Λ' equals ``target``, where it is ``wanted``.

    Method: docs/method/tilting.md#saddle
    """

    def error(s):
        _, mean, square = composed(loss, s)
        return mean - target, square

    _, mean, square = composed(loss, low)
    return _increasing_root(error, low, low + xp.maximum(target - mean, 0.0) / square, wanted)


class WithOneJump(NamedTuple):
    """A composed loss with one large step under a tilt; shapes (sides,).

    Attributes:
        log_number: log of the mean number of large steps.
        mean, variance: of the composed loss with one of them.
    """

    log_number: Array
    mean: Array
    variance: Array


class Jumps:
    """A composed loss as of many small and few large steps, beyond ``least`` (``at_jump``)."""

    def __init__(self, loss: LossQuadrature, least: Float[Array, " sides"]):
        swap = loss.reverse[:, None, None]
        self.loss, self.nodes = loss, xp.where(swap, -loss.nodes, loss.nodes)
        self.log_weight = xp.where(
            swap, loss.log_weight + loss.nodes, loss.log_weight + 0.0 * self.nodes
        )
        self.large = self.nodes > least[:, None, None]

    def log_number(self, s: Array, some: Array) -> Array:
        """log of the mean number of steps in ``some`` under tilt s, of each not large."""
        exponent = self.log_weight + s[:, None, None] * self.nodes

        def mass(some):
            return xp.logsumexp(xp.where(some, exponent, -1e300), axis=-1)

        return xp.logsumexp(xp.log(self.loss.uses) + mass(some) - mass(~self.large), axis=-1)

    def one(self, s: Float[Array, " sides"]) -> WithOneJump:
        """What is expected under tilt s, of the loss with one large step."""
        exponent, count = self.log_weight + s[:, None, None] * self.nodes, self.loss.uses

        def parts(some):
            masked = xp.where(some, exponent, -1e300)
            top = xp.max(masked, axis=-1, keepdims=True)
            weight = xp.where(some, xp.exp(exponent - top), 0.0)
            total = xp.maximum(xp.sum(weight, axis=-1), 1e-300)
            mean = xp.sum(weight * self.nodes, axis=-1) / total
            square = xp.sum(weight * (self.nodes - mean[..., None]) ** 2, axis=-1) / total
            return top[..., 0] + xp.log(total), mean, square

        (log_large, far, far_square), (log_small, near, near_square) = (
            parts(self.large),
            parts(~self.large),
        )
        number = xp.log(count) + log_large - log_small
        all_of_them = xp.logsumexp(number, axis=-1)
        share = xp.exp(number - all_of_them[:, None])
        jump = xp.sum(share * far, axis=-1)
        spread = xp.sum(share * (far_square + (far - jump[:, None]) ** 2), axis=-1)
        return WithOneJump(
            all_of_them,
            xp.sum(count * near, axis=-1) + jump,
            xp.sum(count * near_square, axis=-1) + spread,
        )

    def beyond(self, threshold: Float[Array, " sides"]) -> Array:
        """Which nodes lie beyond a threshold (about: nodes are far apart)."""
        most = xp.max(self.nodes, axis=(-2, -1))
        return self.nodes > xp.minimum(0.98 * threshold, 0.999 * most)[:, None, None]


def tail_slope(
    loss: LossQuadrature, least: Float[Array, " sides"], threshold: Float[Array, " sides"]
) -> Float[Array, " sides"]:
    """How fast the probability of a jump beyond the threshold falls with it: −d log Pr/dℓ."""
    jumps, plain = Jumps(loss, least), 0.0 * threshold
    here, there = (jumps.log_number(plain, jumps.beyond(f * threshold)) for f in (1.0, 1.25))
    return xp.maximum((here - there) / (0.25 * threshold), 1e-3)


class JumpTilt(NamedTuple):
    """The tilt for a composed loss with a jump; shapes (sides,).

    Attributes:
        tilt: s.
        neg_log_mass: −log of the mass about the threshold that the loss has under the tilt.
        several: whether several jumps are expected under the tilt of the saddle point, so that the
            law is not one without a jump beside one with one, with nothing between them.
        none: whether hardly one is expected there: smaller steps lead to the threshold.
    """

    tilt: Array
    neg_log_mass: Array
    several: Array
    none: Array


def at_jump(
    loss: LossQuadrature,
    least: Float[Array, " sides"],
    threshold: Float[Array, " sides"],
    high: Float[Array, " sides"],
) -> JumpTilt:
    """The tilt for a composed loss with a step beyond ``least``, and −log of the mass about the
    threshold that this has under it.

    At most one such step is expected, and with one of them the mean is at most at the threshold.
    There are as few of them as leaves another one outside of the window, but never so few that
    hardly anything of what takes one is about the threshold. ``high`` is a guess."""
    jumps = Jumps(loss, least)

    def tilt_of(error):
        return _increasing_root(
            lambda s: (error(s), 1e-300 + 0.0 * s), xp.full_like(high, 0.5), xp.maximum(high, 0.6)
        )

    def one(s):
        """log of how many there are, and −log of the part of what takes one that is about the
        threshold, by its mean and variance.
        """
        number, mean, square = jumps.one(s)
        return number, 0.5 * xp.maximum(threshold - mean, 0.0) ** 2 / xp.maximum(square, 1e-300)

    there = tilt_of(lambda s: jumps.one(s)[1] - threshold)
    several = tilt_of(lambda s: one(s)[0])
    # where one large step does not get there, with several of them, what is about the threshold
    # follows from all moments
    single, saddle = one(there)[0] <= 0.0, at_threshold(loss, xp.full_like(high, 0.5), threshold)
    rate = saddle * threshold - composed(loss, saddle)[0]

    def hidden(s):
        number, part = one(s)
        return xp.where(
            single, part, rate - s * threshold + composed(loss, s)[0] + number + _SEVERAL
        )

    tilt = xp.maximum(
        tilt_of(lambda s: one(s)[0] + _FEW_JUMPS), tilt_of(lambda s: _HIDDEN - hidden(s))
    )
    tilt = xp.minimum(tilt, xp.minimum(there, several))
    expected = one(high)[0]
    fainter = xp.maximum(hidden(tilt) - one(tilt)[0], 0.0) + _UNSURE
    return JumpTilt(tilt, fainter, expected > _SOME_JUMPS, expected < _HARDLY_ONE)


def _increasing_root(
    error: Callable, low: Array, start: Array, wanted: Array | bool = True
) -> Array:
    """Root above ``low`` of an increasing function that gives (value, slope), where ``wanted``.

    Newton steps in log s within a bracket, which is halved where a step leaves it or is not much
    shorter than the one before: with heavy tails depth jumps at some s, and beyond it Newton alone
    would creep."""

    def step(_, state):
        s, below, above, before, done = state
        value, slope = error(s)
        below, above = xp.where(value < 0.0, s, below), xp.where(value < 0.0, above, s)
        move = xp.clip(-value / xp.maximum(s * slope, 1e-300), -30.0, 30.0)
        newton = s * xp.exp(move)
        inside = (newton > below) & (newton < above)
        close = inside & (xp.abs(move) < _CLOSE)
        quick = inside & (xp.abs(move) < 0.5 * before)
        halved = xp.sqrt(below * above)
        after = xp.where(quick | close, newton, halved)
        moved = xp.where(quick, xp.abs(move), xp.log(above / below))
        return xp.where(done, s, after), below, above, moved, done | close

    start = xp.maximum(start, low * (1.0 + 1e-6))
    low = low + 0.0 * start
    done = ~(wanted | (start < 0.0))
    return xp.fori_loop(
        0, 20, step, (start, low, 64.0 * start, xp.inf + start, done), lambda state: state[4]
    )[0]


def at_zero(loss: LossQuadrature) -> Float[Array, " sides"]:
    """The tilt at which the mean is about 0, shape (sides,): a few Newton steps, and where jumps
    make the mean grow much faster than they take it for, a search.
    """
    tilt = 0.5 + xp.zeros(loss.reverse.shape)
    for _ in range(4):
        _, mean, square = composed(loss, tilt)
        tilt = xp.clip(tilt - mean / square, *_BETWEEN)
    _, mean, square = composed(loss, tilt)
    off = xp.abs(mean) > _OFF * xp.sqrt(square)

    def searched(tilt):
        return at_threshold(loss, _BETWEEN[0] + 0.0 * tilt, 0.0 * tilt, off)

    found = xp.cond(xp.any(off), searched, lambda tilt: tilt, tilt)
    return xp.where(off, xp.clip(found, *_BETWEEN), tilt)


def _next_to_top(loss: LossQuadrature, tilt0: Array) -> Array:
    """The mean next to the largest composed loss: by a fiftieth of the standard deviation at
    ``tilt0``. ∞ where losses are unbounded.
    """
    return loss.support()[1] - 0.02 * xp.sqrt(composed(loss, tilt0)[2])


def at_top(loss: LossQuadrature, tilt0: Array, tilt: Array) -> Array:
    """Whether the mean under a tilt is next to the largest composed loss."""
    return composed(loss, tilt)[1] >= _next_to_top(loss, tilt0)


def below_top(loss: LossQuadrature, tilt0: Array, tilt: Array) -> Array:
    """The tilt, or the weakest that is ``at_top`` where it is beyond that."""
    end, most = _next_to_top(loss, tilt0), xp.log(1e4 / (0.02 * xp.sqrt(composed(loss, tilt0)[2])))

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        past = composed(loss, xp.exp(middle))[1] >= end
        return xp.where(past, low, middle), xp.where(past, middle, high)

    def lowered(tilt):
        return xp.minimum(
            tilt, xp.exp(xp.fori_loop(0, 30, halve, (xp.log(tilt0), xp.maximum(most, 1.0)))[1])
        )

    beyond = composed(loss, tilt)[1] >= end
    return xp.cond(
        xp.any(beyond), lambda tilt: xp.where(beyond, lowered(tilt), tilt), lambda tilt: tilt, tilt
    )


class TiltRange(NamedTuple):
    """The tilts between ℓ = 0 and the far end of a half-curve; shapes (sides,).

    Attributes:
        tilt0, depth0: tilt at ℓ = 0, and the depth of the FPR there.
        tilt_end, depth_end: tilt at the far end, and the depth of the FPR there.
        threshold: ℓ at the far end.
        spread: standard deviation of the composed loss at ``tilt0``.
    """

    tilt0: Array
    depth0: Array
    tilt_end: Array
    depth_end: Array
    threshold: Array
    spread: Array


def tilt_range(loss: LossQuadrature, z_floor: Array, z_delta: Array | None) -> TiltRange:
    """The tilts from ℓ = 0 down to FPR Φ(−z_floor) and TPR Φ(−z_delta)."""
    tilt0 = at_zero(loss)
    value0, _, square0 = composed(loss, tilt0)
    r_0 = xp.sqrt(xp.maximum(-2.0 * value0, 1e-30))
    hidden = r_0 >= z_floor
    target = xp.where(hidden, -z_floor + MARGIN, z_floor + MARGIN)
    if z_delta is None:
        tilt_end = at_depth(loss, tilt0, target, hidden)
    else:
        both = (
            xp.stack([target, z_delta + MARGIN + 0.0 * target]),
            xp.stack([hidden, hidden | True]),
        )
        tilt_end = xp.max(at_depth(loss, tilt0, *both), axis=0)
    if loss.bounded:
        tilt_end = below_top(loss, tilt0, tilt_end)
    depth, _, threshold, _ = depths(loss, tilt_end)
    depth_end = xp.maximum(depth, r_0 + 1e-3)
    return TiltRange(tilt0, r_0, tilt_end, depth_end, threshold, xp.sqrt(square0))


def weakest_usable_tilt(
    loss: LossQuadrature,
    max_neg_log_density: Array,
    low: Array,
    high: Array,
    depth: Array,
    threshold: Array,
) -> Array:
    """The smallest tilt in [low, high] under which the density at a piece's far end is still
    e^{−max_neg_log_density}, or as high as goes.

    A stronger tilt would serve that end better, but where single large steps take over from many
    small ones it fills the window with them."""

    def halve(_, bounds):
        below, above = bounds
        middle = xp.sqrt(below * above)
        value, mean, square = composed(loss, middle)
        enough = (
            (0.5 * depth**2 - middle * threshold + value <= max_neg_log_density)
            | (mean >= threshold)
            | (square > widest)
        )
        return xp.where(enough, below, middle), xp.where(enough, middle, above)

    widest = 1.5 * composed(loss, low)[2]
    low, high = xp.fori_loop(0, 10, halve, (low, high))
    return xp.where(composed(loss, high)[2] > widest, low, high)


class Smoothness(NamedTuple):
    """Medians of the tilted steps, shape (sides, components), and the bandwidth, shape (sides,)."""

    median: Array
    bandwidth: Array


def smoothness(loss: LossQuadrature, s: Float[Array, " sides"], target: Array) -> Smoothness:
    """Medians of the tilted steps, and ω above which |φ|^T falls below about e^{−target}.

    T·log|φ(ω)| is near −T·E min(0.4·(ω·distance to the median)², 1), whatever the shape of the
    steps; ω is huge where T is too small to get there."""
    sign = xp.where(loss.reverse, 1.0 - s, s)[:, None]
    exponent = loss.log_weight + sign[..., None] * loss.nodes
    weight = xp.exp(exponent - xp.max(exponent, axis=-1, keepdims=True))
    weight = weight / xp.sum(weight, axis=-1, keepdims=True)
    at = xp.argmax(xp.cumsum(weight, axis=-1) >= 0.5, axis=-1)
    nodes = xp.broadcast_to(loss.nodes, weight.shape)
    median = xp.take_along_axis(nodes, at[..., None], -1)[..., 0]
    exact = loss.precision > 0.0
    median = xp.where(exact, (sign - 0.5) * loss.precision, median)
    square = (nodes - median[..., None]) ** 2
    total = xp.sqrt(composed(loss, s)[2])
    uses = loss.uses * (1.0 - loss.atomic)

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        speed = (0.4 * xp.exp(2.0 * middle))[:, None]
        decay = xp.sum(weight * xp.minimum(speed[..., None] * square, 1.0), axis=-1)
        decay = xp.where(exact, xp.minimum(speed * loss.precision, 1.0), decay)
        enough = xp.sum(uses * decay, axis=-1) >= target
        return xp.where(enough, low, middle), xp.where(enough, middle, high)

    high = xp.fori_loop(0, 12, halve, (-xp.log(total), 35.0 - xp.log(total)))[1]
    return Smoothness(xp.where(loss.reverse[:, None], -median, median), xp.exp(high))
