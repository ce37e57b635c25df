"""Two audits against the same claim.

The band is the claim's certified trade-off curve. Each cross is a pair of limits that hold together
with 95 % confidence, its box what sampling leaves open. A cross below the band proves a bug: on the
right, the noise was not scaled by the clipping norm of 1.6."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import audit, plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    rng = np.random.default_rng(0)
    claim = jaxgdp.Gaussian(noise_multiplier=1.0)
    number = 500 if quick else 4000
    drawn = Figure(figsize=(9.6, 4.4), layout="constrained")
    for shift, ax in zip((1.0, 1.6), drawn.subplots(1, 2), strict=True):
        scores = shift + rng.standard_normal(number), rng.standard_normal(number)
        plot.audit_verdict(audit.verdict(claim, *scores), ax)
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "audit.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
