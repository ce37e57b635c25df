"""What is tried where lattices left a number wider than asked."""

from __future__ import annotations

import numpy as np

from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ..question import Answer, Question
from . import by_jumps, by_moments, by_share, share_settings


@with_float64
def narrow_what_is_wide(groups: Groups, question: Question, found: Answer) -> None:
    """Narrow the numbers that lattices left wider than promised, in place: by the law given that a
    record is sampled, by the number of jumps, and by moments, a last resort for sums of many uses,
    which ends where a first curve hardly helps.

    Args:
        groups, question: of the whole batch.
        found: its answer by lattices.

    Method: docs/method/limit.md#long-runs
    """
    tight = all(mechanism.tight for mechanism, _ in groups)
    if not tight or question.keep:
        return
    tried, seldom = by_jumps.jumps_tell(groups, question), share_settings.seldom(groups)
    little = tried | share_settings.seldom(groups, share_settings.LITTLE_NOISE)
    with np.errstate(all="ignore"):
        excess = [q.excess(found.results[q.name], question.rtol) for q, _ in question.asked]
        wide = np.max(excess, axis=0, initial=0.0) > 1.0
        for row in map(int, np.flatnonzero(wide)):
            own = question.take(np.array([row]), len(wide))
            if not little[row]:
                by_jumps.narrow(groups, row, own, found.results)
            if not seldom[row]:
                by_share.narrow(groups, row, own, found.results)
            if not little[row]:
                by_share.narrow_further(groups, row, own, found.results)
            by_moments.narrow(groups, row, own, found.results)
            by_share.narrow_at_last(groups, row, own, found.results)
