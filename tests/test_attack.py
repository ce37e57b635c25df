"""Some random settings against exact answers; ``make attack`` runs a thousand others every day."""

import mpmath
import pytest
from attack import FAMILIES, setting_of
from attack.check import failures
from attack.polygon import Polygon
from mpmath import mpf

import jaxgdp
from jaxgdp import SubsampledGaussian, SubsampledLaplace
from jaxgdp.quantities import registry

SEED = 20260101
# how many settings of each family by day, and nightly
EACH = {
    "allocated": (14, 20),
    "bounded_range": (50, 50),
    "densities": (2, 4),
    "discrete": (24, 44),
    "large_steps": (7, 7),
    "mixtures": (2, 4),
    "noise": (7, 12),
}


@pytest.mark.slow
@pytest.mark.parametrize("night", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_brackets_hold(family, night):
    by_day, all_of_them = EACH[family]
    for index in range(by_day, all_of_them) if night else range(by_day):
        setting = setting_of(SEED, index, family)
        assert failures(setting) == [], f"setting {index}: {setting}"


def test_wrong_bracket_is_reported():
    setting = setting_of(SEED, 0, "discrete")
    # the same questions, with the curve of a mechanism that is perfectly private
    setting.curve = Polygon([(mpf(1) / 2, mpf(1) / 2), (mpf(1) / 2, mpf(1) / 2)]).symmetrised()
    setting.at["rtol"] = 1e-2
    assert any(line.startswith("advantage") for line in failures(setting))


def test_two_brackets_that_exclude_each_other_and_one_that_is_wider_than_asked_are_reported():
    from attack.against import judged

    epsilon = registry.named("epsilon")
    assert judged((1.0, 1.1), (1.2, 1.3), epsilon, 1e-2) == "apart"
    assert judged((1.0, 1.1), (1.05, 1.06), epsilon, 1e-2) == "wider"
    # as accurate as asked is enough, whatever was there before
    assert judged((1.0, 1.005), (1.0, 1.001), epsilon, 1e-2) is None
    assert judged((1.0, 1.1), (0.9, 1.2), epsilon, 1e-2) is None


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
    found = jaxgdp.measure(
        mechanism, tuple(asked), fpr=1e-5, delta=0.98, adjacency=adjacency
    ).brackets
    with mpmath.workdps(40):
        curve = exact_next_to_one(mechanism, adjacency)
        for name, argument in asked.items():
            exact = getattr(curve, name)(*([] if argument is None else [argument]))
            assert found[name].lower <= exact <= found[name].upper, name
            assert found[name].upper - found[name].lower <= 1e-3 * exact, name
            # a curve that was made for μ says the same
            kept = jaxgdp.tradeoff(mechanism, adjacency=adjacency).quantity(name, argument)
            assert kept.lower <= exact <= kept.upper, name


def alone(adjacency, *names):
    """FromPMFs([0.52338945, 0.47661055], [0, 1]), three times: a pair with one finite loss,
    -3·log(0.47661055).
    """
    mechanism = jaxgdp.compose([(jaxgdp.FromPMFs([0.52338945, 0.47661055], [0.0, 1.0]), 3)])
    return jaxgdp.measure(mechanism, names, adjacency=adjacency, **ALONE_AT).brackets


ALONE_AT = {"fpr": 0.05, "epsilon": 1.0, "fpr_floor": 1e-10}


def test_end_of_a_curve_without_losses_above_zero():
    kept = mpf("0.47661055") ** 3
    found = alone("add", "delta", "advantage")
    for name in ("delta", "advantage"):
        assert found[name].lower <= 1 - kept + mpf("1e-15") and found[name].upper >= 1 - kept - mpf(
            "1e-15"
        )
        assert found[name].upper - found[name].lower <= 1e-6


def test_single_finite_loss_is_bracketed_from_both_sides():
    """TPR = α/κ up to κ = 0.47661055³, 1 from there on; δ(ε) = 1 − e^ε·κ; μ is reached where β is
    the floor.
    """
    found = alone("remove", "delta", "tpr", "mu", "advantage")
    with mpmath.workdps(40):
        kept, floor = mpf(0.47661055) ** 3, mpf(1e-10)
        quantile = lambda rate: mpmath.sqrt(2) * mpmath.erfinv(2 * rate - 1)
        exact = {
            "delta": 1 - mpmath.e * kept,
            "tpr": mpf(0.05) / kept,
            "mu": -quantile(kept * (1 - floor)) - quantile(floor),
            "advantage": 1 - kept,
        }
        for name, value in exact.items():
            room = value * mpf("1e-13")  # 0.52338945 + 0.47661055 is one but for a last digit
            assert found[name].lower <= value + room and found[name].upper >= value - room, name
            assert found[name].upper - found[name].lower <= 1e-3 * value, name
