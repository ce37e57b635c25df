"""What steering hands to composition: tilt and windows of one piece of a half-curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics.shapes import Array, Float


class Plan(NamedTuple):
    """Tilt and windows of one piece of a half-curve.

    Attributes:
        tilt: s, the exponential tilt under which the piece is composed.
        low, high: window of the composed loss.
        miss_low, miss_high: tilt offsets a > 0 whose Chernoff bounds certify the mass outside the
            window.
        scale: log of the single-step normalisation at that tilt, shape (components,).
        centre: single-step tilted mean of each component, shape (components,).
        reach_low, reach_high: how far below and above its centre each component's single-step
            window extends.
        end: single-step loss beyond which the tail is not resolved, shape (components,).
        cut_low, cut_high: thresholds between which the piece's vertices are used.
        spread: standard deviation of the tilted composed loss.
        middle: single-step tilted median of each component, shape (components,).
        smooth: a length (in nats) over which the composed law is smooth; steps of this size hardly
            blur it.
        bandwidth: frequency (per nat) above which nothing is left of the composed law.
        length: standard deviations of depth the piece covers; far above 12 its ends lose accuracy.
        unit: length of which every composed atom is a whole multiple, 0 where there is none.
        anchor: a threshold at which there shall be a vertex, 0 for none but that at ℓ = 0.
        jump: single-step loss beyond which a step counts as a jump, where one jump is the likeliest
            way to the piece; ∞ elsewhere, −∞ where several jumps lead there and all of them are
            composed together with the small steps.
    """

    tilt: Float[Array, "*pieces"]
    low: Float[Array, "*pieces"]
    high: Float[Array, "*pieces"]
    miss_low: Float[Array, "*pieces"]
    miss_high: Float[Array, "*pieces"]
    scale: Float[Array, "*pieces components"]
    centre: Float[Array, "*pieces components"]
    reach_low: Float[Array, "*pieces components"]
    reach_high: Float[Array, "*pieces components"]
    end: Float[Array, "*pieces components"]
    cut_low: Float[Array, "*pieces"]
    cut_high: Float[Array, "*pieces"]
    spread: Float[Array, "*pieces"]
    middle: Float[Array, "*pieces components"]
    smooth: Float[Array, "*pieces"]
    bandwidth: Float[Array, "*pieces"]
    length: Float[Array, "*pieces"]
    unit: Float[Array, "*pieces"]
    anchor: Float[Array, "*pieces"]
    jump: Float[Array, "*pieces"]

    @classmethod
    def blank(cls, shape: tuple[int, ...], components: int) -> Plan:
        """A plan of the right shapes that plans nothing: what takes it only compiles."""
        each = ("scale", "centre", "reach_low", "reach_high", "end", "middle")
        return cls(
            **{name: np.ones(shape + (components,) * (name in each)) for name in cls._fields}
        )
