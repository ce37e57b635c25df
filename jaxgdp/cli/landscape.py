"""``jaxgdp landscape``: the regret of reporting μ over a grid of DP-SGD settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .command import command
from .options import (
    FIGURE,
    FORCE,
    cache_compiled_programs,
    draw,
    figure_path,
    flag,
    flag_name,
    given,
    need,
    number,
    option,
    progress_options,
    quiet,
    shared,
    tell_written,
    working,
    writable,
)

if TYPE_CHECKING:
    import xarray

_MOST_RATES = 100_000
_RATES = {"sampling_probs_number": 64, "min_sampling_prob": 1e-4, "max_sampling_prob": 1}
_FILES = {"csv": "landscape.csv", "netcdf": "landscape.nc", "figure": "landscape.png"}
_KINDS = ("lines", "heat-map")


def _options() -> list[Any]:
    return [
        shared("noise_multiplier", many=True, default="0.5 to 8"),
        shared("num_steps", many=True, default="400,1000,2000"),
        shared("sampling_prob", many=True, default="the range below"),
        option("sampling_probs_number", "Number of log-spaced sampling rates.",
               default=_RATES["sampling_probs_number"], read=number),
        option("min_sampling_prob", "Smallest sampling rate.",
               default=_RATES["min_sampling_prob"], read=number),
        option("max_sampling_prob", "Largest sampling rate.",
               default=_RATES["max_sampling_prob"], read=number),
        shared("fpr_floor"),
        shared("rtol"),
        option("from", "Draw a store of `jaxgdp sweep`, or some values of it, and compute nothing;"
               " only files that are named are written, by default the figure.", metavar="PATH",
               to="source"),
        option("figure_type", "lines, or heat-map with a panel for each number of steps.",
               metavar="TEXT", default=_KINDS[0]),
        option("csv", "CSV file to write.", metavar="PATH", default=_FILES["csv"]),
        option("netcdf", "NetCDF file to write.", metavar="PATH", default=_FILES["netcdf"]),
        option("figure", FIGURE, metavar="PATH", default=_FILES["figure"]),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp landscape --noise-multiplier 1,2,4 --num-steps 400,2000 --figure regret.pdf",
        "jaxgdp landscape --from sweep.zarr --figure-type heat-map --figure regret.pdf",
    ),
)
def landscape_command(
    source: str | None, figure_type: str | None, force: bool, **typed: Any
) -> None:
    """Regret of reporting mu over a grid of DP-SGD settings: figure, CSV, NetCDF and a summary."""
    need("xarray", "h5netcdf", "h5py", *([] if source is None else ["zarr", "dask"]))
    asked_for = {name: typed.pop(name) for name in _FILES}
    paths = _paths(asked_for, source is not None, force)
    from ..numerics.validation import one_of

    kind = one_of("--figure-type", figure_type or _KINDS[0], _KINDS)
    rates = {name: typed.pop(name) for name in _RATES}
    asked = given(**typed)
    if source is not None:
        dataset = _stored(source, asked)
    else:
        if "sampling_prob" not in asked:
            asked["sampling_prob"] = _log_spaced(*(_RATES | given(**rates)).values())
        dataset = _computed(asked)
    with working("writing"):
        from ..grids import landscape as grid

        if "csv" in paths:
            grid.write_csv(dataset, paths["csv"])
        if "netcdf" in paths:
            grid.write_netcdf(dataset, paths["netcdf"])
        if "figure" in paths:
            _save_figure(dataset, paths["figure"], kind)
    if not quiet():
        print(grid.summary_text(dataset))
    tell_written(*paths.values())


def _paths(typed: dict[str, str | None], stored: bool, force: bool) -> dict[str, Path]:
    """File by kind: all three, but of a store, which has the numbers, those that were named."""
    names = {name: typed[name] or default for name, default in _FILES.items()}
    if stored:
        named = {name: path for name, path in typed.items() if path is not None}
        names = named or {"figure": _FILES["figure"]}
    check = {"figure": figure_path}
    found = {
        name: check.get(name, writable)(flag_name(name), path, force)
        for name, path in names.items()
    }
    return {name: path for name, path in found.items() if path is not None}


def _log_spaced(number: float, low: float, high: float) -> list[float]:
    import numpy as np

    if not (0.0 < low <= high <= 1.0):
        raise ValueError(
            f"sampling rates must satisfy 0 < min <= max <= 1, got min {low:g} and max {high:g}"
        )
    if not (1 <= number <= _MOST_RATES and number == int(number)):
        raise ValueError(
            f"--sampling-probs-number must be a whole number from 1 to {_MOST_RATES}, got"
            f" {number:g}"
        )
    return np.geomspace(low, high, int(number)).tolist()


def _stored(source: str, wanted: dict[str, Any]) -> xarray.Dataset:
    if fixed := [flag_name(name) for name in ("rtol", "fpr_floor") if name in wanted]:
        raise ValueError(
            f"{', '.join(fixed)} is what the store was computed at: it must not be given with"
            " --from"
        )
    with working("reading"):
        from ..grids import landscape as grid

        dataset = grid.read_store(source)
        for name, values in wanted.items():
            dataset = grid.chosen(dataset, name, values)
    return dataset


def _computed(asked: dict[str, Any]) -> xarray.Dataset:
    with working("loading"):
        from ..grids import landscape as grid

        cache_compiled_programs()
    asked = {"noise_multiplier": grid.NOISE_MULTIPLIERS, "num_steps": grid.NUM_STEPS} | asked
    axes = ("noise_multiplier", "sampling_prob", "num_steps")
    total = len(asked[axes[0]]) * len(asked[axes[1]]) * len(asked[axes[2]])
    with working("measuring", total) as count:
        return grid.landscape(progress=count, **asked)


def _save_figure(dataset: xarray.Dataset, path: Path, kind: str) -> None:
    from ..grids.landscape import QUESTION
    from ..plot import regret_heat_map, regret_panels
    from ..plot.regret import panel_grid

    panels = dataset.sizes["num_steps"]
    rows, columns = panel_grid(panels)
    heat = kind == "heat-map"
    size = (
        (1.5 + 3.2 * columns, 1.2 + 3.2 * rows)
        if heat
        else (1.6 + 3.4 * max(2, columns), 4.4 * rows)
    )

    def drawing(figure: Any) -> None:
        if not heat:
            regret_panels(dataset, figure)
            return
        axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        regret_heat_map(dataset, axes[:panels])
        for spare in axes[panels:]:
            spare.remove()

    draw(path, size, drawing, QUESTION, dataset.attrs["fpr_floor"])
