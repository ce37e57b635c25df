"""Both sides of the curve of a run with few steps that have the record: by how many they are, and
by which."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...numerics.errors import LOGS
from ...numerics.normal import log1mexp
from ...numerics.shapes import Array, Float
from . import counted_jumps, located_jumps
from .counted_jumps import Jumps, SampledRun, Test
from .curve import Curve, GaussianParts
from .finite_laws import padded
from .mixed_tests import raised
from .normal_curve import Profile, profile_half, row
from .vertices import Vertices

_FAR_BELOW = 40.0  # nats, so that e^−40 of a rate is less than its rounding


def best(tests: list[Test], log_infinity: float = -np.inf) -> Vertices:
    """Tests of which none of a smaller FPR has a larger TPR, from the largest FPR on, and none less
    than others have that are mixed.

    Args:
        tests: log FPR, log TPR and log FNR of each.
        log_infinity: log TPR of one that never accuses anybody without cause.
    """
    log_alpha, log_tpr, log_beta = (
        (np.concatenate(column) for column in zip(*tests, strict=True))
        if tests
        else np.zeros((3, 0))
    )
    log_tpr = np.maximum(log_tpr, log1mexp(log_beta) - LOGS)
    order = np.lexsort((-log_tpr, log_alpha))
    log_alpha, log_tpr, log_beta = log_alpha[order], log_tpr[order], log_beta[order]
    sure = (log_tpr > log_alpha) & (log_alpha > -np.inf) & (log_alpha < 0.0)
    gain = np.maximum.accumulate(np.append(-np.inf, np.where(sure, log_tpr, -np.inf)))[:-1]
    fewer = np.minimum.accumulate(np.append(0.0, np.where(sure, log_beta, 0.0)))[:-1]
    keep = np.flatnonzero(sure & ((log_tpr > gain) | (log_beta < fewer)))[::-1]
    keep = keep if len(keep) else np.zeros(0, int)
    rates = log_alpha[keep], log_tpr[keep], log_beta[keep]
    if not len(keep):
        rates, used = (np.zeros(1), np.zeros(1), np.zeros(1)), np.zeros(1, bool)
    else:
        used, rates = np.ones(len(keep), bool), raised(*rates)
    at = np.maximum.accumulate(np.maximum(rates[1] - rates[0], 0.0))
    top = at[-1] if log_infinity > -np.inf else -np.inf
    return row(np.append(at, at[-1]), rates, used, top, log_infinity)


def far_out(threshold: float, log_delta: tuple[float, float], parts: GaussianParts) -> Curve:
    """The curve of which only bounds on δ at one threshold are known, and its Gaussian parts.

    Args:
        threshold: ε > 0.
        log_delta: log of a bound on δ(ε) of each order, of removing a record first.
        parts: Gaussian parts of the whole.

    Method: docs/method/limit.md#counted-jumps
    """
    plus, minus, none = padded([*(_last(threshold, bound) for bound in log_delta), best([])])
    return Curve(plus, minus, none, none, *parts)


def _last(threshold: float, log_delta: float) -> Vertices:
    """A vertex of next to no FPR: TPR − e^ε·FPR is still the bound at its threshold."""
    log_alpha = np.array([log_delta - threshold - _FAR_BELOW])
    log_tpr = np.minimum(np.array([log_delta]) + LOGS, 0.0)
    at, used = np.full(2, threshold), np.ones(1, bool)
    with np.errstate(divide="ignore"):  # (of a bound that says nothing)
        log_beta = log1mexp(log_tpr) - LOGS
    return row(at, (log_alpha, log_tpr, log_beta), used, np.inf, -np.inf)


def located_tests(
    jumps: Jumps, thresholds: Float[Array, " thresholds"], parts: GaussianParts
) -> Curve:
    """The curve of a run of which only tests by which steps had the record are known, of up to
    ``MOST_LOCATED`` such steps expected, in the order of removing a record.

    Args:
        jumps: what bounds it.
        thresholds: of tests; increasing, the first one 0.
        parts: Gaussian parts of the whole.

    Method: docs/method/limit.md#located-jumps
    """
    each = [located_jumps.achieved_tests(terms, thresholds) for terms in _terms(jumps.below)]
    plus, minus = (best([test for side in each for test in side[k]]) for k in (0, 1))
    no_rates = np.zeros(1), np.zeros(1), np.zeros(1)
    unknown = row(np.zeros(2), no_rates, np.zeros(1, bool), np.inf, -np.inf)
    unknown, below_plus, below_minus = padded([unknown, plus, minus])
    return Curve(unknown, unknown, below_plus, below_minus, *parts)


def _terms(runs: tuple[SampledRun, ...]) -> list[located_jumps.Located]:
    return [terms for run in runs if (terms := located_jumps.located(run)) is not None]


def both_sides(
    jumps: Jumps,
    thresholds: Float[Array, " thresholds"],
    number: int,
    parts: GaussianParts,
    places: Callable[[SampledRun], Float[Array, " places"]],
) -> Curve:
    """Both sides of the curve of a run, in the order of removing a record.

    Args:
        jumps: what bounds it.
        thresholds: of the bounds from above, and of tests; increasing, the first one 0.
        number: of large outputs that a test wants, at most.
        parts: Gaussian parts of the whole.
        places: outputs that an attacker counts, for each run below.

    Method: docs/method/limit.md#counted-jumps
    Method: docs/method/limit.md#located-jumps
    """
    shown = counted_jumps.profile(jumps.above, thresholds)
    above_minus = profile_half(thresholds, shown)
    terms = located_jumps.located(jumps.above)
    if terms is not None:
        near = located_jumps.profile(terms, thresholds)
        shown = Profile(
            np.minimum(shown.log_delta, near.log_delta), np.maximum(shown.log_rest, near.log_rest)
        )
    above_plus = profile_half(thresholds, shown)
    tests = [counted_jumps.achieved_tests(run, places(run), number) for run in jumps.below]
    tests += [located_jumps.achieved_tests(terms, thresholds) for terms in _terms(jumps.below)]
    plus, minus = (best([test for side in tests for test in side[k]]) for k in (0, 1))
    upper_plus, upper_minus, below_plus, below_minus = padded(
        [above_plus, above_minus, plus, minus]
    )
    return Curve(upper_plus, upper_minus, below_plus, below_minus, *parts)
