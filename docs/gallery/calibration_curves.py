"""How much noise an accepted risk needs.

The noise multiplier that provably keeps an attacker's TPR below the accepted one, for three FPRs.
For noise one tolerance step smaller the promise cannot be certified."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot, targets


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    accepted = np.linspace(0.15, 0.9, 16)
    run = (
        {"sampling_prob": 1.0, "num_steps": 10}
        if quick
        else {"sampling_prob": 0.01, "num_steps": 2000}
    )
    found = {
        f"FPR = {fpr:g}": jaxgdp.calibrate(targets.TPR(tpr=accepted, fpr=fpr), **run)
        for fpr in (0.001, 0.01, 0.1)
    }
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    plot.calibration_curves(
        found, accepted, drawn.add_subplot(), axis_label="accepted TPR (probability)"
    )
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "calibration_curves.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
