"""An attack on a record that is used in k of t noisy steps: labels of the steps, added up.

The likelihood ratio is an elementary symmetric polynomial of the steps' own ratios V, and no sum. But any statistic is an attack: here each
step is labelled by log(1 − wq + wq·V), q = k/t, rounded to a lattice, and the labels are added up (w = 1 is the likelihood ratio of
Poisson sampling; where the record shows, the best w is a little smaller). Without the record that sum is a t-fold
convolution of one law p; with it, whichever k steps are chosen, of t − k times p and k times q, the law of the label of a
step that uses the record.

Both are powers of transforms. Tilted by e^{s·S} their masses have relative accuracy where the tilted law is large; each
mass is taken from the tilt that knows it best, and labels that none knows well enough, far out, are merged with the next one that is known.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ..numerics.errors import ALLOCATION, ARCTAN2, FFT, LOG1P, UNIT
from . import table
from .allocation import quadrature
from .table import NOTHING, Table

_DEPTH = 14.0  # standard deviations of one step that are told apart
_WIDTH = 12.0  # standard deviations of the sum that are told apart
_FINE = 0.03  # spacing of the lattice over the standard deviation of one label
_WIDE = 0.5  # of a cell in z, above which it is a difference of normal probabilities
_KNOWN = 1e-5  # relative error above which a mass does not count as known
_VALUES = (1.0, 0.6)  # weights that are tried
_AT = 1e-6  # δ at which the better one is told
_TILTS = np.arange(-9.0, 10.0) * 1.3  # where their means lie, in standard deviations
_MOST = 2**20  # points of a lattice
_OFFSETS = np.array([0.1, 0.3, 1.0, 3.0, 8.0, 20.0])  # of Chernoff bounds, by standard deviations
_KEPT = 160.0  # losses of a table per standard deviation


def _difference(low, high):
    """Φ(high) − Φ(low) with relative accuracy."""
    flip = low > 0.0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    return ndtr(b) - ndtr(a)


def _masses(edges, shift):
    """Normal probabilities of the cells between edges less ``shift``, the two ends open."""
    low, high = np.append(-np.inf, edges) - shift, np.append(edges, np.inf) - shift
    with np.errstate(invalid="ignore"):
        wide = ~(high - low < _WIDE)
    mass = _difference(low, high)
    _, parts = quadrature(np.where(wide, 0.0, low), np.where(wide, 0.1, high))
    return np.where(wide, mass, parts.sum(axis=1))


class _Labels:
    """Labels of one step on a lattice: indices, spacing and masses without and with the record."""

    def __init__(self, sigma, number, selected, weight):
        tau, share = 1.0 / sigma, weight * selected / number
        z = np.linspace(-10.0, 10.0 + tau, 4001)
        value = np.log1p(share * np.expm1(np.minimum(tau * z - 0.5 * tau**2, 700.0)))
        weights = [np.exp(-0.5 * (z - s) ** 2) for s in (0.0, tau)]
        means = [w @ value / w.sum() for w in weights]
        squares = [w @ (value - m) ** 2 / w.sum() for w, m in zip(weights, means, strict=True)]
        rest = number - selected
        self.spread = math.sqrt(number * squares[0])
        above = math.sqrt(rest * squares[0] + selected * squares[1])
        top = math.log1p(share * math.expm1(min(8.0 * tau + 0.5 * tau**2, 700.0)))
        low = number * means[0] - _WIDTH * self.spread
        high = rest * means[0] + selected * means[1] + _WIDTH * above + top
        self.step = max(_FINE * math.sqrt(squares[0]), (high - low) / (0.9 * _MOST))
        self.size = 1 << math.ceil(math.log2((high - low) / (0.9 * self.step)))
        self.first = math.floor(low / self.step)
        bottom = math.floor(math.log1p(-share) / self.step) if share < 1.0 else math.floor(low / self.step)
        largest = math.log1p(share * math.expm1(min(_DEPTH * tau + 0.5 * tau**2, 700.0)))
        last = min(math.ceil(largest / self.step), bottom + self.size // 2)
        self.index = np.arange(bottom, last + 1)
        ratio = np.expm1((self.index[:-1] + 0.5) * self.step) / share
        with np.errstate(divide="ignore", invalid="ignore"):
            edges = sigma * np.log1p(ratio) + 0.5 * tau
        edges = np.where(ratio > -1.0, edges, -np.inf)
        self.masses = [_masses(edges, shift) for shift in (0.0, tau)]

    def tilted(self, mass, s):
        """Masses under a tilt, and log of what they were divided by."""
        with np.errstate(divide="ignore"):
            exponent = np.log(mass) + s * self.step * self.index
        largest = exponent.max()
        w = np.exp(exponent - largest)
        return w / w.sum(), largest + math.log(w.sum())

    def outside(self, parts):
        """Bound on the tilted mass of the sum that lies outside of the window and comes back into it (Chernoff)."""
        low, high = self.first * self.step, (self.first + self.size) * self.step
        found = 0.0
        for sign, edge in ((1.0, high), (-1.0, low)):
            bounds = []
            for offset in _OFFSETS / self.spread:
                place = sign * offset * self.step * self.index
                moments = [(power, _log_mean(w, place)) for (w, _), power in parts]
                bounds.append(sum(power * moment for power, moment in moments) - sign * offset * edge)
            found += math.exp(min(*bounds, 0.0))
        return found


def _log_mean(mass, exponent):
    """log Σ mass·e^{exponent}."""
    with np.errstate(divide="ignore"):
        exponent = exponent + np.log(mass)
    top = exponent.max()
    return top + math.log(np.sum(np.exp(exponent - top)))


class _View:
    """The law of the sum under one tilt: its masses at the window's points are m·e^{back}, m known to ``error``."""

    def __init__(self, labels: _Labels, s, powers):
        size, step = labels.size, labels.step
        parts = [(labels.tilted(mass, s), power) for mass, power in zip(labels.masses, powers, strict=True) if power]
        log_power, angle, relative = 0.0, 0.0, 0.0
        for (w, _), power in parts:
            f = np.fft.rfft(np.bincount(labels.index % size, w, size))
            log_abs, arg = np.log(np.maximum(np.abs(f), 1e-280)), np.angle(f)
            log_power, angle = log_power + power * log_abs, angle + power * arg
            own = (FFT * math.log2(size) * math.sqrt(w @ w) + 8.0) * UNIT / np.exp(log_abs)
            relative = relative + power * (own + UNIT * (LOG1P * np.abs(log_abs) + 2.0 * ARCTAN2 * np.abs(arg)))
        height = np.exp(log_power)
        found = np.fft.irfft(height * np.exp(1j * angle), size)
        bound = height * np.minimum(relative + 8.0 * UNIT * np.abs(angle), 2.0)
        back = FFT * math.log2(size) * UNIT * math.sqrt(2.0 * np.sum(height**2) / size)
        at = np.arange(labels.first, labels.first + size)
        self.s, self.mass = s, found[at % size]
        self.error = 2.0 * bound.sum() / size + back + labels.outside(parts)
        self.back = sum(power * log_total for (_, log_total), power in parts) - s * step * at

    def relative(self):
        """Bounds on the relative errors of the masses, ∞ where they are not known."""
        some = self.mass > self.error
        return np.where(some, self.error / np.where(some, self.mass - self.error, 1.0), np.inf)

    def beyond(self, end, last):
        """The mass up to (from) a point of the window, the point included, and its relative error, ∞ where the tilt is the wrong one."""
        part = slice(end, None) if last else slice(None, end + 1)
        if not (self.s > 0.0 if last else self.s < 0.0):
            return 0.0, np.inf
        # (far from the tilt's own place a factor may overflow: then this is not the tilt to ask)
        factor = np.exp(np.minimum(self.back[part], 600.0))
        total = float(np.maximum(self.mass[part], 0.0) @ factor)
        # (what lies outside of the window is less than the error at its edge)
        error = self.error * 2.0 * float(factor.sum())
        return total, error / (total - error) if total > error and self.back[part].max() < 600.0 else np.inf


