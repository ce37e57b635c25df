"""Derivatives of certified numbers against closed forms and against differences of tighter
brackets.
"""

import functools
import re
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from by_day import first
from scipy.stats import norm

import jaxgdp
from jaxgdp import differentiable
from jaxgdp.accounting.steer.lattices import LatticeChoice
from jaxgdp.differentiable import calibrated, program
from jaxgdp.mechanisms import Composition, SubsampledGaussian
from jaxgdp.numerics.compiling import compiler_options
from jaxgdp.numerics.pytree import pytree

SETTINGS = np.array([[2.0, 0.05, 1000.0], [0.8, 0.005, 2000.0], [6.0, 0.3, 500.0]])
ASKED = {
    "mu": (),
    "regret": (),
    "advantage": (),
    "epsilon": (1e-5,),
    "delta": (0.5,),
    "tpr": (1e-3,),
    "beta": (1e-3,),
    "bayes_risk": (0.6,),
    "approximate_mu": (1e-8,),
}


# programs that run once or twice: compiled without optimisations, which would take longer than what
# they save
ONCE = compiler_options(quickly=True)


def steps(row):
    """σ, p and T, T a real number."""
    return Composition((SubsampledGaussian(row[0], row[1]),), (row[2],))


@pytest.fixture(scope="module")
def lattice():
    return differentiable.lattice(steps(SETTINGS.T))


@pytest.fixture(scope="module")
def central():
    """Midpoints of brackets ten times tighter, and their central differences in each parameter: of
    μ in all settings, of the others in the first."""
    step = 1e-2
    moves = [np.zeros(3)] + [sign * row for row in np.eye(3) for sign in (1, -1)]
    rows = np.array([[row * (1 + step * move) for move in moves] for row in SETTINGS])
    asked = dict(delta=1e-5, epsilon=0.5, fpr=1e-3, prior=0.6, approximation=1e-8)
    first, others = rows[:1], rows[1:]
    brackets = jaxgdp.measure(
        steps(np.moveaxis(first, -1, 0)), tuple(ASKED), rtol=1e-4, **asked
    ).brackets
    more = jaxgdp.measure(steps(np.moveaxis(others, -1, 0)), "mu", rtol=1e-4).brackets["mu"]
    brackets = dict(brackets)
    brackets["mu"] = jax.tree.map(lambda *a: np.concatenate(a), brackets["mu"], more)
    middle = {name: 0.5 * (bracket.lower + bracket.upper) for name, bracket in brackets.items()}
    slopes = {
        n: (m[:, 1::2] - m[:, 2::2]) / (2 * step * SETTINGS[: len(m)]) for n, m in middle.items()
    }
    return brackets, slopes


@pytest.mark.parametrize("name", ASKED)
def test_derivatives_equal_central_differences(name, lattice, central):
    brackets, slopes = central
    function = getattr(differentiable, name)
    with jax.enable_x64(True):
        for i, row in enumerate(SETTINGS[: len(slopes[name])]):
            found, pull = jax.vjp(
                lambda r: function(steps(r), *ASKED[name], lattice=lattice), jnp.asarray(row)
            )
            tight = brackets[name].lower[i, 0], brackets[name].upper[i, 0]
            assert found.lower <= tight[1] and tight[0] <= found.upper
            for side in (jaxgdp.Bracket(1.0, 0.0), jaxgdp.Bracket(0.0, 1.0)):
                slope = np.asarray(pull(jax.tree.map(jnp.asarray, side))[0])
                # the regret is a small difference; of μ it feels φ(ε/μ − μ/2)/(1 + e^ε) < 0.2
                scale = (
                    0.2 * np.abs(slopes["mu"][i]) if name == "regret" else np.abs(slopes[name][i])
                )
                assert np.all(np.abs(slope - slopes[name][i]) <= 6e-3 * scale), (name, i)


# what has atoms so close that its numbers look smooth, by name: how to make it from one parameter,
# that parameter in three settings, and the number of uses
ATOMS = {
    "Laplace": (jaxgdp.Laplace, (20.0, 8.0, 40.0), 100.0),
    "SubsampledLaplace": (lambda b: jaxgdp.SubsampledLaplace(b, 0.1), (2.0, 1.0, 4.0), 100.0),
    "DiscreteGaussian": (jaxgdp.DiscreteGaussian, (20.0, 12.0, 45.0), 100.0),
}
DENSE = LatticeChoice("whole", 2048, 0, 2**15, 0, 0, 0, 1)


