"""The registry as a table, for the command line and the reference pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..arguments import ARGUMENTS, filled, of
from .registry import REGISTRY, arguments

_Documented = TypeVar("_Documented", bound=Callable[..., Any])

TITLES = ("quantity", "symbol", "asked at", "unit", "report", "accuracy", "meaning")


def rows() -> list[tuple[str, ...]]:
    """One row for each quantity: name, symbol, argument with its default, unit, safe side, promised
    accuracy, long name and description.
    """
    found = []
    for quantity in REGISTRY.values():
        asked = "" if quantity.argument is None else f"{quantity.argument} = {quantity.default:g}"
        meaning = quantity.description or quantity.long_name
        found.append(
            (
                quantity.name,
                quantity.symbol,
                asked,
                quantity.unit,
                quantity.safe_side,
                quantity.promise,
                meaning,
            )
        )
    return found


def markdown() -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(TITLES) + " |", "|" + "---|" * len(TITLES)]
    for name, *rest in rows():
        cells = [f"`{name}`", *(cell.replace("|", "\\|") for cell in rest)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sections() -> str:
    """A section of Markdown for each quantity: meaning, argument, side, and reading."""
    parts = []
    for quantity in REGISTRY.values():
        facts = [
            f"Symbol {quantity.symbol}"
            + (f", in {quantity.unit}" if quantity.unit == "nats" else "")
        ]
        if quantity.argument is not None:
            facts.append(f"asked at `{quantity.argument}` (default {quantity.default:g})")
        least, largest = quantity.extent
        facts.append(f"between {least:g} and {'∞' if largest == float('inf') else f'{largest:g}'}")
        facts.append(f"report the {quantity.safe_side} side")
        facts.append(quantity.promise)
        heading = quantity.long_name or quantity.name
        meaning = f"\n\n{quantity.description}" if quantity.description else ""
        parts.append(
            f"## `{quantity.name}`\n\n{heading[:1].upper() + heading[1:]}.{meaning}\n\n"
            f"{'; '.join(facts)}."
        )
    return "\n\n".join(parts)


def plain() -> str:
    """The table as text: one line of facts for each quantity and one line with its meaning."""
    table = [row[:-1] for row in (TITLES, *rows())]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    meanings = ["", *(row[-1] for row in rows())]
    lines = []
    for row, meaning in zip(table, meanings, strict=True):
        lines.append(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        lines += [f"    {meaning}"] if meaning else []
    return "\n".join(lines)


def meaning(argument: str) -> str:
    """The meaning of an argument of quantities, with the quantities that take it.

    Example:
        >>> meaning("fpr")
        'FPR of tpr and beta'
    """
    names = " and ".join(each.name for each in REGISTRY.values() if each.argument == argument)
    noun = ARGUMENTS[argument].meaning if argument in ARGUMENTS else argument
    return of(noun, names)


def with_meanings(docstring: str) -> str:
    """A docstring whose line ``{rtol, delta}`` is replaced by what these arguments mean."""
    owned = {name: meaning(name) for name in arguments() if name in ARGUMENTS}
    return filled(docstring, owned)


def documented(function: _Documented) -> _Documented:
    """A function whose docstring names shared arguments in a line ``{rtol, delta}``."""
    if function.__doc__:
        function.__doc__ = with_meanings(function.__doc__)
    return function