def _tilts(labels: _Labels, number):
    """Tilts under which the sum without the record has its mean at some standard deviations from where it is."""
    mass, place = labels.masses[0], labels.step * labels.index

    def mean(s):
        return number * float(labels.tilted(mass, s)[0] @ place)

    centre = mean(0.0)
    found = []
    for shift in _TILTS:
        low, high = (0.0, 1.0 / labels.spread) if shift >= 0.0 else (-1.0 / labels.spread, 0.0)
        target = centre + shift * labels.spread
        for _ in range(60):
            if shift >= 0.0 and mean(high) < target:
                low, high = high, 2.0 * high
            elif shift < 0.0 and mean(low) > target:
                low, high = 2.0 * low, low
            else:
                break
            if max(abs(low), abs(high)) * labels.spread > 1e4:
                break
        for _ in range(25):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if mean(middle) < target else (low, middle)
        found.append(0.5 * (low + high))
    # where one large label is the likeliest way there, means jump from the body to the far end
    return [*found, *np.geomspace(0.02, 1.6, 14)]


def attack(sigma: float, number: int, selected: int) -> Table:
    """A pair that an attack on a record in ``selected`` of ``number`` steps achieves: the best of a few labels."""
    found = [label_sum(sigma, number, selected, weight) for weight in _VALUES]
    return max(found, key=lambda pair: _epsilon(pair, _AT))


