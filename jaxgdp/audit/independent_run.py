"""One run with canaries that do not touch each other: a stronger test, under an assumption.

The assumption: given the coins, the output consists of parts, one for each canary, that are
independent of each other, and part i depends on coin i alone. Gradient canaries in directions of
their own, with noise drawn independently in each, seen without anything else, are of this kind.

Then each part is a garbling of the pair (P, Q) whose trade-off curve the claim is (Blackwell 1951),
and all parts together one of m independent such pairs. With their privacy losses ℓ_i known, guess i
is right with probability 1/(1 + e^−|ℓ_i|) at most, independently of the others, and no r guesses do
better than those with the largest |ℓ_i|. Let U be the share of the law of |ℓ| beyond the (r + 1)-st
largest: it is Beta(r + 1, m − r) distributed, and given U the r right guesses are independent, each
with the probability q(U), where q(u) = TPR/u at the point of the curve with FPR + TPR = u. Hence

    Pr[right ≥ v] ≤ E[Pr[Bin(r, q(U)) ≥ v]],  q(u) ≤ min over half-planes of (s·u + c)/((1 + s)·u).

Without the assumption this is no bound: a mechanism that draws one |ℓ| for all canaries has the
same curve, and is right far oftener (see the method page)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from .bound import LOWER, Bound
from .claims import as_claim
from .half_planes import HalfPlanes
from .one_run import LARGEST_MU, binomial_tail, checked_numbers
from .scores import confidence_level

_CELLS = 500  # of each half of the law of U
_EDGE = 1e-12  # probability of its lower end, which counts in full
_ROOM = 1e-12
_HALVINGS = 40
ASSUMPTION = "if the outputs for different canaries are independent of each other"


def _right(lines: HalfPlanes, share: np.ndarray) -> np.ndarray:
    """q(u), from above."""
    steep = lines.slope >= 1.0
    s, c = lines.slope[steep, None], lines.intercept[steep, None]
    return np.clip(np.min((s * share + c) / ((1.0 + s) * share), axis=0, initial=1.0), 0.5, 1.0)


def _level(lines: HalfPlanes, m: int, r: int, v: int) -> float:
    if v == 0:
        return 1.0
    if r == m:
        found = float(binomial_tail(r, _right(lines, np.ones(1))[0] * (1.0 + _ROOM), v))
    else:
        # closer together where U is unusually small, and v right guesses are likelier
        chance = np.concatenate([np.geomspace(_EDGE, 0.1, _CELLS), np.linspace(0.1, 1.0, _CELLS)])
        edge = betaincinv(r + 1.0, float(m - r), np.unique(chance)[:-1])
        mass = np.diff(np.append(betainc(r + 1.0, float(m - r), edge), 1.0))
        # q falls: in each cell it is at most what it is at the left end
        right = np.minimum(_right(lines, edge) * (1.0 + _ROOM), 1.0)
        found = float(mass @ binomial_tail(r, right, v)) + 2.0 * _EDGE
    return min(1.0, found * (1.0 + 1e-9) + _ROOM)


def independent_run_level(
    claim: Any, num_canaries: int, num_guesses: int, num_correct: int
) -> float:
    """Smallest level at which the guesses of one run refute a claim, if canaries are independent.

    Args:
        claim: as for :func:`jaxgdp.audit.one_run_level`.
        num_canaries: m ≥ 1, each put in or left out by its own fair coin.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.

    Returns:
        A p-value under the claim *and* the assumption that, given the coins, the outputs for
        different canaries are independent and each depends on its own coin alone. Without it,
        :func:`jaxgdp.audit.one_run_level` is the p-value.

    Raises:
        ValueError: a number out of range, or no claim.

    Example:
        >>> from jaxgdp.audit import one_run_level
        >>> independent_run_level(1.0, 100, 100, 80) < 0.05 < one_run_level(1.0, 100, 100, 80)
        True

    Method: docs/method/one-run.md#independent
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    return _level(as_claim(claim).half_planes(), m, r, v)


def independent_run_mu(
    num_canaries: int, num_guesses: int, num_correct: int, confidence: float = 0.95
) -> Bound:
    """Largest μ that the guesses of one run refute, if canaries are independent of each other.

    Args:
        num_canaries: as for :func:`independent_run_level`.
        num_guesses: as for :func:`independent_run_level`.
        num_correct: as for :func:`independent_run_level`.
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        A :class:`jaxgdp.audit.Bound`: under the assumption, and with the confidence, μ is at least
        this; 0 where nothing is proven.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> print(independent_run_mu(1000, 200, 190))
        mu >= 1.22... with confidence 95 %; if the outputs for different canaries ...

    Method: docs/method/one-run.md#independent
    """
    m, r, v = checked_numbers(num_canaries, num_guesses, num_correct)
    confidence = confidence_level("confidence", confidence)
    refuted = lambda mu: _level(as_claim(mu).half_planes(), m, r, v) <= 1.0 - confidence
    low, high = 0.0, LARGEST_MU
    if refuted(low):
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if refuted(middle) else (low, middle)
    return Bound(low, "mu", LOWER, confidence, ASSUMPTION)
