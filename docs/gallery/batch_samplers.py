"""The same training with its batches drawn in four ways.

One epoch over 10,000 records in batches of 10. Where a band is wide, nobody knows better: no tight
bound of shuffling is known."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    sigmas = [0.5, 1.0, 2.0] if quick else np.geomspace(0.5, 4.0, 10)
    found = jaxgdp.compare_samplers(
        sigmas, dataset_size=1_000 if quick else 10_000, batch_size=10, rtol=1e-2
    )
    drawn = plot.sampler_panels(found, Figure(figsize=(10.2, 3.8), layout="constrained"))
    return drawn, found.attrs["fpr_floor"]


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "batch_samplers.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
