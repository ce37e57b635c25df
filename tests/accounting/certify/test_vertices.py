"""Rows of vertices: nothing is left out, and what fills says nothing."""

import numpy as np
import pytest

from jaxgdp.accounting.certify.vertices import Vertices, filled, in_rows


def _units(used):
    used = np.array(used)
    number, length = used.shape
    rates = -np.cumsum(np.ones((number, length)), axis=1)
    return Vertices(
        np.arange(number) * 100.0,
        np.full(number, 0.5),
        rates,
        0.5 * rates,
        rates[:, ::-1],
        used,
        used,
        np.full(number, 3.0),
        np.full(number, -np.inf),
    )


@pytest.mark.parametrize("length", [2, 3, 7, 50])
def test_rows_have_every_vertex_and_share_their_ends(length):
    used = np.zeros((3, 40), bool)
    used[0, 4:31] = used[1, 39:] = True
    used[0, 11] = False  # (one within that says nothing)
    half = _units(used)
    rows = in_rows(half, length)
    assert rows.used.shape[1] <= max(length, 272)
    for name in ("threshold", "slopes_end"):
        mine, all_of_them = getattr(rows, name)()[rows.used], getattr(half, name)()[half.used]
        assert set(mine) == set(all_of_them)
    by_threshold = dict(zip(half.threshold()[half.used], half.log_alpha[half.used], strict=True))
    for row in range(len(rows.used)):
        some = rows.used[row]
        for at, rate in zip(rows.threshold()[row][some], rows.log_alpha[row][some], strict=True):
            assert by_threshold[at] == rate
    # what a row ends with the next one of the unit begins with
    for row in range(len(rows.used) - 1):
        if rows.first[row + 1] < 100.0 and rows.used[row + 1].any():
            last = rows.threshold()[row][length - 1]
            assert rows.threshold()[row + 1][0] == last


def test_units_that_fill_say_nothing():
    half = _units(np.ones((2, 5), bool))
    found = filled(half, 5)
    assert np.all(found.used[:2]) and not np.any(found.used[2:]) and len(found.first) == 5
    assert not np.any(found.above_noise[2:]) and found.top.shape == (5,)
