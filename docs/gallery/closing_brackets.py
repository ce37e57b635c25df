"""Brackets close as more accuracy is asked for.

Both sides of two numbers of one run, at finer and finer `rtol`: each bracket lies within the one
before, and all of them hold the truth."""

from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    run = jaxgdp.dpsgd(noise_multiplier=2.0, sampling_prob=0.05, num_steps=1000)
    rtol = (1e-3, 1e-4) if quick else (1e-3, 1e-4, 1e-5, 1e-6)
    answers = [jaxgdp.measure(run, ("mu", "epsilon"), rtol=each) for each in rtol]
    names = {
        "mu": r"$\mu$ (FPR $\geq 10^{-10}$)",
        "epsilon": r"$\varepsilon$ at $\delta = 10^{-5}$",
    }
    drawn = Figure(figsize=(5.4, 3.6), layout="constrained")
    found = {label: [answer[name] for answer in answers] for name, label in names.items()}
    plot.closing_brackets(rtol, found, drawn.add_subplot())
    return drawn, answers[0].fpr_floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "closing_brackets.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
