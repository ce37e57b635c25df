"""The certified curve of a mechanism, for mechanisms that are made from the curve of another.

Both orders are read apart: order 0 is the pair as it is (a record removed), order 1 the swapped
one.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..numerics.shapes import Array
from .composition import Composition

_RTOL = 1e-3  # of the curve of one use
_LEAST_LOG = -690.0
ORDERS = ("remove", "add")


class CertifiedCurve:
    """Both sides of the trade-off curve of an unbatched composition, order by order.

    Args:
        composition: of shape ().

    The entry point that measures is of a later stage of the package: it is fetched by its public
    name when numbers are asked for, and never when a mechanism is built.
    """

    def __init__(self, composition: Composition) -> None:
        measured: Any = importlib.import_module(__name__.partition(".")[0])
        self._curves = [
            measured.tradeoff(composition, rtol=_RTOL, fpr_floor=1e-12, adjacency=order)
            for order in ORDERS
        ]

    def deltas(self, epsilon: Array) -> Array:
        """Upper bounds on δ(ε) at ε ≥ 0, of both orders along the first axis."""
        log_delta = np.stack([np.asarray(c.log_delta(epsilon).upper) for c in self._curves])
        # (what is no double is rounded up to one, but for a loss that is bounded)
        some = log_delta > -np.inf
        return np.where(some, np.exp(np.clip(log_delta, _LEAST_LOG, 0.0)), 0.0)

    def tpr(self, order: int, fpr: Array) -> Array:
        """A TPR that is reached at an FPR."""
        with np.errstate(under="ignore"):
            return np.exp(np.asarray(self._curves[order].log_tpr(fpr).lower))
