"""Which arguments of a calibration go together; what does not is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mechanisms import Composition, as_composition, dpsgd
from ..numerics.shapes import ArrayLike
from ..numerics.validation import whole


def spent_before(after: Any, client: Any, black_box: Any) -> Composition:
    """What was run before, checked."""
    if client is not None or black_box is not None:
        name = "client" if black_box is None else "black_box"
        raise ValueError(f"after must not be given with {name}")
    try:
        spent = as_composition(after)
    except (TypeError, ValueError):
        raise ValueError(
            "after must be a mechanism or composition, such as account.composition(), got"
            f" {after!r}"
        ) from None
    if spent.shape != ():
        raise ValueError(f"after must have no shape, got {spent.shape}")
    return spent


def only_a_batch_size(given: dict[str, Any], sampler: str, records: int) -> None:
    """Refuse what a batch size itself decides on."""
    names = ("mechanism", "black_box", "batch_size")
    extra = [name for name in names if given[name] is not None]
    for name in ("sampling_prob", "num_steps"):
        if not (np.ndim(given[name]) == 0 and given[name] == 1):
            extra.append(name)
    if sampler != "poisson":
        extra.append("sampler")
    if records > 1:
        extra.append("records_per_user")
    if extra:
        raise ValueError(f"{', '.join(extra)} must not be given with solve_for='batch_size'")
    if given["noise_multiplier"] is None:
        raise ValueError(
            "noise_multiplier must be given to solve for batch_size, a finite number > 0"
        )


def records_of_one_user(value: int) -> int:
    """One number of records, in the range of :func:`jaxgdp.dpsgd`."""
    if np.ndim(value) != 0:
        raise ValueError(f"records_per_user must be one number, got shape {np.shape(value)}")
    records = float(whole("records_per_user", value))
    dpsgd(1.0, 1.0, 1, records)  # (names the range)
    return int(records)


def only_records(sampling_prob: ArrayLike, others: dict[str, Any], solve_for: str) -> None:
    """Refuse what does not go with n and b."""
    extra = [name for name, value in others.items() if value is not None]
    if not (np.ndim(sampling_prob) == 0 and sampling_prob == 1.0):
        extra.insert(0, "sampling_prob")
    if extra or solve_for != "noise_multiplier":
        raise ValueError(
            "dataset_size and batch_size give the rate and the steps of a run whose noise is solved"
            f" for: {', '.join(extra) or 'solve_for'} must not be given with them"
        )


def only_a_mechanism(own: list[str], given: dict[str, Any], solve_for: str) -> None:
    if len(own) > 1:
        raise ValueError("give mechanism or black_box, not both")
    extra = [
        name
        for name, default in (("sampling_prob", 1.0), ("num_steps", 1), ("noise_multiplier", None))
        if given[name] is not default
    ]
    extra = [
        name
        for name in extra
        if not (name != "noise_multiplier" and np.ndim(given[name]) == 0 and given[name] == 1)
    ]
    if extra or solve_for != "noise_multiplier":
        raise ValueError(
            f"{own[0]} replaces DP-SGD: {', '.join(extra) or 'solve_for'} must not be given with it"
        )
