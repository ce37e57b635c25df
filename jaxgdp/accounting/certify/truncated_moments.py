"""How small δ is where a sum of losses is never as large as ε, or never as small as −ε: by an
exponential moment of single losses that are cut off where next to no step is, in closed cells
without a quadrature."""

from __future__ import annotations

import math

import numpy as np

from ...numerics.normal import log_ndtr
from ...numerics.shapes import Array

# cells of the standard normal law: fine where nearly all of it is, coarse up to the cut
_BODY, _FINE, _COARSE = 9.0, 0.002, 0.01
# times the λ at which e^{−λε} alone would be as small as is wanted
_TILTS = (1.02, 1.06, 1.12, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_ROUNDED = 1e-9  # share of all terms of a moment, and of a log: far more than their roundings
_LARGE = 30.0  # exponents beyond which 1 is nothing beside the exponential


def log_delta(sigma: float, p: float, steps: float, epsilon: float, wanted: float) -> float:
    """log of a bound from above on δ(ε) of removing a record from T sampled Gaussian steps.

    With S = Σ ℓ_i under Q, whatever c and λ ≥ 0,

    δ(ε) ≤ Q(S > ε) ≤ T·Q(ℓ_1 > c) + e^{−λε}·(E_P[e^{(1 + λ)ℓ_1}; ℓ_1 ≤ c])^T.

    Args:
        sigma, p, steps: σ, 0 < p < 1 and T.
        epsilon: ε > 0.
        wanted: log of a bound that is small enough, far below 0.

    Method: docs/method/limit.md#never-as-large
    """
    with np.errstate(all="ignore"):
        z = _cells(sigma, p, steps, wanted)
        cut = np.logaddexp(
            math.log1p(-p) + float(log_ndtr(-z[-1])),
            math.log(p) + float(log_ndtr(1.0 / sigma - z[-1])),
        )
        terms = _Terms(sigma, p, z)
        each = [(1.0 - wanted) * times / epsilon for times in _TILTS]
        sums = [steps * terms.log_moment(1.0 + tilt) - tilt * epsilon for tilt in each]
    sums = [value for value in sums if not math.isnan(value)]
    best = min(sums, default=0.0)
    best += _ROUNDED * (1.0 + abs(best))
    rest = math.log(steps) + float(cut)
    return min(float(np.logaddexp(best, rest + _ROUNDED * (1.0 + abs(rest)))), 0.0)


def _cells(sigma: float, p: float, steps: float, wanted: float) -> Array:
    """Ends of cells, up to where no step is but for a share that is wanted."""
    depth = math.sqrt(2.0 * (math.log(steps) - wanted + 2.0))
    own = math.sqrt(max(2.0 * (math.log(steps) + math.log(p) - wanted + 2.0), 0.0))
    last = max(depth, own + 1.0 / sigma, 2.0 * _BODY)
    return np.concatenate([_body(), np.arange(_BODY, last + 2.0 * _COARSE, _COARSE)])


def log_delta_adding(sigma: float, p: float, steps: float, epsilon: float, wanted: float) -> float:
    """log of a bound from above on δ(ε) of adding a record to T sampled Gaussian steps.

    With S = Σ ℓ_i under P, whatever λ ≥ 0, δ(ε) ≤ P(S < −ε) ≤ e^{−λε}·(E_P e^{−λℓ_1})^T.

    Args:
        sigma, p, steps, epsilon, wanted: as for :func:`log_delta`.

    Method: docs/method/limit.md#never-as-large
    """
    with np.errstate(all="ignore"):
        terms = _Terms(sigma, p, _body(), falling=True)
        each = [(1.0 - wanted) * times / epsilon for times in _TILTS]
        sums = [steps * terms.log_moment(-tilt) - tilt * epsilon for tilt in each]
    best = min((value for value in sums if not math.isnan(value)), default=0.0)
    return min(best + _ROUNDED * (1.0 + abs(best)), 0.0)


def _body() -> Array:
    """Ends of the fine cells."""
    return np.arange(-round(_BODY / _FINE), round(_BODY / _FINE)) * _FINE


class _Terms:
    """Masses of cells under P, on the side that counts, and their largest losses, or their least
    ones where the moment is of a ``falling`` function of the loss.
    """

    def __init__(self, sigma: float, p: float, z: Array, falling: bool = False):
        x = ((z[:-1] if falling else z[1:]) - 0.5 / sigma) / sigma
        # (ℓ = log(1 − p + p·e^x)
        near = np.log1p(p * np.expm1(np.minimum(x, 1.0)))
        self.loss = np.where(x < 1.0, near, np.logaddexp(math.log1p(-p), math.log(p) + x))
        # (the density rises up to 0, which is an end of a cell, and falls from there on)
        ends = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
        most, least = np.maximum(ends[1:], ends[:-1]), np.minimum(ends[1:], ends[:-1])
        self.log_mass = np.where((self.loss > 0.0) != falling, most, least) + np.log(np.diff(z))
        if falling:
            # what lies below the cells, and above them, where losses may still be below 0
            ends, rest = np.array([z[0], -z[-1]]), math.log1p(-p)
            last = min(float(self.loss[-1]), 0.0)
            self.loss = np.append(self.loss, [rest, last])
            self.log_mass = np.append(self.log_mass, log_ndtr(ends))

    def log_moment(self, order: float) -> float:
        """A bound on log E_P[e^{order·ℓ}; ℓ ≤ c], c being the end of the last cell (what lies below
        the first one has losses below 0), or on log E_P e^{order·ℓ} of a falling one.
        """
        log_mass, exponent = self.log_mass, order * self.loss
        far = exponent > _LARGE
        small = np.exp(log_mass) * np.expm1(np.where(far, 0.0, exponent))
        terms = np.where(far, np.exp(log_mass + exponent), small)
        more = float(np.sum(terms) + _ROUNDED * np.sum(np.abs(terms)))
        return math.log1p(max(more, -0.5))
