"""Private training with Opacus, accounted for by jaxgdp, until ε = 3 is spent.

    python examples/train_opacus.py run   # stop it at any time; call it again to go on

Ghost clipping: no gradient per example. ``pip install jaxgdp opacus scikit-learn`` first."""

import logging
import sys
from pathlib import Path

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits

import jaxgdp
from jaxgdp.interop.opacus import register
from jaxgdp.training import plan_budget

log = logging.getLogger("training")
BATCHES, MOST = 10, 400  # batches of an epoch, so that the sampling rate is 1/10; steps
noise = lambda step: 2.5 if step < 100 else 2.0


def network():
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Tanh()),
        *(torch.nn.Conv2d(8, 16, 3, stride=2, padding=1), torch.nn.Tanh()),
        *(torch.nn.Flatten(), torch.nn.Linear(16 * 4 * 4, 10)),
    )


def main(output, epsilon=3.0, die_at=None):
    torch.manual_seed(0)
    digits, labels = load_digits(return_X_y=True)
    digits = torch.tensor(digits.reshape(-1, 1, 8, 8) / 16.0, dtype=torch.float32)
    labels = torch.tensor(labels)
    test, answers, data = digits[:297], labels[:297], (digits[297:], labels[297:])

    # the run, fixed before it begins
    plan = plan_budget(noise, 1 / BATCHES, MOST, delta=1e-5)
    budget = plan.max_steps_within(epsilon=epsilon)
    register()
    engine, model = PrivacyEngine(accountant="jaxgdp"), network()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = torch.utils.data.TensorDataset(*data)
    loader = torch.utils.data.DataLoader(data, batch_size=len(data) // BATCHES)
    model, optimizer, loss, loader = engine.make_private(
        module=model, optimizer=optimizer, criterion=torch.nn.CrossEntropyLoss(),
        data_loader=loader, noise_multiplier=noise(0), max_grad_norm=1.0, grad_sample_mode="ghost",
    )  # fmt: skip
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, budget)
    saved = Path(output) / "run.pt"
    if saved.exists():  # parameters, optimiser and account together; the schedules follow them
        state = engine.load_checkpoint(path=saved, module=model, optimizer=optimizer)
        rate.load_state_dict(state["rate"])
    while (now := len(engine.accountant)) < budget and now != die_at:
        for images, digit in loader:
            optimizer.noise_multiplier = noise(len(engine.accountant))
            optimizer.zero_grad()
            loss(model(images), digit).backward()
            optimizer.step()
            rate.step()
            if (now := len(engine.accountant)) == budget or now == die_at:
                break
        model.eval()
        right = (model(test).argmax(-1) == answers).float().mean()
        model.train()
        live = {name: f"{plan.at(now)[name].upper:.4f}" for name in ("epsilon", "mu")}
        log.info("step %d of %d: %s, test accuracy %.3f", now, budget, live, right)
        saved.parent.mkdir(parents=True, exist_ok=True)
        state = {"rate": rate.state_dict()}
        engine.save_checkpoint(path=saved, module=model, optimizer=optimizer, checkpoint_dict=state)
    jaxgdp.report(engine.accountant.composition(), delta=1e-5).save(saved.with_name("report.html"))
    return engine, plan, now


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", force=True)
    log.setLevel("INFO")
    main(*sys.argv[1:2] or ["train_opacus"])
