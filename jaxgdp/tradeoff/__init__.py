"""The certified trade-off curve of a mechanism, kept for any number of evaluations.

pair      the dominating pair of an adjacency
build     ``tradeoff``: from a mechanism to its curve
curve     ``TradeoffCurve``: every quantity as a method
queries   how any quantity is asked, by name, with its status
readings  one reading off many curves, by NumPy or compiled
"""

from ..mechanisms.dominating import dominating
from .build import tradeoff
from .curve import TradeoffCurve
from .queries import ContradictionWarning

__all__ = ["ContradictionWarning", "TradeoffCurve", "dominating", "tradeoff"]
