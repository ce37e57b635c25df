"""What holds of the same run if its batches were drawn in another way."""

from __future__ import annotations

from typing import NamedTuple

from ..bracket import Bracket


class Alternative(NamedTuple):
    """What holds of the same run if its batches were drawn in another way.

    Attributes:
        sampler: a name that ``jaxgdp.run`` takes.
        delta: δ of ``epsilon``.
        epsilon, mu, advantage: brackets; report the upper sides.
    """

    sampler: str
    delta: float
    epsilon: Bracket
    mu: Bracket
    advantage: Bracket

    @classmethod
    def quantities(cls) -> tuple[str, ...]:
        """Names of the quantities; only the first is asked at ``delta``."""
        return cls._fields[2:]
