"""The explorer's page: sliders, text, and a figure by Vega; numbers of the grid or of a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from .._version import __version__
from ..numerics.optional import missing
from ..numerics.provenance import today
from ..report.strength import GRADES
from . import grid as certified

_COLOURS = {"Poisson batches": "#0072b2", "shuffled data": "#d55e00", "guessing": "#767676"}
_SPEC: dict[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "width": "container",
    "height": 320,
    "autosize": {"type": "fit", "contains": "padding"},
    "data": {"name": "curve", "values": []},
    "encoding": {
        "x": {"field": "fpr", "type": "quantitative", "scale": {"domain": [0, 1]},
              "title": "FPR: non-members flagged", "axis": {"tickCount": 5}},
        "color": {"field": "of", "type": "nominal", "sort": None, "title": None,
                  "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
                  "legend": {"orient": "top", "columns": 3, "symbolType": "stroke",
                             "symbolSize": 400, "symbolStrokeWidth": 3}},
    },
    "layer": [
        {"mark": {"type": "area", "opacity": 0.25}, "encoding": {
            "y": {"field": "low", "type": "quantitative", "scale": {"domain": [0, 1]},
                  "title": "FNR: members missed", "axis": {"tickCount": 5}},
            "y2": {"field": "high"}}},
        {"mark": {"type": "line", "strokeWidth": 2.5}, "encoding": {
            "y": {"field": "low", "type": "quantitative"},
            "strokeDash": {"field": "of", "type": "nominal", "sort": None, "title": None, "scale": {
                "domain": list(_COLOURS), "range": [[1, 0], [8, 3], [3, 3]]}}}},
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


def _round_numbers(low: int, high: int) -> list[int]:
    """1, 1.2, 1.5, … times powers of ten from 10^low to 10^high."""
    digits = (10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90)
    return [d * 10 ** (k - 1) for k in range(low, high) for d in digits] + [10**high]


def stops(live: bool) -> dict[str, Sequence[float]]:
    """Where the sliders stop, by slider: on the grid, or more finely where numbers are computed.

    Example:
        >>> [len(values) for values in stops(live=False).values()]
        [18, 35, 13, 14, 3]
    """
    if live:
        return {
            "sigma": np.round(np.arange(0.3, 10.001, 0.05), 2).tolist(),
            "size": _round_numbers(2, 8),
            "batch": sorted({2**j for j in range(17)} | set(_round_numbers(1, 5))),
            "epochs": [*range(1, 31), *range(32, 101, 2), *range(110, 301, 10)],
            "delta": [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10],
        }
    grid = certified.STOPS
    return {
        "sigma": grid.noise_multiplier.tolist(),
        "size": [int(np.ceil(2.0 ** (i / 2))) for i in range(14, 49)],
        "batch": [2**j for j in range(4, 17)],
        "epochs": grid.num_epochs.tolist(),
        "delta": list(certified.DELTAS),
    }


_START = {"sigma": 0.9, "size": 45_000, "batch": 512, "epochs": 30, "delta": 1e-5}


def page(grid: dict[str, Any] | None) -> str:
    """The whole page.

    Args:
        grid: of ``grid.stored``; None for a page that asks the server that it came from.

    Raises:
        ImportError: vl-convert-python is missing (the ``explore`` extra).
    """
    template = resources.files(__package__ or __name__).joinpath("page.html")
    text = template.read_text(encoding="utf-8")
    embed = lambda value: json.dumps(value, allow_nan=False).replace("</", r"<\/")
    positions = stops(live=grid is None)
    nearest = lambda name: int(np.argmin(np.abs(np.log(np.array(positions[name]) / _START[name]))))
    filled = {
        "VERSION": f"jaxgdp {__version__}, {today()}",
        "GRID": embed(grid),
        "SPEC": embed(_SPEC),
        "STOPS": embed(positions),
        "GRADES": embed([grade._asdict() for grade in GRADES]),
        "START": embed({name: nearest(name) for name in positions}),
        "VEGA": vega(),
    }
    for name, value in filled.items():
        text = text.replace(f"@@{name}@@", value)
    return text
