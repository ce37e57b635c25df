"""Shapes of arrays, for readers and type checkers: nothing is loaded or checked at run time.

``Float[Array, "pieces vertices"]`` is an array of floats of that shape, of NumPy or of JAX. Axes:

=============  ==================================================================================
settings       mechanisms or compositions of one batch
components     mechanisms of one composition, equal ones as one
sides          half-curves: of removing a record, and of adding one
pieces         tilts along a half-curve
vertices       thresholds of a piece
points         lattice points of one step
frequencies    of the composed law
distances      of the points of a step from its centre
rows           laws of which something is worked out at once
units          pieces of several settings in a row
nodes          points of a quadrature
atoms          outcomes of a finite law
losses         privacy losses at which a function is evaluated
=============  ==================================================================================

A scalar has the shape ``""``, one axis begins with a space (``" settings"``, so that nothing takes
it for a name), ``"*units"`` stands for any number of axes, and a plain ``Array`` has any shape.

Fields of mechanisms are ``Parameter``: users give what is ``ArrayLike`` (a number, a list, an
array), and what is read is an ``Array``, as it has been checked and converted. Type checkers handle
both sides of that; at run time it is a plain field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np
    from jaxtyping import Bool, Float, Int

    Array: TypeAlias = jax.Array | np.ndarray
    ArrayLike: TypeAlias = jax.Array | np.ndarray | float | int | bool | list | tuple
    PyTree: TypeAlias = Any  # arrays in containers of any kind

    class Parameter:
        """A field that is given as ``ArrayLike`` and read as an ``Array``."""

        def __get__(self, instance: object, owner: Any = None) -> Array: ...
        def __set__(self, instance: object, value: ArrayLike) -> None: ...
else:
    Array = ArrayLike = Bool = Float = Int = Parameter = PyTree = Any

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Parameter", "PyTree"]
