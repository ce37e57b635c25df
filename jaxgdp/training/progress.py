"""What long work on the host is doing: one line on a terminal, from the second second on, gone when the work is done."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

_PATIENCE = 1.0  # seconds without a word


@contextlib.contextmanager
def telling(doing: str, about: int | None = None, after: float | None = None, stream=None):
    """A function that counts finished evaluations, shown on a terminal together with what is being done.

    The line is written by a thread of its own, so it also appears while nothing finishes, as in a long compilation. Where ``stream``
    is not a terminal nothing is written.

    Args:
        doing: such as "planning" or "compiling, once". about: number of evaluations expected; None where nothing is counted.
        after: seconds without a word, one by default; work that is done before says nothing.
        stream: text stream; None for ``sys.stderr``.

    Yields:
        Function (number of evaluations finished) → None.

    Example:
        >>> with telling("planning", about=8) as count:
        ...     count(3)  # after a second: planning, 3 of about 8 evaluations, 1 s
    """
    out = sys.stderr if stream is None else stream
    done = 0

    def count(number):
        nonlocal done
        done += int(number)

    if out is None or not out.isatty():
        yield count
        return
    begin, finished = time.monotonic(), threading.Event()

    def show():
        width, wait = 0, _PATIENCE if after is None else after
        while not finished.wait(wait):
            counted = "" if about is None else f", {done} of about {max(about, done)} evaluations"
            line = f"{doing}{counted}, {time.monotonic() - begin:.0f} s"
            with contextlib.suppress(OSError, ValueError):  # a terminal that is gone stops nothing
                out.write("\r" + line.ljust(width))
                out.flush()
            width, wait = max(width, len(line)), 0.5
        if width:
            with contextlib.suppress(OSError, ValueError):
                out.write("\r" + " " * width + "\r")
                out.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield count
    finally:
        finished.set()
        thread.join()


@contextlib.contextmanager
def counting(progress, doing: str, about: int):
    """The caller's own function if there is one, else :func:`telling`."""
    if progress is not None:
        yield progress
        return
    with telling(doing, about) as count:
        yield count
