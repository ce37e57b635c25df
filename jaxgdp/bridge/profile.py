"""The privacy profile that (ε, δ) statements imply, and no smaller one (Liu et al. 2022, Sec. 2).

(ε, δ)-DP implies (ε′, δ′)-DP for ε′ ≤ ε if and only if δ′ ≥ δ + (1 − δ)(e^ε − e^{ε′})/(1 + e^ε)
(Theorem 2.1). For several statements together, the profile h(γ) = δ(log γ), γ = e^ε, is the largest
function below all of them that is convex in γ, does not increase, has h(0) = 1 and is its own
mirror image, δ(−ε) = 1 − e^{−ε}(1 − δ(ε)): their lower convex hull. The hull's chord over γ = 1,
from a statement to its own mirror image, is Theorem 2.1.

Everything is written in differences of ε, so that no e^ε overflows, and as sums of positive terms,
rounded towards less privacy. Between two true statements every chord holds, so no bound depends on
which corners rounding has kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..deprecation import renamed_arguments, warn
from ..mechanisms import FromProfile
from ..numerics.errors import SPACING
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, closed_unit, finite
from .callables import ProfileFunction, values

_UP, _DOWN = 1.0 + 16.0 * SPACING, 1.0 - 16.0 * SPACING  # some exp and expm1, a few products


class _Ends(NamedTuple):
    """Which two corners an ε ≥ 0 lies between, and the share of the right one."""

    left: np.ndarray
    right: np.ndarray
    left_share: np.ndarray
    right_share: np.ndarray


class Profile:
    """A privacy profile known from finitely many statements: δ of ε; see :func:`refine`.

    Attributes:
        epsilon, delta: the corners of the profile, ε ≥ 0 increasing and δ decreasing: the
            statements that imply all others.
    """

    def __init__(self, epsilon: np.ndarray, delta: np.ndarray):
        self.epsilon, self.delta = epsilon, delta

    def __repr__(self) -> str:
        return (
            f"Profile of {len(self.epsilon)} statements, the last one ({self.epsilon[-1]:g},"
            f" {self.delta[-1]:g})"
        )

    def __call__(self, epsilon: ArrayLike) -> Array:
        """δ at ε, rounded up by at most 1e-14 relative; never above a statement it was made of.

        Args:
            epsilon: any finite numbers, nats, any shape; negative ones are the other order of the
                neighbours.

        Returns:
            δ, float64, of that shape; report it as it is (it is an upper bound).

        Raises:
            ValueError: ε is not finite.
        """
        epsilon = np.asarray(finite("epsilon", epsilon))
        size = np.abs(epsilon)
        above = self._delta(size)
        # δ(−ε) = 1 − e^{−ε}·(1 − δ(ε)), as −expm1(−ε) + e^{−ε}·δ(ε)
        mirrored = np.minimum((-np.expm1(-size) + np.exp(-size) * above) * _UP, 1.0)
        return np.where(epsilon < 0.0, mirrored, above)[()]

    def _between(self, epsilon: Array) -> _Ends:
        """Corners and shares; both corners are the last one beyond it."""
        k = np.searchsorted(self.epsilon, epsilon, side="right")
        last = len(self.epsilon) - 1
        left, right = np.clip(k - 1, 0, last), np.minimum(k, last)
        width = self.epsilon[right] - self.epsilon[left]
        some = (width > 0.0) & (k > 0)
        safe = np.where(some, width, 1.0)
        ahead = np.where(some, self.epsilon[right] - epsilon, 0.0)
        behind = np.where(some, epsilon - self.epsilon[left], 0.0)
        # (γ_r − γ)/(γ_r − γ_l) and (γ − γ_l)/(γ_r − γ_l)
        to_left = np.where(some, np.expm1(-ahead) / np.expm1(-safe), 1.0)
        to_right = np.where(some, np.exp(-ahead) * np.expm1(-behind) / np.expm1(-safe), 0.0)
        return _Ends(left, right, to_left, to_right)

    def _middle(self, epsilon: Array) -> tuple[Array, Array]:
        """(e^ε_1 − e^ε)/(1 + e^ε_1) and (1 + e^ε)/(1 + e^ε_1) for ε up to the first corner ε_1."""
        first = self.epsilon[0]
        back, whole = np.minimum(epsilon - first, 0.0), 1.0 + np.exp(-first)
        return -np.expm1(back) / whole, (np.exp(-first) + np.exp(back)) / whole

    def _delta(self, epsilon: Array) -> Array:
        ends = self._between(epsilon)
        value = self.delta[ends.left] * ends.left_share + self.delta[ends.right] * ends.right_share
        # at a corner it is what was stated, and never more than what is stated before
        exact = (epsilon == self.epsilon[ends.left]) | (ends.left == ends.right)
        left = self.delta[ends.left]
        value = np.where(exact, left, np.minimum(value * _UP, left))
        gap, _ = self._middle(epsilon)
        first = np.minimum((self.delta[0] + (1.0 - self.delta[0]) * gap) * _UP, 1.0)
        return np.where(epsilon < self.epsilon[0], first, value)

    def log_delta(self, epsilon: ArrayLike) -> Array:
        """log δ(ε) for ε ≥ 0, −∞ where δ is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self._delta(np.asarray(epsilon, float)))

    def log_rest(self, epsilon: ArrayLike) -> Array:
        """The old name of :meth:`log_one_minus_delta`; warns."""
        warn("Profile.log_rest", "Profile.log_one_minus_delta")
        return self.log_one_minus_delta(epsilon)

    def log_one_minus_delta(self, epsilon: ArrayLike) -> Array:
        """log(1 − δ(ε)) for ε ≥ 0, rounded down; its digits do not cancel where δ is next to 1."""
        epsilon = np.asarray(epsilon, float)
        ends = self._between(epsilon)
        rest = 1.0 - self.delta
        value = rest[ends.left] * ends.left_share + rest[ends.right] * ends.right_share
        first = self.epsilon[0]
        back = np.minimum(epsilon - first, 0.0)
        with np.errstate(divide="ignore"):
            # (1 − δ_1)(1 + e^ε)/(1 + e^ε_1), in the log domain: e^{−ε_1} may be no double
            log_first = np.log(rest[0]) + np.logaddexp(-first, back) - np.log1p(np.exp(-first))
            found = np.where(epsilon < first, log_first, np.log(value))
        slack = 16.0 * SPACING * (1.0 + np.where(np.isfinite(found), np.abs(found), 0.0))
        return np.minimum(found - slack, 0.0)

    @renamed_arguments(alpha="fpr")
    def beta(self, fpr: ArrayLike) -> Array:
        """The trade-off curve implied: max over corners of 1 − δ − e^ε·α and (1 − δ − α)·e^{−ε}.

        Args:
            fpr: FPR α in [0, 1], any shape.

        Returns:
            FNR, float64, of that shape, rounded down: no attack errs less often.

        Raises:
            ValueError: ``fpr`` is out of range.
        """
        fpr = closed_unit("fpr", fpr)[..., None]
        rest = 1.0 - self.delta
        with np.errstate(over="ignore", divide="ignore"):
            lost = np.exp(np.minimum(self.epsilon + np.log(fpr), 1.0)) * _UP
        steep = rest * _DOWN - lost
        flat = np.exp(-self.epsilon) * np.maximum(rest * _DOWN - fpr, 0.0) * _DOWN
        return np.max(np.maximum(np.maximum(steep, flat), 0.0), axis=-1)[()]

    @property
    def infinite_mass(self) -> float:
        """The δ that no ε does away with: that of the last corner."""
        return float(self.delta[-1])

    @property
    def mechanism(self) -> FromProfile:
        """The mechanism that has exactly this profile, to compose or to :func:`jaxgdp.measure`.

        Raises:
            ValueError: an ε is above 5000, or the profile is trivial there (δ = 1).
        """
        return FromProfile(self.epsilon, self.delta)


