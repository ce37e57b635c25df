"""Calibration: the parameter that provably meets an accepted risk (Kulynych 2024, with certified brackets)."""

from .calibrate import calibrate
from .cost import AdvantageCost, standard_epsilon, worst_case_gap
from .result import Calibration
from .status import STATUS

__all__ = ["STATUS", "AdvantageCost", "Calibration", "calibrate", "standard_epsilon", "worst_case_gap"]
