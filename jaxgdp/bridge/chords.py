"""Chords of a privacy profile as attacks, and the Gaussian profile that touches each (Liu et al.
2022, Section 4.1; see :mod:`jaxgdp.bridge.head`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics.errors import QUANTILE, QUANTILE_AT_ZERO, SPACING
from ..numerics.gaussian_profile import NODES, WEIGHTS
from ..numerics.normal import LOG_SQRT_2PI, log_sub, ndtri_exp
from ..numerics.shapes import Array

_MARGIN = 1.03  # more parts than the estimate, which is one
_SMALL = 0.1  # μ below which a difference of quantiles has lost digits


class Ends(NamedTuple):
    """One end of each cell: ε, log δ from above and log(1 − δ) from below."""

    epsilon: Array
    log_delta: Array
    log_one_minus_delta: Array


class Tangent(NamedTuple):
    """The Gaussian profile that touches each chord: its μ, and the ε where it does."""

    mu: Array
    epsilon: Array


def chord_mu(left: Ends, right: Ends) -> Tangent:
    """μ of the attack that each cell's chord stands for, rounded up, and the ε where its Gaussian
    profile touches the chord; ∞ where no digits are left.

    Args:
        left, right: ends of the cells, log δ from above and log(1 − δ) from below.
    """
    e, width = (left.epsilon, right.epsilon), right.epsilon - left.epsilon
    log_delta = left.log_delta, right.log_delta
    log_one_minus_delta = left.log_one_minus_delta, right.log_one_minus_delta
    fall = log_sub(log_delta[0], log_delta[1])
    log_fpr = np.minimum(fall - e[1] - np.log(-np.expm1(-width)), 0.0)
    flat = log_fpr == -np.inf
    safe = np.where(flat, -1.0, log_fpr)
    # whatever the slope is rounded to, a line above both ends is above the chord
    room = 8.0 * SPACING * (1.0 + e[1] + np.abs(safe))
    lost = [x + safe for x in e]
    log_tpr = np.maximum.reduce(list(map(np.logaddexp, log_delta, lost))) + room
    keeps = [r > x + 4.0 * room for r, x in zip(log_one_minus_delta, lost, strict=True)]

    def left_over(r: Array, x: Array, keep: Array) -> Array:
        error = 2.0 * room / -np.expm1(np.where(keep, x - r, -1.0))
        return np.where(keep, log_sub(r, np.where(keep, x, r - 1.0)) - error, -np.inf)

    log_fnr = np.minimum.reduce(list(map(left_over, log_one_minus_delta, lost, keeps)))
    by_tpr = log_tpr < np.log(0.5)
    of_tpr, of_fnr = (ndtri_exp(np.minimum(log, 0.0)) for log in (log_tpr, log_fnr))
    z_tpr = np.where(by_tpr, of_tpr, -of_fnr)
    z_fpr = ndtri_exp(safe)
    mu = z_tpr - z_fpr + QUANTILE * (np.abs(z_tpr) + np.abs(z_fpr)) + 2.0 * QUANTILE_AT_ZERO
    mu = np.where(mu < _SMALL, np.minimum(mu, _small_mu(e, log_delta, safe, z_fpr, room)), mu)
    mu = np.where(np.isnan(mu), np.inf, np.maximum(mu, 0.0))
    # (on a flat chord δ = TPR: nothing is closer than its right end)
    at = np.where(np.isfinite(mu), -mu * (z_fpr + 0.5 * mu), e[1])
    return Tangent(np.where(flat, np.inf, mu), np.where(flat, np.inf, at))


def _small_mu(
    e: tuple[Array, Array], log_delta: tuple[Array, Array], log_fpr: Array, z: Array, room: Array
) -> Array:
    """μ with Φ(z + μ) − Φ(z) = TPR − α, by ∫₀^μ e^{−zs − s²/2} ds, a sum of positive terms."""
    gains = (np.log(np.expm1(np.minimum(x, 700.0))) + log_fpr for x in e)
    log_gain = np.maximum.reduce(list(map(np.logaddexp, log_delta, gains)))
    area = np.exp(log_gain + 0.5 * z * z + LOG_SQRT_2PI)

    def integral(x: Array) -> Array:
        s = 0.5 * x[..., None] * (1.0 + NODES)
        return 0.5 * x * np.sum(WEIGHTS * np.exp(-s * (z[..., None] + 0.5 * s)), axis=-1)

    x = np.full(np.shape(z), _SMALL)
    for _ in range(12):
        x = np.clip(x - (integral(x) - area) * np.exp(x * (z + 0.5 * x)), 0.0, 2.0 * _SMALL)
    solved = np.abs(integral(x) - area) <= 1e-9 * area
    error = 2e-9 + 4.0 * room + 2.0 * QUANTILE * z * z
    return np.where(solved & (error < 0.1), x * (1.0 + error), np.inf)


def _excess(fall: Array) -> Array:
    """max_t log(chord/curve) of e^{−qt} on [0, 1]: log a + 1/a − 1, a = (1 − e^{−q})/q."""
    q = np.maximum(fall, 1e-4)
    a = -np.expm1(-q) / q
    return np.where(fall < 1e-3, fall * fall / 8.0, np.log(a) + 1.0 / a - 1.0)


def cuts(ratio: Array, fall: Array) -> Array:
    """Parts of a cell whose excess is ``ratio`` times what it may be; for steering only."""
    ratio = np.maximum(ratio, 1.0)
    fall = np.where(np.isfinite(fall), fall, 0.0)
    wanted = _excess(fall) / ratio
    parts = np.sqrt(ratio)
    for _ in range(8):
        # excess is close to a square: by how much it is not decides the next number
        more = np.sqrt(_excess(fall / parts) / np.where(wanted > 0.0, wanted, 1.0))
        parts = np.where(wanted > 0.0, parts * more, parts)
    return _MARGIN * parts
