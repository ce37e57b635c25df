"""Noise of an update against the batch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..numerics.optional import Axes
from ..numerics.shapes import ArrayLike
from ..numerics.validation import positive
from .style import grid, line_style, plain_log


def noise_per_update(batch_size: ArrayLike, noise_multipliers: Mapping[str, Any], ax: Axes) -> Axes:
    """The noise σ/B of the mean gradient, in clipping norms, against the batch size B.

    An update is the noisy sum of clipped gradients over the expected batch size, so its noise has
    the standard deviation σ·C/B in every coordinate.

    Args:
        batch_size: B, one-dimensional.
        noise_multipliers: label → the noise multiplier at each batch size: numbers, or what
            ``jaxgdp.calibrate`` found for them.
        ax: matplotlib ``Axes`` to draw on.

    Raises:
        ValueError: a noise multiplier is not above 0, or there is not one for each batch size.
    """
    sizes = np.asarray(positive("batch_size", batch_size), float)
    for number, (label, found) in enumerate(noise_multipliers.items()):
        sigma = np.asarray(positive(label, getattr(found, "value", found)), float)
        if sizes.ndim != 1 or sigma.shape != sizes.shape:
            raise ValueError(
                f"noise_multipliers must hold one number for each batch size, of shape"
                f" {sizes.shape}, got {label!r} of shape {sigma.shape}"
            )
        style = line_style(number) | {"linewidth": 1.8, "markersize": 4}
        ax.plot(sizes, sigma / sizes, label=label, **style)
    ax.set(xscale="log", yscale="log", xlabel="batch size $B$")
    ax.set_ylabel(r"noise of an update, $\sigma/B$ (clipping norms)")
    plain_log(ax.xaxis)
    grid(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax
