"""Small Bayes risks of few atoms, against enumeration in 40 digits."""

from __future__ import annotations

import itertools

import mpmath
import pytest

import jaxgdp
from jaxgdp import mechanisms

SETTINGS = [
    (0.17215789160783332, 3, 17.877060999826053, 1, 0.4446816347379499),
    (0.2, 2, 9.0, 2, 0.1),
    (0.09, 3, 1.0, 1, 0.9),
]


def _enumerated(scale, uses, epsilon, more, prior):
    """R = Σ min(π·p, (1 − π)·p·e^ℓ) over all outcomes of discrete Laplace noise and randomized
    response of three categories.
    """
    with mpmath.workdps(40):
        first, second = 1 / mpmath.mpf(scale), mpmath.mpf(epsilon)
        one, three = 1 + mpmath.exp(-first), mpmath.exp(second) + 2
        atoms = [[(-first, 1 / one), (first, mpmath.exp(-first) / one)]] * uses
        atoms += [
            [(-second, mpmath.exp(second) / three), (mpmath.mpf(0), 1 / three), (second, 1 / three)]
        ] * more
        risk, prior = mpmath.mpf(0), mpmath.mpf(prior)
        for outcome in itertools.product(*atoms):
            loss, p = mpmath.fsum(a for a, _ in outcome), mpmath.fprod(b for _, b in outcome)
            risk += min(prior * p, (1 - prior) * p * mpmath.exp(loss))
        return risk


@pytest.mark.parametrize(("scale", "uses", "epsilon", "more", "prior"), SETTINGS)
@pytest.mark.parametrize("adjacency", ["add_remove", "remove", "add"])
def test_small_risks_of_few_atoms(scale, uses, epsilon, more, prior, adjacency):
    parts = [
        (mechanisms.DiscreteLaplace(scale), uses),
        (mechanisms.RandomizedResponse(epsilon, 3), more),
    ]
    found = jaxgdp.measure(
        jaxgdp.compose(parts), "bayes_risk", prior=prior, adjacency=adjacency, rtol=0.3
    )
    bracket, true = found.brackets["bayes_risk"], _enumerated(scale, uses, epsilon, more, prior)
    assert true < 1e-3
    assert bracket.lower <= true <= bracket.upper
    assert bracket.width <= 1e-8 * true
