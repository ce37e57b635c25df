"""Lower bounds from one training run with many canaries: Steinke et al. 2023 for (ε, δ),
Mahloujifar et al. 2024 for any trade-off curve.

The experiment. Each of m canaries is put into the training data or left out by its own fair coin.
An attacker sees the output and guesses r of the m coins (r fixed beforehand; it abstains on the
others). v guesses are right. Coins that are not independent and fair, such as "exactly half of
them", are outside of what follows.

(ε, δ). Under ε-DP the number of right guesses is dominated by W ~ Bin(r, e^ε/(1 + e^ε)), since
given everything else each guess is right with at most that probability; with δ (Steinke et al.
2023, Theorem 5.2)

    Pr[right ≥ v] ≤ Pr[W ≥ v] + 2mδ·max_{1 ≤ i ≤ v} Pr[v > W ≥ v − i]/i.

Trade-off curves. Let G = 1 − f, f symmetric, p_j = Pr[exactly j right], and for one canary i and a
number k let A be "guess i is right and at least k of the others are", B the same with guess i
wrong. Flipping coin i turns A into B and changes the data set by one record, so that Pr[A | coin] ≤
G(Pr[B | other coin]) for both coins; their mean, and then the mean over canaries, keep the
inequality, as G is concave. Summed over canaries, A counts the right guesses of runs with at least
k + 1 right, and B the wrong ones of runs with at least k right:

    R_{k+1} ≤ G(H_k), R_k = Σ_{j≥k} j·p_j/m, H_k = Σ_{j≥k} (r − j)·p_j/m, that is H_k ≥ f(1 −
    R_{k+1}).

Suppose Pr[right ≥ v] ≥ τ. Among all p that satisfy this, the p with the least total mass has τ at v
and, going down from v − 1, just as much at each k as the inequality demands: mass at a smaller k
adds more to H and less to R than the same mass further up, so waiting costs least (by induction
from k + 1 to k, R_k − κ·H_k is least for every κ from 0 to k/(r − k), and so are R_k and the total
wherever the inequality binds). If even that total exceeds 1, then Pr[right ≥ v] < τ under f, and v
right guesses refute f at level τ. Any function below R ↦ f(1 − R) keeps the conclusion, f being
monotone: the certified lower side of f does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainc, expit, ndtr, ndtri

from ..numerics.shapes import ArrayLike
from ..numerics.validation import checked, whole
from .bound import Bound
from .claims import as_claim
from .one_run_worst import worst_level, worst_mu
from .scores import confidence_level

_LARGEST_EPSILON, LARGEST_MU = 60.0, 40.0
LEAST_LEVEL = 1e-15
_HALVINGS = 60
_LANES = 256
FULL = 1.0 + 1e-12  # more than all probability, and room for rounding


def checked_numbers(num_canaries: int, num_guesses: int, num_correct: int) -> tuple[int, int, int]:
    """m, r and v as whole numbers with 1 ≤ r ≤ m and 0 ≤ v ≤ r.

    Raises:
        ValueError: a number out of range, by name.
    """
    m, r = int(whole("num_canaries", num_canaries)), int(whole("num_guesses", num_guesses))
    v = checked(
        "num_correct", num_correct, "a whole number >= 0", lambda a: (a >= 0.0) & (a == np.floor(a))
    )
    if r > m:
        raise ValueError(f"num_guesses must be at most num_canaries = {m}, got {r}")
    if v.ndim or v > r:
        raise ValueError(
            f"num_correct must be one number, at most num_guesses = {r}, got {num_correct!r}"
        )
    return m, r, int(v)


def binomial_tail(number: int, prob: ArrayLike, at_least: ArrayLike):
    """Pr[Bin(number, prob) ≥ at_least]; ``prob`` and ``at_least`` broadcast."""
    k = np.asarray(at_least, float)
    inside = (k > 0) & (k <= number)
    safe = np.where(inside, k, 1.0)
    return np.where(k <= 0, 1.0, np.where(inside, betainc(safe, number - safe + 1.0, prob), 0.0))


def one_run_p_value(
    num_canaries: int, num_guesses: int, num_correct: int, epsilon: float, delta: float = 0.0
) -> float:
    """Bound on Pr[as many guesses are right] under (ε, δ)-DP (Steinke et al. 2023, Thm. 5.2).

    Args:
        num_canaries: m ≥ 1.
        num_guesses: r, 1 ≤ r ≤ m.
        num_correct: v, 0 ≤ v ≤ r.
        epsilon: ε ≥ 0 in nats.
        delta: in [0, 1).

    Returns:
        A probability; the claim is refuted at confidence 1 − p.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> round(one_run_p_value(10, 10, 10, 0.0), 6)  # ten fair coins
        0.000977
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    delta = float(checked("delta", delta, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))
    epsilon = float(checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0))
    return _p_value(m, r, v, epsilon, delta)


