"""Audits as jax_privacy's ``auditing`` makes them, from the same arrays, and what is honest.

    from jaxgdp.interop.jax_privacy_auditing import epsilon_one_run, scores

    # as CanaryScoreAuditor.epsilon_one_run
    epsilon_one_run(*scores(auditor), significance=0.05, delta=1e-6)
    # holds at all thresholds at once
    jaxgdp.audit.epsilon_lower_bound(*scores(auditor), delta=1e-6)

The functions here repeat that module's default procedure: the best of all thresholds, each at a
level of significance over the number of thresholds that remain on the convex hull. Thresholds and
their number are taken from the scores themselves, which a union bound over thresholds fixed
beforehand does not cover: use :func:`jaxgdp.audit.epsilon_lower_bound`,
:func:`jaxgdp.audit.mu_lower_bound`, or a number of guesses fixed beforehand with
:func:`jaxgdp.audit.one_run_epsilon` and :func:`jaxgdp.audit.one_run_mu`. jax_privacy itself is not
needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr, ndtri

from .. import gdp
from ..audit import one_run_p_value
from ..audit.bands import clopper_pearson
from ..audit.one_run import least_mass
from ..audit.scores import two_classes
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import closed_unit, open_unit

_CHUNK = 1024
_HALVINGS = 28  # of an interval that is no longer than the answer


def scores(auditor: Any) -> tuple[np.ndarray, np.ndarray]:
    """Score arrays of a ``CanaryScoreAuditor``, held in and held out, as this library takes them.

    Args:
        auditor: the auditor, or anything with attributes ``in_canary_scores`` and
            ``out_canary_scores``, leading underscore or not.

    Raises:
        ValueError: it has none.

    Example:
        >>> import types
        >>> scores(types.SimpleNamespace(in_canary_scores=[2.0], out_canary_scores=[1.0]))
        (array([2.]), array([1.]))
    """
    found = []
    for name in ("in_canary_scores", "out_canary_scores"):
        values = getattr(auditor, name, getattr(auditor, "_" + name, None))
        if values is None:
            raise ValueError(f"auditor must have {name}, got {type(auditor).__name__}")
        found.append(np.asarray(values, float))
    return found[0], found[1]


def _hull_counts(member: Array, nonmember: Array) -> tuple[Array, Array]:
    """(false negatives, true negatives) on the thresholds' convex hull, and how many there are."""
    at = np.append(np.union1d(member, nonmember), np.inf)
    fn, tn = np.searchsorted(np.sort(member), at), np.searchsorted(np.sort(nonmember), at)
    points = np.stack([fn, tn], axis=1).tolist()
    kept: list[list[int]] = []
    for x, y in points:
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x1) > (y - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append([x, y])
    hull = np.array(kept)
    return hull[:, 0], hull[:, 1]


class _Scores(NamedTuple):
    """Checked arguments."""

    member: Array
    nonmember: Array
    significance: float
    delta: float


def _checked(
    in_scores: ArrayLike, out_scores: ArrayLike, significance: float, delta: float
) -> _Scores:
    member, nonmember = two_classes(
        in_scores, out_scores, ("in_canary_scores", "out_canary_scores")
    )
    if member.ndim > 1:
        raise ValueError(f"in_canary_scores must be of one model, got shape {member.shape}")
    level, delta = (
        float(open_unit("significance", significance)),
        float(closed_unit("delta", delta)),
    )
    return _Scores(member, nonmember, level, delta)


class _Guesses(NamedTuple):
    """Number of canaries; guesses and right guesses by decreasing lower limit of the precision; the
    level of each threshold; δ.
    """

    canaries: int
    made: Array
    right: Array
    level: float
    delta: float


def _guesses(
    in_scores: ArrayLike, out_scores: ArrayLike, significance: float, delta: float
) -> _Guesses:
    member, nonmember, significance, delta = _checked(in_scores, out_scores, significance, delta)
    fn, tn = _hull_counts(member, nonmember)
    level = significance / len(fn)
    right, wrong = len(member) - fn, len(nonmember) - tn
    made = right + wrong
    some = made > 0
    precision = 1.0 - clopper_pearson(wrong[some], made[some], level)
    order = np.flatnonzero(some)[np.argsort(-precision, kind="stable")]
    canaries = len(member) + len(nonmember)
    return _Guesses(canaries, made[order], right[order], level, delta)


def epsilon_one_run(
    in_scores: ArrayLike, out_scores: ArrayLike, significance: float, delta: float
) -> float:
    """``CanaryScoreAuditor(…).epsilon_one_run(significance, delta)`` (Steinke et al. 2023).

    Args:
        in_scores, out_scores: of held-in and held-out canaries.
        significance: in (0, 1).
        delta: in (0, 1).

    Returns:
        ε, as published; see the top of this file for its limits.

    Raises:
        ValueError: a number out of range, NaN, or an empty class.
    """
    m, made, right, level, delta = _guesses(in_scores, out_scores, significance, delta)
    best = 0.0
    for r, v in zip(made, right, strict=True):
        # what δ = 0 does not refute, δ > 0 does not
        if v / r > expit(best) and all(
            one_run_p_value(m, r, v, best, d) <= level for d in (0.0, delta)
        ):
            best = _root(
                lambda epsilon, r=r, v=v: one_run_p_value(m, r, v, epsilon, delta) <= level, best
            )
    return best


def _root(refuted: Callable[[float], Any], low: float) -> float:
    high = max(1.0, 2.0 * low)
    while refuted(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def epsilon_one_run_fdp(
    in_scores: ArrayLike, out_scores: ArrayLike, significance: float, delta: float
) -> float:
    """``CanaryScoreAuditor(…).epsilon_one_run_fdp(significance, delta)`` (Mahloujifar et al. 2024).

    Args:
        in_scores, out_scores, significance, delta: as for :func:`epsilon_one_run`.

    Returns:
        ε at δ of the largest μ refuted, as published; see the top of this file.

    Raises:
        ValueError: as for :func:`epsilon_one_run`.
    """
    m, made, right, level, delta = _guesses(in_scores, out_scores, significance, delta)

    def refuted(mu: float, rows: Array) -> Array:
        lower = lambda x, _: ndtr(ndtri(x) - mu)
        return least_mass(lower, m, made[rows], right[rows], level) > 1.0

    best, epsilon, start = 0.0, 0.0, 0
    while start < len(made):
        rows = np.arange(start, min(start + _CHUNK, len(made)))
        rows = rows[right[rows] / made[rows] > expit(epsilon)]
        better = rows[refuted(best, rows)] if len(rows) else rows
        if not len(better):
            start += _CHUNK
            continue
        # the first in line decides which of the others are tested
        first = better[:1]
        best = _root(lambda mu, first=first: bool(refuted(mu, first)[0]), best)
        epsilon, start = float(gdp.epsilon(delta=delta, mu=best)), int(first[0]) + 1
    return epsilon


class _Limits(NamedTuple):
    """Upper limits of FPR and FNR at every threshold."""

    fpr: Array
    fnr: Array


def _limits(in_scores: ArrayLike, out_scores: ArrayLike, significance: float) -> _Limits:
    member, nonmember, significance, _ = _checked(in_scores, out_scores, significance, 0.0)
    fn, tn = _hull_counts(member, nonmember)
    tail = significance / (2.0 * len(fn))
    return _Limits(
        clopper_pearson(len(nonmember) - tn, len(nonmember), tail),
        clopper_pearson(fn, len(member), tail),
    )


def mu_from_gdp(in_scores: ArrayLike, out_scores: ArrayLike, significance: float) -> float:
    """The μ behind ``CanaryScoreAuditor(…).epsilon_from_gdp(…)`` (Nasr et al. 2023).

    If a guess is worse than chance, that module takes the absolute value; here it proves
    nothing.

    Args:
        in_scores, out_scores, significance: as for :func:`epsilon_one_run`.

    Returns:
        μ ≥ 0; see the top of this file, and :func:`jaxgdp.audit.mu_lower_bound`, which is larger
        and holds.

    Raises:
        ValueError: as for :func:`epsilon_one_run`.
    """
    a, b = _limits(in_scores, out_scores, significance)
    return max(0.0, float(np.max(-ndtri(a) - ndtri(b))))


def epsilon_clopper_pearson(
    in_scores: ArrayLike, out_scores: ArrayLike, significance: float, delta: float = 0.0
) -> float:
    """``CanaryScoreAuditor(…).epsilon_clopper_pearson(…)`` (Jagielski et al. 2020).

    Args:
        in_scores, out_scores, significance: as for :func:`epsilon_one_run`.
        delta: in [0, 1].

    Returns:
        ε; see the top of this file, and :func:`jaxgdp.audit.epsilon_lower_bound`, which is larger
        and holds.

    Raises:
        ValueError: as for :func:`epsilon_one_run`.
    """
    a, b = _limits(in_scores, out_scores, significance)
    delta = float(closed_unit("delta", delta))
    top = 1.0 - b - delta
    return max(0.0, float(np.max(np.log(np.maximum(top, 1e-300)) - np.log(a))))
