"""The test suite that dp_accounting keeps for accountants, run as it is on ours.

It is taken from the installed package, or, where a distribution leaves it out, from the file that
the environment variable JAXGDP_PRIVACY_ACCOUNTANT_TEST names
(python/dp_accounting/dp_accounting/privacy_accountant_test.py of google/differential-privacy)."""

import importlib.util
import os
import warnings

import pytest

dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")


def _suite():
    path = os.environ.get("JAXGDP_PRIVACY_ACCOUNTANT_TEST")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path:
            spec = importlib.util.spec_from_file_location("privacy_accountant_test", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        return pytest.importorskip(
            "dp_accounting.privacy_accountant_test",
            reason="dp_accounting's test files are not installed",
        )


_BASE = _suite().PrivacyAccountantTest


class TestPrivacyAccountant(_BASE):
    def _make_test_accountants(self):
        from jaxgdp.interop.dp_accounting import Accountant

        return [Accountant(relation) for relation in dpa.NeighboringRelation]


def test_suite_is_there():
    names = [name for name in dir(TestPrivacyAccountant) if name.startswith("test_")]
    assert len(names) >= 13


del _BASE
