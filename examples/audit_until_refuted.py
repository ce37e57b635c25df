"""Broken DP-SGD loops, audited run by run until they are refuted: how many runs each one takes.

    python examples/audit_until_refuted.py           # a minute or two on two cores
    python examples/audit_until_refuted.py --quick   # fewer runs

The first five loops are those of audit_broken_training.py. Five more have slips that real code had:

    noise_for_sum     the noise of a sum is added to the mean: too much noise, not refuted
    noise_for_mean    the noise of a mean is added to the sum
    micro_batches     means of micro-batches are clipped: one record turns a mean around
    shared_key        two devices draw their noise with one key, and both sums are seen
    per_layer         each layer is clipped to the whole C
    padded            free places of a batch hold the last record, and the mask is forgotten

Each loop is run with and without one record. The attacker's scores were fixed beforehand; several
attacks share the evidence by the mean of their wealths. After every few runs one looks, and stops
once the wealth is at least 20: a correct loop gets there with probability at most 5 %.

Last, noise in 32 bits: the float numbers that can come out of jax.random.normal are few, and adding
a gradient moves them off (Mironov 2012). One look at the low bits of outputs tells.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxgdp
from jaxgdp import audit
from jaxgdp.training import standard_normal

sys.path.insert(0, str(Path(__file__).parent))
import audit_broken_training as broken

SIGMA, RATE, STEPS = broken.SIGMA, broken.RATE, broken.STEPS
RECORDS, SLOTS, MICRO = 20, 12, 4
LOOKS = 20  # runs with and without the record between two looks
SLIPS = {
    "noise_for_sum": "noise of σ·C for the sum, added to the mean",
    "noise_for_mean": "noise of σ·C/B for the mean, added to the sum",
    "micro_batches": "means of micro-batches clipped, noise for one gradient",
    "shared_key": "two devices with one key, both sums seen",
    "per_layer": "two layers, each clipped to the whole C",
    "padded": "free places hold the last record",
}


class Outcome(NamedTuple):
    """How an audit ended."""

    refuted: bool
    pairs: int
    mu_lower: float
    seconds: float


# slips: what the attacker sees of a step, in units of the clipping norm C, shape (2,)


def _clip(gradient):
    return gradient / jnp.maximum(1.0, jnp.linalg.norm(gradient, axis=-1, keepdims=True))


def slip(kind, key, member):
    """One noisy step: the sum of gradients of two coordinates (two layers, two devices).

    The record's gradient is far larger than C; the others' are 0 but in micro-batches.
    """
    choose, perturb, second = jax.random.split(key, 3)
    chosen = jax.random.bernoulli(choose, RATE, (RECORDS + 1,))
    chosen = chosen.at[-1].set(chosen[-1] & member)
    noise = SIGMA * standard_normal(perturb, (2,))
    size = RATE * RECORDS
    gradients = jnp.zeros((RECORDS + 1, 2)).at[-1].set(jnp.array([100.0, 0.0]))
    total = jnp.sum(_clip(gradients) * chosen[:, None], axis=0)
    if kind == "noise_for_sum":
        return size * (total / size + noise)
    if kind == "noise_for_mean":
        return total + noise / size
    if kind == "micro_batches":
        # the micro-batch is drawn as a whole; three other records pull the other way
        there = jax.random.bernoulli(second, RATE)
        mean = (jnp.where(member, 100.0, 0.0) - 5.0 * (MICRO - 1)) / MICRO
        return jnp.array([there * jnp.clip(mean, -1.0, 1.0), 0.0]) + noise
    if kind == "shared_key":
        same = SIGMA * standard_normal(perturb, ())
        device = jnp.arange(RECORDS + 1) % 2 == 0
        sums = jnp.stack([jnp.sum(total[0] * device[-1]), jnp.sum(total[0] * ~device[-1])])
        return sums + same
    if kind == "per_layer":
        both = jnp.where(chosen[-1], jnp.array([1.0, 1.0]), 0.0)
        return both + noise
    if kind == "padded":
        free = SLOTS - jnp.minimum(jnp.sum(chosen), SLOTS)
        # without the record, another one of zero gradient stands last
        return total + jnp.where(member, free, 0) * jnp.array([1.0, 0.0]) + noise
    raise ValueError(f"kind must be one of {', '.join(SLIPS)}, got {kind!r}")


@functools.partial(jax.jit, static_argnames=("kind", "number"))
def _slips(key, member, kind, number):
    one = lambda k: jax.vmap(lambda s: slip(kind, s, member))(jax.random.split(k, STEPS))
    return jax.vmap(one)(jax.random.split(key, number))


def slip_scores(kind, key, member, number):
    """Scores of each attack, fixed beforehand: the likelihood ratio of the honest mechanism along
    the direction that the slip would move, and the coordinates' distance."""
    seen = np.asarray(_slips(key, member, kind, number), float)
    diagonal = (seen[..., 0] + seen[..., 1]) / np.sqrt(2.0)
    along, move = (diagonal, np.sqrt(2.0)) if kind == "per_layer" else (seen[..., 0], 1.0)
    odds = lambda x: np.expm1((2.0 * move * x - move**2) / (2.0 * SIGMA**2))
    ratio = np.log1p(RATE * np.minimum(odds(along), 1e30))
    if kind == "micro_batches":  # without the record, the mean is clipped at the other end
        ratio = ratio - np.log1p(RATE * odds(-along))
    ratio = ratio.sum(axis=1)
    return {"ratio": ratio, "difference": np.abs(seen[..., 0] - seen[..., 1]).max(axis=1)}


