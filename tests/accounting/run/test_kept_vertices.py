"""Vertices that stay on an accelerator until numbers are read off them give the same numbers."""

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.certify.vertices import Vertices, lengthened
from jaxgdp.accounting.run import devices, passes


@pytest.fixture
def kept(monkeypatch):
    """As beside an accelerator; the number of chunks whose vertices stayed where they were."""
    seen = []
    whole = passes._whole

    def counted(*args, **named):
        seen.append(args)
        return whole(*args, **named)

    monkeypatch.setattr(devices, "accelerated", lambda: True)
    monkeypatch.setattr(passes, "_whole", counted)
    return seen


SWEEPS = {
    "many small steps": (
        jaxgdp.dpsgd(np.geomspace(0.9, 4.0, 6), 0.01, 2000),
        dict(quantities=("mu", "regret")),
    ),
    "one order": (
        jaxgdp.dpsgd(np.geomspace(0.9, 4.0, 6), 0.02, 900),
        dict(quantities=("tpr", "delta"), fpr=0.05, epsilon=0.5, adjacency="remove"),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param("many small steps", marks=pytest.mark.nightly), "one order"]
)
def test_numbers_read_where_they_were_composed_are_the_same(name, request):
    sweep, asked = SWEEPS[name]
    found = jaxgdp.measure(sweep, executor="compiled", rtol=1e-3, **asked)
    seen = request.getfixturevalue("kept")
    there = jaxgdp.measure(sweep, executor="compiled", rtol=1e-3, **asked)
    assert seen
    for quantity in asked["quantities"]:
        one, other = found.brackets[quantity], there.brackets[quantity]
        # (sums over rows of other lengths have other orders)
        assert np.allclose(one.lower, other.lower, rtol=1e-9, atol=0.0)
        assert np.allclose(one.upper, other.upper, rtol=1e-9, atol=0.0)
        assert np.all(one.lower <= other.upper) and np.all(other.lower <= one.upper)


@pytest.mark.nightly
def test_kept_curves_come_back_to_the_host(kept, monkeypatch):
    monkeypatch.setenv("JAXGDP_EXECUTOR", "compiled")
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(1.1, 0.01, 2000))
    assert kept
    alone = jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 2000), "mu", executor="eager").brackets["mu"]
    found = curve.mu()
    assert found.lower <= alone.upper and alone.lower <= found.upper
    assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(found))


def test_vertices_added_to_a_row_are_not_used():
    rows = np.linspace(-3.0, -1.0, 6).reshape(2, 3)
    marks = np.array([[True, True, False], [False, True, True]])
    half = Vertices(np.zeros(2), np.ones(2), rows, rows, rows, marks, marks)
    longer = lengthened(half, 5)
    assert longer.used.shape == longer.log_beta.shape == (2, 5)
    assert np.array_equal(longer.used[:, :3], marks) and not np.any(longer.used[:, 3:])
    assert np.array_equal(longer.log_alpha[:, :3], rows)
    assert lengthened(half, 3) is half


def test_parts_of_a_chunk_fill_its_rows():
    parts = [{"a": np.arange(3.0)}, {"a": np.arange(3.0) + 10.0}]
    joined = lambda some, number: np.asarray(devices.joined(some, number)["a"])
    assert np.array_equal(joined(parts, 6), [0, 1, 2, 10, 11, 12])
    assert np.array_equal(joined(parts, 5), [0, 1, 2, 10, 11])
    assert np.array_equal(joined(parts[:1], 8), [0, 1, 2, 0, 1, 2, 0, 1])
    assert devices.joined(parts[:1], 3) is parts[0]
