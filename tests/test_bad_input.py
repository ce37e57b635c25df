"""Bad input raises ValueError that names the argument, before anything is compiled."""

import numpy as np
import pytest

import jaxgdp

BAD = [
    (lambda: jaxgdp.dpsgd(0.0, 0.1, 10), "noise_multiplier"),
    (lambda: jaxgdp.dpsgd(-1.0, 0.1, 10), "noise_multiplier"),
    (lambda: jaxgdp.dpsgd(np.nan, 0.1, 10), "noise_multiplier"),
    (lambda: jaxgdp.dpsgd([1.0, np.inf], 0.1, 10), "noise_multiplier"),
    (lambda: jaxgdp.dpsgd("one", 0.1, 10), "noise_multiplier"),
    (lambda: jaxgdp.dpsgd(1.0, 0.0, 10), "sampling_prob"),
    (lambda: jaxgdp.dpsgd(1.0, 1.5, 10), "sampling_prob"),
    (lambda: jaxgdp.dpsgd(1.0, 0.1, 0), "num_steps"),
    (lambda: jaxgdp.dpsgd(1.0, 0.1, 2.5), "num_steps"),
    (lambda: jaxgdp.dpsgd([1.0, 2.0], [0.1, 0.2, 0.3], 10), "shapes"),
    (lambda: jaxgdp.compose([]), "at least one"),
    (lambda: jaxgdp.compose([(jaxgdp.Gaussian(1.0), 0)]), "count"),
    (lambda: jaxgdp.compose(["gaussian"]), "mechanism 0"),
    (lambda: jaxgdp.tradeoff(1.0), "mechanism"),
    (lambda: jaxgdp.tradeoff(jaxgdp.Gaussian(1.0), rtol=0.0), "rtol"),
    (lambda: jaxgdp.tradeoff(jaxgdp.Gaussian(1.0), adjacency="swap"), "adjacency"),
    (lambda: jaxgdp.tradeoff(jaxgdp.Gaussian(1.0), fpr_floor=0.0), "fpr_floor"),
    (lambda: jaxgdp.sweep([1.0], [0.1], [10], quantities=("nonsense",)), "quantity"),
    (lambda: jaxgdp.sweep([[1.0]], [0.1], [10]), "noise_multiplier"),
    (lambda: jaxgdp.sweep([1.0], [], [10]), "sampling_prob"),
    (lambda: jaxgdp.gdp.beta(fpr=1.5, mu=1.0), "fpr"),
    (lambda: jaxgdp.gdp.epsilon(delta=0.0, mu=1.0), "delta"),
    (lambda: jaxgdp.gdp.mu_from_pure_dp(epsilon=-1.0), "epsilon"),
]


@pytest.mark.parametrize(("call", "named"), BAD)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_bad_queries():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian([1.0, 2.0]))
    for call, named in (
        (lambda: curve.epsilon(delta=0.0), "delta"),
        (lambda: curve.epsilon(delta=[0.1, 2.0]), "delta"),
        (lambda: curve.delta(epsilon=-1.0), "epsilon"),
        (lambda: curve.tpr(fpr=1.5), "fpr"),
        (lambda: curve.beta(fpr=np.nan), "fpr"),
        (lambda: curve.mu(fpr_floor=0.7), "fpr_floor"),
        (lambda: curve.bayes_risk(prior=-0.1), "prior"),
        (lambda: curve.tpr(fpr=[0.1, 0.2, 0.3]), "shapes"),
    ):
        with pytest.raises(ValueError, match=named):
            call()
