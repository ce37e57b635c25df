"""Private training with equinox in an ordinary Python loop, until ε = 3 is spent.

    python examples/train_equinox.py run   # stop it at any time; call it again to go on

It needs ``pip install 'jaxgdp[examples]'``. The data stay on the host."""

import logging
import sys
from pathlib import Path

import equinox
import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from sklearn.datasets import load_digits

import jaxgdp
from jaxgdp.training import clipped_gradients, plan_budget, poisson_sampler

log = logging.getLogger("training")


def network(keys):
    first = equinox.nn.Conv2d(1, 8, 3, padding=1, key=keys[0])
    second = equinox.nn.Conv2d(8, 16, 3, stride=2, padding=1, key=keys[1])
    last = equinox.nn.Linear(16 * 4 * 4, 10, key=keys[2])
    flat = equinox.nn.Lambda(lambda x: jax.nn.tanh(x).reshape(-1))
    return equinox.nn.Sequential([first, equinox.nn.Lambda(jax.nn.tanh), second, flat, last])


def main(output, epsilon=3.0, die_at=None):
    digits, labels = load_digits(return_X_y=True)
    digits = (digits.reshape(-1, 1, 8, 8) / 16.0).astype(np.float32)
    test, answers, digits, labels = digits[:300], labels[:300], digits[300:], labels[300:]

    # the run, fixed before it begins: noise that falls at step 100, Poisson batches, a budget
    sampler = poisson_sampler(len(digits), 0.1, max_steps=400, multiple_of=64)
    plan = plan_budget(lambda step: 2.5 if step < 100 else 2.0, sampler=sampler, delta=1e-5)
    budget = plan.max_steps_within(epsilon=epsilon)
    inner = optax.adam(optax.cosine_decay_schedule(5e-3, budget))
    optimiser = plan.privatize(1.0, jax.random.PRNGKey(1), max_steps=budget, inner=inner)

    model = network(jax.random.split(jax.random.PRNGKey(0), 3))
    params, rest = equinox.partition(model, equinox.is_inexact_array)
    logits = lambda params, image: equinox.combine(params, rest)(image)
    entropy = optax.softmax_cross_entropy_with_integer_labels
    loss = lambda params, image, label: entropy(logits(params, image), label)
    gradients = clipped_gradients(loss, 1.0, microbatch_size=64)

    @jax.jit
    def step(params, state, images, labels, mask):
        _, clipped = gradients(params, images, labels, mask=mask)
        update, state = optimiser.update(clipped, state, params)
        return optax.apply_updates(params, update), state

    state = optimiser.init(params)
    saved = ocp.CheckpointManager(Path(output).absolute() / "checkpoints")
    if saved.latest_step() is not None:  # parameters, optimiser, noise key and account together
        params, state = saved.restore(None, args=ocp.args.StandardRestore((params, state)))
    while not state.spent:
        batch = sampler.sample(jax.random.PRNGKey(2), state.step)
        params, state = step(params, state, *sampler.take(batch, digits, labels), batch.mask)
        if (now := int(state.step)) % 25 == 0 or state.spent:
            right = np.mean(jax.vmap(logits, (None, 0))(params, test).argmax(-1) == answers)
            live = {name: f"{plan.at(now)[name].upper:.4f}" for name in ("epsilon", "mu")}
            log.info("step %d of %d: %s, test accuracy %.3f", now, budget, live, right)
            saved.save(now, args=ocp.args.StandardSave((params, state)), force=True)
        if now == die_at:  # as if the machine went down
            break
    saved.close()
    jaxgdp.report(plan.composition(now), delta=1e-5).save(Path(output) / "report.html")
    return params, plan, now


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", force=True)
    log.setLevel("INFO")
    main(*sys.argv[1:2] or ["train_equinox"])
