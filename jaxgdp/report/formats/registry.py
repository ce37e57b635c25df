"""A report as an entry of OpenDP's registry of deployments, in YAML."""

from typing import Any

from . import Format


def _text(report: Any, **metadata: Any) -> str:
    from ...interop.registry import dump

    return dump(report.to_registry(**metadata)).rstrip()


FORMAT = Format("registry", ".yaml", _text, needs=("yaml",), metadata=True, order=60)
