"""Evidence against a claim, run by run.

Each line is the wealth of an audit of 1-GDP that may be stopped at any time. The claim is refuted
once the wealth is at least 20: a true claim ever gets there with probability at most 5 %. Half
the noise is found after some dozens of pairs of runs."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import audit, plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    rng = np.random.default_rng(3)
    claim = audit.Sequential(jaxgdp.Gaussian(noise_multiplier=1.0))
    number = 60 if quick else 200
    z = rng.standard_normal((2, number))
    paths = {
        f"noise multiplier {sigma:g}": claim.path(z[0] + 1.0 / sigma, z[1])
        for sigma in (1.0, 0.7, 0.5)
    }
    drawn = Figure(figsize=(6.4, 4.2), layout="constrained")
    plot.wealth_over_time(paths, drawn.add_subplot())
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "wealth.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
