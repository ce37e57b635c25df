"""Entries of OpenDP's registry of deployments, read with brackets and written from reports.

:func:`read` turns an entry's (ε, δ), ρ or ε into brackets of μ, advantage and TPR, names what is
assumed, and lists where its numbers disagree with each other; ``jaxgdp.report(…).to_registry(…)``
gives an entry that fits the schema; :func:`problems` lists what does not fit."""

from __future__ import annotations

from typing import Any

from ...deprecation import warn
from .claims import Printed, StatedGuarantee
from .entry import Entry, from_dict, read
from .files import dump, load
from .schema import REQUIRED, SCHEMA, STATUSES, VARIANTS, Leaf, leaves, problems
from .write import from_report

__all__ = [
    "REQUIRED",
    "SCHEMA",
    "STATUSES",
    "VARIANTS",
    "Entry",
    "Leaf",
    "Printed",
    "StatedGuarantee",
    "dump",
    "from_dict",
    "from_report",
    "leaves",
    "load",
    "problems",
    "read",
]

_OLD = {"RECORD": "SCHEMA", "Record": "Entry", "Claim": "StatedGuarantee"}


def __getattr__(name: str) -> Any:
    if name in _OLD:
        warn(f"jaxgdp.interop.registry.{name}", f"jaxgdp.interop.registry.{_OLD[name]}")
        return globals()[_OLD[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
