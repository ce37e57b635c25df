"""What is asked of a batch of settings: accuracy, quantities, and the rates they are asked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri_exp

_AS_IS = ("delta", "bayes_risk")  # quantities asked at a value, not at the log of it


@dataclass(frozen=True, eq=False)
class Question:
    """What to compute for every setting; rates are numbers for all settings or arrays of shape (settings,).

    Attributes:
        rtol: relative width of the μ bracket.
        fpr_floor: FPR floor of μ and of the regret.
        adjacency: "add_remove", "add" or "remove".
        names: quantities wanted, each with the rate, ε or prior it is asked at: (("mu", None), ("epsilon", 1e-5), …).
        deepest: smallest TPR (or δ) that has to be resolved, or None for nothing beyond the floor.
        keep: whether whole curves are wanted instead of numbers.
    """

    rtol: float
    fpr_floor: Any
    adjacency: str = "add_remove"
    names: tuple = (("mu", None),)
    deepest: Any = None
    keep: bool = False

    @property
    def kind(self) -> Kind:
        return Kind(self.adjacency, tuple(name for name, _ in self.names), self.keep)

    def take(self, rows, number: int) -> Question:
        """The same question about some of ``number`` settings."""

        def some(value):
            return value if value is None or np.ndim(value) == 0 else np.broadcast_to(value, (number,))[rows]

        names = tuple((name, some(value)) for name, value in self.names)
        return replace(self, fpr_floor=some(self.fpr_floor), deepest=some(self.deepest), names=names)

    def rates(self, number: int) -> Rates:
        """Its rates, one row for each of ``number`` settings."""

        def row(value) -> Any:
            return None if value is None else np.broadcast_to(np.asarray(value, float), (number,))

        def depth(log_rate):
            return None if log_rate is None else -ndtri_exp(log_rate)

        log_floor = np.log(row(self.fpr_floor))
        log_deepest = None if self.deepest is None else np.log(row(self.deepest))
        queries = (0.0 if value is None else value if name in _AS_IS else np.log(value) for name, value in self.names)
        return Rates(log_floor, log_deepest, depth(log_floor), depth(log_deepest), tuple(row(q) for q in queries))


class Kind(NamedTuple):
    """The part of a question that decides the program."""

    adjacency: str
    names: tuple
    keep: bool


class Rates(NamedTuple):
    """The other part, by setting; z are depths in standard deviations, of the floor and of the smallest rate."""

    log_floor: Any
    log_deepest: Any
    z_floor: Any
    z_delta: Any
    queries: tuple