def _p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    prob = float(expit(epsilon))
    most = float(binomial_tail(r, prob, v))
    if delta == 0.0 or v == 0:
        return most
    i = np.arange(1, v + 1)
    return min(
        1.0, most + 2.0 * m * delta * float(np.max((binomial_tail(r, prob, v - i) - most) / i))
    )


def _largest_refuted(refuted: Callable, most: float) -> float:
    """The largest number that is refuted, from below; 0 where none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < most:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return low


def one_run_epsilon(
    num_canaries: int, num_guesses: int, num_correct: int, delta: float, confidence: float = 0.95
) -> Bound:
    """Largest ε such that (ε, δ)-DP is refuted by the guesses of one run (Steinke et al. 2023).

    Args:
        num_canaries: m ≥ 1, each put in or left out by its own fair coin.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.
        delta: in [0, 1).
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        A :class:`jaxgdp.audit.Bound`: with the confidence, ε at this δ is at least this; 0 where
        nothing is proven.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> print(one_run_epsilon(1000, 1000, 750, delta=1e-5))
        epsilon(delta = 1e-05) >= 0.976367 with confidence 95 %
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    delta = float(checked("delta", delta, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))
    confidence = confidence_level("confidence", confidence)
    found = _largest_refuted(
        lambda epsilon: _p_value(m, r, v, epsilon, delta) <= 1.0 - confidence, _LARGEST_EPSILON
    )
    return Bound(found, f"epsilon(delta = {delta:g})", confidence=confidence)


def least_mass(
    lower: Callable, m: int, r: ArrayLike, v: ArrayLike, level: ArrayLike, enough: float = 1.0
):
    """Smallest total probability of right-guess counts under a curve, if at least ``v`` of ``r``
    are right with probability ``level``.

    The recursion at the top of this file, for many (r, v) at once.

    Args:
        lower: function of R in [0, 1] (an array of shape (k,), and the places it belongs to) → a
            lower bound on f(1 − R).
        m: canaries.
        r, v: whole numbers, shape (k,).
        level: τ, shape (k,) or scalar.
        enough: masses above this need not be known further.

    Returns:
        Totals, shape (k,): above 1 refutes the curve at level τ.
    """
    r, v = np.broadcast_arrays(np.atleast_1d(r).astype(float), np.atleast_1d(v).astype(float))
    level = np.broadcast_to(level, r.shape)
    right, wrong = level * v / m, level * (r - v) / m
    total = (right + wrong) * m / r
    alive = np.flatnonzero((v >= 1.0) & (total <= enough))
    k = v - 1.0
    while alive.size:
        here = k[alive]
        demanded = np.maximum(wrong[alive], lower(np.minimum(right[alive], 1.0), alive))
        more = demanded - wrong[alive]
        wrong[alive] = demanded
        right[alive] += here / (r[alive] - here) * more
        total[alive] = (right[alive] + wrong[alive]) * m / r[alive]
        k[alive] -= 1.0
        # where no more is demanded, none will be
        alive = alive[(more > 0.0) & (total[alive] <= enough) & (k[alive] >= 0.0)]
    return total


