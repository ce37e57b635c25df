"""Filters: costs against independent integrals, sums that never pass the budget, and steps that are
refused.
"""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest

import jaxgdp
from jaxgdp.training import filters, privatize


def renyi(sigma, p, order, forward):
    """Rényi divergence of N(0, σ²) and (1 − p)N(0, σ²) + pN(1, σ²), by quadrature."""
    with mpmath.workdps(30):
        sigma, p = mpmath.mpf(sigma), mpmath.mpf(p)
        ratio = lambda x: 1 - p + p * mpmath.exp((2 * x - 1) / (2 * sigma**2))
        power = order if forward else 1 - order
        integrand = lambda x: mpmath.npdf(x, 0, sigma) * ratio(x) ** power
        centre = order if forward else 0
        edges = sorted({-12 * sigma, 0, mpmath.mpf(1) / 2, centre, centre + 12 * sigma})
        return mpmath.log(mpmath.quad(integrand, edges)) / (order - 1)


@pytest.mark.parametrize("sigma, p", [(1.0, 0.01), (0.7, 0.3), (4.0, 1e-4), (2.0, 1.0)])
def test_renyi_cost_is_the_worse_divergence_rounded_up(sigma, p):
    orders = [2, 3, 8, 20]
    found = filters.rdp_cost(sigma, p, orders)
    assert found.dtype == np.float32 and found.shape == (4,)
    for order, value in zip(orders, found, strict=True):
        exact = renyi(sigma, p, order, forward=True)
        assert exact <= float(value) <= float(exact) * (1 + 1e-6) and renyi(
            sigma, p, order, forward=False
        ) <= float(value)


def test_gaussian_costs():
    sigma = np.array([0.3, 1.0, 7.0])
    for cost, exact in ((filters.gdp_cost, sigma**-2.0), (filters.zcdp_cost, 0.5 * sigma**-2.0)):
        found = np.asarray(cost(sigma), np.float64)
        assert np.all(found >= exact) and np.all(found <= exact * (1 + 3e-7))
        traced = np.asarray(jax.jit(cost)(jnp.asarray(sigma, jnp.float32)), np.float64)
        rounded = np.float64(np.float32(sigma)) ** -2.0 * exact * sigma**2.0
        assert np.all(traced >= rounded) and np.all(traced <= rounded * (1 + 1e-5))


@pytest.mark.parametrize(
    "state, cost",
    [
        (filters.gdp_filter(1.0), filters.gdp_cost(np.geomspace(3.0, 300.0, 50))),
        (filters.zcdp_filter(0.02), filters.zcdp_cost(np.geomspace(30.0, 300.0, 50))),
        (
            filters.rdp_filter([4, 16], [0.05, 0.2]),
            filters.rdp_cost(np.geomspace(1.8, 9.0, 50), 0.01, [4, 16]),
        ),
    ],
)
def test_admitted_costs_never_exceed_the_budget(state, cost):
    costs = jnp.asarray(cost)
    picks = jax.random.randint(jax.random.key(0), (4000,), 0, 50)

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda s, i: filters.admit(s, costs[i]), state, picks)

    last, admitted = run(state)
    admitted = np.asarray(admitted)
    assert 10 < admitted.sum() < 4000 and admitted.sum() == int(last.admitted)
    # once refused, always refused
    assert np.all(admitted[: admitted.sum()]) and bool(last.closed)
    exact = np.asarray(cost, np.float64)[np.asarray(picks)[admitted]]
    total = np.atleast_1d(exact.sum(0))
    assert np.all(total <= np.asarray(state.budget, np.float64)) and np.all(
        total <= np.asarray(last.spent, np.float64)
    )
    # and the next step would not have fitted
    following = total + np.asarray(cost, np.float64)[int(picks[admitted.sum()])]
    assert np.any(following > np.asarray(state.budget, np.float64) * (1 - 1e-3))


def test_budgets_mean_what_they_say():
    # σ = 2, four times: μ = 1, refused by a budget a hair below and admitted by one a hair above
    for mu, steps in ((0.9999, 3), (1.0001, 4)):
        state, cost = filters.gdp_filter(mu), filters.gdp_cost(2.0)
        for _ in range(6):
            state, _ = filters.admit(state, cost)
        assert int(state.admitted) == steps and mu * (1 - 1e-6) <= state.guarantee()["mu"] <= mu
    assert filters.zcdp_filter(0.5).guarantee() == {"rho": 0.5}


