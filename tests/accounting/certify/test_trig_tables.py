"""Sines of lattices against ball arithmetic: entries of the tables, however far a point is out."""

import numpy as np
import pytest

pytest.importorskip("flint")
import flint

from jaxgdp.accounting.certify import trig_tables
from jaxgdp.numerics.errors import UNIT
from jaxgdp.numerics.step_transform import _turns, chord
from jaxgdp.proof.balls import exact, precision

RANDOM = np.random.default_rng(12)
TABLE = 4.0  # units of |e^{-iθ} − 1|, of either part
TURNS = 4.0  # units of the same, of both parts together


def _angles(turn, size):
    """sin and cos of half of θ = 2π·turn/size."""
    half = flint.fmpq(int(turn), size)
    return flint.arb.sin_pi_fmpq(half), flint.arb.cos_pi_fmpq(half)


def _check_tables(sizes, number):
    for size in sizes:
        for base in (16, 64):
            octaves = int(np.log2(size // (2 * base)))
            count = max(min(size // 8, 256), 2)
            sine, versine = map(trig_tables.flat, trig_tables.at_points(size, count, base, octaves))
            distance = trig_tables.points(base, octaves)
            assert sine.shape == versine.shape == (len(distance), count)
            for _ in range(number):
                j, k = RANDOM.integers(len(distance)), RANDOM.integers(1, count)
                turn = int(distance[j]) * int(k) % size
                if turn == 0:
                    assert sine[j, k] == versine[j, k] == 0.0
                    continue
                s, c = _angles(turn, size)
                room = 2 * abs(s) * UNIT * TABLE
                assert abs(exact(float(sine[j, k])) - 2 * s * c) < room, (size, base, j, k)
                assert abs(exact(float(versine[j, k])) - 2 * s * s) < room, (size, base, j, k)


def _check_turns(doublings, number):
    for size in (2**k for k in doublings):
        found, lengths = _turns(size)
        some = np.arange(size // 2 + 1)
        some = some if len(some) <= number else np.append(RANDOM.choice(some, number), some[-1])
        for k in some.tolist():
            s, c = _angles(k, size)
            re, im = exact(found[k].real) + 2 * s * s, exact(found[k].imag) + 2 * s * c
            assert (re * re + im * im).sqrt() <= 2 * s * UNIT * TURNS, (size, k)
            assert abs(exact(float(lengths[k])) - 2 * s) <= 2 * s * UNIT * TURNS, (size, k)
        assert np.array_equal(lengths, chord(size))


def test_sines_at_points_lie_next_to_balls():
    with precision(200):
        _check_tables([2**8, 2**13, 2**20], 250)


def test_turns_lie_next_to_balls():
    with precision(200):
        _check_turns((3, 6, 9, 20), 600)


@pytest.mark.nightly
def test_sines_of_all_lengths_lie_next_to_balls():
    with precision(200):
        _check_tables([2**k for k in range(7, 31)], 2000)
        _check_turns(range(3, 21), 20_000)


def test_sines_at_nodes_lie_next_to_balls():
    """Of places between points, as sums over a block take them."""
    with precision(200):
        for size, count in ((2**12, 128), (2**20, 512)):
            node = np.sort(RANDOM.uniform(0.0, size / count / 4.0, 8))
            cos, sin = trig_tables.at_nodes(size, count, node)
            for j in range(len(node)):
                for k in RANDOM.integers(0, count, 40).tolist():
                    angle = exact(float(node[j])) * 2 * k / size
                    assert abs(exact(float(cos[j, k])) - (angle * flint.arb.pi()).cos()) < 8 * UNIT
                    assert abs(exact(float(sin[j, k])) - (angle * flint.arb.pi()).sin()) < 8 * UNIT
