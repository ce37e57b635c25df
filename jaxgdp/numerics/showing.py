"""Results in one line and as tables, for ``repr`` and notebooks; sides are rounded outward."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from .rounding import rounded_outward

_SHOWN = 4  # numbers of an array that a line shows
MOST_ROWS = 24  # of a table


def _numbers(value: object) -> np.ndarray | None:
    """An array of floats, or None where there are no numbers yet, as in what JAX traces."""
    try:
        return np.asarray(value, float)
    except Exception:  # whatever a traced value raises: a repr must not
        return None


def short(value: object, digits: int = 6) -> str:
    """A number, the numbers of a short array, or shape and range of a long one.

    Example:
        >>> short(0.5), short([1.0, 2.0]), short(range(100))
        ('0.5', '[1, 2]', '<shape (100,), 0 to 99>')
    """
    array = _numbers(value)
    if array is None:
        return f"<{type(value).__name__}>"
    if array.ndim == 0:
        return f"{float(array):.{digits}g}"
    if array.ndim == 1 and array.size <= _SHOWN:
        return "[" + ", ".join(f"{x:.{digits}g}" for x in array) + "]"
    ends = f", {np.min(array):.{digits}g} to {np.max(array):.{digits}g}" if array.size else ""
    return f"<shape {array.shape}{ends}>"


def sides(bracket: Iterable[object], digits: int = 6) -> str:
    """Both sides of a bracket, rounded outward; of many brackets, all that they cover.

    Example:
        >>> sides((0.1234567, 0.1234569))
        '[0.123456, 0.123457]'
        >>> sides(([0.25, 0.5], [0.5, 0.75]))
        '<shape (2,), 0.25 to 0.75>'
    """
    low, high = (_numbers(side) for side in bracket)
    if low is None or high is None or not low.size:
        return "<no numbers>"
    first = rounded_outward(float(np.min(low)), up=False, digits=digits)
    last = rounded_outward(float(np.max(high)), up=True, digits=digits)
    return f"[{first}, {last}]" if low.ndim == 0 else f"<shape {low.shape}, {first} to {last}>"


def cells(low: float, high: float) -> tuple[str, str]:
    """Both sides for a table, rounded outward."""
    return rounded_outward(float(low), up=False), rounded_outward(float(high), up=True)


def html_table(caption: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table for notebooks; what goes beyond ``MOST_ROWS`` rows is counted.

    Example:
        >>> html_table("a < b", ["x"], [["1"]])
        '<table><caption>a &lt; b</caption><thead><tr><th>x</th></tr></thead><tbody><tr><td>1...'
    """
    rows = list(rows)
    more = f" ({len(rows) - MOST_ROWS} more rows)" if len(rows) > MOST_ROWS else ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(x))}</td>" for x in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    return (
        f"<table><caption>{escape(caption)}{more}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
