"""Certified, batched privacy accounting in JAX.

Every number comes as a bracket ``lower ≤ true ≤ upper``: the upper side from a dominating pair, the
lower one from an attack that achieves it.

Names are loaded when they are first asked for (PEP 562): who accounts for one run does not wait for
the optimiser, for training or for other libraries' interfaces."""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import (
        audit,
        bridge,
        conversions,
        deployments,
        differentiable,
        gdp,
        spec,
        targets,
        training,
    )
    from .bracket import Bracket
    from .calibration import BlackBox, Calibration, calibrate
    from .grids.compare_samplers import compare_samplers
    from .grids.sweep import sweep
    from .measure import Measured, measure
    from .mechanisms import (
        ApproximateDP,
        Composition,
        Deterministic,
        DiscreteGaussian,
        DiscreteLaplace,
        ExponentialMechanism,
        FixedSize,
        FromDensities,
        FromPMFs,
        FromProfile,
        Gaussian,
        Laplace,
        PureDP,
        RandomAllocation,
        RandomizedResponse,
        Shuffled,
        SubsampledGaussian,
        SubsampledLaplace,
        TruncatedPoisson,
        compose,
        dpsgd,
    )
    from .optimization import Optimized, optimize
    from .report import Report, report
    from .tradeoff import TradeoffCurve, tradeoff

__all__ = [
    "ApproximateDP",
    "BlackBox",
    "Bracket",
    "Calibration",
    "Composition",
    "Deterministic",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FixedSize",
    "FromDensities",
    "FromPMFs",
    "FromProfile",
    "Gaussian",
    "Laplace",
    "Measured",
    "Optimized",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "Report",
    "Shuffled",
    "SubsampledGaussian",
    "SubsampledLaplace",
    "TradeoffCurve",
    "TruncatedPoisson",
    "__version__",
    "audit",
    "bridge",
    "calibrate",
    "compare_samplers",
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

# public name → the module that defines it; every other public name is a module itself or one of the
# mechanisms
_HOMES = {
    "Bracket": "bracket",
    "BlackBox": "calibration",
    "Calibration": "calibration",
    "calibrate": "calibration",
    "compare_samplers": "grids.compare_samplers",
    "Measured": "measure",
    "measure": "measure",
    "Optimized": "optimization",
    "optimize": "optimization",
    "Report": "report",
    "report": "report",
    "sweep": "grids.sweep",
    "TradeoffCurve": "tradeoff",
    "tradeoff": "tradeoff",
}
# modules and folders of the package that are reached as attributes; those that lie elsewhere than
# their name says, with their place
_MODULES = frozenset(
    "accounting audit bracket bridge calibration conversions deployments differentiable gdp grids interop landscape mechanisms"
    " numerics optimization options pairs plot quantities reproduce samplers scale spec targets training".split()
)
_PLACES = {"landscape": "grids.landscape"}


def __getattr__(name: str) -> Any:
    if name in _HOMES or (name in __all__ and name not in _MODULES):
        home = importlib.import_module("." + _HOMES.get(name, "mechanisms"), __name__)
        value = globals()[name] = getattr(home, name)
        return value
    if name in _MODULES:
        return importlib.import_module("." + _PLACES.get(name, name), __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


class _Package(types.ModuleType):
    """``jaxgdp.measure`` is the function, not the module of that name that the import system would
    set in its place.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, types.ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
