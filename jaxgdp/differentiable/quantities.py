"""The public functions: one for each quantity, and their arguments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import options
from ..accounting.steer.lattices import LatticeChoice
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..deprecation import renamed_arguments
from ..mechanisms import Composition, as_composition
from ..mechanisms.base import Mechanism
from ..numerics import namespace as xp
from ..numerics.normal import ndtri_exp
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, closed_unit, floor_rate, open_unit, relative_width
from ..quantities.base import Quantity
from ..quantities.quantities import reading
from ..tradeoff import dominating
from .atomic import has_atoms, with_slopes
from .declared import declared
from .gaussian import is_closed, with_partials
from .program import (
    NOTHING,
    Form,
    Rates,
    UntrustedLattice,
    default,
    number,
    refuse_unknown_tangency,
    settled,
)
from .program import deepest as smallest


def need_64_bits(name: str) -> None:
    """Raise where JAX computes in 32 bits."""
    if jnp.result_type(float) != jnp.float64:
        raise RuntimeError(
            f"jaxgdp.differentiable.{name} computes in 64 bits: call it within `with"
            " jax.enable_x64(True):`, or use jaxgdp.measure or jaxgdp.calibrate, which need no"
            " such setting (and have no gradients)"
        )


def quantity(
    name: str,
    mechanism: Composition | Mechanism,
    argument: ArrayLike | None = None,
    *,
    fpr_floor: ArrayLike | None = None,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """Any quantity of the registry that defines how its derivative acts on the curve, by name.

    Args:
        name: as for :func:`jaxgdp.measure`; or "log_tpr" or "log_beta".
        mechanism: a mechanism or composition whose fields and counts may be traced; a count may be
            any real number.
        argument: the argument of the quantity; its default where not given.
        fpr_floor: FPR out to which the curve is computed; as far as the quantity needs it where not
            given.
        adjacency: as in :func:`jaxgdp.measure`.
        rtol: accuracy for which windows are laid out and, where nothing is traced by ``jit`` or
            ``vmap``, the lattice chosen.
        lattice: from :func:`lattice`; see there what happens without one.

    Returns:
        Bracket, both of whose sides have the derivative of the quantity itself.

    Raises:
        RuntimeError: JAX computes in 32 bits.
        ValueError: the quantity is unknown, or a number that is not traced is out of range.
        NotImplementedError: the quantity does not define how its derivative acts on the curve, or a
            mechanism does not declare derivatives in what is traced; names it.
        UnprovenDerivative: a derivative is taken that does not exist or that brackets do not prove;
            names what it is of.

    Example:
        >>> import jax, jaxgdp
        >>> with jax.enable_x64(True):
        ...     found = quantity("epsilon", jaxgdp.Gaussian(1.0), 1e-5)
        >>> exact = float(jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0))
        >>> float(found.lower) <= exact <= float(found.upper)
        True
    """
    refuse_unknown_tangency(name)
    asked = reading(name)
    argument = asked.default if argument is None else argument
    return _ask(asked, mechanism, asked.checked(argument), fpr_floor, adjacency, rtol, lattice)


def _ask(
    asked: Quantity,
    mechanism: Composition | Mechanism,
    argument: Any,
    fpr_floor: ArrayLike | None,
    adjacency: str,
    rtol: float,
    lattice: LatticeChoice | None,
) -> Bracket:
    """A quantity at an argument that is checked."""
    need_64_bits(asked.name)
    mechanism = as_composition(mechanism)
    mechanism = declared(mechanism, Adjacency.checked(adjacency))
    paired = dominating(mechanism, adjacency)[0]
    rest = fpr_floor, adjacency, rtol, lattice
    closed = is_closed(asked, paired)
    if not closed and not has_atoms(paired):
        try:
            return _traced(asked, mechanism, argument, *rest)
        except UntrustedLattice:
            pass  # (all is known: differences find it, or refuse it)
    fixed = jax.tree.map(xp.stop_gradient, (mechanism, argument))
    found = _traced(asked, *fixed, *rest)
    at = 0.0 if argument is None else argument
    if closed:
        return with_partials(found, asked, paired, at)
    return with_slopes(found, asked, adjacency, mechanism, at)


def _traced(
    asked: Quantity,
    mechanism: Composition,
    argument: Any,
    fpr_floor: ArrayLike | None,
    adjacency: str,
    rtol: float,
    lattice: LatticeChoice | None,
) -> Bracket:
    """A bracket as a part of a program, with the derivatives of the law on its lattice."""
    paired, order = dominating(mechanism, adjacency)
    groups = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), paired.stacked())
    floor, deepest = asked.traced_reach(argument)
    if fpr_floor is not None:
        floor = floor_rate("fpr_floor", fpr_floor)
    # (by NumPy what is known: nothing is compiled for it)
    query, floor, depth = (
        jnp.asarray(a, float) if isinstance(a, Tracer) else np.asarray(a, float)
        for a in (
            0.0 if asked.own_argument is None else argument,
            floor,
            0.5 if deepest is None else deepest,
        )
    )
    shape, axes = (
        broadcast(mechanism=np.empty(mechanism.shape), query=query, fpr_floor=floor),
        len(mechanism.shape),
    )
    log_floor = xp.log(floor)
    depth = np.asarray(NOTHING) if deepest is None else -ndtri_exp(xp.log(depth))
    query = query if asked.own_argument is None else asked.query(query)
    rates = Rates(query, log_floor, -ndtri_exp(log_floor), depth)
    form = Form(asked.name, order, lattice, float(relative_width("rtol", rtol)))
    if shape == ():
        return number(form, groups, rates)

    def spread(leaf: Array, own: int = 0) -> Array:
        inner = leaf.shape[leaf.ndim - own :] if own else ()
        outer = leaf.shape[: leaf.ndim - own]
        leaf = leaf.reshape((1,) * (len(shape) - len(outer)) + leaf.shape)
        return jnp.broadcast_to(leaf, shape + inner).reshape((-1,) + inner)

    groups = jax.tree.map(lambda leaf: spread(leaf, leaf.ndim - axes), groups)
    rates = jax.tree.map(spread, rates)
    if form.lattice is None:
        form = form._replace(lattice=_common(groups, rates, form))
    found = jax.vmap(lambda g, r: number(form, g, r))(groups, rates)
    return Bracket(*(side.reshape(shape) for side in found))


def _common(groups: Any, rates: Rates, form: Form) -> LatticeChoice:
    """One lattice for a batch: the finest that a setting needs, or the default if not known."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((groups, rates))):
        return default(groups)
    flat = jax.tree.map(np.asarray, groups)
    return _finest(
        settled(
            flat, form.rtol, np.exp(np.asarray(rates.log_floor)), form.adjacency, smallest(rates)
        )
    )


