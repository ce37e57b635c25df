"""Attacks on the certificates: random settings against exact answers that share no code with the
package.

Each family of mechanisms is one file. It draws random settings, each with what to ask
:func:`jaxgdp.measure` and an exact trade-off curve (``polygon``, ``smooth``) from which every
quantity follows in many digits. ``python -m tests.attack`` runs as many as wanted."""

from __future__ import annotations

import numpy as np

from . import allocated, bounded_range, densities, discrete, large_steps, mixtures, noise

FAMILIES = {
    "allocated": allocated,
    "bounded_range": bounded_range,
    "densities": densities,
    "discrete": discrete,
    "large_steps": large_steps,
    "mixtures": mixtures,
    "noise": noise,
}
_OFTEN = {
    "allocated": 0.1,
    "bounded_range": 0.1,
    "densities": 0.15,
    "discrete": 0.25,
    "large_steps": 0.1,
    "mixtures": 0.15,
    "noise": 0.15,
}


def setting_of(seed: int, index: int, only: str | None = None):
    """Setting number ``index`` of a seed, of one family or of any."""
    rng = np.random.default_rng([seed, index])
    name = only or str(rng.choice(list(_OFTEN), p=list(_OFTEN.values())))
    return FAMILIES[name].draw(rng)
