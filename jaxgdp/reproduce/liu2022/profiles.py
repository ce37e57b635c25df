"""The three examples of Liu 2022: closed privacy profiles and their tails (Section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...bridge import Profile, refine
from ..published import read


def laplace(scale: float) -> Callable[[float], float]:
    """δ(ε) = 1 − exp((ε − 1/b)/2) for ε ≤ 1/b, else 0 (Balle et al. 2020, Theorem 3)."""
    return lambda epsilon: max(0.0, -math.expm1(0.5 * (epsilon - 1.0 / scale)))


def gaussian_noise(amplitude: float, factor: float, sigma: float) -> Callable[[float], float]:
    """δ(ε) = min(1, B·exp(−(σε/A)²)), from a noise parameter σ = A·√(log(B/δ))/ε."""
    return lambda epsilon: min(1.0, factor * math.exp(-((sigma * epsilon / amplitude) ** 2)))


def gaussian_noise_tail(amplitude: float, sigma: float) -> float:
    """limsup ε/√(−2 log δ(ε)) = A/(σ√2)."""
    return amplitude / (sigma * math.sqrt(2.0))


def invisibility_cloak(users: int, messages: int) -> Callable[[float], float]:
    """δ(ε) = min(1, n/ε·e^{−m/10}), from m ≥ 10·log(n/(εδ)) messages (Ghazi et al. 2019); its tail
    falls like 1/ε, so μ_t = ∞.
    """

    def profile(epsilon: float) -> float:
        if epsilon == 0.0:
            return 1.0
        return min(1.0, math.exp(math.log(users) - math.log(epsilon) - 0.1 * messages))

    return profile


def settings() -> dict[str, Any]:
    """The parameters used, by example."""
    return read("liu2022")["examples"]


def three() -> tuple[tuple[str, Callable[[float], float], float], ...]:
    """(name, profile as inverted, μ_t) of the three examples."""
    s = settings()
    noise, cloak = s["noise"], s["cloak"]
    root = math.sqrt(2.0)
    by_noise = gaussian_noise(root, noise["factor"], noise["sigma"])
    return (
        ("Laplace", laplace(s["laplace"]["scale"]), 0.0),
        ("noise", by_noise, gaussian_noise_tail(root, noise["sigma"])),
        ("ICEA", invisibility_cloak(cloak["users"], cloak["messages"]), math.inf),
    )


def statements(profile: Callable[[float], float], most: float, number: int) -> Profile:
    """Refined from statements on a grid of ε, denser near 0."""
    return refine(most * np.linspace(0.0, 1.0, number) ** 2, profile)
