"""One program from the parameters of a setting to a certified number and its derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from scipy.special import ndtr

from ..accounting.certify.curve import Curve, gaussian_parts
from ..accounting.certify.differentiable_law import Law, dominating_law, log_delta
from ..accounting.certify.frequency_tables import Tables
from ..accounting.certify.half_curve import half_curve
from ..accounting.certify.lattice import Grid, Sparse
from ..accounting.certify.steps import uses
from ..accounting.plan import Plan
from ..accounting.question import Question
from ..accounting.run import engine
from ..accounting.run.executors import by_name
from ..accounting.steer.lattices import LatticeChoice
from ..accounting.steer.plan_whole import plan_whole
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..mechanisms.composition import Groups, collapse_gaussians
from ..numerics import namespace as xp
from ..numerics.compiling import Program
from ..numerics.precision import with_float64
from ..numerics.shapes import Array, PyTree
from ..quantities import registry
from ..quantities.quantities import quantity, reading
from ..quantities.tangency import HalfCurves, Tangency

# serves most settings of 100 steps or more with a bracket of about 1e-3; see ``lattice``
DEFAULT = LatticeChoice("sparse", 2048, 1024, 2**17, 64, 8, 13, 1)
# of the accuracy asked for, on a lattice that is chosen: a slope is off by some ten times as much
# as a bracket is wide
_FINER = 0.25
WITH_ATOMS = LatticeChoice("whole", 2048, 0, 2**15, 0, 0, 0, 1)
_NOTHING_SEEN = (np.full(2, np.inf), np.zeros(2))
_FAINTEST = 16.0
# what a derivative on a lattice needs: uses, and a bracket that is as narrow beside the number
_FEW, _NARROW = 10.0, 0.01
_LARGEST_DELTA = float(np.log(0.97))  # log δ up to which its slope has the digits it needs


class UntrustedLattice(ArithmeticError):
    """The derivative of the law on a lattice is not good enough, and all parameters are known."""


class Form(NamedTuple):
    """The key of a program: the number by name, the order of the pair, the lattice (None: to be
    chosen) and whether the query is the smallest rate that matters."""

    name: str
    adjacency: Adjacency
    lattice: LatticeChoice | None
    rtol: float

    @property
    def chosen(self) -> LatticeChoice:
        """The lattice, once there is one."""
        assert self.lattice is not None
        return self.lattice


NOTHING = -1000.0  # depth of TPR that every curve reaches at once: none is asked for


def refuse_unknown_tangency(name: str) -> None:
    """Raise if a quantity does not define how its derivative acts on the curve.

    Raises:
        ValueError: there is no such quantity.
        NotImplementedError: its ``tangency`` is not known; names it.
    """
    if reading(name).tangency is None:
        raise NotImplementedError(
            f"jaxgdp.differentiable has no derivatives of {name!r}: its quantity does not"
            " define its tangency, how a derivative acts on the curve"
        )


class Rates(NamedTuple):
    """The argument of a number, as ``Quantity.query`` makes it, and depths (in standard
    deviations) out to which the curve must be known, of FPR and of TPR."""

    query: Array
    log_floor: Array
    z_floor: Array
    z_delta: Array


def _grids(lattice: LatticeChoice):
    """Shapes and tables (None if dense) of both half-curves, built outside of any trace."""
    with jax.ensure_compile_time_eval():
        return lattice.grids()


def _stacked(rows: Sequence[PyTree]) -> PyTree:
    return jax.tree.map(lambda *a: xp.stack(a), *rows)


def _tables_of_both(tables: tuple[Tables | None, Tables | None]) -> Tables | None:
    """Tables of both half-curves stacked, without what is known of each octave, of which the two
    sides of one step have different numbers, and which NumPy alone asks; None if they are dense.
    """
    own = [t._replace(octave_left=None, octave_right=None) for t in tables if t is not None]
    return _stacked(own) if own else None


def _plans(groups: Groups, rates: Rates, form: Form) -> Plan:
    """Plans of both half-curves (leading axes: side, piece), constants for every derivative."""
    groups, z_floor, z_delta = jax.tree.map(
        xp.stop_gradient, (groups, rates.z_floor, rates.z_delta)
    )
    depths = z_floor, z_delta, form.rtol, _FAINTEST, _NOTHING_SEEN
    return plan_whole(groups, uses(groups), *depths, 0.0, form.chosen.pieces)


def _both(
    one_piece: Callable[[Plan, Grid, Array], PyTree], plans: Plan, form: Form, tables: Tables | None
) -> PyTree:
    """``one_piece(plan, grid, reverse)`` for every piece of both sides, compiled once if alike."""
    shapes = _grids(form.chosen)[0]
    if shapes[0] == shapes[1]:

        def side(of: PyTree):
            plan, table, reverse = of
            grid = shapes[0] if table is None else Sparse(table, cast(int, shapes[0]))
            return jax.vmap(lambda p: one_piece(p, grid, reverse))(plan)

        return jax.lax.map(side, (plans, tables, jnp.array([False, True])))
    sides = []
    for s, shape in enumerate(shapes):
        plan = jax.tree.map(lambda a: a[s], plans)  # noqa: B023
        sides.append(jax.vmap(lambda p: one_piece(p, shape, jnp.asarray(s == 1)))(plan))  # noqa: B023
    return jax.tree.map(lambda *a: jnp.stack(a), *sides)


@functools.partial(jax.jit, static_argnames=("form", "bare"))
def _compiled_halves(
    groups: Groups, rates: Rates, tables: Tables | None, *, form: Form, bare: bool
) -> tuple[PyTree, ...]:
    """Plans and vertices of both sides, for any number: (plans, above, below, …)."""
    plans = _plans(groups, rates, form)
    return plans, *_both(
        lambda plan, grid, reverse: half_curve(groups, uses(groups), plan, grid, reverse, bare),
        plans,
        form,
        tables,
    )


def _halves(groups: Groups, rates: Rates, form: Form, bare: bool) -> tuple[PyTree, ...]:
    """Plans and vertices of both sides (see ``half_curve``): by NumPy if known, or compiled."""
    form = form._replace(name="", adjacency=Adjacency.ADD_REMOVE)
    if traced(groups, rates):
        tables = _grids(form.chosen)[1]
        return _compiled_halves(groups, rates, _tables_of_both(tables), form=form, bare=bare)
    shapes, tables = form.chosen.grids()
    plans, pieces, sides = _plans(groups, rates, form), range(form.chosen.pieces), []
    for side, reverse in enumerate(np.array([False, True])):
        grid = _grid(shapes[side], tables[side])
        of = [jax.tree.map(lambda a: a[side, piece], plans) for piece in pieces]  # noqa: B023
        sides.append(
            _stacked([half_curve(groups, uses(groups), plan, grid, reverse, bare) for plan in of])
        )
    return plans, *_stacked(sides)


def _answer(
    groups: Groups, halves: Sequence[PyTree], rates: Rates, form: Form
) -> tuple[Bracket, Tangency | None]:
    """A number and, with halves of the bare pair, its tangency."""
    run = _compiled_answer if traced(groups, rates) else _read
    return run(groups, halves, rates, name=form.name, adjacency=form.adjacency)


def _read(
    groups: Groups, halves: Sequence[PyTree], rates: Rates, *, name: str, adjacency: Adjacency
) -> tuple[Bracket, Tangency | None]:
    order = (1, 0) if adjacency.swapped else (0, 1)
    above, below, *bare = ([jax.tree.map(lambda a: a[s], half) for s in order] for half in halves)  # noqa: B023
    curve, symmetric = Curve(*above, *below, *gaussian_parts(groups)), adjacency.symmetric
    asked = reading(name)
    query = rates.log_floor if asked.argument == "fpr_floor" else rates.query
    found = quantity(name, curve, query, symmetric=symmetric)
    if not bare:
        return found, None
    assert asked.tangency is not None  # refused before
    given = (
        None if asked.after is None else quantity(asked.after, curve, query, symmetric=symmetric)
    )
    bare_halves = HalfCurves(tuple(bare[0]), symmetric)
    touched = asked.tangency(bare_halves, query, found, given)
    if adjacency.swapped:
        touched = touched._replace(log_weight=touched.log_weight[::-1])
    return found, touched


_compiled_answer = functools.partial(jax.jit, static_argnames=("name", "adjacency"))(_read)


def _pull(groups: Groups, plans: Plan, touch: Tangency, form: Form) -> Groups:
    """Σ sign·e^{log_weight}·∂δ_side(ε) in every leaf of ``groups``: of both sides and all points.

    Points without weight are left out where that is known. Otherwise one program serves all
    points of both sides, if their lattices have one shape."""
    shapes, tables = _grids(form.chosen)
    points = touch.epsilon, touch.spread, touch.sign

    def at(shape: Any, table: Tables | None, reverse: Array, plans: Plan, log_weights: Array):
        """Of one side: a plan for each piece, and what follows them for each point."""

        def one(point: tuple[Array, ...]):
            epsilon, spread, sign, log_weight = point
            piece = xp.sum(plans.cut_high[:-1] <= epsilon)
            plan = jax.tree.map(lambda a: a[piece], plans)
            place = xp.where(log_weight > -xp.inf, epsilon, 0.0), spread
            log_delta, slope = _slope(groups, plan, place, reverse, shape, table)
            weight = sign * xp.exp(xp.minimum(log_weight + log_delta, 700.0))
            # (near δ = 1 the slope is a small difference of large ones)
            weight = xp.where((weight != 0.0) & (log_delta > _LARGEST_DELTA), xp.nan, weight)
            return jax.tree.map(lambda s: xp.where(weight != 0.0, weight * s, 0.0), slope)

        rows = *points, log_weights
        if traced(rows):
            return jax.tree.map(lambda a: jnp.sum(a, axis=0), jax.lax.map(one, rows))
        found = [one(point) for point in zip(*rows, strict=True) if point[-1] > -np.inf]
        return functools.reduce(_sum, found, jax.tree.map(xp.zeros_like, groups))

    reverse = np.array([False, True])
    if traced(plans, touch) and shapes[0] == shapes[1]:
        side = lambda of: at(shapes[0], *of)
        rows = _tables_of_both(tables), reverse, plans, touch.log_weight
        return jax.tree.map(lambda a: jnp.sum(a, axis=0), jax.lax.map(side, rows))
    sides = zip(shapes, tables, reverse, _rows(plans), touch.log_weight, strict=True)
    return functools.reduce(_sum, [at(*side) for side in sides])


def _sum(a: PyTree, b: PyTree) -> PyTree:
    return jax.tree.map(lambda x, y: x + y, a, b)


def _rows(tree: PyTree) -> list[PyTree]:
    return [jax.tree.map(lambda a: a[side], tree) for side in (0, 1)]  # noqa: B023


def _slope(
    groups: Groups,
    plan: Plan,
    place: tuple[Array, Array],
    reverse: Array,
    shape: Any,
    table: Tables | None,
) -> tuple[Array, Groups]:
    """log δ(ε) of one side and its derivative, by way of the masses of one step: what comes after
    them compiles once for all mechanisms.
    """
    law, count = dominating_law(groups, plan, _grid(shape, table), reverse), uses(groups)
    if traced(groups, plan, place):
        value, by_law = _by_law(law, count, plan, table, place, shape=shape)
        return value, _by_groups(groups, plan, table, reverse, by_law, shape=shape)
    # (what is known is worked out at once even within a trace of something else)
    with jax.ensure_compile_time_eval():
        value, by_law = _quick_by_law(law, count, plan, table, place, shape=shape)
        by_groups = _quick_by_groups(groups, plan, table, reverse, by_law, shape=shape)
        return jax.tree.map(np.asarray, (value, by_groups))


def _grid(shape: Any, table: Tables | None) -> Grid:
    return shape if table is None else Sparse(table, shape)


def _by_law(
    law: Law,
    count: Array,
    plan: Plan,
    table: Tables | None,
    place: tuple[Array, Array],
    *,
    shape: Any,
) -> tuple[Array, tuple[Law, Array]]:
    """log δ(ε), and its derivative in the masses of one step and in the numbers of uses."""
    return jax.value_and_grad(lambda of: log_delta(*of, plan, _grid(shape, table), *place))(
        (law, count)
    )


def _by_groups(
    groups: Groups,
    plan: Plan,
    table: Tables | None,
    reverse: Array,
    by_law: tuple[Law, Array],
    *,
    shape: Any,
) -> Groups:
    """What that is in the parameters."""

    def steps(groups: Groups):
        return dominating_law(groups, plan, _grid(shape, table), reverse), uses(groups)

    return jax.vjp(steps, groups)[1](by_law)[0]


_quick_by_law, _quick_by_groups = (
    Program(function, quickly=True, static_argnames=("shape",))
    for function in (_by_law, _by_groups)
)


def traced(*trees: PyTree) -> bool:
    """Whether something in these trees is traced by JAX."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def _known(*trees: PyTree) -> Any:
    """NumPy arrays where nothing is traced: those are worked on without a compiler."""
    return trees if traced(*trees) else jax.tree.map(np.asarray, trees)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def number(form: Form, groups: Groups, rates: Rates) -> Bracket:
    """One certified number of one setting; both sides have the derivative of the number.

    Method: docs/method/derivatives.md#lattice-derivatives
    """
    groups, rates = _known(groups, rates)
    form = _with_lattice(form, groups, rates)
    with np.errstate(all="ignore"):
        _, *halves = _halves(collapse_gaussians(groups), rates, form, bare=False)
        return jax.tree.map(jnp.asarray, _answer(groups, halves, rates, form)[0])


