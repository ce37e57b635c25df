"""A product grid of DP-SGD settings in one call, as labelled data in memory or in a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import options
from ..accounting.run import executors
from ..accounting.run.background import expecting
from ..deprecation import keywords_after, renamed_arguments
from ..measure import measure
from ..mechanisms import Composition, dpsgd
from ..numerics.optional import Client, Dataset, missing
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import on_host, positive, probability, relative_width, whole
from ..progress import counting
from ..quantities import registry
from ..quantities.table import documented
from ..scale.cluster import connected
from ..scale.compute import compute_missing
from ..scale.layout import SETTINGS, Layout, Region, chunk_shape
from ..scale.store import local
from ..scale.template import Template
from ..tradeoff import dominating
from . import dataset
from .arguments import asked_at, axis, single_numbers

if TYPE_CHECKING:
    from pathlib import Path

Count = Callable[[int], None]

_FEW = 8192  # settings that a store has computed without compiling: that is sooner done
# the first ones of more, which NumPy computes while the programs for the others are compiled
_FIRST = 4096
_FIRST_BY_NUMPY = "eager, then compiled"


class _Grid(NamedTuple):
    """A question and its grid.

    Attributes:
        axes: dimension → coordinates.
        quantities: their names.
        numbers: arguments of the quantities, and the FPR floor.
        rtol, adjacency, executor: as for ``measure``; or ``_FIRST_BY_NUMPY``.
        records: most records of one user.
    """

    axes: dict[str, Array]
    quantities: tuple[str, ...]
    numbers: dict[str, Any]
    rtol: float
    adjacency: str
    executor: str | None
    records: int = 1

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
        return dpsgd(*flat, records_per_user=self.records)

    def measured(
        self, region: Region, progress: Count | None, client: Client | str | None = None
    ) -> dict[str, Array]:
        """All variables of a part of the grid."""
        shape = tuple(part.stop - part.start for part in region)
        asked = {"rtol": self.rtol, "adjacency": self.adjacency, "progress": progress}
        asked |= {"client": client, **self.numbers}
        values: dict[str, Array] = {}
        for executor, rows in self._shares(region):
            with expecting(0, compiled=self.executor == _FIRST_BY_NUMPY):
                some = self.settings(region, rows)
                found = measure(some, self.quantities, executor=executor, **asked)
            for name, a in dataset.values(found).items():
                values.setdefault(name, np.empty(len(rows), a.dtype))[rows] = a
        return {name: np.reshape(a, shape) for name, a in values.items()}

    def _shares(self, region: Region) -> list[tuple[str | None, Array]]:
        """Who computes which settings of a part of the grid."""
        places = np.arange(np.prod(self.shape)).reshape(self.shape)[region].reshape(-1)
        if self.executor != _FIRST_BY_NUMPY:
            return [(self.executor, np.ones(len(places), bool))]
        first = places < _FIRST
        shares = (executors.EAGER.name, first), (executors.COMPILED.name, ~first)
        return [(name, rows) for name, rows in shares if np.any(rows)]

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
        described = dataset.variables(map(registry.named, self.quantities), asked)
        about = dataset.attributes(
            "Certified privacy of DP-SGD" + self._of_users(),
            self.numbers["fpr_floor"],
            self.rtol,
            self.adjacency,
        )
        return Template(self.axes, described, about, question, layout)


@renamed_arguments(d="approximation")
@keywords_after(
    4, "rtol", "fpr_floor", "adjacency", "delta", "epsilon", "fpr", "approximation", "prior",
    "progress", "store", "client", "chunk_size", "executor",
)  # fmt: skip
@documented
def sweep(
    noise_multiplier: ArrayLike,
    sampling_prob: ArrayLike,
    num_steps: ArrayLike,
    quantities: str | tuple[str, ...] | list[str] = ("mu", "regret"),
    *,
    records_per_user: int = 1,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    progress: Count | bool | None = None,
    store: str | Path | None = None,
    client: Any = None,
    chunk_size: int = SETTINGS,
    executor: str | None = None,
    **at: float,
) -> Dataset:
    """Certified quantities over a product of noise multipliers, sampling rates, numbers of steps.

    Each lattice shape is compiled once. With a ``store`` memory is bounded by a chunk of the grid,
    and what was computed outlives the process: called again, only missing chunks are computed.

    Args:
        noise_multiplier: σ > 0, scalar or one-dimensional.
        sampling_prob: p in (0, 1], likewise.
        num_steps: whole numbers ≥ 1, likewise.
        quantities: names of registered quantities (``jaxgdp.quantities``), such as "mu", "regret",
            "epsilon" or "beta".
        records_per_user: most records of one user, one whole number from 1 to 256, where neighbours
            differ in a user.
        {rtol, fpr_floor, adjacency}
        progress: called with the number of settings finished, as they finish; or True for a bar
            with the settings done, how many a second and the time left.
        store: path of a Zarr store to fill (extra ``scale``); None keeps everything in memory. It
            gets a template first, then chunk after chunk, each written once with a checksum; see
            the guide "Large sweeps".
        client: ``dask.distributed.Client`` or the address of a scheduler, whose workers compute
            (extra ``scale``); with a store they write it, at the same path.
        chunk_size: settings of a chunk of the store, at most.
        executor: "eager", "compiled", "product" or "float32", as for :func:`jaxgdp.measure`; None
            with a store is "eager" up to 8192 settings. Of more, NumPy computes the first 4096,
            while programs compile beside it that compute the others: numbers depend neither on
            chunks nor on what ran before. Numbers by "eager", "compiled" and "product" agree to
            rounding.
        **at: arguments of the quantities, single numbers, as for :func:`jaxgdp.measure`: ``delta``
            of "epsilon", ``epsilon`` of "delta", ``fpr`` of "tpr" and "beta", ``approximation`` of
            "approximate_mu", ``prior`` of "bayes_risk", and those of quantities registered by
            others.

    Returns:
        ``xarray.Dataset`` with dimensions noise_multiplier, sampling_prob, num_steps. For each
        quantity q it holds ``q``, the side to report (the upper side; of "beta" and "bayes_risk"
        the lower one), both sides ``q_lower`` and ``q_upper``, and ``status_q`` (0 where ``rtol``
        was reached, 1 where not, 2 where the two sides contradicted each other and the bracket is
        withheld; brackets hold everywhere). ``status`` is the worst of all quantities, and
        ``lattice_size`` the number of lattice points. Units and version are attributes. With a
        store it is ``xarray.open_zarr(store)``, whose arrays are read as they are needed.

    Raises:
        ValueError: an argument is out of range or a quantity unknown; the store belongs to another
            question or version.
        TypeError: an argument is traced by JAX, or no quantity has an argument of that name.
        OSError: names a file of the store that cannot be written or is damaged, or the lock of
            another process that writes it.
        ImportError: xarray is missing (extra ``sweep``), or a package that a store or a client
            needs (extra ``scale``).

    Example:
        >>> grid = sweep(noise_multiplier=[1.0, 2.0], sampling_prob=1.0, num_steps=[1])
        >>> bool((grid.mu_lower <= 1.0)[0, 0, 0] & (grid.mu >= 1.0)[0, 0, 0])
        True
    """
    path = None if store is None else _storable(store)
    dataset.need_xarray("sweep")
    on_host("sweep", noise_multiplier, sampling_prob, num_steps, rtol, fpr_floor, at)
    dpsgd(1.0, 1.0, 1, records_per_user)  # (names the range)
    axes = {
        "noise_multiplier": axis("noise_multiplier", noise_multiplier, positive),
        "sampling_prob": axis("sampling_prob", sampling_prob, probability),
        "num_steps": axis("num_steps", num_steps, whole),
    }
    numbers = single_numbers("sweep", fpr_floor, at)
    names = tuple(quantity.name for quantity in registry.select(quantities))
    grid = _Grid(axes, names, numbers, float(relative_width("rtol", rtol)), adjacency, executor)
    grid = grid._replace(records=_one_whole("records_per_user", records_per_user))
    chosen = executors.by_name(executor)
    number = int(np.prod(grid.shape))
    chunk_size = int(whole("chunk_size", chunk_size))
    if path is not None:
        dominating(dpsgd(1.0, axes["sampling_prob"], 1, grid.records), adjacency)
        left = executors.EAGER.name if number <= _FEW else _FIRST_BY_NUMPY
        grid = grid._replace(executor=left if chosen is None else chosen.name)
    template = grid.template(chunk_size)
    with connected(client) as client, counting(progress, "sweeping", number) as given:
        count = given or (lambda done: None)
        if path is None:
            data = grid.measured(grid.whole, count, client)
            return dataset.labelled(axes, data, template.variables, template.attributes)
        skip = getattr(count, "skip", count)
        compute_missing(path, template, grid.measured, skip, count, client)
    import xarray

    return xarray.open_zarr(path)


def _one_whole(name: str, value: int) -> int:
    if np.ndim(value) != 0:
        raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    return int(whole(name, value))


def _storable(store: Any) -> Path:
    try:
        import dask  # noqa: F401
        import xarray  # noqa: F401
        import zarr  # noqa: F401
    except ImportError:
        raise missing("jaxgdp.sweep with a store needs xarray, zarr and dask", "scale") from None
    return local(store)
