"""What a privacy profile can be known from: a mechanism, a composition, a trade-off curve,
statements, or a callable ε ↦ δ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..mechanisms import Composition, as_composition
from ..mechanisms.base import AccountedBy, Mechanism
from ..numerics.errors import BLACK_BOX_VALUES
from ..numerics.normal import log1mexp
from ..tradeoff import TradeoffCurve, tradeoff
from .profile import Profile, refine

_BODY = np.log(0.45)  # log δ above which 1 − δ is asked for
_LAST = 5e-324  # the least double
_RISE = (1e-15, 1e-12)  # by which rounding may make a function increase, absolute and relative

KINDS = (
    "a mechanism, a composition, a jaxgdp.TradeoffCurve, a profile of jaxgdp.bridge.refine, or a"
    " callable epsilon -> delta"
)


def asked(function, epsilon) -> np.ndarray:
    """What a callable ε ↦ δ says at every ε, one call each.

    Raises:
        ValueError: it raised, or returned what is no δ; says what and at which ε.
    """
    found = np.empty(np.shape(epsilon))
    for index, e in np.ndenumerate(np.asarray(epsilon, float)):
        found[index] = _one(function, float(e))
    return found


def _one(function, epsilon: float) -> float:
    try:
        answer = function(epsilon)
    except Exception as error:
        raise ValueError(
            f"the profile raised {type(error).__name__} at epsilon = {epsilon!r}: {error}"
        ) from error
    try:
        value = float(np.squeeze(np.asarray(answer, float)))
    except (TypeError, ValueError):
        raise ValueError(
            f"the profile must return a number, got {answer!r} at epsilon = {epsilon!r}"
        ) from None
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"the profile must be in [0, 1], got {value!r} at epsilon = {epsilon!r}")
    return value


def refuse_increase(epsilon, delta) -> None:
    """Refuse values that increase with ε by more than rounding.

    Raises:
        ValueError: they do; names the two ε and δ.
    """
    order = np.argsort(epsilon, kind="stable")
    e, d = np.asarray(epsilon, float)[order], np.asarray(delta, float)[order]
    least = np.minimum.accumulate(d)
    rises = d > least * (1.0 + _RISE[1]) + _RISE[0]
    if np.any(rises):
        i = int(np.argmax(rises))
        before = int(np.argmin(d[:i]))
        raise ValueError(
            f"the profile must not increase, got {float(d[before])!r} at epsilon ="
            f" {float(e[before])!r} and {float(d[i])!r} at epsilon = {float(e[i])!r}"
        )


@dataclass
class Source:
    """One profile, asked through :meth:`sides`.

    Attributes:
        curve: the trade-off curve, where there is one. profile: the statements, where it is known
            from those. function: the callable, where it is nothing else.
        known: δ by ε of every call of the function so far.
    """

    curve: TradeoffCurve | None = None
    profile: Profile | None = None
    function: Any = None
    known: dict[float, float] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Distinct ε at which the callable was asked."""
        return len(self.known)

    def sides(self, epsilon):
        """((log δ, log(1 − δ)) from below, the same from above) at ε ≥ 0 of any shape.

        Of a callable both are what it says: an upper bound on the mechanism behind it, and exactly
        what the function itself is."""
        epsilon = np.asarray(epsilon, float)
        if self.curve is not None:
            return self._of_curve(self.curve, epsilon)
        if self.profile is not None:
            # (rounded up by at most 1e-14)
            delta, rest = self.profile.log_delta(epsilon), self.profile.log_rest(epsilon)
            room = 2e-14 * (1.0 + np.where(np.isfinite(rest), np.abs(rest), 0.0))
            return (delta - 2e-14, np.minimum(rest + room, 0.0)), (delta, rest)
        for e in np.unique(epsilon):
            if float(e) not in self.known:
                self.known[float(e)] = _one(self.function, float(e))
        refuse_increase(np.array(list(self.known)), np.array(list(self.known.values())))
        delta = np.vectorize(lambda e: self.known[float(e)], otypes=[float])(epsilon)
        # (a function is known to its rounding, below every normal double to the next one)
        least = np.maximum(delta * (1.0 - BLACK_BOX_VALUES[0]) - _LAST, 0.0)
        rest = (1.0 - delta) + BLACK_BOX_VALUES[0] * (1.0 - delta)
        with np.errstate(divide="ignore"):
            return (np.log(least), np.minimum(np.log(rest), 0.0)), (np.log(delta), np.log1p(-delta))

    @staticmethod
    def _of_curve(curve: TradeoffCurve, epsilon):
        """log(1 − δ) is asked for only where it has more digits than δ."""
        delta = curve.log_delta(epsilon)
        with np.errstate(divide="ignore"):
            low, high = (np.array(log1mexp(side)) for side in delta)
        body = np.asarray(delta.upper > _BODY)
        if np.any(body) and curve.shape == ():
            rest = curve.log_rest(epsilon[body])
            low[body], high[body] = rest.upper, rest.lower
        elif np.any(body):
            rest = curve.log_rest(epsilon)
            low, high = rest.upper, rest.lower
        return (delta.lower, low), (delta.upper, high)

    def limits(self):
        """μ between which the transformation lies whatever ε: those of exactly Gaussian parts, and
        one that holds at every rate.
        """
        if self.curve is None:
            return 0.0, np.inf
        return self.curve.shown_mu, self.curve.tail_mu


def as_source(source, rtol: float, **settings) -> Source:
    """Anything that has a privacy profile.

    Args:
        source: see ``KINDS``. rtol: relative width asked of the curve of a mechanism. settings:
            further ones of :func:`jaxgdp.tradeoff`.

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
