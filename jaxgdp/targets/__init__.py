"""Targets of a calibration: one dataclass for each kind of accepted risk, scalars or arrays.

A new target is one new file of this folder: a subclass of :class:`Target` that names its
``option``.
"""

import importlib
import pkgutil

from ..vocabulary import did_you_mean
from .base import REGISTRY, Target
from .curve import ApproximateMu, Mu, Regret
from .of_quantity import OfQuantity
from .profile import Advantage, BayesRisk, EpsilonDelta
from .rates import FNR, TPR, Accuracy, AttackSuccess, Precision

__all__ = [
    "FNR",
    "TPR",
    "Accuracy",
    "Advantage",
    "ApproximateMu",
    "AttackSuccess",
    "BayesRisk",
    "EpsilonDelta",
    "Mu",
    "OfQuantity",
    "Precision",
    "REGISTRY",
    "Regret",
    "Target",
]

_OTHERS = {"Epsilon": "EpsilonDelta", "Delta": "OfQuantity", "Beta": "FNR", "GDP": "Mu"}


def __getattr__(name: str) -> type[Target]:
    close = _OTHERS.get(name)
    hint = f"; did you mean {close!r}?" if close else did_you_mean(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")