@pytest.mark.parametrize(
    "epsilon, delta, order", [(2.0, 1e-5, None), (0.5, 1e-8, None), (8.0, 1e-5, 3)]
)
def test_renyi_budget_for_epsilon_and_delta_is_safe_and_not_wasteful(epsilon, delta, order):
    state = filters.rdp_filter_for(epsilon, delta, order)
    budget = np.asarray(state.budget, np.float64)
    assert order is None or state.orders == (order,)
    assert (
        jaxgdp.conversions.epsilon_from_rdp(delta=delta, orders=state.orders, rho=budget) <= epsilon
    )
    assert jaxgdp.conversions.epsilon_from_rdp(
        delta=delta, orders=state.orders, rho=budget * 1.0001
    ) > epsilon * (1 - 1e-9)
    # a run of plain Gaussian noise that just fits is truly (ε, δ)-DP, and uses most of what (ε, δ)
    # allows
    rho = budget[0] / state.orders[0]
    mu = np.sqrt(2.0 * rho)
    assert jaxgdp.gdp.epsilon(delta=delta, mu=mu) <= epsilon
    assert mu >= (0.8 if order is None else 0.5) * jaxgdp.gdp.mu_from_epsilon_delta(
        epsilon=epsilon, delta=delta
    )


def test_noise_that_depends_on_the_data_stops_at_the_budget():
    """Noise that follows the size of the last noisy update, with a filter that decides before each
    step.
    """
    sigmas = np.array([1.0, 2.0, 4.0])
    costs = jnp.asarray(filters.rdp_cost(sigmas, 0.1, [8]))
    transformation = privatize(1.0, 1.0, 10.0, jax.random.key(0), inner=optax.sgd(0.1))
    g = jnp.full((20, 3), 0.2)

    def step(carry, _):
        params, state, filtered, choice = carry
        filtered, go = filters.admit(filtered, costs[choice])
        update, after = transformation.update(
            g, state, params, mask="all", noise_multiplier=jnp.asarray(sigmas)[choice], admitted=go
        )
        choice = jnp.clip((jnp.linalg.norm(update) * 200).astype(jnp.int32) % 3, 0, 2)
        return (optax.apply_updates(params, update), after, filtered, choice), (
            after.step,
            after.spent,
            params,
        )

    start = (
        jnp.zeros(3),
        transformation.init(jnp.zeros(3)),
        filters.rdp_filter([8], 3.0),
        jnp.asarray(0),
    )
    (params, state, filtered, _), (steps, spent, history) = jax.jit(
        lambda c: jax.lax.scan(step, c, None, length=300)
    )(start)
    number = int(state.step)
    assert 3 < number < 300 and number == int(filtered.admitted) and bool(state.spent)
    assert np.array_equal(params, history[number]) and float(filtered.spent[0]) <= 3.0
    assert np.all(np.asarray(spent) == (np.arange(300) >= number))


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: filters.gdp_filter(0.0), "mu must be"),
        (lambda: filters.zcdp_filter(-1.0), "rho must be"),
        (lambda: filters.rdp_filter([1.5], 1.0), "orders must be"),
        (lambda: filters.rdp_filter([1], 1.0), "orders must be"),
        (
            lambda: filters.rdp_filter([2, 4], [1.0, 2.0, 3.0]),
            "rho must be one number or one for each of 2 orders",
        ),
        (lambda: filters.rdp_filter_for(1e-3, 1e-5, 2), "order must leave room for epsilon"),
        (lambda: filters.gdp_cost(-1.0), "noise_multiplier"),
        (lambda: filters.rdp_cost(1.0, 2.0, [2]), "sampling_prob"),
        (
            lambda: filters.admit(filters.rdp_filter([2, 4], 1.0), 0.1),
            "cost must have one entry per order",
        ),
        (lambda: filters.admit(filters.gdp_filter(1.0), -0.1), "cost must be"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_cost_that_is_not_a_number_is_refused():
    state, go = jax.jit(filters.admit)(filters.gdp_filter(1.0), jnp.array([jnp.nan]))
    assert not bool(go) and bool(state.closed) and float(state.spent[0]) == 0.0