def slope(name, mechanism, at, count, in_uses=False):
    """A bracket and its derivative in the parameter, or in the number of uses."""
    with jax.enable_x64(True):
        ask = lambda x: getattr(differentiable, name)(
            Composition((mechanism(at if in_uses else x),), (x if in_uses else count,)),
            *ASKED[name],
            lattice=DENSE,
        )
        found, pull = jax.vjp(ask, count if in_uses else at)
        by = pull(jaxgdp.Bracket(jnp.ones(()), jnp.zeros(())))[0]
        return jax.tree.map(float, found), float(by)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ATOMS)
def test_mechanisms_with_atoms(kind):
    """Right to a percent of central differences of brackets ten times finer; the lattice keeps step
    with the atoms.
    """
    mechanism, settings, count = ATOMS[kind]
    step = 5e-3
    at = np.array(settings)[:, None] * (1 + step * np.array([0, 1, -1]))
    asked = dict(delta=1e-5, epsilon=0.5, fpr=1e-3, prior=0.6, approximation=1e-8)
    # every quantity in the first setting, μ in the others
    tight = dict(
        jaxgdp.measure(
            Composition((mechanism(at[:1]),), (count,)), tuple(ASKED), rtol=1e-4, **asked
        ).brackets
    )
    more = jaxgdp.measure(Composition((mechanism(at[1:]),), (count,)), "mu", rtol=1e-4).brackets[
        "mu"
    ]
    tight["mu"] = jax.tree.map(lambda *a: np.concatenate(a), tight["mu"], more)
    middle = {name: 0.5 * (bracket.lower + bracket.upper) for name, bracket in tight.items()}
    central = {
        name: (m[:, 1] - m[:, 2]) / (2 * step * at[: len(m), 0]) for name, m in middle.items()
    }
    # (a regret is a small difference, whose derivatives brackets do not prove)
    for name in set(ASKED) - {"regret"}:
        for i in range(len(central[name])):
            found, by_parameter = slope(name, mechanism, settings[i], count)
            assert found.lower <= tight[name].upper[i, 0] and tight[name].lower[i, 0] <= found.upper
            scale = abs(central[name][i])
            assert abs(by_parameter - central[name][i]) <= 1e-2 * scale, (name, settings[i])


@functools.cache
def reports(epsilon, count):
    """Losses and P- and Q-masses of so many uses of randomized response, at 40 digits."""
    with mpmath.workdps(40):
        e = mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(e))
        mass = [mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]
        return [(2 * k - count) * e for k in range(count + 1)], mass, mass[::-1]


def profile(epsilon, count, at):
    loss, p, q = reports(epsilon, count)
    return sum(b - mpmath.exp(at) * a for x, a, b in zip(loss, p, q, strict=True) if x > at)


def test_randomized_response_by_enumeration():
    """Between two atoms δ(ε) is smooth in θ: its derivative is exact there, and so is the
    difference between one use more and less.

    (Only of δ at a fixed ε: an odd and an even number of reports have their atoms in different
    places, so numbers that touch the curve in one of its corners have no derivative in T that means
    anything, and none is asserted.)"""
    theta, count = 0.05, 100
    for at in (0.0, 0.447, 1.13):
        with mpmath.workdps(40):
            step = mpmath.mpf(10) ** -12
            exact = (profile(theta + step, count, at) - profile(theta - step, count, at)) / (
                2 * step
            )
            more = (profile(theta, count + 1, at) - profile(theta, count - 1, at)) / 2
        with jax.enable_x64(True):
            uses = lambda r: Composition((jaxgdp.RandomizedResponse(r[0]),), (r[1],))
            ask = lambda r: differentiable.delta(uses(r), at, lattice=DENSE).upper  # noqa: B023
            found = np.asarray(jax.grad(ask)(jnp.array([theta, float(count)])))
        assert np.allclose(found, [float(exact), float(more)], rtol=1e-3), at


def test_many_uses_of_atoms():
    """Numbers of uses, where they are many: between those of one use in a hundred more and less."""
    for kind, name in (
        ("Laplace", "mu"),
        ("SubsampledLaplace", "epsilon"),
        ("DiscreteGaussian", "tpr"),
    ):
        mechanism, (at, *_), _ = ATOMS[kind]
        uses = np.array([404.0, 396.0])
        bracket = jaxgdp.measure(
            Composition((mechanism(at),), (uses,)), name, rtol=1e-5, delta=1e-5, fpr=1e-3
        ).brackets[name]
        middle = 0.5 * (bracket.lower + bracket.upper)
        assert np.isclose(
            slope(name, mechanism, at, 400.0, in_uses=True)[1],
            (middle[0] - middle[1]) / 8,
            rtol=1e-2,
        ), kind


