"""Random brackets of every regime are proven, and none is refuted; 200 others every night."""

import pytest

pytest.importorskip("flint")
from attack.proofs import verdict

SEED = 20260101


def test_no_random_bracket_is_refuted():
    found = [verdict(SEED, index, seconds=0.4, steps=40.0).verdict for index in range(20)]
    assert "refuted" not in found
    assert found.count("proven") >= 10, found
