"""Derivatives of compositions whose losses have atoms: zeros with the slopes of
``differences.slope``.

Such numbers have corners where an atom moves past a threshold, so that their derivatives are found
by differences of brackets on the host: at once where all is known, by a callback in a program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ..adjacency import Adjacency
from ..bracket import Bracket
from ..measure import measure
from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array
from ..quantities import registry
from ..quantities.base import Quantity
from ..quantities.quantities import reading
from .differences import LEAST_RTOL, Sides, UnprovenDerivative, slope, slope_of_uses
from .program import traced

_ROUGH = 1e-3
_NEAR = 1e-8  # relative, of a parameter
_STEPS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, _NEAR)


class Place(NamedTuple):
    """Something that a number depends on.

    Attributes:
        part: position of the mechanism in the composition; None for the argument of the quantity.
        field: name of its field; None for its number of uses.
    """

    part: int | None
    field: str | None


class Setting:
    """What is known of a number before its parameters are; equal to itself alone.

    Args:
        name: of the quantity.
        adjacency: as in :func:`jaxgdp.measure`.
        composition: the mechanisms, for their classes.
        shape: of the number.
    """

    def __init__(self, name: str, adjacency: str, composition: Composition, shape: tuple[int, ...]):
        self.name, self.adjacency, self.shape = name, adjacency, shape
        self.kinds = tuple(type(part) for part in composition.mechanisms)
        self.places: list[Place] = []
        self.trailing: list[int] = []
        for i, part in enumerate(composition.mechanisms):
            for field in type(part).given_fields():
                self.places.append(Place(i, field))
                self.trailing.append(part.trailing.get(field, 0))
            self.places.append(Place(i, None))
            self.trailing.append(0)
        self.places.append(Place(None, None))
        self.trailing.append(0)

    def leaves(self, composition: Composition, argument: Any) -> list[Array]:
        """The parameters in the order of ``places``, each of the shape of the number."""
        found = []
        for place, trailing in zip(self.places, self.trailing, strict=True):
            if place.part is None:
                value = argument
            elif place.field is None:
                value = composition.counts[place.part]
            else:
                value = getattr(composition.mechanisms[place.part], place.field)
            value = jnp.asarray(value, float)
            kept = value.shape[value.ndim - trailing :]
            outer = value.shape[: value.ndim - trailing]
            value = value.reshape((1,) * (len(self.shape) - len(outer)) + value.shape)
            found.append(jnp.broadcast_to(value, self.shape + kept))
        return found


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def zeros(setting: Setting, *leaves: Array) -> Array:
    """Zeros of the shape of the number, which have its derivatives.

    Raises:
        UnprovenDerivative: a derivative is taken that does not exist or is not proven; names the
            quantity, the mechanism and the parameter.
    """
    return jnp.zeros(setting.shape)


@functools.partial(zeros.defjvp, symbolic_zeros=True)
def _zeros_jvp(
    setting: Setting, primals: tuple[Array, ...], tangents: tuple[Any, ...]
) -> tuple[Array, Array]:
    moved = tuple(i for i, t in enumerate(tangents) if not isinstance(t, SymbolicZero))
    run = functools.partial(_slopes, setting, moved)
    if traced(primals):
        slopes = _called_back(run, (len(moved), *setting.shape), primals)
    else:
        with jax.ensure_compile_time_eval():
            slopes = jnp.asarray(run(*primals))
    change = jnp.zeros(setting.shape)
    for by, i in zip(slopes, moved, strict=True):
        change = change + by * tangents[i]
    return jnp.zeros(setting.shape), change


def _called_back(
    run: Callable[..., Array], shape: tuple[int, ...], primals: tuple[Array, ...]
) -> Array:
    """The slopes as a part of a program: computed on the host while it runs.

    Numbers cross as pairs of 32 bits: what runs a callback rounds those of 64 bits."""

    def on_host(*pairs: Array) -> Array:
        found = run(*(np.ascontiguousarray(pair).view(np.float64)[..., 0] for pair in pairs))
        return np.ascontiguousarray(found)[..., None].view(np.uint32)

    halves = jax.ShapeDtypeStruct((*shape, 2), np.uint32)
    pairs = (jax.lax.bitcast_convert_type(jnp.asarray(p, float), jnp.uint32) for p in primals)
    found = jax.pure_callback(on_host, halves, *pairs, vmap_method="sequential")
    return jax.lax.bitcast_convert_type(found, jnp.float64)


def _slopes(setting: Setting, moved: tuple[int, ...], *leaves: Array) -> Array:
    """Slopes of the number in the leaves named, each of the shape of the number (on the host)."""
    size = int(np.prod(setting.shape))
    rows = [
        np.asarray(leaf, float).reshape((size, *np.shape(leaf)[len(setting.shape) :]))
        for leaf in leaves
    ]
    found = np.zeros((len(moved), size))
    for row in range(size):
        one = _Row(setting, [leaf[row] for leaf in rows])
        for number, leaf in enumerate(moved):
            found[number, row] = one.slope(leaf)
    return found.reshape((len(moved), *setting.shape))


class _Row:
    """One setting, with all its parameters known."""

    def __init__(self, setting: Setting, values: list[Array]):
        self.setting, self.values = setting, values
        self.read = _precisely(setting.name, lambda name: self._brackets(name, -1, [values[-1]]))

    def slope(self, leaf: int) -> float:
        """Derivative in one of the parameters."""
        place, at = self.setting.places[leaf], float(self.values[leaf])
        ask = lambda points, rtol: self.read(lambda name: self._brackets(name, leaf, points, rtol))
        try:
            if place.part is not None and place.field is None:
                return slope_of_uses(ask, at)
            return slope(ask, at, self._sides(leaf, at), self._finest())
        except UnprovenDerivative as reason:
            raise UnprovenDerivative(self._refusal(place, at, str(reason))) from None

    def _finest(self) -> float:
        """The smallest accuracy to ask for: less would take minutes where it is an absolute one."""
        return 1e-6 if reading(self.setting.name).absolute is not None else LEAST_RTOL

    def _brackets(self, name: str, leaf: int, points: Any, rtol: float = _ROUGH) -> Bracket:
        """Brackets of a quantity where one of the parameters has these values."""
        values = [*self.values]
        values[leaf] = np.asarray(points)
        asked = reading(name)
        given: dict[str, Any] = {} if asked.argument is None else {asked.argument: values[-1]}
        other = _own(self.setting.name).complement
        if other is not None and name == other.name and other.given:
            given = dict(other.given)
        composition = self._composition(values)
        found = measure(
            composition, name, adjacency=self.setting.adjacency, rtol=rtol, nested=False,
            executor="eager", **given,
        )  # fmt: skip
        bracket = found[name]
        return Bracket(*(np.broadcast_to(side, np.shape(points)) for side in bracket))

    def _composition(self, values: list[Array]) -> Composition:
        parts: list[Mechanism] = []
        counts = []
        for i, kind in enumerate(self.setting.kinds):
            fields = {
                place.field: values[k]
                for k, place in enumerate(self.setting.places)
                if place.part == i and place.field is not None
            }
            parts.append(kind(**fields))
            counts.append(values[self.setting.places.index(Place(i, None))])
        return Composition(tuple(parts), tuple(counts))

    def _sides(self, leaf: int, at: float) -> Sides:
        """Sides on which the parameter may move, and how far."""
        below, above = (self._is_valid(leaf, at, side * _NEAR) for side in (-1.0, 1.0))
        ends = [side for side, some in ((-1.0, below), (1.0, above)) if some]
        steps = [
            step for step in _STEPS if all(self._is_valid(leaf, at, side * step) for side in ends)
        ]
        return Sides(below, above, max(steps))

    def _is_valid(self, leaf: int, at: float, part: float) -> bool:
        if at == 0.0 and part < 0.0:
            return False
        values, place = [*self.values], self.setting.places[leaf]
        moved = at + part * (abs(at) or 1.0)
        values[leaf] = np.asarray(moved)
        try:
            if place.part is None:
                reading(self.setting.name).checked(moved)
            else:
                self._composition(values)
        except ValueError:
            return False
        return True

    def _refusal(self, place: Place, at: float, reason: str) -> str:
        name = self.setting.name
        if place.part is None:
            where = f"its argument, {reading(name).argument} = {at:g}"
        else:
            kind = self.setting.kinds[place.part].__name__
            field = "its number of uses" if place.field is None else place.field
            where = f"{field} of {kind}, at {at:g}"
        return (
            f"jaxgdp.differentiable refuses the derivative of {name!r} in {where}: {reason}. Take"
            " differences of jaxgdp.measure as far apart as matters to you, or move the parameter"
        )


_Brackets = Callable[[str], Bracket]


def _own(name: str) -> Quantity:
    """The quantity itself, or that whose log has this name."""
    return registry.named(name.removeprefix("log_"))


def _precisely(name: str, measured: _Brackets) -> Callable[[_Brackets], Bracket]:
    """How a number, or what differs from it by a constant, is read off most precisely.

    Above one half, TPR is one less β and the advantage one less twice the Bayes risk at equal
    priors: there these have the digits that count.
    """
    record = _own(name)
    of, other, log = record.name, record.complement, record.name != name
    if other is None or not np.all(np.asarray(measured(of).upper) > 0.5):
        return lambda ask: _log(ask(of)) if log else ask(of)

    def rest(ask: _Brackets) -> Bracket:
        found = ask(other.name)
        sides = (np.asarray(found.upper), np.asarray(found.lower))
        if log:
            with np.errstate(divide="ignore"):
                return Bracket(*(np.log1p(-side) for side in sides))
        return Bracket(*(-other.factor * side for side in sides))

    return rest


def _log(found: Bracket) -> Bracket:
    with np.errstate(divide="ignore"):
        return Bracket(*(np.log(np.asarray(side)) for side in found))


def has_atoms(paired: Composition) -> bool:
    """Whether the loss of some part of a composition has atoms."""
    return any(part.canonical().atomic for part in paired.mechanisms)


def with_slopes(
    found: Bracket, asked: Quantity, adjacency: str, composition: Composition, argument: Any
) -> Bracket:
    """A bracket, both of whose sides have the derivatives of the number itself.

    Method: docs/method/derivatives.md#differences
    """
    setting = Setting(asked.name, Adjacency.checked(adjacency), composition, found.upper.shape)
    zero = zeros(setting, *setting.leaves(composition, argument))
    return Bracket(found.lower + zero, found.upper + zero)
