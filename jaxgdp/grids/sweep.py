"""A product grid of DP-SGD settings in one call, as labelled data in memory or in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import options
from ..accounting.run import executors
from ..deprecation import keywords_after, renamed_arguments
from ..mechanisms import dpsgd
from ..numerics.optional import Dataset, missing
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import (
    on_host,
    one_of,
    positive,
    probability,
    relative_width,
    whole,
    whole_up_to,
)
from ..progress import counting
from ..quantities import registry
from ..quantities.table import documented
from ..run_settings import SAMPLINGS
from ..scale.cluster import connected
from ..scale.layout import SETTINGS
from ..scale.store import local
from ..tradeoff import dominating
from . import dataset
from .arguments import axis, distinct, single_numbers
from .cost import A_SECOND, Cost
from .extend import fill
from .grid import FIRST_BY_NUMPY, Count, Grid

if TYPE_CHECKING:
    from pathlib import Path


_FEW = 8192  # settings that a store has computed without compiling: that is sooner done


@renamed_arguments(d="approximation")
@keywords_after(
    4, "rtol", "fpr_floor", "adjacency", "delta", "epsilon", "fpr", "approximation", "prior",
    "progress", "store", "client", "chunk_size", "executor",
)  # fmt: skip
@documented
def sweep(
    noise_multiplier: ArrayLike,
    sampling_prob: ArrayLike | None = None,
    num_steps: ArrayLike | None = None,
    quantities: str | tuple[str, ...] | list[str] = ("mu", "regret"),
    *,
    dataset_size: int | None = None,
    batch_size: ArrayLike | None = None,
    num_epochs: ArrayLike | None = None,
    sampler: str = "poisson",
    records_per_user: int = 1,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    progress: Count | bool | None = None,
    store: str | Path | None = None,
    client: Any = None,
    chunk_size: int = SETTINGS,
    executor: str | None = None,
    yes: bool = False,
    **at: float,
) -> Dataset:
    """Certified quantities over a product of noise multipliers, sampling rates, numbers of steps.

    Each lattice shape is compiled once. With a ``store`` memory is bounded by a chunk of the grid,
    and what was computed outlives the process: called again, only missing chunks are computed.
    With all values of a store and more, the store is extended: only new settings are computed.

    Args:
        noise_multiplier: σ > 0, scalar or one-dimensional.
        sampling_prob: p in (0, 1], likewise.
        num_steps: whole numbers ≥ 1, likewise. No axis may hold a value twice.
        quantities: names of registered quantities (``jaxgdp.quantities``), such as "mu", "regret",
            "epsilon" or "beta".
        dataset_size: n, a single number, in place of ``sampling_prob``, as for :func:`jaxgdp.run`:
            the dimensions are then noise_multiplier, batch_size and num_epochs (or num_steps, of
            the whole run).
        batch_size: b, scalar or one-dimensional.
        num_epochs: scalar or one-dimensional, in place of ``num_steps``.
        sampler: as for :func:`jaxgdp.run`, but for "unknown".
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
        yes: whether to begin even what may take more than a day.
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
            question or version; the grid does not fit into memory, or would take more than a day.
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
    runs = {"dataset_size": dataset_size, "batch_size": batch_size, "num_epochs": num_epochs}
    axes = _axes(noise_multiplier, sampling_prob, num_steps, runs, sampler)
    numbers = single_numbers("sweep", fpr_floor, at)
    names = tuple(quantity.name for quantity in registry.select(quantities))
    grid = Grid(axes, names, numbers, float(relative_width("rtol", rtol)), adjacency, executor)
    grid = grid._replace(
        records=_one_whole("records_per_user", records_per_user),
        dataset_size=None if dataset_size is None else float(dataset_size),
        sampler=sampler,
    )
    chosen = executors.by_name(executor)
    cost = Cost.of(grid.shape, len(names))
    cost.check(stored=path is not None, yes=yes)
    chunk_size = int(whole("chunk_size", chunk_size))
    if path is not None:
        dominating(grid.settings(tuple(slice(0, 1) for _ in axes)), adjacency)
        left = executors.EAGER.name if cost.settings <= _FEW else FIRST_BY_NUMPY
        grid = grid._replace(executor=left if chosen is None else chosen.name)
    counted = counting(progress, "sweeping", cost.settings, A_SECOND)
    with connected(client) as client, counted as given:
        count = given or (lambda done: None)
        if path is None:
            template = grid.template(chunk_size)
            data = grid.measured(grid.whole, count, client)
            return dataset.labelled(axes, data, template.variables, template.attributes)
        skip = getattr(count, "skip", count)
        fill(path, grid, chunk_size, chosen is None, skip, count, client)
    import xarray

    return xarray.open_zarr(path)


def _axes(
    noise_multiplier: ArrayLike,
    sampling_prob: ArrayLike | None,
    num_steps: ArrayLike | None,
    runs: dict[str, Any],
    sampler: str,
) -> dict[str, Array]:
    """Dimension → coordinates: rates and steps, or batches and epochs of runs."""
    given: dict[str, tuple[Any, Any]] = {"noise_multiplier": (noise_multiplier, positive)}
    if all(value is None for value in runs.values()):
        if sampler != "poisson":
            raise ValueError(f"sampler {sampler!r} needs dataset_size, batch_size and num_epochs")
        given["sampling_prob"] = (1.0 if sampling_prob is None else sampling_prob, probability)
        if num_steps is None:
            raise ValueError("num_steps must be given, or dataset_size, batch_size and num_epochs")
        given["num_steps"] = (num_steps, whole)
    else:
        if sampling_prob is not None:
            raise ValueError("sampling_prob follows from dataset_size and batch_size: leave it out")
        one_of("sampler", sampler, tuple(SAMPLINGS))
        lacking = [name for name in ("dataset_size", "batch_size") if runs[name] is None]
        if lacking or (runs["num_epochs"] is None) == (num_steps is None):
            raise ValueError(
                f"{', '.join(lacking) or 'one of num_epochs and num_steps'} must be given: runs"
                " need dataset_size, batch_size, and num_epochs or num_steps"
            )
        size = float(_one_whole("dataset_size", runs["dataset_size"]))
        given["batch_size"] = (runs["batch_size"], lambda n, v: whole_up_to(n, v, size))
        length = (num_steps, whole) if num_steps is not None else (runs["num_epochs"], positive)
        given["num_epochs" if num_steps is None else "num_steps"] = length
    return {name: distinct(name, axis(name, *value)) for name, value in given.items()}


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
