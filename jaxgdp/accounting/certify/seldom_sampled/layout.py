"""How the sums of a run are laid out whose record is hardly ever sampled; nothing here is part of a
certificate."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri

from ....mechanisms.random_allocation import dyadic_sum
from ....numerics import namespace as xp
from ....numerics.shapes import Array, Float

# −log of the probability that a record is never sampled, up to which this serves: its inverse, and
# the masses given the record that it multiplies, are doubles
_RARELY_NONE = 500.0
_MOST_STEPS = 1e12  # beyond, the rounding of single masses is all that is left
_LEAST_NOISE = 0.03  # below, a step lies farther out than doubles have probabilities
_MOST_NOISE = 1e10  # beyond, 1 + z/σ keeps too few digits of z
_LEAST_RATE, _LEAST_SUM = 1e-130, 1e-250  # whose squares, and parts of which, are doubles
_CORE, _OCTAVE = 512, 256  # points of the finest level on either side, and of an octave
_FINE = 90.0  # points per standard deviation of the body
_LEAST = 100.0  # −log of the probability that no sum is smaller than what the lattice resolves
# part of the share of runs with the record that a sum is told from 0 by, and where there are fewer
# points than for an accuracy of 1e-3 of any number
_TINY, _TINY_ROUGH = 1e-9, 1e-5
_MANY = 1e4  # points that are dropped in all, for each use, at most about
_BEYOND = 1.25  # times the distance of a focus, up to which there are more points
_UNITS = 32  # parts of one of which units are made
# square of the least deviation of the body, over its mean, of which values keep all digits
_NARROWEST = 2.0**-60
# standard deviations of one step, above and below: within the first there are doubles with all
# digits, beyond the second there is 1e-149
FULL, _BELOW = 37.0, -26.0
# of z, by which moments are estimated
_Z = np.linspace(-FULL, FULL, 15_201)
_EVERY = 50  # … one in how many of which do where a few digits are enough
_W = np.exp(-0.5 * _Z * _Z) * (_Z[1] - _Z[0]) / math.sqrt(2.0 * math.pi)


class Run(NamedTuple):
    """T steps of N(0, σ²) against (1 − p)·N(0, σ²) + p·N(1, σ²).

    With V = e^{z/σ − 1/(2σ²)}, the likelihood ratio of one step with the record, and ρ = p/(1 − p),
    the likelihood ratio of the whole run is (1 − p)^T·e^S with S = Σ log(1 + ρV): what is summed.

    Method: docs/method/seldom.md#seldom-ratio
    """

    sigma: float
    p: float
    steps: int

    @property
    def tau(self) -> float:
        """1/σ."""
        return 1.0 / self.sigma

    @property
    def log_odds(self) -> float:
        """log ρ."""
        return math.log(self.p) - math.log1p(-self.p)

    @property
    def log_never(self) -> float:
        """−T·log(1 − p), which is minus the log of the probability that it is never sampled."""
        return -self.steps * math.log1p(-self.p)

    def log_ratio(self, z: Array) -> Array:
        """log(1 + ρV) at z."""
        return np.logaddexp(0.0, self.log_odds + self.tau * (z - 0.5 * self.tau))

    def place(self, x: Array) -> Array:
        """z at which log(1 + ρV) is x > 0: V is a quotient where it is not large."""
        odds = math.exp(self.log_odds)
        log_v = np.where(
            x < 1.0,
            np.log(np.expm1(np.minimum(x, 1.0)) / odds),
            x + np.log1p(-np.exp(-np.maximum(x, 0.5))) - self.log_odds,
        )
        return self.sigma * log_v + 0.5 * self.tau


def serves(run: Run) -> bool:
    """Whether bounds are worked out for a run.

    Method: docs/method/seldom.md#seldom-which
    """
    return (
        _LEAST_NOISE <= run.sigma <= _MOST_NOISE
        and _LEAST_RATE < run.p < 0.9
        and 2 <= run.steps <= _MOST_STEPS
        and run.log_never <= _RARELY_NONE
    )


def work(run: Run, finer: float) -> float:
    """About how many products its sums take, in a few units."""
    points = len(Plan.of(run).points()[0])
    return points * _CORE * finer**2 * math.log2(run.steps)


class Products(NamedTuple):
    """How many products of masses the sums of a curve took.

    Attributes:
        usual, finer: on levels of the usual number of points, and on finer ones.
    """

    usual: float
    finer: float


class Focus(NamedTuple):
    """Where the sums of a run are laid out on more points.

    Attributes:
        loss: the privacy loss at which numbers are read off, of removing a record.
        octaves: g, levels of points about it have 2^g times as many as others.
        levels: how many of these there are: the last one is that of the loss.

    Method: docs/method/seldom.md#seldom-ratio
    """

    loss: float
    octaves: int
    levels: int = 1


class _Body(NamedTuple):
    """Mean and variance of one log(1 + ρV) without jumps, variance without the larger ones, and the
    least sum of a run, but for e^−_LEAST of all runs.
    """

    mean: float
    variance: float
    inner: float
    least: float

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, run: Run) -> _Body:
        """From a quadrature of one step."""
        z = float(np.interp(-_LEAST / run.steps, log_ndtr(_Z), _Z))
        least = float(run.log_ratio(np.array(z)))
        return cls(*_without_jumps(run, 0.1), _without_jumps(run, 10.0)[1], least)


def _without_jumps(run: Run, jumps: float, every: int = 1) -> tuple[float, float]:
    """Mean and variance of one log(1 + ρV) without those that come so often in a run, or less, from
    one place of the quadrature in so many.
    """
    x, w = run.log_ratio(_Z[::every]), _W[::every]
    above = every * np.cumsum(w[::-1])[::-1]
    w = np.where(above >= min(jumps / run.steps, 0.4), w, 0.0)
    mean = float(xp.matmul(w, x)) / float(w.sum())
    return mean, float(xp.matmul(w, (x - mean) ** 2)) / float(w.sum())


class LargeSteps(NamedTuple):
    """How large steps, all of the same size, bring a sum to a privacy loss of removing a record.

    Attributes:
        number: of them that is likeliest, 31 at most.
        log_delta: log of what they make of δ there, about.

    Method: docs/method/seldom.md#seldom-which
    """

    number: int
    log_delta: float

    @classmethod
    def of(cls, run: Run, loss: float) -> LargeSteps:
        """Of a run, the other steps of which lie where they do without any."""
        number = np.arange(1.0, 32.0)
        mean, _ = _without_jumps(run, 0.1, _EVERY)
        far = max(loss + run.log_never - run.steps * mean, _LEAST_SUM)
        z = np.maximum(run.place(far / number), 0.0)
        each = 0.5 * z * z + np.log(1.0 + z) - math.log(run.steps)
        rare = number * each + gammaln(number + 1.0)
        best = int(np.argmin(rare))
        return cls(best + 1, loss - float(rare[best]))

    @property
    def levels(self) -> int:
        """How many levels about the loss their parts of it are on."""
        return math.ceil(math.log2(_BEYOND * self.number))


class Plan(NamedTuple):
    """How the sums of a run are laid out.

    Attributes:
        run: the run.
        finer: how many times as many points there are as for an accuracy of 1e-3 of any number, a
            power of two or 3/2 of one, at least 1/8.
        faint: mass that does not matter, of all runs; 0 for as deep as doubles go.
        focus: where there are more of them, None for nowhere.
        mean, variance, inner: see :class:`_Body`.
        least: the smallest sum that matters.

    Method: docs/method/seldom.md#seldom-ratio
    """

    run: Run
    finer: float
    faint: float
    focus: Focus | None
    mean: float
    variance: float
    inner: float
    least: float

    @classmethod
    def of(
        cls, run: Run, finer: float = 1.0, faint: float = 0.0, focus: Focus | None = None
    ) -> Plan:
        """From a quadrature of one step."""
        body = _Body.of(run)
        # (what is far smaller than the share of runs with the record is told from 0 by nobody)
        share = -math.expm1(-run.log_never)
        tiny = (_TINY if finer >= 1.0 else _TINY_ROUGH) * share
        least = max(body.least, _LEAST_SUM, tiny)
        return cls(run, finer, faint, focus, body.mean, body.variance, body.inner, least)

    def dropped(self, terms: int) -> float:
        """Mass of a point of a sum of so many that is not worth keeping."""
        return self.faint * terms / (self.run.steps * _MANY)

    @functools.lru_cache(maxsize=1024)  # noqa: B019 (a plan is small, and holds nothing else)
    def layout(self, terms: int) -> dyadic_sum.Layout:
        """Points for a sum of so many: around 0 while it varies by much, else around its mean."""
        number = self.run.steps
        octave, core = round(_OCTAVE * self.finer), round(_CORE * self.finer)
        share = math.sqrt(terms / number)
        # (of few points more are in the body)
        fine = _FINE * (self.finer if self.finer >= 1.0 else min(2.0 * self.finer, 1.0))
        body = math.sqrt(self.inner * terms) / fine
        small = self.least * share / octave
        # (where squares of what is left without jumps are no doubles, its sum is 0 for all that
        # matters)
        mean = self.mean if body > 0.0 else 0.0
        narrow = math.sqrt(self.variance / number) * octave < fine * mean
        apart = math.sqrt(self.variance / terms) * octave < fine * mean  # from 0
        finest = small if not narrow else body if apart else max(body, small)
        at = self._fine(octave, number * mean if narrow else 0.0)
        unit = at[-1]
        exponent = math.floor(math.log2(finest / unit))
        if not apart:
            return dyadic_sum.Layout(0.0, exponent, octave, core, True, *at)
        # 0 is kept a point as long as the sum may be near it
        centre, ratio = terms * mean / unit, math.sqrt(self.variance / terms) / mean
        coarse = exponent if ratio < 0.05 else max(exponent, math.floor(math.log2(centre)) - 7)
        middle = unit * math.ldexp(round(math.ldexp(centre, -coarse)), coarse)
        return dyadic_sum.Layout(middle, exponent, octave, core, True, *at)

    def _fine(self, octave: int, centre: float) -> tuple[int | None, int, int, float]:
        """Exponent of the first spacing about the focus, octaves, levels and the unit, by which the
        last level ends where it has to: the same for sums of all numbers of terms, a few of which
        are what brings a sum there, as a rule.
        """
        if self.focus is None:
            return None, 0, 1, 1.0
        loss, octaves, levels = self.focus
        reach = _BEYOND * max(abs(loss + self.run.log_never - centre), self.least)
        unit = 1.0
        if self.variance > _NARROWEST * self.mean**2 * self.run.steps:
            unit = (math.floor(math.frexp(reach / (2 * octave))[0] * _UNITS) + 1.0) / _UNITS
        level = int(dyadic_sum.level_of(reach / unit, octave))
        return level - octaves - levels + 1, octaves, levels, unit

    def points(self) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Points of one log(1 + ρV) above 0, as far as they matter, and z there."""
        deep = -float(ndtri(self.dropped(1))) if self.faint > 0.0 else np.inf
        top, bottom = self.run.tau + min(FULL, deep), max(_BELOW, -deep)
        x = self.layout(1).between(0.0, float(self.run.log_ratio(np.array(top))))
        z = self.run.place(x[x > 0.0])
        inside = z >= bottom
        return x[x > 0.0][inside], z[inside]
