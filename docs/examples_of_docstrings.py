"""Docstrings as the reference shows them: examples and names as code, and pointers to the method as
links.
"""

from __future__ import annotations

import re

import griffe

from jaxgdp.quantities import table

_EXAMPLE = re.compile(r"^Example:$", re.M)
_ROLE = re.compile(r":(?:func|class|meth|mod):`~?([^`]+)`")
_POINTER = re.compile(r"^Method: docs/method/([\w-]+)\.md#([\w-]+)$", re.M)


class Docstrings(griffe.Extension):
    """Shared arguments have their meanings; an "Example" is a section like "Examples"; a line
    "Method: docs/method/page.md#place" leads there.
    """

    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            value = table.with_meanings(obj.docstring.value)
            shown = _ROLE.sub(r"`\1`", _EXAMPLE.sub("Examples:", value))
            obj.docstring.value = _POINTER.sub(r"Method: [\1, \2][\2].", shown)
