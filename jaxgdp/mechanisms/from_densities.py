"""A user's own mechanism: two densities of its output, by their logs on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import ClassVar

import numpy as np

from ..numerics.errors import DENSITY, SHORT
from ..numerics.pytree import default, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import broadcast, checked, finite, known, truth
from .base import Mechanism
from .piecewise_pair import Infinity, PiecewisePair, log_sinhc

_EXCESS = 1e-9  # how far above one a density may integrate


@pytree
@dataclass(frozen=True)
class FromDensities(Mechanism):
    """A mechanism with a real output, from log densities without and with the record on a grid.

    Between neighbouring grid points the log densities are straight lines: that is the definition of
    the mechanism, and the privacy loss log q − log p is a straight line there too. If a log density
    is −∞ at either end of an interval, the density is zero on it; a grid point given twice makes a
    jump. Mass that P or Q has outside the grid, or that straight lines cut off, is taken to be
    impossible under the other one: the P-mass missing from one sits at loss −∞, the Q-mass at +∞
    (*infinity mass*, here from *truncation*). How much is missing is rounded up, by about 1e-18
    (1e-15 where there is no extended precision): a density that integrates to 1 but for rounding
    has that much at an infinity, and no finite μ at the floor 0. If nothing is missing, say so:
    :meth:`normalized`, or ``complete``. The pair has to dominate every pair of neighbouring data
    sets of the relation it is meant for.

    Args:
        outputs: grid, not decreasing along the last axis; shape (…, points).
        log_p: log density without the record at each grid point, shape (…, points); a number or −∞.
        log_q: log density with the record. Leading axes of all broadcast.
        complete: whether nothing is missing: True or False, or an array of these. Integrals within
            1e-9 of 1 are then divided out.

    Raises:
        ValueError: a value that is not a number, a grid that decreases or has fewer than two
            points, different numbers of points, a density that integrates to more than 1 (by 1e-9),
            or to less where it is complete, or leading shapes that do not broadcast (before
            tracing).

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-30.0, 31.0, 611)
        >>> FromDensities.normalized(x, -np.abs(x), -np.abs(x - 1.0)).shape
        ()
    """

    outputs: Parameter
    log_p: Parameter
    log_q: Parameter
    complete: Parameter = default(False)

    trailing: ClassVar[dict[str, int]] = {"outputs": 1, "log_p": 1, "log_q": 1}
    sampling: ClassVar[str] = "whatever is in the given densities"
    examples: ClassVar[dict] = {"FromDensities, nothing missing": lambda: _two_laplace_densities()}

    def __post_init__(self):
        known(self, outputs=self.outputs, log_p=self.log_p, log_q=self.log_q)
        outputs = finite("outputs", self.outputs)
        # −∞ is a density of zero
        densities = {name: _log_density(name, getattr(self, name)) for name in ("log_p", "log_q")}
        for name, value in {"outputs": outputs, **densities}.items():
            if value.ndim == 0 or value.shape[-1] < 2:
                raise ValueError(
                    f"{name} must hold at least 2 numbers along its last axis, got shape"
                    f" {value.shape}"
                )
            if value.shape[-1] != outputs.shape[-1]:
                raise ValueError(
                    f"{name} must have {outputs.shape[-1]} points like outputs, got"
                    f" {value.shape[-1]}"
                )
        if np.any(np.diff(outputs, axis=-1) < 0.0):
            raise ValueError("outputs must not decrease along its last axis, got a step down")
        complete = truth("complete", self.complete)
        broadcast(
            outputs=outputs[..., 0],
            log_p=densities["log_p"][..., 0],
            log_q=densities["log_q"][..., 0],
            complete=complete,
        )
        for name, value in densities.items():
            total = np.exp(_log_total(log_masses(outputs, value)))
            if np.any(total > 1.0 + _EXCESS):
                raise ValueError(
                    f"{name} must integrate to at most 1, got {np.max(total):.12g}"
                    " (FromDensities.normalized divides by it)"
                )
            if np.any(complete & (total < 1.0 - _EXCESS)):
                raise ValueError(
                    f"{name} must integrate to 1 where nothing is missing, got"
                    f" {np.min(total):.12g} (FromDensities.normalized divides by it)"
                )
        object.__setattr__(self, "outputs", outputs)
        for name, value in densities.items():
            object.__setattr__(self, name, value)

    @classmethod
    def normalized(cls, outputs: ArrayLike, log_p: ArrayLike, log_q: ArrayLike) -> FromDensities:
        """The mechanism whose densities are proportional to these and zero outside the grid.

        Args and Raises as for the class, but a density may integrate to any positive number.
        """
        x = np.asarray(finite("outputs", outputs))
        scaled = []
        for name, value in (("log_p", log_p), ("log_q", log_q)):
            value = _log_density(name, value)
            if value.ndim == 0 or x.ndim == 0 or value.shape[-1] != x.shape[-1]:
                raise ValueError(
                    f"{name} must have as many points as outputs, got shapes {value.shape} and"
                    f" {x.shape}"
                )
            total = _log_total(log_masses(x, value))
            if not np.all(np.isfinite(total)):
                raise ValueError(
                    f"{name} must integrate to a positive number, got log integral {total.min():g}"
                )
            scaled.append(value - total[..., None])
        return cls(x, *scaled, complete=True)

    def canonical(self) -> PiecewisePair:
        """The loss as straight stretches and atoms."""
        complete = np.asarray(self.complete)[..., None]
        x, a, b, complete = np.broadcast_arrays(self.outputs, self.log_p, self.log_q, complete)
        complete = complete[..., 0]
        wide = [_masses(x, density) for density in (a, b)]
        p_mass, q_mass = (
            _logs(masses, log_masses(x, density))
            for masses, density in zip(wide, (a, b), strict=True)
        )
        live = (p_mass > -np.inf) & (q_mass > -np.inf)
        totals = [_exact_sums(masses) for masses in wide]
        minus, plus = (
            _missing(masses, total, live, complete)
            for masses, total in zip(wide, totals, strict=True)
        )
        # (rounding of a total may exceed one)
        p_mass, q_mass = (
            m - np.log(np.where(complete, total, np.maximum(total, 1.0)))[..., None]
            for m, total in zip((p_mass, q_mass), totals, strict=True)
        )
        with np.errstate(invalid="ignore"):
            loss, slope = b - a, np.diff(a)
        return PiecewisePair.build(
            loss[..., :-1], loss[..., 1:], slope, p_mass, q_mass, live, minus, plus
        )

    def replace_one(self) -> FromDensities:
        """Itself, for a pair that is meant for replacing a record."""
        return self


def _log_density(name: str, value: ArrayLike) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.size:
        below = np.isneginf(array)
        checked(name, np.where(below, 0.0, array), "numbers or -inf", np.isfinite)
        return array.astype(np.float64)
    return np.asarray(checked(name, value, "numbers or -inf", np.isfinite))


def log_masses(x: Array, log_density: Array):
    """log of the integrals over a grid's intervals, −∞ where the density is 0 at an end."""
    ends = log_density[..., :-1], log_density[..., 1:]
    live = (np.diff(x) > 0.0) & np.isfinite(ends[0]) & np.isfinite(ends[1])
    low, high = (np.where(live, end, 0.0) for end in ends)
    with np.errstate(divide="ignore"):
        width = np.log(np.where(live, np.diff(x), 1.0))
    return np.where(live, width + 0.5 * (low + high) + log_sinhc(0.5 * (high - low), np), -np.inf)


