"""Which numbers of steps a plan computes beside its first ones, so that it is close to ``measure``.

Between computed numbers of steps a plan answers on the safe side with the next one. Its answer is
then above that of ``measure`` by at most what the safe side grows from one to the next, and the
relative width of a bracket. Where it grows by more than :data:`CLOSE`, further numbers of steps are
computed: as many as the growth requires, a constant factor apart, or all where that is fewer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..numerics.shapes import Array, Float, Int

CLOSE = 0.0039  # growth in logarithms: with brackets of a width of 1e-3, 0.5 % above ``measure``
_AIMED = 0.95 * CLOSE
_PIECES = 4096  # of a gap with growth without limit, which is then cut again
TOGETHER = 8  # numbers of steps computed at once, where one is looked up


def growth(sides: Iterable[Float[Array, " computed"]]) -> Float[Array, " gaps"]:
    """Largest growth of safe sides from each computed number of steps to the next, in logarithms.

    Example:
        >>> growth([np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.5])]).round(3).tolist()
        [inf, 0.693]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = [np.abs(np.diff(np.log(np.asarray(side, np.float64)))) for side in sides]
    # (0 after 0 and ∞ after ∞ are no growth)
    return np.nan_to_num(np.max(steps, axis=0), nan=0.0, posinf=np.inf)


def open_gaps(
    steps: Int[Array, " computed"], grown: Float[Array, " gaps"], period: int
) -> np.ndarray:
    """Whether more is to be computed between each computed number of steps and the next.

    Args:
        steps: computed numbers of steps, increasing.
        grown: from each to the next, by :func:`growth`.
        period: steps that cost the same together, such as an epoch.

    Example:
        >>> open_gaps(np.array([0, 1, 5, 9]), np.array([np.inf, 0.5, 1e-3]), period=1).tolist()
        [False, True, False]
    """
    periods = -(-np.asarray(steps, np.int64) // period)
    return np.asarray((grown > CLOSE) & (np.diff(periods) > 1))


def grid(
    steps: Int[Array, " computed"], grown: Float[Array, " gaps"], period: int
) -> Int[Array, " wanted"]:
    """Numbers of steps above 0 that close all gaps, in order, whole periods; some may be computed.

    Args:
        steps, grown, period: as for :func:`open_gaps`.

    Example:
        >>> grid(np.array([0, 3, 100, 110]), np.array([np.inf, 1e-3, 0.01]), period=1).tolist()
        [1, 2, 3, 100, 103, 107, 110]
    """
    wanted = []
    for i in np.flatnonzero(open_gaps(steps, grown, period)):
        first, last = int(steps[i]) // period, -(-int(steps[i + 1]) // period)
        pieces = np.ceil(min(grown[i] / _AIMED, _PIECES))
        if pieces >= last - first or first == 0:
            inside = np.arange(first, last + 1)
        else:
            inside = np.rint(np.geomspace(first, last, int(pieces) + 1)).astype(np.int64)
        wanted.append(np.minimum(period * inside, int(steps[i + 1])))
    found = np.unique(np.concatenate(wanted)) if wanted else np.zeros(0, np.int64)
    return found[found > 0]


def around(wanted: Int[Array, " wanted"], asked: Int[Array, " asked"]) -> Int[Array, " chosen"]:
    """Those of :func:`grid` that answer what is asked, with their neighbours.

    They are cut into runs of :data:`TOGETHER`, which depend on the grid alone: whatever was asked
    before, the answer is the same.

    Example:
        >>> around(np.arange(100), np.array([20])).tolist()
        [16, 17, 18, 19, 20, 21, 22, 23, 24]
    """
    run = np.maximum(np.searchsorted(wanted, asked) - 1, 0) // TOGETHER
    places = TOGETHER * np.unique(run)[:, None] + np.arange(TOGETHER + 1)
    return wanted[np.unique(np.minimum(places, len(wanted) - 1))]
