"""A report as one page of PDF: the HTML page's content, vector figures, the description."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arguments import greek
from ..numerics.optional import missing
from . import strength, words
from .counted import not_counted
from .counted import rows as counted_rows
from .figure import PANELS, svgs
from .html import assumptions, description, short_rows, software, statement_of
from .text import curve_rows, part_rows, publish_line, rho_line, rows

if TYPE_CHECKING:
    from .content import Report

_MARGIN, _WIDTH = 12.0, 186.0  # of A4, mm
_GAP = 6.0
_BAR = 90.0  # length of the bar of an attacker's success
_SIZES = (7.6, 7.0, 6.4, 6.1)  # of type, in points: the first that fits one page, else the last


def _library():
    try:
        import fpdf
        import matplotlib as mpl
    except ImportError:
        raise missing("reports in PDF need matplotlib and fpdf2", "report") from None
    return fpdf, Path(mpl.get_data_path()) / "fonts" / "ttf"


class _Sheet:
    """Blocks of text, one below the other."""

    def __init__(self, report: Report, size: float):
        fpdf, fonts = _library()
        self.pdf, self.size, self.line = fpdf.FPDF(format="A4"), size, 0.45 * size
        self.pdf.set_margin(_MARGIN)
        self.pdf.set_auto_page_break(True, _MARGIN)
        for style, file in (("", "DejaVuSans"), ("B", "DejaVuSans-Bold")):
            self.pdf.add_font("text", style, fonts / f"{file}.ttf")
        self.pdf.add_font("code", "", fonts / "DejaVuSansMono.ttf")
        self.pdf.set_title(f"{report.title or 'Mechanism'}: privacy report")
        self.pdf.set_subject(f"{report.question}; FPR floor {report.fpr_floor:g}")
        self.pdf.set_lang("en")
        self.pdf.set_creator(f"jaxgdp {report.version}")
        self.pdf.add_page()

    def write(
        self, text: str, *, style: str = "", scale: float = 1.0, family: str = "text"
    ) -> None:
        self.pdf.set_font(family, style, self.size * scale)
        self.pdf.multi_cell(
            _WIDTH, self.line * scale, text, align="L", new_x="LMARGIN", new_y="NEXT"
        )

    def bar(self, right: float) -> None:
        """An attacker's success from 0 to 100, with guessing at 50."""
        unit, height = 0.01 * _BAR, 0.8 * self.line
        left, top = self.pdf.get_x() + 1.0, self.pdf.get_y() + self.line
        place = lambda x: left + x * unit
        self.pdf.set_draw_color(90)
        for fill, start, end in (
            ((255, 255, 255), 0.0, 100.0),
            ((208, 208, 208), 0.0, 50.0),
            ((213, 94, 0), 50.0, right),
        ):
            self.pdf.set_fill_color(*fill)
            self.pdf.rect(place(start), top, (end - start) * unit, height, style="DF")
        self.pdf.set_font("text", "", 0.9 * self.size)
        for x, text, align in (
            (48.0, "guessing 50", "R"),
            (max(right, 52.0), f"at most {right:g}", "L"),
        ):
            wide = 0.4 * _BAR
            self.pdf.set_xy(place(x) - (wide if align == "R" else 0.0), top - self.line)
            self.pdf.cell(wide, self.line, text, align=align)
        for x in (0.0, 50.0, 100.0):
            self.pdf.set_xy(place(x) - 5.0, top + height)
            self.pdf.cell(10.0, 0.9 * self.line, f"{x:g}", align="C")
        self.pdf.set_fill_color(0)  # (figures have letters of this colour)
        self.pdf.set_draw_color(0)
        self.pdf.set_xy(_MARGIN, top + height + self.line)

    def named(self, name: str, text: str) -> None:
        """A paragraph that begins with a word in bold."""
        self.pdf.set_font("text", "B", self.size)
        self.pdf.write(self.line, name + " ")
        self.pdf.set_font("text", "", self.size)
        self.pdf.write(self.line, text + "\n")

    def heading(self, text: str) -> None:
        self.pdf.ln(0.55 * self.line)
        self.pdf.start_section(text)
        self.write(text, style="B", scale=1.25)

    def figures(self, drawn: list[str], told: str) -> None:
        """Both panels side by side, each above its caption."""
        width = 0.28 * _WIDTH
        top, left = self.pdf.get_y(), _MARGIN + (0.5 * _WIDTH - width) / 2
        height = width * 4.2 / 4.6
        for number, (svg, (_, caption)) in enumerate(zip(drawn, PANELS, strict=True)):
            x = left + number * 0.5 * _WIDTH
            place = {"x": x, "y": top, "w": width, "h": height}
            self.pdf.image(io.BytesIO(svg.encode()), **place, alt_text=f"{caption} {told}")
            self.pdf.set_xy(_MARGIN + number * 0.5 * _WIDTH + 0.5 * _GAP, top + height + 0.5)
            self.pdf.set_font("text", "", 0.9 * self.size)
            self.pdf.multi_cell(0.5 * _WIDTH - _GAP, 0.9 * self.line, caption, align="C")
        self.pdf.set_x(_MARGIN)

    def table(self, title: str, body: list[tuple[str, str, str, str]]) -> None:
        """Rows of (name, lower, upper, side to report), in two columns."""
        half = (len(body) + 1) // 2
        for start in range(half):
            for column, row in enumerate(body[start::half]):
                self._cells(row, _MARGIN + column * (0.5 * _WIDTH + 0.5 * _GAP))
            self.pdf.ln(self.line)
        self.write(title, scale=0.9)

    def columns(self, body: list[tuple[str, str]]) -> None:
        """Names and values, in two columns."""
        half = (len(body) + 1) // 2
        for start in range(half):
            for column, (name, value) in enumerate(body[start::half]):
                self.pdf.set_x(_MARGIN + column * (0.5 * _WIDTH + 0.5 * _GAP))
                for text, share, style in ((name, 0.75, ""), (value, 0.25, "B")):
                    self.pdf.set_font("text", style, self.size)
                    self.pdf.cell(share * 0.5 * (_WIDTH - _GAP), self.line, text)
            self.pdf.ln(self.line)

    def _cells(self, row: tuple[str, str, str, str], x: float) -> None:
        name, low, high, side = row
        wide = 0.5 * (_WIDTH - _GAP)
        self.pdf.set_x(x)
        for text, share, bold in (
            (greek(name), 0.54, False),
            (low, 0.23, side == "lower"),
            (high, 0.23, side == "upper"),
        ):
            self.pdf.set_font("text", "B" if bold else "", self.size)
            self.pdf.cell(share * wide, self.line, text)


