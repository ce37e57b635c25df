"""``jaxgdp audit --sequential``: scores as they come, until the claim is refuted or they end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..progress import Progress
from .score_rows import ScoreRows

if TYPE_CHECKING:
    from ..audit import Sequential
    from ..numerics.shapes import Array

REFUTED = 3  # exit code
_PAUSE = 0.3  # seconds between two looks at a growing file
_SIZE = 1 << 16  # characters read at a time


def lines_of(source: str, follow: bool) -> Iterator[list[str]]:
    """Whole lines of a file or of stdin, as many as there are at a time.

    Args:
        source: path, or "-" for stdin.
        follow: whether to wait for more at the end of the file.

    Raises:
        ValueError: the file cannot be read.
    """
    if source == "-":
        for line in sys.stdin:
            yield [line]
        return
    try:
        with open(source, newline="", encoding="utf-8-sig") as file:
            rest = ""
            while True:
                text = file.read(_SIZE)
                if text:
                    *whole, rest = (rest + text).splitlines(keepends=True) or [""]
                    if rest.endswith("\n"):
                        whole, rest = [*whole, rest], ""
                    yield whole
                elif follow:
                    time.sleep(_PAUSE)
                else:
                    if rest:
                        yield [rest]
                    return
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def run_sequential(audit: Sequential, source: str, follow: bool, shown: Progress):
    """Feed an audit with rows until it refutes its claim or they end.

    Args:
        audit: a :class:`jaxgdp.audit.Sequential`.
        source: path of a CSV file with the columns score and member, or "-" for stdin.
        follow: whether to wait for more rows at the end of the file.
        shown: progress, which tells the state.

    Returns:
        (the audit, the logarithm of its wealth after every pair).

    Raises:
        ValueError: a row is malformed; names the file and the line.
    """
    import numpy as np

    rows, path = ScoreRows("stdin" if source == "-" else source), [np.zeros(0)]
    level = -np.log1p(-audit.confidence) * (1.0 + 1e-12)
    for lines in lines_of(source, follow):
        members, nonmembers = rows.read(lines)
        if not members.size + nonmembers.size:
            continue
        new = audit.path(members, nonmembers)
        reached = np.flatnonzero(new >= level)
        if reached.size:
            # no score is used after the refutation
            new = new[: reached[0] + 1]
            members, nonmembers = _first_pairs(audit, members, nonmembers, len(new))
        audit = audit.update(members, nonmembers)
        path.append(new)
        shown.describe(f"{audit.pairs} pairs, wealth {float(audit.wealth):.3g}")
        if reached.size:
            break
    rows.check()
    return audit, np.concatenate(path)


def _first_pairs(audit: Sequential, members: Array, nonmembers: Array, pairs: int):
    """As many scores as make so many pairs with those that wait."""
    waiting = int(audit.counts.num_waiting)
    return members[: pairs - max(waiting, 0)], nonmembers[: pairs - max(-waiting, 0)]
