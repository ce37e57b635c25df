"""One use of a law on finitely many losses: its error rates are sums of masses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...mechanisms.bracketed_pair import BracketedPair
from ...numerics.errors import BRACKETED, PAIRWISE, SPACING, UNIT
from ...numerics.shapes import Array, Bool, Float
from ...pairs.known_curves import FiniteCurve
from ...pairs.known_curves.base import ADD, REMOVE
from .curve import Curve, GaussianParts
from .vertices import Vertices

_SMALL = 20.0  # ε up to which it pays to look at both rates together
_LEAST = -600.0  # log of a TPR below which it is not looked at as a number
_REST = np.log(0.05)  # of a TPR of 0.95: FNRs below are sums of their own
_ROUNDED = 8.0  # units of what a mass is read from, its log, that of the other law and their ratio
_ENOUGH = 1.0 + 1e-9  # times a bound of up to a million additions
_SIDE = 0.05  # nats below 0 from which on thresholds of an attack are looked at
# rows of vertices have this length, or so many times it: readings are compiled once for each
_SHORTEST, _LONGER = 1024, 2


def attack_curve(
    loss: Float[Array, " atoms"],
    log_p: Float[Array, " atoms"],
    log_q: Float[Array, " atoms"],
    error: float,
) -> Curve:
    """The curve of one use of a finite pair from below; of its upper side nothing is known.

    Args:
        loss, log_p, log_q: log Q/P, log P and log Q of the outcomes in any order, shape
            (outcomes,); log_p −inf for padding.
        error: bound on the relative error of any mass.

    Method: docs/method/attack.md#family
    """
    plus, minus = padded(_both(_attack, Columns(loss, log_p, log_q, error, 2.0 * error)))
    unknown = plus._replace(
        used=np.zeros_like(plus.used),
        above_noise=np.zeros_like(plus.above_noise),
        top=None,
        log_infinity_mass=None,
    )
    return Curve(unknown, unknown, plus, minus, np.float64(np.inf), np.float64(0.0))


def pair_curve(pair: BracketedPair) -> Curve:
    """Both sides of the curve of one use of a pair known from two tables.

    From above δ(ε) is a straight line in e^ε between two neighbouring losses of the table, from
    below every loss is a threshold of tests.

    Args:
        pair: the two tables (unbatched).

    Method: docs/method/reading.md#lines
    Method: docs/method/attack.md#family
    """
    # (a loss that is off by its rounding is a Q-mass that is)
    own = BRACKETED * UNIT
    infinite = float(pair.log_q_plus), float(pair.log_p_minus)
    upper = pair.loss, pair.log_p, pair.log_p + pair.loss, pair.uncertain, own
    lower = pair.attack_loss, pair.attack_p, pair.attack_q, pair.attack_uncertain
    return Curve(
        *padded(halves(Columns(*upper), infinite, Columns(*lower, pair.attack_apart + own))),
        np.sqrt(pair.tail_precision()),
        np.sqrt(pair.gaussian_part_precision()),
    )


class Columns(NamedTuple):
    """A law on finitely many losses.

    Attributes:
        loss, log_p, log_q: log Q/P, log P and log Q of the outcomes, in any order.
        error: bound on the relative error of any mass.
        near: of the ratio of both masses of an outcome, beside ``error``.
        most_off: bounds on what ``near`` makes of any sum of P-masses, and of Q-masses.
        rounded: absolute values of what else logs and losses are made of, summed up.

    Method: docs/method/seldom.md#seldom-off
    """

    loss: Float[Array, " atoms"]
    log_p: Float[Array, " atoms"]
    log_q: Float[Array, " atoms"]
    error: Array | float
    near: Array | float
    most_off: tuple[float, float] = (math.inf, math.inf)
    rounded: float = 0.0


class _Off(NamedTuple):
    """How far rates may be off.

    Attributes:
        log_rate: the log of each rate by itself.
        near: sums of masses, relative, but for what both laws share.
        most: bounds on what ``near`` makes of any sum of P-masses, and of Q-masses.
        units: relative, each mass of an outcome by rounding, shape (outcomes,) or none.
    """

    log_rate: float
    near: float
    most: tuple[float, float] = (math.inf, math.inf)
    units: Array | float = 0.0

    def reversed(self) -> _Off:
        """In the other order."""
        units = self.units[::-1] if isinstance(self.units, np.ndarray) else self.units
        return self._replace(most=self.most[::-1], units=units)

    def part(self, start: int) -> Array | float:
        """Units of the outcomes from a place on."""
        return self.units[start:] if isinstance(self.units, np.ndarray) else self.units


def halves(above: Columns, infinite: tuple[float, float], below: Columns) -> list[Vertices]:
    """Upper halves of both orders, of a law that dominates, and lower ones, of one achieved.

    Args:
        above: the law that dominates.
        infinite: logs of its Q-mass at +∞ and its P-mass at −∞.
        below: the law that is achieved.

    Method: docs/method/reading.md#together
    """
    upper = _both(_dominating, above, infinite)
    most = min(_advantage(half) for half in upper)
    return upper + _both(_attack, below, most)


def finite_curve(known: FiniteCurve, parts: GaussianParts) -> Curve:
    """Both sides of the curve of one use of a finite pair that is known exactly, but for rounding.

    Args:
        known: the pair.
        parts: the Gaussian curves that its curve lies between.

    Method: docs/method/known.md#finite
    """
    upper, lower = [], []
    for order in (REMOVE, ADD):
        pair = known.oriented(order)
        deepest = float(max(np.max(np.abs(pair.log_p)), np.max(np.abs(pair.log_q))))
        near = float(np.max(pair.loss_error)) + (2.0 * len(pair.loss) + PAIRWISE) * UNIT
        slack = near + pair.mass_error + (len(pair.loss) + PAIRWISE) * (deepest + 4.0) * UNIT
        off = _Off(float(np.log1p(slack)), float(np.log1p(near + (deepest + 4.0) * 8.0 * UNIT)))
        columns = pair.loss, pair.log_p, pair.log_q
        # (that of a single use is known as it was given, so that one δ can be told from another)
        infinite = np.logaddexp(pair.log_q_plus, pair.log_unlisted)
        upper.append(_dominating(*columns, off, float(infinite), pair.loss_error))
        lower.append(_attack(*_with_end(pair), off))
    return Curve(*padded(upper + lower), *parts)


def _with_end(pair: FiniteCurve) -> tuple[Array, Array, Array]:
    """Losses and log masses, with what only Q has behind them: a test of FPR 0."""
    if pair.log_q_plus == -np.inf:
        return pair.loss, pair.log_p, pair.log_q
    ends = max(pair.loss[-1], 0.0), -np.inf, pair.log_q_plus - pair.infinite_error
    columns = (pair.loss, pair.log_p, pair.log_q)
    loss, log_p, log_q = (np.append(a, end) for a, end in zip(columns, ends, strict=True))
    return loss, log_p, log_q


def _advantage(half: Vertices) -> float:
    """δ(0) of a half-curve from above."""
    return (
        float(np.exp(half.log_tpr[0, 0]) - np.exp(half.log_alpha[0, 0])) if half.used[0, 0] else 1.0
    )


def _both(
    half: Callable[..., Vertices], law: Columns, *others: float | tuple[float, float]
) -> list[Vertices]:
    """Both halves of a finite pair's curve; ``others``: what else each half takes."""
    real = np.isfinite(law.log_p) & np.isfinite(law.log_q)
    order = np.argsort(law.loss[real], kind="stable")
    loss, log_p, log_q = (a[real][order] for a in (law.loss, law.log_p, law.log_q))
    # every addition is rounded in units of its log, which is at most that of the smallest mass
    deepest = float(max(np.max(np.abs(log_p)), np.max(np.abs(log_q)), law.rounded))
    sums = (len(loss) + 4.0) * (deepest + 4.0) * UNIT
    units = _ROUNDED * UNIT * (np.abs(log_p) + np.abs(log_q) + np.abs(loss) + law.rounded + 4.0)
    slack = float(np.log1p(law.error + law.near + sums))
    off = _Off(slack, float(np.log1p(law.near)), law.most_off, units)
    first, second = (
        zip(*(np.broadcast_to(other, 2) for other in others), strict=True) if others else ((), ())
    )
    plus = half(loss, log_p, log_q, off, *first)
    minus = half(-loss[::-1], log_q[::-1], log_p[::-1], off.reversed(), *second)
    return [plus, minus]


