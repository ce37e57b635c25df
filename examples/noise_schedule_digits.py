"""Noise schedules of DP-SGD on real data at one certified level of privacy.

Noise of step t moves the weights by learning rate × σ_t, and costs about 1/σ_t² of privacy. To lower the sum of (rate·σ)² at
equal cost, σ should grow as 1/√rate: more noise where steps are small.

A schedule gives each stage of training its own noise multiplier. ``certified`` scales a schedule's shape until the whole run provably
meets a target, so that schedules are compared at equal privacy; ``train`` then returns the accuracy of every seed.

    python examples/noise_schedule_digits.py --seeds 10
"""

from __future__ import annotations

import argparse

import numpy as np

import jaxgdp
from jaxgdp.reproduce import digits

STAGES, STEPS_PER_STAGE = 4, 75
TARGET = jaxgdp.targets.TPR(tpr=0.2, fpr=0.1)
# noise of each stage relative to the others
SHAPES = {
    "constant": (1.0, 1.0, 1.0, 1.0),
    "falling": (1.5, 1.15, 0.9, 0.75),
    "rising": (0.75, 0.9, 1.15, 1.5),
    "1/√(learning rate)": tuple((STAGES / np.arange(STAGES - 0.5, 0, -1.0)) ** 0.5),
}
PEAK = 0.6


def learning_rates(steps=STAGES * STEPS_PER_STAGE, peak=PEAK):
    """Falling in a straight line from ``peak`` to almost nothing, so that late noise counts for little."""
    return peak * (1.0 - np.arange(steps) / steps)


def certified(shape, target=TARGET, sampling_prob=digits.RATE, steps_per_stage=STEPS_PER_STAGE, tolerance=1e-3):
    """Noise multipliers of each stage, in proportion to ``shape``, that provably meet a target; and the calibration.

    Args:
        shape: positive numbers, one for each stage. target: one of ``jaxgdp.targets``. sampling_prob: p of all stages.
        steps_per_stage: whole number. tolerance: of the common scale.

    Returns:
        (noise multiplier of each stage, :class:`jaxgdp.calibration.Calibration` of their common scale).
    """
    weights = np.asarray(shape, np.float64)

    def run(scale):
        stages = [jaxgdp.SubsampledGaussian(scale * weight, sampling_prob) for weight in weights]
        return jaxgdp.compose([(stage, steps_per_stage) for stage in stages])

    found = jaxgdp.calibrate(target, mechanism=run, tolerance=tolerance)
    return float(found.value) * weights, found


def train(schedule, clip=digits.CLIP, sampling_prob=digits.RATE, seeds=range(10), learning_rate=None):
    """Test accuracies of DP-SGD on the digits, one for each seed.

    Args:
        schedule: noise multiplier of each step. clip, sampling_prob: scalars, or one number for each step.
        seeds: whole numbers. learning_rate: of gradient descent with momentum, likewise; by default ``learning_rates`` of as many steps.

    Returns:
        Accuracies in [0, 1].
    """
    learning_rate = learning_rates(len(schedule)) if learning_rate is None else learning_rate
    return digits.train(np.asarray(schedule), clip, sampling_prob, seeds=seeds, learning_rate=learning_rate)


def main(arguments=None) -> None:
    """Compare the schedules of ``SHAPES``."""
    parser = argparse.ArgumentParser(description="DP-SGD on digits: noise schedules at equal certified privacy")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each schedule")
    seeds = parser.parse_args(arguments).seeds
    print(
        f"{STAGES} stages of {STEPS_PER_STAGE} steps, p = {digits.RATE:.4f}, {TARGET.describe()}; ± one standard error"
    )
    reference = None
    for name, shape in SHAPES.items():
        noise, found = certified(shape)
        accuracy = 100.0 * train(np.repeat(noise, STEPS_PER_STAGE), seeds=range(seeds))
        reference = accuracy if reference is None else reference
        stages = ", ".join(f"{sigma:.3f}" for sigma in noise)
        # the same seeds draw the same batches and noise, so differences are less uncertain than accuracies
        print(
            f"{name:20s} σ = {stages}   TPR ≤ {float(found.achieved.upper):.5f}   accuracy {_estimate(accuracy)} %   "
            f"against {next(iter(SHAPES))} {_estimate(accuracy - reference)}",
            flush=True,
        )


def _estimate(values) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
