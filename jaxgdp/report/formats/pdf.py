"""A report as one page of PDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from pathlib import Path

    from ..content import Report


def _write(report: Report, path: Path) -> None:
    report.to_pdf(path)


FORMAT = Format("pdf", ".pdf", write=_write, needs=("matplotlib", "fpdf"), order=50)