def _finest(lattices: list[LatticeChoice]) -> LatticeChoice:
    """One that serves settings of all these: most vertices, widest reach and pieces.

    A dense lattice serves settings of few steps and of many; a sparse one only many.
    """
    dense = [lattice for lattice in lattices if lattice.kind != "sparse"]
    pieces = max(lattice.pieces for lattice in lattices)
    if dense:
        kind = "whole" if any(lattice.kind == "whole" for lattice in dense) else "heavy"
        largest = max(dense, key=lambda lattice: lattice.size)
        return largest._replace(kind=kind, pieces=pieces)
    largest = max(
        lattices, key=lambda lattice: (lattice.frequencies, lattice.vertices, lattice.size)
    )
    ends = {
        end: max(getattr(lattice, end) for lattice in lattices) for end in ("short", "long", "base")
    }
    return largest._replace(pieces=pieces, **ends)


def lattice(
    mechanism: Composition | Mechanism,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    deepest: float | None = None,
    adjacency: str = options.ADJACENCY,
) -> LatticeChoice:
    """The lattice to trace with: chosen on the host from representative settings, then fixed.

    A traced program cannot choose its own shapes. Brackets hold on any lattice; on a poor one they
    are wide. Without one, the functions of this module choose where the parameters are known
    numbers and else fall back on one that serves DP-SGD of 100 steps or more with noise multipliers
    above about 0.6, or a dense one if losses have atoms.

    Args:
        mechanism: settings like those that will be requested, scalar or batched.
        rtol: requested relative width of the μ bracket.
        fpr_floor: FPR floor of μ.
        deepest: smallest FPR, TPR or δ to be requested, or None.
        adjacency: as in :func:`jaxgdp.measure`.

    Returns:
        A hashable description, to be passed as ``lattice``.

    Raises:
        ValueError: an argument is out of range.
    """
    mechanism = as_composition(mechanism)
    paired, order = dominating(mechanism, adjacency)
    axes = len(mechanism.shape)
    flat = jax.tree.map(
        lambda a: np.asarray(a).reshape((-1,) + np.shape(a)[axes:]), paired.stacked()
    )
    floor = float(floor_rate("fpr_floor", fpr_floor))
    deepest = None if deepest is None else float(open_unit("deepest", deepest))
    return _finest(settled(flat, float(relative_width("rtol", rtol)), floor, order, deepest))


