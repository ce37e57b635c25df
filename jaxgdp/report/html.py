"""A report as one HTML page: no network, no scripts; for screen readers, zoom and paper."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..arguments import greek
from ..numerics.rounding import rounded_outward
from . import strength, words
from .counted import EXPLAINED as COUNTED_EXPLAINED
from .counted import TITLES as COUNTED_TITLES
from .counted import not_counted
from .counted import rows as counted_rows
from .figure import PANELS, svgs
from .statements import short_sentence, usual_delta
from .style import STYLE
from .text import PART_TITLES, curve_rows, gdp_line, part_rows, publish_line, rho_line, rows

if TYPE_CHECKING:
    from .content import Report


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


def bar(report: Report) -> str:
    """An attacker's success from 0 to 100, with guessing at 50, as an SVG element."""
    right = float(strength.success(float(report.advantage.upper)))
    told = strength.sentence(report)
    ticks = "".join(
        f'<text x="{10 + 4 * place}" y="44" text-anchor="middle">{place}</text>'
        for place in (0, 25, 50, 75, 100)
    )
    end = min(max(10.0 + 4.0 * right, 60.0), 385.0)
    shapes = (
        '<rect x="10" y="14" width="400" height="14" fill="#fff" stroke="#595959"/>'
        '<rect x="10" y="14" width="200" height="14" fill="#d0d0d0"/>'
        f'<rect x="210" y="14" width="{4.0 * (right - 50.0):.1f}" height="14" fill="#d55e00"/>'
        '<line x1="210" x2="210" y1="10" y2="32" stroke="#1a1a1a" stroke-width="2"/>'
        '<text x="206" y="9" text-anchor="end">guessing 50</text>'
        f'<text x="{end:.1f}" y="9" text-anchor="middle">at most {right:g}</text>'
    )
    svg = f'<svg viewBox="0 0 420 48" font-size="10">{shapes}{ticks}</svg>'
    return _labelled(svg, 0, "An attacker's success in 100 decisions at even odds", told)


def table(
    caption: str, titles: Sequence[str], body: Iterable[Sequence[str]], safe: int | None = None
) -> str:
    """A table whose first column is its rows' names.

    Args:
        caption, titles: in words.
        body: rows of text.
        safe: column in bold, or None.
    """
    head = "".join(f'<th scope="col">{escape(greek(title))}</th>' for title in titles)
    lines = []
    for name, *cells in body:
        columns = (
            f"<td{_classes(cell, place == safe)}>{escape(cell)}</td>"
            for place, cell in enumerate(cells, 1)
        )
        lines.append(f'<tr><th scope="row">{escape(greek(name))}</th>{"".join(columns)}</tr>')
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _classes(cell: str, safe: bool) -> str:
    """A cell's attribute: in bold, and never broken, if it is a number."""
    names = ["safe"] * safe + ["number"] * cell[:1].isdigit()
    return f' class="{" ".join(names)}"' if names else ""


def short_rows(report: Report) -> list[tuple[str, str]]:
    """What most readers need, three digits each, rounded to the safe side."""
    up = lambda value: rounded_outward(float(value), up=True, digits=3)
    found = [
        ("right decisions in 100, at even odds", strength.success(float(report.advantage.upper))),
        (f"mu, for error rates >= {words.plain(report.fpr_floor)}", up(report.mu.upper)),
    ]
    found += [
        (f"epsilon at delta = {words.plain(d)}", up(bracket.upper))
        for d, bracket in report.epsilons
    ]
    found += [
        (f"members found (TPR) at FPR = {words.plain(fpr)}", up(bracket.upper))
        for fpr, bracket in report.tprs[:-1]
        if fpr in (1e-2, 1e-3, 1e-6)
    ]
    return found


def full_tables(report: Report) -> str:
    """Every number with both sides and six digits."""
    caption = "Each number lies between the two; the one in bold is safe to publish."
    own = lambda row: {"lower": 1, "upper": 2}.get(row[3])
    tables = _sided(caption, ("quantity", "lower", "upper"), rows(report), own)
    if report.fnrs:
        caption, titles = "The curve itself: least FNR at each FPR.", ("trade-off curve",)
        tables += _sided(caption, (*titles, "lower", "upper"), curve_rows(report), own)
    return tables


def _sided(
    caption: str,
    titles: Sequence[str],
    body: Iterable[Sequence[str]],
    safe: Callable[[Sequence[str]], int | None],
) -> str:
    """A table in which each row has a safe side of its own."""
    plain = table(caption, titles, [])
    lines = []
    for row in body:
        inner = table("", titles, [row[:3]], safe(row))
        lines.append(inner[inner.index("<tbody>") + len("<tbody>") : inner.index("</tbody>")])
    return plain.replace("<tbody></tbody>", f"<tbody>{''.join(lines)}</tbody>")


def parts_table(report: Report) -> str:
    """The parts of a release, and what was counted beside the noise; or ""."""
    found = ""
    if report.parts:
        found = table("The release by its parts.", PART_TITLES, part_rows(report))
    if counted := counted_rows(report.counted):
        found += table(f"What was counted. {COUNTED_EXPLAINED}.", COUNTED_TITLES, counted)
    return found


def bullets(items: Iterable[str]) -> str:
    """A list of HTML texts."""
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def assumptions(report: Report) -> list[tuple[str, str]]:
    """The assumptions behind the numbers, by name."""
    rounding = words.rounding(report)
    return [
        ("Mechanism", report.mechanism),
        ("Sampling", words.sampling(report.spec)),
        *([("Rounding", rounding)] if rounding else []),
        ("Adjacency", words.adjacency(report)),
        ("Unit of privacy", words.unit(report)),
        ("Attacker", words.ATTACKER),
    ]


