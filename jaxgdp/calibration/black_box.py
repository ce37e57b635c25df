"""A privacy profile that is only known as a function, ε ↦ δ(ε) or δ ↦ ε(δ) (Kulynych 2024, Appendix A).

At finitely many points the profile h(γ) = δ(log γ) is known; in between it lies below the chords, because it is convex. If the function is
exact it also lies above every chord prolonged past its ends. Both are polygons, and every target is read off both: the upper one
certifies, the lower one tells how pessimistic the grid is. Points are added where the two differ at the target.

The points (ε, δ) stand for both orders of the neighbours, so the profile goes on below γ = 1 by δ(−ε) = 1 − e^{−ε}(1 − δ(ε)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from ..bracket import Bracket
from ..mechanisms import FromProfile
from ..numerics.validation import checked, open_unit
from ..targets import (
    FNR,
    TPR,
    Accuracy,
    Advantage,
    ApproximateMu,
    AttackSuccess,
    BayesRisk,
    EpsilonDelta,
    Mu,
    Precision,
    Regret,
    Target,
)
from .families import SCALE
from .solver import Solver

_SMALLEST = 1e-12  # δ at which a default grid ends
_LARGEST = 500.0  # ε at which it ends anyway
_POINTS = 17  # of a default grid
_MOST_CALLS = 400
_ROUNDOFF = 1e-15


class BlackBox:
    """An accountant known only as a function; build it with ``delta`` or ``epsilon``.

    Args:
        delta: callable ε ↦ δ(ε) for ε ≥ 0, a float each; an upper bound on the profile for both orders of neighbours.
        epsilon: in place of it, callable δ ↦ ε(δ) ≥ 0.
        grid: where to ask first: ε ≥ 0 for ``delta``, δ in (0, 1) for ``epsilon``. By default a few points out to δ = 1e-12.
        exact: whether the function is the profile itself and no mere upper bound. If so, lower sides say how pessimistic
            the grid is; if not they are 0.

    Attributes:
        epsilons, deltas: the points known so far, as ``FromProfile`` takes them.
        calls: how often the function was called.

    Raises:
        ValueError: neither or both functions, a grid out of range, or an answer that is no ε or δ.

    Example:
        >>> import jaxgdp
        >>> box = BlackBox(delta=lambda epsilon: jaxgdp.gdp.delta(epsilon, 1.0))
        >>> bool(box.read(jaxgdp.targets.Advantage(0.4)).contains(jaxgdp.gdp.advantage(1.0)))
        True
    """

    def __init__(self, delta=None, epsilon=None, grid=None, exact=True):
        if (delta is None) == (epsilon is None):
            raise ValueError("give delta, a callable of epsilon, or epsilon, a callable of delta, and not both")
        if not callable(function := delta or epsilon):
            raise ValueError(f"{'delta' if epsilon is None else 'epsilon'} must be a callable, got {function!r}")
        self._delta: Callable | None = delta
        self._epsilon: Callable | None = epsilon
        self.exact = bool(exact)
        self._known: dict[float, float] = {}
        self.calls = 0
        if grid is None:
            self._default_grid()
        else:
            if delta is None:
                grid = open_unit("grid", grid)
            else:
                grid = checked("grid", grid, f"in [0, {_LARGEST:g}]", lambda a: (a >= 0.0) & (a <= _LARGEST))
            for value in np.unique(np.atleast_1d(grid)):
                self._ask(value)

    def _default_grid(self):
        if self._delta is None:
            for value in np.geomspace(_SMALLEST, 0.5, _POINTS):
                self._ask(value)
            return
        last, found = 0.25, self._ask(0.0)
        while found > _SMALLEST and last < _LARGEST:
            last = 2.0 * last
            found = self._ask(last)
        for value in np.linspace(0.0, last, _POINTS)[1:-1]:
            self._ask(value)

    def _ask(self, value):
        """One call of the function; what it says is kept."""
        value = float(value)
        self.calls += 1
        if self._delta is not None:
            if value in self._known:
                return self._known[value]
            epsilon, delta = (
                value,
                float(checked("delta(epsilon)", float(self._delta(value)), "in [0, 1]", lambda a: (a >= 0) & (a <= 1))),
            )
        else:
            assert self._epsilon is not None  # one of the two is given
            epsilon = float(self._epsilon(value))
            if np.isnan(epsilon) or epsilon < 0.0:
                raise ValueError(f"epsilon(delta) must be a number >= 0, got {epsilon:g}")
            delta = value
        if epsilon <= _LARGEST:
            self._known[epsilon] = min(delta, self._known.get(epsilon, 1.0))
        return delta

    @property
    def epsilons(self):
        return np.array(sorted(self._known))

    @property
    def deltas(self):
        return np.array([self._known[e] for e in sorted(self._known)])

    @property
    def mechanism(self) -> FromProfile:
        """The dominating pair of the points, to compose or to :func:`jaxgdp.measure`."""
        return FromProfile(self.epsilons, self.deltas)

    @property
    def pessimism(self) -> float:
        """The most by which the δ of the points together can exceed the true δ at any ε, if the function is exact."""
        upper, (gamma, low) = self._polygons()
        return float(np.max(np.interp(gamma, *upper) - low))

    def _polygons(self):
        """Vertices (γ, δ) of the polygon above the profile and of the one below, γ from 0 to the last point."""
        epsilon, delta = self.epsilons, self.deltas
        if len(epsilon) == 0:
            return ((np.array([0.0, 1.0]), np.array([1.0, 1.0])), (np.array([0.0, 1.0]), np.array([1.0, 0.0])))
        inner = epsilon > 0.0
        gamma = np.concatenate([[0.0], np.exp(-epsilon[inner][::-1]), np.exp(epsilon)])
        value = np.concatenate([[1.0], (1.0 - np.exp(-epsilon) * (1.0 - delta))[inner][::-1], delta])
        upper = _hull(gamma, value)
        if not self.exact:
            return upper, (np.array([0.0, 1.0, gamma[-1] + 1.0]), np.array([1.0, 0.0, 0.0]))
        if self._delta is None and epsilon[0] == 0.0:
            # ε(δ) = 0 says that δ(0) is at most δ, not that it is δ
            here = gamma != 1.0
            gamma, value = gamma[here], value[here]
        # the line before the first point and the one after the last: δ(ε) ≥ 1 − e^ε and δ ≥ 0
        slope = np.concatenate([[-1.0], np.diff(value) / np.diff(gamma), [0.0]])
        left, right = slope[:-2], slope[2:]
        # lines through the left and the right point of each interval, and where they meet
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (value[1:] - value[:-1] + left * gamma[:-1] - right * gamma[1:]) / (left - right)
        meet = np.where(np.isfinite(meet), np.clip(meet, gamma[:-1], gamma[1:]), gamma[1:])
        height = np.maximum(
            np.minimum(value[:-1] + left * (meet - gamma[:-1]), value[1:] + right * (meet - gamma[1:])), 0.0
        )
        height = np.minimum(np.maximum(height, value[1:]), value[:-1])
        low = np.concatenate([gamma, meet]), np.concatenate([value, height])
        # past the last point: along the last chord down to 0
        end = gamma[-1] - value[-1] / slope[-2] if slope[-2] < 0.0 else gamma[-1]
        low = np.append(low[0], [end, 2.0 * end + 1.0]), np.append(low[1], [0.0, 0.0])
        order = np.argsort(low[0], kind="stable")
        return upper, (low[0][order], low[1][order])

    def read(self, target: Target) -> Bracket:
        """The target's own quantity: certified upper risk, and the least it can be if the function is exact.

        Raises:
            ValueError: the target is a regret; use :attr:`mechanism` for that.
        """
        return self._read(target)[0]

    def _read(self, target):
        """The bracket and the γ where a further point would narrow it."""
        (low, high), at = self._sides(target)
        # a function that is not quite convex may put the lower polygon above the upper one
        low, high = (min(low, high), high) if target.safe == "upper" else (low, max(low, high))
        slack = _ROUNDOFF if target.quantity in ("beta", "bayes_risk") else 0.0  # (of differences from 1)
        return Bracket(low * (1.0 - 1e-12) - slack, high * (1.0 + 1e-12) + slack), at

    def _sides(self, target):
        polygons = upper, lower = self._polygons()
        if isinstance(target, FNR | TPR | Accuracy | Precision | AttackSuccess):
            fpr = float(np.squeeze(target.baseline if isinstance(target, AttackSuccess) else target.fpr))
            (high, _), (low, at) = (_tpr(polygon, fpr) for polygon in polygons)
            if target.quantity == "beta":
                low, high = 1.0 - high, 1.0 - low
            return Bracket(*(float(np.squeeze(side)) for side in target.read(Bracket(low, high)))), at
        if isinstance(target, Advantage | BayesRisk):
            gamma, rare = 1.0, 1.0
            if isinstance(target, BayesRisk):
                rare = float(np.squeeze(np.minimum(target.prior, 1.0 - target.prior)))
                gamma = (1.0 - rare) / rare
            low, high = (float(np.interp(gamma, *polygon)) for polygon in (lower, upper))
            if isinstance(target, Advantage):
                return Bracket(low, high), gamma
            return Bracket(rare * (1.0 - high), rare * (1.0 - low)), gamma
        if isinstance(target, EpsilonDelta):
            low, high = (_gamma(polygon, float(np.squeeze(target.delta))) for polygon in (lower, upper))
            at = 0.5 * (low + high) if np.isfinite(high) else max(low, 1.0)
            return Bracket(*(np.log(max(g, 1.0)) for g in (low, high))), at
        if isinstance(target, Mu | ApproximateMu):
            d = float(np.squeeze(getattr(target, "d", 0.0)))
            floor = float(np.squeeze(getattr(target, "fpr_floor", 0.0)))
            high, fpr = _mu(upper, floor, d)
            low, at = _tpr(lower, fpr)
            return Bracket(min(max(_mu_at(fpr, low, d), 0.0), high), high), at
        if isinstance(target, Regret):
            raise ValueError(
                "target must not be a Regret for a black box: calibrate with mechanism=lambda scale: box(scale).mechanism"
            )
        raise ValueError(f"target must be one of jaxgdp.targets, got {target!r}")

    def refine(self, target: Target, width: float) -> Bracket:
        """Add points until the bracket of the target is as narrow as asked, relative in the equivalent Gaussian μ.

        Or until more points do not help.

        Returns:
            The bracket of :meth:`read`.
        """
        bracket, at = self._read(target)
        most = self.calls + _MOST_CALLS
        while self.exact and self.calls < most:
            mus = [float(np.squeeze(target.equivalent_mu(np.asarray(side)))) for side in bracket]
            if abs(mus[1] - mus[0]) <= width * max(mus) or not np.isfinite(at) or at <= 0.0:
                break
            before = dict(self._known)
            self._add(max(at, 1.0 / at))
            if self._known == before:
                break
            bracket, at = self._read(target)
        return bracket

    def _add(self, gamma):
        """Ask near a γ ≥ 1."""
        if self._delta is not None:
            self._ask(min(np.log(gamma), _LARGEST))
            return
        upper, lower = self._polygons()
        delta = 0.5 * (np.interp(gamma, *upper) + np.interp(gamma, *lower))
        self._ask(min(max(delta, 1e-300), 1.0 - 1e-12))


def _hull(gamma, value):
    """Lower convex hull of points in order."""
    kept: list[int] = []
    for i in range(len(gamma)):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (value[b] - value[a]) * (gamma[i] - gamma[a]) < (value[i] - value[a]) * (gamma[b] - gamma[a]):
                break
            kept.pop()
        kept.append(i)
    return gamma[kept], np.minimum.accumulate(value[kept])


def _tpr(polygon, fpr):
    """min over γ of δ + γ·α: the largest TPR at an FPR, and the γ that decides."""
    gamma, delta = polygon
    value = delta + gamma * fpr
    k = int(np.argmin(value))
    return float(min(value[k], 1.0)), float(gamma[k])


def _gamma(polygon, delta):
    """Smallest γ with δ(log γ) ≤ δ, ∞ if there is none."""
    gamma, value = polygon
    below = np.flatnonzero(value <= delta)
    if len(below) == 0:
        return np.inf
    k = below[0]
    if k == 0 or value[k] == value[k - 1]:
        return float(gamma[k])
    share = (value[k - 1] - delta) / (value[k - 1] - value[k])
    return float(gamma[k - 1] + share * (gamma[k] - gamma[k - 1]))


def _mu_at(fpr, tpr, d):
    rest = 1.0 - d
    with np.errstate(divide="ignore"):
        value = -ndtri(min(fpr / rest, 1.0)) - ndtri(np.clip((1.0 - tpr) / rest, 0.0, 1.0))
    return float(np.where(tpr > d, value, -np.inf)) if fpr > 0.0 or tpr > d else -np.inf


def _mu(polygon, floor, d):
    """Largest Φ⁻¹(TPR) − Φ⁻¹(FPR) over the curve's vertices from the floor on, and where it is."""
    gamma, delta = polygon
    if delta[-1] > d and floor == 0.0:
        return np.inf, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = -np.diff(delta) / np.diff(gamma)
    rates = np.unique(np.concatenate([corners[(corners > floor) & (corners < 0.5)], [floor] if floor > 0.0 else []]))
    rates = [rate for rate in rates if rate > 0.0 and 1.0 - _tpr(polygon, rate)[0] >= min(rate, 0.5) * 0.5]
    values = [_mu_at(rate, _tpr(polygon, rate)[0], d) for rate in rates]
    if not values:
        return 0.0, max(floor, 0.25)
    k = int(np.argmax(values))
    return max(values[k], 0.0), float(rates[k])


