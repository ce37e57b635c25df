"""The privacy loss of a sampled mechanism and its inverse, accurate for every sampling probability up to one.

P against (1 − p)·P + p·Q₁ has the loss ℓ = log(1 − p + p·e^v), with v = log Q₁/P the loss without sampling. Next to p = 1 losses lie
far below 0, down to log(1 − p), where 1 + p·(e^v − 1) and its inverse 1 + (e^ℓ − 1)/p cancel; 1 − p itself is exact there.
"""

from __future__ import annotations

from ..numerics import namespace as xp
from ..numerics.normal import log1mexp

_CANCELS = -0.5  # r − 1, or e^ℓ − 1, below which log1p is not used
_LARGE = 600.0  # e^v beyond which is not computed
_FAR = 40.0  # ℓ beyond which e^ℓ − 1 + p is e^ℓ to the last digit


def log_unsampled(p):
    """log(1 − p), −∞ at p = 1: the smallest privacy loss there can be."""
    some, few = p < 1.0, p < 0.5
    small, rest = xp.log1p(-xp.where(few, p, 0.0)), xp.log(xp.where(some, 1.0 - p, 1.0))
    return xp.where(some, xp.where(few, small, rest), -xp.inf)


def log_mixture(p, v):
    """ℓ = log(1 − p + p·e^v), to a few epsilons of |v|, of |ℓ| and of the ratio between the loss's two terms.

    Args:
        p: sampling probability in (0, 1]. v: log-likelihood ratio without sampling, any number.
    """
    moderate = v <= _LARGE
    change = p * xp.expm1(xp.where(moderate, v, 0.0))
    plain = moderate & (change > _CANCELS)
    near = xp.log1p(xp.where(plain, change, 0.0))
    rest = log_unsampled(xp.where(p == 1.0, 0.5, p))
    apart = xp.logaddexp(rest, xp.log(p) + xp.where(plain, 0.0, v))
    return xp.where(p == 1.0, v, xp.where(plain, near, apart))


def log_unmixed(p, ell):
    """v = log(1 + (e^ℓ − 1)/p), the log-likelihood ratio without sampling at a privacy loss ℓ; −∞ at and below log(1 − p).

    What is computed is exact at a loss within a few epsilons of max(1, |log(1 − p)|) of ℓ. For p ≥ ½ it is
    ℓ − log p + log(1 − e^{log(1 − p) − ℓ}) where e^ℓ is small.
    """
    far = ell > _FAR
    growth = xp.expm1(xp.where(far, 0.0, ell))
    excess = growth / p
    huge = excess > 1e100
    plain = (excess > _CANCELS) & ~huge
    near = xp.log1p(xp.where(plain, excess, 0.0))
    log_p = xp.log(p)
    much = xp.log(xp.where(huge, growth, 1.0)) - log_p
    # e^ℓ − (1 − p) for few, and for most, records sampled
    above = excess > -1.0
    few = xp.where(above, xp.log1p(xp.where(above & ~plain & ~huge, excess, 0.0)), -xp.inf)
    gap = log_unsampled(xp.where(p == 1.0, 0.5, p)) - ell
    inside = gap < 0.0
    most = ell - log_p + log1mexp(xp.where(inside, gap, -1.0))
    most = xp.where(inside, most, -xp.inf)
    steep = xp.where(p < 0.5, few, most)
    found = xp.where(far, ell - log_p, xp.where(huge, much, xp.where(plain, near, steep)))
    return xp.where(p == 1.0, ell, found)


def unmixed_below(p, ell, log_scale):
    """(1 + (e^ℓ − 1)/p)·e^{−log_scale}, not positive, at losses ℓ below log(1 − p); any number elsewhere."""
    rest = log_unsampled(xp.where(p == 1.0, 0.5, p))
    fall = -xp.expm1(xp.minimum(ell - rest, 0.0))
    return -fall * xp.exp(xp.clip(rest - xp.log(p) - log_scale, -700.0, 700.0))
