"""Advantage and TPR against noise.

What an attacker gains over guessing, and how many members are found when one non-member in a
thousand is flagged; both are upper sides."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    sigmas = np.geomspace(0.6, 10.0, 6 if quick else 21)
    grid = jaxgdp.sweep(sigmas, 0.01, 2000, quantities=("advantage", "tpr"), fpr=1e-3)
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    plot.risks_against_noise(grid, drawn.add_subplot())
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(
        drawn, "risks_against_noise.svg", question=__doc__.partition("\n")[0], fpr_floor=floor
    )
