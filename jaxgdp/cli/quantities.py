"""``jaxgdp quantities``: what can be asked of a mechanism."""

from __future__ import annotations

from typing import Annotated

from .options import option


def quantities_command(
    markdown: Annotated[
        bool, option("--markdown", help="Print Markdown instead of text.", metavar=None)
    ] = False,
) -> None:
    """The quantities that can be asked for: what each is asked at, which side to report, what
    accuracy it promises.

    \b
    Example:
      jaxgdp quantities
    """
    from ..quantities import table

    print(table.markdown() if markdown else table.plain())