@number.defjvp
def _number_jvp(
    form: Form, primals: tuple[Groups, Rates], tangents: tuple[Groups, Rates]
) -> tuple[Bracket, Bracket]:
    groups, rates = _known(*primals)
    form = _with_lattice(form, groups, rates)
    with np.errstate(all="ignore"):
        moved_groups, moved = tangents
        collapsed = collapse_gaussians(groups)
        _, moved_groups = jax.jvp(collapse_gaussians, (groups,), (moved_groups,))
        plans, *halves = _halves(collapsed, rates, form, bare=True)
        found, touch = _answer(groups, halves, rates, form)
        assert touch is not None  # halves have a bare pair
        by_groups = _pull(collapsed, plans, touch, form)
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), by_groups, moved_groups)
    of_floor = reading(form.name).argument == "fpr_floor"
    moved_query = moved.log_floor if of_floor else moved.query
    change = sum(jax.tree.leaves(products)) + touch.slope * moved_query
    unseen = [xp.all(xp.isfinite(by)) for by in jax.tree.leaves(by_groups)]
    trusted = functools.reduce(lambda a, b: a & b, unseen, _trusted(form.name, found, collapsed))
    if traced(trusted):
        # (a product, as it has to be linear in what moves)
        change = change * jnp.where(trusted, 1.0, jnp.nan)
    elif not trusted:
        raise UntrustedLattice
    return jax.tree.map(jnp.asarray, found), Bracket(change, change)


