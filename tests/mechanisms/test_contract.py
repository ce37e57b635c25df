"""What authors of mechanisms define, by the names of this version and of the one before."""

import pytest

from jaxgdp.mechanisms import Mechanism


def test_contract_by_names_of_the_version_before():
    with pytest.warns(DeprecationWarning) as warnings:

        class Old(Mechanism):
            closes = False
            loose = "the upper side"

            def attacked(self):
                return "member"

            def achieved(self):
                return ("mechanism",)

            def shown_precision(self):
                return 0.25

    messages = sorted(str(warning.message) for warning in warnings)
    assert messages == [
        "Old.achieved is deprecated: write Old.lower_bound_mechanisms",
        "Old.attacked is deprecated: write Old.lower_bound_member",
        "Old.closes is deprecated: write Old.tight",
        "Old.loose is deprecated: write Old.why_not_tight",
        "Old.shown_precision is deprecated: write Old.gaussian_part_precision",
    ]
    assert Old.tight is False and Old.why_not_tight == "the upper side"
    assert Old().lower_bound_member() == "member"
    assert Old().lower_bound_mechanisms() == ("mechanism",)
    assert Old().gaussian_part_precision() == 0.25
