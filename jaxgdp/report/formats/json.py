"""A report as JSON, from which it can be read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from ..content import Report


def _text(report: Report) -> str:
    return report.to_json()


FORMAT = Format("json", ".json", _text, order=20)
