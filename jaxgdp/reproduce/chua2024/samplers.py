"""One epoch of the three samplers of Chua 2024, as brackets, and Poisson's Rényi bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...measure import measure
from ...mechanisms import Deterministic, Shuffled, dpsgd
from ...numerics.shapes import Array, ArrayLike
from ..renyi import DP_ACCOUNTING, RenyiCurve
from ..result import Table, element

RTOL, QUICK_RTOL = 1e-3, 1e-2
_FLOOR = 1e-6  # of the lattices of μ, which is not asked


class Compared(NamedTuple):
    """ε at one δ for several σ, or δ at several ε for one σ.

    Attributes:
        x: σ or ε, increasing.
        deterministic, poisson, shuffled: brackets there.
        renyi: upper bound on that of Poisson sampling by Rényi DP.
    """

    x: Array
    deterministic: Bracket
    poisson: Bracket
    shuffled: Any
    renyi: Any

    def at(self, x: float) -> Compared:
        """The numbers at one place."""
        i = np.flatnonzero(self.x == x).item()
        brackets = (element(b, i) for b in (self.deterministic, self.poisson, self.shuffled))
        return Compared(self.x[i], *brackets, float(self.renyi[i]))

    def table(self, name: str) -> Table:
        """Everything, as text."""
        header = (
            name,
            "deterministic",
            *(f"{s}_{side}" for s in ("poisson", "shuffled") for side in ("lower", "upper")),
        )
        columns = self.x, self.deterministic.upper, *self.poisson, *self.shuffled, self.renyi
        return Table.of_columns((*header, "poisson_renyi"), *columns, digits=10)


def _three(sigma: Array, batches: int, rtol: float, quantity: str, **at: Any) -> list[Bracket]:
    number = len(sigma)
    made = (
        Deterministic(sigma),
        dpsgd(sigma, np.full(number, 1.0 / batches), batches),
        Shuffled(sigma, batches),
    )
    return [
        measure(one, quantity, rtol=rtol, fpr_floor=_FLOOR, **at).brackets[quantity] for one in made
    ]


def _renyi(sigma: float, batches: int) -> RenyiCurve:
    return RenyiCurve(sigma, 1.0 / batches, batches, DP_ACCOUNTING)


def over_noise(sigma: ArrayLike, batches: int, delta: float, quick: bool) -> Compared:
    """ε(δ) of T batches over noise multipliers, increasing; wider brackets where quick."""
    sigma = np.asarray(sigma, float)
    found = _three(sigma, batches, QUICK_RTOL if quick else RTOL, "epsilon", delta=delta)
    bound = [_renyi(s, batches).epsilon(delta) for s in sigma]
    return Compared(sigma, *found, np.array(bound))


def over_epsilon(sigma: float, batches: int, epsilon: ArrayLike, quick: bool) -> Compared:
    """δ(ε) of T batches over ε, increasing; wider brackets where quick."""
    epsilon = np.asarray(epsilon, float)
    sigmas, rtol = np.full(len(epsilon), sigma), QUICK_RTOL if quick else RTOL
    found = _three(sigmas, batches, rtol, "delta", epsilon=epsilon)
    curve = _renyi(sigma, batches)
    return Compared(epsilon, *found, np.array([curve.delta(e) for e in epsilon]))