def _up(log_mass: Float[Array, " atoms"]) -> Float[Array, " atoms"]:
    """log of the masses from each place on."""
    return np.logaddexp.accumulate(log_mass[::-1])[::-1]


class _Sums(NamedTuple):
    """Masses from each place on, as numbers, and by how much they may be off.

    Method: docs/method/reading.md#together
    """

    value: Float[Array, " atoms"]
    off: Float[Array, " atoms"]

    @classmethod
    def of(cls, log_mass: Float[Array, " atoms"], off: _Off, units: Array | float, law: int):
        """With what rounding and ``near`` make of them; right above e^_LEAST.

        Logs of sums are rounded in units of their size, and a sum in one unit for each addition:
        the errors of the additions are found, which is exact, and added up on their own (Ogita,
        Rump & Oishi 2005, Algorithm 4.3).

        Args:
            log_mass: logs of the masses.
            off: how far these may be off, and ``units`` for each of them.
            law: 0 for masses of P, 1 for those of Q.
        """
        mass = np.exp(log_mass[::-1])
        total = np.cumsum(mass)
        before = np.append(0.0, total[:-1])
        added = total - before
        errors = (before - (total - added)) + (mass - added)
        value = total + np.cumsum(errors)
        rounded = (
            _ENOUGH * np.cumsum(mass * np.broadcast_to(units, mass.shape)[::-1])
            + 4.0 * UNIT * value
        )
        near = np.minimum(value * np.expm1(off.near), off.most[law])
        return cls(value[::-1], (near + rounded)[::-1])


