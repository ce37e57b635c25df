"""A user's own mechanism: a privacy profile at finitely many ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics.pytree import pytree
from ..numerics.shapes import Parameter
from ..numerics.validation import broadcast, checked, closed_unit, known
from .base import Mechanism
from .finite_pair import FinitePair

_LARGEST = 5000.0  # largest ε: e^ε has to be a long double


@pytree
@dataclass(frozen=True)
class FromProfile(Mechanism):
    """Any mechanism that is (ε_i, δ_i)-DP for every i of a finite list, known only as such.

    δ(ε) is the *hockey-stick divergence* of order e^ε. A profile h(γ) = δ(log γ) is convex in
    γ = e^ε, does not increase, and the same statement in the other direction is
    δ(−ε) = 1 − e^{−ε}·(1 − δ(ε)) (Liu 2022, refined profile). The lower convex
    hull of all these points is the largest profile they allow: each of its vertices is an atom of
    the dominating pair, with P-mass the change of slope there, and the last δ is the mass at +∞ and
    −∞. One pair (ε, δ) gives ``ApproximateDP``. Both sides of a bracket are of this pair: the
    mechanism behind the list may be more private, never less. The profile has to hold for both
    directions of the neighbouring relation it is meant for.

    Args:
        epsilons: ε_i ≥ 0 in nats, increasing along the last axis, at most 5000; shape (…, number).
        deltas: δ_i in [0, 1], as many; leading axes broadcast. They need not be convex.

    Raises:
        ValueError: a value out of range, ε that do not increase, different numbers of ε and δ, or
            leading shapes that do not broadcast (before tracing).

    Example:
        >>> FromProfile(epsilons=[0.0, 0.5, 1.0], deltas=[0.4, 0.2, 0.1]).shape
        ()
    """

    epsilons: Parameter
    deltas: Parameter

    trailing: ClassVar[dict[str, int]] = {"epsilons": 1, "deltas": 1}
    relation: ClassVar[str] = "those that the profile was stated for"
    sampling: ClassVar[str] = "whatever it was: only the privacy profile is known"
    examples: ClassVar[dict] = {
        "FromProfile, last δ = 0": lambda: FromProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]),
        "FromProfile, last δ = 1e-6": lambda: FromProfile([0.0, 0.5, 1.0], [0.3, 0.1, 1e-6]),
    }

    def __post_init__(self):
        known(self, epsilons=self.epsilons, deltas=self.deltas)
        valid = f"numbers in [0, {_LARGEST:g}]"
        epsilons = checked("epsilons", self.epsilons, valid, lambda a: (a >= 0.0) & (a <= _LARGEST))
        deltas = closed_unit("deltas", self.deltas)
        for name, value in (("epsilons", epsilons), ("deltas", deltas)):
            if value.ndim == 0:
                raise ValueError(
                    f"{name} must hold numbers along its last axis, got the number {value:g}"
                )
        if epsilons.shape[-1] != deltas.shape[-1]:
            raise ValueError(
                f"epsilons and deltas must be equally many, got {epsilons.shape[-1]} and"
                f" {deltas.shape[-1]}"
            )
        falls = np.argwhere(np.diff(epsilons, axis=-1) <= 0.0)
        if len(falls):
            at = tuple(falls[0])
            after = (*at[:-1], at[-1] + 1)
            raise ValueError(
                f"epsilons must increase along its last axis, got {epsilons[at]:g} before"
                f" {epsilons[after]:g}"
            )
        broadcast(epsilons=epsilons[..., 0], deltas=deltas[..., 0])
        if np.any(deltas.min(axis=-1) == 1.0):
            raise ValueError("deltas must hold a number below 1, got only 1")
        object.__setattr__(self, "epsilons", epsilons)
        object.__setattr__(self, "deltas", deltas)

    def canonical(self) -> FinitePair:
        """The dominating pair.

        Method: docs/method/dominating.md#profile
        """
        shape = self.shape
        number = self.epsilons.shape[-1]
        epsilons = np.broadcast_to(self.epsilons, (*shape, number)).reshape(-1, number)
        deltas = np.broadcast_to(self.deltas, (*shape, number)).reshape(-1, number)
        log_p = np.stack([_half_hull(e, d) for e, d in zip(epsilons, deltas, strict=True)])
        with np.errstate(divide="ignore"):
            infinity = np.log(deltas.min(axis=-1)).reshape(shape)
        # the half below 0 mirrors the one above: p(−ε) = q(ε); an atom at 0 is its own mirror image
        mirror = np.where(epsilons == 0.0, -np.inf, log_p + epsilons)
        loss = np.concatenate([-epsilons[:, ::-1], epsilons], axis=-1)
        both = np.concatenate([mirror[:, ::-1], log_p], axis=-1)
        loss, both = (a.reshape(*shape, 2 * number) for a in (loss, both))
        return FinitePair.build(loss, both, both + loss, infinity, infinity)

    def replace_one(self) -> FromProfile:
        """Itself, for a profile that holds for replacing a record."""
        return self


def _half_hull(epsilons: np.ndarray, deltas: np.ndarray):
    """log P-masses at ε ≥ 0 of the lower hull of (e^ε, δ) and mirror images; −inf off it.

    In extended precision, from the far end, where the hull is flat, towards the middle, where it
    meets its mirror image: the chord between (e^{−ε}, 1 − e^{−ε}(1 − δ)) and (e^ε, δ) has slope −(1
    − δ)/(1 + e^ε)."""
    gamma, h = np.exp(epsilons.astype(np.longdouble)), deltas.astype(np.longdouble)
    centre = -(1.0 - h) / (1.0 + gamma)
    hull = [int(np.argmin(deltas))]
    slopes = [np.longdouble(0.0)]  # to the right of each vertex
    for i in range(hull[0] - 1, -1, -1):
        # (the first vertex has the smallest δ: a chord to it falls)
        while (slope := (h[hull[-1]] - h[i]) / (gamma[hull[-1]] - gamma[i])) >= slopes[-1]:
            hull.pop()
            slopes.pop()
        hull.append(i)
        slopes.append(slope)
    while len(hull) > 1 and centre[hull[-1]] >= slopes[-1]:
        hull.pop()
        slopes.pop()
    masses = np.zeros(len(h), np.longdouble)
    masses[hull] = np.array(slopes) - np.array([*slopes[1:], centre[hull[-1]]])
    if epsilons[0] == 0.0:
        masses[0] *= (
            # the slope to the left is the mirror image of the one to the right, not the chord
            # between
            2.0
        )
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(masses, 0.0)).astype(float)
