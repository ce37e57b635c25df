"""One compiled program from the parameters of a setting to a certified number and its derivative."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from scipy.special import ndtr

from ..accounting import engine
from ..accounting.curve import Curve, gaussian_parts, log_delta_at
from ..accounting.half_curve import Sparse, half_curve, merge, upper_half
from ..accounting.lattices import Lattice
from ..accounting.question import Question
from ..accounting.windows import plan_piece
from ..bracket import Bracket
from ..numerics.precision import with_float64
from ..quantities.quantities import quantity
from ..quantities.registry import REGISTRY
from .tangency import tangency

# serves most settings of 100 steps or more with a bracket of about 1e-3; see ``lattice``
DEFAULT = Lattice("sparse", 2048, 1024, 2**17, 64, 8, 13, 1)
_NOTHING_SEEN = (np.inf, 0.0)
_FAINTEST = 16.0


class Form(NamedTuple):
    """What decides a program: the number by name, the order of the pair, the lattice (None: to be chosen) and whether the query
    is the smallest rate that matters."""

    name: str
    adjacency: str
    lattice: Any  # a Lattice or None
    rtol: float


NOTHING = -1000.0  # depth of TPR that every curve reaches at once: none is asked for
_OF_FLOOR = ("mu", "regret")  # numbers whose query is the floor
_TOUCHES = 2  # points that a tangency has at most


class Rates(NamedTuple):
    """What a number is asked at, as in ``summaries.quantities``, and depths (in standard deviations) out to which the curve has to be
    known, of FPR and of TPR."""

    query: Any
    log_floor: Any
    z_floor: Any
    z_delta: Any


def _grids(lattice: Lattice):
    """Shapes of both half-curves, and tables with a leading axis of sides (None if dense), built outside of any trace."""
    with jax.ensure_compile_time_eval():
        shapes, tables = lattice.grids()
        return shapes, None if tables[0] is None else _stacked(tables)


def _stacked(tables):
    return jax.tree.map(lambda a, b: jnp.stack([a, b]), *tables)


def _plans(groups, rates: Rates, form: Form):
    """Plans of both half-curves (leading axes: side, piece), constants for every derivative."""
    merged, count = jax.lax.stop_gradient(merge(groups))
    depths = jax.lax.stop_gradient((rates.z_floor, rates.z_delta))
    pieces = form.lattice.pieces

    def plan(reverse, piece):
        return plan_piece(merged, count, *depths, form.rtol, _FAINTEST, _NOTHING_SEEN, reverse, piece, pieces)

    piece = jnp.arange(float(pieces))
    return jax.vmap(lambda reverse: jax.vmap(lambda k: plan(reverse, k))(piece))(jnp.array([False, True]))


def _both(one_piece, plans, form: Form, tables):
    """``one_piece(plan, grid, reverse)`` for every piece of both sides, compiled once where both have lattices of one shape."""
    shapes = _grids(form.lattice)[0]
    if shapes[0] == shapes[1]:

        def side(of):
            plan, table, reverse = of
            grid = shapes[0] if table is None else Sparse(table, cast(int, shapes[0]))
            return jax.vmap(lambda p: one_piece(p, grid, reverse))(plan)

        return jax.lax.map(side, (plans, tables, jnp.array([False, True])))
    sides = []
    for s, shape in enumerate(shapes):
        plan = jax.tree.map(lambda a: a[s], plans)  # noqa: B023
        sides.append(jax.vmap(lambda p: one_piece(p, shape, jnp.asarray(s == 1)))(plan))  # noqa: B023
    return jax.tree.map(lambda *a: jnp.stack(a), *sides)


@functools.partial(jax.jit, static_argnames=("form",))
def _halves(groups, rates: Rates, tables, *, form: Form):
    """Plans and vertices of both sides, for any number: (plans, above, below)."""
    merged, count = merge(groups)
    plans = _plans(groups, rates, form)
    above, below = _both(
        lambda plan, grid, reverse: half_curve(merged, count, plan, grid, reverse), plans, form, tables
    )
    return plans, above, below


@functools.partial(jax.jit, static_argnames=("name", "adjacency", "touch"))
def _answer(groups, above, below, rates: Rates, *, name, adjacency, touch):
    """A number and, if wanted, its tangency."""
    order = (1, 0) if adjacency == "add" else (0, 1)
    sides = [jax.tree.map(lambda a: a[s], half) for half in (above, below) for s in order]  # noqa: B023
    curve, symmetric = Curve(*sides, *gaussian_parts(groups)), adjacency == "add_remove"
    query = rates.log_floor if name in _OF_FLOOR else rates.query
    found = quantity(name, curve, query, symmetric=symmetric)
    if not touch:
        return found, None
    value = 0.5 * (found.lower + found.upper)
    if name == "regret":
        value = quantity("mu", curve, query, symmetric=symmetric).upper
    elif name == "epsilon":
        value = jnp.where(jnp.isfinite(found.upper), value, jnp.inf)
    touched = tangency(name, curve, query, value, symmetric=symmetric)
    if adjacency == "add":
        touched = touched._replace(weight=touched.weight[::-1])
    return found, touched.padded(_TOUCHES)


@functools.partial(jax.jit, static_argnames=("form",))
def _pull(groups, plans, tables, epsilon, weight, *, form: Form):
    """Σ weight·∂log δ_side(ε) in every leaf of ``groups``."""

    def total(groups):
        merged, count = merge(groups)
        halves = _both(lambda plan, grid, reverse: upper_half(merged, count, plan, grid, reverse), plans, form, tables)
        used = weight != 0.0
        at = jnp.where(used, epsilon, 0.0)
        log_delta = jax.vmap(lambda half, at: jax.vmap(lambda e: log_delta_at(half, e))(at))(halves, at)
        return jnp.sum(jnp.where(used, weight * log_delta, 0.0))

    return jax.grad(total)(groups)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def number(form: Form, groups, rates: Rates) -> Bracket:
    """One certified number of one setting; both sides of the bracket have the derivative of the number itself."""
    form, shared = _with_lattice(form, groups, rates)
    _, above, below = _halves(groups, rates, _grids(form.lattice)[1], form=shared)
    return _answer(groups, above, below, rates, name=form.name, adjacency=form.adjacency, touch=False)[0]


@number.defjvp
def _number_jvp(form, primals, tangents):
    groups, rates = primals
    form, shared = _with_lattice(form, groups, rates)
    tables = _grids(form.lattice)[1]
    plans, above, below = _halves(groups, rates, tables, form=shared)
    found, touch = _answer(groups, above, below, rates, name=form.name, adjacency=form.adjacency, touch=True)
    by_groups = _pull(groups, plans, tables, touch.epsilon, touch.weight, form=shared)
    moved_groups, moved = tangents
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), by_groups, moved_groups)
    moved_query = moved.log_floor if form.name in _OF_FLOOR else moved.query
    change = sum(jax.tree.leaves(products)) + touch.slope * moved_query
    return found, Bracket(change, change)


def _with_lattice(form: Form, groups, rates: Rates) -> tuple[Form, Form]:
    """The form with a lattice, and what of it the curve depends on.

    The lattice is chosen for the setting where its parameters are known, else it is the default one.
    """
    lattice = form.lattice
    if lattice is None and any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((groups, rates))):
        lattice = DEFAULT
    if lattice is None:
        flat = jax.tree.map(lambda leaf: np.asarray(leaf)[None], groups)
        lattice = settled(flat, form.rtol, np.exp(rates.log_floor), form.adjacency, deepest(rates))[0]
    return form._replace(lattice=lattice), Form("", "", lattice, form.rtol)


def deepest(rates: Rates):
    """The smallest rate to be resolved, or None."""
    return None if np.all(np.asarray(rates.z_delta) <= NOTHING) else ndtr(-np.asarray(rates.z_delta))


@with_float64
def settled(groups, rtol, fpr_floor, adjacency, deepest) -> list[Lattice]:
    """The lattice on which each setting of a flat batch reached its accuracy, or came nearest to it."""
    return engine.answer(groups, Question(rtol, fpr_floor, adjacency, ((REGISTRY["mu"], None),), deepest)).lattices
