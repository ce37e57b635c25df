"""One run of DP-SGD: its trade-off curve and the Gaussian one that sums it up.

The line is the certified lower side, below which no attacker's error rates can lie; the dotted line is μ-GDP with the reported μ, which
holds from its FPR floor on.
"""

from matplotlib.figure import Figure

import jaxgdp


def figure(quick=False):
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000))
    drawn = Figure(figsize=(4.6, 4.6), layout="constrained")
    curve.plot(drawn.add_subplot())
    return drawn


if __name__ == "__main__":
    figure().savefig("tradeoff_curve.svg")
