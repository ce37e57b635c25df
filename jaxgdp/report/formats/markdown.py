"""A report as a Markdown list and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from ..content import Report


def _text(report: Report) -> str:
    return report.to_markdown()


FORMAT = Format("markdown", ".md", _text, order=30)
