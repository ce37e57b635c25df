"""What a calibration can aim at: one dataclass for each kind of accepted risk, scalars or
arrays.
"""

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
