"""Which mixtures are answered by which shifts are far, and at which thresholds; it only steers."""

from __future__ import annotations

import numpy as np

from ...numerics.shapes import Array, Float
from ..certify.counted_jumps import MOST_JUMPS
from ..certify.curve import Curve, points
from ..certify.far_shifts import FarShifts, Others
from ..certify.far_shifts.law import Atoms
from ..certify.vertices import Vertices

_LOOKED_AT, _REACH, _MOST, _LEAST = 48, 8.5, 600, 9
_PRODUCTS, _MOST_THRESHOLDS = 1.2e6, 8000  # atoms times thresholds, and thresholds
_OF_NEAR, _OF_CURVE = 48, 256
_ALONE = 14.0  # deviations from no shift from which on those are tried that have no near ones
_ALONE_BESIDE, _HOPELESS = 14.0, 20.0  # the same beside others, and where no lattice is tried
_PLACES, _MOST_PLACES = 3e6, (500, 20000)  # draws times places, and places
_ABOUT = 3  # draws on each side of one that a rate leads to
_JUST = 1e-11  # share of a largest loss that is next to nothing, beyond all rounding
_BEYOND = 1e299  # losses of others that count as infinite
_FAINT = -60.0  # log of the mass of an atom, beside the largest, that is looked at


def serves(far: FarShifts, beside: bool) -> bool:
    """Whether there are few enough far steps, and lattices say less.

    Args:
        far: the mechanism with far shifts.
        beside: whether anything is composed with it.
    """
    if far.near[-1] == 0.0 and far.low.min() < (_ALONE_BESIDE if beside else _ALONE):
        return False
    return far.steps * np.exp(far.log_far) <= MOST_JUMPS


def alone_tells(far: FarShifts) -> bool:
    """Whether far steps are told so well that lattices, which have to hold them, say less."""
    return bool(far.low.min() >= _HOPELESS)


def of_others(curve: Curve) -> tuple[Float[Array, " knots"], int]:
    """Losses by which what is composed with far shifts is known from above, and how many tests of
    each order from below.

    Args:
        curve: of it.
    """
    plus, minus = (_of(half, _OF_NEAR) for half in _uppers(curve))
    return np.unique(np.concatenate([plus, -minus])), _OF_NEAR


def places(
    draws: Atoms,
    at: Float[Array, " thresholds"],
    asked: Float[Array, " asked"],
    laws: Others | None,
) -> Float[Array, " places"]:
    """Places at which draws are looked at: all thresholds, and beside others those that are asked
    for, less each of their losses, and as many between as there is time for.

    Args:
        draws: the law of far steps.
        at: thresholds of removing.
        asked: those that are asked for.
        laws: of what is composed with the far shifts; None where nothing is.
    """
    if laws is None:
        return at
    losses = np.concatenate([laws.loss, laws.shown[np.abs(laws.shown) < _BEYOND]])
    most = int(np.clip(_PLACES / len(draws.low), *_MOST_PLACES))
    if len(at) > most:
        at = at[np.unique(np.rint(np.linspace(0, len(at) - 1, most)).astype(int))]
    exact = (asked[:, None] - np.append(losses, 0.0)).ravel()
    return _increasing(np.concatenate([at, exact]), -np.inf)


def thresholds(
    far: FarShifts, draws: Atoms, near: Curve | None, rates: tuple[float, ...] = ()
) -> tuple[Float[Array, " thresholds"], Float[Array, " thresholds"]]:
    """Thresholds of removing and of adding, increasing, from 0 on.

    Args:
        far, draws, near: as for ``far_shifts.both_sides``.
        rates: that are asked for; draws are looked at one by one where as much is left of them.
    """
    heavy = np.flatnonzero(draws.log_mass >= draws.log_mass.max() + _FAINT)
    number = min(len(heavy), _LOOKED_AT)
    some = heavy[np.unique(np.rint(np.linspace(0, len(heavy) - 1, number)).astype(int))]
    left = np.logaddexp.accumulate(draws.log_mass[::-1])[::-1]  # (draws are in order of size)
    last = [np.searchsorted(-left, -np.log(rate)) for rate in rates if rate > 0.0]
    about = [np.clip(k + np.arange(-_ABOUT, _ABOUT + 1), 0, len(left) - 1) for k in last]
    some = np.unique(np.concatenate([some, *about]).astype(int))
    most = min(_PRODUCTS / len(draws.low), _MOST_THRESHOLDS) / (2 * len(some))
    each = int(np.clip(most, _LEAST, _MOST))
    deviation = np.sqrt(draws.high[some])
    half = 0.5 * deviation * deviation
    places = np.linspace(-_REACH, _REACH, each)[:, None] * deviation
    small = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, _OF_NEAR)])
    none = -far.log_none
    of_near = [_of(half_curve, _OF_CURVE) for half_curve in _uppers(near)]
    plus = np.concatenate(
        [(half + places).ravel(), (half + draws.shown[some] + places).ravel(), small, of_near[0]]
    )
    # (and just beyond their largest loss, where nothing is left of them)
    end = _top(_uppers(near)[0])
    plus = np.concatenate([plus, of_near[0] - none, [end - none + _JUST * (end + none)]])
    # (up to where the near shifts count, 1 − δ(ε) of adding is next to all of e^ε times a number:
    # thresholds between have corners of which rounding leaves no FNR)
    minus = np.concatenate([(half + places).ravel(), none + of_near[1], none - of_near[0]])
    minus = np.append(minus, none)
    if none < 1.0:
        minus = np.concatenate([minus, small, of_near[1]])
    return _increasing(plus), _increasing(minus)


def about(at: Array, more: Array) -> Array:
    """Thresholds with some more, increasing."""
    return _increasing(np.concatenate([at, more]))


def _uppers(near: Curve | None) -> list[Vertices | None]:
    return [None, None] if near is None else [near.upper_plus, near.upper_minus]


def _top(half: Vertices | None) -> float:
    """The largest finite loss of a half-curve; ∞ where none is known."""
    return np.inf if half is None or half.top is None else float(np.ravel(half.top)[0])


def _of(half: Vertices | None, most: int = _OF_NEAR) -> Array:
    if half is None:
        return np.zeros(1)
    found = points(half)
    low = np.unique(np.asarray(found.low)[np.asarray(found.used)])
    if not len(low):
        return np.zeros(1)
    places = np.linspace(0, len(low) - 1, min(len(low), most))
    return np.append(low[np.rint(places).astype(int)], 0.0)


def _increasing(at: Array, least: float = 0.0) -> Array:
    found = np.unique(np.append(at[np.isfinite(at) & (at >= least)], 0.0))
    return found[np.concatenate([[True], np.diff(found) > 1e-12 * np.abs(found[1:])])]
