"""``jaxgdp reproduce``: a paper's figures and tables as files, with verdicts on its numbers."""

from __future__ import annotations

from typing import Any

from .command import command
from .options import (
    FIGURE_SUFFIXES,
    FORCE,
    argument,
    cache_compiled_programs,
    flag,
    kept,
    option,
    progress_options,
    quiet,
    working,
)


def _options() -> list[Any]:
    return [
        argument("paper"),
        option("output", "Folder to write to; made if missing.", metavar="DIR", required=True),
        option("only", "A figure or table, such as figure-3, repeated or comma-separated. [default:"
               " all]", metavar="NAME", many=True),
        flag("quick", "Coarser grids, for a first look."),
        option("format", f"Format of figures: {', '.join(name[1:] for name in FIGURE_SUFFIXES)}.",
               metavar="TEXT", default="png"),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


def _papers() -> str:
    from ..reproduce import PAPERS

    return f"PAPER is one of {', '.join(PAPERS)}."


@command(
    _options,
    (
        "jaxgdp reproduce gomez2025 --output reproduction --only figure-4,table-2",
        "jaxgdp reproduce kulynych2024 --output reproduction --quick",
    ),
    more=_papers,
)
def reproduce_command(
    paper: str, output: str, only: list[str] | None, quick: bool, format: str | None, force: bool
) -> None:
    """Figures and tables of a paper as files, and a verdict on each of its numbers."""
    figure_format = format or "png"
    with working("loading"):
        from ..reproduce import check, items, outputs, reproduce
        from ..reproduce.document import summary

        names = list(items(paper)) if only is None else only
        settings = {"output": output, "only": names, "quick": quick, "figure_format": figure_format}
        chosen, folder = check(paper, **settings)
        kept([folder / name for name in outputs(paper, chosen, figure_format)], force)
        cache_compiled_programs()
    with working("reproducing", len(chosen), "figures and tables") as count:
        found = reproduce(paper, **settings, progress=lambda name: count(1))
    if not quiet():
        print(summary(found.rows))
        for row in found.rows:
            if row.verdict != "agrees":
                why = f"; {row.because}" if row.because else ""
                about = f"{row.verdict}: {row.where}, {row.quantity}"
                print(f"  {about}: paper {row.paper}, ours {row.ours}{why}")
        print(f"wrote {len(found.files)} files, {found.files[0]} first")
