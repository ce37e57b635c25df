"""Random brackets of every regime are proven, and none is refuted; 200 others every night."""

import pytest

pytest.importorskip("flint")
from attack.proofs import ADJACENCIES, KINDS, draw, regimes, verdict

from jaxgdp.proof import ARGUMENTS, provable

SEED = 20260101


def test_no_random_bracket_is_refuted():
    found = [verdict(SEED, index, seconds=0.4, steps=40.0).verdict for index in range(20)]
    assert "refuted" not in found
    assert found.count("proven") >= 10, found


def test_random_brackets_are_of_every_regime():
    """Every mechanism with every quantity and adjacency, once in as many brackets."""
    number = len(regimes())
    drawn = {draw(SEED, index)[1:3] for index in range(number)}
    assert set(KINDS) == set(provable())
    assert drawn == {(quantity, adjacency) for quantity in ARGUMENTS for adjacency in ADJACENCIES}
    assert len(set(regimes())) == number == len(KINDS) * len(ARGUMENTS) * len(ADJACENCIES)
