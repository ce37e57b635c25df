"""Calibration of the noise of random allocation."""

import pytest
from scipy.special import ndtri

import jaxgdp
from jaxgdp import targets
from jaxgdp.calibration import STATUS


def test_noise_of_random_allocation_meets_the_target_and_a_little_less_does_not():
    found = jaxgdp.calibrate(
        targets.Advantage(0.1), num_steps=20, num_epochs=2, sampler="random_allocation", rtol=0.02
    )
    epochs = lambda sigma: jaxgdp.compose([(jaxgdp.RandomAllocation(sigma, 20), 2)])
    met = jaxgdp.measure(epochs(float(found.value)), "advantage").brackets["advantage"]
    missed = jaxgdp.measure(epochs(float(found.rejected)), "advantage").brackets["advantage"]
    assert met.upper <= 0.1 < missed.upper
    assert 1.0 < found.value / found.rejected <= 1.0201


@pytest.mark.parametrize("sampler", ["deterministic", "shuffled"])
def test_samplers_with_the_upper_side_of_a_fixed_order_need_the_noise_of_gaussian_mechanisms(
    sampler,
):
    # E epochs in a fixed order are √E/σ-GDP, and the advantage of μ-GDP is 2Φ(μ/2) − 1
    found = jaxgdp.calibrate(
        targets.Advantage(0.5), num_steps=20, num_epochs=4, sampler=sampler, rtol=1e-2
    )
    exact = 1.0 / float(ndtri(0.75))
    assert exact <= found.value <= exact * 1.01
    assert ("wider" in STATUS[int(found.status)]) == (sampler == "shuffled")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"sampler": "balls"}, "sampler"),
        ({"sampler": "random_allocation", "sampling_prob": 0.1}, "sampling_prob"),
        ({"sampler": "random_allocation", "solve_for": "num_steps"}, "solve_for"),
        ({"sampler": "random_allocation", "adjacency": "replace_one"}, "adjacency"),
        ({"sampler": "random_allocation", "num_epochs": 1.5}, "num_epochs"),
        ({"sampler": "fixed_size"}, "sampler must be one of"),
        ({"sampler": "shuffled", "mechanism": jaxgdp.Gaussian(1.0)}, "mechanism"),
        ({"num_epochs": 3}, "num_epochs"),
    ],
)
def test_bad_input_is_refused_by_name(asked, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.calibrate(targets.Advantage(0.1), num_steps=20, **({"sampler": "poisson"} | asked))
