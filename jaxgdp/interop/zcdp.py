"""A mechanism that is known only to be zero-concentrated DP."""

from __future__ import annotations

import functools

import numpy as np

from ..conversions import delta_from_zcdp
from ..mechanisms import FromProfile

_POINTS = 600
_LARGEST = 5000.0  # ε of a profile, see ``FromProfile``
_FARTHEST = 1e-30  # δ at which the profile is cut off; what is left is mass at infinity


@functools.lru_cache(maxsize=64)
def zcdp_mechanism(rho: float, xi: float = 0.0) -> FromProfile:
    """The mechanism of the profile that (ξ, ρ)-zCDP implies (Bun & Steinke 2016).

    Its Rényi divergences are at most ξ + ρt, so δ(ε) is at most that of ρ-zCDP at ε − ξ. Several
    such mechanisms are best added up
    first: ξ and ρ do. The profile is taken at 600 points and cut off where δ is 1e-30, or at ε =
    5000; the δ that is left becomes mass at infinity.

    Args:
        rho: ρ ≥ 0.
        xi: ξ ≥ 0.

    Returns:
        A :class:`jaxgdp.FromProfile` for whatever neighbouring relation ρ was stated for.

    Raises:
        ValueError: ρ is so large that every δ below ε = 5000 is 1.

    Example:
        >>> zcdp_mechanism(0.5).shape
        ()
    """
    farthest = (rho + 2.0 * np.sqrt(rho * -np.log(_FARTHEST))) * 1.001 + 1e-9
    beyond = np.linspace(0.0, min(farthest, _LARGEST - xi), _POINTS)
    delta = np.minimum(delta_from_zcdp(epsilon=beyond, rho=rho), 1.0)
    if not np.min(delta) < 1.0:
        raise ValueError(
            f"rho must be so small that δ is below 1 at ε = {_LARGEST:g}, got {rho:g}: only ε, δ"
            " and the advantage of zCDP alone, not composed with others, have a closed form"
        )
    if xi == 0.0:
        return FromProfile(beyond, delta)
    return FromProfile(np.concatenate([[0.0], xi + beyond]), np.concatenate([[1.0], delta]))
