"""Reports in the two tiers of Gomez 2025: to read, to publish, to store and to check.

Names are loaded when they are first used: the command line reads the formats of reports without
loading JAX."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    **dict.fromkeys(("CURVE_FPRS", "TIER_LIMIT", "TPR_FPRS", "Report", "report"), ".content"),
    **dict.fromkeys(("differences", "recompute"), ".check"),
    **dict.fromkeys(("comments", "provenance", "rows_of"), "..numerics.provenance"),
    "describe": "..mechanisms.description",
    "rounded_outward": "..numerics.rounding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name], __name__), name)
    return value
