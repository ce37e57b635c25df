"""The accountant for Opacus: history, steps, states and hooks, without torch."""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import jaxgdp
from jaxgdp.interop.gdpnum import CTDAccountant
from jaxgdp.interop.opacus import CertifiedAccountant


def test_history_is_assigned_or_stepped():
    assigned, stepped = CertifiedAccountant(), CertifiedAccountant()
    assigned.history = [(1.5, 0.04, 750), (1.0, 0.04, 2), (1.5, 0.04, 1)]
    stepped.history = [(1.5, 0.04, 749)]
    for sigma in (1.5, 1.0, 1.0, 1.5):
        stepped.step(noise_multiplier=sigma, sample_rate=0.04)
    assert stepped.history == assigned.history and len(stepped) == 753
    assert CertifiedAccountant.mechanism() == "jaxgdp" and len(CertifiedAccountant()) == 0
    counts = {
        float(m.noise_multiplier): int(c)
        for m, c in zip(*vars(assigned.composition()).values(), strict=True)
    }
    assert counts == {1.5: 751, 1.0: 2}


def test_steps_without_sampling_are_exact():
    accountant = CertifiedAccountant()
    accountant.history = [(2.0, 1.0, 4)]
    assert math.isclose(
        accountant.get_epsilon(1e-5, eps_error=0.01),
        jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0),
        rel_tol=1e-9,
    )
    assert math.isclose(
        accountant.get_epsilon(delta=1e-5, alphas=[2.0]),
        jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0),
        rel_tol=1e-9,
    )
    assert math.isclose(accountant.get_mu(), 1.0, rel_tol=1e-9) and accountant.get_regret() < 1e-9
    assert math.isclose(accountant.get_advantage(), jaxgdp.gdp.advantage(mu=1.0), rel_tol=1e-8)
    assert np.allclose(accountant.get_beta([0.01, 0.1]), jaxgdp.gdp.beta(fpr=[0.01, 0.1], mu=1.0))
    assert math.isclose(accountant.get_tpr(0.1), jaxgdp.gdp.tpr(fpr=0.1, mu=1.0), rel_tol=1e-8)
    assert math.isclose(
        accountant.get_delta(1.0), jaxgdp.gdp.delta(epsilon=1.0, mu=1.0), rel_tol=1e-8
    )


def test_value_opacus_tests_for():
    # their PRV accountant, an upper bound with an ε error of 0.01: σ = 1.5, q = 0.04, 2250 steps, δ
    # = 1e-5
    accountant = CertifiedAccountant()
    accountant.history = [(1.5, 0.04, 2250)]
    assert 6.777395712150674 - 0.01 < accountant.get_epsilon(1e-5) < 6.777395712150674 * (1 + 1e-3)


def test_steps_that_reveal_nothing_and_everything():
    accountant = CertifiedAccountant()
    assert accountant.get_epsilon(1e-5) == 0.0 and accountant.get_mu() == 0.0
    accountant.step(noise_multiplier=1.0, sample_rate=0.0)
    assert accountant.get_epsilon(1e-5) == 0.0 and len(accountant) == 1
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(1e-5) == math.inf
    with pytest.raises(ValueError, match="non-private"):
        accountant.composition()


def test_hook_counts_accumulated_steps():
    accountant = CertifiedAccountant()
    hook = accountant.get_optimizer_hook_fn(sample_rate=0.01)
    for accumulated in (1, 1, 4):
        hook(SimpleNamespace(noise_multiplier=1.1, accumulated_iterations=accumulated))
    assert accountant.history == [(1.1, 0.01, 2), (1.1, 0.04, 1)]


def test_states_come_back_exactly_also_through_json():
    accountant = CertifiedAccountant()
    accountant.history = [(1.5, 1 / 3, 7), (0.1, 0.04, 2)]
    filled = {"other": 1}
    assert accountant.state_dict(filled) is filled and filled["other"] == 1
    state = accountant.state_dict()
    accountant.step(noise_multiplier=1.0, sample_rate=0.5)
    for copy in (state, json.loads(json.dumps(state))):
        again = CertifiedAccountant()
        again.load_state_dict(copy)
        assert again.history == [(1.5, 1 / 3, 7), (0.1, 0.04, 2)] and len(again) == 9


@pytest.mark.parametrize(
    "state, named",
    [
        (None, "state_dict"),
        ({}, "state_dict"),
        ({"history": []}, "'mechanism'"),
        ({"mechanism": "jaxgdp"}, "'history'"),
        ({"mechanism": "mine", "history": []}, "'mine'"),
        ({"mechanism": "jaxgdp", "history": "abc"}, "history"),
        ({"mechanism": "jaxgdp", "history": [(1.0, 0.1, 1), (1.0, 0.1)]}, r"history\[1\]"),
        ({"mechanism": "jaxgdp", "history": [(1.0, 0.1, -1)]}, "num_steps"),
        ({"mechanism": "jaxgdp", "history": [(float("nan"), 0.1, 1)]}, "noise_multiplier"),
        ({"mechanism": "jaxgdp", "history": [(1.0, 1.1, 1)]}, "sample_rate"),
    ],
)
def test_bad_states_are_refused_and_change_nothing(state, named):
    accountant = CertifiedAccountant()
    accountant.history = [(1.0, 0.1, 3)]
    with pytest.raises(ValueError, match=named):
        accountant.load_state_dict(state)
    assert accountant.history == [(1.0, 0.1, 3)]


