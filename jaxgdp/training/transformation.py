"""The gradient transformation of DP-SGD for optax, which stops when the budget is spent.

``optax.contrib.differentially_private_aggregate`` divides by the (padded) array size, takes no mask
and adds up in float32, as does ``optax.per_example_global_norm_clip``; so neither is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..numerics.shapes import Array, ArrayLike, Bool, Int, PyTree
from ..numerics.validation import checked, positive, whole
from .arguments import (
    ParameterShapes,
    check_one_per_example,
    check_shapes_of_sum,
    differentiable_parameters,
    prng_key,
)
from .exact_sums import ExactSum, check_number, whole_and_fraction
from .gradients import (
    EVERY_ROW,
    ClippedGradients,
    ExampleGradients,
    checked_mask,
    checked_rows,
    known,
    summed,
)
from .noise import standard_normal
from .refusals import (
    check_sampler,
    checked_batch_size,
    refuse_multi_steps_around,
    refuse_multi_steps_inside,
)
from .runs import Sampler

Schedule: TypeAlias = Callable[[Any], Any]  # step → number
_MOST = 2**31 - 2
_UNLIMITED = _MOST + 1
# folded into the key, so that noise is independent of batches drawn with the same key
_NOISE = 0x4E6F6973


class Accumulated(NamedTuple):
    """What the parts of an update have added up so far, with ``accumulate`` above 1.

    Attributes:
        total: the exact sum; as secret as the gradients.
        parts: how many parts are in it, int32.
    """

    total: ExactSum
    parts: Int[Array, ""]


class PrivatizeState(NamedTuple):
    """State of :func:`privatize`, a pytree of arrays.

    Attributes:
        key: PRNG key of the run; the noise of a step depends on it and on ``step`` alone, so a run
            restored from a checkpoint repeats its noise exactly and nothing is released twice with
            different noise.
        step: noisy gradients released so far, int32: the number to ask :meth:`Plan.at` about.
        max_steps: number of steps the budget allows, int32.
        spent: whether the budget is spent, bool; no update changes anything from then on.
        inner: state of the optimiser inside.
        shapes: those of the parameters, part of the structure and no array: gradients are held
            against them.
        accumulated: parts of the next update; None where every update has one part.
    """

    key: Array
    step: Int[Array, ""]
    max_steps: Int[Array, ""]
    spent: Bool[Array, ""]
    inner: PyTree
    shapes: ParameterShapes = ParameterShapes()
    accumulated: Accumulated | None = None

    @property
    def part(self) -> Array | int:
        """The number of the next part of an update, from 0 on; always 0 without accumulation."""
        return 0 if self.accumulated is None else self.accumulated.parts


def noisy_mean(
    total: PyTree,
    key: Array,
    clip_norm: Array | float,
    noise_multiplier: Array | float,
    expected_batch_size: Array | float,
) -> PyTree:
    """(Σ + σ·C·N(0, I)) / expected batch size, for a sum of clipped gradients.

    Args:
        total: what :func:`clipped_gradients` or :func:`clipped_sum` returned. The first is exact,
            and nothing of it is rounded before the noise is in.
        key: a PRNG key, used for nothing else.
        clip_norm: C.
        noise_multiplier: σ.
        expected_batch_size: n·p, not the number of records drawn.

    Returns:
        Pytree of the parameters' structure.

    Example:
        >>> import jax
        >>> noisy_mean([jax.numpy.zeros(3)], jax.random.key(0), 1.0, 2.0, 100.0)[0].shape
        (3,)
    """
    if isinstance(total, ClippedGradients):
        wide = [jnp.promote_types(dtype, jnp.float32) for dtype in total.dtypes]
        return _noisy(total.total, wide, key, clip_norm, noise_multiplier, expected_batch_size)
    leaves, structure = jax.tree.flatten(total)
    std = clip_norm * noise_multiplier
    noisy = [
        (leaf + std * standard_normal(jax.random.fold_in(key, i), leaf.shape, leaf.dtype))
        / expected_batch_size
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, noisy)


def _noisy(
    total: ExactSum,
    dtypes: list[Any],
    key: Array,
    clip_norm: Array | float,
    noise_multiplier: Array | float,
    size: Array | float,
) -> PyTree:
    """C·(whole + (fraction + σ·z))/size: the noise joins the fraction, then both are rounded."""
    high, structure = jax.tree.flatten(total.high)
    noisy = []
    for i, (upper, lower, dtype) in enumerate(
        zip(high, jax.tree.leaves(total.low), dtypes, strict=True)
    ):
        whole, fraction = whole_and_fraction(upper, lower, dtype)
        noise = standard_normal(jax.random.fold_in(key, i), upper.shape, dtype)
        released = whole + (fraction + noise_multiplier * noise)
        noisy.append(released * (clip_norm / size))
    return jax.tree.unflatten(structure, noisy)


def _steps(max_steps: ArrayLike | None) -> Array:
    if max_steps is None:
        return jnp.asarray(_UNLIMITED, jnp.int32)
    valid = f"a whole number in [0, {_MOST}] or None"
    checked("max_steps", max_steps, valid, lambda a: (a >= 0) & (a <= _MOST) & (a == np.floor(a)))
    return jnp.asarray(max_steps).astype(jnp.int32)


@dataclass(frozen=True)
class _Privatize:
    """The settings of :func:`privatize`, and what its two functions do with them."""

    clip_norm: Array | float
    noise_multiplier: ArrayLike | Schedule
    expected_batch_size: ArrayLike | Schedule
    key: Array
    limit: Array
    optimiser: optax.GradientTransformationExtraArgs
    axis_name: str | None
    sampler: Sampler | None
    accumulate: int

    def init(self, params: PyTree) -> PrivatizeState:
        """The state before the first step."""
        refuse_multi_steps_around()
        if params is not None:
            differentiable_parameters(params)
        start, shapes = jnp.zeros((), jnp.int32), ParameterShapes.of(params)
        given: Any = params
        inner = self.optimiser.init(given)
        refuse_multi_steps_inside(inner)
        key = jax.random.fold_in(self.key, _NOISE)
        accumulated = None
        if self.accumulate > 1:
            if params is None:
                raise ValueError("params must be given to init where accumulate is above 1")
            nothing = jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), jnp.int32), params)
            accumulated = Accumulated(ExactSum(nothing, nothing), jnp.zeros((), jnp.int32))
        return PrivatizeState(key, start, self.limit, self.limit <= 0, inner, shapes, accumulated)

    def update(
        self,
        updates: PyTree,
        state: PrivatizeState,
        params: PyTree = None,
        *,
        mask: ArrayLike | str | None = None,
        noise_multiplier: ArrayLike | Schedule | None = None,
        admitted: ArrayLike = True,
        **extra: Any,
    ) -> tuple[PyTree, PrivatizeState]:
        """One noisy step, or one part of it."""
        sigma = self.noise_multiplier if noise_multiplier is None else noise_multiplier
        clipped = self._clipped(updates, mask, state, params)
        total = clipped.total
        if self.axis_name is not None:
            total = total.over_devices(self.axis_name)

        def release(total: ExactSum) -> tuple[PyTree, PrivatizeState]:
            mean, noise = self._noisy(total, clipped.dtypes, state, sigma)
            return self._moved(mean, state, params, noise, admitted, extra)

        if state.accumulated is None:
            return release(total)
        total = total + state.accumulated.total
        parts = state.accumulated.parts + 1
        nothing = jax.tree.map(jnp.zeros_like, total)

        def last(total: ExactSum) -> tuple[PyTree, PrivatizeState]:
            ready, after = release(total)
            empty = Accumulated(nothing, jnp.zeros_like(parts))
            return ready, after._replace(accumulated=empty)

        def another(total: ExactSum) -> tuple[PyTree, PrivatizeState]:
            ready = jax.eval_shape(lambda t: release(t)[0], total)
            still = jax.tree.map(lambda u: jnp.zeros(u.shape, u.dtype), ready)
            return still, state._replace(accumulated=Accumulated(total, parts))

        return jax.lax.cond(parts >= self.accumulate, last, another, total)

    def _clipped(
        self, updates: PyTree, mask: Any, state: PrivatizeState, params: PyTree
    ) -> ClippedGradients:
        """The sum of what ``update`` was given, refused where it cannot be one."""
        text = state.shapes if params is None else ParameterShapes.of(params)
        shapes = ParameterShapes.read(text)
        if isinstance(updates, ClippedGradients):
            if mask is not None:
                raise ValueError("mask must not be given with a sum that was clipped with one")
            own = known(self.clip_norm)
            if own and updates.clip_norm and not np.isclose(own, updates.clip_norm, 1e-6, 0.0):
                raise ValueError(
                    f"clip_norm must be that of privatize, {own:g}, got gradients clipped to"
                    f" {updates.clip_norm:g}"
                )
            if shapes is not None:
                check_shapes_of_sum(updates.total.high, shapes)
            self._check_rows(updates.number, updates.every_row)
            return updates
        if not isinstance(updates, ExampleGradients):
            if shapes is not None:
                check_one_per_example(updates, shapes)
            checked_rows(updates)
            self._refuse_plain_arrays(mask)
            updates = ExampleGradients(updates, None)
        rows = updates.with_mask(mask)
        if shapes is not None:
            check_one_per_example(rows.gradients, shapes)
        every_row = isinstance(rows.mask, str)
        self._check_rows(rows.number, every_row)
        total = summed(rows.gradients, self.clip_norm, checked_mask(rows.mask, rows.number))
        dtypes = tuple(str(jnp.result_type(leaf)) for leaf in jax.tree.leaves(rows.gradients))
        return ClippedGradients(total, known(self.clip_norm), rows.number, every_row, dtypes)

    def _refuse_plain_arrays(self, mask: Any) -> None:
        """Plain arrays count only where the number of their rows shows what a row is."""
        if self.sampler is None and not isinstance(mask, str) and mask is not None:
            raise ValueError(
                "gradients must be what per_example_gradients or clipped_gradients returned, got"
                " plain arrays, whose rows may be means of several examples: where every row is one"
                " example, write ExampleGradients(gradients, mask), or give privatize the sampler"
            )

    def _check_rows(self, rows: int, every_row: bool) -> None:
        """Refuse another number of rows than the sampler's batches have."""
        devices = 1 if self.axis_name is None else jax.lax.axis_size(self.axis_name)
        check_number(rows * self.accumulate * devices)
        if self.sampler is None:
            return
        padded: int = self.sampler.padded_size  # type: ignore[attr-defined]
        if rows * self.accumulate != padded:
            of_parts = f" in {self.accumulate} parts" if self.accumulate > 1 else ""
            raise ValueError(
                f"gradients must be of the sampler's {padded} rows a batch{of_parts}, got {rows}:"
                " means of several examples and batches of other samplers are refused; for"
                " micro-batches use clipped_gradients(loss, clip_norm, microbatch_size)"
            )
        if every_row and self.sampler.pads:  # type: ignore[attr-defined]
            raise ValueError(
                f"mask must be the batch's own, got {EVERY_ROW!r}: batches of this sampler are"
                " padded, so write mask=batch.mask"
            )

    def _noisy(
        self, total: ExactSum, dtypes: tuple[str, ...], state: PrivatizeState, sigma: Any
    ) -> tuple[PyTree, Array | float]:
        """The noisy mean in the gradients' own dtypes, and the noise multiplier of the step."""
        at = lambda value: value(state.step) if callable(value) else value
        noise = positive("noise_multiplier", at(sigma))
        size = positive("expected_batch_size", at(self.expected_batch_size))
        if self.sampler is not None and self.axis_name is not None:
            size = size * jax.lax.axis_size(self.axis_name)
        wide = [jnp.promote_types(dtype, jnp.float32) for dtype in dtypes]
        key = jax.random.fold_in(state.key, state.step)
        mean = _noisy(total, wide, key, self.clip_norm, noise, size)
        leaves, structure = jax.tree.flatten(mean)
        own = [leaf.astype(dtype) for leaf, dtype in zip(leaves, dtypes, strict=True)]
        return jax.tree.unflatten(structure, own), noise

    def _moved(
        self,
        mean: PyTree,
        state: PrivatizeState,
        params: PyTree,
        noise: Array | float,
        admitted: ArrayLike,
        extra: dict[str, Any],
    ) -> tuple[PyTree, PrivatizeState]:
        """The optimiser's update and the state after it; nothing changes once spent."""
        ready, moved = self.optimiser.update(mean, state.inner, params, **extra)
        # noise that only turns out at run time to be none, or not a number, releases nothing
        spent = state.spent | ~jnp.asarray(admitted, bool) | ~jnp.asarray(noise > 0.0)
        ready = jax.tree.map(lambda u: jnp.where(spent, jnp.zeros_like(u), u), ready)
        inner_state = jax.tree.map(lambda old, new: jnp.where(spent, old, new), state.inner, moved)
        counted = state.step + jnp.where(spent, 0, 1).astype(jnp.int32)
        spent = spent | (counted >= state.max_steps)
        return ready, state._replace(step=counted, spent=spent, inner=inner_state)


