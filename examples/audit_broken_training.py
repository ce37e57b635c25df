"""Five broken DP-SGD loops and a correct one, audited against the certified curve of what they
claim to be.

    python examples/audit_broken_training.py # some minutes on two cores; writes
    audit_broken_training/ python examples/audit_broken_training.py --quick # fewer runs; enough for
    the four coarse bugs

Each loop is run thousands of times with and without one record, the canary, whose gradient points
where no other record's does. The attacker sees every noisy gradient, as the accounting assumes, and
scores each run in three ways that were fixed beforehand (each gets a third of the error allowed):

    ratio    the likelihood ratio of the honest mechanism, summed over steps
    spread   largest minus smallest step along the canary: noise that is reused cancels
    first    the steps of the first batch of each epoch, where a fixed order puts the canary

It needs ``pip install 'jaxgdp[plot]'`` for the figures, which --no-figures leaves out.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri

import jaxgdp
import jaxgdp.plot
from jaxgdp import audit
from jaxgdp.training import clipped_sum, noisy_mean, per_example_gradients, poisson_sampler

SIGMA, CLIP, RATE, STEPS = 1.0, 4.0, 0.2, 20
RECORDS, SIZE, EPOCH = 20, 8, 5  # EPOCH batches make an epoch
LEARNING_RATE = 0.05
CONFIDENCE = 0.95
LOOPS = {
    "correct": "Poisson batches, per-example clipping, noise of σ·C with long tails",
    "unscaled": "noise of σ in place of σ·C",
    "reused": "the same noise in every step",
    "per_batch": "the mean gradient of the batch is clipped, not each example's",
    "cyclic": "batches in a fixed order, accounted as Poisson",
    "short_tail": "noise of float32 from jax.random.normal, which ends at 5.42",
}
ATTACKS = ("ratio", "spread", "first")


class Outcome(NamedTuple):
    """The audit of one loop: verdicts by attack, whether any refutes, and seconds."""

    verdicts: dict
    refuted: bool
    seconds: float

    @property
    def best(self) -> audit.Verdict:
        """The verdict of the attack that proves most."""
        return max(self.verdicts.values(), key=lambda v: (v.refuted, float(v.mu_lower)))


def records():
    """Records of linear regression in all coordinates but the last, and the canary, alone in the
    last one and far off.
    """
    rng = np.random.default_rng(0)
    inputs = np.zeros((RECORDS + 1, SIZE), np.float32)
    others = rng.standard_normal((RECORDS, SIZE - 1))
    inputs[:RECORDS, :-1] = others / np.linalg.norm(others, axis=1, keepdims=True)
    targets = np.append(rng.standard_normal(RECORDS), -100.0).astype(np.float32)
    inputs[RECORDS, -1] = 1.0
    return jnp.asarray(inputs), jnp.asarray(targets)


def loss(weights, x, y):
    """Squared error of one record."""
    return 0.5 * (weights @ x - y) ** 2


def step(kind, weights, batch, key, inputs, targets):
    """One noisy sum of gradients, in units of the clipping norm; ``kind`` is the position in LOOPS,
    so that all share one program.
    """
    is_kind = lambda name: kind == list(LOOPS).index(name)
    _, found = per_example_gradients(loss)(weights, inputs, targets, mask=batch)
    total, gradients = clipped_sum(found, CLIP), found.gradients
    honest = noisy_mean(total, key, CLIP, SIGMA, 1.0)
    normal = SIGMA * jax.random.normal(key, total.shape)
    # the mean of the batch clipped to C, noise of σ·C over the batch size: the usual mistake
    size = RATE * RECORDS
    mean = jnp.sum(gradients * batch[:, None], axis=0) / size
    mean = mean * jnp.minimum(1.0, CLIP / jnp.maximum(jnp.linalg.norm(mean), 1e-12))
    broken = [
        (is_kind("unscaled"), total + normal),
        (is_kind("per_batch"), size * mean + CLIP * normal),
        (is_kind("short_tail"), total + CLIP * normal),
    ]
    return jnp.select([here for here, _ in broken], [value for _, value in broken], honest) / CLIP


def run(key, member, kind, inputs, targets):
    """One training run: the noisy sums along the canary's direction, shape (STEPS,)."""
    sampler = poisson_sampler(RECORDS + 1, RATE, STEPS, padded_size=RECORDS + 1)
    is_kind = lambda name: kind == list(LOOPS).index(name)

    def one(weights, number):
        choose, perturb = jax.random.split(
            jax.random.fold_in(key, jnp.where(is_kind("reused"), 0, number))
        )
        drawn = sampler.sample(choose, number)
        poisson = jnp.zeros(RECORDS + 1, bool).at[drawn.indices].max(drawn.mask)
        in_turn = jnp.arange(RECORDS + 1) % EPOCH == number % EPOCH
        chosen = jnp.where(is_kind("cyclic"), in_turn, poisson)
        # the canary is the last record
        chosen = chosen.at[-1].set(chosen[-1] & member)
        noisy = step(kind, weights, chosen, perturb, inputs, targets)
        return weights - LEARNING_RATE * CLIP * noisy / (RATE * RECORDS), noisy[-1]

    return jax.lax.scan(one, jnp.zeros(SIZE), jnp.arange(STEPS))[1]


