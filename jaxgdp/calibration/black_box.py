"""A privacy profile known only as a function, ε ↦ δ(ε) or δ ↦ ε(δ) (Kulynych 2024, Appendix A).

At finitely many points the profile h(γ) = δ(log γ) is known; in between it lies below the chords,
because it is convex. If the function is exact it also lies above every chord prolonged past its
ends. Every target is read off both (``profile_sides``): the upper one certifies, the lower one
measures how pessimistic the grid is. Points are added where the two differ at the target.

The points (ε, δ) stand for both orders of the neighbours, so the profile goes on below γ = 1 by
δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..mechanisms import FromProfile
from ..numerics.errors import BLACK_BOX, BLACK_BOX_VALUES
from ..numerics.shapes import ArrayLike
from ..numerics.validation import checked, open_unit
from ..progress import show_progress
from ..quantities.registry import named
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
from .profile_sides import Above, Below, Box
from .solver import Solver

_SMALLEST = 1e-12  # δ at which a default grid ends
_LARGEST = 700.0  # ε at which it ends anyway: e^ε has to be a double
_POINTS = 17  # of a default grid
_MOST_CALLS = 400
_PATIENCE = 30  # calls without a narrower bracket
_APART = 1e-5  # relative distance in ε that a further point keeps from those known
_UNDERFLOW = np.finfo(float).tiny  # what a δ of 0 may stand for


class BlackBox:
    """An accountant known only as a function; build it with ``delta`` or ``epsilon``.

    Args:
        delta: callable ε ↦ δ(ε) for ε ≥ 0, a float each; an upper bound on the profile for both
            orders of neighbours.
        epsilon: in place of it, callable δ ↦ ε(δ) ≥ 0.
        grid: where to evaluate first: ε ≥ 0 for ``delta``, δ in (0, 1) for ``epsilon``. By default
            a few points out to δ = 1e-12.
        exact: whether the function is the profile itself and no mere upper bound. If so, lower
            sides measure how pessimistic the grid is; if not they are those of guessing, or 0.
        error: relative error of the function's values, of δ where it is small and of 1 − δ, beside
            1e-15, where it is near 1; in [0, 0.1]. Both sides allow for it. Give 0 for an upper
            bound that holds as it is.
        absolute_error: what δ may be off besides, ≥ 0, for which lower sides allow too: differences
            of probabilities, as a formula Φ(·) − e^ε·Φ(·) takes them, have it. Give 0 for a
            function with relative accuracy, whose lower sides then reach δ below it.

    Attributes:
        epsilons, deltas: the points known so far, as ``FromProfile`` takes them.
        calls: how often the function was called.

    Raises:
        ValueError: neither or both functions, a grid or an error out of range, or an answer that is
            no ε or δ.

    Example:
        >>> import jaxgdp
        >>> box = BlackBox(delta=lambda epsilon: jaxgdp.gdp.delta(epsilon=epsilon, mu=1.0))
        >>> bool(box.read(jaxgdp.targets.Advantage(0.4)).contains(jaxgdp.gdp.advantage(mu=1.0)))
        True
    """

    def __init__(
        self,
        delta: Callable[[Any], Any] | None = None,
        epsilon: Callable[[Any], Any] | None = None,
        grid: ArrayLike | None = None,
        exact: bool = True,
        *,
        error: float = BLACK_BOX_VALUES[0],
        absolute_error: float = BLACK_BOX_VALUES[1],
    ):
        if (delta is None) == (epsilon is None):
            raise ValueError(
                "give delta, a callable of epsilon, or epsilon, a callable of delta, and not both"
            )
        if not callable(function := delta or epsilon):
            raise ValueError(
                f"{'delta' if epsilon is None else 'epsilon'} must be a callable, got {function!r}"
            )
        self._delta: Callable | None = delta
        self._epsilon: Callable | None = epsilon
        self.exact = bool(exact)
        in_range = lambda a: (a >= 0.0) & (a <= 0.1)
        self._error = float(checked("error", error, "in [0, 0.1]", in_range))
        self._absolute_error = float(
            checked("absolute_error", absolute_error, "in [0, 0.1]", in_range)
        )
        self._known: dict[float, float] = {}
        self.calls = 0
        if grid is None:
            self._default_grid()
        else:
            if delta is None:
                grid = open_unit("grid", grid)
            else:
                grid = checked(
                    "grid", grid, f"in [0, {_LARGEST:g}]", lambda a: (a >= 0.0) & (a <= _LARGEST)
                )
            for value in np.unique(np.atleast_1d(np.asarray(grid))):
                self._ask(value)

    def _default_grid(self):
        if self._delta is None:
            for value in np.geomspace(_SMALLEST, 0.5, _POINTS):
                self._ask(value)
            return
        last, found = 0.25, self._ask(0.0)
        while found > _SMALLEST and last < _LARGEST:
            last = min(2.0 * last, _LARGEST)
            found = self._ask(last)
        for value in np.linspace(0.0, last, _POINTS)[1:-1]:
            self._ask(value)

    def _ask(self, value: Any):
        """One call of the function; its result is kept."""
        value = float(value)
        self.calls += 1
        if self._delta is not None:
            if value in self._known:
                return self._known[value]
            epsilon, delta = (
                value,
                float(
                    checked(
                        "delta(epsilon)",
                        float(self._delta(value)),
                        "in [0, 1]",
                        lambda a: (a >= 0) & (a <= 1),
                    )
                ),
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
        """The most by which the points' δ can exceed the true δ, if the function is exact."""
        above, below = self._sides()
        return float(below.gap(above))

    def _box(self) -> Box:
        """The points (e^ε − 1, δ) with their errors."""
        epsilon, delta = self.epsilons, self.deltas
        if len(epsilon) == 0:
            return Box(np.zeros(1), np.zeros(1), np.zeros(1), np.ones(1))
        if self._delta is not None:
            error = delta * (
                (1.0 - delta) * self._error + (BLACK_BOX_VALUES[1] if self._error > 0.0 else 0.0)
            )
            low, high = delta * (1.0 - BLACK_BOX) - error - self._absolute_error, delta + error
            if self._error > 0.0:
                high = np.maximum(high, _UNDERFLOW)
            spread = 0.0
        else:
            low, high = delta * (1.0 - BLACK_BOX) - self._absolute_error, delta
            spread = self._error
        low_g, high_g = (
            np.expm1(epsilon * (1.0 + sign * spread)) * (1.0 + sign * BLACK_BOX)
            for sign in (-1.0, 1.0)
        )
        return Box(low_g, high_g, np.maximum(low, 0.0), np.minimum(high, 1.0))

    def _sides(self) -> tuple[Above, Below]:
        """The bracket that the points imply.

        A function that is convex only within more than its error is no profile, so nothing is
        claimed from below."""
        box = self._box()
        above = Above(box)
        if self._delta is None:
            # ε(δ) = 0 says that δ(0) is at most δ, not that it is δ
            box = Box(*(side[self.epsilons > 0.0] for side in box)) if self._known else box
        sound = self.exact and bool(np.all(box.low <= above.delta(box.low_g)))
        return above, Below(box if sound else None)

    def read(self, target: Target) -> Bracket:
        """The target's own quantity: certified upper risk, and its least if the function is exact.

        For ``Mu``, over error rates from the floor on, as :meth:`jaxgdp.TradeoffCurve.mu`
        has it: ∞ where no point of the profile bounds the other rate at the floor.

        Raises:
            ValueError: the target is a regret; use :attr:`mechanism` for that.
        """
        return self._read(target)[0]

    def _read(self, target: Target):
        """The bracket and the e^ε − 1 where a further point would narrow it."""
        above, below = self._sides()
        (low, high), at = _answer(target, above, below)
        low, high = (
            float(np.squeeze(low)) * (1.0 - BLACK_BOX),
            float(np.squeeze(high)) * (1.0 + BLACK_BOX),
        )
        if not isinstance(target, Mu | ApproximateMu | EpsilonDelta):
            high = min(high, 1.0)
        return Bracket(low, high), float(at)

    def refine(self, target: Target, width: float) -> Bracket:
        """Add points until the target's bracket is as narrow as requested, relative in μ.

        Or until more points do not help: none comes nearer than 1e-5 relative to one that is known.

        Returns:
            The bracket of :meth:`read`.
        """
        bracket, at = self._read(target)
        most = self.calls + _MOST_CALLS
        narrowest, since = np.inf, 0
        while self.exact and self.calls < most:
            mus = [float(np.squeeze(target.equivalent_mu(np.asarray(side)))) for side in bracket]
            found = abs(mus[1] - mus[0]) / max(mus) if 0.0 < max(mus) < np.inf else np.inf
            narrowest, since = (found, 0) if found < 0.99 * narrowest else (narrowest, since + 1)
            if found <= width or since > _PATIENCE:
                break
            before = dict(self._known)
            self._add(at)
            if self._known == before:
                break
            bracket, at = self._read(target)
        return bracket

    def _add(self, g: float):
        """Evaluate near g = e^ε − 1 ≥ 0, unless a point near it is known."""
        epsilon = min(float(np.log1p(max(g, 0.0))), _LARGEST)
        if self._delta is not None:
            if all(abs(known - epsilon) > _APART * known for known in self._known):
                self._ask(epsilon)
            return
        above, below = self._sides()
        g = min(g, np.expm1(_LARGEST))
        low, high = below.delta(g), above.delta(g)
        if high - low > _APART * high:
            # (past the last point, where δ may be anything below it, in steps)
            delta = 0.5 * (low + high) if low > 0.0 else 0.03 * high
            self._ask(min(max(delta, 1e-300), 1.0 - 1e-12))


