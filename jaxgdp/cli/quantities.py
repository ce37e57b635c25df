"""``jaxgdp quantities``: the quantities that a mechanism has."""

from __future__ import annotations

from .command import command
from .options import flag


@command(lambda: [flag("markdown", "Print Markdown instead of text.")], ("jaxgdp quantities",))
def quantities_command(markdown: bool) -> None:
    """Every quantity: its argument and default, the side to report, the accuracy it promises."""
    from ..quantities import table

    print(table.markdown() if markdown else table.plain())