@pytest.mark.slow
def test_mixed_composition():
    """Smooth, discrete and mixed losses together, each in its own parameter and in its number of
    uses.
    """
    at = np.array([6.0, 0.1, 30.0])

    def mixed(r, count=60.0):
        parts = (
            jaxgdp.SubsampledGaussian(r[0], 0.2),
            jaxgdp.RandomizedResponse(r[1]),
            jaxgdp.Laplace(r[2]),
        )
        return Composition(parts, (count, 10.0, 50.0))

    step = 1e-2
    rows = np.stack(
        [at] + [at * (1 + sign * step * row) for row in np.eye(3) for sign in (1, -1)], axis=1
    )
    bracket = jaxgdp.measure(mixed(rows), "mu", rtol=1e-4).brackets["mu"]
    middle = 0.5 * (bracket.lower + bracket.upper)
    with jax.enable_x64(True):
        found = jax.grad(lambda r: differentiable.mu(mixed(r), lattice=DENSE).upper)(
            jnp.asarray(at)
        )
    assert np.allclose(found, (middle[1::2] - middle[2::2]) / (2 * step * at), rtol=1e-2)


def test_fields_without_derivatives_are_refused_by_name():
    """A derivative that nobody has declared is refused before anything is computed, not guessed."""
    from jaxgdp import mechanisms as m

    refused = {
        "ExponentialMechanism": lambda x: m.ExponentialMechanism(x),
        "ExponentialMechanism in its number of uses": lambda x: Composition(
            (m.ExponentialMechanism(0.1),), (x,)
        ),
        "FromPMFs": lambda x: m.FromPMFs(jnp.stack([x, 1 - x]), [0.4, 0.6]),
        "FromProfile": lambda x: m.FromProfile(jnp.stack([0 * x, x]), [0.4, 0.2]),
        "FromDensities": lambda x: m.FromDensities(x * jnp.arange(3.0), np.zeros(3), np.zeros(3)),
        "FixedSize": lambda x: m.FixedSize(x, 2, 10),
        "TruncatedPoisson": lambda x: m.TruncatedPoisson(1.0, x, 5, 10),
        "RandomAllocation": lambda x: m.RandomAllocation(x, 10),
        "RandomizedResponse in num_categories": lambda x: m.RandomizedResponse(1.0, x),
        "DiscreteGaussian in sensitivity": lambda x: m.DiscreteGaussian(3.0, x),
    }
    with jax.enable_x64(True):
        for name, mechanism in refused.items():
            with pytest.raises(
                NotImplementedError, match=name.split(" in ")[-1] if " in " in name else name
            ):
                jax.grad(lambda x: differentiable.mu(mechanism(x)).upper)(0.5)  # noqa: B023
        with pytest.raises(
            NotImplementedError, match="DiscreteLaplace in scale for adjacency 'replace_one'"
        ):
            jax.grad(
                lambda x: differentiable.mu(m.DiscreteLaplace(x), adjacency="replace_one").upper
            )(0.5)


def test_documentation_lists_the_declared_fields():
    """The table in the module's docstring is what mechanisms declare, no more and no less."""
    from jaxgdp import mechanisms as m

    rows = re.findall(
        r"^((?:``\w+``(?:, )?)+) {2,}((?:``\w+``(?:, )?)+)$", differentiable.__doc__, re.MULTILINE
    )
    words = functools.partial(re.findall, r"\w+")
    documented = {kind: tuple(words(fields)) for kinds, fields in rows for kind in words(kinds)}
    kinds = [
        kind
        for kind in (getattr(m, name) for name in m.__all__)
        if isinstance(kind, type) and issubclass(kind, m.Mechanism)
    ]
    assert documented == {
        kind.__name__: kind.differentiable for kind in kinds if kind.differentiable
    }


def test_mechanism_that_declares_nothing_is_refused():
    @pytree
    @dataclass(frozen=True)
    class Own(jaxgdp.Laplace):
        differentiable = ()

    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="Own in scale"):
        jax.grad(lambda b: differentiable.mu(Own(b)).upper)(1.0)


