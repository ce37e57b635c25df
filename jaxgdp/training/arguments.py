"""Arguments of a training step, checked while traced: PRNG keys, per-example gradients."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics.shapes import Array, ArrayLike, PyTree


def prng_key(name: str, key: Any) -> Array:
    """``key``, a single JAX PRNG key, new-style or raw; may be traced.

    Raises:
        ValueError: anything else, such as a seed, None, or several keys at once.

    Example:
        >>> prng_key("key", 0)
        Traceback (most recent call last):
        ValueError: key must be one JAX PRNG key, such as jax.random.key(0), got 0
    """
    valid = f"{name} must be one JAX PRNG key, such as jax.random.key(0)"
    if not isinstance(key, (jax.Array, np.ndarray)):
        raise ValueError(f"{valid}, got {key!r}")
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape != ():
            raise ValueError(f"{valid}, got keys of shape {key.shape}")
        return key
    raw = jax.eval_shape(jax.random.PRNGKey, 0).shape
    if key.dtype != np.uint32 or key.shape != raw:
        raise ValueError(f"{valid}, got an array of dtype {key.dtype} and shape {key.shape}")
    return key


def step_number(step: ArrayLike) -> Array:
    """The number of a step as an array; may be traced.

    Raises:
        ValueError: it is no integer.
    """
    number = jnp.asarray(step)
    if not jnp.issubdtype(number.dtype, jnp.integer):
        raise ValueError(f"step must be an integer, got {step!r}")
    return number


class ParameterShapes(NamedTuple):
    """Shapes of parameters by path, in an optimiser's state: part of its structure, no array.

    Attributes:
        text: the shapes as Python literals, so that what stores states by their fields stores this
            one; "" where none are known.
    """

    text: str = ""

    @classmethod
    def of(cls, params: PyTree | None) -> ParameterShapes:
        """The shapes of a pytree of arrays; of None, none."""
        return cls("" if params is None else repr(_shapes(params)))

    def read(self) -> dict[str, tuple[int, ...]] | None:
        """Path → shape; None where none are known."""
        return ast.literal_eval(self.text) if self.text else None


jax.tree_util.register_static(ParameterShapes)


def _shapes(tree: PyTree) -> dict[str, tuple[int, ...]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path): tuple(map(int, jnp.shape(leaf)))
        for path, leaf in leaves
        if hasattr(leaf, "shape") or isinstance(leaf, (int, float))
    }


_SPLIT = (
    "split the parameters off the model: with flax graph, parameters, rest = nnx.split(model,"
    " nnx.Param, ...), with equinox parameters, rest = equinox.partition(model,"
    " equinox.is_inexact_array), and put them together again inside the loss"
)


def differentiable_parameters(parameters: PyTree) -> None:
    """Refuse parameters that hold something without a gradient, such as a model as a whole.

    Raises:
        ValueError: a leaf is no floating-point array; names its path.

    Example:
        >>> differentiable_parameters({"w": jnp.ones(3), "b": 0.5})
        >>> differentiable_parameters({"w": jnp.ones(3), "f": jnp.tanh})
        Traceback (most recent call last):
        ValueError: parameters['f'] must be a floating-point array, got a PjitFunction: ...
    """
    for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]:
        if not hasattr(leaf, "dtype") and not isinstance(leaf, float):
            found = f"a {type(leaf).__name__}"
        elif not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            found = f"dtype {jnp.result_type(leaf)}"
        else:
            continue
        name = f"parameters{jax.tree_util.keystr(path)}"
        raise ValueError(f"{name} must be a floating-point array, got {found}: {_SPLIT}")


def check_one_per_example(gradients: PyTree, shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse gradients that are not one per example: averages have no norm to clip.

    Args:
        gradients: pytree of arrays.
        shapes: path → shape of the parameters.

    Raises:
        ValueError: an array is not of its parameter's shape behind a leading axis, or has no
            parameter; names its path.

    Example:
        >>> check_one_per_example({"w": jnp.ones((8, 4, 3))}, {"['w']": (4, 3)})
        >>> check_one_per_example({"w": jnp.ones((4, 3))}, {"['w']": (4, 3)})
        Traceback (most recent call last):
        ValueError: gradients['w'] must have shape (examples, 4, 3), one entry per example, got ...
    """
    for path, shape in _shapes(gradients).items():
        _check_path(path, shapes)
        if shape[1:] != shapes[path] or not shape:
            wanted = ", ".join(["examples", *map(str, shapes[path])])
            wanted += "" if shapes[path] else ","
            averaged = (
                ", that of the parameter itself: use per_example_gradients or clipped_gradients (a"
                " sum clipped elsewhere, a mean, or what optax.MultiSteps accumulated has no norm"
                " to clip)"
            )
            raise ValueError(
                f"gradients{path} must have shape ({wanted}), one entry per example, got"
                f" {shape}{averaged if shape == shapes[path] else ''}"
            )


def check_shapes_of_sum(total: PyTree, shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse a sum of clipped gradients that is not of the parameters' shapes.

    Raises:
        ValueError: an array is of another shape than its parameter, or has none; names its path.
    """
    for path, shape in _shapes(total).items():
        _check_path(path, shapes)
        if shape != shapes[path]:
            raise ValueError(f"gradients{path} must have shape {shapes[path]}, got {shape}")


def _check_path(path: str, shapes: dict[str, tuple[int, ...]]) -> None:
    if path not in shapes:
        known = ", ".join(map(repr, shapes)) or "no array"
        raise ValueError(
            f"gradients{path} must belong to a parameter of the same path, got parameters with"
            f" {known}"
        )
