"""Noise schedules of DP-SGD on real data at one certified level of privacy.

A schedule gives each stage of training its own noise multiplier. ``certified`` scales a schedule's
shape until the whole run provably meets a target, so that schedules are compared at equal privacy;
``train`` then returns the accuracy of every seed.

As the learning rate falls, late noise does less harm. ``influence`` measures how much: the accuracy
lost by more noise in one stage alone. ``balanced`` puts the noise where it harms least:
``jaxgdp.optimize`` minimises Σ w_k·σ_k² through the accountant, at the target.

    python examples/noise_schedule_digits.py --seeds 20
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and sys.stderr.isatty():
    print(
        "importing jax and jaxgdp", file=sys.stderr, flush=True
    )  # which alone takes seconds on a busy machine

import argparse

import jax.numpy as jnp
import numpy as np

import jaxgdp
from jaxgdp.progress import show_progress
from jaxgdp.reproduce import digits

STAGES, STEPS_PER_STAGE = 4, 75
TARGET = jaxgdp.targets.Mu(0.28)
# noise of each stage relative to the others
SHAPES = {
    "constant": (1.0, 1.0, 1.0, 1.0),
    "falling": (1.5, 1.15, 0.9, 0.75),
    "rising": (0.75, 0.9, 1.15, 1.5),
}
# about the best peak of a falling rate and the best constant rate for constant noise
PEAK, CONSTANT_RATE = 0.3, 0.2
ITERATIONS = 80


def learning_rates(steps=STAGES * STEPS_PER_STAGE, peak=PEAK):
    """Falling in a straight line from ``peak`` to almost nothing, so that late noise counts for
    little.
    """
    return peak * (1.0 - np.arange(steps) / steps)


def certified(
    shape, target=TARGET, sampling_prob=digits.RATE, steps_per_stage=STEPS_PER_STAGE, tolerance=1e-3
):
    """Noise multipliers of each stage, in proportion to ``shape``, that provably meet a target; and
    the calibration.

    Args:
        shape: positive numbers, one for each stage. target: one of ``jaxgdp.targets``.
            sampling_prob: p of all stages.
        steps_per_stage: whole number. tolerance: of the common scale.

    Returns:
        (noise multiplier of each stage, :class:`jaxgdp.calibration.Calibration` of their common
        scale).
    """
    weights = np.asarray(shape, np.float64)

    def run(scale):
        stages = [jaxgdp.SubsampledGaussian(scale * weight, sampling_prob) for weight in weights]
        return jaxgdp.compose([(stage, steps_per_stage) for stage in stages])

    found = jaxgdp.calibrate(target, mechanism=run, rtol=tolerance)
    return float(found.value) * weights, found


def train(
    schedule, clip=digits.CLIP, sampling_prob=digits.RATE, seeds=range(10), learning_rate=None
):
    """Test accuracies of DP-SGD on the digits, one for each seed.

    Args:
        schedule: noise multiplier of each step. clip, sampling_prob: scalars, or one number for
            each step.
        seeds: whole numbers. learning_rate: of gradient descent with momentum, likewise; by default
            ``learning_rates`` of as many steps.

    Returns:
        Accuracies in [0, 1].
    """
    learning_rate = learning_rates(len(schedule)) if learning_rate is None else learning_rate
    return digits.train(
        np.asarray(schedule), clip, sampling_prob, seeds=seeds, learning_rate=learning_rate
    )


def influence(noise, factor=1.6, seeds=range(20), steps_per_stage=STEPS_PER_STAGE):
    """Percentage points of accuracy lost, on average, by ``factor`` times as much noise in one
    stage alone.

    Args:
        noise: noise multiplier of each stage. factor: above 1. seeds: whole numbers.
            steps_per_stage: whole number.

    Returns:
        One number for each stage.
    """
    noise = np.asarray(noise, np.float64)
    before = train(np.repeat(noise, steps_per_stage), seeds=seeds)
    more = noise * np.where(np.eye(len(noise)), factor, 1.0)
    return np.array(
        [
            100.0 * np.mean(before - train(np.repeat(row, steps_per_stage), seeds=seeds))
            for row in more
        ]
    )


def balanced(
    noise, weights, target=TARGET, sampling_prob=digits.RATE, steps_per_stage=STEPS_PER_STAGE
):
    """The schedule with the smallest Σ w_k·σ_k² that provably meets a target.

    Args:
        noise: where to start, one number for each stage. weights: w > 0 of each stage. target: one
            of ``jaxgdp.targets``.
        sampling_prob: p of all stages. steps_per_stage: whole number.

    Returns:
        :class:`jaxgdp.optimization.Optimized`.
    """
    weights = jnp.asarray(np.asarray(weights) / np.sum(weights))
    with show_progress("optimising the schedule", ITERATIONS) as count:
        return jaxgdp.optimize(
            lambda schedule: weights @ schedule.noise_multiplier**2,
            target,
            noise_multiplier=noise,
            sampling_prob=sampling_prob,
            num_steps=steps_per_stage,
            iterations=ITERATIONS,
            progress=lambda done: count(1),
        )


def main(arguments=None) -> None:
    """Compare the schedules of ``SHAPES``."""
    parser = argparse.ArgumentParser(
        description="DP-SGD on digits: noise schedules at equal certified privacy"
    )
    parser.add_argument("--seeds", type=int, default=20, help="runs of each schedule")
    seeds = parser.parse_args(arguments).seeds
    print(
        f"{STAGES} stages of {STEPS_PER_STAGE} steps, p = {digits.RATE:.4f}, {TARGET.describe()}; ±"
        " one standard error",
        flush=True,
    )
    with show_progress("calibrating constant noise"):
        constant, _ = certified(SHAPES["constant"])
    with show_progress("compiling, once, and training with more noise in each stage"):
        weights = influence(constant, seeds=range(seeds))
    print(
        "points lost by 1.6 times the noise in one stage:",
        ", ".join(f"{w:.2f}" for w in weights),
        flush=True,
    )
    with show_progress("training with a constant learning rate"):
        plain = 100.0 * train(
            np.repeat(constant, STEPS_PER_STAGE), seeds=range(seeds), learning_rate=CONSTANT_RATE
        )
    print(
        f"constant noise, constant learning rate {CONSTANT_RATE:g}: accuracy {_estimate(plain)} %;"
        " below, it falls",
        flush=True,
    )
    best = balanced(constant, np.maximum(weights, 0.1))
    reference = None
    for name, shape in (SHAPES | {"by influence": best.schedule.noise_multiplier}).items():
        with show_progress(f"calibrating and training: {name}"):
            noise, found = certified(shape)
            accuracy = 100.0 * train(np.repeat(noise, STEPS_PER_STAGE), seeds=range(seeds))
        reference = accuracy if reference is None else reference
        stages = ", ".join(f"{sigma:.3f}" for sigma in noise)
        # the same seeds draw the same batches and noise, so differences are less uncertain than
        # accuracies
        print(
            f"{name:12s} σ = {stages}   μ ≤ {float(found.achieved.upper):.5f}   accuracy"
            f" {_estimate(accuracy)} %   against {next(iter(SHAPES))}"
            f" {_estimate(accuracy - reference)}",
            flush=True,
        )


def _estimate(values) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.2f} ± {error:.2f}"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
