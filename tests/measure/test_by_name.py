"""``jaxgdp.epsilon`` and its kin: a function for every registered quantity."""

import dataclasses
import inspect

import numpy as np
import pytest

import jaxgdp
from jaxgdp.quantities import registry

RUN = jaxgdp.Laplace(3.0)


@pytest.mark.parametrize("name", registry.REGISTRY)
def test_functions_answer_as_measure_does(name):
    quantity, function = registry.named(name), getattr(jaxgdp, name)
    at = {} if quantity.own_argument is None else {quantity.own_argument: quantity.default}
    found = function(RUN, rtol=1e-2, executor="eager", **at)
    assert isinstance(found, jaxgdp.Bracket)
    assert found == jaxgdp.measure(RUN, name, rtol=1e-2, executor="eager").brackets[name]
    # what help, completion and type checkers are told
    parameters = inspect.signature(function).parameters
    assert list(parameters)[0] == "mechanism" and "adjacency" in parameters
    assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[1:])
    assert quantity.safe_side in function.__doc__ and quantity.description in function.__doc__
    assert (function.__name__, function.__module__) == (name, "jaxgdp")
    assert name in dir(jaxgdp) and getattr(jaxgdp, name) is function


def test_functions_take_lists():
    found = jaxgdp.epsilon([RUN, jaxgdp.Gaussian(2.0)], delta=1e-6, executor="eager")
    assert found.upper[0] == jaxgdp.epsilon(RUN, delta=1e-6, executor="eager").upper


def test_functions_take_keywords_after_the_mechanism():
    with pytest.raises(TypeError, match=r"write epsilon\(mechanism, delta=…\)"):
        jaxgdp.epsilon(RUN, 1e-5)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'deltas': write delta=…"):
        jaxgdp.epsilon(RUN, deltas=1e-5)


def test_functions_follow_the_registry():
    with pytest.raises(AttributeError, match="twice_the_advantage"):
        jaxgdp.twice_the_advantage  # noqa: B018
    advantage = registry.named("advantage")
    mine = dataclasses.replace(advantage, name="twice_the_advantage", extent=(0.0, 2.0))
    registry.register(mine)
    try:
        assert np.all(jaxgdp.twice_the_advantage(RUN).upper == jaxgdp.advantage(RUN).upper)
        assert "twice_the_advantage" in dir(jaxgdp)
    finally:
        registry.unregister("twice_the_advantage")
    assert not hasattr(jaxgdp, "twice_the_advantage")
