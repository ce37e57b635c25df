"""Tier I and Tier II reports.

On the left the Gaussian curve cannot be told from the certified one, and one μ says it all. On the
right the two part, by more than the limit of 0.01: there the curve itself is to be published. (A
single use of a mechanism, to show it clearly.)"""

from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    drawn = Figure(figsize=(9.0, 4.7), layout="constrained")
    runs = jaxgdp.Gaussian(noise_multiplier=1.25), jaxgdp.Laplace(scale=0.6)
    for run, ax in zip(runs, drawn.subplots(1, 2), strict=True):
        curve = jaxgdp.tradeoff(run)
        plot.report_tier(jaxgdp.report(run), curve, ax)
    return drawn, curve.fpr_floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "report_tiers.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
