"""A record in one of t steps of any mechanism: tables from above and from below."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...numerics.errors import BINOMIAL_TAIL, BRACKETED, EXP, UNIT
from ...pairs import table
from ...pairs.table import NOTHING, Table
from . import dyadic_sum
from .mean_of_steps import LEAST, Moments, Sum, SumLayout, attack_mean, dominating_mean, place
from .step_law import StepLaw

_TENTH = 0.1  # of the mean distance of V from 1: a body is laid out as if it were this wide
_KEPT_SHARE = 2e-3  # of the mass from a point on, that stays there
_OWN_SHARE = 0.1  # of E(U − c)₊ at a point, that does not come from what lies beyond
_MOST_ZEROS, _FEW_ZEROS = 40, 0.01  # steps of a ratio of 0 that are counted; expected ones
_CANCELLED = 1e-9  # most that a mass may lose where two masses at infinity cancel
_FAINT = 1e-250  # mass that is not told from none
ONE_SIDED = 600.0  # loss that stands for an infinite one in a table from below
_BEYOND = 4.0  # of all finite likelihood ratios together, where the label of an infinite one is


def tables(step: StepLaw, number: int) -> tuple[Table, Table]:
    """A pair that dominates that of a record in one of ``number`` steps, in both directions, and
    one that an attack achieves.

    Args:
        step: the law of one step.
        number: of steps.

    Method: docs/method/dominating.md#one-of-many
    """
    above = step.above
    if number == 1:
        return above, _one(step.below)
    v = np.exp(above.loss)
    distance = float(np.sum(above.p * np.abs(np.expm1(above.loss))))
    if distance == 0.0 and above.p_minus == 0.0 and above.q_plus == 0.0:
        return NOTHING, NOTHING
    plan = SumLayout.of(number, _moments(v, above, number, distance))
    nothing = np.zeros(0)
    found = within(_dominating(plan, above, v), step.high, Beyond(nothing, nothing, above.q_plus))
    if above.p_minus * number < _FEW_ZEROS:
        zeros = Beyond.of_zeros(step.low, above.p_minus, number)
        found = _swapped(within(_swapped(found), -step.low, zeros))
    return found, _attack(plan, step.below, number)


def _moments(v: np.ndarray, law: Table, number: int, distance: float) -> Moments:
    """Of the law of V, sorted."""
    zero, total = law.p_minus, float(np.sum(law.p)) + law.p_minus
    tail = np.cumsum(law.p[::-1])[::-1]  # P-mass from each V on

    def body(jumps: float) -> tuple[float, float]:
        some = tail > min(jumps / number, 0.4) * total
        some[0] = True
        mass = float(np.sum(law.p[some])) + zero
        mean = float(law.p[some] @ v[some]) / mass
        spread = float(law.p[some] @ (v[some] - mean) ** 2) + zero * mean**2
        return mean, spread / mass

    (mean, variance), (_, inner) = body(0.1), body(10.0)
    floor = (_TENTH * max(distance, 4.0 * UNIT)) ** 2
    head = (zero + np.cumsum(law.p)) / total
    least = v[min(int(np.searchsorted(head, math.exp(-LEAST / number))), len(v) - 1)]
    return Moments(mean, max(variance, floor), max(inner, floor), float(least))


def _dominating(plan: SumLayout, law: Table, v: np.ndarray) -> Table:
    # (V is e^loss, rounded; the loss itself is known to less than what a table allows for)
    error = law.error + 2.0 * EXP
    placed, near = place(plan.layout(1), plan.scale * v, law.p, error)
    start = Sum(placed, law.p_minus + near, 0.0, plan.scale * law.q_plus)
    found = dominating_mean(plan, start)
    clear = (found.p > _FAINT) & (found.q > _FAINT)
    if np.all(clear) or np.count_nonzero(clear) < 2:
        return found
    # (a mass that is hardly a double goes to its neighbours)
    clear[[0, -1]] = True
    return table.dominating(found, found.loss[clear])


class Beyond(NamedTuple):
    """A bound on E(U − c)₊ from some c on, as that of a law: masses at larger losses, and at +∞.

    Attributes:
        loss, p: increasing losses and their P-masses.
        q_plus: Q-mass at +∞.
    """

    loss: np.ndarray
    p: np.ndarray
    q_plus: float

    @classmethod
    def of_zeros(cls, lowest: float, p_minus: float, number: int) -> Beyond:
        """For the swapped pair: a likelihood ratio is at least e^lowest, or it is 0 in one step
        with probability ``p_minus``; U is at least what it is with so many zeros.
        """
        from scipy.stats import binom  # (heavy)

        some = np.arange(1.0, min(number, _MOST_ZEROS + 1))
        with np.errstate(under="ignore"):
            mass = binom.pmf(some, number, p_minus) * (1.0 + 2.0 * BINOMIAL_TAIL)
            rest = float(binom.sf(some[-1], number, p_minus)) * (1.0 + 2.0 * BINOMIAL_TAIL)
        share = np.log1p(-some / number) + lowest
        real = mass > _FAINT
        return cls(-share[real], (mass * np.exp(share))[real], rest + float(np.sum(mass[~real])))


def within(found: Table, highest: float, beyond: Beyond) -> Table:
    """A table that dominates, of a pair for which ``beyond`` bounds E(U − c)₊ from c = e^highest
    on.

    As E(U − c)₊ is convex in c, it lies below the chord from any smaller c to there: mass above a
    point of the table goes to that point, to the highest loss and to what lies beyond.

    Method: docs/method/dominating.md#one-of-many
    """
    if not highest < np.inf:
        return found
    size = UNIT * (4.0 * max(abs(highest), float(np.max(np.abs(found.loss)))) + 4.0)
    tail = np.cumsum(found.p[::-1])[::-1]
    far = float(np.sum(beyond.p))
    for at in range(int(np.searchsorted(found.loss, highest)) - 2, -1, -1):
        loss = found.loss[at]
        # E(U − c)₊/c at the point, and the P-mass at the highest loss that brings as much
        rise = np.expm1(found.loss[at + 1 :] - loss)
        call = float(found.p[at + 1 :] @ rise)
        known = float(beyond.p @ np.expm1(beyond.loss - loss))
        more = call - known + (found.q_plus - beyond.q_plus) * math.exp(-loss)
        top = max(more / math.expm1(highest - loss), 0.0)
        rest = float(tail[at]) - top - far
        if rest < _KEPT_SHARE * float(tail[at]):
            continue
        if more < _OWN_SHARE * call or top < _FAINT:
            continue
        # (masses at infinity nearly cancel, and count e^−loss times)
        lost = 8.0 * UNIT * (found.q_plus + beyond.q_plus) * math.exp(-loss)
        lost = lost / min(more, math.expm1(highest - loss) * rest)
        if lost > _CANCELLED:
            continue
        losses = np.concatenate([found.loss[: at + 1], [highest], beyond.loss])
        p = np.concatenate([found.p[:at], [rest, top], beyond.p])
        gap = min(float(found.loss[at + 1] - loss), highest - loss)
        off = size / gap + (len(rise) + 8.0) * UNIT
        return found._replace(
            loss=losses,
            p=p,
            q=p * np.exp(losses),
            q_plus=beyond.q_plus,
            # (both new masses are differences: each is known to a share of what it is made of)
            error=(found.error + off) * max(2.0 * float(tail[at]) / rest, (call + known) / more)
            + lost,
        )
    return found


def _swapped(found: Table) -> Table:
    """The table of the pair in the other order."""
    return found._replace(
        loss=-found.loss[::-1],
        p=found.q[::-1],
        q=found.p[::-1],
        p_minus=found.q_plus,
        q_plus=found.p_minus,
    )


class _Outcomes(NamedTuple):
    """Outcomes of an attack: likelihood ratios, P- and Q-masses, one-sided outcomes included."""

    ratio: np.ndarray
    p: np.ndarray
    q: np.ndarray


def _outcomes(law: Table, number: int) -> _Outcomes:
    """Those of one step. A mass that is impossible counts as next to impossible, by which the
    attack is a little worse; its ratio is larger than all others together.
    """
    v = np.exp(np.clip(law.loss, -ONE_SIDED, ONE_SIDED))
    faint = math.exp(-ONE_SIDED)
    ratio = np.concatenate([[0.0], v, [_BEYOND * number * float(np.max(v, initial=1.0))]])
    p = np.concatenate([[law.p_minus], law.p, [law.q_plus * faint]])
    q = np.concatenate([[law.p_minus * faint], law.q, [law.q_plus]])
    some = (p > 0.0) & (q > 0.0)
    return _Outcomes(ratio[some], p[some], q[some])


def _one(law: Table) -> Table:
    """The attack on a single step."""
    found = _outcomes(law, 1)
    return table.from_masses(found.p, found.q, law.error + 8.0 * UNIT, law.apart + 8.0 * UNIT)


def _attack(plan: SumLayout, law: Table, number: int) -> Table:
    """Labels are the likelihood ratios, rounded."""
    found = _outcomes(law, number)
    placed = dyadic_sum.spread(
        plan.layout(1),
        plan.scale * found.ratio,
        np.stack([found.p, found.q]),
        law.error + 8.0 * UNIT,
        law.apart + 2.0 * BRACKETED * UNIT,
    )
    return attack_mean(plan, placed)