def software(report: Report) -> str:
    """Versions of what computed it, in one line."""
    versions = report.software or {"jaxgdp": report.version}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def statement_of(report: Report) -> str:
    """The statement at the usual δ."""
    return short_sentence(report, usual_delta(delta for delta, _ in report.epsilons))


def paragraphs(sentences: Iterable[str]) -> str:
    """Sentences as paragraphs."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def fragment(report: Report) -> str:
    """The form in notebooks: strength, statement, the numbers."""
    title = escape(report.title or report.mechanism)
    told = [strength.sentence(report), *words.otherwise(report), *words.verdict(report)]
    caption = "At most; three digits, rounded up."
    tables = table(caption, ("quantity", "at most"), short_rows(report), 1) + parts_table(report)
    fold = f"<details><summary>All numbers, both sides</summary>{full_tables(report)}</details>"
    return (
        f"<section><h3>{title}</h3>{paragraphs(told)}<p><em>{escape(statement_of(report))}</em></p>"
        f"{tables}{fold}</section>"
    )


def _head(report: Report, title: str) -> str:
    date = f" on <time>{escape(report.date)}</time>" if report.date else ""
    name = f"{escape(report.title)}: privacy report" if report.title else "Privacy report"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="jaxgdp {escape(report.version)}">
<title>{name}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="small">Privacy report, computed{date} by {escape(software(report))}.
Question: {escape(report.question)}.</p>
</header>
"""


def _strength(report: Report) -> str:
    others = paragraphs(words.otherwise(report))
    return f"""<section>
<h2>How strong the protection is</h2>
<div class="verdict"><p><strong>{escape(strength.sentence(report))}</strong></p>
<div class="bar">{bar(report)}</div>
{others}{paragraphs(words.verdict(report))}</div>
</section>
<section>
<h2>The statement to publish</h2>
<blockquote>{escape(statement_of(report))}</blockquote>
</section>
"""


def _figures(report: Report) -> str:
    told = description(report)
    figures = "".join(
        f"<figure>{_labelled(svg, number, caption, told)}"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for number, (svg, (_, caption)) in enumerate(zip(svgs(report), PANELS, strict=True), 1)
    )
    return f"""<section>
<h2>The trade-off curve</h2>
<div class="figures">{figures}</div>
</section>
"""


def _numbers(report: Report) -> str:
    caption = "At most; three digits, rounded up."
    short = table(caption, ("quantity", "at most"), short_rows(report), 1)
    rho = f"<p>{escape(rho_line(report))}.</p>" if report.rho is not None else ""
    return f"""<section>
<h2>In numbers</h2>
{short}
{parts_table(report)}{rho}
<p class="small">Accuracy: {escape(words.accuracy(report))}.</p>
<details><summary>All numbers, both sides, six digits</summary>
<p>{escape(words.tier(report))} {escape(greek(publish_line(report)))}.</p>
<p>Gaussian DP: {escape(greek(gdp_line(report)))}.</p>
{full_tables(report)}
</details>
</section>
"""


def _assumed(report: Report) -> str:
    bold = [
        f"<strong>{escape(name)}:</strong> {escape(text)}" for name, text in assumptions(report)
    ]
    return f"""<section>
<h2>What is assumed</h2>
{bullets(bold)}
</section>
<section>
<h2>What is not counted</h2>
{bullets(map(escape, not_counted(report)))}
</section>
"""


def _words(report: Report) -> str:
    definitions = "".join(
        f"<div><dt>{escape(name)}</dt> <dd>{escape(text)}</dd></div>"
        for name, text in (*words.definitions(report), ("strength", strength.explanation()))
    )
    return f"""<section>
<h2>What the words mean</h2>
<details class="words"><summary>Words and symbols</summary><dl>{definitions}</dl></details>
</section>
"""


def _check(report: Report) -> str:
    spec = json.dumps(report.spec, allow_nan=False)
    data = b64encode(spec.encode()).decode()
    return f"""<section>
<h2>How to check it</h2>
<p>Compute every number again:</p>
<pre>{escape(report.command)}</pre>
<details><summary>The mechanism and all settings</summary>
<p><a download="spec.json"
href="data:application/json;base64,{data}">spec.json</a>:</p>
<pre>{escape(spec)}</pre></details>
</section>
"""


def page(report: Report, sections: Sequence[str] | None = None) -> str:
    """The whole page.

    Args:
        report: of one mechanism.
        sections: of ``SECTIONS``, in order; default all.

    Raises:
        ImportError: matplotlib is missing (the ``report`` extra).
    """
    chosen = tuple(SECTIONS) if sections is None else sections
    title = report.title or "Privacy report"
    wide = "".join(SECTIONS[name](report) for name in chosen if name in _WIDE)
    narrow = "".join(SECTIONS[name](report) for name in chosen if name not in _WIDE)
    return (
        f'{_head(report, title)}<main>\n{wide}<div class="columns">\n{narrow}</div>\n</main>\n'
        "</body>\n</html>\n"
    )


SECTIONS = {
    "strength": _strength,
    "figures": _figures,
    "numbers": _numbers,
    "assumed": _assumed,
    "words": _words,
    "check": _check,
}
_WIDE = ("strength", "figures")