@functools.partial(jax.jit, static_argnames="number")
def _runs(key, member, kind, number):
    inputs, targets = records()
    return jax.vmap(run, (0, None, None, None, None))(
        jax.random.split(key, number), member, kind, inputs, targets
    )


def runs(key, member, kind, number):
    """Many runs of a loop: noisy sums along the canary, shape (number, STEPS)."""
    return np.asarray(_runs(key, member, list(LOOPS).index(kind), number), float)


def scores(seen):
    """Scores of each attack, shape (runs,), from the sums along the canary, in units of the
    clipping norm.
    """
    ratio = np.log1p(RATE * np.expm1((2.0 * seen - 1.0) / (2.0 * SIGMA**2))).sum(axis=1)
    spread = seen.max(axis=1) - seen.min(axis=1)
    return {"ratio": ratio, "spread": spread, "first": seen[:, ::EPOCH].sum(axis=1)}


def claim_mechanism():
    """What every loop says it is."""
    return jaxgdp.dpsgd(noise_multiplier=SIGMA, sampling_prob=RATE, num_steps=STEPS)


def claim():
    """Its claim, for many audits."""
    return audit.as_claim(claim_mechanism()).tabulated()


def audit_loop(kind, claimed, number, seed=0, confidence=CONFIDENCE) -> Outcome:
    """Run a loop with and without the canary and compare with the claim, three attacks sharing the
    error.
    """
    start = time.perf_counter()
    with_it, without = jax.random.split(jax.random.key(seed))
    member, nonmember = (
        scores(runs(with_it, True, kind, number)),
        scores(runs(without, False, kind, number)),
    )
    share = 1.0 - (1.0 - confidence) / len(ATTACKS)
    verdicts = {
        a: audit.verdict(claimed, member[a], nonmember[a], confidence=share) for a in ATTACKS
    }
    refuted = any(v.refuted for v in verdicts.values())
    return Outcome(verdicts, refuted, time.perf_counter() - start)


# noise alone: what retraining cannot show

END = 5.25  # no float32 number of jax.random.normal is larger than 5.22; fixed before looking


@functools.partial(jax.jit, static_argnames=("own", "number"))
def _above(key, shift, own, number):
    draw = jaxgdp.training.standard_normal if own else jax.random.normal
    return jnp.sum(draw(key, (number,)) + shift > END)


