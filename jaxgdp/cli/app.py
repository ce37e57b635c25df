"""The command line: its commands, errors as one line, and exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .._version import __version__
from ..numerics.optional import how_to_install
from .command import COMMANDS, click, show_examples
from .options import flag

# files that add commands, in the order of the help
for _name in (
    "report",
    "prove",
    "statement",
    "calibrate",
    "bridge",
    "audit",
    "samplers",
    "strategies",
    "quantities",
    "sweep",
    "landscape",
    "explore",
    "reproduce",
):
    importlib.import_module(f".{_name}", __package__)

_INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended: 128 + SIGINT
_EXAMPLES = (
    "jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000",
    "jaxgdp statement --noise-multiplier 0.9 --dataset-size 45000 --batch-size 512 --num-epochs 30",
    "jaxgdp report --deployment census_2020_pl94_persons",
    "jaxgdp calibrate --fnr 0.7 --fpr 0.1 --sampling-prob 0.001 --num-steps 10000",
    "jaxgdp COMMAND --help",
)


def _start(version: bool) -> None:
    """Certified differential-privacy accounting."""
    context = click.get_current_context()
    if version:
        print(f"jaxgdp {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _build() -> Any:
    class Program(click.Group):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            show_examples(_EXAMPLES, formatter)

    return Program(
        "jaxgdp",
        commands=COMMANDS,
        callback=_start,
        invoke_without_command=True,
        help=_start.__doc__,
        params=[flag("version", "Print the version.")],
    )


app: Any = _build() if click else None


def _fail(message: object) -> int:
    print("jaxgdp: error: " + " ".join(str(message).split()), file=sys.stderr)
    return 2


@contextlib.contextmanager
def _second_interrupt_ends() -> Iterator[None]:
    """The first Ctrl-C is an exception as always; a second one waits for no other thread."""
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, second)
        signal.default_int_handler(number, frame)

    def second(number: int, frame: FrameType | None) -> None:
        _fail("interrupted")
        os._exit(_INTERRUPTED)

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; default those of the process.

    Returns:
        Exit code: 0, or 2 after one line on stderr that names what was wrong, or 130 when
        interrupted.
    """
    if click is None:
        return _fail(f"the command line needs click: {how_to_install('cli')}")
    try:
        with _second_interrupt_ends():
            return _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        _fail("interrupted")
        return _INTERRUPTED


def _run(argv: list[str]) -> int:
    try:
        with app.make_context("jaxgdp", argv) as context:
            code = app.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _fail(error.format_message())
    except (ValueError, ImportError, OSError) as error:
        return _fail(error)
