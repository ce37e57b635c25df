"""Kulynych et al. 2024, figure by figure and statement by statement: what each one is, by name."""

from __future__ import annotations

from . import illustrations, noise, statements, table_1, training

# name: (what it shows, function of ``quick`` that computes it)
ITEMS = {
    "figure-1": ("risk against accuracy, by standard and by direct calibration", training.figure_1),
    "figure-1-digits": ("the same on a data set that can be bundled", training.figure_1_digits),
    "figure-2": ("Gaussian mechanisms against what (ε, δ) says of them", illustrations.figure_2),
    "figure-3": (
        "noise against advantage, and what calibrating to an advantage costs",
        noise.figure_3,
    ),
    "figure-4": ("noise against TPR at three FPRs", noise.figure_4),
    "figure-5": ("where the gain comes from", noise.figure_5),
    "figure-6": (
        "the cost of advantage calibration, Gaussian against generic",
        illustrations.figure_6,
    ),
    "table-1": ("FNR from other measures of risk", table_1.table_1),
    "section-3": ("times, and an asymptotic μ", statements.section_3),
    "appendix-b": ("closed forms of the Gaussian mechanism", statements.appendix_b),
}

# packages of an extra that an item needs, beside matplotlib for figures: {name: {package: extra}}
NEEDS = {"figure-1-digits": {"sklearn": "data"}}

# CSV files of an item whose numbers are not in one of its own name: {name: stems}
TABLES = {
    "figure-1": ("figure-1-language", "figure-1-images"),
    "figure-1-digits": ("figure-1-digits", "figure-1-digits-gain"),
}