def least_mass_of_each(
    lower: Callable, m: np.ndarray, r: np.ndarray, v: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """:func:`least_mass` for an m of each place; ``lower`` is told the places of all of them."""
    found = np.zeros(len(m))
    for canaries in np.unique(m):
        here = np.flatnonzero(m == canaries)
        of_these = lambda right, places, here=here: lower(right, here[places])
        found[here] = least_mass(of_these, int(canaries), r[here], v[here], level[here])
    return found


def _last(
    refuted: Callable, low: float, high: float, rounds: int, spaced: Callable = np.linspace
) -> float:
    """The last number from ``low`` on that is refuted, looking at many at a time."""
    for _ in range(rounds):
        grid = spaced(low, high, _LANES)
        good = refuted(grid[1:-1])
        first = 1 + int(np.argmin(good)) if not good.all() else _LANES - 1
        low, high = float(grid[first - 1]), float(grid[first])
    return low


def one_run_mu(
    num_canaries: int,
    num_guesses: int,
    num_correct: int,
    confidence: float = 0.95,
    tight: bool = False,
) -> Bound:
    """Largest μ such that one run's guesses refute μ-GDP (Mahloujifar et al. 2024, f = f_μ).

    Args:
        num_canaries: m ≥ 1, each put in or left out by its own fair coin.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.
        confidence: in [0.5, 1 - 1e-9].
        tight: whether to go on to the exact worst case (:mod:`jaxgdp.audit.one_run_worst`), which
            takes seconds for hundreds of guesses and gains a few per cent.

    Returns:
        A :class:`jaxgdp.audit.Bound`: with the confidence, μ is at least this; 0 where nothing is
        proven.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> print(one_run_mu(1000, 200, 190))
        mu >= 0.908054 with confidence 95 %
        >>> bool(one_run_mu(100, 40, 36, tight=True) > one_run_mu(100, 40, 36))
        True

    Method: docs/method/one-run.md#recursion
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    confidence = confidence_level("confidence", confidence)

    def refuted(mu: np.ndarray):
        lower = lambda right, places: ndtr(ndtri(right) - mu[places])
        return least_mass(lower, m, np.full(mu.shape, r), v, 1.0 - confidence) > FULL

    found = _last(refuted, 0.0, LARGEST_MU, 5) if refuted(np.zeros(1))[0] else 0.0
    if tight and v > 0:
        found = worst_mu(m, r, v, 1.0 - confidence, found)
    return Bound(found, "mu", confidence=confidence)


def one_run_level(
    claim: Any, num_canaries: int, num_guesses: int, num_correct: int, tight: bool = False
) -> float:
    """Smallest level at which one run's guesses refute a claim: a p-value under its curve.

    Args:
        claim: a mechanism, a :class:`jaxgdp.TradeoffCurve`, μ, or (ε, δ). For a certified curve,
            the side that allows the attacker more is taken, so that no mechanism within its bracket
            is refuted wrongly.
        num_canaries: as for :func:`one_run_mu`.
        num_guesses: as for :func:`one_run_mu`.
        num_correct: as for :func:`one_run_mu`.
        tight: as for :func:`one_run_mu`.

    Returns:
        A probability; 1 where nothing is refuted. A claim at confidence c is refuted if this is at
        most 1 − c.

    Raises:
        ValueError: a number out of range, or no claim.

    Example:
        >>> [one_run_level(mu, 1000, 200, 190).__round__(3) for mu in (0.908054, 2.0)]
        [0.05, 1.0]

    Method: docs/method/one-run.md#recursion
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    stated = as_claim(claim)
    lower = stated.swapped(r / m)
    refuted = lambda level: (
        least_mass(lambda right, _: lower(right), m, np.full(level.shape, r), v, level) > FULL
    )
    found = 1.0
    if refuted(np.array([1.0 - 1e-12]))[0]:
        # downwards from 1, in the logarithm
        found = _last(refuted, 1.0, LEAST_LEVEL, 4, np.geomspace)
    # both are bounds on one probability, and so is the smaller one
    return min(found, worst_level(stated.half_planes(), m, r, v)) if tight else found
