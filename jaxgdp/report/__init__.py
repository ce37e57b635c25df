"""Reports of one mechanism's privacy in the two tiers of Gomez 2025: to read, to publish, to store
and to check.
"""

from ..mechanisms.description import describe
from ..numerics.provenance import comments, provenance, rows_of
from ..numerics.rounding import rounded_outward
from .check import differences, recompute
from .content import CURVE_FPRS, TIER_LIMIT, TPR_FPRS, Report, report

__all__ = [
    "CURVE_FPRS",
    "TIER_LIMIT",
    "TPR_FPRS",
    "Report",
    "comments",
    "describe",
    "differences",
    "provenance",
    "recompute",
    "report",
    "rounded_outward",
    "rows_of",
]
