"""Some random settings against exact answers; ``make attack`` runs a thousand others every day."""

import mpmath
import pytest
from attack import FAMILIES, setting_of
from attack.check import failures
from attack.polygon import Polygon
from mpmath import mpf

import jaxgdp
from jaxgdp import SubsampledGaussian, SubsampledLaplace

SEED, EACH = 20260101, {"bounded_range": 15, "densities": 4, "discrete": 20, "noise": 10}


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_brackets_hold(family):
    for index in range(EACH[family]):
        setting = setting_of(SEED, index, family)
        assert failures(setting) == [], f"setting {index}: {setting}"


def test_a_wrong_bracket_is_reported():
    setting = setting_of(SEED, 0, "discrete")
    # the same questions, with the curve of a mechanism that is perfectly private
    setting.curve = Polygon([(mpf(1) / 2, mpf(1) / 2), (mpf(1) / 2, mpf(1) / 2)]).symmetrised()
    setting.at["rtol"] = 1e-2
    assert any(line.startswith("advantage") for line in failures(setting))


# p next to one: ratios 1 + (e^ℓ − 1)/p cancel where e^ℓ is about 1 − p
NEXT_TO_ONE = [
    (SubsampledGaussian(0.15, 1 - 1e-13), {"tpr": 1e-5, "advantage": None, "epsilon": 0.98}),
    (SubsampledLaplace(0.03, 1 - 1e-15), {"advantage": None}),
    (SubsampledGaussian(0.2, 1 - 1e-12), {"advantage": None}),
]


def exact_next_to_one(mechanism, adjacency):
    from attack.noise import _sampled, gaussian_tails, laplace_tails
    from attack.setting import of_adjacency
    from attack.smooth import Smooth

    p = mpf(float(mechanism.sampling_prob))
    if isinstance(mechanism, SubsampledGaussian):
        sigma = mpf(float(mechanism.noise_multiplier))
        parts = _sampled(p, gaussian_tails(sigma), 1 / (2 * sigma**2) + 9 / sigma)
    else:
        scale = mpf(float(mechanism.scale))
        parts = _sampled(p, laplace_tails(scale), 1 / scale)
    return of_adjacency(Smooth(*parts), adjacency)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize("index", range(len(NEXT_TO_ONE)))
def test_sampling_next_to_one(index, adjacency):
    mechanism, asked = NEXT_TO_ONE[index]
    found = jaxgdp.measure(mechanism, tuple(asked), fpr=1e-5, delta=0.98, adjacency=adjacency).brackets
    with mpmath.workdps(40):
        curve = exact_next_to_one(mechanism, adjacency)
        for name, argument in asked.items():
            exact = getattr(curve, name)(*([] if argument is None else [argument]))
            assert found[name].lower <= exact <= found[name].upper, name
            assert found[name].upper - found[name].lower <= 1e-3 * exact, name


# what is known of a pair with one finite loss: FromPMFs([0.52338945, 0.47661055], [0, 1]), three times
def test_the_end_of_a_curve_without_losses_above_zero():
    mechanism = jaxgdp.compose([(jaxgdp.FromPMFs([0.52338945, 0.47661055], [0.0, 1.0]), 3)])
    kept = mpf("0.47661055") ** 3
    found = jaxgdp.measure(mechanism, ("delta", "advantage", "tpr"), adjacency="add", fpr=1e-9, epsilon=1.0).brackets
    for name in ("delta", "advantage"):
        assert found[name].lower <= 1 - kept + mpf("1e-15") and found[name].upper >= 1 - kept - mpf("1e-15")
        assert found[name].upper - found[name].lower <= 1e-6
