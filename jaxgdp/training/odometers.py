"""Privacy odometers: what a run has spent, whenever one asks, if the data chose its settings.

A filter (``filters``) needs a budget before the run. An odometer needs δ and some orders before the
run, adds up the cost of each step, and shows an ε at every time. Let ε_τ be what it shows where the
run ends, by whatever rule, even one that looks at ε_τ. For neighbouring data sets and every event A

    Pr[A] ≤ E′[e^{ε_τ}·1_A] + δ,

in which E′ is of the other data set, and the same with both exchanged. ε_τ is random: no fixed
(ε, δ) is promised, and what is published should be δ, the orders and ε_τ.

    odometer = odometers.gdp_odometer(delta=1e-5, expected=[0.5, 1.0, 2.0])
    odometer = odometers.spend(odometer, filters.gdp_cost(2.0))  # inside jit or scan
    odometer.epsilon()  # on the host; odometers.read(odometer) inside jit

With one order the bound is that of a filter at every time, for nothing; several share δ. The best
of all orders at each time, or the curve of the steps so far, is no odometer (arXiv 2602.06756)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..conversions.rdp import epsilon_at_order
from ..numerics.errors import RDP, SHORT
from ..numerics.shapes import Array, ArrayLike, Float, Int
from ..numerics.validation import checked, nonnegative, open_unit, positive
from . import filters
from .accountant import Account
from .float32 import above

_HALVINGS = 60
_RANGE = (1e-20, 1e20)  # of ρ: orders are 1 + √(log(1/δ)/ρ), or next to that
_NEGLIGIBLE = 60.0  # a term of e^−60 of a sum is left out, which makes ε larger


@dataclass(frozen=True)
class Odometer:
    """Costs of the steps so far, and the orders that ε is read at; see :func:`spend`.

    Method: docs/method/odometers.md#promise

    Attributes:
        spent: the sum of costs, float32, rounded up in every step; one entry, or one per order for
            "rdp".
        steps: steps taken, int32.
        kind: "gdp" (costs are μ²), "zcdp" (ρ) or "rdp" (D at ``orders``).
        orders: a > 1, fixed before the run.
        weights: shares of δ, with a sum of at most 1, one per order.
        delta: δ, fixed before the run.
    """

    spent: Float[Array, " costs"]
    steps: Int[Array, ""]
    kind: str
    orders: tuple[float, ...]
    weights: tuple[float, ...]
    delta: float

    def epsilon(self) -> float:
        """ε of the run so far, in nats, on the host: the upper side, which holds at every time at
        once. 0 before anything is spent, ∞ after a cost that was no number.

        The largest L + log(1 − δ·Σ w_i·e^{(a_i − 1)(L − D_i)}) of all losses L, where D_i is the
        sum of divergences of order a_i: never above the least of the single orders
        (:func:`jaxgdp.conversions.epsilon_from_rdp` with δ·w_i).

        Method: docs/method/odometers.md#orders

        Raises:
            ValueError: the odometer is traced: use :func:`read` inside ``jit``.

        Example:
            >>> state = gdp_odometer(delta=1e-5, expected=1.0)
            >>> state.epsilon(), round(spend(state, filters.gdp_cost(1.0)).epsilon(), 3)
            (0.0, 4.728)
        """
        if isinstance(self.spent, Tracer):
            raise ValueError("spent must be known to read epsilon: use odometers.read inside jit")
        spent = np.asarray(self.spent, np.float64)
        if not np.any(spent > 0.0) and not np.any(np.isnan(spent)):
            return 0.0
        s = np.array(self.orders) - 1.0
        divergence = spent * np.array(_factors(self)) * (1.0 + 4.0 * SHORT)
        log_share = np.log(self.delta) + np.log(self.weights)
        known = np.isfinite(divergence)
        if not np.any(known):
            return np.inf
        each = s[known], divergence[known], log_share[known]
        return max(min(float(np.min(epsilon_at_order(each[2], *each[:2]))), _mixed(*each)), 0.0)

    def level(self, levels: ArrayLike) -> float:
        """The least of some levels whose filter has not closed: μ of "gdp", ρ of "zcdp".

        For every level that was fixed before the run, the run which is cut before it would pass the
        level keeps that guarantee, as a filter does (:func:`jaxgdp.training.filters.gdp_filter`).
        Which level is read depends on the data: it is not a guarantee of the run at that level.

        Method: docs/method/odometers.md#levels

        Args:
            levels: μ or ρ > 0, one-dimensional, fixed before the run.

        Returns:
            A level, or ∞ where all are passed.

        Raises:
            ValueError: of Rényi costs, or a level is not positive.

        Example:
            >>> state = spend(gdp_odometer(delta=1e-5, expected=1.0), [0.6])
            >>> state.level([0.5, 1.0, 2.0])
            1.0
        """
        if self.kind == "rdp":
            raise ValueError("levels are of costs of one number, gdp or zcdp, got rdp")
        at = np.sort(np.atleast_1d(positive("levels", levels)))
        budget = at**2 * (1.0 - SHORT) if self.kind == "gdp" else at
        open_ones = at[float(np.asarray(self.spent)[0]) <= budget]
        return float(open_ones[0]) if open_ones.size else np.inf


jax.tree_util.register_dataclass(
    Odometer, data_fields=["spent", "steps"], meta_fields=["kind", "orders", "weights", "delta"]
)


def _factors(odometer: Odometer) -> tuple[float, ...]:
    """Divergences of each order per unit of cost: a/2 of μ², a of ρ."""
    if odometer.kind == "rdp":
        return (1.0,) * len(odometer.orders)
    share = 0.5 if odometer.kind == "gdp" else 1.0
    return tuple(share * order for order in odometer.orders)


def _mixed(s: np.ndarray, divergence: np.ndarray, log_share: np.ndarray) -> float:
    """The largest L + log(1 − N(L)) with N = Σ e^{log_share + s·(L − divergence)}, rounded up.

    The function is concave and largest where N + N′ = 1; N grows, so that the end and the start of
    an interval around that place bound both terms. Leaving out a term makes it larger.
    """
    alone = divergence - (log_share + np.log1p(s)) / s  # where that term of N + N′ is 1
    kept = s * (alone - np.min(alone)) < _NEGLIGIBLE
    if np.count_nonzero(kept) == 1:
        return np.inf  # (the least of the single orders has no rounding of a search)
    s, divergence, log_share, alone = (each[kept] for each in (s, divergence, log_share, alone))
    terms = lambda at: log_share + s * (at - divergence)
    low, high = float(np.min(alone - np.log(len(s)) / s)), float(np.min(alone))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        over = np.logaddexp.reduce(terms(middle) + np.log1p(s)) > 0.0
        low, high = (low, middle) if over else (middle, high)
    # (an error of a term is one of L, of some units of what it is made of)
    room = 4.0 * RDP * float(np.max(np.abs(alone) + divergence + np.abs(log_share) / s))
    with np.errstate(divide="ignore"):
        left = np.log(-np.expm1(min(float(np.logaddexp.reduce(terms(low - room))), 0.0)))
    return high + room + float(left)


def _odometer(kind: str, delta: float, orders: Any, weights: Any) -> Odometer:
    number = len(orders) if kind == "rdp" else 1
    nothing = np.zeros(number, np.float32), np.zeros((), np.int32)
    return Odometer(*nothing, kind, tuple(map(float, orders)), tuple(map(float, weights)), delta)


def _delta(delta: float) -> float:
    found = open_unit("delta", delta)
    if found.ndim:
        raise ValueError(f"delta must be one number, got {delta!r}")
    return float(found)


def _tuned(kind: str, delta: float, name: str, expected: ArrayLike) -> Odometer:
    """An order for each expected sum of costs, the one that a filter of that budget would use."""
    sums = np.unique(positive(name, expected))
    delta = _delta(delta)
    rho = 0.5 * sums**2 if kind == "gdp" else sums
    if not np.all((rho > _RANGE[0]) & (rho < _RANGE[1])):
        raise ValueError(f"{name} must be a sum of costs that some order holds, got {expected!r}")
    weights = np.full(len(rho), 1.0 / len(rho)) * (1.0 - SHORT)
    # (whichever order is taken, ε holds: a hundredth off the best one costs 1e-4 of it)
    log_share = np.log(delta * weights)[:, None]
    s = np.exp(0.5 * np.log(-log_share / rho[:, None]) + np.linspace(-3.0, 3.0, 601))
    shown = epsilon_at_order(log_share, s, (1.0 + s) * rho[:, None])
    orders = 1.0 + s[np.arange(len(rho)), np.argmin(shown, axis=1)]
    return _odometer(kind, delta, orders, weights)


def gdp_odometer(delta: float, expected: ArrayLike) -> Odometer:
    """An odometer for steps of Gaussian DP: costs are μ_t² (:func:`filters.gdp_cost`).

    Args:
        delta: δ in (0, 1), fixed before the run.
        expected: μ > 0 of the whole run at which ε shall be small, one or several, fixed before the
            run; each has an order of its own, and they share δ evenly.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> state = gdp_odometer(delta=1e-5, expected=[0.5, 1.0, 2.0])
        >>> for sigma in (4.0, 2.0, 1.0):  # each chosen by what was published before
        ...     state = spend(state, filters.gdp_cost(sigma))
        ...     print(round(state.epsilon(), 2))
        1.34
        2.59
        5.82
    """
    return _tuned("gdp", delta, "expected", expected)


def zcdp_odometer(delta: float, expected: ArrayLike) -> Odometer:
    """An odometer for steps of zCDP: costs are ρ_t (:func:`filters.zcdp_cost`).

    Args:
        delta: δ in (0, 1), fixed before the run.
        expected: ρ > 0 of the whole run at which ε shall be small, as for :func:`gdp_odometer`.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> state = spend(zcdp_odometer(delta=1e-5, expected=0.5), [0.5])
        >>> round(state.epsilon(), 3)
        4.728
    """
    return _tuned("zcdp", delta, "expected", expected)


def rdp_odometer(delta: float, orders: ArrayLike, weights: ArrayLike | None = None) -> Odometer:
    """An odometer for steps of Rényi DP: costs are D_t(a) at all orders (:func:`filters.rdp_cost`).

    Args:
        delta: δ in (0, 1), fixed before the run.
        orders: a > 1, one-dimensional, fixed before the run.
        weights: shares of δ, > 0 with a sum of at most 1, one for each order; default even ones.

    Raises:
        ValueError: an argument is out of range, or shapes do not match.

    Example:
        >>> state = rdp_odometer(delta=1e-5, orders=[8, 16, 32])
        >>> cost = filters.rdp_cost(1.0, 0.01, [8, 16, 32])
        >>> for _ in range(100):
        ...     state = spend(state, cost)
        >>> round(state.epsilon(), 2)
        1.46
    """
    at = checked("orders", orders, "finite numbers > 1", lambda a: (a > 1.0) & np.isfinite(a))
    if at.ndim != 1 or at.size == 0:
        raise ValueError(f"orders must be one-dimensional and not empty, got {orders!r}")
    if weights is None:
        weights = np.full(at.size, 1.0 / at.size) * (1.0 - SHORT)
    share = positive("weights", weights)
    if share.shape != at.shape or math.fsum(share) > 1.0:
        raise ValueError(
            f"weights must be one for each of {at.size} orders, with a sum of at most 1, got"
            f" {weights!r}"
        )
    return _odometer("rdp", _delta(delta), at, share)


def spend(odometer: Odometer, cost: ArrayLike) -> Odometer:
    """The odometer after one more step; pure, for use inside ``jit`` and ``scan``.

    Args:
        odometer: the state so far.
        cost: a bound on the step, which follows from what was published before it, in the
            odometer's kind: :func:`filters.gdp_cost`, :func:`filters.zcdp_cost`, or
            :func:`filters.rdp_cost` at the odometer's orders; ≥ 0, may be traced. A traced NaN or
            negative number makes ε infinite for good.

    Raises:
        ValueError: a cost that is negative or of the wrong shape (before tracing).

    Example:
        >>> int(spend(zcdp_odometer(delta=1e-5, expected=0.5), 0.1).steps)
        1
    """
    if not isinstance(cost, Tracer):
        cost = above(nonnegative("cost", cost))
    cost, size = jnp.asarray(cost, jnp.float32), jnp.shape(odometer.spent)
    if jnp.shape(cost) not in ((), size) or (jnp.shape(cost) == () and size != (1,)):
        raise ValueError(f"cost must have one entry per order, shape {size}, got {jnp.shape(cost)}")
    total = jnp.nextafter(odometer.spent + cost, jnp.float32(jnp.inf))
    total = jnp.where(cost > 0.0, total, odometer.spent)
    spent = jnp.where(cost >= 0.0, total, jnp.float32(jnp.inf))
    return dataclasses.replace(odometer, spent=spent, steps=odometer.steps + jnp.int32(1))


def read(odometer: Odometer) -> Array:
    """ε of the run so far inside ``jit`` and ``scan``, float32: the least of the single orders,
    rounded up. :meth:`Odometer.epsilon` is a few per cent smaller where several orders matter.

    Method: docs/method/odometers.md#one-order

    Example:
        >>> state = spend(gdp_odometer(delta=1e-5, expected=1.0), [1.0])
        >>> round(float(jax.jit(read)(state)), 3)
        4.728
    """
    s = np.array(odometer.orders) - 1.0
    log_share = np.log(odometer.delta) + np.log(odometer.weights)
    fixed = epsilon_at_order(log_share, s, np.zeros_like(s))
    factor, fixed = above(np.array(_factors(odometer)) * (1.0 + 4.0 * SHORT)), above(fixed)
    # (three roundings of sides that may have both signs)
    unit = 4.0 * jnp.finfo(jnp.float32).eps
    divergence = jnp.asarray(odometer.spent) * jnp.asarray(factor)
    each = divergence + jnp.asarray(fixed) + unit * (divergence + jnp.abs(jnp.asarray(fixed)))
    each = jnp.where(jnp.isnan(each), jnp.float32(jnp.inf), each)
    found = jnp.maximum(jnp.min(each), 0.0)
    return jnp.where(jnp.all(odometer.spent == 0.0), jnp.float32(0.0), found)


def after(odometer: Odometer, account: Account) -> Odometer:
    """The odometer after the steps of an account: what may be said of a run whose settings, and
    whose end, the data chose.

    :meth:`Account.spent` composes the steps that were taken, which is not the privacy of such a
    run. The odometer, fixed before the run, needs the sums of costs alone, so that counts by
    setting are enough; they are added in float64.

    Method: docs/method/odometers.md#account

    Args:
        odometer: the state before these steps.
        account: counts of steps by setting; of "rdp" the orders are whole numbers in [2, 1024].

    Raises:
        ValueError: the counts are not valid, or an order is none of :func:`filters.rdp_cost`.

    Example:
        >>> from jaxgdp.training import accountant
        >>> account = accountant.init([(2.0, 1.0), (4.0, 1.0)])
        >>> for setting in (0, 1, 1):  # chosen by what was published before
        ...     account = accountant.step(account, setting)
        >>> round(after(gdp_odometer(delta=1e-5, expected=0.6), account).epsilon(), 3)
        2.714
    """
    counts = account.checked_counts()
    total = np.asarray(odometer.spent, np.float64)
    for (sigma, p), count in zip(account.settings, counts, strict=True):
        if not count:
            continue
        if odometer.kind == "gdp":
            cost: Any = filters.gdp_cost(sigma, p)
        elif odometer.kind == "zcdp":
            cost = filters.zcdp_cost(sigma, p)
        else:
            cost = filters.rdp_cost(sigma, p, odometer.orders)
        total = total + np.asarray(cost, np.float64) * float(count) * (1.0 + 4.0 * SHORT)
    steps = np.asarray(odometer.steps) + np.int64(counts.sum())
    if steps > np.iinfo(np.int32).max:
        raise ValueError(f"steps must be at most {np.iinfo(np.int32).max}, got {int(steps)}")
    return dataclasses.replace(odometer, spent=above(total), steps=steps.astype(np.int32))
