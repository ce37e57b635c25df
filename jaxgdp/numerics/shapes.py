"""Shapes of arrays, for readers and type checkers: nothing is loaded or checked at run time.

``Float[Array, "pieces vertices"]`` is an array of floats of that shape, of NumPy or of JAX. The axes:

=============  ==================================================================================
settings       mechanisms or compositions of one batch
components     mechanisms of one composition, equal ones merged
sides          half-curves: of removing a record, and of adding one
pieces         tilts along a half-curve
vertices       thresholds of a piece
points         lattice points of one step
frequencies    of the composed law
nodes          points of a quadrature
atoms          outcomes of a finite law
losses         privacy losses that a function is asked at
=============  ==================================================================================

A scalar has the shape ``""``, and ``"..."`` stands for any axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np
    from jaxtyping import Bool, Float, Int

    Array: TypeAlias = jax.Array | np.ndarray
    ArrayLike: TypeAlias = jax.Array | np.ndarray | float | int | bool | list | tuple
else:
    Array = ArrayLike = Bool = Float = Int = Any

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int"]
