"""Clip and rectify: makes any mechanism Gaussian-DP by post-processing (Liu et al. 2022, Thm. 4.4).

Clipping merges the most revealing outputs: those of the largest privacy losses, with P-mass α_c in
all, and those of the smallest ones, with Q-mass α_c. That replaces the trade-off curve f by the
chord from (0, 1) to (α_c, f(α_c)), and by its mirror image at the other end. No loss is left above
log((1 − f(α_c))/α_c), the slope of that chord: the result is pure ε-DP and so GDP at every rate,
though there may have been mass at infinity, and its profile is what δ(ε) and (log((1 −
f(α_c))/α_c), 0) together imply.

Rectifying replaces the output with probability r by a fair coin between both ends. Both ends then
occur with probability at least r/2 whatever the data, δ(ε) becomes at most (1 − r)·δ(ε), and
clipped outputs that only one of two neighbours can have are bounded even where α_c = 0: their ratio
is at most ((1 − r)·δ_∞ + r/2)/(r/2).

The set of outputs that is clipped must not depend on the data: bounds on a numeric output, known
beforehand. And it has to be extreme for every pair of neighbours: whichever two these are, the
merged outputs have the largest losses of that pair (or the smallest ones), and a P-mass of at least
α_c. It is so where neighbours move the law along the line, as noise on a number does that has a
log-concave density, and the outputs beyond a bound are merged; for other mechanisms whoever clips
has to show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..adjacency import Adjacency
from ..bracket import Bracket
from ..mechanisms import Composition
from ..mechanisms.base import AccountedBy, Mechanism
from ..numerics.errors import SPACING
from ..numerics.shapes import Array
from ..numerics.validation import checked, finite, positive
from ..tradeoff import TradeoffCurve, dominating
from .head import RTOL, head
from .profile import Profile, refine
from .source import Source, as_source

_POINTS = 129
ROOM = 64.0 * SPACING


@dataclass(frozen=True)
class Amplified(AccountedBy):
    """A mechanism after pre- or post-processing; taken wherever a mechanism is.

    Attributes:
        mechanism: that has the amplified profile.
        profile: an upper bound on the true profile at every ε.
        mu: bracket of the μ of ``mechanism`` at every rate; report the upper side. ∞ where none is
            enough.
        changed: probability that an output is not what it would have been, at most.
    """

    mechanism: Mechanism
    profile: Profile
    mu: Bracket
    changed: float


def clip_and_rectify(
    source: Any, fpr: float, rate: float = 0.0, *, rtol: float = RTOL
) -> Amplified:
    """The mechanism with its most revealing outputs merged, rectified (Liu et al. 2022, Thm. 4.4).

    It assumes that the merged outputs are the most revealing ones for *every* pair of neighbours:
    true of bounds on a number to which noise of a log-concave density is added, not of any
    mechanism.

    Args:
        source: a mechanism, a composition, or a trade-off curve; scalar, for both orders of the
            neighbours.
        fpr: α_c in [0, 0.25): P-mass of the outputs that are merged at the upper end, and Q-mass of
            those at the lower end; 0 merges only outputs that one of the two neighbours cannot
            have. :func:`clipped_fpr` computes it from bounds on a numeric output.
        rate: r in [0, 1): probability of replacing the output by one of both ends, chosen by a fair
            coin.
        rtol: requested relative width of the bracket of μ, in [1e-8, 1).

    Returns:
        An :class:`Amplified`, μ-GDP at every rate.

    Raises:
        ValueError: an argument is out of range, nothing is clipped and nothing rectified, or α_c is
            0 where finite losses are unbounded.

    Example:
        >>> import jaxgdp
        >>> mended = clip_and_rectify(jaxgdp.ApproximateDP(1.0, 1e-6), fpr=1e-4)
        >>> jaxgdp.bridge.identify(mended).is_gdp, round(mended.mu.upper, 3)
        (True, 1.232)
    """
    fpr = float(checked("fpr", fpr, "in [0, 0.25)", lambda a: (a >= 0.0) & (a < 0.25)))
    rate = float(checked("rate", rate, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))
    if fpr == 0.0 and rate == 0.0:
        raise ValueError(
            "fpr or rate must be above 0, else nothing is clipped and nothing rectified"
        )
    known = as_source(source, 0.5 * rtol)
    curve = curve_of_both_orders(known, [each for each in Adjacency if each.symmetric])
    tpr = min(float(curve.tpr(fpr).upper) * (1.0 + ROOM), 1.0)
    if fpr > 0.0:
        largest = np.log(tpr) - np.log(fpr)
    else:
        low, high = _loss_bounds(dominating(curve.mechanism, curve.adjacency)[0])
        largest = max(-low, high, np.log1p(2.0 * (1.0 - rate) * tpr / rate))
        if not np.isfinite(largest):
            raise ValueError(
                "fpr must be above 0 where the finite privacy losses are unbounded, got 0"
            )
    largest = float(largest) * (1.0 + ROOM) + ROOM
    epsilon, delta = points(known, largest, rtol)
    profile = refine(
        np.append(epsilon, largest), np.append(delta * (1.0 - rate) * (1.0 + ROOM), 0.0)
    )
    changed = min(((1.0 - rate) * (fpr + tpr) + rate) * (1.0 + ROOM), 1.0)
    return Amplified(profile.mechanism, profile, head(profile, largest, rtol).mu, changed)


def curve_of_both_orders(known: Source, adjacencies: Iterable[str]) -> TradeoffCurve:
    """The scalar curve of a source, for one of some neighbouring relations.

    Raises:
        ValueError: there is none, or it is for another relation.
    """
    curve = known.curve
    if curve is None or curve.shape != ():
        raise ValueError("source must be a scalar mechanism, composition or trade-off curve")
    if curve.adjacency not in adjacencies:
        raise ValueError(
            f"adjacency of the curve must be one of {', '.join(adjacencies)}, got"
            f" {curve.adjacency!r}"
        )
    return curve


def points(known: Source, most: float, rtol: float) -> tuple[Array, Array]:
    """ε and upper bounds on δ: where they decide, and evenly between."""
    found = head(known, most, rtol)
    even = np.linspace(0.0, most, _POINTS)
    log_delta = known.sides(even).upper.log_delta
    epsilon = np.concatenate([found.profile[0], even])
    delta = np.concatenate([found.profile[1], np.exp(log_delta)]) * (1.0 + ROOM * 16.0)
    return epsilon, np.minimum(delta, 1.0)


def _loss_bounds(composition: Composition) -> tuple[float, float]:
    """Smallest and largest finite loss of a composition."""
    low = high = 0.0
    for mechanism, uses in zip(composition.mechanisms, composition.counts, strict=True):
        ends = mechanism.canonical().loss_bounds()
        low, high = low + float(uses) * float(ends[0]), high + float(uses) * float(ends[1])
    return low, high


def clipped_fpr(
    mechanism: Mechanism,
    lower: float,
    upper: float,
    query: tuple[float, float],
    sensitivity: float = 1.0,
) -> float:
    """α_c of clipping a noisy answer to [lower, upper], for a query known to lie in a range.

    The noise is that of the mechanism times the sensitivity. The smallest P-mass behind a bound is
    that of the answer farthest from it.

    Args:
        mechanism: a scalar one whose noise has a known law (``noise_tail``): ``Laplace`` or
            ``Gaussian``.
        lower, upper: bounds on the output; finite.
        query: (least, largest) true answer on any data.
        sensitivity: > 0, by how much neighbours' answers differ at most.

    Returns:
        α_c, to be passed to :func:`clip_and_rectify`, rounded down.

    Raises:
        ValueError: another mechanism, or bounds or a range that are not in order.

    Example:
        >>> import jaxgdp
        >>> round(clipped_fpr(jaxgdp.Laplace(1.0), lower=-5.0, upper=15.0, query=(0.0, 10.0)), 10)
        1.53e-07
    """
    lower, upper = float(finite("lower", lower)), float(finite("upper", upper))
    unit = float(positive("sensitivity", sensitivity))
    least, most = (float(finite("query", end)) for end in query)
    if not (lower < upper and least <= most):
        raise ValueError(
            f"bounds and range must be in order, got [{lower:g}, {upper:g}] and [{least:g},"
            f" {most:g}]"
        )
    far = max(upper - least, most - lower) / unit
    if not isinstance(mechanism, Mechanism) or mechanism.shape != ():
        raise ValueError(f"mechanism must be a scalar mechanism, got {mechanism!r}")
    return float(mechanism.noise_tail(far)) * (1.0 - 1e-9)


def clip_and_rectify_outputs(
    values: Any, lower: float, upper: float, rate: float = 0.0, *, rng: Any
) -> Array:
    """Outputs clipped to [lower, upper], each replaced with probability r by one of both ends.

    NaN is replaced by the upper end, so that a failure reveals no more than an output beyond that
    end.

    Args:
        values: outputs of the mechanism, of any shape; a JAX array where ``rng`` is a JAX key,
            which may be traced.
        lower, upper: bounds that do not depend on the data.
        rate: r in [0, 1).
        rng: a ``numpy.random.Generator``, or a JAX key used for nothing else.

    Returns:
        An array of the shape of ``values``, of NumPy or of JAX as ``rng`` is.

    Raises:
        ValueError: bounds that are not in order, or a rate out of range.

    Example:
        >>> rng, outputs = np.random.default_rng(0), [-3.0, 0.2, float("nan")]
        >>> clip_and_rectify_outputs(outputs, -1.0, 1.0, rng=rng).tolist()
        [-1.0, 0.2, 1.0]
    """
    lower, upper = float(finite("lower", lower)), float(finite("upper", upper))
    rate = float(checked("rate", rate, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))
    if not lower < upper:
        raise ValueError(f"lower must be below upper, got {lower:g} and {upper:g}")
    if isinstance(rng, np.random.Generator):
        values = np.asarray(values, float)
        chance, coin = rng.random(values.shape), rng.random(values.shape)
        numpy: Any = np
    else:
        import jax
        import jax.numpy as numpy

        values = numpy.asarray(values)
        keys = jax.random.split(rng)
        chance, coin = (jax.random.uniform(key, values.shape) for key in keys)
    clipped = numpy.clip(numpy.where(numpy.isnan(values), upper, values), lower, upper)
    return numpy.where(chance < rate, numpy.where(coin < 0.5, lower, upper), clipped)
