"""Formats of a report, one file each: a new format is one new file of this folder that holds a
:class:`Format` called ``FORMAT``; :func:`register` adds one from elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..content import Report


@dataclass(frozen=True)
class Format:
    """One way to write a report.

    Attributes:
        name: as users write it, such as "markdown".
        suffix: of files in this format, such as ".md".
        text: (report, metadata by name) → text; None where the format is no text.
        write: (report, path) → None, of a format that is no text.
        needs: modules that it cannot do without.
        metadata: whether it takes more than the report: keywords of ``text``.
        order: place in the help of the command line.
    """

    name: str
    suffix: str
    text: Callable[..., str] | None = None
    write: Callable[[Report, Path], None] | None = None
    needs: tuple[str, ...] = ()
    metadata: bool = False
    order: int = 100

    def save(self, report: Report, path: str | Path, **metadata: Any) -> None:
        """Write a report to a file, which is replaced where it exists."""
        if self.write is not None:
            self.write(report, Path(path))
        elif self.text is not None:
            Path(path).write_text(self.text(report, **metadata) + "\n", encoding="utf-8")


FORMATS: dict[str, Format] = {}


def register(new: Format) -> Format:
    """Add a format, which reports and the command line accept from then on.

    Raises:
        ValueError: there is another one of that name.
    """
    if FORMATS.get(new.name, new) is not new:
        raise ValueError(f"there is a format {new.name!r} already")
    FORMATS[new.name] = new
    for each in sorted(FORMATS.values(), key=lambda known: (known.order, known.name)):
        FORMATS[each.name] = FORMATS.pop(each.name)
    return new


def named(name: str, argument: str = "format") -> Format:
    """The format of that name.

    Raises:
        ValueError: there is none; lists those that there are.
    """
    if name not in FORMATS:
        raise ValueError(f"{argument} must be one of {', '.join(FORMATS)}, got {name!r}")
    return FORMATS[name]


def of_path(path: str | Path) -> Format:
    """The format that the name of a file ends in; text where no format has that ending."""
    suffix = Path(path).suffix.lower()
    return next((f for f in FORMATS.values() if f.suffix == suffix), FORMATS["text"])


for _found in pkgutil.iter_modules(__path__):
    register(importlib.import_module(f"{__name__}.{_found.name}").FORMAT)
