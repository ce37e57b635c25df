"""Scores and losses as they come in: what is refused, and why."""

from __future__ import annotations

import numpy as np

from ..numerics.shapes import ArrayLike
from ..numerics.validation import one_number

LEAST = 10  # losses of each class from which rates are estimated


def score_rows(name: str, values: ArrayLike) -> np.ndarray:
    """Scores of one class as float64, models along the leading axes and repetitions along the last;
    infinite ones keep their order.

    Raises:
        ValueError: no score, a NaN, or no numbers; names the argument.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be an array of numbers, got {type(values).__name__}"
        ) from None
    if array.ndim == 0 or array.shape[-1] == 0 or array.size == 0:
        raise ValueError(f"{name} must hold at least one score, got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(
            f"{name} must hold no NaN, got {int(np.isnan(array).sum())} of {array.size}"
        )
    return array


def two_classes(
    members: ArrayLike,
    nonmembers: ArrayLike,
    names: tuple[str, str] = ("member_scores", "nonmember_scores"),
):
    """Scores of both classes with a common leading shape.

    Raises:
        ValueError: as :func:`score_rows`, or leading shapes that do not broadcast.
    """
    member, nonmember = score_rows(names[0], members), score_rows(names[1], nonmembers)
    try:
        lead = np.broadcast_shapes(member.shape[:-1], nonmember.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{names[0]} and {names[1]} must have leading shapes that broadcast, got {member.shape}"
            f" and {nonmember.shape}"
        ) from None
    return np.broadcast_to(member, lead + member.shape[-1:]), np.broadcast_to(
        nonmember, lead + nonmember.shape[-1:]
    )


def losses(members: ArrayLike, nonmembers: ArrayLike):
    """Losses of members and of others: finite, and at least ten of each.

    Raises:
        ValueError: as :func:`two_classes`, infinite losses, or fewer than ten.
    """
    names = ("member_losses", "nonmember_losses")
    pair = two_classes(members, nonmembers, names)
    for name, array in zip(names, pair, strict=True):
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be finite, got {int((~np.isfinite(array)).sum())} infinite"
            )
        if array.shape[-1] < LEAST:
            raise ValueError(
                f"{name} must hold at least {LEAST} losses to estimate rates from, got"
                f" {array.shape[-1]}"
            )
    return pair


def confidence_level(name: str, value: float) -> float:
    """A confidence level, and room for the tails it leaves.

    Raises:
        ValueError: not one number in [0.5, 1 - 1e-9].
    """
    return one_number(name, value, "in [0.5, 1 - 1e-9]", lambda a: (a >= 0.5) & (a <= 1.0 - 1e-9))
