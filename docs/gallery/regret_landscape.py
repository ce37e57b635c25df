"""Where one number is enough: the regret landscape.

The regret Δ is what reporting one μ in place of the whole trade-off curve loses. Below the dashed
line, Gomez et al. 2025 recommend to report μ alone. A panel for each number of steps; marker and
colour are the noise multiplier, the line is the upper side of the bracket."""

import numpy as np
from matplotlib.figure import Figure

from jaxgdp import landscape, plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    rates = np.geomspace(1e-4, 1.0, 5 if quick else 64)
    steps = (400, 2000) if quick else landscape.NUM_STEPS
    sigmas = (1.0, 2.0, 8.0) if quick else landscape.NOISE_MULTIPLIERS
    grid = landscape.landscape(sigmas, rates, steps)
    drawn = plot.regret_panels(grid, Figure(figsize=(10.2, 4.2), layout="constrained"))
    return drawn, grid.attrs["fpr_floor"]


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "regret_landscape.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
