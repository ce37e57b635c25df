"""Both sides of sampled Gaussian mechanisms of little noise, by how many steps had the record.

Where a single step with the record is told from others almost for certain, what counts is how many
there are. From above they are shown to the attacker; from below the attacker counts steps whose
output is large. Both are sums over that number, in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ...numerics import namespace as xp
from ...numerics.errors import LOGS, UNIT
from ...numerics.normal import log1mexp, log_ndtr
from ...numerics.shapes import Array, Float
from ...pairs.known_curves import GaussianCurve
from ...pairs.known_curves.base import REMOVE
from .normal_curve import Profile

# absolute, of a log of a binomial probability or of a sum of them: up to a thousand logs of up to
# 40 and their partial sums, or ten times as many in blocks, probabilities known to log_ndtr's
# digits times the number of tries
BINOMIAL = 1e-7
MOST_JUMPS = 500.0  # expected, that this serves
MOST_LOCATED = 8000.0  # … and tests by which steps they are
_SCREENED = 64.0 * UNIT  # share of what an argument of Φ, or a log of it, is made of
_DEEP, _SURE = 38.6, 9.0  # deviations beyond which Φ is next to nothing, or all but nothing is left
# numbers of jumps that are looked at: of tests by how many there are, and in all
_MOST, _MOST_COUNTED = 1024, 10240
_NUMBERS = 64  # of them, of which one decides how little is left far out


class SampledRun(NamedTuple):
    """T steps of N(0, σ²) against (1 − p)·N(0, σ²) + p·N(1, σ²).

    Attributes:
        sigma, p, steps: σ, p and T.
        q: 1 − p where that is known better than from p as a double.
    """

    sigma: float
    p: float
    steps: float
    q: float | None = None

    @property
    def log_p(self) -> float:
        """log p."""
        return float(np.log(self.p) if self.q is None or self.q > 0.5 else np.log1p(-self.q))

    @property
    def log_q(self) -> float:
        """log(1 − p)."""
        with np.errstate(divide="ignore"):
            return float(np.log1p(-self.p) if self.q is None or self.p < 0.5 else np.log(self.q))


class Jumps(NamedTuple):
    """What a run is bounded by: one that dominates it, and some that it dominates.

    Attributes:
        above: every shift that is not 0 taken for the largest one.
        below: for each of some sizes, every larger shift taken for that one and every smaller one
            for 0. A sampled Gaussian mechanism is bounded by itself.
    """

    above: SampledRun
    below: tuple[SampledRun, ...]

    @property
    def nearest(self) -> SampledRun:
        """The one below that counts every jump, however small: the hardest to tell."""
        return self.below[0]


_MOST_SIZES = 6  # of shifts, each of which has a run below


def jumps_of_shifts(
    sigma: float, shifts: Float[Array, " shifts"], weights: Float[Array, " shifts"], steps: float
) -> Jumps | None:
    """Of T steps of N(0, σ²) against Σ w_i·N(c_i, σ²); None without a shift that is not 0.

    Args:
        sigma: σ.
        shifts, weights: c_i ≥ 0 and w_i ≥ 0, whose sum is divided out.
        steps: T.

    Method: docs/method/limit.md#counted-jumps
    """
    order = np.argsort(shifts, kind="stable")
    c, w = np.asarray(shifts, float)[order], np.asarray(weights, float)[order]
    w = w / w.sum()
    moved = np.flatnonzero((c > 0.0) & (w > 0.0))
    if not len(moved):
        return None

    def run(at: int, size: float) -> SampledRun:
        still, some = w[:at].sum(), w[at:].sum()
        p = float(some if some < 0.5 else 1.0 - still)
        return SampledRun(sigma / size, min(p, 1.0), steps, float(still))

    sizes = np.unique(moved[np.unique(c[moved], return_index=True)[1]])
    sizes = sizes[np.unique(np.rint(np.linspace(0, len(sizes) - 1, _MOST_SIZES)).astype(int))]
    below = tuple(run(int(at), float(c[at])) for at in sizes)
    return Jumps(run(int(moved[0]), float(c[moved[-1]])), below)


class Counts(NamedTuple):
    """Logs of Pr[J = j] of a binomial number J, for j = 0, 1, …, and of a bound on the probability
    that J is larger."""

    log_mass: Float[Array, " counts"]
    log_rest: float


def counts(steps: float, log_p: float, log_q: float | None = None) -> Counts:
    """Of so many tries with probability p of at most MOST_LOCATED expected, up to where little is
    left; ``log_q`` is log(1 − p) where that is known better than from p.

    C(T, j) is a product of j quotients, and the rest is at most a geometric series.

    Method: docs/method/limit.md#counted-jumps
    """
    log_q = float(log1mexp(log_p)) if log_q is None else log_q
    mean = steps * np.exp(log_p)
    last = int(min(steps, mean + 40.0 + 9.0 * np.sqrt(mean), _MOST_COUNTED))
    number = np.arange(last + 1.0)
    others = np.where(number < steps, (steps - number) * log_q, 0.0)
    log_mass = ways(steps, last) + number * log_p + others
    if last == steps:
        return Counts(log_mass, -np.inf)
    # (each next probability is less than so many times the one before)
    log_ratio = np.log((steps - last) / (last + 1.0)) + log_p - log_q
    beyond = log_mass[-1] + log_ratio - log1mexp(log_ratio) if log_ratio < 0.0 else 0.0
    return Counts(log_mass, min(float(beyond) + BINOMIAL, 0.0))


def log_delta_far_out(
    sigma: Float[Array, " settings"],
    p: Float[Array, " settings"],
    steps: Float[Array, " settings"],
    epsilon: Float[Array, " settings"],
) -> Float[Array, " settings"]:
    """log of a bound from above on δ(ε) of either order, which is all that counts far out:

    δ(ε) ≤ Pr[J > j] + δ_{√j/σ}(ε) ≤ (pT)^{j + 1}/(j + 1)! + Φ(√j/(2σ) − εσ/√j)

    for every number of jumps j; the least of some.

    Args:
        sigma, p, steps: σ, p and T of sampled Gaussian mechanisms.
        epsilon: ε ≥ 0 of each.

    Method: docs/method/limit.md#counted-jumps
    """
    j = np.unique(np.rint(np.geomspace(1.0, _MOST, _NUMBERS)))
    sigma, p, steps, epsilon = (a[:, None] for a in (sigma, p, steps, epsilon))
    with np.errstate(all="ignore"):
        log_more = (j + 1.0) * (np.log(p) + np.log(steps)) - gammaln(j + 2.0) + BINOMIAL
        mu = np.sqrt(j) / sigma
        a = 0.5 * mu - epsilon / mu + _SCREENED * (0.5 * mu + epsilon / mu)
        log_delta = log_ndtr(a) * (1.0 - _SCREENED)
        found = np.logaddexp(np.where(j < steps, log_more, -np.inf), log_delta) + LOGS
    return np.min(np.where(np.isnan(found), 0.0, np.minimum(found, 0.0)), axis=-1)


def ways(steps: float, most: int) -> Float[Array, " counts"]:
    """Logs of the numbers of sets of 0, 1, …, so many steps: sums in blocks, so that no more than
    twice the root of their number of additions follow each other.
    """
    j = np.arange(1.0, most + 1.0)
    block = math.isqrt(most) + 1
    terms = np.zeros(block * block)
    terms[:most] = np.log((steps - j + 1.0) / j)
    within = np.cumsum(terms.reshape(block, block), axis=1)
    before = np.concatenate([[0.0], np.cumsum(within[:-1, -1])])
    return np.concatenate([[0.0], (before[:, None] + within).reshape(-1)[:most]])


def least_number(run: SampledRun) -> int:
    """A number of jumps below which there hardly ever are."""
    mean = run.p * run.steps
    return int(max(mean - 10.0 * np.sqrt(mean), 0.0))


def profiles(
    deviation: Float[Array, " counts"], epsilon: Float[Array, "thresholds counts"]
) -> tuple[Array, Array]:
    """Logs of bounds from above on δ(ε), and from below on 1 − δ(ε), of Gaussian curves.

    Where Φ(a) of δ(ε) = Φ(a) − e^ε·Φ(b), a = μ/2 − ε/μ, is all of it or next to nothing, that and
    Φ(−a) are the bounds.

    Args:
        deviation: μ of each, up to a few units.
        epsilon: ε ≥ 0 of each.

    Method: docs/method/limit.md#counted-jumps
    """
    mu = np.broadcast_to(deviation, epsilon.shape)
    a = 0.5 * mu - epsilon / mu + _SCREENED * (0.5 * mu + epsilon / mu)
    log_delta = np.minimum(log_ndtr(a) * (1.0 - _SCREENED), 0.0)
    log_rest = log_ndtr(-a) * (1.0 + _SCREENED) - _SCREENED
    # (what is no number says nothing)
    log_delta = np.where(np.isnan(log_delta), 0.0, log_delta)
    log_rest = np.where(np.isnan(log_rest), -np.inf, log_rest)
    near = (a > -_DEEP) & (a < _SURE)
    curve = GaussianCurve(mu[near] * (1.0 - 8.0 * UNIT), mu[near] * (1.0 + 8.0 * UNIT))
    log_delta[near] = curve.log_delta(REMOVE, epsilon[near]).upper
    log_rest[near] = curve.log_one_minus_delta(REMOVE, epsilon[near]).lower
    return log_delta, log_rest


def profile(run: SampledRun, thresholds: Float[Array, " thresholds"]) -> Profile:
    """Bounds from above on δ, and from below on 1 − δ, where it is shown how many steps had the
    record: the same for both orders.

    Args:
        run: as it is.
        thresholds: increasing, the first one 0.

    Method: docs/method/limit.md#counted-jumps
    """
    found = counts(run.steps, run.log_p, run.log_q)
    # (few jumps show less than more: those that are hardly ever as few are taken for more)
    first = min(least_number(run), len(found.log_mass) - 1)
    mass = found.log_mass[first:].copy()
    mass[0] = xp.logsumexp(found.log_mass[: first + 1])
    number = np.arange(first, len(found.log_mass))
    shown = number > 0
    mu = np.sqrt(number[shown]) / run.sigma
    with np.errstate(all="ignore"):
        delta, rest = profiles(mu, np.broadcast_to(thresholds[:, None], (len(thresholds), len(mu))))
        delta, rest = delta + mass[shown], rest + mass[shown]
    log_delta = xp.logsumexp(delta, axis=-1) + BINOMIAL
    none = mass[0] if first == 0 else -np.inf
    log_rest = np.logaddexp(xp.logsumexp(rest, axis=-1), none) - BINOMIAL
    log_delta = np.minimum(np.logaddexp(log_delta, found.log_rest), 0.0)
    return Profile(log_delta, np.minimum(log_rest, 0.0))


# logs of FPRs from above, of TPRs from below, of FNRs from above
Test = tuple[Array, Array, Array]


class _Tests(NamedTuple):
    """Logs of the probabilities, under one law, that at least k of the outputs are large, from
    above and from below, and that fewer are, from above and from below; k = 1, 2, …"""

    most: Array
    least: Array
    most_fewer: Array
    least_fewer: Array


def _tests(found: Counts, number: int) -> _Tests:
    mass = np.full(_MOST + 2, -np.inf)
    mass[: len(found.log_mass)] = found.log_mass
    below = np.logaddexp.accumulate(mass)[:number]
    above = np.logaddexp.accumulate(mass[::-1])[::-1][1 : number + 1]
    most = np.minimum(np.logaddexp(above, found.log_rest) + BINOMIAL, 0.0)
    most_fewer = np.minimum(np.logaddexp(below, found.log_rest) + BINOMIAL, 0.0)
    return _Tests(most, above - BINOMIAL, most_fewer, below - BINOMIAL)


def achieved_tests(
    run: SampledRun, places: Float[Array, " places"], number: int
) -> tuple[list[Test], list[Test]]:
    """Tests that count the steps whose output is larger than some place, from below; of both
    orders.

    Args:
        run: as it is.
        places: in standard deviations of the noise; those are left out where too many outputs are
            larger.
        number: how many outputs have to be larger, at most.

    Method: docs/method/limit.md#counted-jumps
    """
    plus: list[Test] = []
    minus: list[Test] = []
    for z in places:
        absent = float(log_ndtr(-z))
        present = run.log_p + float(log_ndtr(1.0 / run.sigma - z))
        present = float(np.logaddexp(run.log_q + absent, present))
        if not run.steps * np.exp(max(absent, present)) <= MOST_JUMPS:
            continue
        null, other = (_tests(counts(run.steps, a), number) for a in (absent, present))
        plus.append((null.most, other.least, other.most_fewer))
        minus.append((other.most_fewer, null.least_fewer, null.most))
    return plus, minus
