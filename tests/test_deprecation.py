"""Names of the version before: they are what they were, and warn with the new ones."""

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("jaxgdp.bridge", "Verdict", "GdpVerdict"),
        ("jaxgdp.grids.landscape", "Verdict", "RuleVerdict"),
        ("jaxgdp.interop.registry", "Claim", "StatedGuarantee"),
    ],
)
def test_old_names_of_classes(module, old, new):
    home = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{old} is deprecated: write jaxgdp\..*\.{new}$"):
        assert getattr(home, old) is getattr(home, new)
    with pytest.raises(AttributeError):
        getattr(home, "NobodyKnows")  # noqa: B009
