"""Which mixtures are answered by which shifts are far, and at which thresholds; it only steers."""

from __future__ import annotations

import numpy as np

from ...numerics.shapes import Array, Float
from ..certify.counted_jumps import MOST_JUMPS
from ..certify.curve import Curve, points
from ..certify.far_shifts import FarShifts
from ..certify.far_shifts.law import Atoms
from ..certify.vertices import Vertices

_LOOKED_AT, _REACH, _MOST, _LEAST = 24, 8.5, 97, 9
_PRODUCTS = 1.2e6  # atoms times thresholds
_OF_NEAR = 48
_ALONE = 14.0  # deviations from no shift from which on those are tried that have no near ones
_FAINT = -60.0  # log of the mass of an atom, beside the largest, that is looked at


def serves(far: FarShifts | None) -> bool:
    """Whether there are few enough far steps, and lattices say less."""
    if far is None or (far.near[-1] == 0.0 and far.low.min() < _ALONE):
        return False
    return far.steps * np.exp(far.log_far) <= MOST_JUMPS


def thresholds(
    far: FarShifts, draws: Atoms, near: Curve | None
) -> tuple[Float[Array, " thresholds"], Float[Array, " thresholds"]]:
    """Thresholds of removing and of adding, increasing, from 0 on.

    Args:
        far, draws, near: as for ``far_shifts.both_sides``.
    """
    heavy = np.flatnonzero(draws.log_mass >= draws.log_mass.max() + _FAINT)
    number = min(len(heavy), _LOOKED_AT)
    some = heavy[np.unique(np.rint(np.linspace(0, len(heavy) - 1, number)).astype(int))]
    each = int(np.clip(_PRODUCTS / (len(draws.low) * len(some) * 2), _LEAST, _MOST))
    deviation = np.sqrt(draws.high[some])
    half = 0.5 * deviation * deviation
    places = np.linspace(-_REACH, _REACH, each)[:, None] * deviation
    small = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, _OF_NEAR)])
    none = -far.log_none
    of_near = [_of(half_curve) for half_curve in _uppers(near)]
    plus = np.concatenate(
        [(half + places).ravel(), (half + draws.shown[some] + places).ravel(), small, of_near[0]]
    )
    plus = np.append(plus, of_near[0] - none)
    # (up to where the near shifts count, 1 − δ(ε) of adding is next to all of e^ε times a number:
    # thresholds between have corners of which rounding leaves no FNR)
    minus = np.concatenate([(half + places).ravel(), none + of_near[1], none - of_near[0], [none]])
    if none < 1.0:
        minus = np.concatenate([minus, small, of_near[1]])
    return _increasing(plus), _increasing(minus)


def about(at: Array, more: Array) -> Array:
    """Thresholds with some more, increasing."""
    return _increasing(np.concatenate([at, more]))


def _uppers(near: Curve | None) -> list[Vertices | None]:
    return [None, None] if near is None else [near.upper_plus, near.upper_minus]


def _of(half: Vertices | None) -> Array:
    if half is None:
        return np.zeros(1)
    found = points(half)
    low = np.unique(np.asarray(found.low)[np.asarray(found.used)])
    if not len(low):
        return np.zeros(1)
    places = np.linspace(0, len(low) - 1, min(len(low), _OF_NEAR))
    return np.append(low[np.rint(places).astype(int)], 0.0)


def _increasing(at: Array) -> Array:
    found = np.unique(np.append(at[np.isfinite(at) & (at >= 0.0)], 0.0))
    return found[np.concatenate([[True], np.diff(found) > 1e-12 * found[1:]])]
