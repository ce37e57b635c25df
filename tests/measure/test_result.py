"""An answer is read by the names of quantities, and its single numbers are plain floats."""

import copy
import pickle

import jax
import numpy as np
import pytest

import jaxgdp

ASKED = {"delta": 1e-5, "executor": "eager"}


@pytest.fixture(scope="module")
def found():
    return jaxgdp.measure(jaxgdp.Laplace(2.0), ("mu", "epsilon"), **ASKED)


def test_names_lead_to_brackets(found):
    assert found["epsilon"] is found.epsilon is found.brackets["epsilon"]
    assert dict(found) == found.brackets and list(found) == ["mu", "epsilon"] and len(found) == 2
    assert "mu" in found and "tpr" not in found
    assert {"mu", "epsilon", "worst", "status"} <= set(dir(found))


def test_single_numbers_are_plain_floats(found):
    low, high = found.epsilon
    assert type(low) is type(high) is float
    assert repr(found.epsilon) == f"Bracket(lower={low!r}, upper={high!r})"
    assert type(found.epsilon.width) is float and found.epsilon.contains(0.5 * (low + high)) is True
    assert np.log(found.mu.upper) < found.mu.upper * np.ones(3)[0]
    curve = jaxgdp.tradeoff(jaxgdp.Laplace(2.0))
    assert type(curve.epsilon(1e-5).upper) is float
    answer = jaxgdp.calibrate(jaxgdp.targets.Mu(0.5), num_steps=4)
    assert type(answer.achieved.upper) is type(answer.rejected_achieved.lower) is float
    assert jaxgdp.measure(jaxgdp.Laplace([2.0]), "mu").mu.upper.shape == (1,)


def test_wrong_names_are_answered_with_those_asked_for(found):
    with pytest.raises(KeyError, match=r"delta was not asked for, only mu, epsilon: write measure"):
        found["delta"]
    with pytest.raises(AttributeError, match=r"tpr was not asked for, only mu, epsilon"):
        found.tpr  # noqa: B018
    with pytest.raises(KeyError, match="did you mean 'epsilon'"):
        found["epsilom"]
    with pytest.raises(AttributeError, match="no attribute 'bracket'.* did you mean 'brackets'"):
        found.bracket  # noqa: B018


def test_answers_are_trees_and_can_be_copied(found):
    doubled = jax.tree.map(lambda x: 2 * x, found)
    assert doubled.mu.upper == 2 * found.mu.upper and isinstance(doubled, jaxgdp.Measured)
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert again.brackets == found.brackets and again.rtol == found.rtol
