"""A stored report, computed again from its own description and compared number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .. import spec
from .build import report
from .content import Report

_SAME = 1e-6  # relative; the method is the same, only rounding may differ between machines


def recompute(stored: Report) -> Report:
    """The report of the description that a stored report carries.

    Raises:
        ValueError: the description is not valid.
    """
    return report(spec.from_dict(stored.spec, "spec of the report"))


def _walk(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name, leaf) of everything in a report's dictionary."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        yield f"{name}.length", len(value)
        for position, inner in enumerate(value):
            yield from _walk(inner, f"{name}[{position}]")
    else:
        yield name, value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or math.isclose(a, b, rel_tol=_SAME, abs_tol=1e-15)
    return a == b


def differences(stored: Report, fresh: Report) -> list[str]:
    """What differs between a stored report and a fresh one; version, date, software do not count.

    Args:
        stored, fresh: two reports.

    Returns:
        One line for each difference: empty if every number agrees to 1e-6 relative and everything
        else exactly.

    Example:
        >>> import dataclasses
        >>> import jaxgdp
        >>> fresh = jaxgdp.report(jaxgdp.Gaussian(2.0))
        >>> differences(dataclasses.replace(fresh, tier="II"), fresh)
        ["tier: stored 'II', computed 'I'"]
    """
    old, new = dict(_walk(stored.to_dict())), dict(_walk(fresh.to_dict()))
    told_of_the_computation = ("version", "date", "software.", "proven")
    old, new = (
        {key: value for key, value in side.items() if not key.startswith(told_of_the_computation)}
        for side in (old, new)
    )
    if stored.is_gdp is None:  # (of a version that did not say)
        new = {key: value for key, value in new.items() if not key.startswith("gdp.")}
    if stored.rho is None:
        new.pop("rho", None)
    missing = object()
    shown = lambda value: "nothing" if value is missing else repr(value)
    pairs = [(key, old.get(key, missing), new.get(key, missing)) for key in {**old, **new}]
    return [
        f"{key}: stored {shown(a)}, computed {shown(b)}" for key, a, b in pairs if not _equal(a, b)
    ]
