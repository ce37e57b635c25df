"""``jaxgdp reproduce``: a paper's figures and tables as files, and a verdict on each of its
numbers.
"""

from __future__ import annotations

from typing import Annotated

from .options import (
    FORCE_HELP,
    PROGRESS_HELP,
    cache_compiled_programs,
    kept,
    option,
    typer,
    working,
)


def reproduce_command(
    paper: Annotated[
        str,
        (
            typer.Argument(
                help="Which paper: gomez2025, kulynych2024, liu2022, chua2024 or negoescu2023.",
                metavar="PAPER",
            )
            if typer
            else None
        ),
    ],
    output: Annotated[
        str, option("--output", help="Folder to write to; made if missing.", metavar="DIR")
    ],
    only: Annotated[
        list[str] | None,
        option(
            "--only",
            help="A figure or table, such as figure-3, repeated or comma-separated. [default: all]",
            metavar="NAME",
        ),
    ] = None,
    quick: Annotated[
        bool, option("--quick", help="Coarser grids, for a first look.", metavar=None)
    ] = False,
    figure_format: Annotated[
        str, option("--format", help="Of figures: png, pdf or svg.", metavar="TEXT")
    ] = "png",
    force: Annotated[bool, option("--force", help=FORCE_HELP, metavar=None)] = False,
    quiet: Annotated[
        bool, option("--quiet", help="No progress bar and no summary.", metavar=None)
    ] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Figures and tables of a paper as files, and a verdict on each of its numbers.

    \b
    Example:
      jaxgdp reproduce gomez2025 --output reproduction --only figure-4,table-2
      jaxgdp reproduce kulynych2024 --output reproduction --quick
    """
    with working("loading", quiet=quiet, always=progress):
        from ..reproduce import check, items, outputs, reproduce
        from ..reproduce.document import summary

        names = (
            list(items(paper))
            if only is None
            else [name for text in only for name in text.split(",")]
        )
        settings = {"output": output, "only": names, "quick": quick, "figure_format": figure_format}
        chosen, folder = check(paper, **settings)
        kept([folder / name for name in outputs(paper, chosen, figure_format)], force)
        cache_compiled_programs()
    with working("reproducing", len(chosen), "figures and tables", quiet, progress) as told:
        found = reproduce(paper, **settings, progress=lambda name: told(1))
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
