"""A command of the command line: a function, its options with their old names, its examples."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from .known_options import refuse_unknown
else:
    try:
        import click

        from .known_options import refuse_unknown
    except ImportError:  # (the command line says which extra has it)
        click = None

COMMANDS: dict[str, Any] = {}  # name → command, in the order of the help


if click is not None:

    class Command(click.Command):
        """A command whose options are made when needed: registries take a while to load."""

        def __init__(
            self,
            name: str,
            function: Callable[..., Any],
            options: Callable[[], list[Any]],
            examples: tuple[str, ...],
            renamed: Mapping[str, str],
            more: Callable[[], str] | None,
            early: Callable[[list[str]], None] | None,
        ):
            super().__init__(name, callback=function, help=inspect.getdoc(function))
            self.make, self.examples, self.renamed, self.more = options, examples, renamed, more
            self.early = early

        def get_params(self, ctx: Any) -> list[Any]:
            if self.make is not None:
                self.params, self.make = self.make(), None
            return super().get_params(ctx)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            now = [self._present(text) for text in args]
            if self.make is not None and self.early is not None:
                refuse_unknown(str(self.name), now, ctx)
                self.early(now)
            return super().parse_args(ctx, now)

        def _present(self, text: str) -> str:
            """The new name of a renamed option, with a warning; any other text as it is."""
            name, equals, value = text.partition("=")
            if name not in self.renamed:
                return text
            new = self.renamed[name]
            print(f"jaxgdp: warning: {name} is deprecated: write {new}", file=sys.stderr)
            return new + equals + value

        def format_help_text(self, ctx: Any, formatter: Any) -> None:
            super().format_help_text(ctx, formatter)
            if self.more is not None:
                formatter.write_paragraph()
                with formatter.indentation():
                    formatter.write_text(self.more())

        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            show_examples(self.examples, formatter)


def show_examples(examples: tuple[str, ...], formatter: Any) -> None:
    """Examples as they are typed, one a line."""
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for line in examples:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def command(
    options: Callable[[], list[Any]],
    examples: tuple[str, ...],
    renamed: Mapping[str, str] | None = None,
    more: Callable[[], str] | None = None,
    early: Callable[[list[str]], None] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the command line: ``report_command`` becomes ``jaxgdp report``.

    Args:
        options: () → the options; their names are the function's arguments.
        examples: as typed.
        renamed: old name of an option → its name.
        more: () → a sentence of the help that takes a while to make.
        early: (what was typed) → refusal of wrong numbers, before the options are made.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if click is not None:
            name = function.__name__.removesuffix("_command")
            COMMANDS[name] = Command(name, function, options, examples, renamed or {}, more, early)
        return function

    return decorate
