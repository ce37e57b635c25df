"""The result of a calibration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..bracket import Bracket
from ..deprecation import warn
from ..numerics.provenance import provenance
from ..numerics.shapes import Array, ArrayLike
from ..numerics.showing import cells, html_table, short, sides
from ..targets import Advantage, Target
from .cost import FPRS, AdvantageCost, advantage_cost
from .status import EVERY, NONE, STATUS


@dataclass(frozen=True)
class Calibration:
    """A batch of calibrations; arrays have the broadcast shape of target and parameters.

    Attributes:
        value: the safe parameter: the smallest noise multiplier or scale, or the largest number of
            steps or sampling rate, found to meet the target.
        achieved: bracket of the target's quantity at ``value``; its safe side meets the target.
        rejected: a value at most one step of ``rtol`` towards less privacy.
        rejected_achieved: bracket there; its safe side does not meet the target.
        status: 0 where all of this holds, else a code of ``jaxgdp.calibration.STATUS``. If every
            parameter meets the target, there is no ``rejected`` (NaN); if none does, no ``value``
            (NaN).
        iterations: rounds of the search; 0 for a closed form.
        evaluations: number of calls of the accountant for this element.
        rtol: the relative step requested.
        target: the target.
        solve_for: name of the parameter.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        closed_form: where a closed form of the Gaussian mechanism gave the answer.
    """

    value: Array
    achieved: Bracket
    rejected: Array
    rejected_achieved: Bracket
    status: Array
    iterations: Array
    evaluations: Array
    rtol: float
    target: Target
    solve_for: str
    adjacency: str
    closed_form: Array
    _measure_tpr: Callable | None = field(default=None, repr=False, compare=False)

    @cached_property
    def cost(self) -> AdvantageCost | None:
        """For an advantage: what this target may cost at small FPRs (Kulynych 2024); else None.

        Computed when first requested. NaN where there is no value, or where the advantage is not
        above δ* = 1e-5."""
        if not isinstance(self.target, Advantage) or self._measure_tpr is None:
            return None
        shape = np.shape(self.value)
        return advantage_cost(
            np.broadcast_to(self.target.advantage, shape), self._measure_tpr(FPRS)
        )

    def to_dict(self) -> dict:
        """Everything as plain numbers and lists; None where there is no number."""
        target = {
            f.name: _plain(getattr(self.target, f.name))
            for f in dataclasses.fields(cast(Any, self.target))
        }
        sides = lambda bracket: {"lower": _plain(bracket.lower), "upper": _plain(bracket.upper)}
        floor = getattr(self.target, "fpr_floor", None)
        found = {
            **provenance(
                f"{self.solve_for} that meets {self.target.describe()}",
                None if floor is None else _plain(floor),
            ),
            "target": {"type": type(self.target).__name__} | target,
            "solve_for": self.solve_for,
            "adjacency": self.adjacency,
            "rtol": self.rtol,
            "value": _plain(self.value),
            "achieved": sides(self.achieved),
            "rejected": _plain(self.rejected),
            "rejected_achieved": sides(self.rejected_achieved),
            "proved_tight": self.proved_tight.tolist(),
            "status": self.status.tolist(),
            "meaning": {str(code): STATUS[code] for code in np.unique(self.status).tolist()},
            "iterations": self.iterations.tolist(),
            "evaluations": self.evaluations.tolist(),
            "closed_form": self.closed_form.tolist(),
        }
        if (cost := self.cost) is not None:
            found["cost"] = {
                "fpr": _plain(cost.fpr),
                "delta": cost.delta,
                "standard_epsilon": _plain(cost.standard_epsilon),
                "worst_case": _plain(cost.worst_case),
                "tpr": sides(cost.tpr),
                "standard_tpr": _plain(cost.standard_tpr),
            }
        return found

    @property
    def tolerance(self) -> float:
        """The old name of ``rtol``."""
        warn("Calibration.tolerance", "Calibration.rtol")
        return self.rtol

    @property
    def proved_tight(self) -> Array:
        """Whether an attack breaks the target at ``rejected``: no accountant could certify it."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.target.violates(self.rejected_achieved))

    def __repr__(self) -> str:
        told = "; ".join(STATUS[code].partition(":")[0] for code in np.unique(self.status).tolist())
        found = (
            f"{self.solve_for} = {short(self.value, 10)}, {self.target.goal_field}"
            f" {sides(self.achieved)}"
        )
        return f"Calibration({found} for {self.target.describe()}, {self.adjacency}, status {told})"

    def _repr_html_(self) -> str:
        own = self.target.goal_field
        shape = np.shape(self.value)
        columns = (self.target.goal, self.value, *self.achieved, self.status)
        flat = (np.broadcast_to(column, shape).reshape(-1) for column in columns)
        rows = [
            (f"{goal:g}", repr(float(value)), *cells(low, high), STATUS[int(code)])
            for goal, value, low, high, code in zip(*flat, strict=True)
        ]
        header = (f"{own} asked", self.solve_for, f"{own} lower", f"{own} upper", "status")
        return html_table(f"{self.target.describe()}, {self.adjacency}", header, rows)

    def __str__(self) -> str:
        shape = np.shape(self.value)
        name = self.solve_for.replace("_", " ")
        if shape:
            codes, counts = np.unique(self.status, return_counts=True)
            told = "; ".join(
                f"{count}: {STATUS[int(code)]}" for code, count in zip(codes, counts, strict=True)
            )
            return f"{self.status.size} calibrations of the {name}, shape {shape}: {told}"
        goal, side = (
            float(self.target.goal),
            "at most" if self.target.safe == "upper" else "at least",
        )
        own = self.target.goal_field.replace("_", " ")
        how = (
            "closed form"
            if self.closed_form
            else f"{int(self.evaluations)} evaluations in {int(self.iterations)} rounds"
        )
        lines = [f"{self.target.describe()}, {self.adjacency}"]
        code = int(self.status)
        if code != NONE:
            lines.append(f"{name:<20} {float(self.value)!r}")
            lines.append(f"{own:<20} {_sides(self.achieved)} ({side} {goal:g} asked)")
        if code != EVERY:
            lines.append(f"{'rejected':<20} {float(self.rejected)!r}")
            lines.append(f"{own + ' there':<20} {_sides(self.rejected_achieved)}")
        lines.append(f"{'status':<20} {STATUS[code]} ({how})")
        if self.cost is not None:
            lines += ["", *_cost(self.cost)]
        return "\n".join(lines)


