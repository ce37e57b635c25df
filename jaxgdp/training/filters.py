"""Privacy filters: budgets that hold when the data influence noise, sampling rate or stopping.

A plan or an account composes settings that the data do not influence. If they do (noise that
follows the validation loss of the same records, stopping rules on noisy statistics), the
composition of the steps actually taken is not the privacy of the run. A filter receives the cost of
each step before the step is taken, and admits the step only if the sum stays within a budget fixed
in advance:

- :func:`gdp_filter`: Σ μ_t² ≤ B² gives B-GDP (Koskela, Tobaben, Honkela 2023; Smith, Thakurta
  2022).
- :func:`zcdp_filter`: Σ ρ_t ≤ ρ gives ρ-zCDP (Feldman, Zrnic 2021; Whitehouse et al. 2023).
- :func:`rdp_filter`: Σ D_t(a) ≤ D(a) at every order a of a list gives Rényi DP at each of them
  (Feldman, Zrnic 2021; Lécuyer 2021).

There is no filter on composed privacy-loss distributions (the curve of the steps so far): that
natural rule is not valid when steps are chosen adaptively (arXiv 2602.06756). What is valid with
curves is in ``residue``. Where no budget is known before the run, ``odometers`` show what is spent.
Noise on a Poisson sample is at every FPR no better than 1/σ-GDP, and at every order no better than
plain noise in zCDP, so subsampled runs want the Rényi filter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from scipy.special import gammaln, logsumexp

from ..conversions import epsilon_from_rdp
from ..gdp import mu_from_epsilon_delta
from ..numerics.errors import FILTER_COST, SHORT
from ..numerics.shapes import Array, ArrayLike, Bool, Float, Int
from ..numerics.validation import broadcast, nonnegative, open_unit, positive, probability
from .float32 import above, below

_ROUND = 1.0 + FILTER_COST  # for the rounding of a cost computed in float64
_LARGEST_ORDER = 1024


@dataclass(frozen=True)
class Filter:
    """A budget, what is spent of it, and how many steps were admitted; see :func:`admit`.

    Every cost is rounded up, so steps that would use the budget up exactly need a budget a hair
    larger.

    Attributes:
        budget: float32 array, one entry per order (one, for GDP and zCDP), rounded down.
        spent: the sum of costs, float32, rounded up in every step.
        admitted: steps admitted, int32.
        closed: whether a step was refused; a closed filter admits nothing more, however cheap.
        kind: "gdp" (costs are μ²), "zcdp" (ρ) or "rdp" (D at ``orders``).
        orders: orders of "rdp", else empty.
    """

    budget: Float[Array, " orders"]
    spent: Float[Array, " orders"]
    admitted: Int[Array, ""]
    closed: Bool[Array, ""]
    kind: str
    orders: tuple[float, ...] = ()

    def guarantee(self) -> dict[str, Any]:
        """The guarantee of the whole run, whatever was chosen on the way: the budget, by name."""
        if self.kind == "gdp":
            return {"mu": float(np.sqrt(np.float64(self.budget[0])))}
        if self.kind == "zcdp":
            return {"rho": float(self.budget[0])}
        return {"orders": self.orders, "rho": tuple(float(b) for b in np.asarray(self.budget))}


jax.tree_util.register_dataclass(
    Filter, data_fields=["budget", "spent", "admitted", "closed"], meta_fields=["kind", "orders"]
)


def _filter(kind: str, budget: ArrayLike, orders: Iterable[float] = ()) -> Filter:
    low, none, opened = below(np.atleast_1d(budget)), np.zeros((), np.int32), np.zeros((), bool)
    return Filter(low, np.zeros_like(low), none, opened, kind, tuple(orders))


def gdp_filter(mu: float) -> Filter:
    """A filter for μ-GDP: admits steps while Σ μ_t² ≤ μ².

    Args:
        mu: the budget, > 0. The cost of a step (:func:`gdp_cost`) is μ_t² of a bound that holds at
            every FPR.

    Raises:
        ValueError: μ is not a positive number.

    Example:
        >>> state = gdp_filter(mu=1.0)
        >>> for sigma in (2.0, 2.0, 1.25):
        ...     state, go = admit(state, gdp_cost(sigma))
        ...     print(bool(go))
        True
        True
        False
    """
    return _filter("gdp", float(positive("mu", mu)) ** 2 * (1.0 - SHORT))


def zcdp_filter(rho: float) -> Filter:
    """A filter for ρ-zCDP: admits steps while Σ ρ_t ≤ ρ.

    Args:
        rho: the budget, > 0.

    Raises:
        ValueError: ρ is not a positive number.

    Example:
        >>> state, go = admit(zcdp_filter(rho=0.6), zcdp_cost(1.0))
        >>> bool(go)
        True
    """
    return _filter("zcdp", float(positive("rho", rho)))


def rdp_filter(orders: ArrayLike, rho: ArrayLike) -> Filter:
    """A filter for Rényi DP: admits steps while Σ D_t(a) ≤ ρ(a) at every order a.

    The orders are fixed before the run. Admitting steps while *some* order has budget left would
    need a union bound over the orders, which this does not ask anyone to remember.

    Args:
        orders: whole numbers in [2, 1024], one-dimensional.
        rho: the budget at each, > 0; one number for all or one each.

    Raises:
        ValueError: an order or a budget is out of range, or their shapes do not match.

    Example:
        >>> state, go = admit(rdp_filter([4], 0.5), rdp_cost(1.0, 0.01, [4]))
        >>> bool(go), int(state.admitted)
        (True, 1)
    """
    at = _orders(orders)
    budget = positive("rho", rho)
    if budget.shape not in ((), at.shape):
        raise ValueError(
            f"rho must be one number or one for each of {len(at)} orders, got shape {budget.shape}"
        )
    return _filter("rdp", np.broadcast_to(budget, at.shape), (float(order) for order in at))


def rdp_filter_for(epsilon: float, delta: float, order: int | None = None) -> Filter:
    """A Rényi filter at one order whose budget implies (ε, δ)-DP.

    Args:
        epsilon: ε > 0.
        delta: δ in (0, 1).
        order: whole number in [2, 1024], fixed before the run; by default the one that a Gaussian
            mechanism of the same (ε, δ) would use, which suits most runs.

    Returns:
        A :class:`Filter`: the largest budget whose conversion
        (:func:`jaxgdp.conversions.epsilon_from_rdp`) is certified to keep ε.

    Raises:
        ValueError: an argument is out of range, or ε is too small for the order.

    Example:
        >>> state = rdp_filter_for(epsilon=2.0, delta=1e-5)
        >>> float(epsilon_from_rdp(delta=1e-5, orders=state.orders, rho=state.budget)) <= 2.0
        True
    """
    eps, d = float(positive("epsilon", epsilon)), float(open_unit("delta", delta))
    if order is None:
        rho = 0.5 * float(mu_from_epsilon_delta(epsilon=eps, delta=d)) ** 2
        order = min(max(round(1.0 + float(np.sqrt(-np.log(d) / rho))), 2), _LARGEST_ORDER)
    (a,) = _orders([order])
    if float(epsilon_from_rdp(delta=d, orders=[a], rho=[0.0])) > eps:
        raise ValueError(
            f"order must leave room for epsilon {eps:g} at delta {d:g}, got {order}: a larger order"
            " does"
        )
    low, high = 0.0, eps + 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = float(epsilon_from_rdp(delta=d, orders=[a], rho=[middle])) <= eps
        low, high = (middle, high) if fits else (low, middle)
    return _filter("rdp", [low], [float(a)])


def _orders(orders: ArrayLike) -> np.ndarray:
    array = positive("orders", orders)
    wrong = (array != np.floor(array)) | (array < 2) | (array > _LARGEST_ORDER)
    if array.ndim != 1 or np.any(wrong):
        raise ValueError(
            f"orders must be one-dimensional, whole numbers in [2, {_LARGEST_ORDER}], got"
            f" {orders!r}"
        )
    return array


def gdp_cost(noise_multiplier: ArrayLike, sampling_prob: ArrayLike = 1.0) -> Array:
    """μ² = 1/σ² of a step of Gaussian noise: subsampling does not improve μ at every FPR.

    Args:
        noise_multiplier: σ > 0, any shape; may be traced.
        sampling_prob: in (0, 1], does not matter.

    Returns:
        Cost, rounded up.

    Raises:
        ValueError: an argument is out of range (before tracing).
    """
    probability("sampling_prob", sampling_prob)
    return _upward(1.0 / positive("noise_multiplier", noise_multiplier) ** 2)


def zcdp_cost(noise_multiplier: ArrayLike, sampling_prob: ArrayLike = 1.0) -> Array:
    """ρ = 1/(2σ²) of a step (Bun, Steinke 2016), which subsampling does not improve at every order.

    Args:
        noise_multiplier: σ > 0, any shape; may be traced.
        sampling_prob: in (0, 1], does not matter.

    Returns:
        Cost, rounded up.

    Raises:
        ValueError: an argument is out of range (before tracing).
    """
    probability("sampling_prob", sampling_prob)
    return _upward(0.5 / positive("noise_multiplier", noise_multiplier) ** 2)


def _upward(value: Array) -> Array:
    if isinstance(value, Tracer):
        return value * (1.0 + 4.0 * jnp.finfo(value.dtype).eps)
    return above(np.asarray(value) * _ROUND)


def rdp_cost(
    noise_multiplier: ArrayLike, sampling_prob: ArrayLike, orders: ArrayLike
) -> np.ndarray:
    """D_a of a step of Poisson-subsampled Gaussian noise at whole orders a, the worse direction.

    log(1 + Σ_{k≥2} C(a, k)·(1 − p)^{a−k}·p^k·(e^{k(k−1)/(2σ²)} − 1))/(a − 1) (Mironov, Talwar,
    Zhang 2019, Section 3.3, less the binomial sum, so that nothing cancels); the direction with the
    record first is the worse (their Theorem 5).

    Args:
        noise_multiplier: σ > 0.
        sampling_prob: p in (0, 1]. Any shapes that broadcast: a table of choices is computed before
            the run, and indexed inside it.
        orders: as the filter's.

    Returns:
        float32 array with the orders on its last axis, rounded up.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> rdp_cost([1.0, 2.0], 0.01, [2, 8]).shape
        (2, 2)
    """
    sigma = positive("noise_multiplier", noise_multiplier)
    p = probability("sampling_prob", sampling_prob)
    broadcast(noise_multiplier=sigma, sampling_prob=p)
    sigma, p = (value[..., None] for value in np.broadcast_arrays(sigma, p))
    columns = []
    for a in _orders(orders):
        k = np.arange(2.0, a + 1.0)
        log_choose = gammaln(a + 1.0) - gammaln(k + 1.0) - gammaln(a - k + 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            absent = np.where(k == a, 0.0, (a - k) * np.log1p(-p))
        growth = k * (k - 1.0) / (2.0 * sigma**2)
        log_growth = growth + np.log(-np.expm1(-growth))
        total = np.asarray(logsumexp(log_choose + absent + k * np.log(p) + log_growth, axis=-1))
        columns.append(np.logaddexp(0.0, total) / (a - 1.0) * _ROUND)
    return above(np.stack(columns, axis=-1))


def admit(state: Filter, cost: ArrayLike) -> tuple[Filter, Array]:
    """Ask whether a step may be taken, before it is; pure, for use inside ``jit`` and ``scan``.

    Args:
        state: a filter.
        cost: of the step, in the filter's kind: :func:`gdp_cost`, :func:`zcdp_cost`, or
            :func:`rdp_cost` at the filter's orders; ≥ 0, may be traced. A NaN is refused.

    Returns:
        (new filter, whether to take the step): a refused step costs nothing and closes the filter.

    Raises:
        ValueError: a cost that is negative or of the wrong shape (before tracing).
    """
    if not isinstance(cost, Tracer):
        cost = above(nonnegative("cost", cost))
    cost = jnp.asarray(cost, jnp.float32)
    size = jnp.shape(state.budget)
    if jnp.shape(cost) not in ((), size) or (jnp.shape(cost) == () and size != (1,)):
        raise ValueError(f"cost must have one entry per order, shape {size}, got {jnp.shape(cost)}")
    above_sum = jnp.nextafter(state.spent + cost, jnp.float32(jnp.inf))
    total = jnp.where(cost > 0.0, above_sum, state.spent)
    go = jnp.all((total <= state.budget) & (cost >= 0.0)) & ~jnp.asarray(state.closed)
    admitted = state.admitted + jnp.where(go, 1, 0).astype(jnp.int32)
    spent = jnp.where(go, total, state.spent)
    return Filter(jnp.asarray(state.budget), spent, admitted, ~go, state.kind, state.orders), go
