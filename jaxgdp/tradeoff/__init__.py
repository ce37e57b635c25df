"""The certified trade-off curve of a mechanism, kept to be asked as often as one likes.

pair    the dominating pair of an adjacency
build   ``tradeoff``: from a mechanism to its curve
curve   ``TradeoffCurve``: every quantity as a method
asked   how any quantity is asked, by name, with its status
looks   one reading off many curves, by NumPy or compiled
"""

from ..mechanisms.dominating import dominating
from .asked import ContradictionWarning
from .build import tradeoff
from .curve import TradeoffCurve

__all__ = ["ContradictionWarning", "TradeoffCurve", "dominating", "tradeoff"]
