"""Odometers: exact games of an analyst who chooses every step and when to stop, by what was
published, against what the odometer shows; sums against 40 digits.
"""

import functools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.training import accountant, filters, odometers


def renyi(order, epsilon):
    """Rényi divergence of randomized response, the same in both directions."""
    heads = 1.0 / (1.0 + math.exp(-epsilon))
    tails = 1.0 - heads
    power = heads**order * tails ** (1.0 - order) + tails**order * heads ** (1.0 - order)
    return math.log(power) / (order - 1.0)


def worst(shown, unit, kinds, most, admitted=lambda used: True):
    """The largest E_P(1 − e^{shown − L})₊ of all analysts, by backward induction.

    Every step is a randomized response of ε = kind·unit, chosen by the answers before; the analyst
    ends at any time. It is the largest Pr[A] − E′[e^shown·1_A] of all events and all analysts.

    Args:
        shown: ε after each number of uses of the kinds.
        most: steps.
        admitted: whether such numbers of uses are allowed.
    """
    heads = [1.0 / (1.0 + math.exp(-kind * unit)) for kind in kinds]

    @functools.lru_cache(None)
    def value(used, loss):
        best = max(0.0, 1.0 - math.exp(min(shown(used) - loss * unit, 50.0)))
        for i, kind in enumerate(kinds):
            after = (*used[:i], used[i] + 1, *used[i + 1 :])
            if sum(used) < most and admitted(after):
                each = value(after, loss + kind), value(after, loss - kind)
                best = max(best, heads[i] * each[0] + (1.0 - heads[i]) * each[1])
        return best

    return value((0,) * len(kinds), 0)


def epsilons(start, costs):
    """ε that an odometer shows, by numbers of uses of steps of some costs."""

    @functools.lru_cache(None)
    def state(used):
        i = next((i for i, number in enumerate(used) if number), None)
        if i is None:
            return start
        before = (*used[:i], used[i] - 1, *used[i + 1 :])
        return odometers.spend(state(before), costs[i])

    return functools.lru_cache(None)(lambda used: state(used).epsilon())


ORDERS = (2.0, 4.0, 9.0, 20.0)


@pytest.mark.parametrize("unit, delta", [(0.5, 0.05), (0.3, 0.01)])
def test_odometer_holds_for_every_choice_of_steps_and_end(unit, delta):
    kinds = (1, 2)
    costs = [np.array([renyi(order, kind * unit) for order in ORDERS]) for kind in kinds]
    shown = epsilons(odometers.rdp_odometer(delta, ORDERS), costs)
    found = worst(shown, unit, kinds, 14)
    assert 0.8 * delta < found <= delta
    # the best of the orders at each time, with all of δ, is no odometer
    log = lambda used: [used[0] * costs[0] + used[1] * costs[1]]
    best = lambda used: (
        float(jaxgdp.conversions.epsilon_from_rdp(delta=delta, orders=ORDERS, rho=log(used)[0]))
        if sum(used)
        else 0.0
    )
    assert worst(functools.lru_cache(None)(best), unit, kinds, 14) > 1.15 * delta


def test_odometer_of_one_order_is_reached():
    """Nothing below the line of one order holds: some analyst comes next to δ."""
    unit, delta = 0.3, 1e-3
    shown = epsilons(odometers.rdp_odometer(delta, [9.0]), [np.array([renyi(9.0, unit)])])
    assert 0.97 * delta < worst(shown, unit, (1,), 40) <= delta
    less = lambda used: shown(used) - 0.02
    assert worst(less, unit, (1,), 40) > delta


