"""Calibration: the parameter that provably meets an accepted risk (Kulynych 2024)."""

from .black_box import BlackBox
from .calibrate import calibrate
from .common_scale import common_scale
from .cost import AdvantageCost, standard_epsilon, worst_case_gap
from .result import Calibration
from .status import STATUS

__all__ = [
    "STATUS",
    "AdvantageCost",
    "BlackBox",
    "Calibration",
    "calibrate",
    "common_scale",
    "standard_epsilon",
    "worst_case_gap",
]
