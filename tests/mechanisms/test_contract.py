"""What authors of mechanisms define, by the names of this version and of the one before."""

import pytest

import jaxgdp
from jaxgdp.mechanisms import Mechanism
from jaxgdp.mechanisms.base import known_mechanisms


def test_known_mechanisms_are_the_public_ones():
    public = {name for name in jaxgdp.mechanisms.__all__ if name[0].isupper()}
    assert set(known_mechanisms()) == public - {"Mechanism", "Composition"}
    for name, kind in known_mechanisms().items():
        assert getattr(jaxgdp, name) is kind
        assert kind.examples and kind.relation != Mechanism.relation or name.startswith("From")


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

            def merge(self, count, into):
                return self, into

    messages = sorted(str(warning.message) for warning in warnings)
    assert messages == [
        "Old.achieved is deprecated: write Old.lower_bound_mechanisms",
        "Old.attacked is deprecated: write Old.lower_bound_member",
        "Old.closes is deprecated: write Old.tight",
        "Old.loose is deprecated: write Old.why_not_tight",
        "Old.merge is deprecated: write Old.collapse_gaussians",
        "Old.shown_precision is deprecated: write Old.gaussian_part_precision",
    ]
    assert Old.tight is False and Old.why_not_tight == "the upper side"
    assert Old().lower_bound_member() == "member"
    assert Old().lower_bound_mechanisms() == ("mechanism",)
    assert Old().gaussian_part_precision() == 0.25
    assert Old().collapse_gaussians(3.0, 256.0)[1] == 256.0


@pytest.mark.parametrize(
    "plain, sampled",
    [
        (jaxgdp.Gaussian(2.0), jaxgdp.SubsampledGaussian(2.0, 0.25)),
        (jaxgdp.Laplace(3.0), jaxgdp.SubsampledLaplace(3.0, 0.25)),
    ],
)
def test_subsampled_multiplies_probabilities(plain, sampled):
    assert plain.subsampled(0.25) == sampled and plain.subsampled(0.5).subsampled(0.5) == sampled
    assert jaxgdp.PureDP(1.0).subsampled(0.25) is None


def test_noise_scale_is_a_field_that_users_give():
    for kind in known_mechanisms().values():
        assert not kind.noise_scale or kind.noise_scale in kind.given_fields()
