"""The exact worst case of one run: how likely so many right guesses are under a trade-off curve.

For the experiment of :mod:`jaxgdp.audit.one_run`, let p_j = Pr[exactly j of r guesses are right],
a_j = j·p_j/m and b_j = (r − j + 1)·p_{j−1}/m. For a uniform canary i, a_j is the probability that
guess i is right and j are right in all, and b_j that of the same guesses if coin i is flipped.
Hence, under a claim with TPR ≤ s·FPR + c for both orders, for every slope s ≥ 1 and every set of j,

    Σ_j max(a_j − s·b_j, 0) + Σ_j max(b_j − s·a_j, 0) ≤ c.

These inequalities are all there is: for every p that satisfies them there is a mechanism below the
curve (permute and flip the canaries at random), so that the largest Pr[right ≥ v] is the value of a
linear program. A linear program steers here; what is reported is the value of its dual for the
multipliers it returned, which bounds Pr[right ≥ v] for any multipliers whatever."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import gdp
from ..numerics.shapes import Array
from .half_planes import HalfPlanes

_SLOPES = 32  # half-planes that the program holds
_REACH = 6.0  # largest ε of the slopes against μ-GDP, in multiples of μ, and at least of 1/2
_STEPS = 4  # programs that are solved for one bound on μ
_SMALLEST = 0.02  # μ that is tried first where none is known to be refuted
_HALVINGS = 30
_ROOM = 1e-13


class Certificate(NamedTuple):
    """A proof that Pr[right ≥ v] ≤ ``base`` + Σ weight·c for the intercepts c of the half-planes.

    Attributes:
        base: bound on what is left beside the half-planes.
        weight: ≥ 0, one for each half-plane, shape (k,).
    """

    base: float
    weight: np.ndarray

    def level(self, intercept: Array) -> float:
        """The bound for half-planes of the same slopes with these intercepts; at most 1."""
        terms = self.weight * intercept
        return float(min(1.0, self.base + terms.sum() + _ROOM * np.abs(terms).sum()))


def certificate(
    slope: np.ndarray, intercept: np.ndarray, num_canaries: int, num_guesses: int, num_correct: int
) -> Certificate:
    """A bound on Pr[right ≥ v] by half-planes, as good as their linear program knows.

    Args:
        slope: s ≥ 1, shape (k,).
        intercept: c, shape (k,).
        num_canaries: m.
        num_guesses: r ≤ m, exactly as many as are made.
        num_correct: v ≥ 1.

    Returns:
        :class:`Certificate`; a bound of 1 if the program finds none.

    Method: docs/method/one-run.md#worst
    """
    m, r, v = num_canaries, num_guesses, num_correct
    right = np.arange(1, r + 1.0) / m  # a_j/p_j
    wrong = (r + 1.0 - np.arange(1, r + 1.0)) / m  # b_j/p_{j−1}
    weight, shares = _solved(slope, intercept, right, wrong, v)
    weight = np.maximum(weight, 0.0)
    # shares of a right class beyond its half-plane's weight prove nothing
    shares = np.clip(shares, 0.0, weight[:, None])
    up, down = shares * right, slope[:, None] * shares * wrong
    paid, sizes = np.zeros(r + 1), np.zeros(r + 1)
    paid[1:] += up.sum(axis=0)
    paid[:-1] -= down.sum(axis=0)
    sizes[1:] += up.sum(axis=0)
    sizes[:-1] += down.sum(axis=0)
    reward = np.arange(r + 1) >= v
    base = float(np.max(reward - paid + _ROOM * (1.0 + sizes)))
    return Certificate(base, weight)


def _solved(
    slope: np.ndarray, intercept: np.ndarray, right: np.ndarray, wrong: np.ndarray, v: int
) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of the half-planes, and of each class under each half-plane, shapes (k,), (k, r).

    Classes "i wrong" are left out: the worst case was never seen to use them.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    k, r = len(slope), len(right)
    class_ = np.tile(np.arange(r), k)
    row, excess = np.arange(k * r), r + 1 + np.arange(k * r)
    # a_j − s·b_j ≤ excess, and the excesses of a half-plane are at most c
    entries = [
        (row, class_ + 1, right[class_]),
        (row, class_, -np.repeat(slope, r) * wrong[class_]),
        (row, excess, -np.ones(k * r)),
        (k * r + np.repeat(np.arange(k), r), excess, np.ones(k * r)),
    ]
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = csr_array((values, (rows, columns)), shape=(k * r + k, r + 1 + k * r))
    limits = np.concatenate([np.zeros(k * r), intercept])
    gain = np.zeros(r + 1 + k * r)
    gain[v : r + 1] = -1.0
    whole = csr_array((np.arange(r + 1 + k * r) <= r)[None].astype(float))
    found = linprog(gain, matrix, limits, whole, [1.0], method="highs-ipm")
    if found.ineqlin is None or found.ineqlin.marginals is None:
        return np.zeros(k), np.zeros((k, r))
    shares, weight = np.split(-np.asarray(found.ineqlin.marginals), [k * r])
    return weight, shares.reshape(k, r)


def worst_level(lines: HalfPlanes, num_canaries: int, num_guesses: int, num_correct: int) -> float:
    """Upper bound on Pr[as many guesses are right] under a claim, close to the worst case.

    Args:
        lines: of a claim that covers both orders.
        num_canaries: m.
        num_guesses: r.
        num_correct: v.

    Method: docs/method/one-run.md#worst
    """
    steep = np.flatnonzero(lines.slope >= 1.0)
    if num_correct == 0 or not steep.size:
        return 1.0
    steep = steep[np.unique(np.linspace(0, len(steep) - 1, _SLOPES).astype(int))]
    slope, intercept = np.asarray(lines.slope)[steep], np.asarray(lines.intercept)[steep]
    found = certificate(slope, intercept, num_canaries, num_guesses, num_correct)
    return found.level(intercept)


def worst_mu(
    num_canaries: int, num_guesses: int, num_correct: int, level: float, least: float
) -> float:
    """A μ such that so many right guesses refute every μ′-GDP with μ′ ≤ μ at a level.

    A certificate for one μ bounds the probability for every other μ with the same slopes, so that
    few programs are solved. The worst case grows with μ: refuting μ refutes what is below.

    Args:
        num_canaries: m.
        num_guesses: r.
        num_correct: v.
        level: the largest probability of a wrong refutation.
        least: a μ that is refuted already, from where to begin; 0 if none is known.

    Returns:
        μ, at least ``least``.

    Method: docs/method/one-run.md#worst
    """
    found = least
    for _ in range(_STEPS):
        tried = found if found > 0.0 else _SMALLEST
        ends = max(_REACH * tried, 0.5) * np.linspace(0.0, 1.0, _SLOPES) ** 1.5
        proof = certificate(
            np.exp(ends), _of_gaussian(ends, tried), num_canaries, num_guesses, num_correct
        )
        low, high = found, 2.0 * tried
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            refuted = proof.level(_of_gaussian(ends, middle)) <= level
            low, high = (middle, high) if refuted else (low, middle)
        if low <= found * (1.0 + 1e-6):
            break
        found = low
    return found


def _of_gaussian(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """δ(ε) of μ-GDP, from above: the intercepts of the half-planes with slopes e^ε."""
    return np.asarray(gdp.delta(epsilon=epsilon, mu=mu)) * (1.0 + 1e-9) + 1e-15
