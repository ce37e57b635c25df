"""The result of :func:`jaxgdp.measure`: brackets by the name of their quantity."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..bracket import STATUS, Bracket
from ..numerics.shapes import Array, ArrayLike
from ..numerics.showing import cells, html_table, short, sides
from ..quantities import registry
from ..vocabulary import did_you_mean

QUANTITIES = registry.REGISTRY.keys()  # a view: whatever is registered


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["brackets", "at", "status", "lattice_size", "rtol", "fpr_floor", "executor"],
    meta_fields=[],
)
@dataclass(frozen=True, repr=False, eq=False)
class Measured(Mapping[str, Bracket]):
    """The result of :func:`jaxgdp.measure`; ``found["epsilon"]``, ``found.epsilon`` are brackets.

    Arrays have the common shape of the mechanism and of the arguments; numbers of a single
    setting are plain floats. It is a mapping from the names of quantities to their brackets.

    Attributes:
        brackets: quantity → :class:`Bracket`; report the upper side, of "beta" and "bayes_risk" the
            lower one.
        at: quantity → the δ, ε, FPR, prior or approximation at which it was computed; only those
            that have one.
        status: quantity → codes of ``jaxgdp.bracket.STATUS``: 0 where ``rtol`` was reached, 1 where
            not; 2 where the two sides contradicted each other, so that the bracket is all that the
            quantity can be. Brackets hold in any case.
        lattice_size: lattice points used.
        rtol: as requested.
        fpr_floor: as requested.
        executor: name of the executor that composed the curve of each setting's bracket: "eager",
            "compiled", "product" or "float32"; "none" where a law from tables needed no lattice.

    Raises:
        KeyError: (by ``found[name]``) a quantity was not computed; names those that were.
        AttributeError: (by ``found.name``) the same.

    Example:
        >>> import jaxgdp
        >>> found = jaxgdp.measure(jaxgdp.Gaussian(2.0), ("mu", "epsilon"), delta=1e-6)
        >>> found["mu"] == found.mu, round(found.mu.upper, 6), "delta" in found
        (True, 0.5, False)
    """

    brackets: dict[str, Bracket]
    at: dict[str, Any]
    status: Mapping[str, Any]
    lattice_size: Array
    rtol: float
    fpr_floor: ArrayLike
    executor: Array

    def __getitem__(self, name: str) -> Bracket:
        if name not in self.brackets:
            raise KeyError(self._not_asked(name))
        return self.brackets[name]

    def __getattr__(self, name: str) -> Bracket:
        # (only names without an attribute of their own come here)
        brackets = self.__dict__.get("brackets", {})
        if name not in brackets:
            shown = repr(type(self).__name__) + f" object has no attribute {name!r}"
            raise AttributeError(
                shown if name.startswith("_") else f"{shown}: {self._not_asked(name)}"
            )
        return brackets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.brackets)

    def __len__(self) -> int:
        return len(self.brackets)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.brackets})

    def _not_asked(self, name: object) -> str:
        asked = tuple(self.__dict__.get("brackets", {}))
        if name in registry.REGISTRY:
            return (
                f"{name} was not asked for, only {', '.join(asked)}: write"
                f" measure(…, quantities={(*asked, name)!r})"
            )
        others = [field.name for field in dataclasses.fields(self)]
        return f"asked for were {', '.join(asked)}{did_you_mean(str(name), (*asked, *others))}"

    def __repr__(self) -> str:
        head = (
            f"Measured(shape {np.shape(self.worst)}, rtol={self.rtol:g},"
            f" fpr_floor={short(self.fpr_floor)}"
        )
        lines = (
            f",\n  {self._title(name)}: {sides(bracket)}, {self._worst_status(name)}"
            for name, bracket in self.brackets.items()
        )
        return head + "".join(lines) + ")"

    def _title(self, name: str) -> str:
        if name not in self.at:
            return name
        return f"{name} at {registry.named(name).own_argument} = {short(self.at[name])}"

    def _worst_status(self, name: str) -> str:
        return STATUS[int(np.max(self.status[name]))] if np.size(self.status[name]) else STATUS[0]

    def _repr_html_(self) -> str:
        shape = np.shape(self.worst)
        rows = [
            self._row(name, index, shape) for index in np.ndindex(*shape) for name in self.brackets
        ]
        header = ["quantity", "at", "lower", "upper", "report", "status"]
        header = ["setting", *header] if shape else header
        return html_table(f"rtol {self.rtol:g}, FPR floor {short(self.fpr_floor)}", header, rows)

    def _row(self, name: str, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
        one = lambda array: np.broadcast_to(array, shape)[index]
        low, high = (one(side) for side in self.brackets[name])
        at = f"{one(self.at[name]):g}" if name in self.at else ""
        status = STATUS[int(one(self.status[name]))]
        row = (name, at, *cells(low, high), registry.named(name).safe_side, status)
        return (index, *row) if shape else row

    @property
    def worst(self) -> Array:
        """The largest code of all quantities, by setting."""
        return functools.reduce(np.maximum, self.status.values(), np.zeros_like(self.lattice_size))
