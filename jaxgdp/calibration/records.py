"""Calibration of a run from records, batches and epochs, as ``jaxgdp.run`` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..run_settings import UNKNOWN, run
from ..targets import Target
from .result import Calibration


def of_records(
    target: Target,
    stated: dict[str, Any],
    how: dict[str, Any],
    calibrate: Callable[..., Calibration],
) -> Calibration:
    """The least noise of a run.

    Args:
        target: the goal.
        stated: arguments of :func:`jaxgdp.run` but the noise.
        how: other arguments of ``calibrate``.
        calibrate: which takes rates, or batches and epochs.

    Raises:
        ValueError: an argument is missing or out of range.
    """
    for name in ("dataset_size", "batch_size"):
        if stated[name] is None:
            raise ValueError(f"{name} must be given: dataset_size and batch_size go together")
    sampler = stated["sampler"]
    if sampler == "unknown":
        both = [of_records(target, stated | {"sampler": s}, how, calibrate) for s in UNKNOWN]
        if both[0].value.shape:
            raise ValueError("sampler 'unknown' is for one calibration at a time, got an array")
        # (NaN, where nothing meets the target, counts as the larger)
        return max(both, key=lambda found: np.nan_to_num(float(found.value), nan=np.inf))
    if sampler == "fixed_size":
        raise ValueError("sampler must not be 'fixed_size': only its brackets are known")
    # (every sampler has brackets for this noise)
    known = run(10.0, **stated)
    at = known.counts()
    if sampler in ("poisson", "opacus"):
        return calibrate(target, sampling_prob=at.rate, num_steps=at.steps, **how)
    return calibrate(target, num_steps=at.batches, num_epochs=at.epochs, sampler=sampler, **how)
