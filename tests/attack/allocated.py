"""A record in one of a few steps of a mechanism with finitely many outputs, by enumeration."""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf

from .discrete import FEW
from .polygon import Polygon, convolved
from .setting import Setting, adjacency_of, built, of_adjacency, rates

_MOST = 4000  # outputs of a composition
_DIGITS = 160
_LOUDEST = 80.0  # beyond it losses are not told from infinite ones


def one_of(outputs, steps: int):
    """(p, q) for every count of each output: P^t against the mean of the laws in which one step
    has Q, which with n outputs of a kind is Σ n/t·q·p^(n − 1) times the rest.
    """
    rows = [(steps, mpf(1), mpf(0))]  # (steps left, P-mass so far, with the record among these)
    for i, (p, q) in enumerate(outputs):
        last, grown = i == len(outputs) - 1, []
        for left, a, b in rows:
            for k in range(left, left + 1) if last else range(left + 1):
                ways = mpmath.binomial(left, k)
                own = mpf(k) / steps * q * p ** (k - 1) if k else mpf(0)
                grown.append((left - k, a * ways * p**k, ways * (b * p**k + a * own)))
        rows = grown
    return [(a, b) for _, a, b in rows if a > 0 or b > 0]


def draw(rng) -> Setting:
    """One or two uses of random allocation to 1 to 400 steps."""
    with mpmath.workdps(_DIGITS):
        text, own, loss = FEW[rng.integers(len(FEW))](rng)
        steps = int(rng.choice([1, 2, 3, int(np.exp(rng.uniform(0.0, np.log(400.0))))]))
        while steps > 1 and mpmath.binomial(steps + len(own) - 1, len(own) - 1) > _MOST:
            steps -= 1
        if loss > _LOUDEST:
            return draw(rng)
        outputs = one_of(own, steps)
        uses = 2 if rng.uniform() < 0.3 and len(outputs) ** 2 < 2 * _MOST else 1
        outputs = convolved(outputs, outputs) if uses == 2 else outputs
        text = f"jaxgdp.RandomAllocation(mechanism={text}, num_steps={steps})"
        text = f"jaxgdp.compose([({text}, {uses})])"
        adjacency = adjacency_of(rng)
        curve = of_adjacency(Polygon(outputs), adjacency)
        return Setting(text, built(text), adjacency, curve, rates(rng, uses * loss), _DIGITS)
