"""What a run spends, step by step, and where its budget ends.

The markers are numbers of steps that the plan computed. A step between two of them is told the
value of the next one, so that nobody is told less than what was spent: this is the staircase."""

from matplotlib.figure import Figure

from jaxgdp import plot
from jaxgdp.training import plan_budget


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    plan = plan_budget(
        noise_multiplier=2.0,
        sampling_prob=0.2 if quick else 0.05,
        max_steps=30 if quick else 2000,
        quantities=("mu", "epsilon"),
    )
    drawn = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = drawn.subplots(1, 2)
    plot.budget(plan, left, "mu", limit=0.5)
    plot.budget(plan, right, "epsilon", limit=1.5)
    return drawn, dict(plan.asked)["fpr_floor"]


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "budget.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
