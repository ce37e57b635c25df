"""Is it Gaussian-DP at all, with which μ, and from which error rate on (Liu et al. 2022, Sec. 3-4).

The tail decides whether (Theorem 3.2), the head with which μ. A head μ that is certified up to ε_h
holds at every FPR from Φ(−μ/2 − ε_h/μ) on, where the Gaussian curve has slope −e^{ε_h}, whatever
the profile does beyond."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from .. import options
from ..bracket import Bracket, plain
from ..mechanisms import Composition
from ..numerics.errors import COMPOSED_MU
from ..numerics.rounding import rounded_outward
from ..numerics.validation import floor_rate
from ..tradeoff import TradeoffCurve, dominating
from .head import Head, fpr_where_it_holds, head
from .profile import Profile, refine
from .source import Source, as_source
from .tail import part_limits, tail_mu

_FIRST = 2.0  # ε up to which a function is measured first
_MOST = 5000.0
_ROUNDS = 12
_POINTS = 513  # statements taken from a function that is no profile
_PROBES = (30.0, 100.0, 300.0, 700.0)  # where a function may have come to 0
_SURE = 1e-290  # a δ above this that is followed by 0 has not been lost to underflow


@dataclass(frozen=True)
class GdpVerdict:
    """Whether something is Gaussian-DP, with brackets of its μ; build it with :func:`identify`.

    Attributes:
        is_gdp: True where some μ holds at every rate, False where none does, None where that cannot
            be known: finitely many values of a function do not determine its tail.
        tail_mu: μ_t = limsup ε/√(−2 log δ(ε)): no smaller μ holds at every rate; ∞ where none does,
            None where it is not known.
        head_mu: bracket of the μ that holds at every FPR from ``fpr_floor`` on (and, by symmetry,
            where both rates are that large); report the upper side. For a function that is no
            profile the lower side is 0: there is no bound from below.
        fpr_floor: smallest FPR at which the upper side of ``head_mu`` holds; 0 where it holds at
            every rate, 1 where it is ∞.
        everywhere: bracket of the least μ that holds at every rate, ∞ where none is known.
        reason: in words.
    """

    is_gdp: bool | None
    tail_mu: float | None
    head_mu: Bracket
    fpr_floor: float
    everywhere: Bracket
    reason: str

    @property
    def claim(self) -> str:
        """The verdict, in one line."""
        upper = float(self.head_mu.upper)
        if not np.isfinite(upper):
            return "no finite mu at any rate"
        shown = rounded_outward(upper, up=True, digits=6)
        if self.fpr_floor == 0.0:
            return f"{shown}-GDP at every rate"
        # (a floor such as 1e-10 is no double, but known to one)
        floor = rounded_outward(self.fpr_floor * (1.0 - 1e-12), up=True, digits=3)
        words = f"{shown}-GDP from FPR {floor} on"
        if np.isfinite(self.everywhere.upper):
            most = rounded_outward(float(self.everywhere.upper), up=True, digits=6)
            words += f", {most}-GDP at every rate"
        elif self.is_gdp is False:
            words += ", no finite mu at every rate"
        return words

    def __str__(self) -> str:
        return f"{self.claim}: {self.reason}"


def identify(
    source: Any, *, fpr_floor: float = options.FPR_FLOOR, rtol: float = options.RTOL
) -> GdpVerdict:
    """Whether a mechanism, or what else has a privacy profile, is Gaussian-DP, with which μ, why.

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ, an upper bound for both orders of the neighbours; scalar.
        fpr_floor: FPR down to which the head μ must hold where no μ holds everywhere, in
            [1e-300, 0.5); a curve has its own.
        rtol: requested relative width of the bracket of the head μ, in [1e-8, 1).

    Raises:
        ValueError: an argument is out of range or batched, or a callable raises, returns no number
            in [0, 1], or increases; with the ε at which it does.

    Example:
        >>> import jaxgdp
        >>> verdict = identify(jaxgdp.Laplace(scale=1.0))
        >>> verdict.is_gdp, verdict.tail_mu, verdict.fpr_floor
        (True, 0.0, 0.0)
        >>> round(float(verdict.head_mu.upper), 4)
        1.0301
        >>> identify(jaxgdp.ApproximateDP(1.0, 1e-6)).is_gdp
        False
    """
    floor = float(floor_rate("fpr_floor", fpr_floor))
    source = as_source(source, rtol, fpr_floor=floor)
    if source.curve is not None:
        return _of_curve(source.curve, rtol)
    if source.profile is not None:
        return _of_profile(source.profile, floor, rtol)
    return _of_function(source, floor, rtol)


def _of_curve(curve: TradeoffCurve, rtol: float) -> GdpVerdict:
    if curve.shape != ():
        raise ValueError(
            f"source must be scalar (shape ()) to be identified, got shape {curve.shape}"
        )
    mechanism, _ = dominating(curve.mechanism, curve.adjacency)
    limit = tail_mu(mechanism)
    found, everywhere = (plain(curve.mu(floor)) for floor in (None, 0.0))
    if not np.isnan(limit):
        # (Theorem 3.3)
        lower = max(everywhere.lower, limit * (1.0 - COMPOSED_MU))
        everywhere = Bracket(min(lower, everywhere.upper), everywhere.upper)
    floor = curve.fpr_floor
    if np.isinf(found.upper):
        floor = 1.0
    elif everywhere.upper <= found.upper * (1.0 + max(rtol, curve.rtol)):
        floor, found = 0.0, Bracket(found.lower, everywhere.upper)
    if np.isnan(limit):
        gdp = True if np.isfinite(everywhere.upper) else None
        return GdpVerdict(gdp, None, found, floor, everywhere, _dominated(mechanism, everywhere))
    gdp = bool(np.isfinite(limit))
    return GdpVerdict(gdp, limit, found, floor, everywhere, _why(curve, mechanism, limit))


def _why(curve: TradeoffCurve, mechanism: Composition, limit: float) -> str:
    """The tail in words."""
    parts = part_limits(mechanism)
    names = lambda wanted: ", ".join(
        dict.fromkeys(type(m).__name__ for m, _, t in parts if wanted(t))
    )
    if np.isinf(limit):
        mass = float(curve.delta(_MOST).upper)
        return (
            f"mass at infinite privacy loss ({names(np.isinf)}): delta does not fall below"
            f" {mass:.3g} however large epsilon is, so mu_t = limsup epsilon / sqrt(-2 log delta)"
            " is infinite"
        )
    if limit == 0.0:
        return "the privacy loss is bounded: delta is 0 from some epsilon on, so mu_t = 0"
    sampled = any(
        t > 0.0 and np.any(np.asarray(getattr(m, "sampling_prob", 1.0)) < 1.0) for m, _, t in parts
    )
    words = (
        f"delta falls like that of a Gaussian mechanism of mu_t = {limit:.6g}"
        f" ({names(lambda t: t > 0.0)})"
    )
    return words + ("; sampling does not help that far out" if sampled else "")


def _dominated(mechanism: Composition, everywhere: Bracket) -> str:
    """Why there is no verdict on the tail."""
    names = ", ".join(
        dict.fromkeys(type(m).__name__ for m, _, t in part_limits(mechanism) if np.isnan(t))
    )
    words = f"only what dominates it is known ({names}), so its own mu_t is not"
    if np.isfinite(everywhere.upper):
        mu = rounded_outward(float(everywhere.upper), up=True, digits=6)
        words += f"; a Gaussian curve of mu = {mu} lies below it at every rate"
    return words


def _until(measure: Callable[[float], Head], floor: float, epsilon: float, most: float) -> Head:
    """The head on longer and longer ranges of ε, until μ holds from the floor, or to ``most``."""
    depth = -float(ndtri(floor)) + 1e-6
    found = measure(min(epsilon, most))
    for _ in range(_ROUNDS):
        upper = float(found.mu.upper)
        if found.fpr_floor <= floor or found.epsilon_max >= most or not np.isfinite(upper):
            break
        # Φ(−μ/2 − ε/μ) = floor
        enough = 1.05 * upper * (depth - 0.5 * upper)
        found = measure(min(max(enough, 1.2 * found.epsilon_max), most))
    return found


def _of_profile(profile: Profile, floor: float, rtol: float) -> GdpVerdict:
    last = float(profile.epsilon[-1])
    if profile.infinite_mass == 0.0:
        found = head(profile, last, rtol)
        why = f"delta is 0 from epsilon = {last:g} on, so mu_t = 0"
        return GdpVerdict(True, 0.0, found.mu, 0.0, found.mu, why)
    nowhere = Bracket(np.inf, np.inf)
    why = (
        f"the statements leave a delta of {profile.infinite_mass:g} however large epsilon is, so"
        " mu_t is infinite"
    )
    if profile.infinite_mass == 1.0:
        return GdpVerdict(False, np.inf, nowhere, 1.0, nowhere, "delta = 1 says nothing")
    found = _until(lambda most: head(profile, most, rtol), floor, max(last, _FIRST), 1e6)
    return GdpVerdict(False, np.inf, found.mu, found.fpr_floor, nowhere, why)


def _of_function(source: Source, floor: float, rtol: float) -> GdpVerdict:
    zero = _zero(source)
    if zero is not None:
        found = _head_of_function(source, zero, rtol)
        why = (
            f"the function is 0 from epsilon = {zero:.6g} on, which is pure differential privacy,"
            " so mu_t = 0"
        )
        return GdpVerdict(True, 0.0, found.mu, 0.0, found.mu, why + _how(found))
    found = _until(lambda most: _head_of_function(source, most, rtol), floor, _FIRST, _PROBES[-1])
    everywhere = Bracket(0.0 if np.isinf(found.mu.lower) else found.mu.lower, np.inf)
    some = [(e, d) for e, d in source.known.items() if _SURE < d < 1.0]
    told = ""
    if some:
        e, d = max(some)
        ratio = f"epsilon / sqrt(-2 log delta) is {e / np.sqrt(-2.0 * np.log(d)):.4g}"
        told = f"; at epsilon = {e:g} delta is {d:.3g}, and {ratio}"
    why = (
        f"known up to epsilon = {found.epsilon_max:g} only: a finite number of values does not tell"
        f" the tail{told}"
    )
    return GdpVerdict(None, None, found.mu, found.fpr_floor, everywhere, why + _how(found))


def _how(found: Head) -> str:
    why = "; the function is no profile, so what it implies (jaxgdp.bridge.refine) was measured"
    return "" if found.convex else why


def _head_of_function(source: Source, most: float, rtol: float) -> Head:
    """The head of the function, or of what its values imply where they are those of no profile."""
    found = head(source, most, rtol)
    if found.convex and np.isfinite(found.mu.upper):
        return found
    near = most * np.linspace(0.0, 1.0, 65) ** 4
    source.sides(np.union1d(np.linspace(0.0, most, _POINTS), near))
    known = sorted((e, d) for e, d in source.known.items() if e <= most)
    implied = head(refine(*np.array(known).T), most, rtol)
    upper = implied.mu.upper
    return replace(
        implied,
        mu=Bracket(0.0, upper),
        convex=False,
        fpr_floor=fpr_where_it_holds(upper, most),
        evaluations=source.calls,
    )


def _zero(source: Source) -> float | None:
    """The ε from which on the function returns δ = 0, where that is no underflow; it is evaluated
    carefully, so that an error far out is none.
    """
    source.sides(np.array([0.0, _FIRST]))
    known = lambda: sorted(source.known.items())
    for epsilon in _PROBES:
        if any(d == 0.0 for _, d in known()):
            break
        with contextlib.suppress(ValueError):
            source.sides(np.array([epsilon]))
    right = next((e for e, d in known() if d == 0.0), None)
    if right is None or right == 0.0:
        return right
    left = max(e for e, d in known() if d > 0.0)
    for _ in range(60):
        middle = 0.5 * (left + right)
        if not left < middle < right or right - left <= 1e-9 * right:
            break
        value = float(np.exp(source.sides(np.array([middle])).upper.log_delta[0]))
        left, right = (middle, right) if value > 0.0 else (left, middle)
    return right if source.known[left] > _SURE else None
