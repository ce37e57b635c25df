"""Sums of many independent numbers on a lattice, by powers of transforms, with error bounds.

Tilted by e^{s·S}, masses have relative accuracy where the tilted law is large; each mass is taken
from the tilt in which it has the smallest error; masses that no tilt resolves well enough, far out,
are merged with the next one that is resolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ...numerics.errors import ARCTAN2, LOG1P, SPECTRUM, UNIT
from ...numerics.step_transform import step_transform
from ...numerics.transforms import all_outputs

WIDTH = 12.0  # standard deviations of the sum that are told apart
FINE = 0.03  # spacing of a lattice over the standard deviation of one number
MOST = 2**20  # points of a lattice
_KNOWN = (
    3e-3,
    1e-5,
)  # relative errors above which a mass is not known; the second where the first has poor ends
_POOR = 0.03  # of what is merged at the ends
_SHIFTS = np.arange(-9.0, 10.0) * 1.3  # where the means of tilts lie, in standard deviations
_JUMPS = np.geomspace(0.02, 5.0, 18)  # tilts for sums whose likeliest way up is one large number
_GROUPS = 2048  # of numbers, where tilts are looked for
_OFFSETS = np.array([0.1, 0.3, 1.0, 3.0, 8.0, 20.0])  # of Chernoff bounds, by standard deviations
_FEWEST = 8  # known points that are worth while
_LOG = 650.0  # of masses that are doubles
_NEGLIGIBLE = 1e-40  # share of a tilted law that is not worth its rounding
_DROPPED = 1e-30  # share of a mixture below which a component is an error
_FLAT = -60.0  # log height below which frequencies are left out


# for each component of a mixture its log weight and the number of terms of each law
Mixture: TypeAlias = list[tuple[float, tuple[int, ...]]]


@dataclass(frozen=True)
class LatticeLaws:
    """Laws of one number on a lattice, and the window in which sums are computed.

    Attributes:
        index, step: the numbers are step·index.
        masses: laws, each of the shape of ``index``, of any total.
        first, size: the window is step·[first, first + size), size a power of two.
        spread: standard deviation of the sum of as many as there are.
    """

    index: np.ndarray
    step: float
    masses: tuple
    first: int
    size: int
    spread: float

    def tilted(self, mass: np.ndarray, s: float):
        """Masses under a tilt, log of what they were divided by, and a bound on their relative
        rounding errors where they matter.
        """
        with np.errstate(divide="ignore"):
            log_mass, place = np.log(mass), s * self.step * self.index
        exponent = log_mass + place
        largest = exponent.max()
        w = np.exp(exponent - largest)
        some = w > _NEGLIGIBLE
        rounding = (
            4.0 * UNIT * float(np.max(np.abs(log_mass[some]) + np.abs(place[some]))) + 8.0 * UNIT
        )
        return w / w.sum(), largest + math.log(w.sum()), rounding

    def tilts(self, number: int):
        """Tilts under which the sum of ``number`` of the first law has its mean at some standard
        deviations from where it is.
        """
        # (in groups: to steer by)
        start = np.arange(0, len(self.index), -(-len(self.index) // _GROUPS))
        mass, place = np.add.reduceat(self.masses[0], start), self.step * self.index[start]

        def mean(s: float):
            with np.errstate(divide="ignore"):
                exponent = np.log(mass) + s * place
            w = np.exp(exponent - exponent.max())
            return number * float(w @ place) / float(w.sum())

        centre = mean(0.0)
        found = []
        for shift in _SHIFTS:
            low, high = (0.0, 1.0 / self.spread) if shift >= 0.0 else (-1.0 / self.spread, 0.0)
            target = centre + shift * self.spread
            for _ in range(60):
                if shift >= 0.0 and mean(high) < target:
                    low, high = high, 2.0 * high
                elif shift < 0.0 and mean(low) > target:
                    low, high = 2.0 * low, low
                else:
                    break
                if max(abs(low), abs(high)) * self.spread > 1e4:
                    break
            for _ in range(25):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if mean(middle) < target else (low, middle)
            found.append(0.5 * (low + high))
        return [*found, *_JUMPS]


def window(step: float, low: float, high: float):
    """First index and size of a window that holds [low, high], and the spacing, larger than
    requested if it must be.
    """
    step = max(step, (high - low) / (0.9 * MOST))
    return math.floor(low / step), 1 << math.ceil(math.log2((high - low) / (0.9 * step))), step


def _log_sum(exponent: np.ndarray):
    """log Σ e^{exponent}."""
    top = exponent.max()
    return top + math.log(np.sum(np.exp(exponent - top)))


def _excess(w: np.ndarray) -> float:
    """Σ w − 1 of masses whose sum is next to one, to a unit: multiples of 2⁻⁵⁰ add up exactly."""
    scaled = w * 2.0**50
    whole = np.rint(scaled)
    return (int(whole.astype(np.int64).sum()) - 2**50 + float(np.sum(scaled - whole))) * 2.0**-50


class _Part(NamedTuple):
    """One law under a tilt: total, rounding, its centre, transform from there, its error, log
    moments for Chernoff.
    """

    log_total: float
    rounding: float
    centre: int
    log_abs: np.ndarray
    angle: np.ndarray
    error: np.ndarray
    moments: np.ndarray


_OF_FREQUENCY = ("log_abs", "angle", "error")


class _TiltedLaw(NamedTuple):
    """The law of a sum under one tilt: its masses are m·e^{back}, m known to ``error``, and all of
    them relative to ``shared``.
    """

    s: float
    mass: np.ndarray
    error: float
    back: np.ndarray
    shared: float

    def relative(self):
        """Bounds on the relative errors of the masses, ∞ where they are not known."""
        some = self.mass > self.error
        return np.where(
            some, self.error / np.where(some, self.mass - self.error, 1.0) + self.shared, np.inf
        )

    def beyond(self, end: int, last: bool):
        """The mass up to (from) a point of the window, the point included, and its relative error,
        ∞ where the tilt is the wrong one.
        """
        part = slice(end, None) if last else slice(None, end + 1)
        if not (self.s > 0.0 if last else self.s < 0.0):
            return 0.0, np.inf
        # (far from the tilt's own place a factor may overflow: then this is not the tilt to ask)
        factor = np.exp(np.minimum(self.back[part], 600.0))
        total = float(np.maximum(self.mass[part], 0.0) @ factor)
        # (what lies outside of the window is less than the error at its edge)
        error = self.error * 2.0 * float(factor.sum())
        known = total > error and self.back[part].max() < 600.0
        return total, error / (total - error) + self.shared if known else np.inf


class _Tilt:
    """All laws of a lattice under one tilt."""

    def __init__(self, lattice: LatticeLaws, s: float):
        self.lattice, self.s = lattice, s
        size, step = lattice.size, lattice.step
        self.edges = (lattice.first + size) * step, -lattice.first * step
        self.offsets = _OFFSETS / lattice.spread
        self.parts = []
        for mass in lattice.masses:
            w, log_total, rounding = lattice.tilted(mass, s)
            left = round(float(w @ (lattice.index - lattice.index[0])))
            centre = int(lattice.index[0]) + left
            one = step_transform(w[None], left, size)
            f = 1.0 + (one.re[0] + _excess(w)) + 1j * one.im[0]
            log_abs, angle = np.log(np.maximum(np.abs(f), 1e-280)), np.angle(f)
            own = (one.off[0] + 8.0 * UNIT) / np.exp(log_abs)
            error = own + UNIT * (LOG1P * np.abs(log_abs) + 2.0 * ARCTAN2 * np.abs(angle))
            some = np.flatnonzero(w)
            log_w, place = np.log(w[some]), step * lattice.index[some]
            moments = [
                [_log_sum(log_w + sign * a * place) for a in self.offsets] for sign in (1.0, -1.0)
            ]
            self.parts.append(
                _Part(
                    log_total,
                    rounding,
                    centre,
                    log_abs,
                    angle,
                    np.asarray(error),
                    np.array(moments),
                )
            )

    def view(self, mixture: Mixture) -> _TiltedLaw:
        """The law of a mixture of sums: (log weight, terms of each law) of each component."""
        size, step = self.lattice.size, self.lattice.step
        logs, scale, rounding = [], 0.0, 0.0
        for log_weight, powers in mixture:
            terms = [power * part.log_total for power, part in zip(powers, self.parts, strict=True)]
            logs.append(log_weight + sum(terms))
            scale = max(scale, abs(log_weight) + sum(map(abs, terms)))
            rounding = max(
                rounding,
                sum(power * part.rounding for power, part in zip(powers, self.parts, strict=True)),
            )
        log_total = float(np.logaddexp.reduce(logs))
        shares = np.exp(np.array(logs) - log_total)
        f, bound, height = 0.0, 0.0, 0.0
        error = float(shares[shares < _DROPPED].sum()) + 4.0 * math.exp(_FLAT)
        # frequencies at which no component is small
        least = np.min([powers for _, powers in mixture], axis=0)
        most = np.sum(
            [power * part.log_abs for power, part in zip(least, self.parts, strict=True) if power],
            axis=0,
        )
        some = np.flatnonzero(np.broadcast_to(most, size // 2 + 1) > _FLAT)
        log_abs, angles, errors = (
            np.stack([getattr(part, name)[some] for part in self.parts]) for name in _OF_FREQUENCY
        )
        for share, (_, powers) in zip(shares, mixture, strict=True):
            if share < _DROPPED:
                continue
            power = np.array(powers, float)
            shift = sum(n * part.centre for n, part in zip(powers, self.parts, strict=True)) % size
            turn = (2.0 * np.pi / size) * (some * shift % size)
            angle, tall = power @ angles - turn, share * np.exp(power @ log_abs)
            f = f + tall * np.exp(1j * angle)
            bound, height = (
                bound + tall @ np.minimum(power @ errors + 8.0 * UNIT * np.abs(angle), 2.0),
                height + tall,
            )
            # what lies outside of the window and comes back into it
            used = [
                (number, part) for number, part in zip(powers, self.parts, strict=True) if number
            ]
            outside = (
                sum(number * part.moments for number, part in used)
                - self.offsets * np.array(self.edges)[:, None]
            )
            error += float(share * np.exp(np.minimum(outside.min(axis=1), 0.0)).sum())
        full = np.zeros(size // 2 + 1, complex)
        full[some] = f
        rounded = all_outputs(size) + (SPECTRUM + len(mixture)) * UNIT
        back = rounded * math.sqrt(2.0 * np.sum(height**2) / size)
        at = np.arange(self.lattice.first, self.lattice.first + size)
        place = self.s * step * at
        shared = (8.0 * (scale + np.abs(place).max()) + 4.0 * len(mixture)) * UNIT + rounding
        mass = np.fft.irfft(full, size)[at % size]
        return _TiltedLaw(
            self.s, mass, 2.0 * bound / size + back + error, log_total - place, shared
        )


class Sums(NamedTuple):
    """Laws of a few sums on one run of points, what lies beyond merged with its ends.

    Attributes:
        value: the points.
        masses, errors: of each law the masses and bounds on their relative errors, shape (laws,
            points).
    """

    value: np.ndarray
    masses: np.ndarray
    errors: np.ndarray


def sums(
    lattice: LatticeLaws, number: int, mixtures: list[Mixture], together: list[tuple[int, ...]]
) -> list[Sums | None]:
    """Laws of several sums of numbers on a lattice, each a mixture of compositions.

    Args:
        lattice: the numbers.
        number: how many of the first law tilts are made for.
        mixtures: for each sum its components (log weight, number of terms of each of the lattice's
            laws).
        together: which of them are wanted on one run of points, tuples of places in ``mixtures``.

    Returns:
        :class:`Sums` for each entry of ``together``, errors of the lattice's own masses apart; None
        where too little is known.
    """
    tilts = lattice.tilts(number)
    log_mass, error = np.zeros((2, len(mixtures), lattice.size))
    pick = np.zeros((len(mixtures), lattice.size), np.int8)
    error[:] = np.inf
    for k, s in enumerate(tilts):
        tilt = _Tilt(lattice, s)
        for i, mixture in enumerate(mixtures):
            view = tilt.view(mixture)
            relative = view.relative()
            better = relative < error[i]
            error[i, better], pick[i, better] = relative[better], k
            log_mass[i, better] = np.log(view.mass[better]) + view.back[better]
    return [
        _run(
            lattice,
            [mixtures[i] for i in few],
            tilts,
            *(a[list(few)] for a in (pick, log_mass, error)),
        )
        for few in together
    ]


def _run(
    lattice: LatticeLaws,
    mixtures: list[Mixture],
    tilts: list[float],
    pick: np.ndarray,
    log_mass: np.ndarray,
    error: np.ndarray,
) -> Sums | None:
    """The longest run of points where all laws are known."""
    for level in _KNOWN:
        known = np.flatnonzero(np.all((error < level) & (np.abs(log_mass) < _LOG), axis=0))
        if len(known) < _FEWEST:
            continue
        run = max(np.split(known, np.flatnonzero(np.diff(known) > 1) + 1), key=len)
        masses, errors = np.exp(log_mass[:, run]), error[:, run]
        _merge_ends(lattice, mixtures, tilts, pick[:, run], run, masses, errors)
        if errors.max() < _POOR:
            return Sums(lattice.step * (lattice.first + run), masses, errors)
    return None


def _merge_ends(
    lattice: LatticeLaws,
    mixtures: list[Mixture],
    tilts: list[float],
    pick: np.ndarray,
    run: np.ndarray,
    masses: np.ndarray,
    errors: np.ndarray,
):
    """Put what lies beyond the ends of a run into them, from the tilts that resolve them."""
    ends = {0: False, -1: True}
    near = {k + d for place in ends for k in pick[:, place].tolist() for d in (-1, 0, 1)}
    errors[:, [0, -1]] = np.inf
    for k in sorted(k for k in near if 0 <= k < len(tilts)):
        tilt = _Tilt(lattice, tilts[k])
        for i, mixture in enumerate(mixtures):
            view = tilt.view(mixture)
            for place, last in ends.items():
                mass, off = view.beyond(run[place], last)
                if off < errors[i, place]:
                    masses[i, place], errors[i, place] = mass, off