def test_curve_of_the_steps_so_far_is_no_odometer():
    unit, delta = 0.3, 0.01

    @functools.lru_cache(None)
    def natural(used):
        (steps,) = used
        heads = 1.0 / (1.0 + math.exp(-unit))
        masses = [
            (math.comb(steps, k) * heads**k * (1.0 - heads) ** (steps - k), (2 * k - steps) * unit)
            for k in range(steps + 1)
        ]
        low, high = 0.0, steps * unit
        for _ in range(60):
            middle = 0.5 * (low + high)
            left = sum(mass * max(0.0, 1.0 - math.exp(middle - loss)) for mass, loss in masses)
            low, high = (middle, high) if left > delta else (low, middle)
        return high

    # a time that is fixed beforehand keeps δ, and one that is chosen does not
    assert worst(natural, unit, (1,), 40) > 2.0 * delta
    shown = epsilons(odometers.rdp_odometer(delta, [5.0]), [np.array([renyi(5.0, unit)])])
    assert worst(shown, unit, (1,), 40) <= delta


def test_levels_hold_for_the_run_that_is_cut_there():
    """Whatever the analyst does before the level is passed is as private as its Gaussian."""
    unit, kinds, level = 0.2, (1, 7), 1.0
    mus = [float(jaxgdp.gdp.mu_from_pure_dp(epsilon=kind * unit)) for kind in kinds]
    start = odometers.gdp_odometer(delta=0.01, expected=level)
    spent = lambda used: sum(n * mu**2 for n, mu in zip(used, mus, strict=True))

    def stays(used):
        state = odometers.spend(start, [spent(used)])
        return state.level([0.5, level, 2.0]) <= level

    stays = functools.lru_cache(None)(stays)
    assert stays((4, 0)) and not stays((40, 0)) and not stays((0, 1))
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        found = worst(lambda used, epsilon=epsilon: epsilon, unit, kinds, 40, stays)
        allowed = float(jaxgdp.gdp.delta(epsilon=epsilon, mu=level))
        assert 0.1 * allowed < found <= allowed
    # a run that ends once the level is passed does not keep it
    before = lambda used, i: (*used[:i], used[i] - 1, *used[i + 1 :])
    late = lambda used: any(stays(before(used, i)) for i in range(2) if used[i])
    wrong = worst(lambda used: 0.0, unit, kinds, 40, late)
    assert wrong > float(jaxgdp.gdp.delta(epsilon=0.0, mu=level))


def exact(state):
    """The largest L + log(1 − N(L)), with 40 digits."""
    with mpmath.workdps(40):
        delta, share = mpmath.mpf(state.delta), {"gdp": 0.5, "zcdp": 1.0}
        spent = np.broadcast_to(np.asarray(state.spent, float), len(state.orders))
        rows = [
            (mpmath.mpf(w), mpmath.mpf(a) - 1, x * mpmath.mpf(a if state.kind != "rdp" else 1))
            for a, w, x in zip(state.orders, state.weights, map(mpmath.mpf, spent), strict=True)
        ]
        factor = mpmath.mpf(share.get(state.kind, 1.0))
        total = lambda at, slope: (
            delta
            * mpmath.fsum(
                w * (1 + slope * s) * mpmath.exp(s * (at - factor * d)) for w, s, d in rows
            )
        )
        low, high = mpmath.mpf(-(10**4)), mpmath.mpf(10**6)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (low, middle) if total(middle, 1) > 1 else (middle, high)
        return max(low + mpmath.log(1 - total(low, 0)), mpmath.mpf(0))


@pytest.mark.parametrize(
    "start, cost",
    [
        (odometers.gdp_odometer(1e-5, [0.5, 1.0, 2.0]), [1.1]),
        (odometers.gdp_odometer(1e-5, 1.0), [1e-8]),
        (odometers.zcdp_odometer(1e-300, [1e-4, 3.0]), [2e-4]),
        (odometers.gdp_odometer(0.5, [1e-3, 1e3]), [1e4]),
        (odometers.rdp_odometer(1e-6, [1.001, 2.0, 700.0], [0.1, 0.2, 0.7]), [0.1, 0.2, 60.0]),
    ],
)
def test_epsilon_is_the_largest_of_all_losses_rounded_up(start, cost):
    state = odometers.spend(start, cost)
    found, truth = state.epsilon(), exact(state)
    assert truth <= found <= truth * (1 + mpmath.mpf("1e-6"))
    assert found <= float(odometers.read(state)) <= 1.2 * found + 0.1