def until_refuted(claim, draw, most, looks=LOOKS) -> Outcome:
    """Audit by several attacks at once, whose wealths are averaged, until refuted or at the end.

    Args:
        claim: a :class:`jaxgdp.audit.Sequential` without scores.
        draw: function (number of the look) → (member scores, nonmember scores), each by attack.
        most: runs with and as many without the record.
        looks: runs of each kind between two looks.
    """
    start, audits, wealth = time.perf_counter(), None, 0.0
    level = 1.0 / (1.0 - claim.confidence)
    for look in range(most // looks):
        member, nonmember = draw(look)
        audits = dict.fromkeys(member, claim) if audits is None else audits
        audits = {a: each.update(member[a], nonmember[a]) for a, each in audits.items()}
        wealth = audit.averaged(list(audits.values()))
        if wealth >= level:
            break
    best = max(float(each.mu_lower) for each in audits.values())
    pairs = next(iter(audits.values())).pairs
    return Outcome(wealth >= level, pairs, best, time.perf_counter() - start)


def loop_draws(kind, seed=0):
    """Scores of one of the loops of audit_broken_training.py, look by look."""

    def draw(look):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), look))
        return tuple(
            broken.scores(broken.runs(key, member, kind, LOOKS))
            for key, member in zip(keys, (True, False), strict=True)
        )

    return draw


def slip_draws(kind, seed=0):
    """Scores of one of the slips, look by look."""

    def draw(look):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), look))
        return tuple(
            slip_scores(kind, key, member, LOOKS)
            for key, member in zip(keys, (True, False), strict=True)
        )

    return draw


# noise in 32 bits


@functools.cache
def attainable():
    """All numbers that jax.random.normal can give in 32 bits, sorted: 2²³ or fewer."""
    uniform = np.arange(2**23, dtype=np.uint32) | np.uint32(0x3F800000)
    unit = uniform.view(np.float32) - np.float32(1.0)
    low = np.nextafter(np.float32(-1.0), np.float32(0.0))
    spread = jnp.maximum(low, unit * (np.float32(1.0) - low) + low)
    return np.unique(np.asarray(jnp.sqrt(2.0).astype(jnp.float32) * jax.lax.erf_inv(spread)))


def low_bits_draws(own, sigma, number, seed=0):
    """One noisy number, 0 or 1 plus noise: 1 if the noise alone could not have given it.

    For jax.random.normal that is a look into the table of what it can give. For
    jaxgdp.training.standard_normal: a number near 0 without the small bits that numbers near 0
    have.
    """
    draw = standard_normal if own else jax.random.normal

    @jax.jit
    def noisy(key, shift):
        return shift + np.float32(sigma) * draw(key, (number,))

    def score(output):
        if own:
            coarse = output * 2.0**24
            return (np.abs(output) < 2.0**-5) & (coarse == np.round(coarse))
        table = attainable()
        return table[np.minimum(np.searchsorted(table, output), len(table) - 1)] != output

    def look(step):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step))
        outputs = [np.asarray(noisy(k, np.float32(s))) for k, s in zip(keys, (1, 0), strict=True)]
        return tuple({"low bits": score(output)} for output in outputs)

    return look


def main(argv=None):
    """Audit every loop; returns outcomes by name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most 400 runs of each kind")
    parser.add_argument("--runs", type=int, help="runs with and without the record, at most")
    args = parser.parse_args(argv)
    most = args.runs or (400 if args.quick else 4000)

    claim = audit.Sequential(broken.claim_mechanism())
    print(f"claim: {claim.text}, at most {most} runs with and {most} without the record\n")
    outcomes = {}

    def tell(name, found, what):
        outcomes[name] = found
        word = "REFUTED" if found.refuted else "consistent"
        print(
            f"{name:16} {word:11} {found.pairs:6,} pairs  mu >= {found.mu_lower:.3f} "
            f" ({found.seconds:.0f} s; {what})"
        )

    for kind, what in broken.LOOPS.items():
        tell(kind, until_refuted(claim, loop_draws(kind), most), what)
    for kind, what in SLIPS.items():
        tell(kind, until_refuted(claim, slip_draws(kind), most), what)

    print("\nlow bits of one noisy number, against the Gaussian mechanism of that noise:")
    for own, sigma in ((False, 1.0), (True, 4.0)):
        name = "jaxgdp.training.standard_normal" if own else "jax.random.normal"
        noise = audit.Sequential(jaxgdp.Gaussian(sigma))
        found = until_refuted(noise, low_bits_draws(own, sigma, 20), most)
        tell(f"low bits {int(sigma)}", found, f"{name} in 32 bits, σ = {sigma:g}")
    return outcomes


if __name__ == "__main__":
    main()
