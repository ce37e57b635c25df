"""Slips that would void the privacy of a run, refused by name before its first step."""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
import optax
from jax.core import Tracer

from ..numerics.validation import positive
from .runs import Sampler

_FRAMES = 12  # between a call of MultiSteps.init and ours
_INSTEAD = (
    "give privatize accumulate=k, which adds noise once an update, and every part of a batch by"
    " batch.part(state.part, k)"
)


def check_sampler(sampler: Sampler, max_steps: Any, accumulate: int) -> None:
    """Refuse what is no sampler, more steps than it was made for, and parts that do not divide it.

    Raises:
        ValueError: one of these.
    """
    if not hasattr(sampler, "accounted") or not hasattr(sampler, "pads"):
        raise ValueError(
            f"sampler must be one of jaxgdp.training's, such as poisson_sampler(…), got {sampler!r}"
        )
    padded: int = sampler.padded_size  # type: ignore[attr-defined]
    if padded % accumulate:
        raise ValueError(
            f"accumulate must divide the sampler's padded size {padded}, got {accumulate}: make the"
            f" sampler with multiple_of={accumulate}"
        )
    most = getattr(sampler, "max_steps", None)
    if most is None or max_steps is None or isinstance(max_steps, Tracer):
        return
    if np.any(np.asarray(max_steps) > most):
        raise ValueError(
            f"max_steps must be at most the {most} steps that the sampler was made for, got"
            f" {max_steps}"
        )


def checked_batch_size(size: Any, sampler: Sampler | None) -> Any:
    """The expected batch size, as given or the sampler's.

    Raises:
        ValueError: there is none, it is traced, an array of JAX or out of range, or it is not the
            sampler's.
    """
    if isinstance(size, jax.Array):
        found = "a traced one" if isinstance(size, Tracer) else f"an array of JAX, {size!r}"
        raise ValueError(
            "expected_batch_size must be a plain number known before tracing, such as"
            f" sampler.expected_batch_size, got {found}: the number of examples drawn,"
            " batch.mask.sum(), depends on who is in the data"
        )
    if size is not None and not callable(size):
        positive("expected_batch_size", size)
    if sampler is None:
        if size is None:
            raise ValueError("expected_batch_size must be given where no sampler is")
        return size
    own: float = sampler.expected_batch_size  # type: ignore[attr-defined]
    if size is None:
        return own
    if callable(size) or not np.isclose(float(size), own, rtol=1e-6, atol=0.0):
        raise ValueError(
            f"expected_batch_size is that of the sampler, {own:g}, got {size!r}: leave it out; the"
            " number of examples drawn would be released with every update"
        )
    return own


def refuse_multi_steps_inside(state: Any) -> None:
    """Refuse an optimiser inside that makes one update of several noisy gradients.

    Raises:
        ValueError: the state is of ``optax.MultiSteps``.
    """
    is_one = lambda node: isinstance(node, optax.MultiStepsState)
    if any(map(is_one, jax.tree.leaves(state, is_leaf=is_one))):
        raise ValueError(
            "inner must not hold optax.MultiSteps, which would spend a step of privacy on every"
            f" part of an update: {_INSTEAD}"
        )


def refuse_multi_steps_around() -> None:
    """Refuse to be the optimiser of an ``optax.MultiSteps``, which adds up before the clipping.

    It is found among the callers, as it hands on parameters like any other.

    Raises:
        ValueError: it is there.
    """
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame is None:
            return
        if isinstance(frame.f_locals.get("self"), optax.MultiSteps):
            raise ValueError(
                "privatize must not be inside optax.MultiSteps, which averages the gradients of"
                f" different examples before they are clipped: {_INSTEAD}"
            )
        frame = frame.f_back
