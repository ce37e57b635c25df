"""Noise of an update against batch size, at equal μ.

50,000 records are trained on for a fixed number of epochs, so a larger batch means fewer updates.
At equal privacy an update of a larger batch has less noise, and at small batches much less."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot

RECORDS = 50_000


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    sizes = np.array([1000, 5000] if quick else [125, 250, 500, 1000, 2000, 4000, 8000, 16000])
    target = jaxgdp.targets.Mu(1.0)
    noise = {}
    for epochs in (30,) if quick else (3, 10, 30):
        steps = np.rint(epochs * RECORDS / sizes)
        rate = epochs / steps  # exactly so many epochs
        noise[f"{epochs} epochs"] = jaxgdp.calibrate(
            target, sampling_prob=rate, num_steps=steps, rtol=1e-2 if quick else 1e-3
        )
    drawn = Figure(figsize=(5.6, 3.8), layout="constrained")
    ax = plot.noise_per_update(sizes, noise, drawn.add_subplot())
    floor = float(target.fpr_floor)
    ax.set_title(rf"{RECORDS:,} records, $\mu \leq 1$, {plot.from_floor(floor)}", fontsize=10)
    return drawn, floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "noise_per_update.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
