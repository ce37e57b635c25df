"""jax_privacy: an accountant function, and what an execution plan or its configuration spends.

Needs dp_accounting (``pip install "jaxgdp[interop]"``), not jax_privacy itself.

    from jaxgdp.interop.jax_privacy import accountant_fn

    plan_config.calibrate(epsilon=1.0, delta=1e-5, accountant_fn=accountant_fn)

Versions that take an accountant object instead get
``accountant=accountant_fn(NeighboringRelation.REPLACE_SPECIAL)``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..mechanisms import Composition, MatrixMechanism, SubsampledGaussian, compose
from ..numerics.validation import ROUNDED_RATE, checked, positive, whole
from ..participation import CyclicPoisson
from .dp_accounting.events import from_event, relation_name

if TYPE_CHECKING:
    import dp_accounting

    from .dp_accounting.accountant import Accountant


def accountant_fn(neighboring_relation: dp_accounting.NeighboringRelation) -> Accountant:
    """A fresh accountant for a neighbouring relation: what jax_privacy calls an ``AccountantFn``.

    Args:
        neighboring_relation: a ``dp_accounting.NeighboringRelation``.

    Raises:
        ValueError: an unknown relation.

    Example:
        >>> import dp_accounting
        >>> accountant = accountant_fn(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        >>> accountant.compose(dp_accounting.GaussianDpEvent(2.0), 4).get_mu().__round__(6)
        1.0
    """
    from .dp_accounting import Accountant

    return Accountant(neighboring_relation)


def from_plan(plan: Any, neighboring_relation: Any = None) -> Composition:
    """The composition that a ``DPExecutionPlan`` spends, from its ``dp_event``.

    Args:
        plan: an execution plan, or anything with a ``dp_event``.
        neighboring_relation: a ``NeighboringRelation`` or its name; default the plan's own, where
            it has one, else REPLACE_SPECIAL, which plans of older versions assume.

    Returns:
        A :class:`jaxgdp.Composition`, for the default adjacency, both orders.

    Raises:
        ValueError: no ``dp_event``, an unknown relation, or an event that is not supported; names
            it.
    """
    if not hasattr(plan, "dp_event"):
        raise ValueError(f"plan must have a dp_event, got {type(plan).__name__}")
    if neighboring_relation is None:
        neighboring_relation = getattr(plan, "neighboring_relation", "REPLACE_SPECIAL")
    return from_event(plan.dp_event, relation_name(neighboring_relation))


_BAND_FIELDS = (  # of a ``BandMFConfig``
    "iterations",
    "expected_participations",
    "strategy",
    "noise_multiplier",
    "truncated_batch_size",
    "num_examples",
    "column_normalize",
)


def from_band_config(config: Any) -> Composition:
    """The composition that a ``BandMFConfig`` of jax_privacy spends, from its public fields.

    Banded Toeplitz noise over batches of fixed groups that take turns, p = participations·bands/
    steps: :class:`jaxgdp.MatrixMechanism` with ``CyclicPoisson``. The noise is that of the plan,
    its multiplier times the norm of the coefficients; where columns are normalised beforehand, all
    of it counts against columns of norm 1. The plan's own event has every column as large as the
    largest, and takes no notice of that factor.

    Batches that are truncated are counted one by one, for a record that becomes a special one, as
    :func:`jaxgdp.interop.dp_accounting.from_event` has them, with the largest group rounded up and
    the noise multiplier as it is (at most the noise of the plan).

    Args:
        config: a ``BandMFConfig``, or anything with its fields.

    Returns:
        A :class:`jaxgdp.Composition`, for the default adjacency, both orders.

    Raises:
        ValueError: a field is missing or out of range, no noise multiplier is set, or columns are
            normalised whose coefficients have a norm below 1 while batches are truncated; names it.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(
        ...     iterations=100, expected_participations=5.0, strategy=[1.0, 0.5],
        ...     noise_multiplier=2.0, truncated_batch_size=None, num_examples=None,
        ...     column_normalize=False)
        >>> part = from_band_config(config).mechanisms[0]
        >>> part.num_steps, float(part.participation.sampling_prob)
        (100, 0.1)
    """
    missing = [name for name in _BAND_FIELDS if not hasattr(config, name)]
    if missing:
        raise ValueError(
            f"config must have the fields of a BandMFConfig, {', '.join(_BAND_FIELDS)}:"
            f" {missing[0]} is missing in {type(config).__name__}"
        )
    if config.noise_multiplier is None:
        raise ValueError("noise_multiplier of config must be set: calibrate it first")
    sigma = float(positive("noise_multiplier", config.noise_multiplier))
    steps = int(whole("iterations", config.iterations))
    strategy = np.asarray(config.strategy, float)
    if strategy.ndim != 1 or not 1 <= len(strategy) <= steps or not np.all(np.isfinite(strategy)):
        raise ValueError(
            f"strategy must hold from 1 to {steps} finite coefficients, got {config.strategy!r}"
        )
    number = len(strategy)
    rate = float(config.expected_participations) * number / steps
    valid = f"above 0 and at most iterations/bands = {steps / number:g}"
    holds = lambda _: (rate > 0.0) & (rate <= 1.0 + ROUNDED_RATE)
    checked("expected_participations", config.expected_participations, valid, holds)
    rate, rounds = min(rate, 1.0), math.ceil(steps / number)
    norm = math.sqrt(math.fsum(strategy**2))
    if config.truncated_batch_size is not None:
        return _truncated(config, sigma, rate, rounds, number, norm)
    if config.column_normalize:
        return compose([(SubsampledGaussian(sigma * norm, rate), rounds)])
    return compose([MatrixMechanism(strategy, sigma * norm, CyclicPoisson(rate, number), steps)])


def _truncated(
    config: Any, sigma: float, rate: float, rounds: int, groups: int, norm: float
) -> Composition:
    """So many truncated batches of the largest group."""
    import dp_accounting

    if config.num_examples is None:
        raise ValueError("num_examples of config must be set where batches are truncated")
    if config.column_normalize and norm < 1.0:
        raise ValueError(
            "strategy must have a norm of at least 1 where columns are normalised and batches"
            f" truncated, got {norm:g}"
        )
    batch = int(whole("truncated_batch_size", config.truncated_batch_size))
    group = math.ceil(int(whole("num_examples", config.num_examples)) / groups)
    event = dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(
        dataset_size=group,
        sampling_probability=rate,
        truncated_batch_size=batch,
        noise_multiplier=sigma,
    )
    repeated = dp_accounting.dp_event.SelfComposedDpEvent(event, rounds)
    return from_event(repeated, "REPLACE_SPECIAL")
