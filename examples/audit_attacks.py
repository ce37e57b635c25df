"""How close attacks on one training run come to the certified μ: losses, likelihood ratios,
gradients.

    python examples/audit_attacks.py                      # digits, some minutes on two cores
    python examples/audit_attacks.py --quick
    python examples/audit_attacks.py --adult adult.csv    # UCI Adult: numbers, the label last

A network is trained by DP-SGD on records and on canaries, each put in by a fair coin. Three
attackers guess the coins:

    loss       of each canary (a record with a wrong label) under the last model
    ratio      the same against reference models, trained by the attacker with coins of his own
    gradient   canaries that are gradients, one parameter each, seen in every noisy sum

It needs ``pip install 'jaxgdp[data]'``.
"""

from __future__ import annotations

import argparse
import csv
import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

import jaxgdp
from jaxgdp import audit
from jaxgdp.training import clipped_sum, noisy_mean, per_example_gradients, poisson_sampler

CLIP, RATE, STEPS, LEARNING_RATE = 1.0, 0.1, 150, 0.5
NUM_CANARIES, REFERENCES = 500, 16
GUESSES = (20, 60, 150)  # fixed beforehand
FLOOR = 1e-3  # of FPRs, for the certified μ


class Data(NamedTuple):
    """Records and canaries, and the parameters to begin with."""

    records: tuple[Any, Any]
    canaries: tuple[Any, Any]
    begin: Any


def digits(seed=0):
    """Handwritten digits for a convolutional network; canaries have wrong labels."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    images = (images[order] / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    labels = labels[order].astype(np.int32)
    cut = NUM_CANARIES
    wrong = (labels[:cut] + rng.integers(1, 10, cut)) % 10
    keys = jax.random.split(jax.random.key(seed))
    begin = {
        "filters": 0.3 * jax.random.normal(keys[0], (3, 3, 1, 8)),
        "weights": 0.1 * jax.random.normal(keys[1], (128, 10)),
        "bias": jnp.zeros(10),
    }
    return Data((images[cut:1500], labels[cut:1500]), (images[:cut], wrong.astype(np.int32)), begin)


def adult(path, seed=0, records=3000):
    """UCI Adult from a file of numbers, for a network with one hidden layer; wrong labels, too."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = np.array(list(csv.reader(file))[1:], float)
    rng = np.random.default_rng(seed)
    rows = rows[rng.permutation(len(rows))[: records + NUM_CANARIES]]
    inputs, labels = rows[:, :-2], rows[:, -1].astype(np.int32)
    inputs = np.where(np.abs(inputs) > 1.0, np.log1p(np.abs(inputs)) / 12.0, inputs)
    inputs = inputs.astype(np.float32)
    keys, cut = jax.random.split(jax.random.key(seed)), NUM_CANARIES
    begin = {
        "hidden": 0.2 * jax.random.normal(keys[0], (inputs.shape[1], 32)),
        "weights": 0.2 * jax.random.normal(keys[1], (32, 2)),
        "bias": jnp.zeros(2),
    }
    return Data((inputs[cut:], labels[cut:]), (inputs[:cut], 1 - labels[:cut]), begin)


