"""A store whose numbers cost nothing, for tests of what happens to stores; run as a program it
fills one until it is killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from jaxgdp.scale.compute import compute_missing
from jaxgdp.scale.layout import Layout
from jaxgdp.scale.template import Template, Variable

SHAPE, CHUNK = (10, 8), (2, 8)


def template(**question) -> Template:
    """Of a table of x·y and whether it is odd."""
    axes = {"x": np.arange(SHAPE[0], dtype=float), "y": np.arange(SHAPE[1], dtype=float)}
    variables = {"product": Variable("float64", {"units": "1"}), "odd": Variable("int64", {})}
    return Template(
        axes,
        variables,
        {"title": "products"},
        {"function": "product"} | question,
        Layout(SHAPE, CHUNK),
    )


def compute(region, progress=None, pause=0.0):
    """Both variables of a part of the table."""
    x, y = (np.arange(part.start, part.stop) for part in region)
    product = np.multiply.outer(x, y)
    time.sleep(pause)
    if progress is not None:
        progress(product.size)
    return {"product": product.astype(float), "odd": product % 2}


def nothing(number) -> None:
    """Counts nothing."""


def filled(path: Path, already=nothing, progress=nothing, pause=0.0, **question) -> Path:
    """A store that is whole."""
    compute_missing(
        path, template(**question), lambda region, p: compute(region, p, pause), already, progress
    )
    return path


def files(path: Path) -> dict[str, bytes]:
    """Every file of a store."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


if __name__ == "__main__":
    print("ready", flush=True)
    filled(Path(sys.argv[1]), pause=float(sys.argv[2]))
