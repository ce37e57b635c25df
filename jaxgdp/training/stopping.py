"""The last step within a budget: few evaluations of a quantity that only grows with the steps.

Near its crossing a quantity is close to a power of the number of steps, so a straight line on
logarithmic axes through the two computed numbers of steps around it meets the budget within a few
steps of the right one. Each round tries the two steps next to that guess and one on either side, so
that a wrong guess still shrinks the gap; where guesses fail, gaps are cut into five."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_TRIED = 4  # numbers of steps in one round
_GUESSES = 4  # rounds that trust the power law
_GUARD = 32  # a guess is flanked at this part of the gap


def _guess(good: int, bad: int, scores: dict[int, float]) -> float | None:
    """The step where the power law through both ends of a gap (or two beyond) has score 1."""
    low, high = scores.get(good, np.nan), scores.get(bad, np.nan)
    if not 1.0 < high < np.inf:
        return None
    if good >= 1 and 0.0 < low <= 1.0:
        return good * (bad / good) ** (-np.log(low) / (np.log(high) - np.log(low)))
    beyond = (t for t, score in scores.items() if t > bad and high < score < np.inf)
    further = min(beyond, default=None)
    slope = 0.5 if further is None else np.log(scores[further] / high) / np.log(further / bad)
    return bad * np.exp(max(-np.log(high) / slope, -700.0))


def candidates(good: int, bad: int, scores: dict[int, float], tries: int = 0) -> np.ndarray:
    """Numbers of steps to try next, strictly between one within the budget and one beyond it.

    Args:
        good, bad: the largest number known to be within, the smallest known not to be.
        scores: number of steps → quantity over budget, as far as known: at most 1 where it is
            within.
        tries: rounds before this one.

    Returns:
        Increasing whole numbers, at most four.

    Example:
        >>> candidates(100, 400, {100: 0.5, 400: 1.0001}).tolist()  # the quantity of √steps/20
        [390, 399]
    """
    gap = bad - good - 1
    if gap <= _TRIED:
        return np.arange(good + 1, bad)
    middle = _guess(good, bad, scores) if tries < _GUESSES else None
    if middle is None:
        even = np.linspace(good, bad, _TRIED + 2)
        if good >= 1 and bad > 4 * good:
            even = np.geomspace(good, bad, _TRIED + 2)
        tried = np.rint(even[1:-1]).astype(np.int64)
    else:
        at = int(np.clip(np.floor(middle), good, bad))
        away = max(2, gap // _GUARD)
        tried = np.array([at - away, at, at + 1, at + 1 + away])
    return np.unique(np.clip(tried, good + 1, bad - 1))


def last_within(evaluate: Callable, good: int, bad: int) -> int:
    """The largest number of steps found to be within a budget, such that the next one is not.

    Args:
        evaluate: function (increasing whole numbers) → (whether each is within, quantity over
            budget or NaN of each).
        good: a number of steps that is within.
        bad: above it, one that is not, or that does not count.

    Returns:
        A whole number in [good, bad).

    Example:
        >>> last_within(lambda steps: (steps <= 1234, (steps / 1234.5) ** 0.5), 0, 100_001)
        1234
    """
    scores: dict[int, float] = {}
    # a first look at the end and well before it
    tried = np.unique(np.array([bad - 1, max(good + 1, (bad - 1) // 16)]))
    tries = 0
    while bad - good > 1:
        met, found = evaluate(tried)
        scores |= {int(t): float(score) for t, score in zip(tried, found, strict=True)}
        good, bad = narrowed(good, bad, tried, met)
        tried = candidates(good, bad, scores, tries)
        tries += 1
    return good


def narrowed(good: int, bad: int, tried: np.ndarray, met: np.ndarray) -> tuple[int, int]:
    """The gap once some steps in it were tried: up to the last within, or from there on."""
    last = int(np.flatnonzero(met)[-1]) if np.any(met) else -1
    if last >= 0:
        good = int(tried[last])
    return good, (int(tried[last + 1]) if last + 1 < len(tried) else bad)
