"""The GDP residue filter: a budget μ for steps that the data choose, charged by their curves.

``filters.gdp_filter`` charges an ε-DP step the square of the μ that holds at every FPR, which for
small ε is (π/2)·ε². Beside the noise that the rest of the run still may add, it costs little more
than ε². The residue filter (Regehr et al. 2026) charges that: what is left of a budget B after a
step with the trade-off curve f is the largest b for which f and one Gaussian mechanism of μ = b
together are B-GDP. It is never less than √(B² − μ(f)²), which is what the plain filter leaves.

Host-side, NumPy. Method: docs/method/odometers.md#residue"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..mechanisms.base import Mechanism
from ..numerics import gaussian_profile as profile
from ..numerics.errors import CLOSED_LOG_DELTA, RESIDUE, SHORT
from ..numerics.normal import log_ndtr
from ..numerics.shapes import Array
from ..numerics.validation import positive

_MOST_STEPS = 100  # of one admission, which are composed as one step with so many losses
_PASSES = 14  # how often thresholds between which the check fails are halved
_MOST_CELLS = 1 << 17
_WIDTH = 1e-3  # of the cost of an admission: so much more than the least one may be charged
_ENDS = (3.0, 4.0, 6.0, 10.0)  # thresholds, in units of μ, beyond which a formula may decide
_RATIO = 1.02  # of the variances for which that formula is checked


@dataclass(frozen=True)
class ResidueFilter:
    """What is left of a budget, and how many steps were admitted; see :func:`admit`.

    Attributes:
        budget: μ of the whole run, whatever is chosen on the way.
        left: μ that the rest of the run may still have, rounded down.
        admitted: steps admitted.
        closed: whether a step was refused; a closed filter admits nothing more, however cheap.
    """

    budget: float
    left: float
    admitted: int = 0
    closed: bool = False


def residue_filter(mu: float) -> ResidueFilter:
    """A filter for μ-GDP that charges every step by its trade-off curve.

    Args:
        mu: the budget, > 0.

    Raises:
        ValueError: μ is not a positive number.

    Example:
        >>> import jaxgdp
        >>> from jaxgdp.training.residue import admit, residue_filter
        >>> state, count = residue_filter(mu=1.0), 0
        >>> while not state.closed:
        ...     state, go = admit(state, jaxgdp.Laplace(5.0))
        ...     count += go
        >>> plain = int(1.0 / jaxgdp.gdp.mu_from_pure_dp(epsilon=0.2) ** 2)
        >>> count, plain
        (24, 15)

    Method: docs/method/odometers.md#residue
    """
    budget = float(positive("mu", mu))
    return ResidueFilter(budget, budget)


def admit(state: ResidueFilter, step: Mechanism, number: int = 1) -> tuple[ResidueFilter, bool]:
    """Ask whether a step may be taken, before it is.

    Args:
        state: a filter.
        step: one mechanism (a scalar). Where its privacy loss is bounded it is charged as
            randomised response of that ε, else by its μ at every FPR. Poisson sampling gains
            nothing: far out a record was almost certainly sampled.
        number: in [1, 100], so many uses of the step, all or none of which are taken. Nothing
            that is seen in between may have an influence on them; small steps cost less together.

    Returns:
        (new filter, whether to take the step): a refused step costs nothing and closes the filter.

    Raises:
        ValueError: the step is not a scalar, has no μ at every FPR, or the number is out of range.
        TypeError: the step is not a mechanism.

    Method: docs/method/odometers.md#residue
    """
    if not isinstance(step, Mechanism):
        raise TypeError(f"step must be a mechanism, got {type(step).__name__}")
    if step.shape != ():
        raise ValueError(f"step must be one mechanism, got shape {step.shape}")
    if not (isinstance(number, int) and 1 <= number <= _MOST_STEPS):
        raise ValueError(f"number must be a whole number in [1, {_MOST_STEPS}], got {number!r}")
    canonical = step.canonical()
    cost = number * float(canonical.tail_precision())
    if not np.isfinite(cost):
        raise ValueError(
            f"step must have a mu that holds at every FPR, got {type(step).__name__}, which has"
            " none: some TPR at FPR 0 is more than 0"
        )
    epsilon = max(abs(float(bound)) for bound in canonical.loss_bounds())
    left = None if state.closed else residue(state.left, cost, epsilon, number)
    if left is None:
        return replace(state, closed=True), False
    return replace(state, left=left, admitted=state.admitted + number), True


def residue(mu: float, cost: float, epsilon: float, number: int = 1) -> float | None:
    """What is left of μ after uses of an ε-DP step, rounded down; None if they do not fit in.

    Args:
        mu: the budget B > 0.
        cost: μ² of all uses that holds at every FPR; what is left is at least √(B² − cost).
        epsilon: ε ≥ 0 of each use, or ∞ where the loss is not bounded.
        number: of uses.
    """
    square = mu * mu * (1.0 - SHORT)
    cost = cost * (1.0 + SHORT)
    known = square - cost if cost <= square else None
    # (no step costs less than twice its Kullback-Leibler divergence, which is additive)
    least = 2.0 * number * epsilon * np.tanh(0.5 * epsilon) if np.isfinite(epsilon) else np.inf
    most = min(cost, square)
    if epsilon > 0.0 and fits(epsilon, number, square - least * (1.0 + _WIDTH), mu):
        most = least * (1.0 + _WIDTH)
        known = square - most
    while most - least > _WIDTH * most:
        trial = 0.5 * (least + most)
        if fits(epsilon, number, square - trial, mu):
            most, known = trial, square - trial
        else:
            least = trial
    return None if known is None else float(np.sqrt(known)) * (1.0 - SHORT)


def _uses(epsilon: float, number: int) -> tuple[Array, Array]:
    """Losses of randomised responses, and logs of their P-masses: binomial ones."""
    up = np.arange(number + 1.0)
    ratios = np.log(np.arange(number, 0.0, -1.0)) - np.log(up[1:])
    log_choose = np.append(0.0, np.cumsum(ratios))
    log_more, log_less = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
    return (2.0 * up - number) * epsilon, log_choose + up * log_more + (number - up) * log_less


def fits(epsilon: float, number: int, square: float, mu: float) -> bool:
    """Whether uses of randomised response and a Gaussian of μ² = ``square`` are ``mu``-GDP.

    δ(x) = Σ_i p_i·δ_left(x − l_i) has to be at most δ_mu(x) at every x ≥ 0. Both are convex in
    e^x, so that between two thresholds the chord of the first and a tangent of the second decide,
    and beyond a last threshold :func:`tail_fits`. True is certain; False may only be unknown.

    Method: docs/method/odometers.md#residue
    """
    whole = mu * mu * (1.0 - SHORT)
    if not 0.0 < square < whole:
        return False
    spent = (whole - square) / number * (1.0 - SHORT)
    starts = (end * mu for end in _ENDS if end * mu >= epsilon)
    start = next((x for x in starts if tail_fits(epsilon, spent, whole - spent, x)), None)
    if start is None:
        return False
    losses, log_masses = _uses(epsilon, number)
    left = float(np.sqrt(square))
    edges = np.linspace(0.0, start + (number - 1) * epsilon, 64)
    low, high = edges[:-1], edges[1:]
    for _ in range(_PASSES):
        failed = ~_holds(losses, log_masses, left, mu, low, high)
        low, high = low[failed], high[failed]
        if low.size == 0:
            return True
        if low.size > _MOST_CELLS // losses.size:
            return False
        middle = 0.5 * (low + high)
        if not np.all(_log_profile(losses, log_masses, left, middle) < _log_delta(mu, middle)):
            return False
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return False


def tail_fits(epsilon: float, spent: float, largest: float, start: float) -> bool:
    """Whether one use beside any Gaussian with μ² = u ≤ ``largest`` has at most the δ(x) of one
    with u + ``spent``, at every threshold x ≥ ``start`` ≥ ε.

    δ_u(x) = e^{x/2}/2·∫₀^u e^{−v/8}·φ_v(x) dv, φ_v the normal density of variance v. Integrand by
    integrand this asks for A(x, v) = log cosh(xε/v) − x²c/(2v(v + c)) − ε²/(2v) + ½log(1 + c/v)
    + c/8 − log cosh(ε/2) ≤ 0, c = ``spent``. In x, A first rises and then falls, so that A ≤ 0 and
    ∂A/∂x ≤ 0 at ``start`` are enough; v²·A and the derivative are differences of functions that
    rise with v, which bounds them between neighbouring variances.

    Method: docs/method/odometers.md#residue
    """
    x, c = start, spent
    count = int(np.log(max(largest / (x * c / (4.0 * epsilon)), 1.0)) / np.log(_RATIO)) + 1
    v = largest * (1.0 + 2.0 * SHORT) * _RATIO ** -np.arange(count + 1.0)
    rest = 0.125 * c - _log_cosh(0.5 * epsilon)
    extra = max(0.5 * (c - epsilon**2), 0.0)
    # the smallest variances: log cosh y ≤ y and tanh y ≤ 1
    small, room = v[-1], 1e-9
    steep = epsilon * (small + c) <= x * c * (1.0 - room)
    below = x * epsilon + extra + max(rest, 0.0) * small
    if not steep or below > x * x * c / (2.0 * (small + c)) * (1.0 - room):
        return False
    high, low = v[:-1], v[1:]
    slope = epsilon * (high * np.tanh(x * epsilon / high) + c * np.tanh(x * epsilon / low))
    gain = high**2 * _log_cosh(x * epsilon / high) + extra * high + max(rest, 0.0) * high**2
    loss = 0.5 * x * x * c * low / (low + c) + max(-rest, 0.0) * low**2
    loss = loss + max(0.5 * (epsilon**2 - c), 0.0) * low
    return bool(np.all(slope <= x * c * (1.0 - room)) and np.all(gain <= loss * (1.0 - room)))


def _log_cosh(y: Array | float):
    """log cosh y, of small y to their last digits: log(1 + 2·sinh²(y/2))."""
    size = np.minimum(np.abs(y), 300.0)
    near = np.log1p(2.0 * np.sinh(0.5 * size) ** 2)
    return near + (np.abs(y) - size)


def _holds(losses: Array, log_masses: Array, left: float, mu: float, low: Array, high: Array):
    """Whether the chord over each cell is below the tangent at its middle."""
    middle = 0.5 * (low + high)
    goal = _log_delta(mu, middle)
    slope = np.exp(middle + log_ndtr(-0.5 * mu - middle / mu) - goal)
    good = np.ones(np.shape(low), bool)
    for end in (low, high):
        tangent = 1.0 - slope * np.expm1(end - middle)
        error = RESIDUE * (1.0 + slope * np.abs(np.expm1(end - middle)))
        error = error + _error(mu, middle, goal) + _error(left, end + losses.max(), goal)
        with np.errstate(over="ignore"):
            chord = np.exp(_log_profile(losses, log_masses, left, end) - goal)
        good &= chord * (1.0 + error) + error <= tangent
    return good


def _error(mu: float, x: Array, log_delta: Array):
    """By how much log δ may be off: its own error, and roundings of a log of that size."""
    own, cancelled, _ = CLOSED_LOG_DELTA
    return own + cancelled * ((1.0 + np.abs(x) / mu) / mu + np.abs(log_delta))


def _log_profile(losses: Array, log_masses: Array, left: float, x: Array) -> Array:
    terms = log_masses + _log_delta(left, x[:, None] - losses)
    return np.logaddexp.reduce(terms, axis=-1)


def _log_delta(mu: float, x: Array) -> Array:
    """log δ_μ(x) for any x: δ(−x) = 1 − e^{−x} + e^{−x}·δ(x), a sum of positive terms."""
    size = np.abs(x)
    above = profile.log_delta(size, np.full_like(size, mu))
    with np.errstate(divide="ignore", under="ignore"):
        below = np.log(-np.expm1(-size) + np.exp(above - size))
    return np.where(x >= 0.0, above, below)
