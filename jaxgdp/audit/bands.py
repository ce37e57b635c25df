"""How large a probability can be, given counts: at one fixed threshold, or at all at once.

One threshold: Clopper and Pearson's limit u(k), the probability at which at most k of n is as
unlikely as the tail allowed.

All thresholds. X₁ … Xₙ have distribution function F, and K(x) counts those below x. The band is a
sequence u(0) ≤ … ≤ u(n) = 1 with

    Pr[F(x−) ≤ u(K(x)) for every x] ≥ 1 − miss,   F(x−) = Pr[X < x].

Let F be continuous. While K(x) = k, F(x) rises to the (k+1)-st smallest of the Uᵢ = F(Xᵢ), which
are uniform, so the band holds just when U₍ᵢ₎ ≤ u(i − 1) for i = 1 … n. If F has atoms, X = F⁻¹(U)
for a uniform U, and K(x) counts Uᵢ ≤ F(x−): the same event, restricted to some of its points, so
that ties make the band safer. The event also stays true if only some ranks i are used, with the u
of the next used rank in between, since that u is only larger.

The limits are Clopper and Pearson's at one common local level λ (Berk and Jones 1979; Aldor-Noiman
et al. 2013), and λ is found so that the probability of the whole event is 1 − miss. That
probability is computed, not simulated: the number of uniforms up to t is a Poisson process given
its end N(1) = n, so that the chance of N(u(i − 1)) ≥ i for all ranks is a sequence of convolutions
with Poisson weights (Moscovich and Nadler 2017). All terms are positive; what is cut off at the far
end only lowers the answer. λ = miss/ranks, the union bound, is the fallback, and is never less than
safe."""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import betainccinv, gammaln

from ..numerics.shapes import ArrayLike

_INFLATE = 1.0 + 1e-9  # rounding of the inverse incomplete beta function
_SPACING = 0.12  # ranks looked at, apart in standard deviations of the count, up to
_MANY = 100_000  # scores, and further apart with the root of their number beyond
_FAR, _MORE = 9.0, 40.0  # window of counts: standard deviations, and counts
_SLACK = 1e-12  # of computed probabilities
_WIDE = 1.002  # how closely the local level is searched


def clopper_pearson(count: ArrayLike, trials: ArrayLike, tail: float):
    """Upper confidence limit: the p with Pr[Bin(n, p) ≤ k] = tail (Clopper and Pearson 1934).

    Args:
        count: k, whole numbers from 0 to n.
        trials: n ≥ 1.
        tail: probability, in (0, 1), that the limit is too small.

    Returns:
        Limits in (0, 1], float64, rounded up; 1 where k = n.

    Example:
        >>> round(float(clopper_pearson(0, 100, 0.05)), 6)  # 1 − 0.05^(1/100)
        0.029513
    """
    k, n = np.asarray(count, float), np.asarray(trials, float)
    full = k >= n
    inside = betainccinv(np.where(full, 0.0, k) + 1.0, np.where(full, 1.0, n - k), tail)
    return np.where(full, 1.0, np.minimum(inside * _INFLATE, 1.0))


def ranks(trials: int) -> np.ndarray:
    """Order statistics of the band, fixed by n alone: all near both ends, fewer between."""
    n, found, rank = trials, [], 1
    spacing = _SPACING * max(1.0, np.sqrt(n / _MANY))
    while rank <= n:
        found.append(rank)
        rank += max(1, int(spacing * np.sqrt(rank * (n - rank) / n)))
    if found[-1] != n:
        found.append(n)
    return np.array(found)


