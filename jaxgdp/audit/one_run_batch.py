"""The recursion of one run with canaries as one compiled program: many settings and seeds at once.

The same recursion as :func:`jaxgdp.audit.one_run.least_mass`, in doubles, with μ or the level found
by halving for each setting. What a program answers is held against ``least_mass`` once more on the
host, so that compilers decide nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import ndtr, ndtri
from scipy.special import ndtr as scipy_ndtr
from scipy.special import ndtri as scipy_ndtri

from ..numerics import namespace as xp
from ..numerics.compiling import Program
from ..numerics.precision import with_float64
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import checked, whole
from .bound import LOWER, Bound
from .claims import as_claim
from .one_run import FULL, LARGEST_MU, LEAST_LEVEL, least_mass_of_each
from .scores import confidence_level, score_rows
from .swapped import Swapped

_HALVINGS = 44
_NUMBERS = 40  # of guesses that are tried
_BELOW = 1.0 - 1e-10  # room between two implementations


def _refuted(lower: Callable, m: Array, r: Array, v: Array, level: Array) -> Array:
    """Whether v right guesses of r refute the curve of ``lower`` at a level, for one setting."""

    def more(state: tuple[Array, ...]):
        k, _, _, total, rising = state
        return (k >= 0.0) & (total <= FULL) & rising

    def down(state: tuple[Array, ...]):
        k, right, wrong, total, _ = state
        demanded = jnp.maximum(wrong, lower(jnp.minimum(right, 1.0)))
        added = demanded - wrong
        right = right + k / jnp.maximum(r - k, 1.0) * added
        return k - 1.0, right, demanded, (right + demanded) * m / r, added > 0.0

    right, wrong = level * v / m, level * (r - v) / m
    begin = v - 1.0, right, wrong, (right + wrong) * m / r, v >= 1.0
    return jax.lax.while_loop(more, down, begin)[3] > FULL


def _halved(good: Callable, first: Array, last: float) -> Array:
    """The last number on the way from ``first`` to ``last`` that is good, by halving."""

    def halve(_: int, ends: tuple[Array, Array]):
        middle = 0.5 * (ends[0] + ends[1])
        here = good(middle)
        return jnp.where(here, middle, ends[0]), jnp.where(here, ends[1], middle)

    return jax.lax.fori_loop(0, _HALVINGS, halve, (first, jnp.full_like(first, last)))[0]


def _largest_mu(m: Array, r: Array, v: Array, level: Array) -> Array:
    """The largest μ that is refuted, up to the width of the last halving; 0 where none is."""
    below = lambda mu: lambda right: ndtr(ndtri(right) - mu)
    good = lambda mu: _refuted(below(mu), m, r, v, level)
    return _halved(good, jnp.zeros_like(level), LARGEST_MU)


def _least_log_level(lower: Swapped, m: Array, r: Array, v: Array) -> Array:
    """log of the smallest level at which a curve is refuted, from above; 0 where it is at none."""
    good = lambda log: _refuted(lower, m, r, v, jnp.exp(log))
    return _halved(good, jnp.zeros_like(m), float(np.log(LEAST_LEVEL)))


_mus = Program(jax.vmap(_largest_mu))
_log_levels = Program(jax.vmap(_least_log_level, (None, 0, 0, 0)))


def _settings(
    num_canaries: ArrayLike, num_guesses: ArrayLike, num_correct: ArrayLike
) -> tuple[np.ndarray, Callable]:
    """The different (m, r, v), shape (3, k), and how to lay an answer for each out again."""
    m, r = whole("num_canaries", num_canaries), whole("num_guesses", num_guesses)
    valid = "whole numbers >= 0"
    v = checked("num_correct", num_correct, valid, lambda a: (a >= 0.0) & (a == np.floor(a)))
    m, r, v = np.broadcast_arrays(m, r, v)
    if np.any(r > m) or np.any(v > r):
        raise ValueError(
            "num_guesses must be at most num_canaries, and num_correct at most num_guesses, got"
            f" {m.tolist()}, {r.tolist()} and {v.tolist()}"
        )
    flat = [np.ravel(x).astype(float) for x in (m, r, v)]
    unique, place = np.unique(np.stack(flat), axis=1, return_inverse=True)
    return unique, lambda found: found[np.ravel(place)].reshape(m.shape)


@with_float64
def one_run_mus(
    num_canaries: ArrayLike,
    num_guesses: ArrayLike,
    num_correct: ArrayLike,
    confidence: float = 0.95,
) -> np.ndarray:
    """:func:`jaxgdp.audit.one_run_mu` for arrays of settings or seeds, in one compiled program.

    Args:
        num_canaries: m ≥ 1; the three broadcast.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.
        confidence: in [0.5, 1 - 1e-9], of each bound alone.

    Returns:
        Lower bounds on μ, of the common shape; 0 where nothing is proven.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> one_run_mus(1000, [200, 200], [190, 100]).round(4).tolist()
        [0.9081, 0.0]

    Method: docs/method/one-run.md#recursion
    """
    confidence = confidence_level("confidence", confidence)
    settings, laid_out = _settings(num_canaries, num_guesses, num_correct)
    level = np.full(settings.shape[1], 1.0 - confidence)
    found = np.asarray(_mus(*settings, level)) * _BELOW
    # the host's own recursion has the last word
    below = lambda right, places: scipy_ndtr(scipy_ndtri(right) - found[places])
    sure = least_mass_of_each(below, *settings, level) > FULL
    return laid_out(np.where(sure, found, 0.0))


@with_float64
def one_run_levels(
    claim: Any, num_canaries: ArrayLike, num_guesses: ArrayLike, num_correct: ArrayLike
) -> np.ndarray:
    """:func:`jaxgdp.audit.one_run_level` for arrays of settings or seeds, in one compiled program.

    Args:
        claim: as for :func:`jaxgdp.audit.one_run_level`.
        num_canaries: m ≥ 1; the three broadcast.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.

    Returns:
        Smallest levels at which the claim is refuted, of the common shape; 1 where it is at none.

    Raises:
        ValueError: a number out of range, or no claim.

    Example:
        >>> one_run_levels(1.0, [1000, 500], 200, [190, 190]).round(4).tolist()
        [0.1108, 0.0555]

    Method: docs/method/one-run.md#recursion
    """
    settings, laid_out = _settings(num_canaries, num_guesses, num_correct)
    lower = as_claim(claim).swapped(float(np.max(settings[1] / settings[0], initial=LEAST_LEVEL)))
    found = np.exp(np.asarray(_log_levels(lower, *settings)) + 1.0 - _BELOW)
    found = np.minimum(found, 1.0)
    sure = least_mass_of_each(lambda right, _: lower(right), *settings, found) > FULL
    return laid_out(np.where(sure, found, 1.0))


def correct_guesses(scores: ArrayLike, included: ArrayLike, num_guesses: ArrayLike) -> Any:
    """How many of the surest guesses are right, for many seeds and numbers of guesses at once.

    Args:
        scores: of every canary, larger the more likely in; shape (..., m), leading axes are seeds.
        included: which were put in, shape (..., m).
        num_guesses: r ≤ m, shape (k,): for every seed.

    Returns:
        Whole numbers, shape (..., k): as :func:`jaxgdp.audit.count_right` of
        :func:`jaxgdp.audit.guess`. Inside of ``jax.jit`` and ``jax.vmap``, too.

    Raises:
        ValueError: shapes differ, a NaN, or more guesses than canaries.

    Example:
        >>> correct_guesses([0.1, 3.0, -2.0, 0.4], [True, True, False, False], [2, 4]).tolist()
        [2, 2]
    """
    number = np.atleast_1d(whole("num_guesses", num_guesses)).astype(int)
    if isinstance(scores, Tracer) or isinstance(included, Tracer):
        scores, included = jnp.asarray(scores), jnp.asarray(included, bool)
    else:
        scores, included = score_rows("scores", scores), np.asarray(included, bool)
    size = scores.shape[-1]
    if included.shape != scores.shape or number.max() > size:
        raise ValueError(
            f"included must have the scores' shape {scores.shape}, got {included.shape}, and"
            f" num_guesses must be at most {size}, got {number.tolist()}"
        )
    space: Any = jnp if xp.is_jax(scores) else np
    order = space.argsort(scores, axis=-1, stable=True)
    sorted_in = space.take_along_axis(included, order, axis=-1)
    begin = space.zeros((*scores.shape[:-1], 1), int)
    out = space.concatenate([begin, space.cumsum(~sorted_in, axis=-1)], axis=-1)
    inside = space.concatenate([begin, space.cumsum(sorted_in[..., ::-1], axis=-1)], axis=-1)
    low = number // 2
    return out[..., low] + inside[..., number - low]


def one_run_mu_of_several(
    scores: ArrayLike, included: ArrayLike, num_guesses: ArrayLike, confidence: float = 0.95
) -> Bound:
    """The best lower bound on μ over several numbers of guesses that were fixed beforehand.

    Each number of guesses has the confidence 1 − (1 − c)/k, so that the best of all k has the
    confidence c. A number of guesses that is chosen by the output of the same run, even by a part
    of its canaries, is no number fixed beforehand: the recursion does not hold for it.

    Args:
        scores: of every canary of one run, shape (m,), larger the more likely in.
        included: which were put in, shape (m,).
        num_guesses: r, shape (k,).
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        A :class:`jaxgdp.audit.Bound`, with the ``num_guesses`` that gave it in ``details``.

    Raises:
        ValueError: as for :func:`correct_guesses`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coins = rng.random(1000) < 0.5
        >>> print(one_run_mu_of_several(2.0 * coins + rng.standard_normal(1000), coins, [100, 400]))
        mu >= ... with confidence 95 %; the best of 2 numbers of guesses, corrected

    Method: docs/method/one-run.md#abstention
    """
    confidence = confidence_level("confidence", confidence)
    number = np.atleast_1d(whole("num_guesses", num_guesses))
    right = correct_guesses(scores, included, number)
    share = confidence_level("confidence", 1.0 - (1.0 - confidence) / len(number))
    found = one_run_mus(np.shape(scores)[-1], number, right, share)
    best = int(np.argmax(found))
    caveat = f"the best of {len(number)} numbers of guesses, corrected"
    details = {"num_guesses": int(number[best]), "num_correct": int(right[best])}
    return Bound(float(found[best]), "mu", LOWER, confidence, caveat, details)


def best_num_guesses(scores: ArrayLike, included: ArrayLike, confidence: float = 0.95) -> int:
    """The number of guesses with the largest lower bound on μ, to be used on *another* run.

    Args:
        scores: of every canary of a run that is not the audited one, such as a reference model
            with coins of its own, shape (m,), larger the more likely in.
        included: which were put in there, shape (m,).
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        r, 1 ≤ r ≤ m.

    Raises:
        ValueError: as for :func:`correct_guesses`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coins = rng.random(1000) < 0.5
        >>> 10 < best_num_guesses(2.0 * coins + rng.standard_normal(1000), coins) < 1000
        True

    Method: docs/method/one-run.md#abstention
    """
    size = np.shape(scores)[-1]
    number = np.unique(np.geomspace(1.0, size, _NUMBERS).round())
    right = correct_guesses(scores, included, number)
    return int(number[np.argmax(one_run_mus(size, number, right, confidence))])
