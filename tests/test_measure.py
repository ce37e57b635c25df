"""Numbers of batches of any mechanisms, without their curves."""

import jax
import numpy as np
import pytest
from scipy.special import ndtr

import jaxgdp


def batch():
    return jaxgdp.compose(
        [
            (jaxgdp.Gaussian(np.array([[3.0], [8.0]])), 2),
            (jaxgdp.Laplace(np.array([4.0, 9.0, 20.0])), np.array([[1], [5]])),
        ]
    )


def test_batch_has_the_shape_and_the_numbers_of_its_members():
    found = jaxgdp.measure(batch(), quantities=("mu", "epsilon", "advantage"), delta=1e-6)
    assert (
        found.worst.shape == (2, 3) and np.all(found.worst == 0) and found.at == {"epsilon": 1e-6}
    )
    curves = jaxgdp.tradeoff(batch())
    others = {"mu": curves.mu(), "epsilon": curves.epsilon(1e-6), "advantage": curves.advantage()}
    for name, bracket in found.brackets.items():
        assert bracket.upper.shape == (2, 3)
        assert np.all(bracket.lower <= others[name].upper) and np.all(
            others[name].lower <= bracket.upper
        ), name
    one = jaxgdp.compose([(jaxgdp.Gaussian(8.0), 2), (jaxgdp.Laplace(9.0), 5)])
    alone = jaxgdp.measure(one, quantities="mu").brackets["mu"]
    assert np.allclose(alone, [side[1, 1] for side in found.brackets["mu"]], rtol=1e-6)


def test_gaussian_is_exact_enough():
    sigma = np.array([0.7, 3.0])
    found = jaxgdp.measure(
        jaxgdp.Gaussian(sigma), quantities=("mu", "delta", "tpr"), epsilon=0.5, fpr=1e-6
    )
    assert np.all(found.brackets["mu"].contains(1.0 / sigma))
    assert np.all(found.brackets["delta"].contains(jaxgdp.gdp.delta(epsilon=0.5, mu=1.0 / sigma)))
    assert np.all(found.brackets["tpr"].contains(jaxgdp.gdp.tpr(fpr=1e-6, mu=1.0 / sigma)))


def test_each_setting_has_its_own_rates():
    """Closed forms of the Gaussian mechanism, every setting asked at its own δ, FPR, d, prior and
    floor.
    """
    mu = np.array([0.05, 0.8, 3.0, 12.0])
    fpr, delta = np.array([0.1, 1e-3, 1e-6, 0.3]), np.array([1e-3, 1e-5, 1e-9, 0.2])
    prior = np.array([0.5, 0.05, 0.99, 0.3])
    found = jaxgdp.measure(
        jaxgdp.Gaussian(1.0 / mu),
        quantities=("mu", "epsilon", "tpr", "beta", "bayes_risk", "approximate_mu"),
        fpr_floor=np.array([1e-3, 1e-10, 1e-20, 1e-5]),
        delta=delta, fpr=fpr, prior=prior, approximation=delta,
    )  # fmt: skip
    # an attacker rejects where the loss exceeds the log of the prior odds
    odds = np.log(prior / (1 - prior))
    risk = prior * ndtr(-odds / mu - mu / 2) + (1 - prior) * ndtr(odds / mu - mu / 2)
    beta = jaxgdp.gdp.beta(fpr=fpr, mu=mu)
    exact = {
        "mu": mu,
        "epsilon": jaxgdp.gdp.epsilon(delta=delta, mu=mu),
        "tpr": 1 - beta,
        "beta": beta,
        "bayes_risk": risk,
    }
    for name, value in exact.items():
        bracket = found.brackets[name]
        assert np.all(bracket.lower <= value * (1 + 1e-12)) and np.all(
            value <= bracket.upper * (1 + 1e-12)
        ), name
        assert np.all(
            bracket.upper - bracket.lower <= np.where(value > 1e-6, 4e-3, 4e-2) * value
        ), name
    assert np.all(found.brackets["approximate_mu"].upper <= mu * (1 + 1e-12))


def test_rates_spread_a_mechanism():
    found = jaxgdp.measure(jaxgdp.Gaussian(2.0), quantities="tpr", fpr=np.array([[1e-3], [1e-2]]))
    assert np.all(
        found.brackets["tpr"].contains(1 - jaxgdp.gdp.beta(fpr=np.array([[1e-3], [1e-2]]), mu=0.5))
    )
    assert found.at["tpr"].shape == (2, 1) and found.status["tpr"].shape == (2, 1)


