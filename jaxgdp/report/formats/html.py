"""A report as one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from ..content import Report


def _text(report: Report) -> str:
    return report.to_html()


FORMAT = Format("html", ".html", _text, needs=("matplotlib",), order=40)
