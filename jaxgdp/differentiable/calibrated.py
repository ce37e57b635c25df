"""The noise that meets a target, traced: differentiable by the implicit function theorem."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..accounting.steer.lattice_choice import LatticeChoice
from ..mechanisms import Composition, SubsampledGaussian
from ..numerics.validation import broadcast, checked, one_of, positive, probability, whole
from . import quantities
from .program import DEFAULT

QUANTITIES = ("mu", "approximate_mu", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk")
_SAFE_BELOW = ("beta", "bayes_risk")
_NARROW = 1e-7  # relative, of the bisection


class _Form(NamedTuple):
    quantity: str
    adjacency: str
    rtol: float
    lattice: LatticeChoice | None
    between: tuple
    asked: bool


def _safe_side(form: _Form, sigma, p, steps, at):
    mechanism = Composition((SubsampledGaussian(sigma, p),), (steps,))
    query = (at,) if form.asked else ()
    function = getattr(quantities, form.quantity)
    found = function(
        mechanism, *query, adjacency=form.adjacency, rtol=form.rtol, lattice=form.lattice
    )
    return found.lower if form.quantity in _SAFE_BELOW else found.upper


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(form: _Form, goal, p, steps, at):
    """The upper end of a bisection in log σ: there the target is met."""
    if any(isinstance(a, Tracer) for a in (goal, p, steps, at)):
        return _bisected(form, goal, p, steps, at)
    # (what is known is worked out at once, even within a trace of something else)
    with jax.ensure_compile_time_eval():
        return jnp.asarray(_found(form, goal, p, steps, at))


def _rounds(form: _Form) -> int:
    return int(np.ceil(np.log2(np.log(form.between[1] / form.between[0]) / _NARROW)))


def _met(form: _Form, value, goal):
    return value >= goal if form.quantity in _SAFE_BELOW else value <= goal


def _bisected(form: _Form, goal, p, steps, at):
    """The bisection as a part of a program."""

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        met = _met(form, _safe_side(form, jnp.exp(middle), p, steps, at), goal)
        return jnp.where(met, low, middle), jnp.where(met, middle, high)

    ends = tuple(jnp.full(jnp.shape(goal), np.log(end)) for end in form.between)
    low, high = jax.lax.fori_loop(0, _rounds(form), halve, ends)
    # an end that was never moved brackets nothing
    found = (low > np.log(form.between[0])) & (high < np.log(form.between[1]))
    return jnp.where(found, jnp.exp(high), jnp.nan)


def _found(form: _Form, goal, p, steps, at) -> float:
    """The same bisection on the host, for which nothing is compiled."""
    low, high = ends = tuple(float(np.log(end)) for end in form.between)
    for _ in range(_rounds(form)):
        middle = 0.5 * (low + high)
        met = bool(_met(form, float(_safe_side(form, np.exp(middle), p, steps, at)), float(goal)))
        low, high = (low, middle) if met else (middle, high)
    return float(np.exp(high)) if low > ends[0] and high < ends[1] else np.nan


@_solve.defjvp
def _solve_jvp(form, primals, tangents):
    """dσ = (dgoal − ∂g·d(p, T, at))/∂_σ g."""
    goal, *rest = primals
    moved_goal, *moved = tangents
    sigma = _solve(form, goal, *rest)
    found, pull = jax.vjp(lambda *of: _safe_side(form, *of), sigma, *rest)
    slope, *by_rest = pull(jnp.ones_like(found))
    change = sum(by * moved_one for by, moved_one in zip(by_rest, moved, strict=True))
    return sigma, (moved_goal - change) / slope


def noise_multiplier(
    quantity,
    goal,
    sampling_prob=1.0,
    num_steps=1,
    *,
    at=None,
    adjacency="add_remove",
    rtol=1e-3,
    lattice=None,
    between=(0.1, 1e4),
):
    """Noise multiplier of DP-SGD at which the safe side of a number equals ``goal``; traced and
    differentiable.

    With g(σ, p, T, at) the number, ∂σ = (∂goal − ∂g)/∂_σ g (implicit function theorem).
    :func:`jaxgdp.calibrate` finds the same noise on the host, for any target, with a certificate;
    this one lives inside ``jit`` and ``grad``.

    Args:
        quantity: "mu", "approximate_mu", "advantage", "epsilon", "delta", "tpr", "beta" or
            "bayes_risk".
        goal: value to be met, any shape. sampling_prob: p in (0, 1]. num_steps: T; may be any real
            number if traced. All broadcast.
        at: what it is asked at (δ of "epsilon", ε of "delta", FPR of "tpr" and "beta", d, prior, or
            the floor of "mu").
        adjacency, rtol, lattice: as in :func:`jaxgdp.differentiable.mu`; without a lattice, the
            default one.
        between: the noise searched.

    Returns:
        σ of the broadcast shape, 1e-7 (relative) on the safe side of the root; NaN where
        ``between`` does not hold it.

    Raises:
        RuntimeError: JAX computes in 32 bits.
        ValueError: a number that is not traced is out of range.

    Example:
        >>> import jax, jaxgdp
        >>> with jax.enable_x64(True):
        ...     fixed = jaxgdp.differentiable.lattice(jaxgdp.dpsgd(10.0, 1.0, 100))
        ...     slope = jax.grad(lambda m: noise_multiplier("mu", m, 1.0, 100, lattice=fixed))(1.0)
        >>> bool(abs(float(slope) + 10.0) < 0.05)
        True
    """
    quantities.need_64_bits("noise_multiplier")
    one_of("quantity", quantity, QUANTITIES)
    low, high = (float(positive("between", end)) for end in between)
    if not low < high:
        raise ValueError(f"between must hold two increasing numbers, got {between!r}")
    columns = {
        "goal": checked("goal", goal, "a finite number > 0", lambda a: a > 0.0),
        "sampling_prob": probability("sampling_prob", sampling_prob),
        "num_steps": whole("num_steps", num_steps),
        "at": 0.5 if at is None else positive("at", at),
    }
    needed = quantity in ("epsilon", "delta", "tpr", "beta")
    if needed and at is None:
        raise ValueError(f"at must be given for {quantity!r}")
    if quantity == "advantage" and at is not None:
        raise ValueError("at must not be given for 'advantage', which is asked at nothing")
    form = _Form(quantity, adjacency, float(rtol), lattice or DEFAULT, (low, high), at is not None)
    shape = broadcast(**columns)
    rows = [
        jnp.broadcast_to(jnp.asarray(column, float), shape).reshape(-1)
        for column in columns.values()
    ]
    if not shape:
        return _solve(form, *(row[0] for row in rows))
    return jax.vmap(lambda *row: _solve(form, *row))(*rows).reshape(shape)
