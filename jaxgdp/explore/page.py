"""The explorer's page: text, sliders and figure by Vega, numbers from the grid or from a server."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from .._version import __version__
from ..numerics.optional import missing
from ..numerics.provenance import today

_SPEC: dict[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "width": "container",
    "height": 320,
    "params": [
        {"name": "sigma", "value": 0.9, "bind": {
            "input": "range", "min": 0.4, "max": 10, "step": 0.05, "name": "noise multiplier "}},
        {"name": "batch", "value": 9, "bind": {
            "input": "range", "min": 0, "max": 16, "step": 0.5, "name": "batch size (log2) "}},
        {"name": "size", "value": 4.65, "bind": {
            "input": "range", "min": 2, "max": 8, "step": 0.05, "name": "data set size (log10) "}},
        {"name": "epochs", "value": 30, "bind": {
            "input": "range", "min": 1, "max": 300, "step": 1, "name": "epochs "}},
        {"name": "delta", "value": 1e-5, "bind": {
            "input": "select", "options": [1e-3, 1e-5, 1e-6, 1e-8], "name": "delta "}},
    ],
    "data": {"name": "curve", "values": []},
    "layer": [
        {"mark": {"type": "area", "opacity": 0.25, "color": "#0072b2"}, "encoding": {
            "x": {"field": "fpr", "type": "quantitative", "scale": {"domain": [0, 1]},
                  "title": "FPR: share of non-members flagged"},
            "y": {"field": "low", "type": "quantitative", "scale": {"domain": [0, 1]},
                  "title": "FNR: share of members missed"},
            "y2": {"field": "high"}}},
        {"mark": {"type": "line", "color": "#0072b2", "strokeWidth": 2.5}, "encoding": {
            "x": {"field": "fpr", "type": "quantitative"},
            "y": {"field": "low", "type": "quantitative"}}},
        {"mark": {"type": "line", "color": "#767676", "strokeDash": [5, 4]}, "encoding": {
            "x": {"field": "fpr", "type": "quantitative"},
            "y": {"field": "guess", "type": "quantitative"}}},
    ],
}  # fmt: skip


def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without a network.

    Raises:
        ImportError: vl-convert-python is missing (the ``explore`` extra).
    """
    try:
        import vl_convert
    except ImportError:
        raise missing("the explorer needs vl-convert-python", "explore") from None
    return vl_convert.javascript_bundle().replace("</script", r"<\/script")


def page(grid: dict[str, Any] | None) -> str:
    """The whole page.

    Args:
        grid: from ``grid.computed``; None for a page that asks the server that it came from.

    Raises:
        ImportError: vl-convert-python is missing (the ``explore`` extra).
    """
    template = resources.files(__package__ or __name__).joinpath("page.html")
    text = template.read_text(encoding="utf-8")
    embed = lambda value: json.dumps(value, allow_nan=False).replace("</", r"<\/")
    filled = {
        "VERSION": f"jaxgdp {__version__}, {today()}",
        "GRID": embed(grid),
        "SPEC": embed(_SPEC),
        "VEGA": vega(),
    }
    for name, value in filled.items():
        text = text.replace(f"@@{name}@@", value)
    return text
