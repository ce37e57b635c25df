"""Gomez et al. 2025, figure by figure and table by table: what each one is, by name."""

from __future__ import annotations

import functools

from . import grid, illustrations, training

# name: (what it shows, function of ``quick`` that computes it)
ITEMS = {
    "figure-1": ("a privacy profile against one (ε, δ) on it", illustrations.figure_1),
    "figure-2": ("the discrete Gaussian through four definitions", illustrations.figure_2),
    "figure-3": ("the regret landscape of DP-SGD", grid.figure_3),
    "figure-4": ("DP-SGD, TopDown and randomized response against μ-GDP", illustrations.figure_4),
    "figure-5": (
        "CIFAR-10 from scratch: curves and differences",
        functools.partial(training.curves_and_gaps, "figure-5", "table-4"),
    ),
    "figure-6": (
        "CIFAR-10 fine-tuned: curves and differences",
        functools.partial(training.curves_and_gaps, "figure-6", "table-5"),
    ),
    "table-2": ("μ in place of (ε, δ) for De et al. 2022", training.table_2),
    "table-3": ("μ of common (ε, δ)", illustrations.table_3),
    "table-4": (
        "hyperparameters, CIFAR-10 from scratch",
        functools.partial(training.hyperparameters, "table-4"),
    ),
    "table-5": (
        "hyperparameters, CIFAR-10 fine-tuned",
        functools.partial(training.hyperparameters, "table-5"),
    ),
}

# packages of an extra that an item needs, beside matplotlib for figures: {name: {package: extra}}
NEEDS = {"figure-3": {"xarray": "sweep"}}
