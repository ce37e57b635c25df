"""A report as plain Python values, ready for JSON, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bracket import Bracket
from ..quantities.registry import named
from ..spec import renamed
from .alternative import Alternative
from .counted import Counted
from .parts import Part

if TYPE_CHECKING:
    from .content import Report

_GDP = ("is_gdp", "same_mu", "gdp_reason")
_BUDGET = ("share", "rho", "sigma")  # of a part


def _json_number(value: float) -> float | str | None:
    """Finite numbers as they are, infinities as text, NaN as null."""
    if math.isfinite(value):
        return float(value)
    return None if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _json_bracket(bracket: Bracket, side: str = "upper") -> dict:
    lower, upper = map(_json_number, bracket)
    return {"lower": lower, "upper": upper, "report": side}


def _json_row(name: str, argument: float | None, bracket: Bracket) -> dict:
    """A bracket of a quantity, and its argument."""
    at = {} if argument is None else {named(name).argument: argument}
    return at | _json_bracket(bracket, named(name).safe_side)


def _json_field(name: str, value: Bracket | tuple[tuple[float, Bracket], ...]) -> Any:
    """A bracket of a quantity, or the list of several."""
    if isinstance(value, Bracket):
        return _json_row(name, None, value)
    return [_json_row(name, *pair) for pair in value]


def _field_back(each: Field, value: Any) -> Any:
    """The inverse of :func:`_json_field`."""
    if each.metadata["several"]:
        at = named(each.metadata["quantity"]).own_argument
        return tuple((_number_back(row[at]), _bracket_back(row)) for row in value)
    return _bracket_back(value)


def _other_back(row: dict[str, Any]) -> tuple[str, float | None, Bracket]:
    at = named(row["quantity"]).own_argument
    return row["quantity"], None if at is None else _number_back(row[at]), _bracket_back(row)


def _number_back(value: Any) -> float:
    if value is None:
        return math.nan
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number and value not in ("inf", "-inf"):
        raise ValueError(f"must be a number, got {value!r}")
    return float(value)


def _bracket_back(value: Any) -> Bracket:
    return Bracket(*(np.float64(_number_back(value[side])) for side in ("lower", "upper")))


def plain_values(report: Report) -> dict:
    """A report's dictionary: infinities are the text "inf", NaN is ``None``."""
    kept = {
        each.metadata["key"]: _json_field(each.metadata["quantity"], getattr(report, each.name))
        for each in report.certified_fields()
    }
    kept["approximate_mu"] = {"d": report.approximation} | kept["approximate_mu"]
    return {
        "version": report.version,
        **({"date": report.date, "software": report.software} if report.date else {}),
        "question": report.question,
        "title": report.title,
        "neighbours": report.neighbours,
        "mechanism": report.mechanism,
        "adjacency": report.adjacency,
        "rtol": report.rtol,
        "tier": report.tier,
        "status": report.status,
        **({"proven": report.proven} if report.proven else {}),
        "fpr_floor": report.fpr_floor,
        **kept,
        "advantage_fpr": _json_number(report.advantage_fpr),
        "tail_mu": _json_number(report.tail_mu),
        **({} if report.is_gdp is None else {"gdp": {key: getattr(report, key) for key in _GDP}}),
        **_others(report),
        **_of_run(report),
        **({} if report.rho is None else {"rho": report.rho}),
        **({"parts": [_json_part(part) for part in report.parts]} if report.parts else {}),
        **({"counted": [_json_counted(row) for row in report.counted]} if report.counted else {}),
        "command": report.command,
        "spec": report.spec,
    }


def _of_run(report: Report) -> dict[str, Any]:
    """The sampler of a run, and what holds by others."""
    if not report.sampler:
        return {}
    rows = [
        {"sampler": each.sampler, "delta": each.delta}
        | {name: _json_bracket(getattr(each, name)) for name in each.quantities()}
        for each in report.alternatives
    ]
    return {"sampler": report.sampler, "alternatives": rows}


def _json_part(part: Part) -> dict[str, Any]:
    return part._asdict() | {"mu": _json_bracket(part.mu)}


