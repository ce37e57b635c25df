"""Group privacy of any mechanism from above."""

import pytest

import jaxgdp
from jaxgdp import bridge


def test_profile_of_a_group_is_above_what_is_known():
    for mechanism, group in (
        (jaxgdp.Gaussian(2.0), jaxgdp.Gaussian(2.0 / 3.0)),
        (jaxgdp.Laplace(4.0), jaxgdp.Laplace(4.0 / 3.0)),
    ):
        found = bridge.group_profile(mechanism, 3)
        for epsilon in (0.1, 0.5, 1.0):
            exact = jaxgdp.delta(group, epsilon=epsilon)
            upper = jaxgdp.delta(found, epsilon=epsilon).upper
            # (three steps in a row lose nothing for Gaussian noise; the grid costs a little)
            assert exact.lower <= upper <= 1.02 * exact.upper + 1e-5


def test_group_profile_takes_one_mechanism():
    with pytest.raises(ValueError, match="unbatched"):
        bridge.group_profile(jaxgdp.Gaussian([1.0, 2.0]), 2)


def test_group_that_nothing_is_bounded_for_is_refused_by_name():
    assert jaxgdp.delta(bridge.group_profile(jaxgdp.PureDP(20.0), 2), epsilon=39.0).upper < 1.0
    for mechanism, records in ((jaxgdp.PureDP(20.0), 16), (jaxgdp.ApproximateDP(1e-4, 0.3), 4)):
        with pytest.raises(ValueError, match=f"records_per_user .* got {records}"):
            bridge.group_profile(mechanism, records)
