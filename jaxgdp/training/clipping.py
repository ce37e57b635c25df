"""Gradients of single examples, clipped and summed to one float a parameter."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..numerics.shapes import Array, ArrayLike, PyTree
from .exact_sums import rounded
from .gradients import ExampleGradients, checked_mask, checked_rows, summed

_ROUNDING = 2.0**-22  # of two sums, each rounded twice, for each example


def clipped_sum(
    gradients: PyTree, clip_norm: Array | float, mask: ArrayLike | str | None = None
) -> PyTree:
    """Σ over the real examples of g·min(1, C/‖g‖), ‖·‖ over all parameters (Abadi et al. 2016).

    Padding and examples whose gradient is not finite count as zero. The sum is exact, and rounded
    at the end. That rounding moves the sum of B examples by at most B·2⁻²²·C more, so gradients are
    clipped to a norm of C/(1 + B·2⁻²²). :func:`clipped_gradients` and :func:`privatize` need no
    such room, as they round after the noise is in: prefer them, above all for sums over devices and
    for large batches. In float32 a gradient of norm above about 1e19·C counts as zero.

    Args:
        gradients: what :func:`per_example_gradients` returned, or a pytree of floating-point arrays
            with a common leading axis, one entry per example.
        clip_norm: C > 0; may be traced.
        mask: which examples are real, bool of the leading axis' shape, or "all"; not given where
            the gradients carry it.

    Returns:
        Pytree without the leading axis, of the gradients' dtypes but at least float32.

    Raises:
        ValueError: an empty tree, arrays that are not floating-point, no common leading axis, or a
            mask that is missing or of another shape or dtype (while tracing).

    Example:
        >>> import jax.numpy as jnp
        >>> gradients = jnp.array([[3.0, 4.0], [0.3, 0.4], [jnp.nan, 0.0], [9.0, 9.0]])
        >>> mask = jnp.array([True, True, True, False])
        >>> [round(float(x), 3) for x in clipped_sum(gradients, 1.0, mask=mask)]
        [0.9, 1.2]
    """
    if not isinstance(gradients, ExampleGradients):
        gradients = ExampleGradients(gradients, None)
    leaves, number = checked_rows(gradients.gradients)
    known = gradients.with_mask(mask)
    clip_norm = clip_norm / (1.0 + number * _ROUNDING)
    total = summed(known.gradients, clip_norm, checked_mask(known.mask, number))
    high, structure = jax.tree.flatten(total.high)
    wide = [jnp.promote_types(leaf.dtype, jnp.float32) for leaf in leaves]
    flat = type(total)(high, jax.tree.leaves(total.low))
    return jax.tree.unflatten(structure, rounded(flat, clip_norm, wide))