def _checked(
    clip_norm: Array | float,
    noise_multiplier: ArrayLike | Schedule,
    expected_batch_size: ArrayLike | Schedule | None,
    key: Array | None,
    max_steps: ArrayLike | None,
    inner: optax.GradientTransformation | None,
    axis_name: str | None,
    sampler: Sampler | None,
    accumulate: int,
) -> _Privatize:
    """The settings of :func:`privatize`, or an error that says which is wrong."""
    positive("clip_norm", clip_norm)
    if not callable(noise_multiplier):
        positive("noise_multiplier", noise_multiplier)
    prng_key("key", key)
    parts = int(whole("accumulate", accumulate))
    if sampler is not None:
        check_sampler(sampler, max_steps, parts)
    return _Privatize(
        clip_norm,
        noise_multiplier,
        checked_batch_size(expected_batch_size, sampler),
        jnp.asarray(key),
        _steps(getattr(sampler, "max_steps", None) if max_steps is None else max_steps),
        optax.with_extra_args_support(inner if inner is not None else optax.identity()),
        axis_name,
        sampler,
        parts,
    )


def privatize(
    clip_norm: Array | float,
    noise_multiplier: ArrayLike | Schedule,
    expected_batch_size: ArrayLike | Schedule | None = None,
    key: Array | None = None,
    max_steps: ArrayLike | None = None,
    inner: optax.GradientTransformation | None = None,
    axis_name: str | None = None,
    *,
    sampler: Sampler | None = None,
    accumulate: int = 1,
) -> optax.GradientTransformationExtraArgs:
    """DP-SGD as an optax transformation: clipped gradients in, a private update out.

    g = (Σ_i g_i·min(1, C/‖g_i‖) + σ·C·N(0, I)) / (n·p) over the real examples of a batch (Abadi et
    al. 2016, Algorithm 1). Use it first in ``optax.chain``. Its updates are zero once ``max_steps``
    noisy gradients are released; momentum further down the chain keeps moving the parameters then,
    which is private but not a stop: give the optimiser as ``inner`` to freeze it too.
    :meth:`Plan.privatize` takes noise, sampler and limit from a plan.

    Sums are exact (``jaxgdp.training.exact_sums``), and noise is that of :func:`standard_normal`.
    It is still floating-point: attacks on its low-order bits (Mironov 2012) are outside the
    accounting.

    Args:
        clip_norm: C > 0; may be traced.
        noise_multiplier: σ > 0, the noise's standard deviation over C; a number, or a function step
            → number for a schedule fixed in advance. Both may be traced.
        expected_batch_size: n·p > 0 of the whole batch over all devices; a number known before
            tracing, or a function of the step. With a ``sampler`` it is the sampler's. (Division by
            the number of examples drawn would release that number.)
        key: a JAX PRNG key of this run alone. Batches drawn with the same key are independent of
            the noise.
        max_steps: noisy gradients to release in all, e.g. ``plan.max_steps_within(mu=1.0)``; may be
            traced; None for the most that the sampler was made for, or no limit.
        inner: an optax transformation applied to the noisy gradient and frozen with it.
        axis_name: of ``pmap`` or ``shard_map``: the clipped sums of all devices are added up, and
            all add the same noise once; give every device the same key. ``sampler`` is then that of
            one device's share of the data.
        sampler: the sampler that draws the batches, which then have its number of rows.
        accumulate: k, parts of a batch that are given to ``update`` one after the other: each is
            ``batch.part(state.part, k)`` of the same batch. Noise is added, and an update made, at
            the last.

    Returns:
        ``optax.GradientTransformationExtraArgs`` with a :class:`PrivatizeState`.
        ``update(gradients, state, params, mask=...)`` takes what :func:`clipped_gradients` or
        :func:`per_example_gradients` returned. Plain arrays with a leading axis need ``mask``, and
        a ``sampler`` or the word "all": every row is one example. Each has the shape of its
        parameter behind that axis. Two more arguments of ``update`` are for filters
        (``jaxgdp.training.filters``): ``noise_multiplier`` of this step, and ``admitted``; a step
        that is not admitted, or whose noise turns out not to be above 0 inside ``jit``, changes
        nothing and spends the budget.

    Raises:
        ValueError: an argument is out of range, disagrees with the sampler, or is no PRNG key;
            ``optax.MultiSteps`` is inside or around (before tracing); gradients or mask have the
            wrong shape or dtype, or there is no mask (while tracing).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgdp.training import clipped_gradients
        >>> gradient = clipped_gradients(lambda w, x: w @ x, clip_norm=1.0)
        >>> run = {"key": jax.random.key(0), "max_steps": 1, "inner": optax.sgd(0.1)}
        >>> optimiser = privatize(1.0, 0.5, expected_batch_size=2.0, **run)
        >>> params, mask = jnp.zeros(3), jnp.array([True, True, False, False])
        >>> state = optimiser.init(params)
        >>> for _ in range(2):
        ...     losses, clipped = gradient(params, jnp.ones((4, 3)), mask=mask)
        ...     update, state = optimiser.update(clipped, state, params)
        >>> int(state.step), bool(state.spent), update.tolist()
        (1, True, [0.0, 0.0, 0.0])
    """
    made = _checked(
        *(clip_norm, noise_multiplier, expected_batch_size, key, max_steps),
        *(inner, axis_name, sampler, accumulate),
    )
    return optax.GradientTransformationExtraArgs(made.init, made.update)  # type: ignore[arg-type]
