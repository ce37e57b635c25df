"""Certified brackets as labelled data: variables and their meaning, in memory, stores, CSV files.

For each quantity the data hold ``<name>``, the side to report (the upper side; of "beta" and
"bayes_risk" the lower one), both sides as ``<name>_lower`` and ``<name>_upper``, and
``status_<name>``. ``status`` is the worst code of all quantities, and ``lattice_size`` the number
of lattice points used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from .._version import __version__
from ..bracket import STATUS
from ..measure import Measured
from ..numerics.optional import Dataset, missing
from ..numerics.provenance import comments, provenance
from ..numerics.shapes import Array
from ..quantities import registry
from ..quantities.base import Quantity
from ..scale.template import Variable

LAYOUT = 2  # of the names below; a store of another layout is of another question
_WHOLE_NUMBERS = ("num_steps", "batch_size", "num_epochs")  # axes that files show as integers
_QUESTION = ("dataset_size", "rtol", "adjacency")  # attributes that files name above their header


def need_xarray(caller: str) -> None:
    """Refuse to go on where xarray is missing.

    Raises:
        ImportError: it is missing; names the extra.
    """
    try:
        import xarray  # noqa: F401
    except ImportError:
        raise missing(f"jaxgdp.{caller} needs xarray", "sweep") from None


def variables(quantities: Iterable[Quantity], at: Mapping[str, float]) -> dict[str, Variable]:
    """Every variable of the data: its kind of number and its attributes.

    Args:
        quantities: those that are requested.
        at: quantity → its argument, for those that have one.

    Example:
        >>> list(variables([registry.named("beta")], {"beta": 1e-3}))
        ['beta', 'beta_lower', 'beta_upper', 'status_beta', 'status', 'lattice_size']
    """
    meaning = "; ".join(f"{int(code)}: {text}" for code, text in STATUS.items())
    found = {}
    for quantity in quantities:
        name = quantity.name
        about: dict[str, Any] = {
            "long_name": quantity.long_name,
            "symbol": quantity.symbol,
            "units": quantity.unit if quantity.unit == "nats" else "1",
        }
        if name in at:
            about["at"] = at[name]
        sides = {side: f"{side}: achieved by an attack" for side in ("lower", "upper")}
        sides[quantity.safe_side] = f"{quantity.safe_side}: safe to report"
        found[name] = Variable("float64", about | {"side": sides[quantity.safe_side]})
        for side, what in sides.items():
            found[f"{name}_{side}"] = Variable("float64", about | {"side": what})
        found[f"status_{name}"] = Variable(
            "int64", {"long_name": f"status of {name}", "meaning": meaning}
        )
    worst = {"long_name": "worst status of all quantities", "meaning": meaning}
    found["status"] = Variable("int64", worst)
    found["lattice_size"] = Variable("int64", {"long_name": "lattice points used"})
    return found


def values(found: Measured) -> dict[str, Array]:
    """The numbers of every variable, in the shape of what was measured."""
    data: dict[str, Array] = {}
    for name, bracket in found.brackets.items():
        data[name] = getattr(bracket, registry.named(name).safe_side)
        data[f"{name}_lower"] = bracket.lower
        data[f"{name}_upper"] = bracket.upper
        data[f"status_{name}"] = found.status[name]
    return data | {"status": found.worst, "lattice_size": found.lattice_size}


def attributes(title: str, fpr_floor: float, rtol: float, adjacency: str) -> dict[str, Any]:
    """Attributes of the whole data set: the question and the version that computed it."""
    return {
        "title": title,
        "jaxgdp_version": __version__,
        "fpr_floor": fpr_floor,
        "rtol": rtol,
        "adjacency": adjacency,
    }


def labelled(
    axes: Mapping[str, Any],
    data: Mapping[str, Array],
    described: Mapping[str, Variable],
    about: Mapping[str, Any],
) -> Dataset:
    """The data set.

    Args:
        axes: dimension → coordinates, in order.
        data: variable → array over all axes.
        described: variable → its attributes, from :func:`variables`.
        about: attributes of the whole, from :func:`attributes`.
    """
    import xarray

    arrays = {name: (tuple(axes), data[name], v.attributes) for name, v in described.items()}
    return xarray.Dataset(arrays, coords=axes, attrs=about)


def quantities_of(dataset: Dataset) -> list[str]:
    """Names of the quantities that a data set holds with both sides.

    Raises:
        ValueError: the data set has the layout of an earlier version, in which ``<name>`` was the
            upper side of every quantity.
    """
    names = [str(name) for name in dataset.data_vars if f"{name}_lower" in dataset]
    old = [name for name in names if f"{name}_upper" not in dataset]
    if old:
        raise ValueError(
            f"dataset must hold {', '.join(f'{name}_upper' for name in old)}: in data of jaxgdp"
            " before 0.3 the variable without a suffix was the upper side of every quantity."
            " Compute it again"
        )
    return names


def narrow_and_wide(status: Array) -> str:
    """How many settings are as narrow as requested, in words."""
    total, wide = np.size(status), int(np.sum(status != 0))
    narrow = f"{total} settings, {total - wide} as narrow as requested"
    return f"{narrow}, {wide} wider (their brackets hold too)"


def question_of(dataset: Dataset, question: str) -> dict[str, Any]:
    """Header of a file of the data: version, date, question and its arguments."""
    asked = {name: dataset.attrs[name] for name in _QUESTION if name in dataset.attrs}
    asked |= {
        f"{name}_at": dataset[name].attrs["at"]
        for name in dataset.data_vars
        if "at" in dataset[name].attrs and f"{name}_lower" in dataset
    }
    return provenance(question, dataset.attrs.get("fpr_floor"), **asked)


def write_csv(
    dataset: Dataset, path: str | PathLike[str], question: str, axes: Sequence[str]
) -> None:
    """One row per setting: its coordinates, then every variable of the data set but the lattice.

    Above the header stand lines that begin with "#": version, date, question and settings (pandas:
    ``comment="#"``).

    Args:
        dataset: labelled data.
        path: of the file.
        question: what the numbers answer, in words.
        axes: dimensions in the order of the columns and rows.

    Raises:
        ValueError: the data have the layout of an earlier version.
    """
    ordered = dataset.transpose(*axes)
    columns = [f"{n}{end}" for n in quantities_of(dataset) for end in ("", "_lower", "_upper")]
    columns += [n for n in map(str, dataset.data_vars) if n.startswith("status")]
    numbers = [ordered[name].values for name in columns]
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(comments(question_of(dataset, question)))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*axes, *columns])
        for index in np.ndindex(*(ordered.sizes[axis] for axis in axes)):
            row = [_text(ordered[n].values[i], n) for n, i in zip(axes, index, strict=True)]
            writer.writerow(row + [_text(column[index]) for column in numbers])


def _text(value: Any, axis: str = "") -> str:
    """A cell of a file: every digit of a number, integers without a point."""
    if isinstance(value, str):
        return str(value)
    whole = axis in _WHOLE_NUMBERS or isinstance(value, np.integer)
    return str(int(value)) if whole else repr(float(value))