def audit_noise(own: bool, number: int, chunk=5_000_000) -> tuple[audit.Limits, float, int, int]:
    """Is one step of noise with σ = 1 as private as a Gaussian? Counts beyond the end of float32's
    normal numbers.

    Returns the limits, the FNR that 1-GDP demands at the limit of the FPR, and the counts without
    and with the record."""
    keys = jax.random.split(jax.random.key(1), 2 * -(-number // chunk)).reshape(2, -1)
    outside, inside = (
        sum(int(_above(k, shift, own, chunk)) for k in row)
        for row, shift in zip(keys, (0.0, 1.0), strict=True)
    )
    total = keys.shape[1] * chunk
    limits = audit.from_counts(outside, total, total - inside, total, CONFIDENCE)
    return limits, float(jaxgdp.gdp.beta(fpr=limits.fpr_limit[0], mu=1.0)), outside, inside


def needed_draws() -> float:
    """Draws without the record after which the count 0 beyond the end refutes 1-GDP, if all goes as
    expected.
    """
    hit = ndtr(-(END - 1.0))
    # α with Φ(Φ⁻¹(α) + 1) = hit, met by the limit of a count of 0
    return float(-np.log(0.5 * (1.0 - CONFIDENCE)) / ndtr(ndtri(hit) - 1.0))


def main(argv=None):
    """Audit every loop; returns outcomes by name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="1000 runs of each kind in place of 10,000, and fewer draws of noise",
    )
    parser.add_argument("--runs", type=int, help="runs with and without the canary")
    parser.add_argument("--draws", type=int, help="draws of noise with and without the record")
    parser.add_argument("--no-figures", action="store_true")
    parser.add_argument("--output", default="audit_broken_training")
    parser.add_argument(
        "--force", action="store_true", help="replace what an earlier run left in that folder"
    )
    args = parser.parse_args(argv)
    number = args.runs or (1000 if args.quick else 10_000)
    draws = args.draws or (5_000_000 if args.quick else 100_000_000)
    folder = Path(args.output)
    there = [path for kind in LOOPS for path in folder.glob(f"{kind}.*")]
    if there and not args.force:
        parser.error(f"{there[0]} exists already: give --force to replace it, or another --output")
    folder.mkdir(exist_ok=True)

    claimed = claim()
    print(
        f"claim: {claimed.text}, {number} runs with and {number} without the canary, confidence"
        f" {CONFIDENCE:.0%}\n"
    )
    outcomes = {}
    for kind, what in LOOPS.items():
        outcomes[kind] = found = audit_loop(kind, claimed, number)
        word = "REFUTED" if found.refuted else "consistent"
        print(
            f"{kind:11} {word:11} mu >= {found.best.mu_lower:.3f}  ({found.seconds:.0f} s; {what})"
        )
        best = found.best.to_dict() | {"attacks": {a: v.line for a, v in found.verdicts.items()}}
        (folder / f"{kind}.json").write_text(json.dumps(best, indent=2), encoding="utf-8")
        if not args.no_figures:
            draw(found.best, folder / f"{kind}.png")

    away = STEPS * RATE * ndtr(1.0 - END)
    print(
        f"\nshort_tail cannot be refuted by retraining: an output beyond {END} gives the record"
        f" away, in one run of {1.0 / away:,.0f}; about\n{needed_draws():,.0f} runs without the"
        " record are needed to tell that no such output comes from noise alone.\nThe noise can be"
        " drawn that often without training:"
    )
    for own, name in ((False, "jax.random.normal"), (True, "jaxgdp.training.standard_normal")):
        start = time.perf_counter()
        limits, demanded, outside, inside = audit_noise(own, draws)
        refuted = bool(limits.fnr_limit[0] < demanded)
        outcomes[name] = refuted
        print(
            f"{name:32} {'REFUTED' if refuted else 'consistent':11} {outside} of"
            f" {limits.nonmembers:,} beyond the end without the record, {inside} with"
            f" ({time.perf_counter() - start:.0f} s)"
        )
    return outcomes


def draw(verdict, path):
    """The figure of a verdict."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    jaxgdp.plot.audit_verdict(verdict, figure.add_subplot())
    jaxgdp.plot.save(figure, path, question=verdict.line, fpr_floor=verdict.stated.fpr_floor)


if __name__ == "__main__":
    main()
