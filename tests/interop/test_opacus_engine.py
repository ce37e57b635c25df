"""The accountant inside real Opacus; run nightly, with ``pip install opacus torch``."""

import unittest

import pytest

import jaxgdp
from jaxgdp.interop.opacus import CertifiedAccountant, register

pytestmark = [
    pytest.mark.nightly,
    # (Opacus and torch warn of their own)
    pytest.mark.filterwarnings("default"),
]
opacus = pytest.importorskip("opacus")
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def registered():
    register()


def parts(seed=0, size=512, batch=32):
    torch.manual_seed(seed)
    data = torch.utils.data.TensorDataset(torch.randn(size, 8), torch.randint(0, 2, (size,)))
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, torch.utils.data.DataLoader(data, batch_size=batch)


def train(model, optimizer, loader, epochs):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_engine_counts_every_step_and_answers_with_a_certified_number():
    engine = opacus.PrivacyEngine(accountant="jaxgdp")
    model, optimizer, loader = parts()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    train(model, optimizer, loader, epochs=3)
    assert engine.accountant.history == [(1.1, 1 / 16, 48)]
    run = jaxgdp.dpsgd(1.1, 1 / 16, 48)
    found = jaxgdp.measure(run, "epsilon", delta=1e-5)["epsilon"]
    epsilon = engine.get_epsilon(1e-5)
    assert found.lower <= epsilon <= found.upper * (1 + 1e-3)
    other = opacus.accountants.PRVAccountant()
    other.history = engine.accountant.history
    assert epsilon <= other.get_epsilon(1e-5)


def test_engine_finds_noise_for_an_epsilon():
    engine = opacus.PrivacyEngine(accountant="jaxgdp")
    model, optimizer, loader = parts()
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=3.0,
        target_delta=1e-5, epochs=3, max_grad_norm=1.0,
    )  # fmt: skip
    train(model, optimizer, loader, epochs=3)
    assert 2.9 < engine.get_epsilon(1e-5) <= 3.0
    found = jaxgdp.calibrate(
        jaxgdp.targets.EpsilonDelta(3.0, 1e-5), sampling_prob=1 / 16, num_steps=48
    )
    assert float(found.value) <= optimizer.noise_multiplier <= 1.01 * float(found.value)


@pytest.mark.parametrize("before", ["jaxgdp", "rdp", "prv", "gdp"])
def test_run_goes_on_from_a_checkpoint_of_any_accountant(tmp_path, before):
    def private(accountant):
        engine = opacus.PrivacyEngine(accountant=accountant)
        model, optimizer, loader = parts()
        made = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1,
            max_grad_norm=1.0,
        )  # fmt: skip
        return engine, *made

    first = private(before)
    train(*first[1:], epochs=1)
    first[0].save_checkpoint(path=tmp_path / "run.pt", module=first[1], optimizer=first[2])
    second = private("jaxgdp")
    second[0].load_checkpoint(path=tmp_path / "run.pt", module=second[1], optimizer=second[2])
    train(*second[1:], epochs=1)
    assert second[0].accountant.history == [(1.1, 1 / 16, 32)]


def test_noise_for_an_epsilon_is_less_than_that_of_their_accountants():
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    for epsilon, epochs, rate in ((8, 90, 0.04), (1.5, 12, 0.01), (9.0, 30, 0.1)):
        run = {"target_epsilon": epsilon, "target_delta": 1e-5, "sample_rate": rate}
        noise = get_noise_multiplier(**run, epochs=epochs, accountant="jaxgdp")
        again = create_accountant(mechanism="jaxgdp")
        again.history = [(noise, rate, int(epochs / rate))]
        assert again.get_epsilon(delta=1e-5) <= epsilon
        assert noise <= 1.001 * get_noise_multiplier(**run, epochs=epochs, accountant="prv")


@pytest.mark.parametrize("name", ["state_dict", "load_state_dict"])
def test_accountant_passes_their_tests_of_states_in_its_place(monkeypatch, name):
    """Their own test file, as it is, with this accountant where theirs stood."""
    from opacus.tests import accountants_test as theirs

    class Theirs(CertifiedAccountant):
        def get_epsilon(self, delta, **kwargs):
            # (the value that they compare with is that of RDP, which is larger)
            assert super().get_epsilon(delta) <= 7.32911117143
            return 7.32911117143

    monkeypatch.setattr(theirs, "RDPAccountant", Theirs)
    # (a state of "jaxgdp" is refused by every other accountant)
    outcome = unittest.TestResult()
    theirs.AccountingTest(f"test_accountant_{name}").run(outcome)
    assert outcome.testsRun == 1 and outcome.wasSuccessful(), outcome.failures + outcome.errors
