"""Certified, batched privacy accounting in JAX.

Every number comes as a bracket ``lower ≤ true ≤ upper``: the upper side from a dominating pair, the lower one from an
attack that achieves it.
"""

from . import conversions, deployments, differentiable, gdp, spec, targets, training
from ._version import __version__
from .bracket import Bracket
from .calibration import BlackBox, Calibration, calibrate
from .measure import Measured, measure
from .mechanisms import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FromDensities,
    FromPMFs,
    FromProfile,
    Gaussian,
    Laplace,
    PureDP,
    RandomizedResponse,
    SubsampledGaussian,
    SubsampledLaplace,
    compose,
    dpsgd,
)
from .optimization import Optimized, optimize
from .report import Report, report
from .sweep import sweep
from .tradeoff import TradeoffCurve, tradeoff

__all__ = [
    "ApproximateDP",
    "BlackBox",
    "Bracket",
    "Calibration",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FromDensities",
    "FromPMFs",
    "FromProfile",
    "Gaussian",
    "Laplace",
    "Measured",
    "Optimized",
    "PureDP",
    "RandomizedResponse",
    "Report",
    "SubsampledGaussian",
    "SubsampledLaplace",
    "TradeoffCurve",
    "__version__",
    "calibrate",
    "compose",
    "conversions",
    "deployments",
    "differentiable",
    "dpsgd",
    "gdp",
    "measure",
    "optimize",
    "report",
    "spec",
    "sweep",
    "targets",
    "tradeoff",
    "training",
]
