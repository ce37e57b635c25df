"""A grid of settings and its question, computed part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..accounting.run import executors
from ..accounting.run.background import expecting
from ..measure import measure
from ..mechanisms import Composition, dpsgd
from ..numerics.optional import Client
from ..numerics.shapes import Array
from ..quantities import registry
from ..run_settings import run
from ..scale.layout import Layout, Region, chunk_shape
from ..scale.template import Template
from . import dataset
from .arguments import asked_at

Count = Callable[[int], None]

# the first settings of many, which NumPy computes while the programs for the others are compiled
_FIRST = 4096
FIRST_BY_NUMPY = "eager, then compiled"


class Grid(NamedTuple):
    """A question and its grid.

    Attributes:
        axes: dimension → coordinates.
        quantities: their names.
        numbers: arguments of the quantities, and the FPR floor.
        rtol, adjacency, executor: as for ``measure``; or ``FIRST_BY_NUMPY``.
        records: most records of one user.
        dataset_size: n, where the axes are batch sizes and epochs or steps of runs; else None.
        sampler: of those runs.
    """

    axes: dict[str, Array]
    quantities: tuple[str, ...]
    numbers: dict[str, Any]
    rtol: float
    adjacency: str
    executor: str | None
    records: int = 1
    dataset_size: float | None = None
    sampler: str = "poisson"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a) for a in self.axes.values())

    @property
    def whole(self) -> Region:
        """The region of all settings."""
        return tuple(slice(0, n) for n in self.shape)

    def _of_users(self) -> str:
        return f", users with up to {self.records} records" if self.records > 1 else ""

    def settings(self, region: Region, rows: Array | slice = slice(None)) -> Composition:
        """The settings of a part of the grid, flat, or some of its rows."""
        parts = (a[r] for a, r in zip(self.axes.values(), region, strict=True))
        flat = (a.reshape(-1)[rows] for a in np.meshgrid(*parts, indexing="ij"))
        given = dict(zip(self.axes, flat, strict=True)) | {"records_per_user": self.records}
        if self.dataset_size is None:
            return dpsgd(**given)
        return run(**given, dataset_size=self.dataset_size, sampler=self.sampler).mechanism

    def measured(
        self,
        region: Region,
        progress: Count | None,
        client: Client | str | None = None,
        wanted: Array | None = None,
    ) -> dict[str, Array]:
        """All variables of a part of the grid, or of its ``wanted`` rows, flat, alone."""
        shape = tuple(part.stop - part.start for part in region)
        asked = {"rtol": self.rtol, "adjacency": self.adjacency, "progress": progress}
        asked |= {"client": client, **self.numbers}
        values: dict[str, Array] = {}
        for executor, rows in self._shares(region, wanted):
            with expecting(0, compiled=self.executor == FIRST_BY_NUMPY):
                some = self.settings(region, rows)
                found = measure(some, self.quantities, executor=executor, **asked)
            for name, a in dataset.values(found).items():
                values.setdefault(name, np.empty(len(rows), a.dtype))[rows] = a
        return {name: np.reshape(a, shape) for name, a in values.items()}

    def _shares(self, region: Region, wanted: Array | None) -> list[tuple[str | None, Array]]:
        """Who computes which settings of a part of the grid."""
        number = int(np.prod([part.stop - part.start for part in region]))
        all_rows = np.ones(number, bool) if wanted is None else wanted
        if self.executor != FIRST_BY_NUMPY:
            return [(self.executor, all_rows)]
        # (places are counted in C order; an array of them all would be as large as the grid)
        corner = np.indices([part.stop - part.start for part in region]).reshape(len(region), -1)
        starts = np.array([part.start for part in region])[:, None]
        first = np.ravel_multi_index(tuple(corner + starts), self.shape) < _FIRST
        shares = (executors.EAGER.name, first), (executors.COMPILED.name, ~first)
        chosen = [(name, rows & all_rows) for name, rows in shares]
        return [(name, rows) for name, rows in chosen if np.any(rows)]

    def template(self, settings: int) -> Template:
        """The template of a store whose chunks hold so many settings."""
        layout = Layout(self.shape, chunk_shape(self.shape, settings))
        asked = asked_at(self.quantities, self.numbers)
        question = {
            **{name: values.tolist() for name, values in self.axes.items()},
            "quantities": list(self.quantities),
            "asked at": asked,
            "fpr_floor": self.numbers["fpr_floor"],
            "rtol": self.rtol,
            "adjacency": self.adjacency,
            "executor": self.executor,
            "chunk": list(layout.chunk),
            "names of variables": f"layout {dataset.LAYOUT}",
        }
        if self.records > 1:
            question["records_per_user"] = self.records
        if self.dataset_size is not None:
            question |= {"dataset_size": self.dataset_size, "sampler": self.sampler}
        described = dataset.variables(map(registry.named, self.quantities), asked)
        about = dataset.attributes(
            "Certified privacy of DP-SGD" + self._of_users(),
            self.numbers["fpr_floor"],
            self.rtol,
            self.adjacency,
        )
        if self.dataset_size is not None:
            about |= {"dataset_size": self.dataset_size, "sampler": self.sampler}
        return Template(self.axes, described, about, question, layout)
