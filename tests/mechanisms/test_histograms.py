"""Histograms: what one person can change, against every pair of neighbouring tables."""

import itertools

import numpy as np
import pytest

import jaxgdp


@pytest.mark.parametrize("change", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("cells", "per_person"), [(1, 1), (2, 1), (5, 1), (3, 2), (4, 3)])
def test_counts_that_move_are_those_of_the_worst_neighbours(cells, per_person, change):
    """By enumeration: a person is a set of at most so many cells; the norms that the noise sees."""
    people = [
        np.bincount(list(chosen), minlength=cells)
        for k in range(per_person + 1)
        for chosen in itertools.combinations(range(cells), k)
    ]
    nobody = np.zeros(cells)
    others = people if change == "replace_one" else [nobody]
    moved = max(int(np.abs(a - b).sum()) for a in people for b in others)
    assert max(np.abs(a - b).max() for a in people for b in others) == 1
    made = jaxgdp.histogram(jaxgdp.Gaussian(2.0), cells, cells_per_person=per_person, change=change)
    assert float(made.counts[0]) == moved
    assert jaxgdp.mu(made).contains(np.sqrt(moved) / 2.0)


def test_person_who_moves_costs_the_root_of_two():
    noise = jaxgdp.DiscreteGaussian(3.0)
    once, moved = (
        jaxgdp.mu(jaxgdp.histogram(noise, 100, change=change)).upper
        for change in ("add_remove", "replace_one")
    )
    assert moved == pytest.approx(2**0.5 * once, rel=1e-2)
    assert jaxgdp.mu(noise, adjacency="replace_one").upper > 1.2 * moved
    assert float(jaxgdp.histogram(noise, releases=3).counts[0]) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"noise": jaxgdp.PureDP(1.0)}, "noise must be one of Gaussian, DiscreteGaussian"),
        ({"noise": jaxgdp.DiscreteGaussian(1.0, 2)}, "sensitivity 1"),
        ({"change": "move"}, "change must be one of 'add_remove', 'replace_one'"),
        ({"cells": 0}, "cells must be a whole number >= 1"),
    ],
)
def test_bad_histograms_are_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        jaxgdp.histogram(**{"noise": jaxgdp.Laplace(1.0)} | given)
