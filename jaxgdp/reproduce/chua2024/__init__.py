"""Chua et al. 2024, figure by figure: what each one is, by name."""

from __future__ import annotations

from . import by_epsilon, by_noise

# name: (what it shows, function of ``quick`` that computes it)
ITEMS = {
    "figure-1": ("ε against noise, T = 100,000, δ = 1e-6", by_noise.figure_1),
    "figure-2": (
        "δ against ε of a fixed order and of Poisson sampling, σ = 0.3, T = 10",
        by_epsilon.figure_2,
    ),
    "figure-3": ("δ against ε, σ = 0.4, T = 10,000", by_epsilon.figure_3),
    "figure-4": ("ε against noise, T = 10,000, δ = 1e-6", by_noise.figure_4),
    "figure-5": ("ε against noise, T = 1000, δ = 1e-5", by_noise.figure_5),
    "figure-6": ("δ against ε, σ = 0.8, T = 1000", by_epsilon.figure_6),
    "figure-7": ("δ against ε, σ = 1, T = 1000", by_epsilon.figure_7),
}
