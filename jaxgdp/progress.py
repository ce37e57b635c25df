"""What long work on the host is doing: one line on a terminal, from the second second on, gone when
the work is done.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time

_PATIENCE = 1.0  # seconds without a word
_AGAIN = 0.5  # seconds from one look at what is being done to the next
_SELDOM = 10.0  # seconds between two lines where no terminal can overwrite the last one
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILED = "/jax/core/compile/backend_compile_duration"

_SHOWN: list[Telling] = []  # what is being done, the outermost first; only the outermost has a line


class Telling:
    """What is being done and how much of it is finished; calling it counts.

    Args:
        doing: such as "calibrating". about: number of things expected, None where nothing is
            counted. noun: what they are.
        rate: tell also how many are finished in a second, and how long the rest will take.
    """

    def __init__(
        self, doing: str, about: int | None = None, noun: str = "evaluations", rate: bool = False
    ):
        self.doing, self.about, self.noun, self.done = doing, about, noun, 0
        self.rate, self.before, self.begin = rate, 0, time.monotonic()

    def __call__(self, number: int) -> None:
        """Count ``number`` more as finished."""
        self.done += int(number)

    def already(self, number: int) -> None:
        """Count ``number`` as finished before the work began."""
        self.done += int(number)
        self.before += int(number)

    def pace(self) -> str:
        """How many are finished in a second, and how long the rest will take; nothing before the
        first.
        """
        speed = (self.done - self.before) / max(time.monotonic() - self.begin, 1e-9)
        if not self.rate or not speed or self.about is None:
            return ""
        left = max(self.about - self.done, 0) / speed
        return f", {speed:.3g} a second, {left:.0f} s left"

    def say(self, doing: str) -> None:
        """Go on to something else."""
        self.doing = doing

    def expect(self, more: int) -> None:
        """Expect that ``more`` are still to come after what is finished."""
        self.about = self.done + int(more)

    def __str__(self) -> str:
        if self.about is None:
            return self.doing
        return (
            f"{self.doing}, {self.done} of about {max(self.about, self.done)}"
            f" {self.noun}{self.pace()}"
        )


class _Compiling:
    """Which threads are inside the compiler, told by JAX; nothing before JAX is imported."""

    def __init__(self):
        self.threads: set[int] = set()
        self.heard = None

    def heed(self, event: str, _seconds: float, **_) -> None:
        if event == _LOWERED:
            self.threads.add(threading.get_ident())
        elif event == _COMPILED:
            self.threads.discard(threading.get_ident())

    def listen(self) -> None:
        monitoring = sys.modules.get("jax.monitoring")
        register = getattr(monitoring, "register_event_duration_secs_listener", None)
        if (
            self.heard is None
            and register is not None
            and hasattr(monitoring, "unregister_event_duration_listener")
        ):
            register(self.heed)
            self.heard = monitoring

    def stop(self) -> None:
        if self.heard is not None:
            self.heard.unregister_event_duration_listener(self.heed)


class _Line:
    """The line of the outermost work, written by a thread of its own: it appears even while nothing
    finishes.
    """

    def __init__(self, out, terminal: bool, after: float):
        self.out, self.terminal, self.after = out, terminal, after
        self.begin, self.width, self.last, self.written = time.monotonic(), 0, "", -_SELDOM
        self.compiling, self.finished = _Compiling(), threading.Event()
        self.thread = threading.Thread(target=self.show, daemon=True)

    def text(self) -> str:
        told = ": ".join(str(telling) for telling in list(_SHOWN))
        return told + ("; compiling, once" if self.compiling.threads else "")

    def write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()

    def draw(self) -> None:
        seconds, text = time.monotonic() - self.begin, self.text()
        line = f"{text}, {seconds:.0f} s"
        if self.terminal:
            self.write("\r" + line.ljust(self.width))
            self.width = max(self.width, len(line))
        elif text != self.last and seconds - self.written >= _SELDOM:
            self.write(line + "\n")
            self.last, self.written = text, seconds

    def clear(self) -> None:
        if self.width:
            self.write("\r" + " " * self.width + "\r")

    def show(self) -> None:
        wait = self.after
        while not self.finished.wait(wait):
            self.compiling.listen()
            with contextlib.suppress(OSError, ValueError):  # a terminal that is gone stops nothing
                self.draw()
            wait = _AGAIN

    def end(self) -> None:
        self.finished.set()
        self.thread.join()
        self.compiling.stop()
        with contextlib.suppress(OSError, ValueError):
            self.clear()


class _Bar(_Line):
    """The same by rich: a bar where something is counted, and the time."""

    bar = None

    def draw(self) -> None:
        outer = _SHOWN[0]
        if self.bar is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            counted = () if outer.about is None else (BarColumn(), MofNCompleteColumn())
            columns = (
                TextColumn("{task.description}", markup=False),
                *counted,
                TimeElapsedColumn(),
            )
            self.bar = Progress(*columns, console=Console(file=self.out), transient=True)
            self.task = self.bar.add_task("", total=outer.about)
            self.bar.start()
        self.bar.update(self.task, description=self.text(), completed=outer.done, total=outer.about)

    def clear(self) -> None:
        if self.bar is not None:
            self.bar.stop()


@contextlib.contextmanager
def telling(
    doing: str,
    about: int | None = None,
    after: float | None = None,
    stream=None,
    noun: str = "evaluations",
    anywhere: bool = False,
    bar: bool = False,
    silent: bool = False,
    rate: bool = False,
):
    """Show on a terminal what is being done, and count what is finished.

    Work that is told of inside other work shows behind it, in the same line. While JAX compiles,
    the line says so. Where ``stream`` is not a terminal nothing is written, unless asked for.

    Args:
        doing: such as "planning". about: number of things expected; None where nothing is counted.
            noun: what they are.
        after: seconds without a word, one by default; work that is done before says nothing.
        stream: text stream; None for ``sys.stderr``.
        anywhere: write a line of its own now and then also where the stream is no terminal.
        bar: draw a bar on a terminal, where rich is installed. silent: show nothing, nor of work
            inside this work.
        rate: tell also how many are finished in a second, and how long the rest will take.

    Yields:
        :class:`Telling`, a function (number finished) → None.

    Example:
        >>> with telling("planning", about=8) as count:
        ...     count(3)  # after a second: planning, 3 of about 8 evaluations, 1 s
    """
    mine = Telling(doing, about, noun, rate)
    out = sys.stderr if stream is None else stream
    terminal = out is not None and out.isatty()
    if not (_SHOWN or silent or terminal or (anywhere and out is not None)):
        yield mine
        return
    kind = _Bar if bar and terminal and importlib.util.find_spec("rich") else _Line
    line = None if _SHOWN or silent else kind(out, terminal, _PATIENCE if after is None else after)
    _SHOWN.append(mine)
    try:
        if line is not None:
            line.thread.start()
        yield mine
    finally:
        if line is not None:
            line.end()
        _SHOWN.remove(mine)


@contextlib.contextmanager
def counting(progress, doing: str, about: int | None = None, noun: str = "evaluations"):
    """The caller's own function if there is one, else :func:`telling`."""
    if progress is not None:
        yield progress
        return
    with telling(doing, about, noun=noun) as count:
        yield count