def test_bayes_risk_is_bounded_where_only_little_of_the_curve_is_known():
    """Randomized response at a prior beyond its largest loss: guessing is best, though the curve
    ends before.
    """
    mechanism = jaxgdp.RandomizedResponse(1.0)
    prior = np.array([0.2, 0.5, 0.9])
    found = jaxgdp.measure(mechanism, quantities="bayes_risk", prior=prior, fpr_floor=0.3).brackets[
        "bayes_risk"
    ]
    lie = 1 / (1 + np.e)
    exact = np.minimum(np.minimum(prior, 1 - prior), lie)
    assert np.all(found.lower <= exact + 1e-12) and np.all(exact <= found.upper + 1e-12)
    assert np.all(found.upper - found.lower < 1e-3)


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"quantities": ("mu", "privacy")}, "quantity"),
        ({"rtol": 0.0}, "rtol"),
        ({"fpr_floor": 0.7}, "fpr_floor"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"fpr": np.nan}, "fpr"),
        ({"approximation": 0.0}, "approximation must"),
        ({"approximation": [1e-3, 2.0], "quantities": "approximate_mu"}, "approximation must"),
        ({"prior": 1.0}, "prior"),
        (
            {"mechanism": jaxgdp.Gaussian([1.0, 2.0]), "fpr": [0.1] * 3, "quantities": "tpr"},
            "broadcast",
        ),
        ({"adjacency": "sideways"}, "adjacency"),
    ],
)
def test_bad_input_is_named(bad, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.measure(**({"mechanism": jaxgdp.Gaussian(1.0)} | bad))


def test_status_is_that_of_each_quantity():
    """δ(6) of a run is known to a fraction only where μ is known to 1e-3: each says for itself
    whether it was reached.
    """
    found = jaxgdp.measure(jaxgdp.Gaussian([1.0, 2.0]), ("mu", "advantage"), nested=False)
    assert set(found.status) == {"mu", "advantage"} and found.worst.tolist() == [0, 0]
    for name, codes in found.status.items():
        bracket = found.brackets[name]
        assert np.array_equal(codes == 0, bracket.width <= 1e-3 * bracket.upper)
    run = jaxgdp.dpsgd(2.0, 0.01, 1000)
    found = jaxgdp.measure(run, ("mu", "delta"), epsilon=[0.1, 6.0])
    reached = found.brackets["delta"].width <= 1e-3 * found.brackets["delta"].upper
    assert np.array_equal(found.status["delta"] == 0, reached)


@pytest.mark.parametrize("function", ["measure", "tradeoff", "sweep", "epsilon"])
def test_traced_numbers_are_refused_by_name(function):
    """Inside a transformation the numbers that choose a lattice are unknown: the error says what to
    use instead.
    """
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))
    functions = {
        "measure": lambda s: jaxgdp.measure(jaxgdp.Gaussian(s)).brackets["mu"].upper,
        "tradeoff": lambda s: jaxgdp.tradeoff(jaxgdp.Gaussian(s)).tail_mu,
        "sweep": lambda s: jaxgdp.sweep(s, 1.0, 1).mu.values,
        "epsilon": lambda s: curve.epsilon(s).upper,
    }
    if function == "sweep":
        pytest.importorskip("xarray")
    for transformed in (jax.jit(functions[function]), jax.grad(functions[function])):
        with pytest.raises(
            TypeError, match=rf"jaxgdp\.(TradeoffCurve\.)?{function} .*jaxgdp\.differentiable"
        ):
            transformed(0.5)


def test_values_that_are_not_mechanisms_are_refused_with_what_is():
    class Event:
        __module__ = "dp_accounting.dp_event"

    with pytest.raises(ValueError, match=r"jaxgdp\.interop\.dp_accounting\.from_event") as told:
        jaxgdp.measure(Event())
    named = (
        str(told.value)
        .partition(" or a Composition")[0]
        .partition("must be one of ")[2]
        .split(", ")
    )
    assert set(named) == set(jaxgdp.spec.known_mechanisms()) and all(
        hasattr(jaxgdp, name) for name in named
    )
    with pytest.raises(ValueError, match="must be one of") as told:
        jaxgdp.measure(3.0)
    assert "from_event" not in str(told.value)


def test_smaller_batch_after_a_larger_one_compiles_nothing():
    """However few settings are asked for, what they cost is not a new program."""
    compiled = []
    heed = lambda event, *_, **__: (
        event.endswith("backend_compile_duration") and compiled.append(event)
    )
    asked = lambda number, factor: jaxgdp.measure(
        jaxgdp.dpsgd(np.geomspace(0.8, 4.0, number) * factor, 0.02, 700), ("mu", "epsilon")
    )
    asked(72, 1.0)
    jax.monitoring.register_event_duration_secs_listener(heed)
    try:
        found = asked(10, 1.07)
    finally:
        jax.monitoring.unregister_event_duration_listener(heed)
    assert compiled == [] and np.all(found.worst == 0)
