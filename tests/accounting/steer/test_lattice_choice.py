"""Lattices that fit the work that is left for a setting."""

import pytest

from jaxgdp.accounting.steer.lattices import LatticeChoice, Lattices

SPARSE = LatticeChoice("sparse", 512, 64, 2**18, 32, 4, 12, 64)
DENSE = LatticeChoice("heavy", 2**17, 0, 2**20, 0, 0, 0, 64)


@pytest.mark.parametrize("points", [1e6, 2e7, 1e9])
def test_dense_lattices_fit_the_points_that_are_left(points):
    least = LatticeChoice("heavy", 2**13, 0, 2**14, 0, 0, 0, 64)
    found = Lattices(DENSE, SPARSE).within(points)
    assert found.minus == SPARSE
    assert found.plus.pieces * found.plus.width <= max(0.5 * points, least.pieces * least.width)
    assert found.plus.vertices <= found.plus.size // 2
    assert Lattices(DENSE, DENSE).within(1e9) == (DENSE, DENSE)
    assert Lattices(DENSE, SPARSE).points == 64 * (2**20 + SPARSE.width)