def _log_total(log_mass: np.ndarray):
    return np.logaddexp.reduce(log_mass, axis=-1)


def _missing(
    masses: np.ndarray, total: np.ndarray, live: np.ndarray, complete: np.ndarray
) -> Infinity:
    """All mass that is not on intervals where both densities live, rounded up.

    It is what lies where the other density is zero, and, unless nothing is missing, what the
    integral lacks to 1.

    Method: docs/method/rounding.md#at-infinity
    """
    unit = DENSITY * float(np.finfo(np.longdouble).eps) / 2.0
    one_sided = _exact_sums(np.where(live, 0.0, masses))
    error = np.where(complete, 0.0, unit * (1.0 + total))
    short = np.where(complete, 0.0, np.maximum(_exact_sums(-masses, 1.0) + error, 0.0))
    scale = 1.0 / np.where(complete, total, np.maximum(total, 1.0))
    missing = (one_sided + short) * scale
    rounding = np.where(missing > 0.0, (2.0 * SHORT + unit) * missing + 2.0 * error, 0.0)
    with np.errstate(divide="ignore"):
        return Infinity(np.log(np.minimum(missing * (1.0 + SHORT + unit), 1.0)), rounding)


def _masses(x: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """Integrals over the intervals of a grid in the widest floats there are, each to a few of their
    units: width · e^{larger end} · (1 − e^{−fall})/fall.
    """
    wide = log_density.astype(np.longdouble)
    ends, width = (wide[..., :-1], wide[..., 1:]), np.diff(x.astype(np.longdouble))
    live = (width > 0.0) & np.isfinite(ends[0]) & np.isfinite(ends[1])
    low, high = (np.where(live, end, 0.0) for end in ends)
    fall = np.abs(high - low)
    flat = fall == 0.0
    mean = np.where(flat, 1.0, -np.expm1(-fall) / np.where(flat, 1.0, fall))
    return np.where(live, width * np.exp(np.maximum(low, high)) * mean, 0.0)


def _logs(masses: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Logs of wide masses, which keep the digits that a steep density's own logs lose, unless they
    are so small that they are none.
    """
    some = masses > 1e4 * np.finfo(np.longdouble).tiny
    return np.where(some, np.log(np.where(some, masses, 1.0)).astype(float), otherwise)


def _exact_sums(values: np.ndarray, start: float = 0.0) -> np.ndarray:
    """Sums of wide floats along the last axis, each rounded once."""

    def one(row: np.ndarray) -> float:
        first = row.astype(float)
        return fsum([start, *first, *(row - first).astype(float)])

    return np.apply_along_axis(one, -1, values)


def _two_laplace_densities() -> FromDensities:
    """An example: Laplace densities of scale 1.5, one apart."""
    x = np.linspace(-12.0, 13.0, 101)
    return FromDensities.normalized(x, -np.abs(x) / 1.5, -np.abs(x - 1.0) / 1.5)