def _answer(target: Target, above: Above, below: Below):
    """The target's own quantity, and where a further point would narrow it."""
    if isinstance(target, FNR | TPR | Accuracy | Precision | AttackSuccess):
        fpr = float(
            np.squeeze(target.baseline if isinstance(target, AttackSuccess) else target.fpr)
        )
        (most, least), (tpr, beta, at) = above.rates(fpr), below.rates(fpr)
        falls = not named(target.quantity).grows
        sides = Bracket(least, beta) if falls else Bracket(tpr, most)
        return target.read(sides), at
    if isinstance(target, Advantage):
        return Bracket(below.delta(0.0), above.delta(0.0)), 0.0
    if isinstance(target, BayesRisk):
        rare = float(np.squeeze(np.minimum(target.prior, 1.0 - target.prior)))
        g = (1.0 - 2.0 * rare) / rare
        low, high = below.delta(g * (1.0 + BLACK_BOX)), above.delta(g * (1.0 - BLACK_BOX))
        return Bracket(rare * (1.0 - high), rare * (1.0 - low)), g
    if isinstance(target, EpsilonDelta):
        delta = float(np.squeeze(target.delta))
        low, high = below.g_of(delta), above.g_of(delta)
        at = (
            np.expm1(0.5 * (np.log1p(low) + np.log1p(high)))
            if np.isfinite(high)
            else _beyond(above)
        )
        return Bracket(np.log1p(low), np.log1p(high)), at
    if isinstance(target, Mu | ApproximateMu):
        d = float(np.squeeze(getattr(target, "approximation", 0.0)))
        floor = float(np.squeeze(getattr(target, "fpr_floor", 0.0)))
        high, rates = above.mu(floor, d)
        tried = np.unique(
            np.concatenate([rates, np.sqrt(rates[1:] * rates[:-1]), [floor] if floor > 0.0 else []])
        )
        at = below.rates(rates[0])[2] if np.isfinite(high) else _beyond(above)
        return Bracket(below.mu(tried[tried > 0.0], floor, d), high), at
    if isinstance(target, Regret):
        raise ValueError(
            "target must not be a Regret for a black box: calibrate with mechanism=lambda scale:"
            " box(scale).mechanism"
        )
    raise ValueError(f"target must be one of jaxgdp.targets, got {target!r}")


