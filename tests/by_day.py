"""Settings of one kind, of which some are tested by day and all are tested nightly."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def every_value(*axes: Sequence[Any]) -> list[Any]:
    """All combinations of some values, of which by day so many are tested that each value occurs.

    Args:
        axes: the values of each argument of a test.
    """
    longest = max(map(len, axes))
    by_day = {tuple(i % len(axis) for axis in axes) for i in range(longest)}
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, place, strict=True)),
            marks=() if place in by_day else pytest.mark.nightly,
        )
        for place in itertools.product(*(range(len(axis)) for axis in axes))
    ]


def first(number: int, settings: Iterable[Any]) -> list[Any]:
    """Settings, of which by day so many are tested, from the first one on.

    Args:
        number: of those that are tested by day.
        settings: tuples of arguments of a test, or its only argument.
    """
    arguments = (s if isinstance(s, tuple) else (s,) for s in settings)
    return [
        pytest.param(*each, marks=() if i < number else pytest.mark.nightly)
        for i, each in enumerate(arguments)
    ]


def some(step: int, settings: Iterable[Any], start: int = 0) -> list[Any]:
    """Settings, of which by day one in so many is tested: of tests that run for every class, others
    each time.

    Args:
        step: one in how many is tested by day.
        settings: tuples of arguments of a test, or its only argument.
        start: the first of them.
    """
    arguments = (s if isinstance(s, tuple) else (s,) for s in settings)
    return [
        pytest.param(*each, marks=() if i % step == start else pytest.mark.nightly)
        for i, each in enumerate(arguments)
    ]
