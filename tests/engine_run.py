"""One run of the engine: at one accuracy, by one executor if wanted, with nothing laid over what it
found.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from jaxgdp.accounting.run import engine, executors, routes
from jaxgdp.mechanisms import as_composition
from jaxgdp.quantities import registry


class EngineRun(NamedTuple):
    """Brackets and statuses by quantity (as ``measure`` gives them), and the lattice of each
    setting.
    """

    brackets: dict
    status: dict
    lattices: list[Any]


def question(names, rtol=1e-3, fpr_floor=1e-10, adjacency="add_remove"):
    """``names``: quantities, or quantity → what it is asked at."""
    at = names if isinstance(names, dict) else dict.fromkeys(names)
    asked = tuple((registry.named(name), value) for name, value in at.items())
    depths = [record.rate(value) for record, value in asked if record.rate is not None]
    deepest = functools.reduce(np.minimum, depths) if depths else None
    return engine.Question(rtol, fpr_floor, adjacency, asked, deepest)


def run_engine(
    mechanism,
    names,
    rtol=1e-3,
    fpr_floor=1e-10,
    adjacency="add_remove",
    max_size=engine.MAX_SIZE,
    executor=None,
):
    """What one run of the engine finds for a batch of mechanisms (one axis)."""
    groups = as_composition(mechanism).stacked()
    asked = question(names, rtol, fpr_floor, adjacency)
    found = routes.answer(groups, asked, max_size=max_size, executor=executors.by_name(executor))
    brackets, status = {}, {}
    for record, _ in asked.asked:
        brackets[record.name], contradicted = record.settle(found.results[record.name])
        status[record.name] = record.status(brackets[record.name], contradicted, rtol)
    return EngineRun(brackets, status, found.lattices)
