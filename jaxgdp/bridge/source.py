"""Sources of a privacy profile: mechanisms, trade-off curves, statements, callables ε ↦ δ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..mechanisms import Composition, as_composition
from ..mechanisms.base import AccountedBy, Mechanism
from ..numerics.errors import BLACK_BOX_VALUES
from ..numerics.normal import log1mexp
from ..numerics.shapes import Array, ArrayLike
from ..tradeoff import TradeoffCurve, tradeoff
from .callables import ProfileFunction, refuse_increase, value
from .profile import Profile, refine

_BODY = np.log(0.45)  # log δ above which 1 − δ is asked for
_LAST = 5e-324  # the least double

KINDS = (
    "a mechanism, a composition, a jaxgdp.TradeoffCurve, a profile of jaxgdp.bridge.refine, or a"
    " callable epsilon -> delta"
)


class Logs(NamedTuple):
    """log δ and log(1 − δ), arrays of one shape."""

    log_delta: Array
    log_one_minus_delta: Array


class Sides(NamedTuple):
    """A profile from below and from above; report the upper side."""

    lower: Logs
    upper: Logs


@dataclass
class Source:
    """One profile, read through :meth:`sides`.

    Attributes:
        curve: the trade-off curve, where there is one.
        profile: the statements, where it is known from those.
        function: the callable, where it is nothing else.
        known: ε → δ of every call of the function so far.
    """

    curve: TradeoffCurve | None = None
    profile: Profile | None = None
    function: ProfileFunction | None = None
    known: dict[float, float] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Distinct ε at which the callable was evaluated."""
        return len(self.known)

    def sides(self, epsilon: ArrayLike) -> Sides:
        """log δ and log(1 − δ) from below and from above, at ε ≥ 0 of any shape.

        Both sides of a callable are its own values: an upper bound on the mechanism behind it, and
        exact for the function itself."""
        epsilon = np.asarray(epsilon, float)
        if self.curve is not None:
            return self._of_curve(self.curve, epsilon)
        if self.profile is not None:
            # (rounded up by at most 1e-14)
            delta, rest = self.profile.log_delta(epsilon), self.profile.log_one_minus_delta(epsilon)
            room = 2e-14 * (1.0 + np.where(np.isfinite(rest), np.abs(rest), 0.0))
            return Sides(Logs(delta - 2e-14, np.minimum(rest + room, 0.0)), Logs(delta, rest))
        assert self.function is not None
        for e in np.unique(epsilon):
            if float(e) not in self.known:
                self.known[float(e)] = value(self.function, float(e))
        refuse_increase(np.array(list(self.known)), np.array(list(self.known.values())))
        delta = np.vectorize(lambda e: self.known[float(e)], otypes=[float])(epsilon)
        # (a function is known to its rounding, below every normal double to the next one)
        least = np.maximum(delta * (1.0 - BLACK_BOX_VALUES[0]) - _LAST, 0.0)
        rest = (1.0 - delta) + BLACK_BOX_VALUES[0] * (1.0 - delta)
        with np.errstate(divide="ignore"):
            low = Logs(np.log(least), np.minimum(np.log(rest), 0.0))
            return Sides(low, Logs(np.log(delta), np.log1p(-delta)))

    @staticmethod
    def _of_curve(curve: TradeoffCurve, epsilon: Array) -> Sides:
        """log(1 − δ) is requested only where it has more digits than δ."""
        delta = curve.log_delta(epsilon)
        with np.errstate(divide="ignore"):
            low, high = (np.array(log1mexp(side)) for side in delta)
        body = np.asarray(delta.upper > _BODY)
        if np.any(body) and curve.shape == ():
            rest = curve.log_one_minus_delta(epsilon[body])
            low[body], high[body] = rest.upper, rest.lower
        elif np.any(body):
            rest = curve.log_one_minus_delta(epsilon)
            low, high = rest.upper, rest.lower
        return Sides(Logs(delta.lower, low), Logs(delta.upper, high))

    def limits(self) -> tuple[Any, Any]:
        """μ between which the transformation lies: of Gaussian parts, and one at every rate."""
        if self.curve is None:
            return 0.0, np.inf
        return self.curve.gaussian_part_mu, self.curve.tail_mu


def as_source(source: Any, rtol: float, **settings: Any) -> Source:
    """Anything that has a privacy profile.

    Args:
        source: see ``KINDS``.
        rtol: requested relative width of the curve of a mechanism.
        settings: further ones of :func:`jaxgdp.tradeoff`.

    Raises:
        ValueError: none of these.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, TradeoffCurve):
        return Source(curve=source)
    if isinstance(source, Mechanism | Composition | AccountedBy):
        return Source(curve=tradeoff(as_composition(source), rtol=rtol, **settings))
    if isinstance(source, Profile):
        return Source(profile=source)
    # (loaded late: not every answer needs it)
    from ..calibration import BlackBox

    if isinstance(source, BlackBox):
        return Source(profile=refine(source.epsilons, source.deltas))
    if callable(source):
        return Source(function=source)
    raise ValueError(f"source must be {KINDS}, got {source!r}")
