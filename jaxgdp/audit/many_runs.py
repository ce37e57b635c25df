"""Lower bounds on μ, ε(δ), advantage and trade-off curve from many runs, with confidence.

Run the mechanism n₀ times without a record and n₁ times with it, and score each output; larger
means more likely with. Guessing "with" at or above a threshold τ errs with probabilities α(τ) =
Pr[S ≥ τ without] and β(τ) = Pr[S < τ with]. If the mechanism's trade-off curve is f, then β(τ) ≥
f(α(τ)) at every τ. So if α(τ) ≤ a and β(τ) ≤ b for sure, then f(a) ≤ f(α) ≤ β ≤ b, f being
non-increasing:

    μ ≥ Φ⁻¹(1 − a) − Φ⁻¹(b)
    ε ≥ log max{(1 − δ − b)/a, (1 − δ − a)/b, 1}
    δ(ε) ≥ max{1 − b − e^ε·a, 1 − a − e^ε·b, 0}
    advantage ≥ 1 − a − b

where a and b are upper limits, each missed with probability at most (1 − confidence)/2. The bound
on μ is never an absolute value: a guess worse than chance proves nothing here. The bounds on ε and
δ(ε) are for both orders of the data sets. Three methods choose the limits and the thresholds:

    "bands"      limits that hold at every threshold at once (:mod:`.bands`): the best threshold may
                 be chosen from the scores themselves
    "split"      half of the scores pick a threshold, the other half are counted there, with limits
                 for one threshold
    "threshold"  one threshold that was fixed before the scores were known, with limits for one
                 threshold

Choosing the best threshold and then using limits for one threshold is not among them: the promised
confidence would not hold. Scores must be independent draws: one per run of the mechanism, not many
from one model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..deprecation import warn
from ..numerics.precision import with_float64
from ..numerics.shapes import ArrayLike
from ..numerics.validation import closed_unit, nonnegative, one_of, whole
from . import bands, thresholds
from .bound import Bound
from .scores import confidence_level, two_classes

METHODS = ("bands", "split", "threshold")
THRESHOLD = 0.5
_RENAMED = {  # of limits, by their names before 0.3
    "alpha": "fpr_limit",
    "beta": "fnr_limit",
    "empirical_alpha": "empirical_fpr",
    "empirical_beta": "empirical_fnr",
}


@dataclass(frozen=True)
class Limits:
    """Upper confidence limits of (FPR, FNR) at thresholds; see :func:`lower_bounds`.

    All statements hold at once with the confidence, for the curve f of the order of data sets that
    was run and for every quantity of the mechanism that covers it.

    Attributes:
        fpr_limit, fnr_limit: limits, sorted by ``fpr_limit``; those that no line between two others
            undercuts. f(fpr_limit) ≤ fnr_limit.
        empirical_fpr, empirical_fnr: the rates as counted.
        threshold: where.
        confidence, method: as requested.
        members, nonmembers: scores counted.
    """

    fpr_limit: np.ndarray
    fnr_limit: np.ndarray
    empirical_fpr: np.ndarray
    empirical_fnr: np.ndarray
    threshold: np.ndarray
    confidence: float
    method: str
    members: int
    nonmembers: int

    def __getattr__(self, name: str) -> Any:
        if name not in _RENAMED:
            raise AttributeError(f"Limits has no attribute {name!r}")
        warn(f"Limits.{name}", f"Limits.{_RENAMED[name]}")
        return getattr(self, _RENAMED[name])

    def _bound(self, value: float, quantity: str) -> Bound:
        return Bound(value, quantity, confidence=self.confidence, details={"method": self.method})

    @property
    def mu(self) -> Bound:
        """Lower bound on μ of Gaussian differential privacy."""
        return self._bound(max(0.0, float(np.max(_mu(self.fpr_limit, self.fnr_limit)))), "mu")

    @property
    def advantage(self) -> Bound:
        """Lower bound on the advantage 1 − α − β."""
        return self._bound(
            max(0.0, float(np.max(1.0 - self.fpr_limit - self.fnr_limit))), "advantage"
        )

    def epsilon(self, delta: float = 0.0) -> Bound:
        """Lower bound on ε at a δ.

        Args:
            delta: in [0, 1].

        Returns:
            A :class:`Bound`, in nats.
        """
        delta = float(closed_unit("delta", delta))
        found = max(
            _log_ratio(1.0 - delta - self.fnr_limit, self.fpr_limit),
            _log_ratio(1.0 - delta - self.fpr_limit, self.fnr_limit),
        )
        return self._bound(max(0.0, found), f"epsilon(delta = {delta:g})")

    def delta(self, epsilon: float) -> Bound:
        """Lower bound on δ at an ε.

        Args:
            epsilon: ε ≥ 0 in nats.
        """
        factor = float(np.exp(nonnegative("epsilon", epsilon)))
        found = max(
            np.max(1.0 - self.fnr_limit - factor * self.fpr_limit),
            np.max(1.0 - self.fpr_limit - factor * self.fnr_limit),
        )
        return self._bound(max(0.0, float(found)), f"delta(epsilon = {float(epsilon):g})")

    def fnr(self, fpr: ArrayLike) -> np.ndarray:
        """The trade-off curve is at most this: the lower hull of limits, (0, 1) and (1, 0).

        Args:
            fpr: α in [0, 1], any shape.

        Returns:
            Upper limits of f(α), that is lower bounds on privacy loss, float64.
        """
        fpr = closed_unit("fpr", fpr)
        kept = _hull(
            np.append(np.append(self.fpr_limit, 0.0), 1.0),
            np.append(np.append(self.fnr_limit, 1.0), 0.0),
        )
        alpha, beta = (
            np.append(np.append(side, a), b)
            for side, a, b in ((self.fpr_limit, 0.0, 1.0), (self.fnr_limit, 1.0, 0.0))
        )
        return np.asarray(np.interp(fpr, alpha[kept], beta[kept]))


def _mu(alpha: np.ndarray, beta: np.ndarray):
    return -ndtri(alpha) - ndtri(beta)


def _log_ratio(top: np.ndarray, bottom: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(
            np.max(np.where(top > 0.0, np.log(np.maximum(top, 0.0)) - np.log(bottom), -np.inf))
        )


def _hull(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Indices of the vertices of the lower convex hull, by increasing alpha."""
    order = np.lexsort((beta, alpha))
    kept: list[int] = []
    for i in order:
        if kept and alpha[i] == alpha[kept[-1]]:
            continue
        while len(kept) > 1:
            (x0, y0), (x1, y1) = ((alpha[k], beta[k]) for k in kept[-2:])
            if (y1 - y0) * (alpha[i] - x1) < (beta[i] - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append(int(i))
    return np.array(kept)


def _setting(method: str, confidence: float, nonmembers: int, members: int):
    """Tables of limits by count that the method uses."""
    table = bands.simultaneous if method == "bands" else bands.one_by_one
    miss = 0.5 * (1.0 - confidence)
    return table(nonmembers, miss), table(members, miss)


def _halves(number: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(number)
    return order[: number // 2], order[number // 2 :]


def _split(member: np.ndarray, nonmember: np.ndarray, seed: int):
    """Scores that pick the threshold, and scores that are counted, at the same places."""
    rng = np.random.default_rng(int(whole("seed + 1", seed + 1)) - 1)
    (a, b), (c, d) = _halves(member.shape[-1], rng), _halves(nonmember.shape[-1], rng)
    return member[..., a], nonmember[..., c], member[..., b], nonmember[..., d]


def _mu_tables(alpha: np.ndarray, beta: np.ndarray):
    with np.errstate(divide="ignore"):
        return -ndtri(alpha)[None], -ndtri(beta)[None]


def _epsilon_tables(delta: float):
    def tables(alpha: np.ndarray, beta: np.ndarray):
        with np.errstate(divide="ignore", invalid="ignore"):
            top = lambda x: np.where(
                1.0 - delta - x > 0.0, np.log(np.maximum(1.0 - delta - x, 0.0)), -np.inf
            )
            return np.stack([-np.log(alpha), top(alpha)]), np.stack([top(beta), -np.log(beta)])

    return tables


def _advantage_tables(alpha: np.ndarray, beta: np.ndarray):
    return (1.0 - alpha)[None], -beta[None]


@with_float64
def _largest(
    members: ArrayLike,
    nonmembers: ArrayLike,
    confidence: float,
    method: str,
    threshold: ArrayLike,
    seed: int,
    tables: Callable,
) -> np.ndarray:
    """The largest value over the thresholds that the method allows, for every model, at least 0."""
    one_of("method", method, METHODS)
    confidence = confidence_level("confidence", confidence)
    member, nonmember = two_classes(members, nonmembers)
    lead = member.shape[:-1]
    member, nonmember = (side.reshape((-1, side.shape[-1])) for side in (member, nonmember))
    at = np.empty(0)
    if method == "threshold":
        at = np.full(len(member), _fixed(threshold))
    elif method == "split":
        if min(member.shape[-1], nonmember.shape[-1]) < 2:
            return np.zeros(lead)
        first, other, member, nonmember = _split(member, nonmember, seed)
        picked = _setting(method, confidence, other.shape[-1], first.shape[-1])
        _, at = thresholds.best(first, other, *tables(*picked))
    limits = _setting(method, confidence, nonmember.shape[-1], member.shape[-1])
    if method == "bands":
        found, _ = thresholds.best(member, nonmember, *tables(*limits))
    else:
        found = thresholds.at(member, nonmember, at, *tables(*limits))
    return np.maximum(np.asarray(found), 0.0).reshape(lead)


def _fixed(threshold: ArrayLike) -> float:
    value = np.asarray(threshold, float)
    if value.ndim or np.isnan(value):
        raise ValueError(f"threshold must be one number, got {threshold!r}")
    return float(value)


def _result(found: np.ndarray, quantity: str, confidence: float, method: str):
    if found.ndim:
        return found
    return Bound(float(found), quantity, confidence=float(confidence), details={"method": method})


def mu_lower_bound(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    confidence: float = 0.95,
    method: str = "bands",
    threshold: ArrayLike = THRESHOLD,
    seed: int = 0,
):
    """Lower bound on μ from scores with and without a record: max Φ⁻¹(1 − a(τ)) − Φ⁻¹(b(τ)).

    a(τ), b(τ) are upper confidence limits of FPR and FNR of guessing "with" at or above τ (see
    :mod:`jaxgdp.audit.many_runs`).

    Args:
        member_scores: one score for each run with the record, larger the more likely; shape (...,
            n₁), leading axes are models.
        nonmember_scores: likewise without it, shape (..., n₀).
        confidence: in [0.5, 1 - 1e-9].
        method: "bands": limits that hold at all thresholds at once; "split": a threshold picked on
            one half of the scores and used on the other; "threshold": one that was fixed before
            looking.
        threshold: for "threshold": τ. The default ½ suits guesses of 0 and 1, and probabilities.
        seed: of the split, ≥ 0.

    Returns:
        μ: a :class:`jaxgdp.audit.Bound`, or an array over models. Safe side: with the confidence,
        the mechanism's μ is at least this. 0 where nothing is proven, as for constant scores.

    Raises:
        ValueError: a class without scores, NaN, an unknown method, or a number out of range.

    Example:
        >>> import numpy as np
        >>> guesses = lambda ones, number: np.arange(number) < ones
        >>> bound = mu_lower_bound(guesses(500, 1000), guesses(10, 1000), method="threshold")
        >>> print(bound)
        mu >= 2.01099 with confidence 95 %
    """
    found = _largest(
        member_scores, nonmember_scores, confidence, method, threshold, seed, _mu_tables
    )
    return _result(found, "mu", confidence, method)


def epsilon_lower_bound(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    delta: float = 0.0,
    confidence: float = 0.95,
    method: str = "bands",
    threshold: ArrayLike = THRESHOLD,
    seed: int = 0,
):
    """Lower bound on ε(δ): log max over τ of {(1 − δ − b)/a, (1 − δ − a)/b, 1}.

    Args:
        member_scores: as for :func:`mu_lower_bound`.
        nonmember_scores: as for :func:`mu_lower_bound`.
        delta: in [0, 1].
        confidence: as for :func:`mu_lower_bound`.
        method: as for :func:`mu_lower_bound`.
        threshold: as for :func:`mu_lower_bound`.
        seed: as for :func:`mu_lower_bound`.

    Returns:
        ε in nats, as for :func:`mu_lower_bound`; it holds for mechanisms whose claim covers both
        orders of the data sets.

    Raises:
        ValueError: as for :func:`mu_lower_bound`, or δ out of range.

    Example:
        >>> epsilon_lower_bound([1, 2, 3], [0, 1, 2])
        0.0
    """
    delta = float(closed_unit("delta", delta))
    tables = _epsilon_tables(delta)
    found = _largest(member_scores, nonmember_scores, confidence, method, threshold, seed, tables)
    return _result(found, f"epsilon(delta = {delta:g})", confidence, method)


def advantage_lower_bound(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    confidence: float = 0.95,
    method: str = "bands",
    threshold: ArrayLike = THRESHOLD,
    seed: int = 0,
):
    """Lower bound on the advantage: max over τ of 1 − a(τ) − b(τ).

    Args:
        member_scores: as for :func:`mu_lower_bound`.
        nonmember_scores: as for :func:`mu_lower_bound`.
        confidence: as for :func:`mu_lower_bound`.
        method: as for :func:`mu_lower_bound`.
        threshold: as for :func:`mu_lower_bound`.
        seed: as for :func:`mu_lower_bound`.

    Returns:
        η, as for :func:`mu_lower_bound`.

    Raises:
        ValueError: as for :func:`mu_lower_bound`.

    Example:
        >>> import numpy as np
        >>> round(float(advantage_lower_bound(np.arange(1000) + 500, np.arange(1000))), 3)
        0.44
    """
    found = _largest(
        member_scores, nonmember_scores, confidence, method, threshold, seed, _advantage_tables
    )
    return _result(found, "advantage", confidence, method)


@with_float64
def lower_bounds(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    confidence: float = 0.95,
    method: str = "bands",
    threshold: ArrayLike = THRESHOLD,
    seed: int = 0,
) -> Limits:
    """The limits of both error rates, from which all the lower bounds follow at once.

    Args:
        member_scores: of one model, shape (n₁,).
        nonmember_scores: likewise, shape (n₀,).
        confidence: as for :func:`mu_lower_bound`.
        method: as for :func:`mu_lower_bound`.
        threshold: as for :func:`mu_lower_bound`.
        seed: as for :func:`mu_lower_bound`.

    Returns:
        :class:`Limits`.

    Raises:
        ValueError: as for :func:`mu_lower_bound`, or scores of several models.

    Example:
        >>> import numpy as np
        >>> limits = lower_bounds(np.arange(1000) + 500, np.arange(1000))
        >>> float(limits.mu) == float(mu_lower_bound(np.arange(1000) + 500, np.arange(1000)))
        True
    """
    one_of("method", method, METHODS)
    confidence = confidence_level("confidence", confidence)
    member, nonmember = two_classes(member_scores, nonmember_scores)
    if member.ndim > 1:
        raise ValueError(
            "member_scores and nonmember_scores must be of one model, got leading shape"
            f" {member.shape[:-1]}"
        )
    if method == "bands":
        at, fp, fn = thresholds.counts(member, nonmember)
    else:
        at = np.array([np.inf])
        if method == "threshold":
            at = np.array([_fixed(threshold)])
        elif min(len(member), len(nonmember)) > 1:
            first, other, member, nonmember = _split(member, nonmember, seed)
            picked = _setting(method, confidence, len(other), len(first))
            _, at = thresholds.best(first[None], other[None], *_mu_tables(*picked))
        fp = np.atleast_1d(np.sum(nonmember >= at, keepdims=True))
        fn = np.atleast_1d(np.sum(member < at, keepdims=True))
    alpha, beta = _setting(method, confidence, len(nonmember), len(member))
    return _limits(alpha[fp], beta[fn], fp, fn, at, confidence, method, len(member), len(nonmember))


def _limits(
    alpha: np.ndarray,
    beta: np.ndarray,
    fp: np.ndarray,
    fn: np.ndarray,
    at: np.ndarray,
    confidence: float,
    method: str,
    members: int,
    nonmembers: int,
) -> Limits:
    kept = _hull(alpha, beta)
    found = alpha[kept], beta[kept], fp[kept] / nonmembers, fn[kept] / members, at[kept]
    return Limits(*found, confidence, method, members, nonmembers)


def from_counts(
    false_positives: int,
    nonmembers: int,
    false_negatives: int,
    members: int,
    confidence: float = 0.95,
) -> Limits:
    """Limits from the counts of one fixed threshold: for too many runs to keep their scores.

    Args:
        false_positives: runs without the record, of ``nonmembers``, at or above the threshold.
        nonmembers: runs without the record.
        false_negatives: runs with it, of ``members``, below the threshold.
        members: runs with the record.
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        :class:`Limits` of one point.

    Raises:
        ValueError: counts that are not whole or exceed their totals.

    Example:
        >>> round(float(from_counts(10, 1000, 500, 1000).mu), 6)
        2.010986
    """
    n0, n1 = int(whole("nonmembers", nonmembers)), int(whole("members", members))
    confidence = confidence_level("confidence", confidence)
    fp, fn = (
        int(whole("false_positives + 1", false_positives + 1)) - 1,
        int(whole("false_negatives + 1", false_negatives + 1)) - 1,
    )
    for name, count, total in (("false_positives", fp, n0), ("false_negatives", fn, n1)):
        if count > total:
            raise ValueError(f"{name} must be at most {total}, got {count}")
    tail = 0.5 * (1.0 - confidence)
    alpha, beta = (
        np.atleast_1d(bands.clopper_pearson(fp, n0, tail)),
        np.atleast_1d(bands.clopper_pearson(fn, n1, tail)),
    )
    one = lambda x: np.array([x])
    return _limits(alpha, beta, one(fp), one(fn), one(np.nan), confidence, "threshold", n1, n0)