def _beyond(above: Above):
    """Past the last point of the hull."""
    epsilon = float(np.log1p(max(above.g[-1], 0.0)))
    return np.expm1(min(1.5 * epsilon + 0.25, _LARGEST))


class _Boxes:
    """The family of black boxes of a scale, as the solver wants it."""

    unknown = SCALE

    def __init__(self, make: Any, shape: tuple[int, ...]):
        self.make, self.shape = make, shape
        self.made: dict[float, BlackBox] = {}

    def box(self, scale: float) -> BlackBox:
        if scale not in self.made:
            found = self.make(scale)
            if not isinstance(found, BlackBox):
                if not callable(found):
                    raise ValueError(
                        "black_box must return a BlackBox or a callable epsilon -> delta, got"
                        f" {found!r}"
                    )
                found = BlackBox(delta=found)
            self.made[scale] = found
        return self.made[scale]

    def guess(self, mu: np.ndarray):
        return np.clip(-np.log(mu), -6.0, 15.0)


class _BoxSolver(Solver):
    """The same search, one function call after the other."""

    few = 2

    def start(self):
        return self.family.guess(self.target.gaussian_mu())

    def ask(self, rows: np.ndarray, values: np.ndarray):
        low, high = np.empty(len(rows)), np.empty(len(rows))
        for i, (row, value) in enumerate(zip(rows, values, strict=True)):
            one = self.target.take(np.array([row]))
            bracket = self.family.box(float(value)).refine(one, 0.25 * self.tolerance)
            low[i], high[i] = (float(np.squeeze(side)) for side in bracket)
            self.evaluated(1)
        return Bracket(low, high), np.zeros(len(rows), np.int64)

    def sharpen(self):
        """Nothing: the boxes are already as fine as requested."""


def solve_black_box(target: Target, make: Any, tolerance: float, progress: Any = None):
    """The family and the answers for a callable scale → black box."""
    if not callable(make):
        raise ValueError(f"black_box must be a callable scale -> BlackBox, got {make!r}")
    if isinstance(target, Regret):
        raise ValueError(
            "target must not be a Regret for a black box: use mechanism=lambda scale:"
            " box(scale).mechanism"
        )
    family = _Boxes(make, target.shape)
    flat, function = target.flat(target.shape), progress if callable(progress) else None
    with show_progress("calibrating", 0, None if function else progress) as evaluated:
        solver = _BoxSolver(family, flat, tolerance, "add_remove", function, evaluated)
        return family, solver.run()


__all__ = ["BlackBox", "solve_black_box"]