def _vertices(
    at: Float[Array, " ends"],
    log_alpha: Float[Array, " atoms"],
    log_tpr: Float[Array, " atoms"],
    log_beta: Float[Array, " atoms"],
    used: Bool[Array, " atoms"],
    top: float,
    log_infinity_mass: float,
) -> Vertices:
    """One piece, with the ends of its slopes."""
    rows = (a[None] for a in (log_alpha, log_tpr, log_beta, used, used))
    return Vertices(
        np.zeros(1), np.ones(1), *rows, np.full(1, top), np.full(1, log_infinity_mass), at[None]
    )


def padded(halves: list[Vertices]) -> list[Vertices]:
    """Half-curves in rows of one standard length."""
    number, length = max(half.used.shape[-1] for half in halves), _SHORTEST
    while length < number:
        length *= _LONGER

    def wide(half: Vertices) -> Vertices:
        assert half.at is not None  # losses are not equally far apart
        extra = (0, 0), (0, length - half.used.shape[-1])
        rest = {
            "log_alpha": 0.0,
            "log_tpr": -np.inf,
            "log_beta": 0.0,
            "used": False,
            "above_noise": False,
        }
        rows = {
            name: np.pad(getattr(half, name), extra, constant_values=value)
            for name, value in rest.items()
        }
        return half._replace(**rows, at=np.pad(half.at, extra, mode="edge"))

    return [wide(half) for half in halves]


