"""Test suites that dp_accounting and jax_privacy keep for accountants, run as they are on ours.

Wheels leave these files out: environment variables name them.

- JAXGDP_PRIVACY_ACCOUNTANT_TEST and JAXGDP_PLD_ACCOUNTANT_TEST: privacy_accountant_test.py and
  pld/pld_privacy_accountant_test.py of google/differential-privacy
- JAXGDP_JAX_PRIVACY_ACCOUNTING_TEST: tests/accounting_test.py of google-deepmind/jax_privacy

Each of their tests that falls has its reason here."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")
dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")

# words in a test's name → why ours is right; docs/guides/other-frameworks.md has the same
PLD_REASONS = {
    "UnsupportedEventError not raised": "replacing a record is two moves, which is a sound pair for"
    " Laplace noise, discrete or not, and for a mechanism that is ε-DP under replacement",
    "test_supports_gaussian": "no pair is known that dominates Poisson sampling when a record is"
    " replaced",
    "test_supports_subsampled_gaussian": "the same",
    "test_epsilon_delta_basic": "μ is that of FPRs down to a floor, a finite number",
    "test_mixture_of_gaussians_basic": "the accountant's default rtol is 1e-3, not 1e-6",
    "test_truncated_subsampled_gaussian": "our pair is a smaller one that dominates too",
}
JAX_PRIVACY_REASONS = {
    "ZCDpEvent": "what sampling makes of a mechanism depends on more than its zCDP; Rényi bounds of"
    " sampled mechanisms are not part of the account"
}
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "other-frameworks.md"


def _module(name, variable):
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no file")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except AttributeError as error:
        pytest.skip(f"the installed dp_accounting is older than {path}: {error}")
    return module


def _listed(case):
    """Tests of a class: releases and their heads have different ones."""
    return unittest.defaultTestLoader.loadTestsFromTestCase(case).countTestCases()


def _falls(case):
    """Name and last line of every test of a class that falls, and how many there are."""
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    bad = result.failures + result.errors
    return result.testsRun, [f"{test.id()} {said.strip().splitlines()[-1]}" for test, said in bad]


def test_reasons_are_those_of_the_guide():
    words = " ".join(GUIDE.read_text(encoding="utf-8").split())
    for reason in {**PLD_REASONS, **JAX_PRIVACY_REASONS}.values():
        assert reason == "the same" or reason in words, reason


@pytest.mark.nightly
def test_pld_accountants_of_dp_accounting_have_reasons_where_they_differ(monkeypatch):
    from dp_accounting.pld import pld_privacy_accountant

    from jaxgdp.interop.dp_accounting import Accountant

    base = "dp_accounting.privacy_accountant_test"
    dpa.privacy_accountant_test = _module(base, "JAXGDP_PRIVACY_ACCOUNTANT_TEST")
    monkeypatch.setattr(pld_privacy_accountant, "PLDAccountant", Accountant)
    suite = _module("pld_privacy_accountant_test", "JAXGDP_PLD_ACCOUNTANT_TEST")
    number, falls = _falls(suite.PldPrivacyAccountantTest)
    unexplained = [one for one in falls if not any(word in one for word in PLD_REASONS)]
    assert number == _listed(suite.PldPrivacyAccountantTest) > 0
    assert len(falls) <= number // 7 and not unexplained, unexplained


@pytest.mark.nightly
def test_accounting_of_jax_privacy_has_reasons_where_it_differs(monkeypatch):
    pytest.importorskip("jax_privacy", reason="jax_privacy is not installed")
    from jaxgdp.interop.dp_accounting import Accountant

    def ours(*given, value_discretization_interval=None, **named):
        return Accountant(*given, **named)

    monkeypatch.setattr(dpa.pld, "PLDAccountant", ours)
    monkeypatch.setattr(dpa.rdp, "RdpAccountant", ours)
    suite = _module("accounting_test", "JAXGDP_JAX_PRIVACY_ACCOUNTING_TEST")
    number, falls = _falls(suite.AccountingTest)
    unexplained = [one for one in falls if not any(w in one for w in JAX_PRIVACY_REASONS)]
    assert number == _listed(suite.AccountingTest) > 0
    assert len(falls) <= number // 4 and not unexplained, unexplained
