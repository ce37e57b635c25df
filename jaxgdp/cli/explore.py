"""``jaxgdp explore``: one page with sliders, from a certified grid, or live on this machine."""

from __future__ import annotations

import contextlib
from typing import Any

from .command import command
from .options import (
    FORCE,
    Argument,
    cache_compiled_programs,
    flag,
    need,
    option,
    progress_options,
    shared,
    tell_written,
    working,
    writable,
)


def _options() -> list[Any]:
    return [
        option("output", "HTML file to write.", metavar="PATH"),
        flag("live", "Serve the page on this machine, with exact numbers for every setting."),
        shared("port", known=Argument("port of --live; 0 for a free one", 0)),
        flag("force", FORCE),
        *progress_options(),
    ]


@command(_options, ("jaxgdp explore --output explore.html", "jaxgdp explore --live"))
def explore_command(output: str | None, live: bool, port: float | None, force: bool) -> None:
    """A page with sliders for noise, batch, data set, epochs and delta, that needs no network."""
    need("vl_convert")
    if live == (output is not None):
        raise ValueError("give one of --output and --live")
    if port is not None and not live:
        raise ValueError("--port belongs to --live")
    path = writable("--output", output, force)
    with working("loading"):
        from ..explore import grid, page

        cache_compiled_programs()
    if path is not None:
        path.write_text(page.page(grid.stored()), encoding="utf-8")
        tell_written(path)
        return
    from ..explore.live import server

    with server(int(port or 0)) as serving:
        print(f"http://127.0.0.1:{serving.server_address[1]}/  (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            serving.serve_forever()
