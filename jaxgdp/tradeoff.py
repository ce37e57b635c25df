"""The certified trade-off curve of a mechanism, asked as often as one likes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .accounting import nested
from .accounting.curve import Curve
from .accounting.question import Question
from .bracket import Bracket
from .mechanisms import Composition, as_composition
from .numerics.precision import with_float64
from .numerics.validation import broadcast, checked, closed_unit, floor_rate, one_of, open_unit, relative_width
from .quantities.quantities import quantity
from .quantities.registry import REGISTRY

ADJACENCIES = ("add_remove", "add", "remove", "replace_one")
SYMMETRIC = ("add_remove", "replace_one")  # cover both orders of the pair
_DEEPEST = 1e-300
_AT_ONCE = 2**20  # vertices looked at together


@functools.partial(jax.jit, static_argnames=("name", "symmetric"))
def _ask_all(curves: Curve, queries, *, name: str, symmetric: bool) -> Bracket:
    """Every curve of a stack (leading axis) at each of its own queries (second axis)."""
    return jax.vmap(lambda c, row: jax.vmap(lambda q: quantity(name, c, q, symmetric=symmetric))(row))(curves, queries)


@dataclass(frozen=True)
class TradeoffCurve:
    """Both sides of the trade-off curve of a mechanism; build it with :func:`tradeoff`.

    Every method broadcasts its argument against the mechanism's shape and returns a :class:`Bracket` of that shape, within the one that
    a curve of coarser ``rtol`` gives.

    Attributes:
        mechanism: the composition.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        rtol: relative width asked of the μ bracket at ``fpr_floor``.
        fpr_floor: default FPR floor of :meth:`mu` and :meth:`regret`.
        status: 0 where ``rtol`` was reached, else a code of ``jaxgdp.accounting.engine.STATUS``; brackets hold all the same.
        tail_mu: a μ that holds at every FPR: √(Σ T/σ²) for Gaussians, the limit as the floor goes to 0 (nothing is subsampled away
            in the far tail); √(Σ μ²) of the components' own otherwise; ∞ where there is mass at infinity.
    """

    mechanism: Composition
    adjacency: str
    rtol: float
    fpr_floor: float
    status: Any
    tail_mu: Any
    _curves: tuple

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the mechanism's parameters."""
        return self.mechanism.shape

    @with_float64
    def _query(self, name: str, values) -> Bracket:
        shape = broadcast(mechanism=np.empty(self.shape), argument=values)
        owner = np.broadcast_to(np.arange(len(self._curves)).reshape(self.shape), shape).reshape(-1)
        flat = np.broadcast_to(values, shape).reshape(-1)
        low, high = np.full(flat.shape, -np.inf), np.full(flat.shape, np.inf)
        # a place belongs to one curve
        single = name == "advantage_fpr"
        entries = [(i, curve) for i, row in enumerate(self._curves) for curve in (row[-1:] if single else row)]
        kinds: dict[tuple, list[int]] = {}
        for k, (_, curve) in enumerate(entries):
            kinds.setdefault(tuple(np.shape(leaf) for leaf in jax.tree.leaves(curve)), []).append(k)
        of_setting = [np.flatnonzero(owner == i) for i in range(len(self._curves))]
        where = [of_setting[i] for i, _ in entries]
        for members in kinds.values():
            longest = max(len(where[k]) for k in members)
            if longest == 0:
                continue
            # bounded memory: so many curves at a time, each at so many of its queries
            points = np.size(entries[members[0]][1].upper_plus.log_alpha)
            wide = min(longest, max(1, _AT_ONCE // points))
            many = min(len(members), max(1, _AT_ONCE // (points * wide)))
            for start in range(0, len(members), many):
                part = (members[start : start + many] * many)[:many]
                stack = jax.tree.map(lambda *leaves: np.stack(leaves), *(entries[k][1] for k in part))
                for first in range(0, longest, wide):
                    columns = np.arange(first, first + wide)
                    rows = np.stack([np.resize(where[k], longest).take(columns, mode="wrap") for k in part])
                    symmetric = self.adjacency in SYMMETRIC
                    found = _ask_all(stack, flat[rows], name=name, symmetric=symmetric)
                    np.maximum.at(low, rows, np.asarray(found.lower))
                    np.minimum.at(high, rows, np.asarray(found.upper))
        return Bracket(np.minimum(low, high).reshape(shape), high.reshape(shape))

    def _floor(self, fpr_floor):
        floor = self.fpr_floor if fpr_floor is None else fpr_floor
        return checked("fpr_floor", floor, "in [0, 0.5)", lambda a: (a >= 0.0) & (a < 0.5))

    def mu(self, fpr_floor=None) -> Bracket:
        """μ*: the tight Gaussian-DP parameter over FPRs from the floor to f(floor) (Gomez 2025, Eq. 11).

        max over α of Φ⁻¹(1 − α) − Φ⁻¹(f(α)). It grows as the floor falls. At floor 0 it is ∞ for a pair with mass at infinity, and
        the upper side is √(Σ T/σ²) for Gaussians, subsampled or not. All adjacencies share it.

        Args:
            fpr_floor: in [0, 0.5); default the curve's own.

        Returns:
            Bracket; report the upper side, with its floor.

        Raises:
            ValueError: the floor is out of range (before tracing).

        Example:
            >>> import jaxgdp
            >>> bool(jaxgdp.tradeoff(jaxgdp.Gaussian(2.0)).mu().contains(0.5))
            True
        """
        with np.errstate(divide="ignore"):
            return self._query("mu", np.log(self._floor(fpr_floor)))

    def approximate_mu(self, d=1e-10) -> Bracket:
        """d-approximate μ: f(α) ≥ (1 − d)·f_μ(α/(1 − d)) for all α, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε).

        Unlike μ with a floor it holds at every FPR, and composes: √Σμ² with 1 − Π(1 − d_i).

        Args:
            d: in (0, 1).

        Returns:
            Bracket; report the upper side, with d.

        Raises:
            ValueError: d is out of range (before tracing).
        """
        return self._query("approximate_mu", np.log(open_unit("d", d)))

    def regret(self, fpr_floor=None) -> Bracket:
        """Δ of reporting :meth:`mu` in place of the curve: max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε).

        How far the Gaussian curve lies below the true one, along the diagonal; the rotated, exact form of Gomez 2025, Eq. 13.

        Args:
            fpr_floor: floor of the reported μ, in [0, 0.5).

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: the floor is out of range (before tracing).
        """
        return self._query("regret", np.log(np.maximum(self._floor(fpr_floor), _DEEPEST)))

    def advantage(self) -> Bracket:
        """η = max over α of 1 − α − f(α) = δ(0): membership advantage (Yeom et al. 2018; Kulynych 2024).

        Returns:
            Bracket; report the upper side.
        """
        return self._query("advantage", np.zeros(()))

    def advantage_fpr(self):
        """α*: the FPR of the attack that reaches the lower side of the advantage, shape of the mechanism."""
        return self._query("advantage_fpr", np.zeros(())).upper

    def epsilon(self, delta) -> Bracket:
        """Smallest ε ≥ 0 with δ(ε) ≤ δ, in nats.

        Args:
            delta: in (0, 1).

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: δ is out of range (before tracing).
        """
        return self._query("epsilon", np.log(open_unit("delta", delta)))

    def delta(self, epsilon) -> Bracket:
        """Privacy profile δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε], the larger direction for "add_remove".

        Args:
            epsilon: ε ≥ 0 in nats.

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: ε is negative or not finite (before tracing).
        """
        return self._query("delta", checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0))

    def log_tpr(self, fpr) -> Bracket:
        """log TPR at an FPR, for rates below the smallest double.

        Args:
            fpr: in [0, 1].

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: the FPR is out of range (before tracing).
        """
        with np.errstate(divide="ignore"):
            return self._query("log_tpr", np.log(closed_unit("fpr", fpr)))

    def tpr(self, fpr) -> Bracket:
        """Largest TPR of any attack at an FPR: 1 − f(α).

        Args:
            fpr: in [0, 1].

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: the FPR is out of range (before tracing).
        """
        found = self.log_tpr(fpr)
        return Bracket(np.exp(found.lower), np.exp(found.upper))

    def log_beta(self, alpha) -> Bracket:
        """log f(α), for rates below the smallest double.

        Args:
            alpha: in [0, 1].

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: α is out of range (before tracing).
        """
        with np.errstate(divide="ignore"):
            return self._query("log_beta", np.log(closed_unit("alpha", alpha)))

    def beta(self, alpha) -> Bracket:
        """The trade-off curve itself: the least FNR at FPR α, β = f(α).

        Args:
            alpha: in [0, 1].

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: α is out of range (before tracing).
        """
        found = self.log_beta(alpha)
        return Bracket(np.exp(found.lower), np.exp(found.upper))

    def bayes_risk(self, prior=0.5) -> Bracket:
        """Least error probability of an attacker: min over α of π·α + (1 − π)·f(α).

        Args:
            prior: π in [0, 1], the prior probability that the record is absent.

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: the prior is out of range (before tracing).
        """
        return self._query("bayes_risk", closed_unit("prior", prior))


def dominating(mechanism: Composition, adjacency: str) -> tuple[Composition, str]:
    """The composition whose pair belongs to the adjacency, and the order or orders in which to take it.

    Raises:
        ValueError: the adjacency is unknown, or "replace_one" where no sound pair is known; names the mechanism.
    """
    if one_of("adjacency", adjacency, ADJACENCIES) == "replace_one":
        return mechanism.replace_one(), "add_remove"
    return mechanism, adjacency


def tradeoff(mechanism, rtol=1e-3, fpr_floor=1e-10, adjacency="add_remove") -> TradeoffCurve:
    """Certified trade-off curve of a mechanism, down to error rates of 1e-300.

    The dominating pair bounds privacy loss from above, an explicit attack from below; both come from the same lattice, which
    is refined until they agree on μ.

    Args:
        mechanism: a mechanism or composition, scalar or batched.
        rtol: relative width asked of the μ bracket, in (0, 1).
        fpr_floor: FPR floor at which it is asked, in [1e-300, 0.5).
        adjacency: "add_remove" (both orders), "remove" (slopes of P against Q as they are), "add", or "replace_one" (both orders of
            the pair of replacing a record; Gaussian and Laplace noise then count for half).

    Returns:
        A :class:`TradeoffCurve`.

    Raises:
        ValueError: an argument is out of range, or no sound pair is known for the adjacency (before tracing).

    Example:
        >>> import jaxgdp
        >>> curve = jaxgdp.tradeoff(jaxgdp.dpsgd(noise_multiplier=2.0, sampling_prob=1.0, num_steps=4))
        >>> bool(curve.epsilon(delta=1e-5).contains(jaxgdp.gdp.epsilon(1e-5, 1.0)))
        True
    """
    mechanism = as_composition(mechanism)
    paired, order = dominating(mechanism, adjacency)
    question = Question(
        rtol=float(relative_width("rtol", rtol)),
        fpr_floor=float(floor_rate("fpr_floor", fpr_floor)),
        adjacency=order,
        asked=((REGISTRY["mu"], None),),
        deepest=_DEEPEST,
        keep=True,
    )
    groups = paired.stacked()
    axes = len(mechanism.shape)
    flat = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[axes:]), groups)
    found = nested.answer(flat, question)
    tail = np.array([row[-1].tail_mu for row in found.curves])
    return TradeoffCurve(
        mechanism,
        adjacency,
        question.rtol,
        question.fpr_floor,
        np.where(found.excess["mu"] <= 1.0, 0, 1).reshape(mechanism.shape),
        tail.reshape(mechanism.shape),
        tuple(found.curves),
    )
