"""One deployment with all that checks it: its table, source, citation and mechanism."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any


@functools.cache
def read_data(name: str) -> dict[str, Any]:
    """The data file of a deployment."""
    text = (
        resources.files(__package__ or __name__)
        .joinpath("data", f"{name}.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


@dataclass(frozen=True)
class Deployment:
    """A published use of differential privacy.

    Attributes:
        name: how the library calls it.
        title: what it is.
        neighbours: which two data sets are neighbours.
        citation: whom to cite.
        sources: where the numbers stand.
        note: caveats on their use.
        columns: names of the columns of ``rows``.
        rows: the table; exact fractions stay exact (``fractions.Fraction``).
        file: name of the data file.
    """

    name: str
    title: str
    neighbours: str
    citation: str
    sources: tuple[str, ...]
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple, ...]
    file: str
    _build: Callable = field(repr=False, compare=False)

    def mechanism(self):
        """The :class:`jaxgdp.Composition` that was run."""
        return self._build()

    def _cells(self) -> list[tuple[str, ...]]:
        shown = lambda value: value if isinstance(value, str) else f"{float(value):.8g}"
        return [self.columns, *(tuple(shown(value) for value in row) for row in self.rows)]

    def _head(self) -> list[tuple[str, str]]:
        sources = [("source", source) for source in self.sources]
        return [
            ("neighbours", self.neighbours),
            ("cite", self.citation),
            *sources,
            ("note", self.note),
        ]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        head = [f"{name:<10} {text}" for name, text in self._head()]
        return "\n".join([f"{self.title} ({self.name})", *head, "", *lines])

    def to_markdown(self) -> str:
        """Title, facts and table as Markdown."""
        head = [f"- **{name}**: {text}" for name, text in self._head()]
        clean = [
            [cell.replace("*", "\\*").replace("|", "\\|") for cell in row] for row in self._cells()
        ]
        table = ["| " + " | ".join(row) + " |" for row in clean]
        table.insert(1, "|" + "---|" * len(self.columns))
        return "\n".join([f"### {self.title}", "", *head, "", *table])
