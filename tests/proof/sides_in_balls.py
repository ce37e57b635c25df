"""Tables from above and from below beside exact δ(ε) in ball arithmetic. Needs python-flint."""

import numpy as np

from jaxgdp.numerics.errors import BRACKETED, UNIT
from jaxgdp.proof.balls import exact

_NONE = 1e-290


class Side:
    """Atoms of a table as it is stored, with δ(ε) of either order and what it may be off by."""

    def __init__(self, log_p, log_q, loss, minus, plus, error):
        some = np.isfinite(log_p) & (np.isfinite(log_q) if log_q is not None else True)
        p = [exact(v).exp() for v in np.asarray(log_p)[some].tolist()]
        if log_q is None:
            at = [exact(v) for v in np.asarray(loss)[some].tolist()]
            q = [a * b.exp() for a, b in zip(p, at, strict=True)]
        else:
            q = [exact(v).exp() for v in np.asarray(log_q)[some].tolist()]
            loss, some = np.asarray(log_q)[some] - np.asarray(log_p)[some], slice(None)
        self.loss = np.asarray(loss)[some]
        order = np.argsort(self.loss, kind="stable")
        self.loss = self.loss[order]
        self.rows = [(p[k], q[k]) for k in order]
        self.minus, self.plus, self.error = minus, plus, exact(error)
        # (from either end: no sum is a difference)
        self.behind, self.ahead = _sums(self.rows), _sums(self.rows[::-1])

    @classmethod
    def above(cls, pair):
        ends = (exact(float(a)).exp() for a in (pair.log_p_minus, pair.log_q_plus))
        error = float(pair.uncertain) + BRACKETED * UNIT
        return cls(pair.log_p, None, pair.loss, *ends, error)

    @classmethod
    def below(cls, pair):
        error = float(pair.attack_uncertain) + BRACKETED * UNIT
        zero = exact(0)
        return cls(pair.attack_p, pair.attack_q, None, zero, zero, error)

    def delta(self, order, epsilon):
        """δ(ε) and the room that masses with the stated relative errors have."""
        number = len(self.rows)
        if order == 0:
            some = number - int(np.searchsorted(self.loss, epsilon, "right"))
            p, q = self.ahead[some]
            gain, rest, end = q, p, self.plus
        else:
            p, q = self.behind[int(np.searchsorted(self.loss, -epsilon, "left"))]
            gain, rest, end = p, q, self.minus
        growth = exact(epsilon).exp()
        room = self.error * (gain + growth * rest + end) + exact(_NONE)
        return end + gain - growth * rest, room


def _sums(rows):
    found = [(exact(0), exact(0))]
    for a, b in rows:
        found.append((found[-1][0] + a, found[-1][1] + b))
    return found


class Case:
    """A mechanism's tables beside the exact δ of what dominates, and of what is attacked.

    Attributes:
        name: for messages.
        above, below: tables; below may be missing.
        truth: (order, ε) → ball of δ that the table from above has to reach.
        attacked: the same that the attack may not exceed.
    """

    def __init__(self, name, pair, truth, attacked=None, below=None):
        self.name, self.truth, self.attacked = name, truth, attacked or truth
        self.above = Side.above(pair)
        self.below = below if below is not None else Side.below(pair)

    def points(self, rng, number):
        """ε ≥ 0 at losses, next to them, between them, evenly in depth, and beyond the last."""
        found = [0.0, 1e-12]
        for side in (self.above, self.below):
            some = np.unique(np.abs(side.loss[np.abs(side.loss) < 600.0]))
            if len(some) == 0:
                continue
            few = np.unique(np.append(rng.choice(some, min(number, len(some))), some[[0, -1]]))
            middle = 0.5 * (few[1:] + few[:-1])
            around = np.append(few * (1.0 - 1e-9), few * (1.0 + 1e-9))
            found += [*few, *rng.permutation(np.append(middle, around))[:number], 2.0 * few[-1]]
        return found

    def worst(self, epsilon):
        """The largest shortfall of the table, and excess of the attack, over the room."""
        found = []
        for order in (0, 1):
            true = self.truth(order, epsilon)
            own, room = self.above.delta(order, epsilon)
            found.append(float((true.lower() - own) / room))
            top = true if self.attacked is self.truth else self.attacked(order, epsilon)
            own, room = self.below.delta(order, epsilon)
            found.append(float((own - top.upper()) / room))
        return found


def listed(rows):
    """δ of outcomes with masses (p, q)."""

    def delta(order, epsilon):
        growth, total = exact(epsilon).exp(), exact(0)
        for p, q in rows:
            gain = q - growth * p if order == 0 else p - growth * q
            total += gain.max(exact(0))
        return total

    return delta
