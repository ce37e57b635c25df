"""The base of every target: an accepted risk, as a frozen dataclass of scalars or arrays.

Every target names a quantity of :func:`jaxgdp.measure`, which side of its bracket is safe, and the
μ of the Gaussian curve that just meets it: nearly linear in the noise on logarithmic axes, so that
a solver needs few evaluations. μ only steers; whether a target is met is decided by the quantity
itself."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, cast

import numpy as np

from .. import options
from ..bracket import Bracket
from ..numerics.shapes import Array
from ..numerics.showing import short
from ..numerics.validation import broadcast, open_unit

DEEPEST = options.DEEPEST
HIGHEST_FLOOR = 0.45


def first(condition: Array, *arrays: Array) -> tuple[Any, ...]:
    """The elements at the first place where the condition holds."""
    where, *rest = np.broadcast_arrays(condition, *arrays)
    return tuple(array[where].flat[0] for array in rest)


REGISTRY: dict[str, type[Target]] = {}  # name of the goal on the command line → target


class Target:
    """The base class of targets; one that names its ``option`` is one of ``jaxgdp calibrate``.

    Attributes:
        quantity: name of the quantity of ``measure`` that decides.
        safe: "upper" if the quantity must not exceed the goal, "lower" if it must not fall below.
        goal_field: the field that holds the goal; the other fields are options of their own names.
        option: name of the goal on the command line: "approximate_mu" is ``--approximate-mu``.
        meaning: of the goal, a phrase.
    """

    quantity: ClassVar[str]
    safe: ClassVar[str] = "upper"
    goal_field: ClassVar[str]
    option: ClassVar[str] = ""
    meaning: ClassVar[str] = ""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.option:
            REGISTRY[cls.option] = cls

    @classmethod
    def others(cls) -> tuple[dataclasses.Field[Any], ...]:
        """The fields beside the goal."""
        fields = dataclasses.fields(cast(Any, cls))
        return tuple(field for field in fields if field.name != cls.goal_field)

    def __post_init__(self):
        values = {name: getattr(self, name) for name in self.numbers()}
        for name, value in values.items():
            values[name] = self._checked(name, value)
        broadcast(**values)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._feasible()

    def numbers(self) -> tuple[str, ...]:
        """Names of the fields that hold numbers, scalars or arrays."""
        return tuple(f.name for f in dataclasses.fields(cast(Any, self)))

    def _checked(self, name: str, value: Any) -> Any:
        return open_unit(name, value)

    def _feasible(self) -> None:
        """Raise where no noise, or any noise, meets the target whatever the mechanism."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of the fields."""
        return np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self.numbers()))

    @property
    def goal(self):
        """The accepted value of :meth:`read`."""
        return getattr(self, self.goal_field)

    def flat(self, shape: tuple[int, ...]) -> Target:
        """The same with one-dimensional fields, broadcast to a shape."""
        return self._unchecked(
            {
                name: np.broadcast_to(getattr(self, name), shape).reshape(-1)
                for name in self.numbers()
            }
        )

    def take(self, rows: Array) -> Target:
        """Some elements of a flat target."""
        return self._unchecked({name: getattr(self, name)[rows] for name in self.numbers()})

    def _unchecked(self, fields: dict[str, Any]) -> Target:
        new = object.__new__(type(self))
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(cast(Any, self))}
        for name, value in (kept | fields).items():
            object.__setattr__(new, name, value)
        return new

    def parameters(self) -> dict[str, Any]:
        """The arguments of ``measure`` beside the name of the quantity."""
        return {}

    def read(self, bracket: Bracket) -> Bracket:
        """The target's own quantity from that of ``measure``."""
        return bracket

    def meets(self, own: Bracket) -> Array:
        """Whether the safe side of :meth:`read` meets the goal."""
        return own.upper <= self.goal if self.safe == "upper" else own.lower >= self.goal

    def violates(self, own: Bracket) -> Array:
        """Whether the other side already breaks the goal: no accountant could certify it."""
        return own.lower > self.goal if self.safe == "upper" else own.upper < self.goal

    def equivalent_mu(self, value: Array) -> Array:
        """μ of the Gaussian curve whose quantity has this value; ∞ or 0 where there is none."""
        raise NotImplementedError

    def of_gaussian(self, mu: Array) -> Array:
        """The target's own quantity of the Gaussian curve f_μ."""
        raise NotImplementedError

    @property
    def has_closed_form(self) -> bool:
        """Whether :meth:`of_gaussian` is exact; else it only guides a search."""
        return True

    def gaussian_mu(self) -> Array:
        """The largest μ whose Gaussian curve meets the target."""
        return self.equivalent_mu(self.goal)

    def place(self, mu: Array) -> Array:
        """FPR of the point of f_μ that decides, on the half of the curve with FPR ≤ FNR."""
        raise NotImplementedError

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        """The quantity of a run that reveals, with probability ``detected``, the record."""
        raise NotImplementedError

    def describe(self) -> str:
        """The target in words; of several, with the range of each number."""
        parts = [f"{name} {short(np.squeeze(getattr(self, name)))}" for name in self.numbers()]
        return f"{type(self).__name__}({', '.join(parts)})"
