"""What a private step takes: gradients of single examples, or their clipped sum, with their mask.

An array does not tell whether its rows are examples, means of some, or padding; these types do.
:func:`per_example_gradients` and :func:`clipped_gradients` return them, and :func:`privatize`
takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..numerics.shapes import Array, ArrayLike, Bool, PyTree
from ..numerics.validation import positive, whole
from .arguments import differentiable_parameters
from .exact_sums import ExactSum, rounded, sum_of_clipped, zeros

EVERY_ROW = "all"
_HOW = (
    "mask=batch.mask marks the rows of a batch that are examples and not padding;"
    f" mask={EVERY_ROW!r} says that every row is one example"
)


def checked_mask(mask: Any, rows: int) -> Array:
    """A mask of that many rows; :data:`EVERY_ROW` marks all.

    Raises:
        ValueError: there is none, or it is not bool, or has another shape.

    Example:
        >>> checked_mask("all", 2).tolist()
        [True, True]
        >>> checked_mask(None, 2)
        Traceback (most recent call last):
        ValueError: mask must be given: mask=batch.mask marks the rows of a batch that are ...
    """
    if mask is None:
        raise ValueError(f"mask must be given: {_HOW}")
    if isinstance(mask, str):
        if mask != EVERY_ROW:
            raise ValueError(
                f"mask must be an array of bool or {EVERY_ROW!r}, got {mask!r}: {_HOW}"
            )
        return jnp.ones(rows, bool)
    mask = mask if isinstance(mask, jax.Array) else np.asarray(mask)
    kind = mask.dtype
    if kind != np.bool_:
        raise ValueError(
            f"mask must be an array of bool, one entry per example, got dtype {kind}: a weight or"
            " a list of indices is no mask"
        )
    if jnp.shape(mask) != (rows,):
        raise ValueError(
            f"mask must have shape ({rows},), one entry per example, got {jnp.shape(mask)}"
        )
    return jnp.asarray(mask)


def checked_rows(gradients: PyTree) -> tuple[list[Array], int]:
    """The arrays of per-example gradients, and how many examples they are of.

    Raises:
        ValueError: an empty tree, arrays that are not floating-point, or no common leading axis.
    """
    leaves = jax.tree.leaves(gradients)
    if not leaves:
        raise ValueError("gradients must hold at least one array, got an empty tree")
    for leaf in leaves:
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise ValueError(
                f"gradients must be real floating-point arrays, got dtype {jnp.result_type(leaf)}"
            )
    sizes = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(sizes) > 1 or () in sizes:
        shapes = ", ".join(str(jnp.shape(leaf)) for leaf in leaves)
        raise ValueError(
            f"gradients must share a leading axis, one entry per example, got shapes {shapes}"
        )
    return list(map(jnp.asarray, leaves)), sizes.pop()[0]


@dataclass(frozen=True)
class ExampleGradients:
    """Gradients of single examples, and which of them are real: a pytree.

    Build one by hand only where every row is the gradient of one example, or padding. Rows that are
    means of several examples void the claim: one record then moves a clipped mean by up to 2C.

    Attributes:
        gradients: pytree of arrays with a leading axis, one entry per example.
        mask: bool, which rows are real; ``"all"``; or None where it is still to be given.

    Example:
        >>> rows = ExampleGradients(jnp.ones((3, 2)), jnp.array([True, True, False]))
        >>> rows.number
        3
    """

    gradients: PyTree
    mask: Bool[Array, " examples"] | str | None

    @property
    def number(self) -> int:
        """Rows, padding included."""
        return checked_rows(self.gradients)[1]

    def with_mask(self, mask: ArrayLike | str | None) -> ExampleGradients:
        """The same gradients with the mask that they were computed with, or else this one.

        Raises:
            ValueError: there is none, or one each.
        """
        if mask is None:
            checked_mask(self.mask, self.number)
            return self
        if self.mask is not None:
            raise ValueError(
                "mask must be given once: these gradients carry the mask that they were computed"
                " with"
            )
        checked_mask(mask, self.number)
        return replace(self, mask=mask)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ClippedGradients:
    """The sum of clipped gradients of single examples, exact: a pytree of whole numbers.

    :func:`clipped_gradients` returns it. Divided or scaled it is no such sum any more.

    Attributes:
        total: the sum, in units of 2⁻²⁴ clipping norms (``jaxgdp.training.exact_sums``).
        clip_norm: C, where it was known before tracing.
        number: rows that were summed, padding included.
        every_row: whether they were said to be examples all.
        dtypes: of the gradients, array by array.
    """

    total: ExactSum
    clip_norm: float | None
    number: int
    every_row: bool
    dtypes: tuple[str, ...]

    def rounded(self, clip_norm: Array | float | None = None) -> PyTree:
        """The sum as floats, rounded once; secret, as nothing has been added to it.

        Args:
            clip_norm: C, where it was traced.
        """
        norm = self.clip_norm if clip_norm is None else clip_norm
        if norm is None:
            raise ValueError("clip_norm must be given where it was traced before")
        high, structure = jax.tree.flatten(self.total.high)
        flat = ExactSum(high, jax.tree.leaves(self.total.low))
        wide = [jnp.promote_types(dtype, jnp.float32) for dtype in self.dtypes]
        return jax.tree.unflatten(structure, rounded(flat, norm, wide))


jax.tree_util.register_pytree_node(
    ExampleGradients,
    lambda g: (
        ((g.gradients, None), g.mask) if isinstance(g.mask, str) else ((g.gradients, g.mask), None)
    ),
    lambda word, parts: ExampleGradients(parts[0], word or parts[1]),
)
jax.tree_util.register_dataclass(
    ClippedGradients,
    data_fields=["total"],
    meta_fields=["clip_norm", "number", "every_row", "dtypes"],
)


def per_example_gradients(
    loss: Callable[..., Array],
) -> Callable[..., tuple[Array, ExampleGradients]]:
    """Gradients of a loss of one record, for a batch: ``vmap(value_and_grad(loss), (None, 0, …))``.

    They take memory for a gradient per example at once; :func:`clipped_gradients` does not.

    Args:
        loss: function (parameters, *record) → scalar loss of one record.

    Returns:
        Function (parameters, *batch, mask=None) → (losses of shape (batch,),
        :class:`ExampleGradients`). ``batch`` holds pytrees whose arrays have a leading batch axis,
        ``mask`` is ``batch.mask`` of a sampler, or "all"; it may be given to :func:`privatize`
        instead. The losses are not private: do not publish them.

    Raises:
        ValueError: the parameters hold something that has no gradient, such as a model as a whole,
            or the mask has another dtype or shape (while tracing).

    Example:
        >>> import jax.numpy as jnp
        >>> gradient = per_example_gradients(lambda w, x: w * x)
        >>> losses, found = gradient(2.0, jnp.array([1.0, 3.0]), mask="all")
        >>> found.gradients.tolist()
        [1.0, 3.0]
    """
    single = jax.value_and_grad(loss)

    def batched(
        parameters: PyTree, *batch: PyTree, mask: ArrayLike | str | None = None
    ) -> tuple[Array, ExampleGradients]:
        differentiable_parameters(parameters)
        parameters = _own_copy(parameters, _device_axes(batch, mask))
        losses, found = jax.vmap(single, in_axes=(None,) + (0,) * len(batch))(parameters, *batch)
        if mask is not None:
            checked_mask(mask, len(losses))
        return losses, ExampleGradients(found, mask)  # type: ignore[arg-type]

    return batched


def clipped_gradients(
    loss: Callable[..., Array], clip_norm: Array | float, microbatch_size: int | None = None
) -> Callable[..., tuple[Array, ClippedGradients]]:
    """The clipped sum Σ_i g_i·min(1, C/‖g_i‖) of a batch of any size, in bounded memory.

    Only ``microbatch_size`` gradients are held at once; a ``scan`` goes through the batch. The sum
    is exact (``jaxgdp.training.exact_sums``): it does not depend on the order of the examples, and
    one record moves it by no more than C. With micro-batches of another size each example may be
    rounded otherwise, by 2⁻²⁴·C in a coordinate.

    Args:
        loss: function (parameters, *record) → scalar loss of one record.
        clip_norm: C > 0, the one of :func:`privatize`; may be traced.
        microbatch_size: examples whose gradients are held at once; None for the whole batch. A
            batch that is no multiple of it is padded.

    Returns:
        Function (parameters, *batch, mask) → (losses of shape (batch,), :class:`ClippedGradients`),
        which :func:`privatize` takes. ``mask`` is ``batch.mask`` of a sampler; "all" says that
        every row is one example. Examples whose gradient is not finite count as zero. The losses
        are not private: do not publish them.

    Raises:
        ValueError: an argument is out of range; there is no mask, or it has another dtype or shape;
            the parameters hold something that has no gradient (while tracing).

    Example:
        >>> import jax.numpy as jnp
        >>> gradient = clipped_gradients(lambda w, x: w @ x, clip_norm=1.0, microbatch_size=2)
        >>> batch, mask = jnp.array([[0.3, 0.4], [30.0, 40.0], [9.0, 9.0]]), jnp.arange(3) < 2
        >>> losses, total = gradient(jnp.zeros(2), batch, mask=mask)
        >>> [round(float(x), 3) for x in total.rounded()]
        [0.9, 1.2]
    """
    positive("clip_norm", clip_norm)
    if microbatch_size is not None:
        microbatch_size = int(whole("microbatch_size", microbatch_size))
    single = jax.value_and_grad(loss)

    def batched(
        parameters: PyTree, *batch: PyTree, mask: ArrayLike | str | None = None
    ) -> tuple[Array, ClippedGradients]:
        differentiable_parameters(parameters)
        number = _number(batch)
        keep = checked_mask(mask, number)
        axes = _device_axes(batch, keep)
        parameters = _own_copy(parameters, axes)
        size = number if microbatch_size is None else min(microbatch_size, number)

        def part(rows: tuple[PyTree, ...], keep: Array) -> tuple[ExactSum, Array]:
            losses, found = jax.vmap(single, (None,) + (0,) * len(rows))(parameters, *rows)
            return summed(found, clip_norm, keep), losses

        if size == number:
            total, losses = part(batch, keep)
        else:
            total, losses = _scanned(part, batch, keep, size, axes)
        dtypes = tuple(str(jnp.result_type(leaf)) for leaf in jax.tree.leaves(parameters))
        every_row = isinstance(mask, str)
        return losses, ClippedGradients(total, known(clip_norm), number, every_row, dtypes)

    return batched


def summed(gradients: PyTree, clip_norm: Array | float, keep: Array) -> ExactSum:
    """The exact clipped sum of a pytree of per-example gradients, in its structure."""
    structure = jax.tree.structure(gradients)
    flat = sum_of_clipped(checked_rows(gradients)[0], clip_norm, keep)
    return ExactSum(*(jax.tree.unflatten(structure, leaves) for leaves in flat))


def known(number: ArrayLike) -> float | None:
    """A number as a float; None if it is traced."""
    return None if isinstance(number, Tracer) else float(number)  # type: ignore[arg-type]


def _varying(leaf: Any) -> frozenset[str]:
    """Axes of ``shard_map`` over which an array differs from device to device."""
    kind = jax.typeof(leaf)
    manual = getattr(kind, "manual_axis_type", None)  # by its name in JAX 0.10
    return frozenset(getattr(kind, "vma", None) or () if manual is None else manual.varying)


def _device_axes(*trees: PyTree) -> frozenset[str]:
    """Axes over which any of the arrays differs from device to device."""
    leaves = (leaf for leaf in jax.tree.leaves(trees) if not isinstance(leaf, str))
    return frozenset[str]().union(*map(_varying, leaves))


def _own_copy(tree: PyTree, axes: frozenset[str]) -> PyTree:
    """The tree as if it differed from device to device.

    The gradient with respect to what is the same on all devices is summed over them, before any
    clipping: in ``shard_map`` the examples of one row of every device would be one."""

    def own(leaf: Array) -> Array:
        more = tuple(sorted(axes - _varying(leaf)))
        return jax.lax.pcast(leaf, more, to="varying") if more else leaf

    return jax.tree.map(own, tree) if axes else tree


def _number(batch: tuple[PyTree, ...]) -> int:
    sizes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(batch)}
    if len(sizes) != 1 or () in sizes:
        raise ValueError(
            "batch must hold arrays with a common leading axis, one entry per example, got leading"
            f" axes {sorted(sizes)}"
        )
    return sizes.pop()[0]


def _scanned(
    part: Callable[[tuple[PyTree, ...], Array], tuple[ExactSum, Array]],
    batch: tuple[PyTree, ...],
    keep: Array,
    size: int,
    axes: frozenset[str],
) -> tuple[ExactSum, Array]:
    """The sum over micro-batches, and the losses of all."""
    number = len(keep)
    room = -number % size

    def cut(leaf: Array) -> Array:
        leaf = jnp.asarray(leaf)
        if room:
            leaf = jnp.pad(leaf, [(0, room)] + [(0, 0)] * (leaf.ndim - 1))
        return leaf.reshape(-1, size, *leaf.shape[1:])

    def step(total: ExactSum, rows: tuple[Any, Array]) -> tuple[ExactSum, Array]:
        more, losses = part(*rows)
        return total + more, losses

    rows = jax.tree.map(cut, batch), cut(keep)
    first = jax.eval_shape(part, *jax.tree.map(lambda leaf: leaf[0], rows))[0]
    total, losses = jax.lax.scan(step, _own_copy(zeros(first), axes), rows)
    return total, losses.reshape(-1)[:number]