def test_odometer_runs_inside_compiled_loops():
    costs = jnp.asarray(filters.gdp_cost(np.array([1.0, 3.0, 10.0])))

    def step(carry, i):
        state = odometers.spend(carry, costs[i % 3])
        return state, odometers.read(state)

    start = odometers.gdp_odometer(1e-5, [1.0, 5.0])
    last, shown = jax.jit(lambda s: jax.lax.scan(step, s, jnp.arange(30)))(start)
    account = accountant.init([(1.0, 1.0), (3.0, 0.5), (10.0, 1.0)])
    for i in range(3):
        account = accountant.step(account, i, count=10)
    counted = odometers.after(start, account)
    assert int(last.steps) == int(counted.steps) == 30
    exact_sum = 10 * (1.0 + 1.0 / 9.0 + 0.01)
    assert exact_sum <= float(counted.spent[0]) <= float(last.spent[0]) <= exact_sum * (1 + 1e-5)
    assert np.all(np.diff(shown) >= 0.0) and float(shown[-1]) >= last.epsilon() >= counted.epsilon()
    with pytest.raises(ValueError, match=r"use odometers\.read inside jit"):
        jax.jit(lambda s: s.epsilon())(start)


def test_odometer_reads_an_account_at_the_orders():
    orders = [4, 16]
    account = accountant.step(accountant.init([(1.0, 0.01), (1e-30, 1.0)]), 0, count=1000)
    counted = odometers.after(odometers.rdp_odometer(1e-5, orders), account)
    expected = 1000 * np.asarray(filters.rdp_cost(1.0, 0.01, orders), float)
    assert np.allclose(counted.spent, expected, rtol=1e-6) and np.all(counted.spent >= expected)
    assert counted.epsilon() > float(account.epsilon(delta=1e-5).upper)


def test_cost_that_is_no_number_makes_epsilon_infinite():
    start = odometers.gdp_odometer(1e-5, 1.0)
    assert start.epsilon() == 0.0 == float(odometers.read(start))
    for cost in (jnp.nan, -1.0, jnp.inf):
        state = jax.jit(odometers.spend)(start, jnp.array([cost]))
        state = odometers.spend(state, [0.1])
        assert state.epsilon() == np.inf == float(odometers.read(state)) == state.level([1.0])


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: odometers.gdp_odometer(0.0, 1.0), "delta must be"),
        (
            lambda: odometers.gdp_odometer([0.1, 0.2], 1.0),  # type: ignore[arg-type]
            "delta must be one number",
        ),
        (lambda: odometers.gdp_odometer(1e-5, -1.0), "expected must be"),
        (lambda: odometers.gdp_odometer(1e-5, 1e-200), "expected must be"),
        (lambda: odometers.zcdp_odometer(1e-5, 1e30), "expected must be"),
        (lambda: odometers.rdp_odometer(1e-5, [1.0]), "orders must be"),
        (lambda: odometers.rdp_odometer(1e-5, 2.0), "orders must be one-dimensional"),
        (lambda: odometers.rdp_odometer(1e-5, [2, 3], [0.6, 0.6]), "weights must be one for each"),
        (lambda: odometers.rdp_odometer(1e-5, [2, 3], [1.0]), "weights must be one for each"),
        (lambda: odometers.spend(odometers.zcdp_odometer(1e-5, 1.0), -1.0), "cost must be"),
        (
            lambda: odometers.spend(odometers.rdp_odometer(1e-5, [2, 3]), 1.0),
            "cost must have one entry per order",
        ),
        (lambda: odometers.rdp_odometer(1e-5, [2]).level([1.0]), "levels are of costs of one"),
        (lambda: odometers.gdp_odometer(1e-5, 1.0).level([0.0]), "levels must be"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
