"""μ at points of a curve: normal quantiles of error rates, and what may hide between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...accounting.certify.curve import Points
from ...accounting.certify.vertices import Vertices
from ...bracket import Bracket
from ...numerics import namespace as xp
from ...numerics.errors import QUANTILE, QUANTILE_AT_ZERO
from ...numerics.normal import log_error, ndtri_exp
from ...numerics.shapes import Array

# log TPR − log α up to which rates are taken for nearly the same, and quantiles up to which they
# are doubles of full precision
_CLOSE, _DEEP = 0.01, 35.0
_LOG_ROOT_TWO_PI = 0.9189385332046727


def quantiles(log_alpha: Array, log_tpr: Array, log_beta: Array) -> tuple[Array, Array]:
    """Φ⁻¹(α) and Φ⁻¹(TPR) of many points at once, from the smaller of TPR and FNR."""
    z_alpha, z = ndtri_exp(xp.stack([log_alpha, xp.minimum(log_tpr, log_beta)]))
    return z_alpha, xp.where(log_tpr < log_beta, z, -z)


def difference(z_alpha: Array, z_tpr: Array, sign: float) -> Array:
    """μ = Φ⁻¹(TPR) − Φ⁻¹(α), moved by its rounding error in the direction of ``sign``."""
    value = (
        z_tpr
        - z_alpha
        + sign * (QUANTILE * (xp.abs(z_tpr) + xp.abs(z_alpha)) + 2.0 * QUANTILE_AT_ZERO)
    )
    value = xp.where(xp.isnan(value), -xp.inf, value)
    # some TPR at FPR 0: no Gaussian curve allows that
    return xp.where((z_alpha == -xp.inf) & (z_tpr > -xp.inf), xp.inf, value)


def close_rates(rates: Sequence[Array], z_alpha: Array, z_tpr: Array) -> Bracket:
    """μ of points whose two rates are nearly the same, −∞ and ∞ of others: log TPR − log α is the
    integral of the falling φ/Φ from one quantile to the other, and so at most μ times its value at
    the first, at least μ times that at the other.

    Args:
        rates: log α, log TPR and log β of the points; those with TPR > β are others.
        z_alpha, z_tpr: quantiles of the first two.

    Method: docs/method/mu.md#close
    """
    log_alpha, log_tpr, log_beta = rates
    gap = log_tpr - log_alpha
    close = (gap > 0.0) & (gap < _CLOSE) & (log_tpr < log_beta)
    close = close & (xp.abs(z_alpha) < _DEEP) & (xp.abs(z_tpr) < _DEEP)
    rounded = log_error(log_alpha, log_tpr)
    sides = []
    for log_rate, z, sign in ((log_alpha, z_alpha, -1.0), (log_tpr, z_tpr, 1.0)):
        z = xp.where(close, z, 0.0)
        steepness = xp.exp(
            -0.5 * z * z - _LOG_ROOT_TWO_PI - xp.where(close, log_rate, -_LOG_ROOT_TWO_PI)
        )
        moved = xp.where(close, xp.maximum(gap + sign * rounded, 0.0), 0.0)
        value = moved / steepness * (1.0 + sign * 4.0 * QUANTILE * (2.0 + z * z))
        sides.append(xp.where(close, value, sign * xp.inf))
    return Bracket(*sides)


def from_the_middle(p: Points) -> Array:
    """Whether a half-curve's vertices begin at ℓ = 0: what lies before them is unknown.

    Method: docs/method/mu.md#floor
    """
    return xp.min(xp.where(p.used, p.low, xp.inf)) <= 0.0


class _Gaps(NamedTuple):
    """Between each piece and those before it: whether there is a gap, the FPRs at its upper and
    lower end, and TPR and FNR at the upper one.
    """

    there: Array
    bottom: Array
    top: Array
    log_tpr: Array
    log_beta: Array


def _between_pieces(v: Vertices, matters: Callable[[Array, Array, Array], Array]) -> _Gaps:
    # (a piece without vertices ends nothing and begins nothing: what follows has to go on where the
    # one before it left off)
    any_used = xp.any(v.used, axis=-1)
    latest = xp.cummax(xp.where(any_used, xp.arange(any_used.shape[0]), -1))[:-1]
    before = xp.maximum(latest, 0)
    top = xp.max(xp.where(v.used, v.log_alpha, -xp.inf), axis=-1)[1:]
    k = xp.argmin(xp.where(v.used, v.log_alpha, xp.inf), axis=-1)[:, None]
    rates = (v.log_alpha, v.log_tpr, v.log_beta)
    bottom, log_tpr, log_beta = (xp.take_along_axis(a, k, -1)[:, 0][before] for a in rates)
    gap = any_used[1:] & (latest >= 0) & ~(top >= bottom) & matters(bottom, log_tpr, log_beta)
    # (where no loss is above 0 nothing is left out)
    gap = gap if v.top is None else gap & ~(xp.max(v.top) <= 0.0)
    return _Gaps(gap, bottom, top, log_tpr, log_beta)


def mu_in_gaps(
    v: Vertices,
    matters: Callable[[Array, Array, Array], Array],
    over: Callable[[Array, Array, Array], tuple[Array, ...]] = lambda *rates: rates,
) -> Array:
    """Largest μ that gaps between the FPRs of pieces may hide, −∞ without any: TPR is no more there
    than at the gap's upper end, and the FPR no less than at its lower one.

    Where pieces overlap, there are none; on a plateau between two atoms of the loss, there is
    rounding. ``matters`` decides from the rates at the upper end whether a gap lies within the
    range requested. ``over`` makes of logs of FPR, TPR and FNR those that μ is read off, on the
    same sides. That the first vertex is at ℓ = 0 (:func:`from_the_middle`) and the last one past
    the range is for the caller to ensure.

    Method: docs/method/mu.md#floor
    """
    if v.log_alpha.shape[0] == 1:
        return xp.asarray(-xp.inf)
    gap, _, top, log_tpr, log_beta = _between_pieces(v, matters)
    known = over(*(xp.where(gap, rate, -1.0) for rate in (top, log_tpr, log_beta)))
    return xp.max(xp.where(gap, difference(*quantiles(*known), 1.0), -xp.inf))


def without_silent_pieces(v: Vertices) -> Vertices:
    """A dominating half-curve without pieces of which no vertex says anything, because rounding or
    what escaped is more than their rates: gaps are left in their place.
    """
    if v.log_alpha.shape[0] == 1:
        return v
    says = v.used & ((v.log_alpha > -xp.inf) | (v.log_tpr < 0.0) | (v.log_beta > -xp.inf))
    return v._replace(used=v.used & xp.any(says, axis=-1, keepdims=True))
