"""What sampling leaves of a Gaussian curve's μ at one FPR, without a difference of rates.

At the quantile z of the FPR a shift by x gains TPR − α = Φ(z + x) − Φ(z) = φ(z)·J(z, x) with
J(z, x) = ∫₀ˣ e^{−zs − s²/2} ds. The share p of the gain of a shift by μ is that of the x with
J(z, x) = p·J(z, μ)."""

from __future__ import annotations

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import GAIN, LOG, UNIT
from ...numerics.first_double import first_double
from ...numerics.gaussian_profile import NODES, WEIGHTS
from ...numerics.normal import LOG_SQRT_2PI, half_mills, log_ndtr
from ...numerics.shapes import Array

_SHORT, _FLAT = 1.0, 2.0  # longest shift, and fall of e^{−zs}, that the quadrature serves


def log_gain(z: Array, shift: Array) -> Array:
    """log J(z, x) for z ≤ 0 and x ≥ 0, to ``errors.GAIN`` and a few units of the log.

    A short integral is Gauss-Legendre's; else a difference of Mills ratios, of which one is at most
    e^{−½} of the other, or one minus two tails.

    Method: docs/method/known.md#mu
    """
    z, shift = np.broadcast_arrays(z, shift)
    with np.errstate(all="ignore"):
        short = (shift <= _SHORT) & (np.abs(z) * shift <= _FLAT)
        half = 0.5 * np.where(short, shift, 0.0)
        s = half[..., None] * (1.0 + NODES)
        fall = np.where(short, z, 0.0)[..., None]
        integral = np.log(np.sum(WEIGHTS * np.exp(-s * (fall + 0.5 * s)), axis=-1)) + np.log(half)
        end = z + shift
        left = end <= 0.0
        rise = -shift * (z + 0.5 * shift)
        ratio = half_mills(z) / half_mills(np.where(left, end, 0.0)) * np.exp(-rise)
        below = rise + np.log(half_mills(end)) + np.log1p(-np.minimum(ratio, 1.0)) + LOG_SQRT_2PI
        tails = np.exp(log_ndtr(-end)) + np.exp(log_ndtr(z))
        across = np.log1p(-tails) + 0.5 * z * z + LOG_SQRT_2PI
    return np.where(short, integral, np.where(left, below, across))


def _sides(z: Array, shift: Array) -> Bracket:
    found = log_gain(z, shift)
    room = GAIN + LOG * UNIT * np.where(np.isfinite(found), np.abs(found) + z * z, 0.0)
    return Bracket(found - room, found + room)


def mu_of_share(z: Bracket, mu: Bracket, log_share: Array) -> Bracket:
    """The μ at the FPR Φ(z), z ≤ 0, of a share of the gain; μ itself at z = −∞, its limit.

    Args:
        z: quantile of the FPR.
        mu: of the whole gain.
        log_share: log p.

    Method: docs/method/known.md#mu
    """
    shifts = Bracket(*(np.asarray(side, float)[..., None] for side in mu))
    whole = np.zeros_like(shifts.lower)
    return mu_of_sum(z, shifts, Bracket(whole, whole), log_share)


def mu_of_sum(z: Bracket, shifts: Bracket, log_w: Bracket, log_share: Array) -> Bracket:
    """The μ at the FPR Φ(z), z ≤ 0, of a share of a weighted sum of gains; the largest shift at
    z = −∞, its limit.

    J falls with z and grows with x, so both sides are found by trying.

    Args:
        z: quantile of the FPR.
        shifts, log_w: of each gain, the last axis, and the log of its weight.
        log_share: log p.

    Method: docs/method/known.md#mu
    """
    number = np.shape(shifts.lower)[-1]
    outer = np.shape(z.lower), np.shape(shifts.lower)[:-1], np.shape(log_share)
    shape = np.broadcast_shapes(*outer)
    flat = lambda a: np.broadcast_to(np.asarray(a, float), shape).reshape(-1)
    rows = lambda a: np.broadcast_to(np.asarray(a, float), (*shape, number)).reshape(-1, number)
    low_z, high_z, share = map(flat, (*z, log_share))
    lows, highs, light, heavy = map(rows, (*shifts, *log_w))
    low, high = lows.max(axis=-1), highs.max(axis=-1)
    deep = ~np.isfinite(low_z)
    low_z, high_z = np.where(deep, -1.0, low_z), np.where(deep, -1.0, high_z)
    added = lambda each: np.logaddexp.reduce(each, axis=-1)
    most = added(_sides(low_z[:, None], highs).upper + heavy) + share
    least = added(_sides(high_z[:, None], lows).lower + light) + share
    above = first_double(
        lambda x: _sides(high_z[:, None], x).lower >= most[:, None], np.zeros_like(high), high
    ).after
    below = first_double(
        lambda x: _sides(low_z[:, None], x).upper > least[:, None], np.zeros_like(low), low
    ).before
    return Bracket(
        np.where(deep, low, below).reshape(shape), np.where(deep, high, above).reshape(shape)
    )