def _epsilon(pair: Table, delta):
    """The largest ε at which δ(ε) of removing a record is at least ``delta``, of the losses of a table; to choose by."""
    tail_p, tail_q = (np.cumsum(mass[::-1])[::-1] for mass in (pair.p, pair.q))
    return float(np.max(np.log(np.maximum(tail_q - delta, 1e-300) / tail_p)))


def label_sum(sigma: float, number: int, selected: int, weight: float = 1.0) -> Table:
    """A pair that the attack with labels log(1 − wq + wq·V) achieves, w = ``weight``.

    Method: docs/method/attack.md#family
    """
    labels = _Labels(sigma, number, selected, weight)
    tilts = _tilts(labels, number)
    every, errors = [], []
    for powers in ((number, 0), (number - selected, selected)):
        views = [_View(labels, s, powers) for s in tilts]
        relative = np.stack([view.relative() for view in views])
        every.append((views, np.argmin(relative, axis=0)))
        errors.append(np.min(relative, axis=0))
    known = np.flatnonzero((errors[0] < _KNOWN) & (errors[1] < _KNOWN))
    if not len(known):
        return NOTHING
    # the longest run of known labels; what lies beyond is merged with its ends
    run = max(np.split(known, np.flatnonzero(np.diff(known) > 1) + 1), key=len)
    laws, error = [], _KNOWN
    for views, best in every:
        back, mass = (np.stack([getattr(view, name)[run] for view in views]) for name in ("back", "mass"))
        pick = best[run], np.arange(len(run))
        law = mass[pick] * np.exp(back[pick])
        for place, last in ((0, False), (-1, True)):
            ends = [view.beyond(run[place], last) for view in views]
            law[place], off = min(ends, key=lambda end: end[1])
            error = max(error, off)
        laws.append(law)
    if not error < 1e-2:
        return NOTHING
    found = table.from_masses(*laws, error + number * ALLOCATION + 64.0 * UNIT)
    deviation = math.sqrt(max(found.p @ found.loss**2 - (found.p @ found.loss) ** 2, 1e-300))
    return table.merged(found, table.grid(found.loss, found.p, min(deviation, 1.0) / _KEPT, 1.0 / _KEPT, 1.0 / _KEPT))
