"""Certified, batched privacy accounting in JAX.

Every number comes as a bracket ``lower ≤ true ≤ upper``: the upper side from a dominating pair, the
lower one from an attack that achieves it.

Names are loaded at their first use (PEP 562), so that accounting for one run does not wait for the
optimiser, for training or for the interfaces of other libraries."""

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
    from .grids.compare_implementations import compare_implementations
    from .grids.compare_samplers import compare_samplers
    from .grids.compare_strategies import compare_strategies
    from .grids.sweep import sweep
    from .measure import Measured, measure
    from .measure.by_name import advantage as advantage
    from .measure.by_name import approximate_mu as approximate_mu
    from .measure.by_name import bayes_risk as bayes_risk
    from .measure.by_name import beta as beta
    from .measure.by_name import delta as delta
    from .measure.by_name import epsilon as epsilon
    from .measure.by_name import mu as mu
    from .measure.by_name import regret as regret
    from .measure.by_name import tpr as tpr
    from .mechanisms import (
        ApproximateDP,
        Composition,
        Deterministic,
        DiscreteGaussian,
        DiscreteLaplace,
        DrawnBatchSize,
        ExponentialMechanism,
        FixedSize,
        FromDensities,
        FromPMFs,
        FromProfile,
        Gaussian,
        GaussianMixture,
        Laplace,
        LastIterate,
        MatrixMechanism,
        NoisyMaximum,
        PartitionSelection,
        PureDP,
        RandomAllocation,
        RandomizedResponse,
        Selected,
        Shuffled,
        ShuffledReports,
        SparseVector,
        SubsampledGaussian,
        SubsampledLaplace,
        ThresholdedGaussian,
        ThresholdedLaplace,
        TruncatedPoisson,
        compose,
        dpsgd,
        group_privacy,
        histogram,
        last_iterate,
    )
    from .optimization import Optimized, optimize
    from .proof import Proof, prove
    from .report import Report, report
    from .run_settings import Run, run
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
    "DrawnBatchSize",
    "ExponentialMechanism",
    "FixedSize",
    "FromDensities",
    "FromPMFs",
    "FromProfile",
    "Gaussian",
    "GaussianMixture",
    "Laplace",
    "LastIterate",
    "MatrixMechanism",
    "Measured",
    "Optimized",
    "NoisyMaximum",
    "PartitionSelection",
    "Proof",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "Report",
    "Run",
    "Selected",
    "Shuffled",
    "ShuffledReports",
    "SparseVector",
    "SubsampledGaussian",
    "SubsampledLaplace",
    "ThresholdedGaussian",
    "ThresholdedLaplace",
    "TradeoffCurve",
    "TruncatedPoisson",
    "__version__",
    "audit",
    "bridge",
    "calibrate",
    "compare_implementations",
    "compare_samplers",
    "compare_strategies",
    "compose",
    "conversions",
    "deployments",
    "differentiable",
    "dpsgd",
    "gdp",
    "group_privacy",
    "histogram",
    "last_iterate",
    "measure",
    "optimize",
    "prove",
    "report",
    "run",
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
    "compare_implementations": "grids.compare_implementations",
    "compare_samplers": "grids.compare_samplers",
    "compare_strategies": "grids.compare_strategies",
    "Measured": "measure",
    "measure": "measure",
    "Optimized": "optimization",
    "optimize": "optimization",
    "Proof": "proof",
    "prove": "proof",
    "Report": "report",
    "report": "report",
    "Run": "run_settings",
    "run": "run_settings",
    "sweep": "grids.sweep",
    "TradeoffCurve": "tradeoff",
    "tradeoff": "tradeoff",
}
# modules and folders of the package that are reached as attributes
_MODULES = frozenset(
    (
        "accounting adjacency arguments audit bracket bridge calibration cli comparison conversions"
        " deployments deprecation differentiable explore gdp grids interop landscape mechanisms"
        " numerics optimization options pairs participation plot progress proof quantities"
        " reproduce runs samplers scale spec targets training vocabulary"
    ).split()
)
# modules that have moved: old place → new one
_MOVED = {
    "comparison": "grids.compare_samplers",
    "landscape": "grids.landscape",
    "sweep": "grids.sweep",
}


def _quantities() -> tuple[str, ...]:
    """Names of the functions of one quantity; quantities can be registered once they are loaded."""
    loaded = sys.modules.get(__name__ + ".quantities.registry")
    if loaded is not None:
        return tuple(loaded.REGISTRY)
    return (
        "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk",
        "approximate_mu",
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES or (name in __all__ and name not in _MODULES):
        home = importlib.import_module("." + _HOMES.get(name, "mechanisms"), __name__)
        value = globals()[name] = getattr(home, name)
        return value
    if name == "runs":
        return importlib.import_module(".mechanisms.runs", __name__)
    if name in _MODULES:
        return importlib.import_module("." + _MOVED.get(name, name), __name__)
    if not name.startswith("_") and name in _quantities():
        return getattr(importlib.import_module(".measure.by_name", __name__), name)
    hint = ""
    if not name.startswith("_"):
        from .vocabulary import did_you_mean

        hint = did_you_mean(name, __dir__())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES, *_quantities()})


class _Package(types.ModuleType):
    """``jaxgdp.measure`` stays the function where the import system would set the module."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, types.ModuleType):
            return
        super().__setattr__(name, value)


class _Moved:
    """Finds modules at their old places, such as ``jaxgdp.landscape``, and warns."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        old = name.removeprefix(__name__ + ".")
        if name == old or old not in _MOVED:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Moved)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> types.ModuleType:
        from .deprecation import warn

        new = _MOVED[spec.name.removeprefix(__name__ + ".")]
        warn(f"the module {spec.name}", f"{__name__}.{new}")
        module = importlib.import_module("." + new, __name__)
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        """Nothing is run: the module keeps the specification of its new place."""
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


sys.modules[__name__].__class__ = _Package
sys.meta_path.append(_Moved)  # type: ignore[arg-type]
