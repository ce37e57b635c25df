"""One scale for all noise of a mechanism or composition."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..mechanisms import Composition, Gaussian, as_composition
from ..mechanisms.base import Mechanism, known_mechanisms


def _noise_field(kind: type[Mechanism]) -> str:
    """The field that all noise of a class is proportional to, as the class itself says."""
    return vars(kind).get("noise_scale", "")


def common_scale(mechanism: Any):
    """The family scale → mechanism that multiplies every part's noise parameter by the scale.

    Args:
        mechanism: a mechanism or composition whose parts all have a noise parameter.

    Returns:
        A callable of arrays that broadcast with the mechanism, as ``calibrate(mechanism=…)`` takes
        it.

    Raises:
        ValueError: a part has no noise parameter; names it.

    Example:
        >>> import jaxgdp
        >>> run = jaxgdp.compose([(jaxgdp.Gaussian(2.0), 10), (jaxgdp.Laplace(3.0), 1)])
        >>> family = common_scale(run)
        >>> float(family(2.0).mechanisms[1].scale)
        6.0
    """
    from ..mechanisms import Selected  # (loaded where it is asked for)

    composition = as_composition(mechanism)
    for part in composition.mechanisms:
        if isinstance(part, Selected):
            common_scale(part.mechanism)  # (names a part of a run that has no noise parameter)
            continue
        if not _noise_field(type(part)):
            names = ", ".join(name for name, kind in known_mechanisms().items() if kind.noise_scale)
            raise ValueError(
                f"a common scale needs parts with a noise parameter ({names}), got"
                f" {type(part).__name__}"
            )

    def scaled(scale: np.ndarray):
        parts = []
        for part in composition.mechanisms:
            if isinstance(part, Selected):
                inner = common_scale(part.mechanism)
                parts.append(dataclasses.replace(part, mechanism=inner(scale)))
                continue
            field = _noise_field(type(part))
            parts.append(
                dataclasses.replace(part, **{field: np.asarray(getattr(part, field)) * scale})
            )
        return Composition(tuple(parts), composition.counts)

    return scaled


def gaussian_mu(mechanism: Any):
    """μ = √(Σ T/σ²) of a composition of Gaussian mechanisms alone, at scale 1; else None."""
    composition = as_composition(mechanism)
    if not all(isinstance(part, Gaussian) for part in composition.mechanisms):
        return None
    pairs = zip(composition.mechanisms, composition.counts, strict=True)
    return np.sqrt(sum(np.asarray(count) / part.noise_multiplier**2.0 for part, count in pairs))