def _trusted(name: str, found: Bracket, groups: Groups) -> Array | bool:
    """Whether the derivative of the law on this lattice is right: if there are many uses, and if
    the bracket on it is narrow, for a probability also beside what it lacks to 1.
    """
    most = reading(name).extent[1]
    size = xp.abs(found.upper)
    if most == 1.0:
        size = xp.minimum(size, 1.0 - found.upper)
    if most == 0.0:  # (a logarithm: its bracket is as wide as that of the rate is relative to it)
        size = xp.minimum(size, 1.0)
    narrow = found.upper - found.lower <= _NARROW * size
    number = sum(xp.sum(count) for _, count in groups)
    return narrow & (number >= _FEW)


def default(groups: Groups) -> LatticeChoice:
    """The lattice where none can be chosen: a dense one, on which atoms keep their places."""
    return WITH_ATOMS if any(mechanism.atomic for mechanism, _ in groups) else DEFAULT


def _with_lattice(form: Form, groups: Groups, rates: Rates) -> Form:
    """The form with a lattice: for the setting where its parameters are known, or default."""
    lattice = form.lattice
    if lattice is None and traced(groups, rates):
        lattice = default(groups)
    if lattice is None:
        flat = jax.tree.map(lambda leaf: np.asarray(leaf)[None], groups)
        lattice = settled(flat, form.rtol, np.exp(rates.log_floor), form.adjacency, deepest(rates))[
            0
        ]
    return form._replace(lattice=lattice)


def deepest(rates: Rates) -> Array | None:
    """The smallest rate to be resolved, or None."""
    return (
        None if np.all(np.asarray(rates.z_delta) <= NOTHING) else ndtr(-np.asarray(rates.z_delta))
    )


class _OfDerivatives(Question):
    """What lattices are to be chosen for, where it is more than a number: where a line touches the
    curve is known less well between few vertices than the curve is."""

    def share_of_mu(self, spread: Array) -> Array:
        """Never the fewest vertices."""
        return np.zeros(np.shape(spread))


@with_float64
def settled(
    groups: Groups,
    rtol: float,
    fpr_floor: Array | float,
    adjacency: Adjacency,
    deepest: Array | float | None,
) -> list[LatticeChoice]:
    """The lattice on which each setting of a flat batch was accurate, or nearest to it."""
    asked = ((registry.named("mu"), None),)
    question = _OfDerivatives(_FINER * rtol, fpr_floor, adjacency, asked, deepest)
    # (on a lattice even where a closed form or a limit would do: derivatives need one)
    runner = engine.Engine(groups, question, lambda _: None, engine.MAX_SIZE, by_name(None))
    return runner.answer().lattices
