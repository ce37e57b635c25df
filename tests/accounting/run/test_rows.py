"""Every class of mechanisms can be run for many rows at once by NumPy, and answers as it does row
after row.
"""

import numpy as np
import pytest
import scipy
from by_day import some
from mechanisms_of_every_class import SETTINGS, composition

import jaxgdp
from jaxgdp.accounting.run import eager
from jaxgdp.numerics import batching
from jaxgdp.quantities import registry

_RUN = batching.run
BY_DUCC = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18)


def _strictly(stage, columns, room, alike=()):
    """As many rows together as there is room for; what cannot be done together is not done one by
    one.
    """
    strict = batching.mapped if room > 1 else _RUN
    return strict(stage, columns, room, alike)


def _one_by_one(stage, columns, room, alike=()):
    return _RUN(stage, columns, 1, alike)


def _mu(mechanism, run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("JAXGDP_EXECUTOR", "eager")
        patch.setattr(eager.batching, "run", run)
        return jaxgdp.measure(mechanism, "mu", nested=False).brackets["mu"]


@pytest.mark.parametrize("name", some(3, sorted(SETTINGS), 1))
def test_rows_together_answer_as_one_by_one(name, monkeypatch):
    one, many = (_mu(composition(name), run, monkeypatch) for run in (_one_by_one, _strictly))
    # (SciPy 1.18 adds up rows together in another order, and a lower side is flat where it is
    # highest)
    close = 1e-5 if BY_DUCC else 1e-6
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=close)


def test_view_of_one_threshold_too(monkeypatch):
    def answer(run):
        with monkeypatch.context() as patch:
            patch.setenv("JAXGDP_EXECUTOR", "eager")
            patch.setattr(eager.batching, "run", run)
            return jaxgdp.measure(
                composition("Laplace"), "delta", epsilon=0.5, nested=False
            ).brackets["delta"]

    for a, b in zip(answer(_one_by_one), answer(_strictly), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_every_quantity_is_read_off_rows_together_as_one_by_one(monkeypatch):
    mechanism = jaxgdp.dpsgd([0.8, 3.0, 1.0], [0.02, 0.4, 1.0], [500, 1000, 10])

    def answer(run):
        with monkeypatch.context() as patch:
            patch.setenv("JAXGDP_EXECUTOR", "eager")
            patch.setattr(eager.batching, "run", run)
            return jaxgdp.measure(mechanism, tuple(registry.REGISTRY)).brackets

    one, many = answer(_one_by_one), answer(_strictly)
    for name in registry.REGISTRY:
        for a, b in zip(one[name], many[name], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
