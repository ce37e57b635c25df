"""A report as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from ..content import Report


def _text(report: Report) -> str:
    return str(report)


FORMAT = Format("text", ".txt", _text, order=10)
