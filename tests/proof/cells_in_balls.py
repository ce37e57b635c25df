"""How far masses of cells, what goes to the infinities and the shares that move up lie from balls,
over what a mechanism declares: each number at most 1.

An edge may lie off its loss by as many units of 1 as the masses beside it are allowed: a label that
is off by so much is a Q-mass that is off by that share of itself. Where a law is known to sum to
one, and the log of its tilted sum is taken from that, it is units of the loss (and of the size that
losses have), as the factors |e^{sℓ} − 1| of the errors are.
"""

import math
from typing import NamedTuple

import numpy as np

from jaxgdp.accounting.certify.discretisation import dominating_weights
from jaxgdp.numerics.errors import UNIT
from jaxgdp.pairs.cells import reverse
from jaxgdp.proof.balls import exact

NEAR_TERM = 16.0  # units, of what a tilted sum of small losses allows beside the masses' own
DEEP = 1e-290
WIDEST = 600.0  # nats of a cell, beyond which doubles hold no share


class Deviation(NamedTuple):
    """How far off something is, over what is declared; what and where."""

    share: float
    what: str


def lattice(rng, law, number=14):
    """Random points, points next to the smallest loss, or narrow cells anywhere."""
    low, top = law.reach()
    low, kind, least = abs(low), rng.integers(4), law.least()
    if kind == 0:
        points = rng.uniform(-1.0, 1.05, number) * top * rng.uniform(0.3, 1.0)
    elif kind == 1 and least is not None:
        points = -least * np.append(0.0, 10.0 ** rng.uniform(-12.0, 0.0, number)) + least
    elif kind == 2:
        points = rng.uniform(-low, top) + top * 10.0 ** rng.uniform(-9.0, -1.0) * np.arange(number)
    else:
        points = top * 10.0 ** rng.uniform(-6.0, -1.0) * (np.arange(number) - number // 2)
    points = np.unique(points)
    # (narrow cells far out may be no cells of doubles)
    return points if len(points) == number else top * np.linspace(-1.0, 1.05, number)


def _outside(found, some, slack):
    """Distance from the range of what there may be, over ``slack``."""
    away = max(found - max(some), min(some) - found)
    if not away > 0:
        return 0.0
    return float(away / slack) if slack > 0 else math.inf


class Checked:
    """Cells beside the law that they are of."""

    def __init__(self, cells, law, points, opened):
        """``opened``: index of the lower point of the open cell, or the last point's."""
        self.cells, self.law, self.points, self.opened = cells, law, points, opened
        self.tails = [[self._tails(k, side) for side in (-1.0, 1.0)] for k in range(len(points))]
        self.all = law.above(exact(-1e300))

    def _tails(self, k, side):
        point = float(self.points[k])
        off = float(max(self.cells.roundoff[k : k + 2]))
        if self.law.typical is not None:
            off = (off + NEAR_TERM) * min(1.0, abs(point) + self.law.typical)
        return self.law.above(exact(point) + exact(side * UNIT * off))

    def masses(self, j):
        """(Q, P) of cell j for edges at either end of where they may be."""
        infinite = [exact(m) for m in (self.law.plus, self.law.minus)]
        n = len(self.points)
        last = self.opened + 1 if self.opened < n - 1 else n
        for a in self.tails[j - 1] if j else (self.all,):
            for b in self.tails[j] if j < last else (None,):
                found = [x - (0 if b is None else b[i]) for i, x in enumerate(a)]
                if j == 0:
                    found[1] = found[1] + infinite[1]
                if j == n:
                    found[0] = found[0] + infinite[0]
                yield found

    def deviations(self):
        c, n = self.cells, len(self.points)
        last = self.opened + 1 if self.opened < n - 1 else n
        share = (c.roundoff + c.jitter) * UNIT + float(c.uncertain) + 4.0 * UNIT
        errors = (float(c.plus_error), float(c.minus_error))
        for j in range(last + 1):
            some = list(self.masses(j))
            for i, (side, log) in enumerate((("Q", c.log_y[j]), ("P", c.log_x[j]))):
                found = exact(float(log)).exp() if log > -np.inf else exact(0)
                values = [each[i] for each in some]
                most = max(map(abs, values))
                if not most > DEEP:
                    continue
                at_end = errors[i] if j == (n, 0)[i] else 0.0
                slack = exact(float(share[j])) * most + exact(at_end)
                yield Deviation(_outside(found, values, slack), f"{side}-mass of cell {j}")
            if 0 < j < n and not (j == last < n):
                yield from self._kept(j, some, max(share[j - 1 : j + 2]))

    def _kept(self, j, some, share):
        """Connecting the dots keeps the Q-mass, but for what is dropped."""
        c = self.cells
        if not c.log_x[j] > -np.inf:
            return
        low, high = (exact(float(x)).exp() for x in self.points[j - 1 : j + 1])
        up, dropped = float(c.up[j - 1]), float(np.broadcast_to(c.dropped, c.up.shape)[j - 1])
        if not 0.0 <= up <= 1.0:
            yield Deviation(math.inf, f"share of cell {j}")
        if dropped:
            return
        mean = low + exact(up) * (high - low)
        most = max((abs(q) for q, _ in some), key=float)
        if most > DEEP:
            off = [p * mean - q for q, p in some]
            if self.points[j] - self.points[j - 1] > WIDEST:
                return  # (what does not move up counts as lost)
            slack = exact(float(2.0 * share + 16.0 * UNIT)) * most
            yield Deviation(_outside(exact(0), off, slack), f"share of cell {j}")

    def lost(self):
        """What the open cell leaves over, at most what is counted."""
        n, c = len(self.points), self.cells
        if self.opened == n - 1:
            return Deviation(0.0 if c.lost == 0.0 else math.inf, "lost without an open cell")
        point = exact(float(self.points[self.opened]))
        q, p = self.law.above(point)
        left = q - point.exp() * p
        counted = exact(float(c.lost)) + exact(float(c.lost_error)) + exact(float(c.uncertain)) * q
        good = not counted < left or float(left) < DEEP
        return Deviation(
            0.0 if good else math.inf, f"mass at +inf: {float(left - counted)!r} short"
        )

    def dominance(self, end):
        """δ of the lattice law at least that of the use, in both orders."""
        yield from _dominance(self.cells, self.points, self._delta)
        turned = reverse(self.cells, self.points, end)
        yield from _dominance(turned, -self.points[::-1], self._delta_of_the_swapped_pair)

    def _delta(self, epsilon):
        above = self.law.above(epsilon)
        return self.law.plus + above.numerator - epsilon.exp() * above.denominator

    def _delta_of_the_swapped_pair(self, epsilon):
        above = self.law.above(-epsilon)
        q, p = (all_of - part for all_of, part in zip(self.all, above, strict=True))
        return self.law.minus + p - epsilon.exp() * q


def _dominance(c, points, true_delta):
    one, zero = np.ones(len(points)), np.float64(0.0)
    with np.errstate(all="ignore"):
        weights, infinite = dominating_weights(c, points, one, np.float64(1.0), zero)
    scale = exact(float(weights.log_total)).exp()
    q = [exact(float(w)) * scale for w in weights.weight]
    loss = [exact(float(x)) for x in points]
    units = (c.roundoff + c.jitter) * UNIT + float(c.uncertain)
    units = 2.0 * np.maximum(units[:-1], units[1:]) + (32.0 + abs(points)) * UNIT
    room = [exact(float(unit)) * mass for unit, mass in zip(units, q, strict=True)]
    middles = 0.5 * (points[1:] + points[:-1])
    for epsilon in (*points, *middles, points[0] - 1.0, points[-1] + 1.0):
        at = exact(float(epsilon))
        true, some = true_delta(at), [k for k, x in enumerate(loss) if x > at]
        found = exact(float(infinite))
        found += sum((q[k] * (1 - (at - loss[k]).exp()) for k in some), exact(0))
        slack = sum(room[max(0, min(some, default=len(q)) - 1) :], exact(0))
        slack = slack + exact(4.0 * UNIT) * found
        if true > DEEP:
            short = (true - found).max(exact(0))
            yield Deviation(_outside(short, [exact(0)], slack), f"delta at {float(epsilon)}")
