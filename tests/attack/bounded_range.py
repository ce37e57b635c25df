"""The exponential mechanism: for several uses the truth lies between members of its family and the
group bound of pure DP.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf

from jaxgdp.quantities import registry

from .polygon import Polygon, repeated
from .setting import Setting, built, rates
from .smooth import Smooth

_DIGITS = 150


def _member(epsilon, t):
    """The pair on the two ends of [t − ε, t] (Dong, Durfee & Rogers 2020, Lemma 3.2)."""
    p = (1 - mpmath.exp(t - epsilon)) / (mpmath.exp(t) - mpmath.exp(t - epsilon))
    return [(p, p * mpmath.exp(t)), (1 - p, (1 - p) * mpmath.exp(t - epsilon))]


def _one(epsilon):
    """The dominating pair of one use: density e^{−ℓ/2}/(4·sinh(ε/2)) of the loss under P on [−ε,
    ε].
    """
    whole = 4 * mpmath.sinh(epsilon / 2)

    def rate(at):
        at = max(mpf(at), -epsilon)
        if at >= epsilon:
            return mpf(0), mpf(0)
        return tuple(
            2 * (mpmath.exp(s * epsilon / 2) - mpmath.exp(s * at / 2)) / (s * whole)
            for s in (-1, 1)
        )

    return Smooth(rate, -epsilon, epsilon)


def draw(rng) -> Setting:
    """Uses of one ε: exact for one use but for μ, else between a member and ε-DP."""
    with mpmath.workdps(_DIGITS):
        uses = int(rng.choice([1, 2, 3, 8, 40]))
        epsilon = float(np.exp(rng.uniform(np.log(1e-3), np.log(20.0 / np.sqrt(uses)))))
        e = mpf(epsilon)
        t = e / 2 if rng.uniform() < 0.4 else e * mpf(float(rng.uniform(0.02, 0.98)))
        least = Polygon(repeated(_member(e, t), uses)).symmetrised()
        half = [(mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e)))]
        most = Polygon(repeated([half[0], half[0][::-1]], uses)).symmetrised()
        text = f"jaxgdp.compose([(jaxgdp.ExponentialMechanism({epsilon!r}), {uses})])"
        quantities = tuple(name for name, q in registry.REGISTRY.items() if q.monotone)
        curve = (least, most)
        if uses == 1:
            # all of the family together: exact where no single member is what is asked for
            quantities = ("advantage", "epsilon", "delta")
            curve = (least, _one(e))
        at = rates(rng, 3 * epsilon * np.sqrt(uses))
        adjacency = str(rng.choice(["add_remove", "replace_one"]))
        return Setting(
            text, built(text), adjacency, curve, at, _DIGITS, accuracy=1e-14, quantities=quantities
        )
