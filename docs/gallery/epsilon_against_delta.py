"""ε against δ: what a smaller δ costs.

Three mechanisms of the same ε = 2 at δ = 1e-5, which one pair cannot tell apart.
"""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot, targets


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    target = targets.EpsilonDelta(epsilon=2.0, delta=1e-5)
    sigma = float(jaxgdp.calibrate(target, num_steps=1, sampling_prob=1.0).value)
    runs = float(jaxgdp.calibrate(target, num_steps=1000, sampling_prob=0.01).value)
    curves = {
        "Gaussian": jaxgdp.tradeoff(jaxgdp.Gaussian(sigma)),
        "1,000 steps of DP-SGD, p = 0.01": jaxgdp.tradeoff(jaxgdp.dpsgd(runs, 0.01, 1000)),
        "Laplace": jaxgdp.tradeoff(jaxgdp.Laplace(scale=0.5)),
    }
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    plot.epsilon_against_delta(
        curves, np.geomspace(1e-12, 1e-1, 12 if quick else 56), drawn.add_subplot()
    )
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(
        drawn, "epsilon_against_delta.svg", question=__doc__.partition("\n")[0], fpr_floor=floor
    )
