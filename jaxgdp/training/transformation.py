"""The gradient transformation of DP-SGD for optax, which stops when the budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..numerics.shapes import Array, ArrayLike, Bool, Int, PyTree
from ..numerics.validation import checked, positive
from .arguments import ParameterShapes, check_one_per_example, prng_key
from .clipping import clipped_sum
from .noise import standard_normal

Schedule: TypeAlias = Callable[[Any], Any]  # step → number
_MOST = 2**31 - 2
_UNLIMITED = _MOST + 1


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
    """

    key: Array
    step: Int[Array, ""]
    max_steps: Int[Array, ""]
    spent: Bool[Array, ""]
    inner: PyTree
    shapes: ParameterShapes = ParameterShapes()


def noisy_mean(
    total: PyTree,
    key: Array,
    clip_norm: Array | float,
    noise_multiplier: Array | float,
    expected_batch_size: Array | float,
) -> PyTree:
    """(Σ + σ·C·N(0, I)) / expected batch size, for a sum of clipped gradients.

    Args:
        total: what :func:`clipped_sum` returned, summed over devices.
        key: a PRNG key, used for nothing else.
        clip_norm: C.
        noise_multiplier: σ.
        expected_batch_size: n·p, not the number of records drawn.

    Returns:
        Pytree like ``total``.

    Example:
        >>> import jax
        >>> noisy_mean([jax.numpy.zeros(3)], jax.random.key(0), 1.0, 2.0, 100.0)[0].shape
        (3,)
    """
    leaves, structure = jax.tree.flatten(total)
    std = clip_norm * noise_multiplier
    noisy = [
        (leaf + std * standard_normal(jax.random.fold_in(key, i), leaf.shape, leaf.dtype))
        / expected_batch_size
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, noisy)


def _copied(key: Array) -> Array:
    """The same key in an array of its own, so that donating a state deletes no caller's key."""
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return jnp.copy(key)
    data = jnp.copy(jax.random.key_data(key))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


def _steps(max_steps: ArrayLike | None) -> Array:
    if max_steps is None:
        return jnp.asarray(_UNLIMITED, jnp.int32)
    valid = f"a whole number in [0, {_MOST}] or None"
    checked("max_steps", max_steps, valid, lambda a: (a >= 0) & (a <= _MOST) & (a == np.floor(a)))
    return jnp.asarray(max_steps).astype(jnp.int32)


