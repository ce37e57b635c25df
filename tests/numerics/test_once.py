"""What is kept while somebody shares is what would be computed again: by arrays, to the last bit of
numbers, within one trace.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgdp
from jaxgdp.numerics import batching
from jaxgdp.numerics import namespace as xp
from jaxgdp.numerics.once import once, sharing
from jaxgdp.numerics.recent import Recent

CALLS = []


@once
def scaled(tree, factor, *, shift=0.0):
    CALLS.append(factor)
    return [xp.exp(leaf) * factor + shift if shift else xp.exp(leaf) * factor for leaf in tree]


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def test_results_are_shared_only_while_somebody_shares():
    a = np.arange(3.0)
    scaled([a], 1.0), scaled([a], 1.0)
    assert len(CALLS) == 2
    with sharing():
        first = scaled([a], 1.0)
        with sharing():
            assert scaled([a], 1.0) is first
        assert scaled([a], 1.0) is first
    scaled([a], 1.0)
    assert len(CALLS) == 4


@pytest.mark.parametrize("store", [None, Recent(2**20)])
def test_results_are_kept_by_arrays_and_by_the_bits_of_numbers(store):
    a, b = np.arange(3.0), np.arange(3.0)
    with sharing(store):
        for tree, factor in [
            ([a], 1.0),
            ([b], 1.0),
            ([a, b], 1.0),
            ([a], np.float64(1.0)),
            ([a], 0.0),
            ([a], -0.0),
            ([a], 1),
        ]:
            scaled(tree, factor)
        assert len(CALLS) == 7
        scaled([a], -0.0), scaled([b], 1.0), scaled([a], np.float64(1.0))
        assert len(CALLS) == 7
        assert np.signbit(scaled([a], -0.0)[0][0]) and not np.signbit(scaled([a], 0.0)[0][0])
        assert scaled([a], 1.0, shift=2.0)[0][0] == 3.0
        # (an array is kept: what comes after has another place)
        assert all(scaled([np.full(2, float(i))], 1.0)[0][0] == np.exp(i) for i in range(100))


def test_trace_shares_with_itself_only():
    def twice(a):
        return scaled([a], 2.0)[0] + scaled([a], 2.0)[0]

    with sharing():
        traced = jax.jit(
            lambda a: (
                twice(a),
                jax.vmap(lambda row: row + jnp.sum(scaled([a], 2.0)[0]))(a),
                twice(a),
            )
        )
        found = traced(np.arange(3.0))
        assert len(CALLS) == 2  # … and of the same array within a trace in that
        gradient = jax.grad(lambda a: jnp.sum(twice(a)))(jnp.arange(3.0))
    assert np.allclose(gradient, 4.0 * np.exp(np.arange(3.0)))
    assert np.allclose(found[0], found[2]) and np.allclose(
        found[1], np.arange(3.0) + 2.0 * np.sum(np.exp(np.arange(3.0)))
    )


def test_rows_of_many():
    """Rows that are run together share among themselves; a row by itself has no axis of them."""

    def read(a):
        return scaled([a], 3.0)[0] + xp.vmap(lambda one: one + xp.sum(scaled([a], 3.0)[0]))(a)

    rows = np.arange(12.0).reshape(4, 3)
    with sharing():
        found = batching.run(read, (rows,), room=64)
    assert len(CALLS) <= 3
    assert np.allclose(found, [read(row) for row in rows])


def test_curves_read_again_and_again_say_the_same():
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(1.1, 0.01, np.array([200.0, 2000.0])))
    rates = np.geomspace(1e-6, 0.4, 5)[:, None]
    together = curve.tpr(rates), curve.beta(rates)
    for i, rate in enumerate(rates[:, 0]):
        for name, several in zip(("tpr", "beta"), together, strict=True):
            one = curve.quantity(name, rate)
            assert np.array_equal(one.lower, several.lower[i]) and np.array_equal(
                one.upper, several.upper[i]
            )
            # (and so says a curve that nobody has read)
            fresh = (
                jaxgdp.tradeoff(jaxgdp.dpsgd(1.1, 0.01, np.array([200.0, 2000.0]))).quantity(
                    name, rate
                )
                if i == 2
                else one
            )
            assert np.array_equal(one.upper, fresh.upper)


def test_rates_asked_alike_are_one_rate():
    """TPR and FNR at one FPR are read together: they say of each other what they say of
    themselves.
    """
    found = jaxgdp.measure(
        jaxgdp.dpsgd(np.array([1.1, 0.9]), 0.01, 1000),
        ("beta", "delta", "tpr"),
        fpr=[1e-3, 1e-4],
        executor="eager",
    ).brackets
    tpr, beta = found["tpr"], found["beta"]
    assert np.allclose(tpr.lower, 1.0 - beta.upper, rtol=1e-12) and np.allclose(
        tpr.upper, 1.0 - beta.lower, rtol=1e-12
    )
    assert np.all(tpr.lower[0] > 2.0 * tpr.upper[1])
