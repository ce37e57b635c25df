"""DP-SGD runs of De et al. 2022, as Gomez 2025 reprints them (Tables 4 and 5)."""

from __future__ import annotations

import numpy as np

from ..mechanisms import dpsgd
from ..numerics.validation import one_of, whole
from .deployment import Deployment, read_data

_FILE = "de_et_al_2022"
TABLES = (4, 5)


def _table(number: int) -> dict:
    return next(table for table in read_data(_FILE)["table"] if table["number"] == number)


def setting_name(table: int, epsilon: float) -> str:
    """Name of one run: ``de_et_al_2022_table4_epsilon_8``."""
    return f"{_FILE}_table{table}_epsilon_{epsilon:g}"


def settings() -> dict[str, tuple[int, float]]:
    """(table, ε) of every run, by name."""
    pairs = ((number, epsilon) for number in TABLES for epsilon in _table(number)["epsilon"])
    return {setting_name(*pair): pair for pair in pairs}


def de_et_al_2022(table: int = 4, epsilon: float | None = None, dataset_size: int | None = None):
    """DP-SGD on CIFAR-10 as De et al. 2022 trained it (Gomez 2025, Tables 4 and 5).

    Args:
        table: 4 (WRN-40-4 without extra data) or 5 (last layer of a pre-trained WRN-28-10).
        epsilon: the run reported at this ε (δ = 1e-5), or ``None`` for all of the table's.
        dataset_size: N of the sampling rate 16384/N, at least 16384; default 50,000, the size of
            CIFAR-10. Gomez 2025's printed μ are those of N = 60,000.

    Returns:
        A :class:`jaxgdp.Composition`: scalar for one ε, else with one setting per ε.

    Raises:
        ValueError: no such table, no such ε in it, or a size that is no whole number ≥ the batch
            size.

    Example:
        >>> de_et_al_2022(table=4).shape, de_et_al_2022(table=4, epsilon=8.0).shape
        ((6,), ())
    """
    data = _table(one_of("table", table, TABLES))
    if epsilon is None:
        chosen = slice(None)
    else:
        chosen = data["epsilon"].index(one_of("epsilon", epsilon, tuple(data["epsilon"])))
    size = float(
        whole(
            "dataset_size",
            read_data(_FILE)["dataset_size"] if dataset_size is None else dataset_size,
        )
    )
    if size < data["batch_size"]:
        raise ValueError(
            f"dataset_size must be at least the batch size {data['batch_size']}, got {size:g}"
        )
    sigma, steps = (
        np.asarray(data[name], dtype=np.float64)[chosen]
        for name in ("noise_multiplier", "num_steps")
    )
    return dpsgd(noise_multiplier=sigma, sampling_prob=data["batch_size"] / size, num_steps=steps)


def deployment(name: str) -> Deployment:
    """One run with the row of its table."""
    number, epsilon = settings()[name]
    data, table = read_data(_FILE), _table(number)
    row = table["epsilon"].index(epsilon)
    columns = tuple(key for key in table if key not in ("number", "caption"))
    values = tuple(
        table[key][row] if isinstance(table[key], list) else table[key] for key in columns
    )
    return Deployment(
        name,
        f"{data['title']}: {table['caption']}, epsilon = {epsilon:g}",
        data["neighbours"],
        data["citation"],
        tuple(data["sources"]),
        data["note"],
        (*columns, "dataset_size"),
        ((*values, data["dataset_size"]),),
        f"{_FILE}.toml",
        lambda: de_et_al_2022(number, epsilon),
    )