def test_gaussian_closed_forms(lattice):
    """Without subsampling μ = √T/σ; every other number is a known function of μ."""
    sigma, number = 30.0, 900.0
    mu = np.sqrt(number) / sigma
    by = np.array([-mu / sigma, 0.5 * mu / number])
    epsilon = float(jaxgdp.gdp.epsilon(delta=1e-5, mu=mu))
    above, below = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    slopes = {
        "mu": 1.0,
        "advantage": norm.pdf(mu / 2),
        "tpr": norm.pdf(norm.isf(1e-3) - mu),
        "epsilon": norm.pdf(above) / (np.exp(epsilon) * norm.cdf(below)),
    }
    with jax.enable_x64(True):
        for name, slope in slopes.items():
            ask = functools.partial(getattr(differentiable, name), lattice=lattice)
            found = jax.grad(lambda r: ask(steps((r[0], 1.0, r[1])), *ASKED[name]).upper)(  # noqa: B023
                jnp.array([sigma, number])
            )
            assert np.allclose(found, slope * by, rtol=5e-3), (name, found, slope * by)


def test_derivatives_in_what_is_asked(lattice):
    """∂TPR/∂α is the slope of the curve, ∂δ/∂ε = −e^ε·α, ∂ε/∂δ its inverse: closed forms for the
    Gaussian mechanism.
    """
    sigma, number = 30.0, 900.0
    mu, mechanism = 1.0, steps((sigma, 1.0, number))
    alpha, epsilon = 1e-3, 1.2
    delta = float(jaxgdp.gdp.delta(epsilon=epsilon, mu=mu))
    fpr = norm.cdf(-epsilon / mu - mu / 2)
    z = norm.isf(alpha)
    prior = 0.7
    odds = np.log(prior / (1 - prior))
    exact = {
        ("tpr", alpha): norm.pdf(z - mu) / norm.pdf(z),
        ("beta", alpha): -norm.pdf(z - mu) / norm.pdf(z),
        ("delta", epsilon): -np.exp(epsilon) * fpr,
        ("epsilon", delta): -1 / (np.exp(epsilon) * fpr),
        ("bayes_risk", prior): norm.cdf(-odds / mu - mu / 2) - norm.cdf(odds / mu - mu / 2),
    }
    with jax.enable_x64(True):
        for (name, at), slope in exact.items():
            found = jax.grad(
                lambda a: getattr(differentiable, name)(mechanism, a, lattice=lattice).upper  # noqa: B023
            )(at)
            assert np.isclose(found, slope, rtol=5e-3), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "one_by_one"), first(1, [("delta", False), ("delta", True), ("mu", True)])
)
def test_derivatives_inside_jit_vmap_and_jacobian(name, one_by_one, lattice):
    """One trace for a batch; a row of the Jacobian does not depend on the others and, nightly (a
    program of one row takes a quarter of the time to compile), is the gradient of that row alone.
    """
    function = functools.partial(getattr(differentiable, name), lattice=lattice)
    with jax.enable_x64(True):
        rows = jnp.asarray(SETTINGS[:2])
        traces = []

        def ask(r):
            traces.append(None)
            found = function(steps(r.T), *ASKED[name]).upper
            return found, found

        jacobian = jax.jit(jax.jacobian(ask, has_aux=True), compiler_options=ONCE)
        matrix, values = jacobian(rows)
        again, values_again = jacobian(rows.at[0].multiply(1.01))
        assert len(traces) == 1 and not np.any(np.isnan(again))
        assert np.array_equal(again[1], matrix[1]) and values_again[1] == values[1]
        assert np.all(again[0, 0] != matrix[0, 0])
        for i, row in enumerate(rows if one_by_one else ()):
            value, gradient = jax.value_and_grad(lambda r: ask(r)[0])(row)
            assert np.isclose(values[i], value, rtol=1e-9)
            assert np.allclose(matrix[i, i], gradient, rtol=1e-6)
        assert np.all(matrix[~np.eye(len(rows), dtype=bool)] == 0.0)


def noise_of_mu(goal, p, number, lattice):
    """σ, with its derivatives in all three."""
    solve = functools.partial(differentiable.noise_multiplier, "mu", lattice=lattice)
    return jax.value_and_grad(solve, argnums=(0, 1, 2))(goal, p, number)