def privatize(
    clip_norm: Array | float,
    noise_multiplier: ArrayLike | Schedule,
    expected_batch_size: ArrayLike | Schedule,
    key: Array,
    max_steps: ArrayLike | None = None,
    inner: optax.GradientTransformation | None = None,
    axis_name: str | None = None,
) -> optax.GradientTransformationExtraArgs:
    """DP-SGD as an optax transformation: per-example gradients in, a private update out.

    g = (Σ_i g_i·min(1, C/‖g_i‖) + σ·C·N(0, I)) / (n·p) over the real examples of a Poisson batch
    (Abadi et al. 2016, Algorithm 1). The divisor is the expected batch size: dividing by the number
    of examples drawn would release that number. This is why
    ``optax.contrib.differentially_private_aggregate``, which divides by the (padded) array size and
    takes no mask, is not used; optax's clipping is.

    Use it first in ``optax.chain``; its updates are zero once ``max_steps`` noisy gradients are
    released. Momentum further down the chain keeps moving the parameters then, which is private but
    not a stop: give the optimiser as ``inner`` to freeze it too.

    The noise is that of :func:`standard_normal`, not of ``jax.random.normal``, whose float32
    numbers end at 5.2 standard deviations: far too early for the accounting. Noise and sums are
    still floating-point, and attacks on low-order bits (Mironov 2012) outside the accounting.

    Args:
        clip_norm: C > 0.
        noise_multiplier: σ > 0, the noise's standard deviation over C; a number, or a function step
            → number for a schedule fixed in advance. Both may be traced.
        expected_batch_size: n·p > 0 of the whole batch over all devices; a number or a function of
            the step.
        key: a JAX PRNG key; batches must be drawn with another.
        max_steps: noisy gradients to release in all, e.g. ``plan.max_steps_within(mu=1.0)``; may be
            traced; None for no limit.
        inner: an optax transformation applied to the noisy gradient and frozen with it.
        axis_name: of ``pmap`` or ``shard_map``: the clipped sums of all devices are added up, and
            all add the same noise once; give every device the same key.

    Returns:
        ``optax.GradientTransformationExtraArgs``. ``update(gradients, state, params, mask=...)``:
        gradients have a leading axis, one entry per example of the padded batch; the update has
        not. ``mask`` marks the examples that are real (None: all). Gradients that have no such
        axis, being averaged already, are refused: each must have the shape of its parameter behind
        it. The parameters are those given to ``update``, else those given to ``init``; only after
        ``init(None)`` and without them nothing is known to hold gradients against. State:
        :class:`PrivatizeState`. Two more arguments of ``update`` are for noise that depends on the
        data, with a filter (``jaxgdp.training.filters``): ``noise_multiplier`` of this step, and
        ``admitted``, whether the filter admits it; a step that is not admitted changes nothing and
        spends the budget. So does one whose noise turns out not to be above 0 inside ``jit``, as at
        the end of a schedule that falls too far.

    Raises:
        ValueError: an argument is out of range or ``key`` is no PRNG key (before tracing), or
            gradients or mask have the wrong shape or dtype (while tracing).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> optimiser = privatize(
        ...     1.0, 0.5, expected_batch_size=2.0, key=jax.random.key(0), max_steps=1,
        ...     inner=optax.sgd(0.1),
        ... )
        >>> state = optimiser.init(jnp.zeros(3))
        >>> for _ in range(2):
        ...     mask = jnp.array([True, True, False, False])
        ...     update, state = optimiser.update(jnp.ones((4, 3)), state, mask=mask)
        >>> int(state.step), bool(state.spent), update.tolist()
        (1, True, [0.0, 0.0, 0.0])
    """
    positive("clip_norm", clip_norm)
    numbers = {"noise_multiplier": noise_multiplier, "expected_batch_size": expected_batch_size}
    for name, value in numbers.items():
        if not callable(value):
            positive(name, value)
    prng_key("key", key)
    limit = _steps(max_steps)
    optimiser = optax.with_extra_args_support(inner if inner is not None else optax.identity())
    at = lambda value, step: value(step) if callable(value) else value

    def init(params: PyTree) -> PrivatizeState:
        start, shapes = jnp.zeros((), jnp.int32), ParameterShapes.of(params)
        inner_state = optimiser.init(params)
        return PrivatizeState(_copied(key), start, limit, limit <= 0, inner_state, shapes)

    def update(
        updates: PyTree,
        state: PrivatizeState,
        params: PyTree = None,
        *,
        mask: ArrayLike | None = None,
        noise_multiplier: ArrayLike | Schedule = noise_multiplier,
        admitted: ArrayLike = True,
        **extra: Any,
    ) -> tuple[PyTree, PrivatizeState]:
        known = state.shapes if params is None else ParameterShapes.of(params)
        shapes = ParameterShapes.read(known)
        if shapes is not None:
            check_one_per_example(updates, shapes)
        total = clipped_sum(updates, clip_norm, mask)
        if axis_name is not None:
            total = jax.lax.psum(total, axis_name)
        step = state.step
        noise = positive("noise_multiplier", at(noise_multiplier, step))
        size = positive("expected_batch_size", at(expected_batch_size, step))
        mean = noisy_mean(total, jax.random.fold_in(state.key, step), clip_norm, noise, size)
        mean = jax.tree.map(lambda m, g: m.astype(g.dtype), mean, updates)
        ready, moved = optimiser.update(mean, state.inner, params, **extra)
        # noise that only turns out at run time to be none, or not a number, releases nothing
        spent = state.spent | ~jnp.asarray(admitted, bool) | ~jnp.asarray(noise > 0.0)
        ready = jax.tree.map(lambda u: jnp.where(spent, jnp.zeros_like(u), u), ready)
        inner_state = jax.tree.map(lambda old, new: jnp.where(spent, old, new), state.inner, moved)
        counted = step + jnp.where(spent, 0, 1).astype(jnp.int32)
        spent = spent | (counted >= state.max_steps)
        return ready, state._replace(step=counted, spent=spent, inner=inner_state)

    return optax.GradientTransformationExtraArgs(init, update)  # type: ignore[arg-type]
