"""Per-example gradients, clipped and summed: no record moves the sum by more than the norm."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from ..numerics.shapes import Array, ArrayLike, PyTree

# norms are float32; clipping to a hair less keeps the sum's sensitivity below the clipping norm
_MARGIN = 1e-4


def per_example_gradients(loss: Callable[..., Array]) -> Callable[..., tuple[Array, PyTree]]:
    """Gradients of a loss of one record, for a batch: ``vmap(value_and_grad(loss), (None, 0, …))``.

    Args:
        loss: function (parameters, *record) → scalar loss of one record.

    Returns:
        Function (parameters, *batch) → (losses of shape (batch,), gradients with a leading batch
        axis). ``batch`` holds pytrees whose arrays have a leading batch axis. The losses are not
        private: do not publish them.

    Example:
        >>> import jax.numpy as jnp
        >>> gradient = per_example_gradients(lambda w, x: w * x)
        >>> losses, gradients = gradient(2.0, jnp.array([1.0, 3.0]))
        >>> gradients.tolist()
        [1.0, 3.0]
    """
    single = jax.value_and_grad(loss)

    def batched(parameters: PyTree, *batch: PyTree) -> tuple[Array, PyTree]:
        return jax.vmap(single, in_axes=(None,) + (0,) * len(batch))(parameters, *batch)

    return batched


def _leaves(gradients: PyTree) -> tuple[list[Array], int]:
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
    return leaves, sizes.pop()[0]


def clipped_sum(
    gradients: PyTree, clip_norm: Array | float, mask: ArrayLike | None = None
) -> PyTree:
    """Σ over the real examples of g·min(1, C/‖g‖), ‖·‖ over all parameters (Abadi et al. 2016).

    The clipping is ``optax.per_example_global_norm_clip``, given what it does not do itself:
    padding and examples whose gradient is not finite count as zero (a single NaN would otherwise be
    visible in the sum), sums are taken in at least float32 at full matrix precision (a GPU's or
    TPU's shortened products would let the sum move by more than C), and norms are cut at C·(1 −
    1e-4), room for their own rounding. In float32 a gradient of norm above about 1e19 counts as
    zero.

    Args:
        gradients: pytree of floating-point arrays with a common leading axis, one entry per
            example.
        clip_norm: C > 0; may be traced.
        mask: which examples are real, of the leading axis' shape; None for all.

    Returns:
        Pytree without the leading axis, of the gradients' dtypes but at least float32.

    Raises:
        ValueError: an empty tree, arrays that are not floating-point, no common leading axis, or a
            mask of another shape (while tracing).

    Example:
        >>> import jax.numpy as jnp
        >>> gradients = jnp.array([[3.0, 4.0], [0.3, 0.4], [jnp.nan, 0.0], [9.0, 9.0]])
        >>> mask = jnp.array([True, True, True, False])
        >>> [round(float(x), 3) for x in clipped_sum(gradients, 1.0, mask=mask)]
        [0.9, 1.2]
    """
    leaves, number = _leaves(gradients)
    wide = [
        leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)) for leaf in map(jnp.asarray, leaves)
    ]
    keep = jnp.ones(number, bool) if mask is None else jnp.asarray(mask).astype(bool)
    if keep.shape != (number,):
        raise ValueError(
            f"mask must have shape ({number},), one entry per example, got {keep.shape}"
        )
    for leaf in wide:
        keep = keep & jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
    clean = [
        jnp.where(keep.reshape((number,) + (1,) * (leaf.ndim - 1)), leaf, 0.0) for leaf in wide
    ]
    with jax.default_matmul_precision("highest"):
        total, _ = optax.per_example_global_norm_clip(clean, clip_norm * (1.0 - _MARGIN))
    return jax.tree.unflatten(jax.tree.structure(gradients), jax.tree.leaves(total))
