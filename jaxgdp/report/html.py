"""A report as one HTML page: no network, no scripts; for screen readers, zoom and paper."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from ..arguments import greek
from . import words
from .figure import PANELS, svgs
from .text import curve_rows, rows, statement

if TYPE_CHECKING:
    from .content import Report

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 1rem/1.45 system-ui, "Segoe UI", Helvetica, Arial, sans-serif;
  color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 1.4rem 0 .4rem; border-bottom: 1px solid #8a8a8a; }
p, ul, dl { margin: .4rem 0; }
ul { padding-left: 1.2rem; }
.verdict { border-left: .35rem solid #0072b2; padding: .2rem 0 .2rem .8rem; font-size: 1.1rem; }
.small { font-size: .9rem; color: #444; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { flex: 1 1 18rem; max-width: 27rem; margin: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; color: #444; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: .9rem; color: #444; }
th, td { text-align: left; padding: .15rem .5rem .15rem 0; border-bottom: 1px solid #c8c8c8;
  vertical-align: top; }
thead th { border-bottom: 2px solid #1a1a1a; }
tbody th { font-weight: 400; }
td { white-space: nowrap; }
td.safe { font-weight: 700; }
dt { font-weight: 700; }
dd { margin: 0 0 .3rem 1rem; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9rem; }
pre { white-space: pre-wrap; background: #f2f2f2; padding: .5rem; margin: .3rem 0; }
a { color: #00518a; }
a:focus-visible { outline: 3px solid #d55e00; }
@media print {
  @page { size: A4; margin: 11mm; }
  body { font-size: 7.6pt; line-height: 1.25; max-width: none; padding: 0; }
  h1 { font-size: 13pt; } h2 { font-size: 9.5pt; margin: .5rem 0 .15rem; break-after: avoid; }
  p, ul, dl { margin: .12rem 0; }
  .verdict { font-size: 9pt; } .small, figcaption, caption, code, pre { font-size: 7pt; }
  figure { max-width: 56mm; flex-basis: 50mm; } dt, dd { display: inline; margin: 0; }
  .figures { justify-content: space-around; }
  .columns { columns: 2; column-gap: 8mm; } .columns h2:first-child { margin-top: 0; }
  th, td { padding: 0 .5rem 0 0; } section, tr, figure, dt { break-inside: avoid; }
  pre { background: none; border: 1px solid #8a8a8a; padding: .2rem; }
}
"""


def description(report: Report) -> str:
    """A description of the figures, for readers who cannot see them."""
    tprs = [row[:3] for row in rows(report) if row[0].startswith("TPR at FPR")]
    told = "; ".join(f"{name} from {low} to {high}" for name, low, high in tprs)
    return f"Certified trade-off curve as a band. {told}."


def _labelled(svg: str, number: int, title: str, told: str) -> str:
    """An SVG element with a name, a description and no fixed size."""
    start, rest = svg.split(">", 1)
    start = re.sub(r'\s(width|height)="[^"]*"', "", start)
    names = f' role="img" aria-labelledby="figure{number}-title figure{number}-description"'
    inside = f'<title id="figure{number}-title">{escape(title)}</title>'
    inside += f'<desc id="figure{number}-description">{escape(told)}</desc>'
    # (each figure numbers its parts from one)
    rest = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>f{number}-", rest)
    return f"{start}{names}>{inside}{rest}"


def _table(caption: str, titles: Iterable[str], body: Iterable[tuple[str, str, str, str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    lines = []
    for name, low, high, side in body:
        marks = {"lower": "", "upper": "", side: ' class="safe"'}
        lines.append(
            f'<tr><th scope="row">{escape(greek(name))}</th><td{marks["lower"]}>{low}</td>'
            f"<td{marks['upper']}>{high}</td></tr>"
        )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _tables(report: Report) -> str:
    caption = "Each number lies between the two; the one in bold is safe to publish."
    tables = _table(caption, ("quantity", "lower", "upper"), rows(report))
    if report.fnrs:
        caption, titles = "The curve itself: least FNR at each FPR.", ("trade-off curve",)
        tables += _table(caption, (*titles, "lower", "upper"), curve_rows(report))
    return tables


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def assumptions(report: Report) -> list[tuple[str, str]]:
    """The assumptions behind the numbers, by name."""
    return [
        ("Mechanism", report.mechanism),
        ("Sampling", words.sampling(report.spec)),
        ("Adjacency", words.adjacency(report)),
        ("Unit of privacy", words.unit(report)),
        ("Attacker", words.ATTACKER),
    ]


def software(report: Report) -> str:
    """Versions of what computed it, in one line."""
    versions = report.software or {"jaxgdp": report.version}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def fragment(report: Report) -> str:
    """The form in notebooks: the verdict, the sentence to publish, and the numbers."""
    told = [*words.verdict(report), f"To publish: {greek(statement(report))}."]
    title = escape(report.title or report.mechanism)
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in told)
    return f"<section><h3>{title}</h3>{paragraphs}{_tables(report)}</section>"


def page(report: Report) -> str:
    """The whole page.

    Raises:
        ImportError: matplotlib is missing (the ``report`` extra).
    """
    title = report.title or "Privacy report"
    told = description(report)
    figures = "".join(
        f"<figure>{_labelled(svg, number, caption, told)}"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for number, (svg, (_, caption)) in enumerate(zip(svgs(report), PANELS, strict=True), 1)
    )
    tables = _tables(report)
    spec = json.dumps(report.spec, allow_nan=False)
    data = b64encode(spec.encode()).decode()
    status = f"<p><strong>Accuracy:</strong> {escape(report.status)}.</p>"
    status = "" if report.status == "ok" else status
    definitions = "".join(
        f"<div><dt>{escape(name)}</dt> <dd>{escape(text)}</dd></div>"
        for name, text in words.definitions(report)
    )
    verdict = "".join(f"<p>{escape(sentence)}</p>" for sentence in words.verdict(report))
    bold = [
        f"<strong>{escape(name)}:</strong> {escape(text)}" for name, text in assumptions(report)
    ]
    date = f" on <time>{escape(report.date)}</time>" if report.date else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="jaxgdp {escape(report.version)}">
<title>{escape(title)}: privacy report</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="small">Privacy report, computed{date} by {escape(software(report))}.
Question: {escape(report.question)}.</p>
</header>
<main>
<section>
<h2>What an attacker can do</h2>
<div class="verdict">{verdict}</div>
<p>{escape(words.tier(report))} To publish: <strong>{escape(greek(statement(report)))}</strong>.</p>
{status}
</section>
<section>
<h2>The trade-off curve</h2>
<div class="figures">{figures}</div>
</section>
<div class="columns">
<section>
<h2>In numbers</h2>
{tables}
</section>
<section>
<h2>What is assumed</h2>
{_list(bold)}
</section>
<section>
<h2>What is not counted</h2>
{_list(map(escape, words.NOT_COUNTED))}
</section>
<section>
<h2>What the words mean</h2>
<dl>{definitions}</dl>
</section>
<section>
<h2>How to check it</h2>
<p>Compute every number again:</p>
<pre>{escape(report.command)}</pre>
<p>The mechanism and all settings (<a download="spec.json"
href="data:application/json;base64,{data}">spec.json</a>):</p>
<pre>{escape(spec)}</pre>
</section>
</div>
</main>
</body>
</html>
"""