def _dominating(
    loss: Float[Array, " atoms"],
    log_p: Float[Array, " atoms"],
    log_q: Float[Array, " atoms"],
    off: _Off,
    infinite: float,
    beyond: Array | float = 0.0,
) -> Vertices:
    """Vertices at 0 and at all losses above it, but for the largest: there the curve ends. Rates
    are moved to the certified side.

    ``off.log_rate`` moves the log of each rate by itself, as far as masses are uncertain. Where
    losses are known to ``off.near``, both rates are uncertain together: every p·(e^loss − e^ε) is
    by a share of itself, and so is δ(ε), the smaller one by far next to no privacy lost.
    ``beyond``: by how much each loss may be larger, at most ``off.near``, or ``off.units``. Up to
    there an outcome counts: what it adds to the line of uncertain rates is at least what it may add
    to δ.

    Method: docs/method/reading.md#together
    """
    start = int(np.searchsorted(loss, 0.0, "right"))
    beyond = np.maximum(beyond, off.units)
    ends = np.where(beyond > 0.0, np.nextafter(loss + beyond, np.inf), loss)
    at = np.append(0.0, np.maximum.accumulate(ends[start:]))
    if start == len(loss):
        return _vertices(
            np.zeros(2), np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1, bool), 0.0, infinite
        )
    slack = off.log_rate
    log_alpha, log_tpr, log_beta = _by_logs(log_p, log_q, start, infinite, slack)
    units = off.part(start)
    fpr, tpr = (_Sums.of(log[start:], off, units, law) for law, log in enumerate((log_p, log_q)))
    # (no rate is smaller than those that lie beyond it)
    alpha = np.maximum.accumulate(np.maximum(fpr.value - fpr.off, 0.0)[::-1])[::-1]
    with np.errstate(divide="ignore"):
        together = np.where(fpr.value > np.exp(_LEAST), np.log(alpha), log_alpha)
    tpr = tpr.value + tpr.off + _infinity(infinite, off)
    tpr = np.minimum.accumulate(tpr)
    delta = np.maximum(tpr - np.exp(np.minimum(at[:-1], _SMALL) + together), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        tpr = np.log(tpr + np.expm1(slack) * delta) + 4.0 * SPACING
        rest = np.log1p(-np.exp(tpr)) * (1.0 + 4.0 * SPACING)
    # (a rate that is no double is known by its log only)
    better = (at[:-1] < _SMALL) & (rest > _REST) & (log_tpr > _LEAST)
    found = [
        np.where(better, *both)
        for both in ((together, log_alpha), (tpr, log_tpr), (rest, log_beta))
    ]
    with np.errstate(invalid="ignore"):  # (equal logs of nothing)
        ordered = [
            np.all(np.diff(rate) * sign >= 0.0)
            for rate, sign in zip(found, (-1.0, -1.0, 1.0), strict=True)
        ]
    if all(ordered):
        log_alpha, log_tpr, log_beta = found
    return _vertices(
        at, log_alpha, log_tpr, log_beta, np.ones(len(log_alpha), bool), at[-1], infinite
    )


def _by_logs(
    log_p: Float[Array, " atoms"],
    log_q: Float[Array, " atoms"],
    start: int,
    infinite: float,
    slack: Array | float,
) -> tuple[Array, Array, Array]:
    """Logs of FPR, TPR and FNR at the losses from ``start`` on, each moved by itself."""
    log_alpha = _up(log_p[start:]) - slack
    log_tpr = np.minimum(np.logaddexp(_up(log_q[start:]), infinite) + slack, 0.0)
    before = np.append(np.logaddexp.reduce(log_q[:start], initial=-np.inf), log_q[start:-1])
    log_beta = np.minimum(np.logaddexp.accumulate(before) - slack, 0.0)
    # whichever of TPR and FNR is the smaller one is a sum of its own
    small = log_beta < np.log(0.5)
    with np.errstate(divide="ignore"):
        log_tpr = np.where(small, np.log1p(-np.exp(log_beta)) * (1.0 - 4.0 * SPACING), log_tpr)
        log_beta = np.where(small, log_beta, np.log1p(-np.exp(log_tpr)) * (1.0 + 4.0 * SPACING))
    return log_alpha, log_tpr, log_beta


def _infinity(log_mass: float, off: _Off) -> float:
    """Mass at infinity, with what it may be off by."""
    if log_mass == -np.inf:
        return 0.0
    return float(np.exp(log_mass + off.near + _ROUNDED * UNIT * (abs(log_mass) + 4.0)))


def _attack(
    loss: Float[Array, " atoms"],
    log_p: Float[Array, " atoms"],
    log_q: Float[Array, " atoms"],
    off: _Off,
    most: float = 1.0,
) -> Vertices:
    """Tests "the loss is at least that of outcome k", rates moved to the certified side.

    ``off``: as for the other side. ``most``: the advantage is no larger; TPR − FPR
    of any test is a sum of p·(e^loss − 1) over some outcomes, and so known to a share of twice
    that, and to one of the sum of their sizes.

    Method: docs/method/seldom.md#seldom-below
    Method: docs/method/reading.md#together
    """
    slack = off.log_rate
    below = np.append(-np.inf, np.logaddexp.accumulate(log_q)[:-1])
    log_alpha = np.minimum(_up(log_p) + slack, 0.0)
    log_tpr, log_beta = np.minimum(_up(log_q) - slack, 0.0), np.minimum(below + slack, 0.0)
    # whichever of TPR and FNR is the smaller one is a sum of its own
    with np.errstate(divide="ignore", invalid="ignore"):
        log_tpr = np.where(log_beta < np.log(0.5), np.log1p(-np.exp(log_beta)) - slack, log_tpr)
        log_beta = np.where(log_beta < np.log(0.5), log_beta, np.log1p(-np.exp(log_tpr)) + slack)
        alpha, error = np.exp(log_alpha), np.expm1(slack)
        fpr, tpr = (_Sums.of(log, off, off.units, law) for law, log in enumerate((log_p, log_q)))
        gap, uncertain = tpr.value - fpr.value, tpr.off + fpr.off
        # (up to the first outcome with a loss below 0 their sizes add up to the difference itself)
        size = np.where(loss >= 0.0, np.maximum(gap, 0.0) + 4.0 * uncertain, 1.0)
        gap = gap - uncertain - error * (1.0 + error) * np.minimum(2.0 * most, size)
        # (the test that has this FPR: mixed with one that always rejects)
        gap = gap * (1.0 + alpha / (1.0 - alpha) * np.expm1(-2.0 * slack)) * (1.0 - 8.0 * SPACING)
        tpr = np.log(alpha + gap) - 4.0 * SPACING
        rest = np.log1p(-np.exp(tpr)) * (1.0 - 4.0 * SPACING)
    better = (gap > 0.0) & (tpr > log_tpr) & (rest > _REST) & (log_alpha < 0.0)
    # (rates that are no doubles of full precision have no differences)
    better = better & (log_alpha > _LEAST)
    log_tpr, log_beta = np.where(better, tpr, log_tpr), np.where(better, rest, log_beta)
    used = (loss >= -_SIDE) & (log_tpr > log_alpha) & (log_alpha < 0.0)
    return _vertices(
        np.append(loss, loss[-1]), log_alpha, log_tpr, log_beta, used, -np.inf, -np.inf
    )
