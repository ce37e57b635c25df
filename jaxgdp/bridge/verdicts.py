"""The verdict on every mechanism of the package, computed when its documentation is built."""

from __future__ import annotations

import numpy as np

from ..mechanisms import Composition, Mechanism, dpsgd
from ..mechanisms.base import known_mechanisms
from ..numerics.rounding import rounded_outward
from .identify import GdpVerdict, identify


def examples() -> dict[str, Mechanism | Composition]:
    """Settings of every mechanism, by what they are."""
    found = {
        name: make() for kind in known_mechanisms().values() for name, make in kind.examples.items()
    }
    return {**found, "dpsgd(9.4, 0.32768, 2000)": dpsgd(9.4, 16384 / 50_000, 2000)}


def verdicts() -> dict[str, GdpVerdict]:
    """The verdict on each of :func:`examples`."""
    return {name: identify(mechanism) for name, mechanism in examples().items()}


def markdown() -> str:
    """A table of :func:`verdicts`: a μ at every rate, μ_t, and the μ down to the default floor."""
    up = lambda x: "∞" if np.isinf(x) else rounded_outward(float(x), up=True, digits=5)
    lines = [
        (
            "| mechanism, used once | GDP at every rate | with μ | tail μ | head μ | holds from FPR"
            " | why |"
        ),
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for name, v in verdicts().items():
        tail = "" if v.tail_mu is None else ("∞" if np.isinf(v.tail_mu) else f"{v.tail_mu:.5g}")
        floor = "0" if v.fpr_floor == 0.0 else f"{v.fpr_floor:.3g}"
        everywhere, head = up(v.everywhere.upper), up(v.head_mu.upper)
        cells = (name, "yes" if v.is_gdp else "no", everywhere, tail, head, floor, v.reason)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
