"""An optimised noise schedule, beside the constant one of the same certified μ.

Noise is placed where it harms least: the sum of w·σ² over four stages is minimised at μ = 1, with
weights w that fall during the run."""

import jax.numpy as jnp
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    weights = jnp.array([5.0, 3.2, 1.3, 0.4])
    target = jaxgdp.targets.Mu(1.0)
    found = jaxgdp.optimize(
        lambda schedule: weights @ schedule.noise_multiplier**2,
        target,
        noise_multiplier=[20.0] * 4 if quick else [1.0] * 4,
        sampling_prob=1.0 if quick else 0.04,
        num_steps=75,
        iterations=2 if quick else 200,
    )
    drawn = Figure(figsize=(5.4, 3.6), layout="constrained")
    ax = plot.noise_schedules(
        {"constant": found.start, "optimised": found.schedule}, drawn.add_subplot()
    )
    floor = float(target.fpr_floor)
    ax.set_title(rf"$\mu \leq {target.mu:g}$, {plot.from_floor(floor)}", fontsize=10)
    return drawn, floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "optimised_schedule.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
