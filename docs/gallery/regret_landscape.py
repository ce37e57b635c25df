"""Where one number is enough: the regret landscape.

The regret Δ is what reporting one μ in place of the whole trade-off curve loses. Below the dashed line, Gomez et al. 2025 recommend to
report μ alone. A panel for each number of steps; marker and colour are the noise multiplier, the line is the upper side of the bracket.
"""

import numpy as np
from matplotlib.figure import Figure

from jaxgdp import landscape, plot


def figure(quick=False):
    rates = np.geomspace(1e-4, 1.0, 5 if quick else 64)
    steps = (400, 2000) if quick else landscape.NUM_STEPS
    sigmas = (1.0, 2.0, 8.0) if quick else landscape.NOISE_MULTIPLIERS
    grid = landscape.landscape(sigmas, rates, steps)
    return plot.regret_panels(grid, Figure(figsize=(10.2, 4.2), layout="constrained"))


if __name__ == "__main__":
    figure().savefig("regret_landscape.svg")
