"""Regenerate a paper's figures and tables into a folder, with a verdict on each of its numbers."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..numerics.optional import missing
from ..numerics.validation import one_of
from ..progress import show_progress
from . import document, published, result
from .result import Result, Row

PAPERS = ("gomez2025", "kulynych2024", "liu2022", "chua2024", "negoescu2023")
FORMATS = ("png", "pdf", "svg")
Item: TypeAlias = tuple[str, Callable[[bool], Result]]  # its title, and what computes it


class Reproduction(NamedTuple):
    """What was regenerated.

    Attributes:
        paper: key of the paper.
        rows: the verdict table.
        seconds: wall-clock seconds of each figure or table, compilation included.
        files: everything written, the document with the verdict table first.
    """

    paper: str
    rows: tuple[Row, ...]
    seconds: dict[str, float]
    files: tuple[Path, ...]


def items(paper: str) -> dict[str, Item]:
    """The figures and tables of a paper by name: (what it shows, function that computes it).

    Args:
        paper: one of ``PAPERS``.

    Raises:
        ValueError: unknown paper.

    Example:
        >>> list(items("gomez2025"))[:2]
        ['figure-1', 'figure-2']
    """
    one_of("paper", paper, PAPERS)
    return _module(paper).ITEMS


def outputs(paper: str, names: Iterable[str], figure_format: str = "png") -> list[str]:
    """Names of the files that :func:`reproduce` writes, the document with the verdict table first.

    Args:
        paper: one of ``PAPERS``.
        names: of figures and tables.
        figure_format: of figures.

    Example:
        >>> outputs("gomez2025", ["figure-1", "table-2"])
        ['gomez2025.md', 'gomez2025.json', 'figure-1.png', 'figure-1.csv', 'table-2.csv']
    """
    found = [f"{paper}.md", f"{paper}.json"]
    for name in names:
        found += [f"{name}.{figure_format}"] if name.startswith("figure") else []
        stems = getattr(_module(paper), "TABLES", {}).get(name, (name,))
        found += [f"{stem}.csv" for stem in stems]
    return found


def _module(paper: str) -> Any:
    return importlib.import_module(f".{paper}", __package__)


def _folder(output: str | os.PathLike[str]) -> Path:
    path = Path(output)
    if not str(output) or (path.exists() and not path.is_dir()):
        raise ValueError(f"output must be the path of a folder, got {str(output)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"output must lie in an existing folder, got {str(output)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"output must be writable, got {str(output)!r}")
    return path


def check(
    paper: str,
    *,
    output: str | os.PathLike[str],
    only: str | Iterable[str] | None = None,
    quick: bool = False,
    figure_format: str = "png",
) -> tuple[list[str], Path]:
    """The checks of :func:`reproduce`, with the same errors, before it computes anything.

    Returns:
        Names of the figures and tables chosen, in the paper's order, and the folder.
    """
    known = items(paper)
    only = [only] if isinstance(only, str) else only
    chosen = set(known) if only is None else {one_of("only", name, tuple(known)) for name in only}
    if not chosen:
        raise ValueError("only must name at least one figure or table, got none")
    if not isinstance(quick, bool):
        raise ValueError(f"quick must be True or False, got {quick!r}")
    one_of("figure_format", figure_format, FORMATS)
    folder = _folder(output)
    _need(chosen, getattr(_module(paper), "NEEDS", {}))
    return [name for name in known if name in chosen], folder


def reproduce(
    paper: str = "gomez2025",
    *,
    output: str | os.PathLike[str],
    only: str | Iterable[str] | None = None,
    quick: bool = False,
    figure_format: str = "png",
    progress: Callable[[str], None] | None = None,
) -> Reproduction:
    """Regenerate a paper's figures and tables as files; compare its numbers with brackets.

    Writes, into ``output``: figures, CSV files of the numbers behind them, tables as CSV, and
    ``<paper>.md`` and ``<paper>.json`` with the verdict table: the paper's number, our bracket, and
    whether they agree or why not.

    Args:
        paper: "gomez2025", "kulynych2024", "liu2022", "chua2024" or "negoescu2023".
        output: folder to write to; made if only its last part is missing.
        only: names of figures and tables, such as "figure-3"; default all.
        quick: coarser grids and wider brackets, for a first look.
        figure_format: "png", "pdf" or "svg".
        progress: called with the name of each figure or table once it is written.

    Raises:
        ValueError: an unknown paper, figure, table or format, or an unusable folder (before
            anything is computed).
        ImportError: matplotlib, xarray or scikit-learn is missing where a chosen item needs it
            (``plot``, ``sweep``, ``data`` or ``audit`` extras).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = reproduce("gomez2025", output=folder, only=["table-3"])
        >>> found.rows[0].paper, found.rows[0].verdict
        ('0.03', 'agrees')
    """
    chosen, folder = check(
        paper, output=output, only=only, quick=quick, figure_format=figure_format
    )
    known = items(paper)
    folder.mkdir(exist_ok=True)

    listed, citation = published.numbers(paper), published.read(paper)["paper"]
    rows: list[Row] = []
    seconds: dict[str, float] = {}
    sections: list[tuple[str, Result, list[Path]]] = []
    for position, name in enumerate(chosen):
        start = time.perf_counter()
        with show_progress(f"{name}, {position + 1} of {len(chosen)}"):
            found = known[name][1](quick)
            question = f"{known[name][0]} ({name} of {citation['identifier']})"
            files = [folder / file for file in outputs(paper, [name], figure_format)[2:]]
            _write(found, files, question)
        seconds[name] = time.perf_counter() - start
        rows += result.rows([p for p in listed if p.item == name], found.answers)
        sections.append((name, found, files))
        if progress is not None:
            progress(name)

    written = [path for _, _, files in sections for path in files]
    text, data = (folder / file for file in outputs(paper, []))
    titles = {name: title for name, (title, _) in known.items()}
    text.write_text(
        document.markdown(citation, titles, rows, seconds, sections, quick), encoding="utf-8"
    )
    data.write_text(document.json_text(citation, rows, seconds, sections, quick), encoding="utf-8")
    return Reproduction(paper, tuple(rows), seconds, (text, data, *written))


def _need(chosen: Iterable[str], needs: dict[str, dict[str, str]]) -> None:
    """Refuse items whose packages are missing: matplotlib, and those the paper's module lists."""
    wanted = {"matplotlib": "plot"} if any(name.startswith("figure") for name in chosen) else {}
    for name in chosen:
        wanted |= needs.get(name, {})
    for package, extra in wanted.items():
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise missing(f"this reproduction needs {error.name}", extra) from None


def _write(found: Result, files: list[Path], question: str) -> None:
    """The figure, where there is one, and the tables of one item; each has its file."""
    if found.draw is not None:
        from ..plot.saving import blank_figure, save

        figure = blank_figure(found.size)
        found.draw(figure)
        save(figure, files[0], question=question, fpr_floor=found.fpr_floor)
    tables = {path.stem: path for path in files if path.suffix == ".csv"}
    for stem, table in found.tables.items():
        document.write_csv(table, tables[stem], question, found.fpr_floor)
