"""Where the curve of a composition is looked at that is answered by its moments alone: points of
one step, thresholds and tilts; and which compositions are.

Nothing here is part of a certificate: other points give a wider bracket, never a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...mechanisms.base import Mechanism
from ...numerics import batching
from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float
from ..certify import closed_forms
from ..certify.counted_jumps import MOST_JUMPS, MOST_LOCATED, Jumps, SampledRun
from ..certify.discrete_pairs import DiscretePair
from ..certify.normal_curve import Thresholds
from ..certify.tilted_moments import Parts, growth_of
from .cumulants import composed, quadrature

_AT_ONCE = 2**19  # numbers in an array
_QUADRATURES = 64  # laws that are worked out at once
_COARSE = 33  # tilts between which the depth of thresholds is interpolated
# standard deviations between a threshold that others are close about and the nearest of these, and
# one of so many that are equally far apart beside them
_CLOSEST, _EVEN = 1e-3, 4
# parts of the width promised, that corners between thresholds have at least, and at most, beyond
# what is achieved; thresholds between two of a first curve, and of a half-curve, at most
_OF_WIDTH = (0.3, 0.7)
_MOST_BETWEEN, _MOST_THRESHOLDS = 64.0, 3000.0
_ROOM = 0.2  # standard deviations beyond the rates that are asked for
_MOST_DEPTH = 38.6  # standard deviations: rates below have no doubles
_LARGEST_TILT = 1e15
FEWEST_USES = 1e3  # below which lattices are small unless uses hide hardly anything
MANY_USES = 1e7  # from which on moments are enough for most numbers
MOST_USES = 1e11  # from which on the rounding of that many uses is all that a lattice would show
# of jumps: numbers of them and places of each that are looked at, and the noise up to which a
# single one is told from none as a rule, and almost for certain
_JUMPS, _PLACES, _LITTLE_NOISE, HARDLY_ANY_NOISE = 24, 97, 0.5, 0.12
_BETWEEN, _BEYOND = 49, 17  # thresholds about an ε that is known so far, and beyond
_NO_NOISE = 0.06  # up to which it is told which steps they are, however many
_FEW_JUMPS = 40.0  # up to which numbers of them are looked at more closely
# the noise up to which tests by which steps they are come near to what there is, and how many
_TOLD, _LOCATED = 0.2, 512
# −log of the error rates in the middle of the curve, beyond which limit theorems are asked first
# for more than the usual accuracy, and beyond which these rates decide nothing
_WEAK, _FAR = 100.0, 2e4
# standard deviations between the middle and where the FNR is one half, from which on a lattice has
# as many tilts as there may be
_LONG = 96.0


class Reach(NamedTuple):
    """How far out a half-curve is wanted: the depths (in standard deviations) of the FPR floor and
    of the smallest TPR, None for none, and thresholds that have to be among those looked at."""

    floor: float
    deepest: float | None
    thresholds: tuple[float, ...] = ()

    @property
    def depth(self) -> float:
        """−log of the smallest rate that matters."""
        return 0.5 * min(max(self.floor, self.deepest or 0.0), _MOST_DEPTH) ** 2 + 3.0


def loss_points(mechanism: Mechanism, depth: float, number: int) -> Float[np.ndarray, " points"]:
    """Increasing losses that cut one use of a mechanism into cells of about equal importance.

    Args:
        mechanism: unbatched.
        depth: −log of the mass that may lie beyond them.
        number: how many there are, at most.
    """
    with np.errstate(all="ignore"):
        nodes = np.sort(np.asarray(mechanism.loss_nodes(depth)[0], float))
    nodes = nodes[np.isfinite(nodes)]
    if len(nodes) == 0:
        # (tables of next to nothing beside their infinities: any points cut, and some of them do)
        nodes = np.zeros(1)
    between = np.linspace(0.0, len(nodes) - 1.0, max(number, 2))
    return np.unique(np.interp(between, np.arange(len(nodes)), nodes))


def jump_thresholds(jumps: Jumps) -> Float[np.ndarray, " thresholds"]:
    """Thresholds about the losses of so many steps with the record, from 0 on."""
    run = jumps.above
    mean = run.p * run.steps
    low = max(mean - 8.0 * np.sqrt(mean), 1.0)
    most = max(min(run.steps, mean + 8.0 * np.sqrt(mean) + 12.0), 1.0)
    fewer = 2 if mean > _FEW_JUMPS else 1
    number = np.unique(np.rint(np.linspace(low, most, _JUMPS // fewer)))
    deviations = np.sqrt(number) / run.sigma
    each = np.linspace(-8.5, 8.5, _PLACES // fewer)[:, None]
    places = 0.5 * deviations**2 + each * deviations
    small = np.geomspace(1e-6, 1.0, _PLACES)
    found = np.unique(np.concatenate([[0.0], small, places[places > 0.0]]))
    return found[np.concatenate([[True], np.diff(found) > 1e-12 * found[1:]])]


def may_be_located(jumps: Jumps) -> bool:
    """Whether which steps had the record is told from others, nearly, however many they are."""
    run = jumps.nearest
    return run.sigma <= _TOLD and run.p < 1.0 and run.p * run.steps <= MOST_LOCATED


def located_thresholds(jumps: Jumps) -> Float[np.ndarray, " thresholds"]:
    """Thresholds from 0 to about as deep as double precision goes, for tests by which steps had the
    record: from the losses of as few of them as there ever are to those of as many, as a rule.
    """
    run = jumps.nearest
    mean, spread = run.p * run.steps, 8.5 * np.sqrt(run.p * run.steps)
    ends = []
    for number, side in ((max(mean - spread, 0.0), -8.5), (min(mean + spread, run.steps), 8.5)):
        deviation = np.sqrt(number) / run.sigma
        shift = number * run.log_p + (run.steps - number) * run.log_q
        ends.append(max(0.5 * deviation**2 + shift + side * deviation, 0.0))
    return np.unique(np.append(0.0, np.linspace(*ends, _LOCATED)))


def about_epsilon(low: float, high: float) -> Float[np.ndarray, " thresholds"]:
    """Thresholds between two bounds on an ε, and a few beyond, where tests are that show it.

    Method: docs/method/limit.md#located-jumps
    """
    if not (np.isfinite(high) and high > 0.0):
        return np.zeros(0)
    between = np.linspace(low, high, _BETWEEN)
    return np.concatenate([between, high + np.geomspace(0.01, 20.0, _BEYOND)])


def jump_places(run: SampledRun) -> Float[np.ndarray, " places"]:
    """Outputs, in deviations of the noise, that tell a step with the record from others."""
    return np.linspace(0.0, min(1.0 / run.sigma + 4.0, _MOST_DEPTH), _PLACES)


def may_have_jumps(jumps: Jumps) -> bool:
    """Whether single steps with the record are told from others, nearly."""
    run = jumps.nearest
    return run.sigma <= _LITTLE_NOISE and run.p * run.steps <= MOST_JUMPS


def jumps_tell(jumps: Jumps) -> bool:
    """Whether they are told from others so surely that nothing else counts."""
    run = jumps.nearest
    few = run.p * run.steps <= _FEW_JUMPS and run.sigma <= HARDLY_ANY_NOISE
    return run.p < 1.0 and (few or run.sigma <= _NO_NOISE) and may_have_jumps(jumps)


def may_be_weak(
    groups: tuple,
) -> tuple[Bool[np.ndarray, " settings"], Bool[np.ndarray, " settings"]]:
    """Settings of a batch for which it is worth asking whether they are ``weak``, and whether they
    are ``far`` from private though few: their closed form does not exclude it, and nothing lies at
    infinity, which lattices see exactly."""
    own = lambda stacked: closed_forms.of_each(lambda m: m.tail_precision(), stacked)
    with np.errstate(all="ignore"):
        bound = sum(np.sum(count * own(mechanism), axis=-1) for mechanism, count in groups)
    far = (bound >= 8.0 * _FAR) & (bound < np.inf)
    return np.asarray(bound >= 8.0 * _WEAK), np.asarray(far)


class Weakness(NamedTuple):
    """How small both error rates in the middle of the curve of a composition are.

    Attributes:
        weak: so small that limit theorems say where its other rates lie.
        far: so small that nobody needs to know more than how small.
        long: weak, and the curve between them and the other order's rates so long that a lattice
            has many tilts.
    """

    weak: Bool[Array, " settings"]
    far: Bool[Array, " settings"]
    long: Bool[Array, " settings"]


def weakness(groups: tuple) -> Weakness:
    """How far from private each of some compositions is.

    Args:
        groups: of settings.

    Method: docs/method/limit.md#long-runs
    """

    def depths(groups: tuple) -> Array:
        count = xp.concatenate([count for _, count in groups])
        loss = quadrature(groups, xp.full(count.shape, 30.0), np.array([False]))
        middle = -composed(loss, np.array([0.5])).value[0]
        return xp.stack([middle, composed(loss, np.array([1.0])).mean[0]])

    with np.errstate(all="ignore"):
        middle, end = batching.run(depths, (groups,), _QUADRATURES).T
        length = np.sqrt(2.0 * end) - np.sqrt(2.0 * middle)
    weak = middle > _WEAK
    return Weakness(weak, middle > _FAR, weak & (length > _LONG))


class _Law:
    """Moments of one use of a pair at tilts: those of ``tilted_moments`` without their errors."""

    def __init__(self, pair: DiscretePair):
        loss, p = pair.loss, np.exp(pair.log_p)
        self.loss, self.log_p, self.p, self.p_minus = loss, pair.log_p, p, pair.p_minus
        self.beyond = pair.p_minus - pair.q_plus
        growth = np.where(
            np.abs(loss) < 1.0,
            p * np.expm1(np.clip(loss, -1.0, 1.0)),
            np.exp(pair.log_p + loss) - p,
        )
        self.growth, self.mean = float(np.sum(growth)), float(np.sum(p * loss - growth))

    def at(self, s: Array) -> Array:
        """Log moment, mean and variance, shape (3, tilts)."""
        exponent = s[:, None] * self.loss
        more = growth_of(self.log_p, self.p, exponent)
        less_one = np.sum(more, axis=-1) - s * self.growth - self.p_minus + s * self.beyond
        near = np.isfinite(less_one) & (less_one > -0.5)
        found = np.empty((3, len(s)))
        moment = 1.0 + less_one
        mean = (xp.matmul(more, self.loss) + self.mean + self.beyond) / moment
        square = np.sum((more + self.p) * (self.loss - mean[:, None]) ** 2, axis=-1)
        found[:] = np.log1p(less_one), mean, square / moment
        if not np.all(near):
            found[:, ~near] = self._far(exponent[~near])
        return found

    def _far(self, exponent: Array) -> tuple[Array, Array, Array]:
        exponent = self.log_p + exponent
        top = np.max(exponent, axis=-1)
        weight = np.exp(exponent - top[:, None])
        total = np.sum(weight, axis=-1)
        mean = xp.matmul(weight, self.loss) / total
        square = np.sum(weight * (self.loss - mean[:, None]) ** 2, axis=-1) / total
        return top + np.log(total), mean, square


class _Moments:
    """log moment, mean and deviation of a composition at tilts, and depths of rates."""

    def __init__(self, parts: Parts):
        self.laws = [(_Law(pair), uses) for pair, uses in parts.pairs]
        self.precision = parts.precision

    def at(self, s: Array) -> Array:
        """Log moment, mean and variance at tilts, shape (3, tilts)."""
        rows = max(1, _AT_ONCE // max((len(law.loss) for law, _ in self.laws), default=1))
        parts = [self._some(s[i : i + rows]) for i in range(0, max(len(s), 1), rows)]
        return np.concatenate(parts, axis=-1)

    def _some(self, s: Array) -> Array:
        precision = self.precision + 0.0 * s
        found = np.stack([0.5 * s * (s - 1.0) * precision, (s - 0.5) * precision, precision])
        for law, uses in self.laws:
            found += uses * law.at(s)
        return found

    def one(self, s: float) -> tuple[float, float, float]:
        """The same at one tilt."""
        value, mean, variance = self._some(np.array([s]))[:, 0].tolist()
        return value, mean, variance

    def mean(self, s: float) -> float:
        return self.one(s)[1]

    def step(self, s: float) -> float:
        """How far a tilt moves the mean by a standard deviation."""
        _, mean, variance = self.one(s)
        return 1.0 / max(np.sqrt(variance), 1e-9 * abs(mean), 1e-15)

    def depths(self, s: float) -> tuple[float, float]:
        """Of the FPR, and of the TPR (negative where that is above one half)."""
        value, mean, _ = self.one(s)
        fpr = np.sqrt(max(2.0 * (s * mean - value), 0.0))
        tpr = np.sqrt(max(2.0 * ((s - 1.0) * mean - value), 0.0))
        return float(fpr), float(np.copysign(tpr, s - 1.0))


def _first(rises: Callable[[float], float], low: float, high: float) -> float:
    """About the number between two from which on something that rises is not negative."""
    # (loaded where it is used: it takes as long as all else)
    from scipy.optimize import root_scalar

    if rises(low) >= 0.0:
        return low
    if not rises(high) > 0.0:
        return high
    found = root_scalar(rises, bracket=(low, high), xtol=1e-300, rtol=1e-12, maxiter=60)
    return float(found.root)


def _up_to(rises: Callable[[float], float], start: float, step: float) -> float:
    """A number beyond ``start`` at which it is not negative, or as far as goes."""
    while not rises(start + step) >= 0.0 and 0.0 < step < _LARGEST_TILT:
        step *= 2.0
    return start + step


def depth_at(parts: Parts, threshold: float) -> float:
    """−log of about the TPR at a threshold; 0 where it is more than one half."""
    if not 0.0 < threshold < parts.largest():
        return 0.0
    moments = _Moments(parts)
    past = lambda s: moments.mean(s) - threshold
    if past(1.0) >= 0.0:
        return 0.0
    tilt = _first(past, 1.0, _up_to(past, 1.0, moments.step(1.0)))
    return 0.5 * min(moments.depths(tilt)[1], _MOST_DEPTH) ** 2 + 3.0


def thresholds(parts: Parts, reach: Reach, number: int) -> Thresholds:
    """Thresholds of a half-curve from 0 to as deep as is asked, about equally far apart in standard
    deviations, each with the tilt that has its mean there.

    Where privacy is so weak that the middle of the curve lies thousands of standard deviations
    before the rates that are asked for, they are closer the closer they are to the floor of the
    FNR, and a third of them lie beyond.

    Method: docs/method/limit.md#long-runs
    """
    moments = _Moments(parts)
    start = _first(moments.mean, 1e-4, 1.0 - 1e-9)

    def enough(s: float) -> float:
        fpr, tpr = moments.depths(s)
        needed = -reach.floor if reach.deepest is None else min(reach.deepest, _MOST_DEPTH)
        return min(fpr - min(reach.floor, _MOST_DEPTH), tpr - needed) - _ROOM

    end = _first(enough, start, _up_to(enough, start, moments.step(start)))
    inside = [t for t in reach.thresholds if 0.0 < t < parts.largest()]
    for t in inside:
        past = lambda s: moments.mean(s) - t  # noqa: B023
        if past(end) < 0.0:
            end = _first(past, end, _up_to(past, end, end - start))
    at = lambda s: moments.depths(s)[1] + reach.floor
    if at(start) >= -1.0:
        tilts = _spread(moments, start, end, number)
    else:
        # (there μ is as large as anywhere: what the middle of the curve has is less, as a rule)
        floor = _first(at, start, end)
        few = 2 * number // 3
        tilts = np.concatenate(
            [
                _crowded(moments, start, floor, few),
                _crowded(moments, floor, end, number - few, from_first=True),
            ]
        )
    tilts = np.append(tilts, end + 0.3 * moments.step(end))
    return _at(moments, tilts, inside)


def with_more(parts: Parts, at: Thresholds, more: Float[np.ndarray, " more"]) -> Thresholds:
    """Thresholds with about so many ``more`` between the first and the last of them, whose tilts
    lie between those that are known.
    """
    inside = more[(more > at.loss[0]) & (more < at.loss[-1])]
    tilts = np.interp(inside, at.loss, at.tilt)
    return _at(_Moments(parts), np.unique(np.concatenate([at.tilt, tilts])), [])


def between(
    ends: Float[np.ndarray, " ends"],
    above: Float[np.ndarray, " gaps"],
    below: Float[np.ndarray, " ends"],
    known: float,
    rtol: float,
) -> Float[np.ndarray, " thresholds"]:
    """Thresholds of a half-curve, as many more between two of them as a number that is the largest
    of all rates takes there: a corner has as much more of it as its thresholds are apart.

    Args:
        ends: thresholds.
        above: about the number that the corner between each two of them has, −∞ for none.
        below: about what is achieved at each, −∞ where that is not known.
        known: what is achieved anywhere.
        rtol: requested relative accuracy.

    Method: docs/method/limit.md#long-runs
    """
    width = rtol * known
    there = np.minimum(np.maximum(below[:-1], below[1:]), known)
    there = np.where(there > -np.inf, there, known)
    room = np.maximum(known + _OF_WIDTH[1] * width - there, _OF_WIDTH[0] * width)
    some = np.isfinite(above) & np.isfinite(ends[1:]) & (above > known + _OF_WIDTH[1] * width)
    number = np.ceil(np.where(some, above - there, 0.0) / room)
    # (what overflows tells nothing of how many it takes)
    number = np.clip(np.where(np.isnan(number), 1.0, number), 1.0, _MOST_BETWEEN)
    # (all of them fewer, where they are too many)
    number = np.ceil(number * min(1.0, _MOST_THRESHOLDS / np.sum(number))).astype(int)
    first, last = np.repeat(ends[:-1], number), np.repeat(ends[1:], number)
    step = np.arange(len(first)) - np.repeat(np.cumsum(number) - number, number)
    found = first + (last - first) * (step / np.repeat(number, number))
    return np.unique(found[np.isfinite(found)])


def _spread(moments: _Moments, low: float, high: float, number: int) -> Array:
    """Tilts equally far apart in standard deviations, without the last one."""
    if number == 0:
        return np.zeros(0)
    depth, coarse = _depth(moments, low, high)
    return np.interp(np.linspace(0.0, depth[-1], number + 1)[:-1], depth, coarse)


def _crowded(
    moments: _Moments, low: float, high: float, number: int, from_first: bool = False
) -> Array:
    """The same, but most of them closer the closer they are to the last one, or the first: where μ
    grows towards it, what lies between thresholds that are far apart is more than it shows.
    """
    depth, coarse = _depth(moments, low, high)
    if depth[-1] <= 2.0 * _CLOSEST:
        return _spread(moments, low, high, number)
    few = number // _EVEN
    even = np.linspace(0.0, depth[-1], few + 1)[:-1]
    left = np.geomspace(depth[-1], _CLOSEST, number - few + 1)[1:]
    close = left if from_first else depth[-1] - left
    return np.interp(np.unique(np.append(even, close)), depth, coarse)


def _depth(moments: _Moments, low: float, high: float) -> tuple[Array, Array]:
    """Standard deviations from the first of some tilts on, and these."""
    coarse = np.linspace(low, high, _COARSE)
    deviation = np.sqrt(moments.at(coarse)[2])
    pieces = 0.5 * (deviation[1:] + deviation[:-1]) * np.diff(coarse)
    return np.concatenate([[0.0], np.cumsum(pieces)]), coarse


def _at(moments: _Moments, tilts: Array, inside: list[float]) -> Thresholds:
    """Means under the tilts, the first of which is 0, and thresholds with tilts of their own."""
    loss = moments.at(tilts)[1]
    loss[0] = 0.0
    for t in inside:
        k = int(np.clip(np.searchsorted(loss, t), 1, len(loss) - 1))
        own = _first(lambda s: moments.mean(s) - t, float(tilts[k - 1]), float(tilts[k]))  # noqa: B023
        loss, tilts = np.insert(loss, k, t), np.insert(tilts, k, own)
    keep = np.concatenate([[True], np.diff(np.maximum.accumulate(loss)) > 0.0])
    return Thresholds(loss[keep], tilts[keep])