class _Boxes:
    """The family of black boxes of a scale, as the solver wants it."""

    unknown = SCALE

    def __init__(self, make, shape):
        self.make, self.shape = make, shape
        self.made: dict[float, BlackBox] = {}

    def box(self, scale: float) -> BlackBox:
        if scale not in self.made:
            found = self.make(scale)
            if not isinstance(found, BlackBox):
                if not callable(found):
                    raise ValueError(f"black_box must return a BlackBox or a callable epsilon -> delta, got {found!r}")
                found = BlackBox(delta=found)
            self.made[scale] = found
        return self.made[scale]

    def guess(self, mu):
        return np.clip(-np.log(mu), -6.0, 15.0)


class _BoxSolver(Solver):
    """The same search, one function call after the other."""

    few = 2

    def start(self):
        return self.family.guess(self.target.gaussian_mu())

    def ask(self, rows, values):
        low, high = np.empty(len(rows)), np.empty(len(rows))
        for i, (row, value) in enumerate(zip(rows, values, strict=True)):
            one = self.target.take(np.array([row]))
            bracket = self.family.box(float(value)).refine(one, 0.25 * self.tolerance)
            low[i], high[i] = (float(np.squeeze(side)) for side in bracket)
        return Bracket(low, high), np.zeros(len(rows), np.int64)

    def sharpen(self):
        """Nothing: the boxes are already as fine as asked."""


def solve_black_box(target: Target, make, tolerance: float, progress=None):
    """The family and the answers for a callable scale → black box."""
    if not callable(make):
        raise ValueError(f"black_box must be a callable scale -> BlackBox, got {make!r}")
    if isinstance(target, Regret):
        raise ValueError(
            "target must not be a Regret for a black box: use mechanism=lambda scale: box(scale).mechanism"
        )
    family = _Boxes(make, target.shape)
    return family, _BoxSolver(family, target.flat(target.shape), tolerance, "add_remove", progress).run()


__all__ = ["BlackBox", "solve_black_box"]
