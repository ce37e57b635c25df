"""One run of DP-SGD: its trade-off curve and the Gaussian one that sums it up.

The line is the certified lower side, below which no attacker's error rates can lie; the dotted line
is μ-GDP with the reported μ, which holds from its FPR floor on."""

from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    curve = jaxgdp.tradeoff(
        jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000)
    )
    drawn = Figure(figsize=(4.6, 4.6), layout="constrained")
    curve.plot(drawn.add_subplot())
    return drawn, curve.fpr_floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "tradeoff_curve.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