def _laid_out(report: Report, drawn: list[str], size: float) -> Any:
    sheet = _Sheet(report, size)
    sheet.write(report.title or "Privacy report", style="B", scale=1.8)
    date = f" on {report.date}" if report.date else ""
    sheet.write(
        f"Privacy report, computed{date} by {software(report)}. Question: {report.question}.",
        scale=0.9,
    )
    sheet.heading("How strong the protection is")
    sheet.write(strength.sentence(report), style="B", scale=1.2)
    sheet.bar(float(strength.success(float(report.advantage.upper))))
    for sentence in (*words.otherwise(report), *words.verdict(report)):
        sheet.write(sentence, scale=1.1)
    sheet.named("To publish:", statement_of(report))
    sheet.heading("The trade-off curve")
    sheet.figures(drawn, description(report))
    sheet.heading("In numbers: at most; three digits, rounded up")
    sheet.columns([(greek(name), value) for name, value in short_rows(report)])
    if report.parts:
        sheet.write("Parts (name, share, ρ, σ, μ): " + "; ".join(map(", ".join, part_rows(report))))
    if counted := counted_rows(report.counted):
        told = "; ".join(map(", ".join, counted))
        sheet.write(f"Counted (what, law, μ without it, share of μ): {told}")
    if report.rho is not None:
        sheet.write(rho_line(report) + ".")
    sheet.write(f"Accuracy: {words.accuracy(report)}.", scale=0.9)
    sheet.heading("All numbers: lower and upper side")
    sheet.write(f"{words.tier(report)} {greek(publish_line(report))}.", scale=0.9)
    sheet.table(
        "Each number lies between its two sides; the one in bold is safe to publish.", rows(report)
    )
    if report.fnrs:
        sheet.table("The curve itself: least FNR at each FPR.", curve_rows(report))
    sheet.heading("What is assumed")
    for name, text in assumptions(report):
        sheet.named(f"{name}:", text)
    sheet.heading("What is not counted")
    for text in not_counted(report):
        sheet.write(f"– {text}")
    sheet.heading("What the words mean")
    for name, text in words.definitions(report):
        sheet.named(f"{name}:", text)
    sheet.heading("How to check it")
    sheet.write(
        "Compute every number again (spec.json, the mechanism with all settings, is attached to"
        " this file):"
    )
    sheet.write(report.command, family="code")
    sheet.pdf.embed_file(
        basename="spec.json",
        bytes=json.dumps(report.spec, allow_nan=False).encode(),
        mime_type="application/json",
    )
    return sheet.pdf


def write(report: Report, path: str | Path) -> None:
    """Write the PDF file of a report.

    Raises:
        ImportError: matplotlib or fpdf2 is missing (the ``report`` extra).
    """
    _library()
    drawn = svgs(report, "path")
    for size in _SIZES:
        sheet = _laid_out(report, drawn, size)
        if sheet.page == 1 or size == _SIZES[-1]:
            sheet.output(str(path))
            return
        for font in sheet.fonts.values():  # (files stay open until a sheet is written)
            font.ttfont.close()