def _kept(epsilon: Array, delta: Array) -> list[int]:
    """Indices of the lower hull of points by increasing ε and decreasing δ, from the far end to the
    chord over γ = 1.
    """
    hull = [len(epsilon) - 1]
    for i in range(len(epsilon) - 2, -1, -1):
        while len(hull) >= 2:
            b, c = hull[-1], hull[-2]
            # b lies on or above the chord from i to c
            span = np.expm1(epsilon[i] - epsilon[c])
            to_i = np.expm1(epsilon[b] - epsilon[c]) / span
            to_c = np.exp(epsilon[b] - epsilon[c]) * np.expm1(epsilon[i] - epsilon[b]) / span
            if delta[b] < delta[i] * to_i + delta[c] * to_c:
                break
            hull.pop()
        hull.append(i)
    # what the chord from a statement to its own mirror image already implies (Theorem 2.1)
    while len(hull) >= 2:
        a, b = hull[-1], hull[-2]
        share = np.expm1(epsilon[a] - epsilon[b]) / (1.0 + np.exp(-epsilon[b]))
        implied = delta[b] - (1.0 - delta[b]) * share
        if delta[a] < implied:
            break
        hull.pop()
    return hull[::-1]


def refine(epsilon: ArrayLike, delta: ArrayLike | ProfileFunction) -> Profile:
    """The profile that (ε, δ) statements imply, and no smaller one (Liu et al. 2022, Theorem 2.1).

    Args:
        epsilon: ε ≥ 0 of each statement, nats, in any order; a number or one-dimensional.
        delta: δ in [0, 1] of each, as many (or one number for all); or a callable ε ↦ δ, which is
            evaluated at every ε.

    Returns:
        A :class:`Profile`: a callable, vectorised, never above a statement, and itself refined.

    Raises:
        ValueError: a value is out of range, there are more than one axis, or the numbers of ε and δ
            differ; of a callable, what it raised or returned that is no δ, with its ε.

    Example:
        >>> profile = refine([1.0, 2.0], [1e-5, 1e-9])
        >>> [float(f"{d:.6g}") for d in profile([0.0, 1.0, 1.5, 3.0])]
        [0.462123, 1e-05, 6.22497e-06, 1e-09]
    """
    epsilon = np.atleast_1d(checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0))
    if callable(delta):
        delta = values(delta, epsilon)
    delta = np.atleast_1d(closed_unit("delta", delta))
    shape = broadcast(epsilon=epsilon, delta=delta)
    if len(shape) != 1 or len(epsilon) not in (1, len(delta)) and len(delta) != 1:
        raise ValueError(
            f"epsilon and delta must have one axis, got shapes {epsilon.shape} and {delta.shape}"
        )
    epsilon, delta = (np.broadcast_to(a, shape) + 0.0 for a in (epsilon, delta))
    order = np.lexsort((delta, epsilon))
    epsilon, delta = epsilon[order], delta[order]
    # a statement is implied by an earlier one with no more δ
    below = np.concatenate([[True], delta[1:] < np.minimum.accumulate(delta)[:-1]])
    epsilon, delta = epsilon[below], delta[below]
    hull = _kept(epsilon, delta)
    return Profile(epsilon[hull], delta[hull])
