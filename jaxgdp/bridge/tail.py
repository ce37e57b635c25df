"""The tail of a profile: whether any μ holds far out, and the least one (Liu et al. 2022, Sec. 3).

A mechanism is Gaussian-DP if and only if μ_t = limsup ε/√(−2 log δ(ε)) is finite, and then no μ
below μ_t holds at every rate. For bounded losses δ is 0 from some ε on, so μ_t = 0; with mass at
infinity δ does not go to 0, so μ_t = ∞; Poisson subsampling shifts the losses of a Gaussian
mechanism by no more than log p, so μ_t = 1/σ as without. For independent losses the tail exponents
ε²/(2μ²) are shared out in the cheapest way, min Σ ε_i²/(2μ_i²) over Σ ε_i = ε, which is ε²/(2 Σ
μ_i²): a composition has μ_t² = Σ μ_{t,i}²."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..mechanisms import Composition, Mechanism, as_composition
from ..numerics import namespace as xp


class PartLimit(NamedTuple):
    """A part of a composition, its uses, and μ_t of one use; NaN where it is not known."""

    mechanism: Mechanism
    uses: float
    mu: float


def part_limits(composition: Composition) -> list[PartLimit]:
    """The limit of every part of a scalar composition."""
    found = []
    with np.errstate(all="ignore"):
        for mechanism, uses in zip(composition.mechanisms, composition.counts, strict=True):
            groups = as_composition(mechanism).stacked()
            squares = (
                np.sum(count * xp.vmap(lambda m: m.limit_precision())(part))
                for part, count in groups
            )
            limit = float(np.sqrt(sum(squares)))
            found.append(PartLimit(mechanism, float(np.asarray(uses)), limit))
    return found


def tail_mu(mechanism: Mechanism | Composition) -> float:
    """μ_t = limsup ε/√(−2 log δ(ε)), from that of the parts (Liu et al. 2022, Theorem 3.3).

    Args:
        mechanism: a mechanism or composition, scalar.

    Returns:
        0 for bounded privacy losses, √(Σ T/σ²) for Gaussian ones, subsampled or not, ∞ with mass at
        infinity. No smaller μ holds at every rate; a larger one may be needed. NaN where only a
        pair that dominates is known, as for ``TruncatedPoisson`` and ``FixedSize``.

    Raises:
        ValueError: not a mechanism, or batched.

    Example:
        >>> import jaxgdp
        >>> tail_mu(jaxgdp.Laplace(scale=1.0)), tail_mu(jaxgdp.ApproximateDP(1.0, 1e-6))
        (0.0, inf)
        >>> round(tail_mu(jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=0.3, num_steps=2000)), 6)
        4.757591
    """
    composition = as_composition(mechanism)
    if composition.shape != ():
        raise ValueError(f"mechanism must be scalar (shape ()), got shape {composition.shape}")
    return float(np.sqrt(sum(uses * limit * limit for _, uses, limit in part_limits(composition))))
