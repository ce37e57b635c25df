"""Both sides of removing a record from sampled Gaussian mechanisms of little noise, by which steps
had it.

With T steps of which a set S has the record, the likelihood ratio of all outputs is a sum over S,
of which one term is nearly all where no output lies between its two centres. That one term bounds
the ratio from below everywhere, and nearly from above wherever outputs are near their centres."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import UNIT
from ...numerics.normal import log1mexp, log_ndtr, log_sub
from ...numerics.shapes import Array, Float
from .counted_jumps import BINOMIAL, Counts, SampledRun, Test, counts, least_number, profiles, ways
from .normal_curve import Profile

# deviations within which outputs are near a centre, as a rule, and the part of the distance 1/(2σ)
# between it and the middle that this is
_ENOUGH, _PART = 38.0, (0.5, 0.9)
_ROUNDED = 64.0 * UNIT  # share of all that a difference of losses is made of
_APART = 1.0  # logs of two numbers differ by, at least, whose difference is taken


class Located(NamedTuple):
    """Numbers of steps with the record, from 1 on, and the losses of their terms.

    Attributes:
        run: as it is.
        found: of a binomial number.
        deviation: √j/σ, the deviation of the loss of j steps, and its mean times two over itself.
        shift: log of p^j·(1 − p)^{T − j}.
        size: sum of absolute values that the shift is made of.
    """

    run: SampledRun
    found: Counts
    deviation: Float[Array, " counts"]
    shift: Float[Array, " counts"]
    size: Float[Array, " counts"]


def located(run: SampledRun) -> Located | None:
    """The terms of a run; None without any.

    Method: docs/method/limit.md#located-jumps
    """
    found = counts(run.steps, run.log_p, run.log_q)
    number = np.arange(1.0, len(found.log_mass))
    if run.log_q == -np.inf or not len(number):
        return None
    shift = number * run.log_p + (run.steps - number) * run.log_q
    return Located(run, found, np.sqrt(number) / run.sigma, shift, -shift)


def profile(terms: Located, thresholds: Float[Array, " thresholds"]) -> Profile:
    """Bounds from above on δ, and from below on 1 − δ, where a record is removed.

    On all outputs that are within z deviations of their centres, on the side that matters, the
    loss of a step with the record is at most log p + y + ((1 − p)/p)·e^{−m}, and of one without at
    most log(1 − p) + (p/(1 − p))·e^{−m}, with y = (2o − 1)/(2σ²) and m = 1/(2σ²) − z/σ.

    Args:
        terms: of the run.
        thresholds: increasing, the first one 0.

    Method: docs/method/limit.md#located-jumps
    """
    part = float(np.clip(2.0 * _ENOUGH * terms.run.sigma, *_PART))
    return _near(terms.run, terms, thresholds, part)


def _near(run: SampledRun, terms: Located, thresholds: Array, part: float) -> Profile:
    """The bounds with outputs within such a part of 1/(2σ) deviations."""
    deviation, number = terms.deviation, np.arange(1.0, len(terms.shift) + 1.0)
    odds = np.exp(run.log_q - run.log_p)
    fade = np.exp(-0.5 * (1.0 - part) / run.sigma / run.sigma * (1.0 - _ROUNDED))
    more = (number * odds + (run.steps - number) / odds) * fade
    # (the loss without any step with the record is at most that)
    none = run.steps * (fade / odds * (1.0 + _ROUNDED) + run.log_q * (1.0 - _ROUNDED))
    t = thresholds[:, None]
    # (δ falls as ε grows: whatever is rounded, ε is taken for less)
    size = t + terms.size + more + deviation * deviation
    epsilon = t - terms.shift - more - _ROUNDED * size
    away = np.abs(epsilon)
    log_delta, rest = profiles(deviation, away)
    # 1 − δ(−ε) = e^{−ε}·(1 − δ(ε))
    below = epsilon < 0.0
    rest = np.where(below, rest - away * (1.0 + _ROUNDED), rest)
    log_delta = np.where(below, log1mexp(np.minimum(rest, 0.0)) + BINOMIAL, log_delta)
    # (what is no number says nothing)
    log_delta = np.where(np.isnan(log_delta), 0.0, log_delta)
    rest = np.where(np.isnan(rest), -np.inf, rest)
    far = float(log_ndtr(-0.5 * part / run.sigma))
    unsure = np.log(run.steps) + far * (1.0 - _ROUNDED) + BINOMIAL
    mass = terms.found.log_mass
    log_delta = xp.logsumexp(log_delta + mass[1:], axis=-1) + BINOMIAL
    others = np.logaddexp(terms.found.log_rest, unsure)
    left = xp.logsumexp(rest + mass[1:], axis=-1)
    if none < 0.0:
        left = np.logaddexp(left, mass[0])
    else:
        others = np.logaddexp(others, mass[0] + BINOMIAL)
    left = left - BINOMIAL
    log_delta = np.minimum(np.logaddexp(log_delta, others), 0.0)
    known = left > unsure + _APART
    log_rest = np.where(known, log_sub(np.where(known, left, 0.0), unsure) - BINOMIAL, -np.inf)
    return Profile(log_delta, np.minimum(log_rest, 0.0))


def achieved_tests(
    terms: Located, thresholds: Float[Array, " thresholds"]
) -> tuple[list[Test], list[Test]]:
    """Tests "some term of the likelihood ratio is beyond a threshold", from below; of both orders.

    Under Q, with the record in j steps, their own term is beyond it as often as a normal number is;
    under P the union of all sets of j steps bounds how often any is, and so does e^{−t}, as the
    ratio is at least its largest term. Terms of fewer steps than hardly ever have the record are
    not looked at.

    Args:
        terms: of the run.
        thresholds: increasing, the first one 0.

    Method: docs/method/limit.md#located-jumps
    """
    mass, log_rest = terms.found.log_mass, terms.found.log_rest
    # (any sets will do: of those that hardly ever have the record the test takes none)
    first = min(least_number(terms.run), len(terms.shift))
    some = slice(max(first - 1, 0), None)
    deviation, shift, size = terms.deviation[some], terms.shift[some], terms.size[some]
    number_of_sets = ways(terms.run.steps, len(mass) - 1)[1:][some]
    fewer = xp.logsumexp(mass[: len(mass) - len(shift)])
    mass = mass[1:][some]
    half, t = 0.5 * deviation, thresholds[:, None]
    moved = (shift - t) / deviation
    off = _ROUNDED * (half + (size + t) / deviation)
    seen = mass + log_ndtr(half + moved - off) * (1.0 + _ROUNDED)
    missed = mass + log_ndtr(-half - moved + off) * (1.0 - _ROUNDED)
    log_tpr, misses = xp.logsumexp(seen, axis=-1) - BINOMIAL, xp.logsumexp(missed, axis=-1)
    misses = np.logaddexp(np.logaddexp(misses, fewer), log_rest) + BINOMIAL
    far = log_ndtr(moved - half + off)
    union = xp.logsumexp(number_of_sets + far * (1.0 - _ROUNDED), axis=-1)
    log_fpr = np.minimum(np.minimum(union + BINOMIAL, -thresholds), 0.0)
    log_tpr, misses = np.minimum(log_tpr, 0.0), np.minimum(misses, 0.0)
    unknown = np.full_like(log_tpr, -np.inf)
    return [(log_fpr, log_tpr, misses)], [(misses, unknown, log_fpr)]
