"""Settings whose record is so seldom sampled that the law given that it is comes first, or helps;
nothing here is part of a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.shapes import Array, Bool, Float
from ..question import USUAL, Question
from . import share_places
from .batch import known_threshold
from .rows import take

if TYPE_CHECKING:
    from ..certify import seldom_sampled

# expected number of times, rate and noise up to which lattices show less or take longer, as a rule
_HARDLY_EVER, _RATE, _NOISE = 0.05, 1e-6, 0.4
# … and where whole curves are wanted: the far end of a lattice is seconds of work
_SELDOM = 50.0
# … and the noise of runs of so few or so many steps that lattices are dense or long: between, a
# lattice of many settings takes a tenth of the time
_FEW_STEPS, MANY_STEPS, _NOISE_OF_OTHERS = 300.0, 1e4, 0.6
LITTLE_NOISE = 0.13  # up to which lattices show less than the number of jumps does, as a rule
# log of a δ of many steps, up to which lattices show less than curves, and of so many that lattices
# take long
_LOG_SMALL, _LOG_SMALL_OF_LONG, _LONG = -70.0, -25.0, 1e6
_AS_DEEP = 0.8  # times that of large steps, that the log of a central limit is at least


def seldom(
    groups: Groups, most_noise: float = np.inf, curves: bool = False
) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so first: others only where lattices leave a number
    wide.

    Args:
        groups: of the whole batch.
        most_noise: of those that are meant.
        curves: whether whole curves are wanted, at the usual accuracy.

    Method: docs/method/seldom.md#seldom-which
    """
    number = len(groups[0][1])
    components = sum(np.sum(np.asarray(count) > 0.0, axis=-1) for _, count in groups)
    found = np.zeros(number, bool)
    for mechanism, count in groups:
        if not isinstance(mechanism, SubsampledGaussian):
            continue
        p, sigma = np.asarray(mechanism.sampling_prob), np.asarray(mechanism.noise_multiplier)
        others = (count < _FEW_STEPS) | (count > MANY_STEPS)
        large = sigma <= np.where(others, _NOISE_OF_OTHERS, _NOISE)
        rare = (p * count <= (_SELDOM if curves else _HARDLY_EVER)) | (p <= _RATE) | large
        found |= np.any((count > 1.0) & rare & (sigma <= most_noise), axis=-1)
    found &= np.asarray(components) == 1
    for row in np.flatnonzero(found):
        found[row] = run_of(groups, int(row)) is not None
    return found


def asked_first(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so before any lattice: those that are ``seldom``, and
    of many steps also those whose δ at a known loss is so small that lattices show little of it.

    Method: docs/method/seldom.md#seldom-which
    """
    found = seldom(groups, curves=question.keep and question.rtol >= USUAL)
    if question.rtol < USUAL or not share_places.at_known_loss(question):
        return found
    from ..certify import seldom_sampled

    ((quantity, asked),) = question.asked
    losses = known_threshold(quantity, asked, len(found))
    assert losses is not None
    limits = _log_of_limit(groups, losses)
    for row in np.flatnonzero(~found & (limits < _LOG_SMALL_OF_LONG)):
        run = run_of(groups, int(row))
        if run is not None:
            small = _LOG_SMALL_OF_LONG if run.steps > _LONG else _LOG_SMALL
            steps = seldom_sampled.LargeSteps.of(run, float(losses[row]))
            found[row] = steps.log_delta < small and limits[row] < _AS_DEEP * steps.log_delta
    return found


def _log_of_limit(
    groups: Groups, losses: Float[Array, " settings"]
) -> Float[np.ndarray, " settings"]:
    """Logs of what the central limit of many steps of a sampled Gaussian mechanism has beyond a
    loss, about; 0 of other settings.
    """
    found = np.zeros(len(groups[0][1]))
    for mechanism, count in groups:
        if isinstance(mechanism, SubsampledGaussian):
            p, sigma = np.asarray(mechanism.sampling_prob), np.asarray(mechanism.noise_multiplier)
            with np.errstate(all="ignore"):
                mu = p * np.sqrt(count * np.expm1(sigma**-2.0))
                far = np.maximum(losses[:, None] / mu - 0.5 * mu, 0.0)
            logs = np.where(count > MANY_STEPS, -0.5 * far * far, 0.0)
            found = np.minimum(found, np.min(logs, axis=-1))
    return found


def hardly_ever(groups: Groups) -> Bool[np.ndarray, " settings"]:
    """Settings of one sampled Gaussian mechanism whose record is sampled so seldom that lattices
    keep too few digits for accuracies beyond 1e-3.

    Method: docs/method/seldom.md#seldom-which
    """
    rare = [
        (p * count <= _HARDLY_EVER) | (p <= _RATE)
        for mechanism, count in groups
        if isinstance(mechanism, SubsampledGaussian)
        for p in (np.asarray(mechanism.sampling_prob),)
    ]
    some = np.zeros(len(groups[0][1]), bool)
    for each in rare:
        some |= np.all(each, axis=-1)
    return some & seldom(groups)


def run_of(groups: Groups, row: int) -> seldom_sampled.Run | None:
    """The one sampled Gaussian mechanism that a setting consists of, if its record is seldom
    sampled."""
    # (loaded where it is used: with the mechanism that it shares sums with)
    from ..certify import seldom_sampled

    found: list[seldom_sampled.Run] = []
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            uses = float(counts[row, k])
            if not isinstance(stacked, SubsampledGaussian) or not uses.is_integer():
                return None
            mechanism = take(stacked, (row, k))
            sigma, p = float(mechanism.noise_multiplier), float(mechanism.sampling_prob)
            found.append(seldom_sampled.Run(sigma, p, int(uses)))
    return found[0] if len(found) == 1 and seldom_sampled.serves(found[0]) else None
