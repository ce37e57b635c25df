"""What a search over hyperparameters costs.

ε of publishing the best of several runs, against their mean number. The number of runs is drawn
from a law and not told: between the lower side, an attack that is carried out, and the upper side,
a bound for every score. The line on top is what publishing all of as many runs costs."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    number = np.array([2.0, 8.0] if quick else [1.25, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    run = jaxgdp.Gaussian(2.0)
    laws = {"geometric": jaxgdp.runs.Geometric}
    if not quick:
        laws = {"logarithmic": jaxgdp.runs.Logarithmic, **laws, "Poisson": jaxgdp.runs.Poisson}
    drawn = Figure(figsize=(5.8, 4.0), layout="constrained")
    ax = drawn.add_subplot()
    for k, (name, law) in enumerate(laws.items()):
        found = jaxgdp.epsilon(jaxgdp.Selected(run, law(mean=number)), delta=1e-5)
        plot.band(number, found, ax, label=f"best run, {name} number", number=k, lines=5)
    whole = number[number >= 2.0]
    every = jaxgdp.epsilon(jaxgdp.compose([(run, whole)]), delta=1e-5)
    ax.plot(whole, every.upper, label="all runs published", **plot.line_style(4))
    one = float(jaxgdp.epsilon(run, delta=1e-5).upper)
    ax.axhline(one, color="0.4", lw=0.8)
    ax.annotate("one run", (number[-1], one), (0, -10), textcoords="offset points", ha="right",
                fontsize=8)  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set(xlabel="mean number of runs", ylabel=r"$\varepsilon$ at $\delta = 10^{-5}$",
           ylim=(one - 1.0, 12.0))  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "tuning.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
