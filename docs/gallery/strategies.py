"""Strategies of correlated noise.

The error of prefix sums that DP-SGD, a binary tree and banded strategies leave at the same μ, with
batches in a fixed order and with Poisson sampling: the least noise that provably meets the goal."""

from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    steps, bands = (32, (4,)) if quick else (512, (4, 16, 64))
    found = jaxgdp.compare_strategies(jaxgdp.targets.Mu(1.0), steps, 4, bands=bands)
    drawn = Figure(figsize=(6.0, 4.2), layout="constrained")
    plot.strategies(found, drawn.add_subplot())
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "strategies.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
