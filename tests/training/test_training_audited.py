"""Training loops under audit: a canary put in or left out, and all that a run releases is watched.

What the loop of the examples does is consistent with the plan, by every path, and nearly as much is
found out as the plan allows; each slip that can still be made refutes it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxgdp
from jaxgdp.training import (
    ExampleGradients,
    clipped_gradients,
    per_example_gradients,
    plan_budget,
    poisson_sampler,
    privatize,
)

pytestmark = pytest.mark.nightly
SIGMA, RATE, STEPS, RECORDS = 1.0, 0.3, 20, 6
RUNS = 4000
PATHS = ("rows", "micro-batches", "parts")
SLIPS = ("mask", "sampler", "scaled", "means", "noise")


def loss(w, x):
    return w @ x


def _sampler(slip):
    rate = 1.0 if slip == "means" else RATE
    number = {"sampler": 9, "means": 4}.get(slip, RECORDS)
    return poisson_sampler(number, rate, max_steps=STEPS, multiple_of=4)


def _data(slip, present):
    """The canary's gradient is far beyond the clipping norm, along the first axis."""
    number = 4 if slip == "means" else RECORDS
    others = -2.0 if slip == "means" else 0.0
    canary = number - 1 if slip == "sampler" else 0
    return jnp.full((number, 3), jnp.array([others, 0.0, 0.0])).at[canary, 0].set(700.0 * present)


def _optimiser(slip, sampler, plan, key):
    inner = optax.sgd(1.0)
    if slip == "mask" or slip == "means" or slip == "scaled":  # no sampler, which would refuse
        size = sampler.expected_batch_size
        return privatize(1.0, SIGMA, size, key=key, max_steps=STEPS, inner=inner)
    if slip == "noise":  # typed again, and not as planned
        return privatize(1.0, SIGMA / 2, key=key, sampler=sampler, inner=inner)
    accumulate = 2 if slip == "parts" else 1
    return plan.privatize(1.0, key, inner=inner, accumulate=accumulate, sampler=sampler)


def _gradients(slip, sampler, params, state, draw, data):
    """What the loop gives to ``update``."""
    batch = sampler.sample(draw, state.step)
    if slip == "parts":
        batch = batch.part(state.part, 2)
    if slip == "mask":  # padding repeats record 0
        return ExampleGradients(data[jnp.where(batch.mask, batch.indices, 0)], "all")
    if slip == "means":  # of pairs of examples, which one of them turns around
        rows = sampler.take(batch, data)[:4].reshape(2, 2, 3).mean(1)
        return ExampleGradients(rows, "all")
    # (an index beyond the data is that of the last record in JAX)
    rows = data[batch.indices] if slip == "sampler" else sampler.take(batch, data)
    if slip == "rows":
        return per_example_gradients(loss)(params, rows, mask=batch.mask)[1]
    _, total = clipped_gradients(loss, 1.0, microbatch_size=2)(params, rows, mask=batch.mask)
    return jax.tree.map(lambda part: 3 * part, total) if slip == "scaled" else total


@functools.cache
def _plan(rate):
    return plan_budget(SIGMA, rate, STEPS, "mu", every=STEPS)


def scores(slip, present):
    """The log likelihood ratio of all updates of a run, for each of many runs."""
    sampler = _sampler(slip)
    plan = _plan(1.0 if slip == "means" else RATE)
    updates = 2 * STEPS if slip == "parts" else STEPS
    p = 1.0 if slip == "means" else RATE

    def run(seed):
        key, draw = jax.random.split(jax.random.key(seed))
        optimiser, data = _optimiser(slip, sampler, plan, key), _data(slip, present)

        def step(carry, _):
            params, state = carry
            given = _gradients(slip, sampler, params, state, draw, data)
            update, after = optimiser.update(given, state, params)
            output = -update[0] * sampler.expected_batch_size  # of SGD with rate 1
            if slip == "means":
                output += 2.0  # (both pairs point the other way without the canary)
            ratio = jnp.log1p(p * jnp.expm1((output - 0.5) / SIGMA**2))
            moved = after.step > state.step
            return (optax.apply_updates(params, update), after), jnp.where(moved, ratio, 0.0)

        params = jnp.zeros(3)
        start = params, optimiser.init(params)
        (_, state), ratios = jax.lax.scan(step, start, None, length=updates)
        return ratios.sum(), state.step

    seeds = jnp.arange(RUNS) + (RUNS if present else 0)
    found, steps = jax.jit(jax.vmap(run))(seeds)
    assert np.all(np.asarray(steps) == STEPS)
    return np.asarray(found)


def _verdict(slip):
    claim = _plan(1.0 if slip == "means" else RATE).composition(STEPS)
    return jaxgdp.audit.verdict(claim, scores(slip, 1), scores(slip, 0), confidence=1 - 1e-4)


@pytest.mark.parametrize("path", PATHS)
def test_loop_is_consistent_and_gives_away_nearly_what_the_plan_allows(path):
    found = _verdict(path)
    assert not found.refuted, found.line
    # a third less noise would be refuted: the audit sees what there is to see
    stronger = jaxgdp.dpsgd(1.5 * SIGMA, RATE, STEPS)
    again = jaxgdp.audit.verdict(stronger, scores(path, 1), scores(path, 0), confidence=1 - 1e-4)
    assert again.refuted, again.line


@pytest.mark.parametrize("slip", SLIPS)
def test_slip_that_can_still_be_made_is_refuted(slip):
    found = _verdict(slip)
    assert found.refuted, found.line