def coverage(limits: np.ndarray, at: np.ndarray, trials: int) -> float:
    """Pr[U₍ᵢ₎ ≤ limit for every rank i], U₍ᵢ₎ the i-th of n sorted uniforms; from below.

    Args:
        limits: increasing, in (0, 1].
        at: ranks i, increasing.
        trials: n.

    Returns:
        A probability; what is neglected is below 1e-13.

    Example:
        >>> round(coverage(np.array([0.5]), np.array([1]), 2), 12)  # the smaller one of two
        0.75
    """
    n = trials
    logs = gammaln(np.arange(n + 2.0) + 1.0)

    def poisson(mean: np.ndarray, top: int):
        k = np.arange(top + 1.0)
        return np.exp(k * np.log(mean) - mean - logs[: top + 1])

    low, weight, before = 0, np.ones(1), 0.0
    for rank, limit in zip(at, limits, strict=True):
        if limit >= 1.0:
            break
        mean, spread = n * (limit - before), np.sqrt(n * limit * (1.0 - limit))
        top = int(min(n, np.ceil(n * limit + _FAR * spread + _MORE)))
        if mean > 0.0:
            reach = int(min(n, np.ceil(mean + _FAR * np.sqrt(mean) + _MORE)))
            weight = np.convolve(weight, poisson(mean, reach))
        # counts from ``low`` on: fewer than ``rank`` is a miss, more than ``top`` does not happen
        weight = weight[max(rank - low, 0) : top + 1 - low]
        low, before = max(low, int(rank)), limit
    if before < 1.0:
        k = np.arange(low, low + len(weight))
        rest = n * (1.0 - before)
        weight = weight * np.exp((n - k) * np.log(rest) - rest - logs[n - k])
        total = weight.sum()
    else:
        total = weight[n - low]
    return float(total / np.exp(n * np.log(n) - n - logs[n]))


@functools.lru_cache(maxsize=256)
def local_level(trials: int, miss: float) -> float:
    """λ: the tail of each limit at which all together miss with probability at most ``miss``.

    Args:
        trials: n ≥ 1.
        miss: in (0, 1).

    Returns:
        A float between miss/n and miss.

    Example:
        >>> local_level(1, 0.05)  # one limit that is below 1
        0.05
    """
    at = ranks(trials)
    if len(at) == 1:
        return miss

    def missed(level: float):
        return 1.0 - coverage(clopper_pearson(at - 1, trials, level), at, trials)

    low, high = miss / len(at), miss  # the union bound is safe
    at_low = np.log(low)
    at_high = np.log(high)
    guess = np.log(miss / (2.0 + 2.0 * np.log(len(at))))
    for _ in range(40):
        if at_high - at_low < np.log(_WIDE):
            break
        found = missed(np.exp(guess))
        if found <= miss - _SLACK:
            at_low = guess
        else:
            at_high = guess
        # the chance of a miss grows nearly in proportion to the level
        aim = guess + np.log((miss * (1.0 - 0.3 * (_WIDE - 1.0))) / max(found, 1e-300))
        inside = at_low < aim < at_high
        guess = aim if inside else 0.5 * (at_low + at_high)
    return float(np.exp(at_low))


@functools.lru_cache(maxsize=64)
def simultaneous(trials: int, miss: float) -> np.ndarray:
    """The band u(0) … u(n): upper limits that hold at every threshold at once.

    Args:
        trials: n ≥ 1.
        miss: probability, in (0, 1), that any of them is too small.

    Returns:
        Limits by count, shape (n + 1,), read-only.

    Example:
        >>> simultaneous(2, 0.05).round(4).tolist()
        [0.8352, 0.9863, 1.0]
    """
    at = ranks(trials)
    limits = clopper_pearson(at - 1, trials, local_level(trials, miss))
    band = np.ones(trials + 1)
    # at a count k, the limit of the first rank above it
    band[:trials] = limits[np.searchsorted(at, np.arange(1, trials + 1))]
    band.setflags(write=False)
    return band


@functools.lru_cache(maxsize=64)
def one_by_one(trials: int, miss: float) -> np.ndarray:
    """Clopper-Pearson limits by count, for one threshold fixed before the scores were seen.

    Args:
        trials: n ≥ 1.
        miss: in (0, 1).

    Returns:
        Limits, shape (n + 1,), read-only.
    """
    limits = clopper_pearson(np.arange(trials + 1), trials, miss)
    limits.setflags(write=False)
    return limits