@pytest.mark.parametrize(
    "bad",
    [{"noise_multiplier": -1.0, "sample_rate": 0.1}, {"noise_multiplier": 1.0, "sample_rate": 2.0}],
)
def test_bad_steps_are_not_counted(bad):
    accountant = CertifiedAccountant()
    with pytest.raises(ValueError, match="of step must be"):
        accountant.step(**bad)
    assert len(accountant) == 0


def test_accountant_needs_neither_torch_nor_opacus():
    code = (
        "import sys\n"
        "for name in ('opacus', 'dp_accounting', 'gdpnum', 'riskcal', 'jax_privacy'):\n"
        "    sys.modules[name] = None\n"
        "from jaxgdp.interop import gdpnum, jax_privacy, opacus, riskcal\n"
        "accountant = opacus.CertifiedAccountant()\n"
        "accountant.step(noise_multiplier=1.0, sample_rate=1.0)\n"
        "accountant.get_epsilon(1e-5)\n"
        "assert 'torch' not in sys.modules\n"
        "try:\n"
        "    from jaxgdp.interop.dp_accounting import Accountant\n"
        "except ImportError as error:\n"
        "    assert 'jaxgdp[interop]' in str(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_gdpnum_s_accountant_has_its_own_name():
    accountant = CTDAccountant()
    accountant.history = [(2.0, 1.0, 4)]
    state = accountant.state_dict()
    assert state["mechanism"] == "ctd"
    with pytest.raises(ValueError, match="'ctd'"):
        CertifiedAccountant().load_state_dict(state)
    assert accountant.get_beta().shape == (8,)
    mu, regret = accountant.get_mu_and_regret(grid_step=1e-3)
    assert math.isclose(mu, 1.0, rel_tol=1e-9) and regret < 1e-9


def test_state_of_another_mechanism_is_refused_with_the_way_out():
    state = {"history": [(1.0, 0.1, 3)], "mechanism": "mine"}
    accountant = CertifiedAccountant()
    with pytest.raises(ValueError, match=r"accountant\.history = state_dict\['history'\]"):
        accountant.load_state_dict(state)
    accountant.history = state["history"]
    assert len(accountant) == 3


@pytest.mark.parametrize("mechanism", ["rdp", "prv", "gdp"])
def test_states_of_opacus_own_accountants_are_imported_by_their_history(mechanism):
    accountant = CertifiedAccountant()
    accountant.load_state_dict({"history": [(2.0, 1.0, 4)], "mechanism": mechanism})
    assert math.isclose(accountant.get_mu(), 1.0, rel_tol=1e-9)
    assert accountant.state_dict()["mechanism"] == "jaxgdp"


def test_old_name_warns_and_is_the_same():
    import jaxgdp.interop.opacus as module

    with pytest.warns(DeprecationWarning, match="CertifiedAccountant"):
        assert module.GDPAccountant is CertifiedAccountant


def test_registering_tells_opacus_and_may_be_done_again(monkeypatch):
    """Opacus' own registry, as it is in 1.6, without torch."""
    known = {}

    def register_accountant(mechanism, accountant, force=False):
        if mechanism in known and not force:
            raise ValueError(f"Accountant for mechanism {mechanism} is already registered")
        known[mechanism] = accountant

    accountants = SimpleNamespace(register_accountant=register_accountant)
    monkeypatch.setitem(sys.modules, "opacus", SimpleNamespace(accountants=accountants))
    monkeypatch.setitem(sys.modules, "opacus.accountants", accountants)
    jaxgdp.interop.opacus.register()
    jaxgdp.interop.opacus.register()
    assert known == {"jaxgdp": CertifiedAccountant}
    monkeypatch.setitem(sys.modules, "opacus.accountants", None)
    with pytest.raises(ImportError, match="pip install opacus"):
        jaxgdp.interop.opacus.register()


def test_rate_that_exceeds_1_by_rounding_is_1():
    accountant = CertifiedAccountant()
    accountant.step(noise_multiplier=2.0, sample_rate=sum([1 / 9] * 9))
    assert accountant.history == [(2.0, 1.0, 1)]
    with pytest.raises(ValueError, match="sample_rate"):
        accountant.step(noise_multiplier=2.0, sample_rate=1.0 + 1e-6)
