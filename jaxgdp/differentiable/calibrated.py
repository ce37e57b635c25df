"""The noise that meets a target, traced: differentiable by the implicit function theorem."""

from __future__ import annotations

import functools
import inspect
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import options
from ..accounting.steer.lattices import LatticeChoice
from ..adjacency import Adjacency
from ..mechanisms import Composition, SubsampledGaussian
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, one_of, positive, probability, whole
from ..quantities.registry import REGISTRY, named
from . import quantities
from .program import DEFAULT, refuse_unknown_tangency

_NARROW = 1e-7  # relative, of the bisection


class _Form(NamedTuple):
    quantity: str
    adjacency: Adjacency
    rtol: float
    lattice: LatticeChoice | None
    between: tuple[float, float]
    asked: bool

    @property
    def grows(self) -> bool:
        return named(self.quantity).grows


def _safe_side(form: _Form, sigma: Array, p: Array, steps: Array, at: Array) -> Array:
    mechanism = Composition((SubsampledGaussian(sigma, p),), (steps,))
    found = quantities.quantity(
        form.quantity,
        mechanism,
        at if form.asked else None,
        adjacency=form.adjacency,
        rtol=form.rtol,
        lattice=form.lattice,
    )
    return found.upper if form.grows else found.lower


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(form: _Form, goal: Array, p: Array, steps: Array, at: Array) -> Array:
    """The upper end of a bisection in log σ: there the target is met."""
    if any(isinstance(a, Tracer) for a in (goal, p, steps, at)):
        return _bisected(form, goal, p, steps, at)
    # (what is known is worked out at once, even within a trace of something else)
    with jax.ensure_compile_time_eval():
        return jnp.asarray(_found(form, goal, p, steps, at))


def _rounds(form: _Form) -> int:
    return int(np.ceil(np.log2(np.log(form.between[1] / form.between[0]) / _NARROW)))


def _met(form: _Form, value: Array | float, goal: Array | float) -> Array | bool:
    return value <= goal if form.grows else value >= goal


def _bisected(form: _Form, goal: Array, p: Array, steps: Array, at: Array) -> Array:
    """The bisection as a part of a program."""

    def halve(_, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        met = _met(form, _safe_side(form, jnp.exp(middle), p, steps, at), goal)
        return jnp.where(met, low, middle), jnp.where(met, middle, high)

    ends = tuple(jnp.full(jnp.shape(goal), np.log(end)) for end in form.between)
    low, high = jax.lax.fori_loop(0, _rounds(form), halve, ends)
    # an end that was never moved brackets nothing
    found = (low > np.log(form.between[0])) & (high < np.log(form.between[1]))
    return jnp.where(found, jnp.exp(high), jnp.nan)


def _found(form: _Form, goal: Array, p: Array, steps: Array, at: Array) -> float:
    """The same bisection on the host, for which nothing is compiled."""
    low, high = ends = tuple(float(np.log(end)) for end in form.between)
    for _ in range(_rounds(form)):
        middle = 0.5 * (low + high)
        met = bool(_met(form, float(_safe_side(form, np.exp(middle), p, steps, at)), float(goal)))
        low, high = (low, middle) if met else (middle, high)
    return float(np.exp(high)) if low > ends[0] and high < ends[1] else np.nan


@_solve.defjvp
def _solve_jvp(
    form: _Form, primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[Array, Array]:
    """dσ = (dgoal − ∂g·d(p, T, at))/∂_σ g."""
    goal, *rest = primals
    moved_goal, *moved = tangents
    sigma = _solve(form, goal, *rest)
    found, pull = jax.vjp(lambda *of: _safe_side(form, *of), sigma, *rest)
    slope, *by_rest = pull(jnp.ones_like(found))
    change = sum(by * moved_one for by, moved_one in zip(by_rest, moved, strict=True))
    return sigma, (moved_goal - change) / slope


def _refuse_missing_argument(name: str, at: ArrayLike | None) -> None:
    """Raise where the function of a quantity needs an argument that is not given, or takes none."""
    if at is not None and named(name).argument is None:
        raise ValueError(f"at must not be given for {name!r}, which takes no argument")
    function = getattr(quantities, name, None)
    needed = [] if function is None else list(inspect.signature(function).parameters.values())[1:2]
    if at is None and any(p.default is p.empty for p in needed):
        raise ValueError(f"at must be given for {name!r}")


def noise_multiplier(
    quantity: str,
    goal: ArrayLike,
    sampling_prob: ArrayLike = 1.0,
    num_steps: ArrayLike = 1,
    *,
    at: ArrayLike | None = None,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
    between: tuple[float, float] = (0.1, 1e4),
) -> Array:
    """Noise of DP-SGD at which the safe side of a quantity equals ``goal``; differentiable.

    With g(σ, p, T, at) the quantity, ∂σ = (∂goal − ∂g)/∂_σ g (implicit function theorem).
    :func:`jaxgdp.calibrate` finds the same noise on the host, for any target, with a certificate;
    this one lives inside ``jit`` and ``grad``.

    Args:
        quantity: name of one that has a derivative and grows or falls steadily with the noise
            (not "regret").
        goal: value to be met, any shape; broadcasts with the next two.
        sampling_prob: p in (0, 1].
        num_steps: T; any real number if traced.
        at: the argument of the quantity, such as δ of "epsilon" or the floor of "mu".
        adjacency: as in :func:`jaxgdp.measure`.
        rtol: as in :func:`jaxgdp.differentiable.mu`.
        lattice: likewise; without one, the default lattice.
        between: noise multipliers that are searched.

    Returns:
        σ of the broadcast shape, 1e-7 (relative) on the safe side of the root; NaN where
        ``between`` does not hold it.

    Raises:
        RuntimeError: JAX computes in 32 bits.
        ValueError: a number that is not traced is out of range, or the quantity is unknown or
            does not grow or fall steadily with the noise.
        NotImplementedError: the quantity does not define how its derivative acts on the curve;
            names it.
        UnprovenDerivative: a derivative is taken that is not right to a percent (NaN in a program).

    Example:
        >>> import jax, jaxgdp
        >>> with jax.enable_x64(True):
        ...     fixed = jaxgdp.differentiable.lattice(jaxgdp.dpsgd(10.0, 1.0, 100))
        ...     slope = jax.grad(lambda m: noise_multiplier("mu", m, 1.0, 100, lattice=fixed))(1.0)
        >>> bool(abs(float(slope) + 10.0) < 0.05)
        True
    """
    quantities.need_64_bits("noise_multiplier")
    one_of("quantity", quantity, [name for name, entry in REGISTRY.items() if entry.monotone])
    refuse_unknown_tangency(quantity)
    low, high = (float(positive("between", end)) for end in between)
    if not low < high:
        raise ValueError(f"between must hold two increasing numbers, got {between!r}")
    columns = {
        "goal": checked("goal", goal, "a finite number > 0", lambda a: a > 0.0),
        "sampling_prob": probability("sampling_prob", sampling_prob),
        "num_steps": whole("num_steps", num_steps),
        "at": 0.5 if at is None else positive("at", at),
    }
    _refuse_missing_argument(quantity, at)
    relation = Adjacency.checked(adjacency)
    form = _Form(quantity, relation, float(rtol), lattice or DEFAULT, (low, high), at is not None)
    shape = broadcast(**columns)
    rows = [
        jnp.broadcast_to(jnp.asarray(column, float), shape).reshape(-1)
        for column in columns.values()
    ]
    if not shape:
        return _solve(form, *(row[0] for row in rows))
    return jax.vmap(lambda *row: _solve(form, *row))(*rows).reshape(shape)
