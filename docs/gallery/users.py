"""One user with several records.

ε of a run of DP-SGD for users with up to k records: of Poisson sampling, where a user's records
enter one by one, exactly; beside it, what k neighbours in a row cost at most when nothing else is
known of the mechanism."""

import numpy as np
from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    records = np.array([1, 2] if quick else [1, 2, 3, 4, 6, 8, 12, 16])
    run = jaxgdp.dpsgd(2.0, 0.01, 5 if quick else 1000, records_per_user=records)
    known = jaxgdp.epsilon(run, delta=1e-5)
    one = jaxgdp.dpsgd(2.0, 0.01, 5 if quick else 1000)
    unknown = [
        float(jaxgdp.epsilon(jaxgdp.bridge.group_profile(one, int(k)), delta=1e-5).upper)
        for k in records
    ]
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    ax = drawn.add_subplot()
    plot.band(records, known, ax, label="Poisson sampling, exact", number=0, lines=2)
    ax.plot(records, unknown, label="any mechanism, upper bound", **plot.line_style(1))
    ax.set(xlabel="records of one user", ylabel=r"$\varepsilon$ at $\delta = 10^{-5}$")
    ax.legend(frameon=False, fontsize=8)
    return drawn, None


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "users.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
