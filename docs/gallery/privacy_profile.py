"""The privacy profile of the same run.

δ(ε) for every ε at once, certified, beside that of the reported μ. A single pair (ε, δ) is one
point on this line."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    curve = jaxgdp.tradeoff(
        jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000)
    )
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    plot.privacy_profile(curve, np.linspace(0.0, 10.0, 12 if quick else 101), drawn.add_subplot())
    return drawn, curve.fpr_floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "privacy_profile.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
