"""Attack risk against noise."""

from __future__ import annotations

from collections.abc import Sequence

from ..numerics.optional import Axes, Dataset
from ..quantities.registry import named
from .band import band, both_sides
from .style import at_argument, plain_log, symbol


def risks_against_noise(
    dataset: Dataset, ax: Axes, quantities: Sequence[str] = ("advantage", "tpr")
) -> Axes:
    """Risks between 0 and 1 against the noise multiplier, the upper sides as lines.

    Args:
        dataset: from ``jaxgdp.sweep`` with several noise multipliers; of sampling rates and numbers
            of steps the first is drawn.
        ax: matplotlib ``Axes`` to draw on.
        quantities: names of probabilities that the data set has, such as "advantage", "tpr" or
            "delta".

    Raises:
        ValueError: the data set lacks a quantity, or it is no probability that grows with the
            privacy loss.
    """
    one = dataset.isel(sampling_prob=0, num_steps=0).sortby("noise_multiplier")
    for number, name in enumerate(quantities):
        if name not in dataset or dataset[name].attrs["units"] != "1":
            raise ValueError(
                f"quantities must be probabilities that the data set has, got {name!r}"
            )
        if not dataset[name].attrs["side"].startswith("upper"):
            raise ValueError(
                f"quantities must grow with the privacy loss, got {name!r}, whose lower side is the"
                " one to report"
            )
        at, of = one[name].attrs.get("at"), named(name)
        label = symbol(of) if at is not None else name
        label += "" if at is None else at_argument(of, at)
        sigma, sides = one["noise_multiplier"].values, both_sides(one, name)
        band(sigma, sides, ax, label=label, number=number, lines=len(quantities))
    ax.set(xscale="log", yscale="log", xlabel=r"noise multiplier $\sigma$")
    ax.set_ylabel("upper bound (probability)")
    plain_log(ax.xaxis)
    ax.set_title(f"$p$ = {float(one.sampling_prob):g}, $T$ = {int(one.num_steps)}", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    return ax
