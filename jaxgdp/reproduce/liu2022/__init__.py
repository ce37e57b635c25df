"""Liu et al. 2022, figure by figure and statement by statement: what each one is, by name."""

from __future__ import annotations

from . import composition, examples, measuring, table_1

# name: (what it shows, function of ``quick`` that computes it)
ITEMS = {
    "figure-1": (
        (
            "privacy profiles of the three examples, as inverted and refined, against those of 1-,"
            " 2- and 4-GDP"
        ),
        examples.figure_1,
    ),
    "figure-2": (
        "GDP transformations of the three examples, and both staircases",
        examples.figure_2,
    ),
    "figure-3": ("50-fold composition of 0.2-DP: trade-off curves", composition.figure_3),
    "table-1": ("ε of the composition by seven routes", table_1.table_1),
    "section-4": (
        (
            "measuring and amplifying: Theorems 4.2 to 4.4, Algorithm 1, the gap beyond the head,"
            " sampling"
        ),
        measuring.section_4,
    ),
    "section-5": ("pure DP is Gaussian-DP, and the composition's own μ", composition.section_5),
    "figure-e1": ("the Laplace mechanism under GDP", examples.figure_e1),
    "figure-e2": ("the effect of sampling", measuring.figure_e2),
}
