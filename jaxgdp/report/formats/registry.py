"""A report as an entry of OpenDP's registry of deployments, in YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import Format

if TYPE_CHECKING:
    from ..content import Report


def _text(report: Report, **metadata: Any) -> str:
    from ...interop.registry import dump

    return dump(report.to_registry(**metadata)).rstrip()


FORMAT = Format("registry", ".yaml", _text, needs=("yaml",), metadata=True, order=60)
