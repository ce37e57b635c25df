"""Derivatives against exact ones at 50 digits: right to a percent, or refused by name."""

import exact_derivatives as exact
import jax
import numpy as np
import pytest
import random_derivatives
from mpmath import mpf

import jaxgdp
from jaxgdp import differentiable, mechanisms
from jaxgdp.differentiable import UnprovenDerivative, program
from jaxgdp.differentiable.differences import Sides, slope, slope_of_uses
from jaxgdp.mechanisms import Composition

# (mechanism, uses, quantity, argument) → the exact number as a function of the parameter
KNOWN = {
    (mechanisms.PureDP, 0.07, 60, "epsilon", 1e-6): exact.randomized_response,
    (mechanisms.RandomizedResponse, 1.0, 60, "advantage", None): exact.randomized_response,
    (mechanisms.RandomizedResponse, 1.0, 60, "mu", 1e-10): exact.randomized_response,
    (mechanisms.PureDP, 0.9, 60, "mu", 1e-10): exact.randomized_response,
    (mechanisms.Laplace, 1.0, 3, "epsilon", 1e-6): exact.laplace,
    (mechanisms.Laplace, 10.0, 3, "epsilon", 1e-6): exact.laplace,
    (mechanisms.DiscreteGaussian, 3.0, 4, "delta", 0.5): exact.discrete_gaussian,
    (mechanisms.Gaussian, 0.461, 14, "delta", 0.655): lambda x, t: exact.Gaussian(t**0.5 / x),
    (mechanisms.Gaussian, 1.16, 110, "mu", 1e-9): lambda x, t: exact.Gaussian(t**0.5 / x),
}
LARGE = (mechanisms.Laplace, 10.0)  # takes as long as the other setting of its class


BY_DAY = [
    pytest.param(setting, marks=pytest.mark.nightly) if setting[:2] == LARGE else setting
    for setting in KNOWN
]


def asked(kind, count, quantity, argument):
    """A quantity as a function of the parameter of a mechanism."""
    given = () if argument is None else (argument,)
    function = getattr(differentiable, quantity)
    return lambda x: function(Composition((kind(x),), (float(count),)), *given).upper


@pytest.mark.parametrize("setting", BY_DAY, ids=lambda s: f"{s[0].__name__}-{s[3]}")
def test_few_and_large_uses(setting):
    kind, at, count, quantity, argument = setting
    law = KNOWN[setting]
    number = lambda x: getattr(law(x, count), quantity)(mpf(argument or 0))
    left, right = map(float, exact.one_sided(number, at))
    with jax.enable_x64(True):
        found = float(jax.grad(asked(kind, count, quantity, argument))(at))
    assert np.allclose([left, right], found, rtol=0.01, atol=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1, 2, 3, 5, 9, 12, 15, 31),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (7, 8, 11, 14, 21, 22, 27)),
    ],
)
def test_random_settings(seed):
    one = random_derivatives.case(seed)
    verdict = random_derivatives.judged(one)
    assert verdict.word == random_derivatives.RIGHT, (one.text, verdict)


@pytest.mark.nightly
@pytest.mark.parametrize("hundred", range(20))
def test_two_thousand_random_settings(hundred):
    """None is wrong, and of a hundred at most 15 are refused (seven on average)."""
    refused = 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        one = random_derivatives.case(seed)
        verdict = random_derivatives.judged(one)
        assert verdict.word != random_derivatives.WRONG, (one.text, verdict)
        refused += verdict.word == random_derivatives.REFUSED
    assert refused <= 15


def test_programs_and_batches():
    """A derivative within ``jit``, and one of each setting of a batch, is the one found at once."""
    function = asked(mechanisms.PureDP, 60, "epsilon", 1e-6)
    with jax.enable_x64(True):
        at_once = float(jax.grad(function)(0.07))
        in_program = float(jax.jit(jax.grad(function))(0.07))
    assert in_program == at_once


