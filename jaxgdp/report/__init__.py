"""Reports of one mechanism's privacy in the two tiers of Gomez 2025: to read, to publish, to store and to check."""

from ..numerics.rounding import rounded_outward
from .check import differences, recompute
from .content import CURVE_FPRS, TIER_LIMIT, TPR_FPRS, Report, report
from .text import describe

__all__ = [
    "CURVE_FPRS",
    "TIER_LIMIT",
    "TPR_FPRS",
    "Report",
    "describe",
    "differences",
    "recompute",
    "report",
    "rounded_outward",
]
