"""The template of a store, written before its first chunk, with a fingerprint of its question."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..numerics.provenance import today
from ..numerics.shapes import Array
from .layout import Layout

OWN = "jaxgdp"  # the group of a store's own question, versions and checksums
DIGEST = 32  # bytes of a SHA-256
EMPTY: dict[str, Any] = {
    "f": np.nan,
    "i": -1,
}  # read where nothing was computed yet, by kind of number
_DISTRIBUTIONS = ("jax", "jaxlib", "numpy", "scipy")  # bits depend on these, beside the machine


class Variable(NamedTuple):
    """One array of the grid."""

    dtype: str
    attributes: dict[str, Any]


class Template(NamedTuple):
    """Everything about a store that is known before anything is computed.

    Attributes:
        axes: dimension → coordinates, in order.
        variables: name → :class:`Variable`.
        attributes: of the data set.
        question: distinguishes it from another sweep, as JSON.
        layout: the grid and its chunks.
    """

    axes: dict[str, Array]
    variables: dict[str, Variable]
    attributes: dict[str, Any]
    question: dict[str, Any]
    layout: Layout


@functools.cache
def _version(distribution: str) -> str:
    return metadata.version(distribution)


def versions() -> dict[str, str]:
    """Versions of this package and of the libraries that compute for it, read once a process: a
    library that is installed later does not compute here.
    """
    from .._version import __version__

    return {"jaxgdp": __version__} | {name: _version(name) for name in _DISTRIBUTIONS}


def digest(path: Path) -> bytes:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).digest()


def chunk_file(name: str, place: Iterable[int]) -> str:
    """The file of a chunk of an array (Zarr 3, default chunk keys)."""
    return "/".join([name, "c", *map(str, place)])


def _files(template: Template) -> list[str]:
    """Every file of the template but the fingerprint itself."""
    groups = ["", f"{OWN}/"]
    arrays = [*template.axes, *template.variables, f"{OWN}/done", f"{OWN}/fingerprint"]
    return [f"{group}zarr.json" for group in groups] + sorted(
        [f"{name}/zarr.json" for name in arrays]
        + [chunk_file(name, (0,)) for name in template.axes]
    )


def create(path: Path, template: Template) -> None:
    """Write the template of a new store: beside it first, so that it is whole or absent.

    Raises:
        FileExistsError: something else has that name.
    """
    import zarr

    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(
            errno.EEXIST, "this is there, and no store of jaxgdp.sweep", str(path)
        )
    partial = path.with_name(path.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    root = zarr.create_group(partial, zarr_format=3, attributes=template.attributes)

    def array(
        group: zarr.Group,
        name: str,
        shape: tuple[int, ...],
        chunk: tuple[int, ...],
        dtype: str,
        dimensions: tuple[str, ...],
        attributes: dict[str, Any] | None = None,
    ) -> zarr.Array:
        return group.create_array(
            name,
            shape=shape,
            chunks=chunk,
            dtype=dtype,
            fill_value=EMPTY.get(np.dtype(dtype).kind, 0),
            dimension_names=dimensions,
            attributes=attributes or {},
            compressors=None,
        )

    for name, values in template.axes.items():
        array(root, name, values.shape, values.shape, str(values.dtype), (name,))[:] = values
    for name, variable in template.variables.items():
        array(
            root, name, *template.layout, variable.dtype, tuple(template.axes), variable.attributes
        )
    about = {"question": template.question, "versions": versions(), "date": today()}
    own = root.create_group(OWN, attributes=about)
    width, files = len(template.variables), _files(template)
    array(
        own,
        "done",
        (template.layout.number, width, DIGEST),
        (1, width, DIGEST),
        "uint8",
        ("chunk", "variable", "byte"),
    )
    fingerprint = array(
        own, "fingerprint", (len(files), DIGEST), (len(files), DIGEST), "uint8", ("file", "byte")
    )
    with warnings.catch_warnings():
        # consolidated metadata are an extension of Zarr 3, which xarray uses
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(partial)
    fingerprint[:] = np.array([list(digest(partial / file)) for file in files], np.uint8)
    os.rename(partial, path)


def check(path: Path, template: Template) -> None:
    """Refuse whatever is not a store of exactly this template.

    Raises:
        FileExistsError: it is no store of ``jaxgdp.sweep``.
        ValueError: it belongs to another question or to other versions; names what differs.
        OSError: a file of its template is damaged; names it.
    """
    file = path / OWN / "zarr.json"
    if not file.exists():
        raise FileExistsError(
            errno.EEXIST, "this is there, and no store of jaxgdp.sweep", str(path)
        )
    try:
        own = json.loads(file.read_bytes())["attributes"]
        sides = ((own["question"], template.question), (own["versions"], versions()))
    except (ValueError, KeyError, TypeError):
        raise damaged(file) from None
    for what, (there, here) in zip(("question", "version"), sides, strict=True):
        for name in here | there:
            if there.get(name) != here.get(name):
                found, asked = (_short(side.get(name)) for side in (there, here))
                raise ValueError(
                    f"store {path} is of another {what}: its {name} is {found}, here it is"
                    f" {asked}; give another store"
                )
    files = _files(template)
    fingerprint = path / chunk_file(f"{OWN}/fingerprint", (0, 0))
    try:
        known = np.fromfile(fingerprint, np.uint8).reshape(len(files), DIGEST)
    except (ValueError, FileNotFoundError):
        raise damaged(fingerprint) from None
    for name, there in zip(files, known, strict=True):
        if not (path / name).exists() or digest(path / name) != there.tobytes():
            raise damaged(path / name)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:40]} … {text[-15:]}"


def damaged(path: Path, remedy: str = "this store cannot be gone on with") -> OSError:
    """The error for a file that is not what was written."""
    return OSError(errno.EIO, f"damaged: it is not what was written ({remedy})", str(path))