def test_corners_are_refused_by_name():
    """δ(ε) has a corner in ε where an atom lies, and in the parameter that moves the atom there."""
    uses = lambda x: Composition((jaxgdp.RandomizedResponse(x),), (4.0,))
    with jax.enable_x64(True):
        for function, at in (
            (lambda e: differentiable.delta(uses(0.5), e).upper, 1.0),
            (lambda x: differentiable.delta(uses(x), 1.0).upper, 0.5),
        ):
            with pytest.raises(UnprovenDerivative, match="'delta' in .* has a corner there"):
                jax.grad(function)(at)
        left, right = exact.one_sided(lambda x: exact.randomized_response(x, 4).delta(mpf(1)), 0.5)
        assert abs(left - right) > 0.02 * abs(left)
        with pytest.raises(UnprovenDerivative, match="its number of uses of RandomizedResponse"):
            jax.grad(
                lambda t: (
                    differentiable.mu(Composition((jaxgdp.RandomizedResponse(0.5),), (t,))).upper
                )
            )(2.5)


@pytest.mark.nightly
def test_programs_say_nothing_where_a_lattice_does_not_serve():
    """A single sampled step, and an advantage near 1: NaN in a program."""
    with jax.enable_x64(True):
        for quantity, at, (sigma, p, steps) in (
            ("tpr", (1e-3,), (1.0, 0.1, 1)),
            ("advantage", (), (1.0, 0.2, 1000)),
        ):
            ask = lambda s: getattr(differentiable, quantity)(jaxgdp.dpsgd(s, p, steps), *at).upper  # noqa: B023
            assert np.isnan(jax.jit(jax.grad(ask))(sigma)), quantity


def test_lattices_that_do_not_serve_are_told():
    """Few uses, a wide bracket, and one that is wide beside what a probability lacks to 1."""
    groups = lambda count: ((None, np.array([float(count)])),)
    trusted = program._trusted
    narrow = jaxgdp.Bracket(np.array(0.3), np.array(0.3001))
    assert trusted("advantage", narrow, groups(10))
    assert not trusted("advantage", narrow, groups(9))
    assert not trusted("mu", jaxgdp.Bracket(np.array(1.0), np.array(1.02)), groups(100))
    near_one = jaxgdp.Bracket(np.array(0.9999), np.array(0.99991))
    assert trusted("mu", near_one, groups(100))
    assert not trusted("advantage", near_one, groups(100))


def bracket_of(function, width=0.0):
    """Brackets of a function of known numbers, as wide as that relative to it."""

    def ask(points, rtol):
        value = np.array([function(x) for x in points])
        half = np.where(np.isfinite(value), 0.5 * width * rtol * np.abs(value), 0.0)
        return jaxgdp.Bracket(value - half, value + half)

    return ask


BOTH = Sides(True, True)


@pytest.mark.parametrize(
    "function, at, exactly",
    [
        (np.exp, 1.0, np.e),
        (lambda x: x**-40.0, 2.0, -40.0 * 2.0**-41.0),
        (np.sin, 1e-3, np.cos(1e-3)),
        (lambda x: np.exp(-1e5 * x), 1e-3, -1e5 * np.exp(-100.0)),
        (lambda x: abs(x - 1.001), 1.0, -1.0),
    ],
)
@pytest.mark.parametrize("width", [0.0, 0.5])
def test_slopes_of_smooth_functions(function, at, exactly, width):
    assert np.isclose(slope(bracket_of(function, width), at, BOTH), exactly, rtol=0.01, atol=0.0)


def test_slopes_at_an_end_are_one_sided():
    below = Sides(True, False)
    assert np.isclose(slope(bracket_of(lambda x: x * abs(x)), 1.0, below), 2.0, rtol=0.01)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: abs(x - 1.0),
        lambda x: max(x, 0.95 + 0.05 * x),
        lambda x: x + 0.03 * abs(x - 1.0),
        lambda x: np.inf,
    ],
)
def test_corners_have_no_slope(function):
    with pytest.raises(UnprovenDerivative):
        slope(bracket_of(function, 0.1), 1.0, BOTH)


def test_slopes_need_narrow_brackets():
    with pytest.raises(UnprovenDerivative, match="do not prove"):
        slope(lambda x, rtol: jaxgdp.Bracket(x - 0.1, x + 0.1), 1.0, Sides(True, True, 0.01))


def test_slopes_in_uses_are_half_differences():
    assert slope_of_uses(bracket_of(lambda t: t**2), 5.0) == 10.0
    assert slope_of_uses(bracket_of(lambda t: t**2), 1.0) == 3.0
    assert np.isclose(slope_of_uses(bracket_of(np.sqrt, 1.0), 1e6), 5e-4, rtol=0.01)