def mu(
    mechanism: Composition | Mechanism,
    fpr_floor: ArrayLike = options.FPR_FLOOR,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """μ*(floor), traced and differentiable; see :meth:`jaxgdp.TradeoffCurve.mu`.

    By the envelope theorem ∂μ* = ∂δ(ε*)/φ(Φ⁻¹(TPR)) at the point of the curve where μ is largest.
    Both sides of the bracket carry that derivative, whose relative accuracy is about the bracket's
    width.

    Args:
        mechanism: a mechanism or composition whose fields and counts may be traced; a count may be
            any real number.
        fpr_floor: in [1e-300, 0.5).
        adjacency: as in :func:`jaxgdp.measure`.
        rtol: accuracy for which windows are laid out and, where nothing is traced by ``jit`` or
            ``vmap``, the lattice chosen.
        lattice: from :func:`lattice`; see there what happens without one.

    Returns:
        Bracket; report the upper side.

    Raises:
        RuntimeError: JAX computes in 32 bits.
        ValueError: a number that is not traced is out of range.
        NotImplementedError: a mechanism does not declare derivatives in what is traced; names it.

    Example:
        >>> import jax, jaxgdp
        >>> with jax.enable_x64(True):
        ...     slope = jax.grad(lambda s: mu(jaxgdp.dpsgd(s, 1.0, 100)).upper)(5.0)
        >>> bool(abs(float(slope) + 10 / 5.0**2) < 1e-2)
        True
    """
    return quantity("mu", mechanism, fpr_floor, adjacency=adjacency, rtol=rtol, lattice=lattice)


def regret(
    mechanism: Composition | Mechanism,
    fpr_floor: ArrayLike = options.FPR_FLOOR,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """Δ of reporting μ*(floor), traced and differentiable; arguments as in :func:`mu`.

    ∂Δ = (φ(ε*/μ − μ/2)·∂μ* − ∂δ(ε*))/(1 + e^{ε*}) at the slope where the gap is widest. Report the
    upper side.
    """
    return quantity("regret", mechanism, fpr_floor, adjacency=adjacency, rtol=rtol, lattice=lattice)


@renamed_arguments(d="approximation")
def approximate_mu(
    mechanism: Composition | Mechanism,
    approximation: ArrayLike = options.APPROXIMATION,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """d-approximate μ, traced and differentiable; ``approximation`` is d in (0, 1), other arguments
    as in :func:`mu`. Report the upper side.
    """
    return quantity(
        "approximate_mu", mechanism, approximation, adjacency=adjacency, rtol=rtol, lattice=lattice
    )


def advantage(
    mechanism: Composition | Mechanism,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """η = δ(0), traced and differentiable; arguments as in :func:`mu`. Report the upper side."""
    return quantity("advantage", mechanism, adjacency=adjacency, rtol=rtol, lattice=lattice)


def epsilon(
    mechanism: Composition | Mechanism,
    delta: ArrayLike,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """ε(δ) in nats, differentiable; δ in (0, 1), others as in :func:`mu`. Report the upper side.

    ∂ε = ∂δ(ε)/(e^ε·α) at fixed δ, with α the FPR of the threshold ε (implicit function theorem).
    """
    return quantity("epsilon", mechanism, delta, adjacency=adjacency, rtol=rtol, lattice=lattice)


def delta(
    mechanism: Composition | Mechanism,
    epsilon: ArrayLike,
    *,
    fpr_floor: ArrayLike = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """δ(ε), differentiable; ε ≥ 0 in nats, others as in :func:`mu`. Report the upper side.

    ``fpr_floor`` sets how far out the curve is computed: beyond it δ(ε) is bounded by its value
    there.
    """
    return quantity(
        "delta",
        mechanism,
        epsilon,
        fpr_floor=fpr_floor,
        adjacency=adjacency,
        rtol=rtol,
        lattice=lattice,
    )


def tpr(
    mechanism: Composition | Mechanism,
    fpr: ArrayLike,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """Largest TPR at an FPR in (0, 1), traced and differentiable; other arguments as in :func:`mu`.
    Report the upper side.
    """
    return quantity("tpr", mechanism, fpr, adjacency=adjacency, rtol=rtol, lattice=lattice)


@renamed_arguments(alpha="fpr")
def beta(
    mechanism: Composition | Mechanism,
    fpr: ArrayLike,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """f(α), least FNR at an FPR in (0, 1), differentiable; as in :func:`mu`. Report the lower."""
    return quantity("beta", mechanism, fpr, adjacency=adjacency, rtol=rtol, lattice=lattice)


def log_tpr(
    mechanism: Composition | Mechanism,
    fpr: ArrayLike,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """log TPR at an FPR, differentiable; arguments as in :func:`tpr`. Report the upper side."""
    return quantity("log_tpr", mechanism, fpr, adjacency=adjacency, rtol=rtol, lattice=lattice)


@renamed_arguments(alpha="fpr")
def log_beta(
    mechanism: Composition | Mechanism,
    fpr: ArrayLike,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """log f(α), traced and differentiable; arguments as in :func:`beta`. Report the lower side."""
    return quantity("log_beta", mechanism, fpr, adjacency=adjacency, rtol=rtol, lattice=lattice)


def bayes_risk(
    mechanism: Composition | Mechanism,
    prior: ArrayLike = options.PRIOR,
    *,
    adjacency: str = options.ADJACENCY,
    rtol: float = options.RTOL,
    lattice: LatticeChoice | None = None,
) -> Bracket:
    """Least error probability of an attacker, traced and differentiable; ``prior`` in [0, 1] is the
    probability that the asked is absent, other arguments as in :func:`mu`. Report the lower side.
    """
    return _ask(
        reading("bayes_risk"),
        mechanism,
        closed_unit("prior", prior),
        None,
        adjacency,
        rtol,
        lattice,
    )