def loss(parameters, x, label):
    """Cross-entropy of one record, of the network that the parameters are of."""
    if "filters" in parameters:
        found = jax.lax.conv_general_dilated(
            x[None],
            parameters["filters"],
            (2, 2),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        hidden = jnp.tanh(found).ravel()
    else:
        hidden = jnp.tanh(x @ parameters["hidden"])
    scores = hidden @ parameters["weights"] + parameters["bias"]
    return optax.softmax_cross_entropy_with_integer_labels(scores, label)


@functools.partial(jax.jit, static_argnames=("padded", "gradient"))
def train(data, key, included, sigma, padded, gradient=False):
    """One run: the last parameters, and what was seen along gradient canaries, (STEPS, canaries).

    Args:
        data: :class:`Data`.
        key: of the run.
        included: which canaries are in.
        sigma: noise multiplier.
        padded: size of padded batches.
        gradient: whether canaries are gradients, one parameter each, in place of records.
    """
    number = len(data.records[1])
    everything = [jnp.concatenate(pair) for pair in zip(data.records, data.canaries, strict=True)]
    there = jnp.concatenate([jnp.ones(number, bool), included & (not gradient)])
    batches, steps = jax.random.split(key)
    sampler = poisson_sampler(len(there), RATE, STEPS, padded_size=padded)

    def step(parameters, now):
        perturb, pick = jax.random.split(jax.random.fold_in(steps, now))
        batch = sampler.sample(batches, now)
        _, gradients = per_example_gradients(loss)(
            parameters, *(each[batch.indices] for each in everything)
        )
        total = clipped_sum(gradients, CLIP, batch.mask & there[batch.indices])
        flat, unflat = ravel_pytree(total)
        drawn = included & jax.random.bernoulli(pick, RATE, included.shape) & gradient
        flat = flat.at[: len(included)].add(CLIP * drawn)
        mean = noisy_mean(unflat(flat), perturb, CLIP, sigma, RATE * number)
        seen = ravel_pytree(mean)[0][: len(included)] * RATE * number / CLIP
        moved = jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, mean)
        return moved, seen

    return jax.lax.scan(step, data.begin, jnp.arange(STEPS))


def attack_scores(data, sigma, seed, references, padded):
    """(coins, scores) of each attack on one run."""
    keys = jax.random.split(jax.random.key(seed), 5)
    included = audit.coins(keys[0], NUM_CANARIES)
    final, _ = train(data, keys[1], included, sigma, padded)
    # the attacker's own coins: every canary is in half of the models
    half = jax.random.split(keys[2], references // 2)
    half = jax.vmap(lambda k: audit.coins(k, NUM_CANARIES))(half)
    others = jnp.concatenate([half, ~half])
    models, _ = jax.vmap(lambda k, inside: train(data, k, inside, sigma, padded))(
        jax.random.split(keys[3], references), others
    )
    _, seen = train(data, keys[4], included, sigma, padded, gradient=True)
    ratio = (2.0 * np.asarray(seen, float) - 1.0) / (2.0 * sigma**2)
    odds = np.log1p(RATE * np.expm1(np.minimum(ratio, 700.0)))
    return included, {
        "loss": audit.loss_scores(loss, final, data.canaries),
        "ratio": audit.likelihood_ratio_scores(loss, final, models, others, data.canaries),
        "gradient": odds.sum(axis=0),
    }


def main(argv=None):
    """Print the table; returns medians of lower bounds by noise multiplier and attack."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, one noise, few models")
    parser.add_argument("--adult", metavar="PATH", help="UCI Adult as a CSV file of numbers")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(argv)
    seeds, references = (1, 6) if args.quick else (args.seeds, REFERENCES)
    data = adult(args.adult) if args.adult else digits()
    size = len(data.records[1]) + NUM_CANARIES
    padded = int(RATE * size + 8.0 * np.sqrt(RATE * size))
    print(f"{size - NUM_CANARIES} records, {NUM_CANARIES} canaries, {STEPS} steps, p = {RATE:g}\n")
    print(
        "| noise multiplier | certified μ | loss | ratio | gradient | minutes |\n"
        "|---|---|---|---|---|---|"
    )
    found = {}
    for sigma in (1.0,) if args.quick else (1.0, 0.6, 0.4):
        start, bounds = time.process_time(), []
        for seed in range(seeds):
            included, scores = attack_scores(data, sigma, seed, references, padded)
            bounds.append(
                {
                    name: float(audit.one_run_mu_of_several(s, included, GUESSES))
                    for name, s in scores.items()
                }
            )
        mu = jaxgdp.tradeoff(jaxgdp.dpsgd(sigma, RATE, STEPS), fpr_floor=FLOOR).mu()
        found[sigma] = {k: float(np.median([b[k] for b in bounds])) for k in bounds[0]}
        found[sigma]["certified"] = float(mu.upper)
        cells = [found[sigma][name] for name in ("certified", "loss", "ratio", "gradient")]
        minutes = (time.process_time() - start) / 60.0
        print(f"| {sigma:g} | " + " | ".join(f"{c:.2f}" for c in cells) + f" | {minutes:.1f} |")
    return found


if __name__ == "__main__":
    main()
