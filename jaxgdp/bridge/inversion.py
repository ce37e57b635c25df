"""The μ of the Gaussian profile through (ε, δ), both sides certified (Liu et al. 2022, Def. 4.1).

δ_μ(ε) grows with μ. In x = log μ the log of δ, or where that is above one half the log of 1 − δ, is
inverted by Newton's method inside a bracket; the bracket ends where the profile itself has been
evaluated and found below, and above, by more than its rounding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..numerics import gaussian_profile
from ..numerics.normal import LOG_SQRT_2PI, log1mexp, ndtri_exp, ndtri_half_plus
from ..numerics.shapes import Array, ArrayLike

_MARGIN = 1.5e-12  # of log δ_μ and log(1 − δ_μ), whose own promise is 1e-12
_STEP = 1e-11  # half the width of the answer, relative
_HALF = np.log(0.5)
_LEAST = 1e-307


def _log_of(epsilon: Array, mu: Array, body: Array) -> Array:
    """log(1 − δ_μ(ε)) where the body is requested, log δ_μ(ε) elsewhere."""
    if not np.any(body):
        return gaussian_profile.log_delta(epsilon, mu)
    rest = gaussian_profile.log_one_minus_delta(epsilon, mu)
    return rest if np.all(body) else np.where(body, rest, gaussian_profile.log_delta(epsilon, mu))


def exceeds(epsilon: Array, log_delta: Array, log_one_minus_delta: Array, mu: float) -> Array:
    """Whether δ at ε lies above the Gaussian profile of μ, as far as doubles can tell."""
    if mu == 0.0 or np.isinf(mu):
        return log_delta > -np.inf if mu == 0.0 else np.zeros(np.shape(epsilon), bool)
    body = log_delta > _HALF
    with np.errstate(all="ignore"):
        own = _log_of(epsilon, np.full(np.shape(epsilon), mu), body)
    return np.where(body, log_one_minus_delta < own, log_delta > own)


def mu_of(
    epsilon: ArrayLike, log_delta: ArrayLike, log_one_minus_delta: ArrayLike
) -> tuple[Array, Array]:
    """Lower and upper bound, 3e-11 apart relative, on the μ with δ_μ(ε) = δ.

    Args:
        epsilon: ε ≥ 0 in nats.
        log_delta, log_one_minus_delta: log δ and log(1 − δ); arrays of one shape.

    Returns:
        (lower, upper); 0 where δ is 0, ∞ where it is 1.
    """
    epsilon, log_delta, log_one_minus_delta = (
        np.asarray(a, float) for a in (epsilon, log_delta, log_one_minus_delta)
    )
    with np.errstate(all="ignore"):
        return _mu_of(epsilon, log_delta, log_one_minus_delta)


def _mu_of(epsilon: Array, log_delta: Array, log_one_minus_delta: Array) -> tuple[Array, Array]:
    zero, one = log_delta == -np.inf, log_one_minus_delta == -np.inf
    settled = zero | one
    epsilon = np.where(settled, 1.0, epsilon)
    log_delta = np.where(settled, -1.0, log_delta)
    log_one_minus_delta = np.where(settled, log1mexp(-1.0), log_one_minus_delta)
    body = log_delta > _HALF
    sign = np.where(body, -1.0, 1.0)
    goal = np.where(body, log_one_minus_delta, log_delta)
    margin = _MARGIN + 1e-15 * np.abs(goal)

    def excess(x: Array) -> tuple[Array, Array]:
        """How far the profile of e^x lies above the goal, and its slope."""
        mu = np.exp(x)
        value = np.maximum(_log_of(epsilon, mu, body), -1e300)
        a, _ = gaussian_profile.arguments(epsilon, mu)
        slope = np.exp(np.minimum(x - 0.5 * a * a - LOG_SQRT_2PI - value, 700.0))
        # (so deep that the difference of the logs has no digits: halve instead)
        slope = np.where(np.abs(value) < 1e10, slope, 0.0)
        return sign * (value - goal), slope

    # δ_μ(ε) is at most δ_μ(0), and at most Φ(μ/2 − ε/μ); either gives a μ that is not too large
    at_zero = 2.0 * ndtri_half_plus(0.5 * np.exp(log_delta), log_one_minus_delta + _HALF)
    z = np.where(body, -ndtri_exp(log_one_minus_delta), ndtri_exp(log_delta))
    size = np.sqrt(2.0) * np.sqrt(epsilon)
    root = np.hypot(z, size)
    by_tail = np.where(z > 0.0, z + root, size * (size / np.maximum(root + np.abs(z), 1e-300)))
    low = np.log(np.maximum(np.maximum(at_zero, by_tail), _LEAST)) - 1e-9
    step, high = 0.05, low + 0.05
    for _ in range(60):
        short = excess(high)[0] <= margin
        if not np.any(short):
            break
        step *= 2.0
        high = np.where(short, high + step, high)
    exact = np.clip(np.log(np.maximum(at_zero, _LEAST)), low, high)
    x = np.where(epsilon == 0.0, exact, 0.5 * (low + high))
    for _ in range(200):
        value, slope = excess(x)
        low, high = np.where(value < -margin, x, low), np.where(value > margin, x, high)
        change = np.where(slope > 0.0, -value / np.where(slope > 0.0, slope, 1.0), np.inf)
        after = x + change
        inside = (after > low) & (after < high)
        after = np.where(inside, after, 0.5 * (low + high))
        done = (np.abs(after - x) < 0.05 * _STEP) | (np.abs(value) <= margin)
        x = np.where(done, x, after)
        if np.all(done):
            break
    for side in (-1.0, 1.0):
        value = side * excess(x + side * _STEP)[0]
        confirmed = value > margin
        if side < 0.0:
            low = np.where(confirmed, np.maximum(low, x - _STEP), low)
        else:
            high = np.where(confirmed, np.minimum(high, x + _STEP), high)
    # (e^x itself, and what x is rounded by)
    room = 4e-16 * (1.0 + np.abs(x))
    low, high = np.exp(low) * (1.0 - room), np.exp(high) * (1.0 + room)
    # a μ below every normal double
    low = np.where(low <= 2.0 * _LEAST, 0.0, low)
    low, high = (np.where(zero, 0.0, np.where(one, np.inf, side))[()] for side in (low, high))
    return low, high


def mu_of_sides(
    epsilon: ArrayLike, low: Iterable[Array], high: Iterable[Array]
) -> tuple[Array, Array]:
    """Bounds on μ from bounds on δ: each a pair (log δ, log(1 − δ)), arrays of one shape."""
    return mu_of(epsilon, *low)[0], mu_of(epsilon, *high)[1]
