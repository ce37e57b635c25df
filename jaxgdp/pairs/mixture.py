"""The privacy loss of a sampled mechanism and its inverse, for every sampling probability.

P against (1 − p)·P + p·Q₁ has the loss ℓ = log(1 − p + p·e^v), with v = log Q₁/P the loss without
sampling. Next to p = 1 losses lie far below 0, down to log(1 − p), where 1 + p·(e^v − 1) and its
inverse 1 + (e^ℓ − 1)/p cancel; 1 − p itself is exact there."""

from __future__ import annotations

import numpy as np

from ..numerics import namespace as xp
from ..numerics.shapes import Array

_LARGE = 600.0  # e^v beyond which is not computed
_FAR = 40.0  # ℓ beyond which e^ℓ − 1 + p is e^ℓ to the last digit
_TINY = 1e-80  # p below which (e^ℓ − 1)/p may be no double
_SMALL = 1e-40  # … unless e^ℓ − 1 is smaller than this


def log_unsampled(p: Array | float):
    """log(1 − p), −∞ at p = 1: the smallest privacy loss there can be."""
    some, few = p < 1.0, p < 0.5
    small, rest = xp.log1p(-xp.where(few, p, 0.0)), xp.log(xp.where(some, 1.0 - p, 1.0))
    return xp.where(some, xp.where(few, small, rest), -xp.inf)


def log_mixture(p: Array | float, v: Array):
    """ℓ = log(1 − p + p·e^v), to a few epsilons of |v|, |ℓ| and the ratio of its terms.

    Args:
        p: sampling probability in (0, 1].
        v: log-likelihood ratio without sampling, any number.
    """
    moderate = v <= _LARGE
    most = p > 0.5
    steep = most & (v < xp.log1p(-0.5 / xp.where(most, p, 1.0)))
    shifted = xp.log(p) + v
    growth = xp.expm1(xp.where(moderate, v, xp.minimum(shifted, _FAR)))
    change = xp.where(moderate, p * growth, 1.0 + growth)
    near = xp.log1p(xp.where(steep, 0.0, change))
    # (next to p = 1, where little is left of P: no difference at all)
    low = xp.log(xp.where(steep & (p < 1.0), (1.0 - p) + p * xp.exp(xp.where(steep, v, 0.0)), 1.0))
    found = xp.where(steep, low, xp.where(~moderate & (shifted > _FAR), shifted, near))
    return xp.where(p == 1.0, v, found)


def log_unmixed(p: Array | float, ell: Array):
    """v = log(1 + (e^ℓ − 1)/p), the log-likelihood ratio without sampling at a privacy loss ℓ; −∞
    at and below log(1 − p).

    The computed value is exact at a loss within a few epsilons of max(1, |log(1 − p)|) of ℓ. For p
    ≥ ½ it is ℓ − log p + log(1 − e^{log(1 − p) − ℓ}) where e^ℓ is small."""
    far, log_p = ell > _FAR, xp.log(p)
    rest = log_unsampled(xp.where(p == 1.0, 0.5, p))
    steep = (p >= 0.5) & (ell <= xp.log1p(-0.5 * p))
    growth = xp.expm1(xp.where(far, 0.0, xp.where(steep, xp.minimum(rest - ell, 0.0), ell)))
    # (with next to nothing sampled the quotient may be no double; 1 + the quotient is the quotient
    # then)
    large = (p < _TINY) & (growth > _SMALL)
    excess = growth / xp.where(large, _TINY, p)
    near = xp.log1p(xp.where(~steep & (excess > -1.0), excess, 0.0)) + xp.where(
        large, np.log(_TINY) - log_p, 0.0
    )
    most = ell - log_p + xp.log(xp.where(steep & (growth < 0.0), -growth, 1.0))
    inside = xp.where(steep, growth < 0.0, excess > -1.0)
    found = xp.where(far, ell - log_p, xp.where(inside, xp.where(steep, most, near), -xp.inf))
    return xp.where(p == 1.0, ell, found)


def unmixed_below(p: Array | float, ell: Array, log_scale: Array):
    """(1 + (e^ℓ − 1)/p)·e^{−log_scale}, not positive, at ℓ below log(1 − p)."""
    rest = log_unsampled(xp.where(p == 1.0, 0.5, p))
    fall = -xp.expm1(xp.minimum(ell - rest, 0.0))
    return -fall * xp.exp(xp.clip(rest - xp.log(p) - log_scale, -700.0, 700.0))
