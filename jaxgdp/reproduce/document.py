"""The verdict table as Markdown and JSON, and tables as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from .._version import __version__
from ..numerics.provenance import comments, provenance, today
from .result import Result, Row, Table
from .verdict import AGREES, DIFFERS, ELSEWHERE, UNDECIDED

Section: TypeAlias = tuple[str, Result, list[Path]]  # name, result, files

_LONGEST = 30  # a longer table is data behind a figure: its CSV file is enough


def write_csv(table: Table, path: Path, question: str, fpr_floor: float | None) -> None:
    """One table as CSV, below "#" lines with version, date, question and FPR floor."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(comments(provenance(question, fpr_floor)))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.header)
        writer.writerows(table.rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, line by line.

    Example:
        >>> markdown_table(["a"], [["1|2"]])
        ['| a |', '|---|', '| 1\\\\|2 |']
    """
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in (header, *body)]
    return [lines[0], "|" + "---|" * len(header), *lines[1:]]


def verdict_table(rows: list[Row]) -> list[str]:
    """Paper's number, our bracket, verdict, line by line."""
    body = []
    for row in rows:
        verdict = f"**{row.verdict}**" if row.verdict != AGREES else row.verdict
        because = f"{verdict}: {row.because}" if row.because else verdict
        body.append((row.where, row.quantity, row.paper, row.ours, because))
    header = ("where", "quantity", "paper", "ours (certified bracket)", "verdict")
    return markdown_table(header, body)


def summary(rows: Sequence[Row]) -> str:
    """How many agree, differ, or cannot be told."""
    outcomes = (AGREES, DIFFERS, UNDECIDED, ELSEWHERE)
    count = {outcome: sum(row.verdict == outcome for row in rows) for outcome in outcomes}
    text = f"{len(rows)} numbers and statements: {count[AGREES]} agree, {count[DIFFERS]} differ"
    return text + "".join(
        f", {count[outcome]} {outcome}" for outcome in outcomes[2:] if count[outcome]
    )


def markdown(
    citation: dict[str, str],
    titles: dict[str, str],
    rows: list[Row],
    seconds: dict[str, float],
    sections: Iterable[Section],
    quick: bool,
) -> str:
    """The whole document: verdict table, timings, then each figure and table, linked by file name.

    ``quick`` says whether grids were coarse.
    """
    lines = [
        f"# Reproduction of {citation['authors'].split(',')[0]} et al. {citation['year']}",
        "",
        f"{citation['authors']}: *{citation['title']}*, {citation['identifier']}. Regenerated with"
        f" jaxgdp {__version__} on {today()}" + (", on coarse grids (quick)." if quick else "."),
        "",
        "Every number of ours is a certified bracket, lower ≤ true ≤ upper, printed rounded"
        " outward. A printed number *agrees* if the whole bracket rounds to it, and *differs* if"
        " none of it does. " + citation["note"],
        "",
        f"**{summary(rows)}.**",
        "",
        *verdict_table(rows),
        "",
        "## Time",
        "",
        (
            "Seconds on this machine, compilation included; figures and tables that share a"
            " computation pay for it once."
        ),
        "",
        *markdown_table(
            ("item", "seconds"), [(name, f"{value:.1f}") for name, value in seconds.items()]
        ),
        "",
    ]
    for name, found, files in sections:
        lines += [f"## {name.replace('-', ' ').capitalize()}: {titles[name]}", ""]
        if found.fpr_floor is not None:
            lines += [f"FPR floor of μ: {found.fpr_floor:g}.", ""]
        lines += [
            f"![{titles[name]}]({path.name})" for path in files if path.suffix in (".png", ".svg")
        ]
        lines += [f"[{path.name}]({path.name})" for path in files if path.suffix == ".pdf"]
        for stem, table in found.tables.items():
            if len(table.rows) <= _LONGEST:
                lines += ["", *markdown_table(table.header, table.rows)]
            else:
                lines += ["", f"Numbers: [{stem}.csv]({stem}.csv)"]
        lines.append("")
    return "\n".join(lines)


def json_text(
    citation: dict[str, str],
    rows: list[Row],
    seconds: dict[str, float],
    sections: Iterable[Section],
    quick: bool,
) -> str:
    """The verdict table and timings as JSON; the FPR floor is that of each figure and table."""
    floors = {
        name: "none" if found.fpr_floor is None else found.fpr_floor for name, found, _ in sections
    }
    data = {
        **provenance(f"the numbers of {citation['identifier']}, certified", floors),
        "paper": citation,
        "quick": quick,
        "verdicts": [row._asdict() for row in rows],
        "seconds": seconds,
    }
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
