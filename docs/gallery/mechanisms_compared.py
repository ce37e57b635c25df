"""Mechanisms of the same advantage.

All four allow a membership advantage of 0.46, and differ in where an attacker gains: at small FPRs
randomized response gives away less than Gaussian noise, and (ε, δ)-DP at its worst gives away some
members for certain."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    advantage, delta = 0.46, 0.05
    epsilon = np.log((1.0 + advantage) / (1.0 - advantage))
    rest = (advantage - delta) / (1.0 - delta)
    mechanisms = {
        "Gaussian": jaxgdp.Gaussian(noise_multiplier=0.5 / 0.6128),
        "randomized response": jaxgdp.RandomizedResponse(epsilon=epsilon),
        "Laplace": jaxgdp.Laplace(scale=-0.5 / np.log(1.0 - advantage)),
        "worst (ε, 0.05)-DP": jaxgdp.ApproximateDP(
            epsilon=np.log((1.0 + rest) / (1.0 - rest)), delta=delta
        ),
    }
    drawn = Figure(figsize=(4.8, 4.8), layout="constrained")
    curves = {name: jaxgdp.tradeoff(mechanism) for name, mechanism in mechanisms.items()}
    plot.compare_curves(curves, drawn.add_subplot())
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(
        drawn, "mechanisms_compared.svg", question=__doc__.partition("\n")[0], fpr_floor=floor
    )
