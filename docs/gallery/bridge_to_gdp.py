"""From two statements of (ε, δ) to a certified μ.

A vendor says (1, 1e-5) and (2, 1e-9). The profile that these imply, its GDP transformation, and its
trade-off curve, each with that of the one μ that covers it."""

import numpy as np
from matplotlib.figure import Figure

from jaxgdp import bridge, gdp, plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    profile = bridge.refine(epsilon=[1.0, 2.0], delta=[1e-5, 1e-9])
    verdict = bridge.identify(profile)
    mu = float(verdict.head_mu.upper)
    epsilon, alpha = (
        np.linspace(0.0, 2.5, 51 if quick else 501),
        np.linspace(0.0, 1.0, 101 if quick else 1001),
    )
    delta = np.asarray(profile(epsilon)), gdp.delta(epsilon=epsilon, mu=mu)
    rates = alpha, np.asarray(profile.beta(alpha)), gdp.beta(fpr=alpha, mu=mu)
    transformation = bridge.gdp_transformation(profile, epsilon)
    drawn = Figure(figsize=(10.8, 3.6), layout="constrained")
    drawn = plot.bridge_panels(epsilon, delta, transformation, rates, mu, verdict.fpr_floor, drawn)
    return drawn, verdict.fpr_floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "bridge_to_gdp.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
