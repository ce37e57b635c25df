"""Tables of random allocation, of batches in bins, of drawn batch sizes and of shuffled reports, of
extreme settings: no less than the exact profile from above and no more than it from below, in both
orders, against ball arithmetic (``sampled_tables_in_balls``)."""

import numpy as np
import pytest

pytest.importorskip("flint")
from reports_in_balls import shuffled_case
from sampled_tables_in_balls import DRAWN, drawn_batch_case

import jaxgdp
from jaxgdp.proof.balls import precision

# settings and points of each; the others have 100 and 5
_NIGHTLY = {
    "BallsInBins": (12, 2),
    "RandomAllocation of three steps": (3, 1),
    "RandomAllocation of two steps": (12, 2),
}


def _check(name, seed, number):
    rng = np.random.default_rng(seed)
    with precision(330):
        case = DRAWN[name](rng)
        if case is None:
            return 0
        for epsilon in case.points(rng, number):
            worst = case.worst(float(epsilon))
            place = f"{case.name}, seed {seed}, epsilon {epsilon!r}"
            assert all(short <= 1.0 for short in worst), f"{place}: {worst}"
    return 1


_BY_DAY = "DrawnBatchSize", "RandomAllocation of a mechanism", "ShuffledReports"


@pytest.mark.parametrize("name", _BY_DAY)
def test_tables_of_some_extreme_settings_lie_on_either_side_of_the_exact_profile(name):
    assert sum(_check(name, seed, 2) for seed in range(2, 7)) > 0


@pytest.mark.parametrize("epsilon, kind", [(1e-6, "any"), (3.2053639605473676e-4, "binary")])
def test_shuffled_reports_show_what_they_show_next_to_their_last_loss(epsilon, kind):
    """The logarithm of a rounded e^ε₀ may lie below ε₀."""
    with precision(330):
        case = shuffled_case(kind, epsilon, 16)
        for below in (1e-10, 4e-11, 1e-12):
            worst = case.worst(epsilon * (1.0 - below))
            assert all(short <= 1.0 for short in worst), worst


@pytest.mark.parametrize("number", [1, 19])
def test_size_of_a_batch_of_every_record_tells_of_one_more(number):
    """n records or n − 1: whoever sees the size knows."""
    with precision(330):
        case = drawn_batch_case(8.0, 1.0, number, known=False)
        for epsilon in (0.0, 1.0, 50.0):
            assert all(short <= 1.0 for short in case.worst(epsilon))
    step = jaxgdp.DrawnBatchSize(8.0, 1.0, number, False)
    assert jaxgdp.delta(step, epsilon=1.0).upper == 1.0


@pytest.mark.parametrize(
    "sigma, rate, number, known, epsilon",
    [(0.2679664506692872, 0.99976, 2, True, 51.77), (2952.5, 0.0991585, 48, False, 1.98043)],
)
def test_rare_sizes_and_batches_of_all_records_are_counted(sigma, rate, number, known, epsilon):
    """Sizes beyond the window are likelier with the record, and 1 − (1 − e^−ε) is no e^−ε."""
    with precision(330):
        case = drawn_batch_case(sigma, rate, number, known=known)
        assert all(short <= 1.0 for short in case.worst(epsilon))


def test_masses_at_infinity_that_cancel_are_not_taken_for_exact():
    """Nearly all of Q at infinity: what is left is known to 1e-9 of itself."""
    _check("RandomAllocation of a mechanism", 113, 5)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DRAWN)
def test_tables_of_many_extreme_settings_lie_on_either_side_of_the_exact_profile(name):
    settings, number = _NIGHTLY.get(name, (100, 5))
    assert sum(_check(name, seed, number) for seed in range(settings)) > settings // 2
