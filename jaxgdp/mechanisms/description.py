"""A composition in one line."""

from __future__ import annotations

import numpy as np

from ..numerics.shapes import Array
from ..participation import Participation
from .composition import Composition
from .runs import Runs

_SHOWN = 6  # parts of a composition that one line shows


def _value(value: Array | Composition | Runs | Participation | str) -> str:
    """A number, or how many there are; a part of a mechanism in its own words."""
    if isinstance(value, Composition):
        return describe(value)
    if isinstance(value, Runs | Participation | str):
        return str(value)
    return f"{float(value):.10g}" if np.ndim(value) == 0 else f"<{np.size(value)} values>"


def describe(mechanism: Composition) -> str:
    """A composition of scalars in one line: ``SubsampledGaussian(…) x count``, parts by ``+``."""
    parts = []
    for part, count in zip(mechanism.mechanisms, mechanism.counts, strict=True):
        fields = ", ".join(f"{name}={_value(value)}" for name, value in part.given().items())
        parts.append(f"{type(part).__name__}({fields}) x {float(count):.16g}")
    if len(parts) > _SHOWN:
        uses = sum(float(count) for count in mechanism.counts)
        parts[_SHOWN - 1 :] = [
            f"{len(parts) - _SHOWN + 1} more ({len(parts)} in all, {uses:.16g} uses)"
        ]
    return " + ".join(parts)
