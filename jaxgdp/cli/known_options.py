"""Options of commands whose options come from registries: names that are known before these, and
JAX with them, are loaded. They are stored beside this file, and written again by

    python -c "from jaxgdp.cli import app, known_options; known_options.write(app.commands)"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

PATH = Path(__file__).with_suffix(".json")


def refuse_unknown(command: str, typed: list[str], context: Any) -> None:
    """Refuse an option that there is not, in the words of click.

    Once JAX is loaded nothing is gained, and somebody may have registered more.

    Raises:
        NoSuchOption: names the option and those that are close.
    """
    if "jax" in sys.modules:
        return
    names = json.loads(PATH.read_text(encoding="utf-8"))[command]
    for text in typed:
        name = text.partition("=")[0]
        if name.startswith("--") and name != "--" and name not in names:
            raise click.NoSuchOption(name, possibilities=names, ctx=context)


def of_registries(commands: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names as the registries have them, of the commands that look here first."""
    context = click.Context(click.Group())
    return {
        name: sorted({flag for one in command.get_params(context) for flag in one.opts})
        for name, command in commands.items()
        if command.early is not None
    }


def write(commands: Mapping[str, Any]) -> None:
    """Store the names as the registries have them now."""
    PATH.write_text(json.dumps(of_registries(commands), indent=1) + "\n", encoding="utf-8")
