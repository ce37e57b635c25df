"""Tables of a pair that dominates show no less than the exact profile, in both orders, of extreme
settings: against ball arithmetic (``tables_in_balls``)."""

import numpy as np
import pytest

pytest.importorskip("flint")
from tables_in_balls import DRAWN, fixed_size_case

import jaxgdp
from jaxgdp.proof.balls import precision

_USUAL, _SLOW = (4, 400), {"Selected": (0, 12), "ThresholdedGaussian": (3, 100)}  # by day, at night


def _check(name, seed):
    rng = np.random.default_rng(seed)
    with precision(1200):
        case = DRAWN[name](rng)
        for epsilon in case.points(rng):
            for order, short in enumerate(case.short(epsilon)):
                assert short <= 1.0, f"{name}, seed {seed}: order {order}, epsilon {epsilon!r}"


@pytest.mark.parametrize("name", [name for name in DRAWN if name not in ("Selected",)])
def test_tables_of_extreme_settings_dominate_their_profiles(name):
    for seed in range(_SLOW.get(name, _USUAL)[0]):
        _check(name, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DRAWN)
def test_tables_of_many_extreme_settings_dominate_their_profiles(name):
    for seed in range(*_SLOW.get(name, _USUAL)):
        _check(name, seed)


@pytest.mark.parametrize("near", [0.5, 1e-3, 1e-6, 1e-12])
def test_batches_of_nearly_all_records_show_no_less_than_their_profile(near):
    """δ_{2/σ} is far above δ_{1/σ}, and its share 1 − q must not be a difference of doubles."""
    size = round(1.0 / near)
    with precision(400):
        case = fixed_size_case(7.5, size - 1, size, replaced=False)
        assert max(short for e in case.points(None) for short in case.short(e)) <= 1.0


@pytest.mark.parametrize(
    "sigma, threshold, cells",
    [(0.0017, 0.987, 2), (8.0, -26.0, 2), (2.11, -12.3, 3), (0.0038, 1.087, 1)],
)
def test_thresholds_far_from_the_counts_are_answered(sigma, threshold, cells):
    """Keys that are published nearly for certain, and counts with hardly any noise: rounding breaks
    the hull of all bounds, and that of fewer dominates as well."""
    table = jaxgdp.ThresholdedGaussian(sigma, threshold, cells)
    found = jaxgdp.measure(table, "advantage")["advantage"]
    assert found.upper >= found.lower > 0.9999
    assert jaxgdp.measure(table, "epsilon", delta=1e-5)["epsilon"].upper == np.inf
