"""DP-SGD's arguments: those that look swapped, and rates that are 1 but for rounding."""

import warnings

import pytest

import jaxgdp


@pytest.mark.parametrize("call", [(0.01, 1.0, 1000), ([1.0, 0.02], [0.01, 0.5], 10)])
def test_swapped_noise_and_rate_are_named(call):
    with pytest.warns(UserWarning, match=r"noise_multiplier 0\.0\d and sampling_prob .* swapped"):
        jaxgdp.dpsgd(*call)


def test_usual_settings_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in ((1.0, 0.01, 1000), (0.1, 0.5, 10), (0.01, 0.1, 10), (1e-4, 1.0, 1), (5, 1, 9)):
            jaxgdp.dpsgd(*call)


def test_rate_above_1_by_rounding_says_so():
    with pytest.raises(ValueError, match=r"got 1\.0000000000000002, 1 but for the rounding"):
        jaxgdp.dpsgd(1.0, 1.0 + 2.0**-52, 3)
