"""A product grid of DP-SGD settings in one call, as a labelled data set, in memory or in a store on
disk.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, NamedTuple

import numpy as np

from .. import options
from .._version import __version__
from ..accounting.run import executors
from ..bracket import STATUS
from ..measure import measure
from ..mechanisms import dpsgd
from ..numerics.validation import floor_rate, on_host, positive, probability, relative_width, whole
from ..progress import Telling, telling
from ..quantities import registry
from ..scale.cluster import connected
from ..scale.fill import fill
from ..scale.layout import SETTINGS, Layout, chunk_shape
from ..scale.store import local
from ..scale.template import Template, Variable
from ..tradeoff import dominating

_FEW = 1024  # settings that a store has computed without compiling: that is sooner done


class _Grid(NamedTuple):
    """What is asked where.

    Attributes:
        axes: dimension → coordinates. quantities: their names. rates: what they are asked at, and
            the FPR floor.
        rtol, adjacency, executor: as for ``measure``.
    """

    axes: dict[str, np.ndarray]
    quantities: tuple[str, ...]
    rates: dict[str, Any]
    rtol: float
    adjacency: str
    executor: str | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a) for a in self.axes.values())

    @property
    def asked(self) -> dict[str, float]:
        """What each quantity is asked at, of those that are."""
        arguments = ((name, registry.named(name).own_argument) for name in self.quantities)
        return {name: self.rates[own] for name, own in arguments if own is not None}

    def settings(self, region):
        """The settings of a part of the grid, flat."""
        parts = (a[r] for a, r in zip(self.axes.values(), region, strict=True))
        return dpsgd(*(a.reshape(-1) for a in np.meshgrid(*parts, indexing="ij")))


def _column(name, value, check):
    array = np.atleast_1d(check(name, value))
    if array.ndim != 1:
        raise ValueError(f"{name} must be a scalar or one-dimensional, got shape {array.shape}")
    return array


def _measured(grid: _Grid, region, progress, client=None) -> dict[str, np.ndarray]:
    """All variables of a part of the grid."""
    found = measure(
        grid.settings(region), grid.quantities, rtol=grid.rtol, adjacency=grid.adjacency, progress=progress,
        executor=grid.executor, **grid.rates,
    )  # fmt: skip
    shape = tuple(part.stop - part.start for part in region)
    data = {}
    for name, bracket in found.brackets.items():
        data |= {
            name: bracket.upper,
            f"{name}_lower": bracket.lower,
            f"status_{name}": found.status[name],
        }
    data |= {"status": found.worst, "lattice_size": found.lattice_size}
    return {name: np.reshape(values, shape) for name, values in data.items()}


def _variables(grid: _Grid) -> dict[str, Variable]:
    """Every variable of the data set: what kind of number it is, and what it means."""
    meanings = "; ".join(f"{int(code)}: {text}" for code, text in STATUS.items())
    variables = {}
    for name in grid.quantities:
        record = registry.named(name)
        attributes: dict[str, Any] = {
            "long_name": record.long_name,
            "units": record.unit if record.unit == "nats" else "1",
        }
        if name in grid.asked:
            attributes["at"] = grid.asked[name]
        sides = (
            ("achieved by an attack", "safe to report")
            if record.grows
            else ("safe to report", "achieved by an attack")
        )
        lower, upper = (
            attributes | {"side": f"{side}: {what}"}
            for side, what in zip(("lower", "upper"), sides, strict=True)
        )
        variables[name] = Variable("float64", upper)
        variables[f"{name}_lower"] = Variable("float64", lower)
        variables[f"status_{name}"] = Variable(
            "int64", {"long_name": f"status of {name}", "meaning": meanings}
        )
    variables["status"] = Variable(
        "int64", {"long_name": "worst status of all quantities", "meaning": meanings}
    )
    variables["lattice_size"] = Variable("int64", {"long_name": "lattice points used"})
    return variables


def _attributes(grid: _Grid) -> dict[str, Any]:
    return {
        "title": "Certified privacy of DP-SGD",
        "jaxgdp_version": __version__,
        "fpr_floor": grid.rates["fpr_floor"],
        "rtol": grid.rtol,
        "adjacency": grid.adjacency,
    }


def _template(grid: _Grid, settings: int) -> Template:
    layout = Layout(grid.shape, chunk_shape(grid.shape, settings))
    question = {
        **{name: values.tolist() for name, values in grid.axes.items()},
        "quantities": list(grid.quantities),
        "asked at": grid.asked,
        "fpr_floor": grid.rates["fpr_floor"],
        "rtol": grid.rtol,
        "adjacency": grid.adjacency,
        "executor": grid.executor,
        "chunk": list(layout.chunk),
    }
    return Template(grid.axes, _variables(grid), _attributes(grid), question, layout)


def sweep(
    noise_multiplier,
    sampling_prob,
    num_steps,
    quantities=("mu", "regret"),
    rtol=options.RTOL,
    fpr_floor=options.FPR_FLOOR,
    adjacency=options.ADJACENCY,
    delta=options.DELTA,
    epsilon=options.EPSILON,
    fpr=options.FPR,
    d=options.D,
    prior=options.PRIOR,
    progress=None,
    store=None,
    client=None,
    chunk_size=SETTINGS,
    executor=None,
    **others,
):
    """Certified quantities over the product of noise multipliers, sampling rates and numbers of
    steps.

    Each lattice shape is compiled once. With a ``store`` memory is bounded by a chunk of the grid,
    and what was computed outlives the
    process: called again, only missing chunks are computed.

    Args:
        noise_multiplier: σ > 0, scalar or one-dimensional.
        sampling_prob: p in (0, 1], likewise.
        num_steps: whole numbers ≥ 1, likewise.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta",
            "bayes_risk", "approximate_mu" and whatever else is registered (``jaxgdp.quantities``).
        rtol: relative width asked of every bracket (of the regret: a width of rtol/10).
        fpr_floor: FPR floor of μ, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" (where every sampling rate is 1).
        delta: δ of "epsilon".
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta".
        d: of "approximate_mu".
        prior: of "bayes_risk", the probability that the record is absent. All of these are single
            numbers.
        progress: called with the number of settings finished, as they finish; or True for a bar
            with the settings done, how many a second and the time left.
        store: path of a Zarr store to fill (extra ``scale``); None keeps everything in memory. It
            gets a template first, then chunk after chunk, each written once with a checksum; see
            the guide "Large sweeps".
        client: ``dask.distributed.Client`` or the address of a scheduler, whose workers compute
            (extra ``scale``); with a store they write it, at the same path.
        chunk_size: settings of a chunk of the store, at most.
        executor: "eager", "compiled", "product" or "float32", as for :func:`jaxgdp.measure`; None
            with a store is "eager" up to 1024 settings and "compiled" beyond, so that numbers
            depend neither on chunks nor on what ran before. Numbers by "eager", "compiled" and
            "product" agree to rounding.
        **others: what quantities registered by others are asked at, single numbers.

    Returns:
        ``xarray.Dataset`` with dimensions noise_multiplier, sampling_prob, num_steps and, for each
        quantity q, the variables ``q`` (upper side: the one to report, but for "beta" and
        "bayes_risk"), ``q_lower`` and ``status_q`` (0 where ``rtol`` was reached, 1 where not, 2
        where its sides contradicted each other and it is withheld; brackets hold everywhere);
        ``status``, the worst of all quantities, and ``lattice_size``. Units and version are
        attributes. Of a store: ``xarray.open_zarr(store)``, its arrays read as they are needed.

    Raises:
        ValueError: an argument is out of range or a quantity unknown; the store belongs to another
            question or version.
        TypeError: an argument is traced by JAX.
        OSError: names a file of the store that cannot be written or is damaged, or the lock of
            another process that writes it.
        ImportError: xarray is missing (extra ``sweep``), or what a store or a client needs (extra
            ``scale``).

    Example:
        >>> grid = sweep(noise_multiplier=[1.0, 2.0], sampling_prob=1.0, num_steps=[1])
        >>> bool((grid.mu_lower <= 1.0)[0, 0, 0] & (grid.mu >= 1.0)[0, 0, 0])
        True
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("jaxgdp.sweep needs xarray: pip install 'jaxgdp[sweep]'") from None
    on_host(
        "sweep",
        noise_multiplier,
        sampling_prob,
        num_steps,
        rtol,
        fpr_floor,
        delta,
        epsilon,
        fpr,
        d,
        prior,
        others,
    )
    axes = {
        "noise_multiplier": _column("noise_multiplier", noise_multiplier, positive),
        "sampling_prob": _column("sampling_prob", sampling_prob, probability),
        "num_steps": _column("num_steps", num_steps, whole),
    }
    given = {"delta": delta, "epsilon": epsilon, "fpr": fpr, "d": d, "prior": prior} | others
    for name, value in ({"fpr_floor": fpr_floor} | given).items():
        if np.ndim(value) != 0:
            raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    rates = {
        name: float(value) for name, value in registry.checked_arguments("sweep", given).items()
    }
    names = tuple(record.name for record in registry.select(quantities))
    rates["fpr_floor"] = float(floor_rate("fpr_floor", fpr_floor))
    grid = _Grid(axes, names, rates, float(relative_width("rtol", rtol)), adjacency, executor)
    executors.by_name(executor)
    number = int(np.prod(grid.shape))
    if store is not None:
        path = _storable(store)
        chunk_size = int(whole("chunk_size", chunk_size))
        dominating(dpsgd(1.0, axes["sampling_prob"], 1), adjacency)
        chosen = executors.by_name(executor) or (
            executors.EAGER if number <= _FEW else executors.COMPILED
        )
        grid = grid._replace(executor=chosen.name)
    with connected(client) as client, _told(progress, number) as count:
        if store is None:
            data = _measured(grid, tuple(slice(0, n) for n in grid.shape), count, client)
            described = {
                name: (tuple(axes), data[name], v.attributes)
                for name, v in _variables(grid).items()
            }
            return xarray.Dataset(described, coords=axes, attrs=_attributes(grid))
        already = count.already if isinstance(count, Telling) else count
        fill(
            path,
            _template(grid, chunk_size),
            functools.partial(_measured, grid),
            already,
            count,
            client,
        )
    return xarray.open_zarr(path)


def _storable(store):
    try:
        import dask  # noqa: F401
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError(
            "jaxgdp.sweep with a store needs zarr and dask: pip install 'jaxgdp[scale]'"
        ) from None
    return local(store)


@contextlib.contextmanager
def _told(progress, number: int):
    """Where settings are counted: by the caller, by a bar, or nowhere."""
    if progress is not True:
        yield progress or (lambda done: None)
        return
    with telling("sweeping", number, noun="settings", anywhere=True, bar=True, rate=True) as count:
        yield count
