"""The provenance in every data file: version, date, question and arguments."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from .._version import __version__


def today() -> str:
    """The date in UTC, as YYYY-MM-DD.

    Example:
        >>> len(today())
        10
    """
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def provenance(question: str, fpr_floor: Any = None, **asked: Any) -> dict:
    """Version, date, question, FPR floor and other arguments, ready for JSON or attributes.

    Args:
        question: what the numbers answer, in words.
        fpr_floor: of μ, a number, a number for each of several parts, or None where nothing depends
            on one ("none").
        **asked: more of the kind.

    Example:
        >>> list(provenance("mu of a run", 1e-10, rtol=1e-3))
        ['version', 'date', 'question', 'fpr_floor', 'rtol']
    """
    told = {"version": __version__, "date": today(), "question": question}
    return told | {"fpr_floor": "none" if fpr_floor is None else fpr_floor} | asked


def comments(told: dict) -> str:
    """The same as lines that begin with "#", to stand above the header of a CSV file.

    Example:
        >>> comments({"rtol": 0.001})
        '# rtol: 0.001\\n'
    """
    return "".join(f"# {name}: {' '.join(str(value).split())}\n" for name, value in told.items())


def rows_of(path: str | Path) -> list[str]:
    """The lines of a CSV file without its comments (pandas reads it with ``comment="#"``)."""
    with open(path, newline="", encoding="utf-8") as file:
        return [line for line in file if not line.startswith("#")]
