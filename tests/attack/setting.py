"""A setting: a mechanism, what to ask, and the exact curve that answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import jaxgdp
from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities import registry


@dataclass
class Setting:
    """One attack.

    Attributes:
        text: an expression that builds the mechanism, for whoever looks into a failure.
        mechanism: the mechanism, or a composition.
        adjacency: as :func:`jaxgdp.measure` takes it.
        curve: the exact curve of that adjacency; or (curve, curve) between which the truth lies
            (more private first).
        at: arguments of ``measure``: fpr_floor, rtol and what quantities are asked at.
        digits: decimal digits that the exact curve needs.
        accuracy: relative accuracy of the exact curve, 0 where it is exact.
        quantities: what to ask.
    """

    text: str
    mechanism: Any
    adjacency: str
    curve: Any
    at: dict[str, float]
    digits: int = 60
    accuracy: float = 0.0
    quantities: tuple[str, ...] = field(default_factory=lambda: tuple(registry.REGISTRY))
    notes: list[str] = field(default_factory=list)

    def __str__(self):
        asked = ", ".join(f"{name}={value!r}" for name, value in self.at.items())
        return (
            f"jaxgdp.measure({self.text}, {self.quantities!r}, adjacency={self.adjacency!r},"
            f" {asked})"
        )


def rates(rng, largest_loss: float, deepest: float = 1e-12) -> dict[str, float]:
    """Where to ask: rates log-uniform from ``deepest``, ε up to a little more than the largest
    loss.
    """

    def rate(high=0.4):
        return float(np.exp(rng.uniform(np.log(deepest), np.log(high))))

    def moderate(high):
        return float(np.exp(rng.uniform(np.log(1e-12), np.log(high))))

    at = {name: q.default for name, q in registry.arguments().items()} | {
        "delta": rate(0.9),
        "fpr": rate(0.9),
        "approximation": moderate(0.5),
        "fpr_floor": rate(0.3),
        "prior": float(rng.uniform(0.01, 0.99)),
    }
    at["epsilon"] = float(
        rng.choice(
            [0.0, rng.uniform(0.0, 1.05) * largest_loss, rng.uniform(0.0, 0.3) * largest_loss]
        )
    )
    at["rtol"] = float(rng.choice([0.3, 0.3, 1e-2, 1e-3]))
    return at


def adjacency_of(rng, choices=("add_remove", "add", "remove")) -> str:
    """A relation to ask for."""
    return str(rng.choice(choices))


def of_adjacency(curve, adjacency):
    """The exact curve of one relation from that of P against Q."""
    relation = Adjacency(adjacency)
    if relation.symmetric:
        return curve.symmetrised()
    return curve.swapped() if relation.swapped else curve


def built(text: str):
    """The mechanism of an expression."""
    return eval(text, {"jaxgdp": jaxgdp})