@pytest.mark.slow
@pytest.mark.parametrize("in_one_program", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_calibrated_noise_is_differentiable(lattice, in_one_program):
    """σ meets the goal on the safe side, agrees with the host's calibration, and moves as the
    implicit function theorem says.
    """
    p, number, goal = 0.05, 1000, np.array([0.8, 0.9])
    host = jaxgdp.calibrate(
        jaxgdp.targets.Mu(np.array([0.8, 0.9, 0.81, 0.79, 0.8, 0.8, 0.8, 0.8])),
        sampling_prob=p * np.array([1, 1, 1, 1, 1.02, 0.98, 1, 1]),
        num_steps=np.array([1000] * 6 + [1020, 980]),
        rtol=1e-4,
    ).value
    both = lambda g: noise_of_mu(g, p, float(number), lattice)
    with jax.enable_x64(True):
        if in_one_program:
            found, slopes = jax.jit(jax.vmap(both), compiler_options=ONCE)(jnp.asarray(goal))
        else:
            found, slopes = jax.tree.map(lambda *a: np.stack(a), *map(both, goal))
    by_goal, by_rate, by_steps = (float(of[0]) for of in slopes)
    assert np.allclose(found, host[:2], rtol=2e-3)
    assert np.isclose(by_goal, (host[2] - host[3]) / 0.02, rtol=2e-2)
    assert np.isclose(by_rate, (host[4] - host[5]) / (0.04 * p), rtol=2e-2)
    assert np.isclose(by_steps, (host[6] - host[7]) / 40.0, rtol=2e-2)
    tight = jaxgdp.measure(jaxgdp.dpsgd(found, p, number), "mu", rtol=1e-5).brackets["mu"]
    # the safe side: what is certified far tighter lies below the goal, and not far below
    assert np.all(tight.upper <= goal) and np.all(tight.upper >= goal * (1 - 2e-3))


def test_calibrated_noise_within_a_program(monkeypatch):
    """The bisection and its derivatives as parts of a program, of a number in closed form: μ =
    √T/σ.
    """
    monkeypatch.setattr(
        calibrated, "_safe_side", lambda form, sigma, p, steps, at: jnp.sqrt(steps) / sigma
    )
    goal, number = np.array([0.8, 0.9, 1e-4]), 1000.0
    with jax.enable_x64(True):
        both = jax.vmap(functools.partial(noise_of_mu, lattice=DENSE), in_axes=(0, None, None))
        found, slopes = jax.tree.map(np.asarray, jax.jit(both)(goal, 0.05, number))
    exact = np.sqrt(number) / goal[:2]
    assert np.all(found[:2] >= exact) and np.allclose(found[:2], exact, rtol=1.01e-7, atol=0.0)
    for by, closed in zip(slopes, (-exact / goal[:2], 0.0, 0.5 * exact / number), strict=True):
        assert np.allclose(by[:2], closed, rtol=1e-6)
    assert np.isnan(found[2])  # more noise than is searched


def test_jit_without_a_lattice(monkeypatch):
    """A default serves DP-SGD; the bracket says how well."""
    chosen, halves = [], program._halves
    monkeypatch.setattr(
        program, "_halves", lambda *of, **bare: chosen.append(of[2].lattice) or halves(*of, **bare)
    )
    with jax.enable_x64(True):
        jax.eval_shape(lambda s: differentiable.mu(jaxgdp.dpsgd(s, 0.01, 1000)), 0.9)
        # (that programs find what NumPy finds is seen above)
        found = jax.tree.map(
            float, differentiable.mu(jaxgdp.dpsgd(0.9, 0.01, 1000), lattice=program.DEFAULT)
        )
    assert chosen == [program.DEFAULT] * 2
    tight = jaxgdp.measure(jaxgdp.dpsgd(0.9, 0.01, 1000), "mu", rtol=1e-4).brackets["mu"]
    assert found.lower <= tight.upper and tight.lower <= found.upper
    assert found.upper - found.lower < 1e-2 * found.upper


def test_64_bits_are_asked_for():
    with pytest.raises(RuntimeError, match="enable_x64"):
        differentiable.mu(jaxgdp.dpsgd(1.0, 0.1, 100))


def test_bad_input_is_named():
    with jax.enable_x64(True):
        with pytest.raises(ValueError, match="delta"):
            differentiable.epsilon(jaxgdp.Gaussian(1.0), 0.0)
        with pytest.raises(ValueError, match="fpr must"):
            differentiable.tpr(jaxgdp.Gaussian(1.0), 1.0)
        with pytest.raises(ValueError, match="at must be given"):
            differentiable.noise_multiplier("tpr", 0.2, 0.1, 100)
        with pytest.raises(ValueError, match="quantity"):
            differentiable.noise_multiplier("regret", 0.2, 0.1, 100)
        with pytest.raises(ValueError, match="fpr_floor"):
            differentiable.mu(jaxgdp.Gaussian(1.0), 0.7)
