"""The progress of long work: one line on a terminal, from the first second to the end."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

_PATIENCE = 1.0  # seconds before the first line
_INTERVAL = 0.5  # seconds between two updates
_SELDOM = 10.0  # seconds between two lines where no terminal can overwrite the last one
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILED = "/jax/core/compile/backend_compile_duration"

_TRUSTED = 20.0  # seconds for which an expected speed counts

# work in progress, the outermost first; only the outermost has a display
_WORK: list[Progress] = []
_COMPILING: set[int] = set()  # threads that are inside JAX's compiler


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> duration(90.0), duration(1e4), duration(3e11)
        ('90 s', '3 hours', '9,506 years')
    """
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3600.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds / 60.0:.0f} minutes" if seconds >= 120.0 else f"{seconds:.0f} s"


class Progress:
    """A piece of work and how much of it is finished; calling it counts.

    Args:
        doing: such as "calibrating".
        total: number of things expected; None where nothing is counted.
        noun: what they are.
        rate: whether the text also gives the number finished per second and the time left; or the
            number per second to expect, from which the text gives them before anything is finished.
    """

    def __init__(
        self,
        doing: str,
        total: int | None = None,
        noun: str = "evaluations",
        rate: bool | float = False,
    ):
        self.doing, self.total, self.noun, self.rate = doing, total, noun, rate
        self.done, self.skipped, self.begin = 0, 0, time.monotonic()

    def __call__(self, number: int) -> None:
        """Count ``number`` more as finished."""
        self.done += int(number)

    def skip(self, number: int) -> None:
        """Count ``number`` as finished before the work began."""
        self.done += int(number)
        self.skipped += int(number)

    def describe(self, doing: str) -> None:
        """Go on to something else."""
        self.doing = doing

    def expect(self, more: int) -> None:
        """Expect that ``more`` are still to come after what is finished."""
        self.total = self.done + int(more)

    def __str__(self) -> str:
        if self.total is None:
            return self.doing
        text = f"{self.doing}, {self.done} of about {max(self.total, self.done)} {self.noun}"
        trust = 0.0 if self.rate in (True, False) else _TRUSTED
        seconds = max(time.monotonic() - self.begin, 1e-9)
        speed = (self.done - self.skipped + self.rate * trust) / (seconds + trust)
        if not (self.rate and speed):
            return text
        left = duration(max(self.total - self.done, 0) / speed)
        return f"{text}, {speed:.3g} a second, {left} left"


def _note_compilation(event: str, _seconds: float, **_: Any) -> None:
    if event == _LOWERED:
        _COMPILING.add(threading.get_ident())
    elif event == _COMPILED:
        _COMPILING.discard(threading.get_ident())


@functools.cache
def _listen_to(monitoring: Any) -> None:
    monitoring.register_event_duration_secs_listener(_note_compilation)


@functools.cache
def _rich() -> bool:
    return importlib.util.find_spec("rich") is not None


class _Display(threading.Thread):
    """Writes the text of all work in progress from a thread of its own: the text appears even while
    nothing finishes. With rich on a terminal it is a progress bar.
    """

    def __init__(self, out: TextIO, terminal: bool):
        super().__init__(daemon=True)
        self.out, self.terminal, self.finished = out, terminal, threading.Event()
        self.begin, self.width, self.last, self.written = time.monotonic(), 0, "", -_SELDOM
        self.bar: Any = None

    def run(self) -> None:
        wait = _PATIENCE
        while not self.finished.wait(wait):
            if "jax.monitoring" in sys.modules:
                _listen_to(sys.modules["jax.monitoring"])
            text = ": ".join(map(str, list(_WORK))) + ("; compiling, once" if _COMPILING else "")
            with contextlib.suppress(OSError, ValueError):  # (a closed terminal stops nothing)
                (self.draw_bar if self.terminal and _rich() else self.draw_line)(text)
            wait = _INTERVAL

    def draw_bar(self, text: str) -> None:
        from rich import progress
        from rich.console import Console

        outer = next(iter(_WORK), None)
        total = None if outer is None else outer.total
        if self.bar is None:
            bar = () if total is None else (progress.BarColumn(),)
            text_column = progress.TextColumn("{task.description}", markup=False)
            columns = text_column, *bar, progress.TimeElapsedColumn()
            console = Console(file=self.out)
            self.bar = progress.Progress(*columns, console=console, transient=True)
            self.bar.add_task(text, total=total)
            self.bar.start()
        self.bar.update(0, description=text, completed=outer.done if outer else 0, total=total)

    def draw_line(self, text: str) -> None:
        seconds = time.monotonic() - self.begin
        line = f"{text}, {seconds:.0f} s"
        if self.terminal:
            self.write("\r" + line.ljust(self.width))
            self.width = max(self.width, len(line))
        elif text != self.last and seconds - self.written >= _SELDOM:
            self.write(line + "\n")
            self.last, self.written = text, seconds

    def write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()

    def close(self) -> None:
        self.finished.set()
        self.join()
        with contextlib.suppress(OSError, ValueError):
            if self.bar is not None:
                self.bar.stop()
            elif self.width:
                self.write("\r" + " " * self.width + "\r")


@contextlib.contextmanager
def show_progress(
    doing: str,
    total: int | None = None,
    progress: Callable[[int], object] | bool | None = None,
    noun: str = "evaluations",
    rate: bool | float = False,
) -> Iterator[Any]:
    """Show long work on stderr while it lasts, and count what is finished.

    Work inside other work is displayed behind it, in the same line, and so is the compilation of
    JAX programs.

    Args:
        doing: such as "planning".
        total: number of things expected; None where nothing is counted.
        progress: None displays work that takes longer than a second if stderr is a terminal; True
            also writes a line now and then if stderr is not a terminal; False displays nothing, nor
            any work inside; a function is called with the number finished instead.
        noun: what is counted.
        rate: whether to show also the number finished per second and the time left, or the number
            per second to expect.

    Yields:
        The function (number finished) → None: :class:`Progress`, or the caller's own.

    Example:
        >>> with show_progress("planning", total=8) as count:
        ...     count(3)  # after a second: planning, 3 of about 8 evaluations, 1 s
    """
    if callable(progress):
        yield progress
        return
    mine, out, display = Progress(doing, total, noun, rate), sys.stderr, None
    terminal = out is not None and out.isatty()
    if not (_WORK or progress is False or terminal or (progress and out is not None)):
        yield mine
        return
    if out is not None and not _WORK and progress is not False:
        display = _Display(out, terminal)
    _WORK.append(mine)
    try:
        if display is not None:
            display.start()
        yield mine
    finally:
        if display is not None:
            display.close()
        _WORK.remove(mine)


def counting(
    progress: Callable[[int], object] | bool | None,
    doing: str,
    total: int,
    rate: bool | float = True,
) -> contextlib.AbstractContextManager[Any]:
    """:func:`show_progress` for a function that displays nothing unless ``progress`` is True."""
    if progress is True:
        return show_progress(doing, total, True, "settings", rate)
    return contextlib.nullcontext(progress or None)
