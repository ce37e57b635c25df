"""``jaxgdp reproduce``: a paper's figures and tables as files, and a verdict on each of its
numbers.
"""

from __future__ import annotations

from typing import Any

from .command import command
from .options import (
    FORCE,
    argument,
    cache_compiled_programs,
    flag,
    kept,
    option,
    progress_options,
    working,
)


def _options() -> list[Any]:
    return [
        argument("paper"),
        option("output", "Folder to write to; made if missing.", metavar="DIR", required=True),
        option("only", "A figure or table, such as figure-3, repeated or comma-separated. [default:"
               " all]", metavar="NAME", many=True),
        flag("quick", "Coarser grids, for a first look."),
        option("format", "Format of figures: png, pdf or svg.", metavar="TEXT", default="png"),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp reproduce gomez2025 --output reproduction --only figure-4,table-2",
        "jaxgdp reproduce kulynych2024 --output reproduction --quick",
    ),
)
def reproduce_command(
    paper: str,
    output: str,
    only: list[str] | None,
    quick: bool,
    format: str | None,
    force: bool,
    quiet: bool,
    progress: bool,
) -> None:
    """Figures and tables of a paper as files, and a verdict on each of its numbers.

    PAPER is gomez2025, kulynych2024, liu2022, chua2024 or negoescu2023.
    """
    figure_format = format or "png"
    with working("loading", quiet=quiet, always=progress):
        from ..reproduce import check, items, outputs, reproduce
        from ..reproduce.document import summary

        names = list(items(paper)) if only is None else only
        settings = {"output": output, "only": names, "quick": quick, "figure_format": figure_format}
        chosen, folder = check(paper, **settings)
        kept([folder / name for name in outputs(paper, chosen, figure_format)], force)
        cache_compiled_programs()
    with working("reproducing", len(chosen), "figures and tables", quiet, progress) as count:
        found = reproduce(paper, **settings, progress=lambda name: count(1))
    if not quiet:
        print(summary(found.rows))
        for row in found.rows:
            if row.verdict != "agrees":
                why = f"; {row.because}" if row.because else ""
                print(
                    f"  {row.verdict}: {row.where}, {row.quantity}: paper {row.paper}, ours"
                    f" {row.ours}{why}"
                )
        print(f"wrote {len(found.files)} files, {found.files[0]} first")