def _json_counted(row: Counted) -> dict[str, Any]:
    without = None if row.without is None else _json_number(row.without)
    return row._asdict() | {"without": without}


def _counted_back(row: dict[str, Any]) -> Counted:
    numbers = (None if row[key] is None else _number_back(row[key]) for key in ("without", "share"))
    return Counted(str(row["what"]), str(row["law"]), *numbers)


def _alternative_back(row: dict[str, Any]) -> Alternative:
    sides = {name: _bracket_back(row[name]) for name in Alternative.quantities()}
    return Alternative(str(row["sampler"]), _number_back(row["delta"]), **sides)


def _part_back(row: dict[str, Any]) -> Part:
    numbers = (None if row[key] is None else _number_back(row[key]) for key in _BUDGET)
    return Part(str(row["name"]), *numbers, _bracket_back(row["mu"]))


def _others(report: Report) -> dict[str, list[dict]]:
    rows = [{"quantity": other[0]} | _json_row(*other) for other in report.others]
    return {"others": rows} if rows else {}


def values_back(kind: type[Report], data: dict) -> dict:
    """The fields of a report from its dictionary; nothing is recomputed.

    Raises:
        ValueError: a key is missing or holds something else; names it.
    """
    if not isinstance(data, dict):
        raise ValueError(f"report must be a table of keys, got {type(data).__name__}")
    certified = {each.metadata["key"]: each for each in kind.certified_fields()}
    brackets = {key: partial(_field_back, each) for key, each in certified.items()}
    found = _required(data, brackets)
    if found["tier"] not in ("I", "II"):
        raise ValueError(f"key 'tier' of the report must be 'I' or 'II', got {found['tier']!r}")
    found |= {each.name: found.pop(key) for key, each in certified.items()}
    return found | _optional(data) | _verdict_back(data.get("gdp", {}))


def _required(data: dict, brackets: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Values of the keys that every report has."""
    texts = ("version", "title", "neighbours", "mechanism", "adjacency", "tier", "status")
    words: dict[str, Any] = dict.fromkeys(texts, str)
    numbers = dict.fromkeys(("rtol", "fpr_floor", "advantage_fpr", "tail_mu"), _number_back)
    readers = words | brackets | numbers | {"spec": lambda data: renamed(dict(data))}
    found = {}
    for key, read in readers.items():
        if key not in data:
            raise ValueError(f"report has no key {key!r}")
        try:
            if read is str and not isinstance(data[key], str):
                raise ValueError(f"must be text, got {data[key]!r}")
            found[key] = read(data[key])
        except (ValueError, TypeError, KeyError) as error:
            reason = f"needs the key {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"key {key!r} of the report: {reason}") from None
    try:
        found["approximation"] = _number_back(data["approximate_mu"]["d"])
    except (ValueError, KeyError):
        raise ValueError("key 'approximate_mu' of the report needs a number d") from None
    return found


def _optional(data: dict) -> dict[str, Any]:
    """Values of the keys that reports of earlier versions, or of other mechanisms, lack."""
    found: dict[str, Any] = {}
    rows = {"others": _other_back, "alternatives": _alternative_back, "parts": _part_back,
            "counted": _counted_back}  # fmt: skip
    for key, read in rows.items():
        try:
            found[key] = tuple(read(row) for row in data.get(key, ()))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"key {key!r} of the report: {error}") from None
    if "rho" in data:
        found["rho"] = _number_back(data["rho"])
    for key, kind in {"date": str, "software": dict, "sampler": str, "proven": str}.items():
        found[key] = data.get(key, kind())
        if not isinstance(found[key], kind):
            raise ValueError(
                f"key {key!r} of the report must be {kind.__name__}, got {found[key]!r}"
            )
    return found


def _verdict_back(gdp: Any) -> dict[str, Any]:
    kinds = {"is_gdp": bool, "same_mu": bool, "gdp_reason": str}
    if not isinstance(gdp, dict) or (
        gdp and not all(isinstance(gdp.get(key), kinds[key]) for key in _GDP)
    ):
        raise ValueError(f"key 'gdp' of the report must hold {', '.join(_GDP)}, got {gdp!r}")
    return {key: gdp[key] for key in _GDP if gdp}
