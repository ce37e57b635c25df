"""Numbers of batches of any mechanisms, without their curves."""

import numpy as np
import pytest

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
    assert found.status.shape == (2, 3) and np.all(found.status == 0) and found.at == {"epsilon": 1e-6}
    curves = jaxgdp.tradeoff(batch())
    others = {"mu": curves.mu(), "epsilon": curves.epsilon(1e-6), "advantage": curves.advantage()}
    for name, bracket in found.brackets.items():
        assert bracket.upper.shape == (2, 3)
        assert np.all(bracket.lower <= others[name].upper) and np.all(others[name].lower <= bracket.upper), name
    one = jaxgdp.compose([(jaxgdp.Gaussian(8.0), 2), (jaxgdp.Laplace(9.0), 5)])
    alone = jaxgdp.measure(one, quantities="mu").brackets["mu"]
    assert np.allclose(alone, [side[1, 1] for side in found.brackets["mu"]], rtol=1e-6)


def test_gaussian_is_exact_enough():
    sigma = np.array([0.7, 3.0])
    found = jaxgdp.measure(jaxgdp.Gaussian(sigma), quantities=("mu", "delta", "tpr"), epsilon=0.5, fpr=1e-6)
    assert np.all(found.brackets["mu"].contains(1.0 / sigma))
    assert np.all(found.brackets["delta"].contains(jaxgdp.gdp.delta(0.5, 1.0 / sigma)))
    assert np.all(found.brackets["tpr"].contains(1.0 - jaxgdp.gdp.beta(1e-6, 1.0 / sigma)))


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"quantities": ("mu", "privacy")}, "quantity"),
        ({"rtol": 0.0}, "rtol"),
        ({"fpr_floor": 0.7}, "fpr_floor"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"fpr": np.nan}, "fpr"),
        ({"d": 0.0}, "d must"),
        ({"adjacency": "sideways"}, "adjacency"),
    ],
)
def test_bad_input_is_named(bad, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.measure(jaxgdp.Gaussian(1.0), **bad)