def _plain(array: ArrayLike) -> Any:
    """Nested lists, None in place of what is not finite."""
    array = np.asarray(array, float)
    return np.where(np.isfinite(array), array.astype(object), np.array(None)).tolist()


def _sides(bracket: Bracket) -> str:
    """Both sides, rounded outward."""
    low, high = float(bracket.lower), float(bracket.upper)
    return f"{low - 1e-7 * abs(low):.8g} … {high + 1e-7 * abs(high):.8g}"


def _cost(cost: AdvantageCost) -> list[str]:
    lines = [
        (
            "The advantage is bounded, TPRs at small FPRs are not. Next to"
            f" ({float(cost.standard_epsilon):.4g}, {cost.delta:g})-DP, which"
        ),
        "bounds the advantage as well (Kulynych 2024, Proposition 3.6):",
        (
            f"{'FPR':>10}  {'TPR, this mechanism':>20}  {'TPR, generic (eps, delta)':>26} "
            f" {'worst-case increase':>20}"
        ),
    ]
    for i, fpr in enumerate(cost.fpr):
        columns = float(cost.tpr.upper[i]), float(cost.standard_tpr[i]), float(cost.worst_case[i])
        lines.append(f"{fpr:>10g}  {columns[0]:>20.6f}  {columns[1]:>26.6f}  {columns[2]:>20.6f}")
    return lines
