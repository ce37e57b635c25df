"""A report as one page of PDF."""

from . import Format

FORMAT = Format(
    "pdf",
    ".pdf",
    write=lambda report, path: report.to_pdf(path),
    needs=("matplotlib", "fpdf"),
    order=50,
)
