"""What a calibration can aim at: one dataclass for each kind of accepted risk, scalars or
arrays.
"""

from ..vocabulary import did_you_mean
from .base import Target
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
    "Regret",
    "Target",
]

_OTHERS = {"Epsilon": "EpsilonDelta", "Delta": "OfQuantity", "Beta": "FNR", "GDP": "Mu"}


def __getattr__(name: str) -> type[Target]:
    close = _OTHERS.get(name)
    hint = f"; did you mean {close!r}?" if close else did_you_mean(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
