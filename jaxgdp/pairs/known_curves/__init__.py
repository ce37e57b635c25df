"""Trade-off curves of one use that are known in closed form, with certified sides: what a mechanism
answers if it is asked for its ``known_curve``.
"""

from .base import KnownCurve, OrientedCurve, Rates, Tests, reciprocal
from .between import BetweenCurve
from .bounded_range import BoundedRangeCurve
from .composed import composed, number_of_outputs
from .finite import FiniteCurve
from .gaussian import GaussianCurve
from .laplace import LaplaceCurve
from .mixture import mixture_curve
from .sampled import SampledCurve
from .shifts import ShiftsCurve

__all__ = [
    "BetweenCurve",
    "BoundedRangeCurve",
    "FiniteCurve",
    "GaussianCurve",
    "KnownCurve",
    "LaplaceCurve",
    "OrientedCurve",
    "Rates",
    "SampledCurve",
    "ShiftsCurve",
    "Tests",
    "composed",
    "mixture_curve",
    "number_of_outputs",
    "reciprocal",
]
