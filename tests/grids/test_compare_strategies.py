"""Strategies at one goal: errors by definition, noise that meets the goal."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.grids.compare_strategies import prefix_error, root_coefficients, tree_strategy


def test_errors_are_those_of_their_definition():
    n = 12
    prefix = np.tril(np.ones((n, n)))
    np.testing.assert_allclose(prefix_error(np.eye(n)), np.sqrt((n + 1) / 2))
    c = root_coefficients(n)
    full = sum(np.diag(np.full(n - k, c[k]), -k) for k in range(n))
    np.testing.assert_allclose(full @ full, prefix, atol=1e-12)
    np.testing.assert_allclose(prefix_error(full), np.sqrt((full**2).sum() / n))


def test_tree_has_every_step_in_a_node_of_every_level():
    c = tree_strategy(8)
    np.testing.assert_allclose((c**2).sum(axis=0), 4.0)
    np.testing.assert_allclose(np.triu(c, 1), 0.0)
    # (the error of the best decoder of the nodes: that of the pseudo-inverse)
    levels = np.concatenate([np.kron(np.eye(8 >> k), np.ones((1, 1 << k))) for k in range(4)])
    decoder = np.tril(np.ones((8, 8))) @ np.linalg.pinv(levels)
    np.testing.assert_allclose(prefix_error(c), np.sqrt((decoder**2).sum() / 8))


def test_every_strategy_meets_the_goal_with_the_least_noise():
    found = jaxgdp.compare_strategies(jaxgdp.targets.Mu(1.0), 32, 2, bands=[1, 4])
    assert [row.strategy for row in found.rows] == [
        "DP-SGD",
        "DP-SGD",
        "tree",
        "4 bands",
        "4 bands",
    ]
    for row in found.rows:
        assert 0.99 <= row.lower <= row.upper <= 1.0
    plain = found.rows[0]
    np.testing.assert_allclose(plain.noise_multiplier, np.sqrt(2.0), rtol=2e-3)
    assert found.best().error < plain.error and "4 bands" in str(found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (dict(num_steps=1), "num_steps must be from 2 to 4096"),
        (dict(num_epochs=3), "num_epochs must divide"),
        (dict(bands=[40]), "bands must be from 1"),
        (dict(target=jaxgdp.targets.Mu([1.0, 2.0])), "target must be of one number"),
    ],
)
def test_bad_input_is_refused_by_name(fields, words):
    usual = {"target": jaxgdp.targets.Mu(1.0), "num_steps": 32}
    with pytest.raises(ValueError, match=words):
        jaxgdp.compare_strategies(**(usual | fields))
