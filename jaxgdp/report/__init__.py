"""Reports in the two tiers of Gomez 2025: to read, to publish, to store and to check.

settled     the question of a report, checked
build       ``report``: from a mechanism, a description or a run to its report
content     ``Report``: every number, and how to write and store it
alternative what holds of a run with another sampler
parts       a release by its parts, and what ρ alone would have said
strength    how strong the protection is, in a word and a number
statements  the report in a sentence, a paragraph, a model card's block, LaTeX
words       the sentences for readers who are no specialists
text, html, pdf, figure, audience   forms of a report
stored, check   JSON, and a stored report computed again

Names are loaded when they are first used: the command line reads the formats of reports without
loading JAX."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..mechanisms.description import describe
    from ..numerics.provenance import comments, provenance, rows_of
    from ..numerics.rounding import rounded_outward
    from .build import report
    from .check import differences, recompute
    from .content import CURVE_FPRS, TIER_LIMIT, TPR_FPRS, Report

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
    **dict.fromkeys(("CURVE_FPRS", "TIER_LIMIT", "TPR_FPRS", "Report"), ".content"),
    **dict.fromkeys(("differences", "recompute"), ".check"),
    **dict.fromkeys(("comments", "provenance", "rows_of"), "..numerics.provenance"),
    "report": ".build",
    "describe": "..mechanisms.description",
    "rounded_outward": "..numerics.rounding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name], __name__), name)
    return value
