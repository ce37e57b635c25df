"""The certified trade-off curve of a mechanism, asked as often as one likes."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from . import options
from .accounting import achieved as attacks_on
from .accounting import nested
from .accounting.curve import Curve
from .accounting.executors import COMPILED, choose
from .accounting.question import Question
from .bracket import STATUS, Bracket
from .mechanisms import Composition, as_composition
from .mechanisms.description import describe
from .numerics.precision import with_float64
from .numerics.showing import cells, html_table, short
from .numerics.validation import (
    broadcast,
    checked,
    closed_unit,
    floor_rate,
    nonnegative,
    on_host,
    one_of,
    relative_width,
)
from .options import ADJACENCIES, SYMMETRIC
from .quantities import registry
from .quantities.base import Quantity, log_rate
from .quantities.quantities import reading

_AT_ONCE = 2**20  # vertices looked at together
_READS = 8  # readings that take as long as one setting of ``measure``
_COMPILED: set = set()  # readings whose program is compiled


class ContradictionWarning(RuntimeWarning):
    """The two sides of an answer excluded each other: an error in this library, and nothing is vouched for."""


@functools.partial(jax.jit, static_argnames=("record", "symmetric"))
def _ask_all(curves: Curve, queries, *, record: Quantity, symmetric: bool) -> Bracket:
    """Every curve of a stack (leading axis) at each of its own queries (second axis)."""
    return jax.vmap(lambda c, row: jax.vmap(lambda q: record.read(c, q, symmetric=symmetric))(row))(curves, queries)


def _told(status) -> str:
    """The worst of all codes, in words."""
    return STATUS[int(np.max(status))]


@dataclass(frozen=True)
class TradeoffCurve:
    """Both sides of the trade-off curve of a mechanism; build it with :func:`tradeoff`.

    Every method broadcasts its argument against the mechanism's shape and returns a :class:`Bracket` of that shape, within the one that
    a curve of coarser ``rtol`` gives. Quantities that have no method of their own are methods all the same: ``curve.name(argument)``.

    Attributes:
        mechanism: the composition.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        rtol: relative width asked of the μ bracket at ``fpr_floor``.
        fpr_floor: default FPR floor of :meth:`mu` and :meth:`regret`.
        status: of μ at ``fpr_floor``: 0 where ``rtol`` was reached, else another code of ``jaxgdp.bracket.STATUS``; brackets hold all the
            same. :meth:`answer` gives that of any other number.
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
    _achieved: tuple = ()  # of mechanisms that are no more revealing, where those are looked at on their own: for one side only
    _mu: Any = None  # both sides of μ at ``fpr_floor`` as they were found with the curve, of the mechanism's shape

    def __repr__(self) -> str:
        asked = f"rtol={self.rtol:g}, fpr_floor={self.fpr_floor:g}, tail_mu={short(self.tail_mu)}"
        return f"TradeoffCurve({describe(self.mechanism)}, {self.adjacency}, {asked}, status {_told(self.status)})"

    def _repr_html_(self) -> str:
        caption = f"{describe(self.mechanism)}, {self.adjacency}, rtol {self.rtol:g}"
        rows = [
            (name, at, *map(str, cells(*each)))
            for name, at, bracket in (
                ("mu", f"FPR floor {self.fpr_floor:g}", self.mu()),
                ("regret", "of that mu", self.regret()),
                ("advantage", "", self.advantage()),
                ("epsilon", f"delta = {options.DELTA:g}", self.epsilon(options.DELTA)),
                ("tpr", f"fpr = {options.FPR:g}", self.tpr(options.FPR)),
            )
            for each in zip(*(np.reshape(side, -1) for side in bracket), strict=True)
        ]
        return html_table(caption, ("quantity", "at", "lower", "upper (report)"), rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the mechanism's parameters."""
        return self.mechanism.shape

    @with_float64
    def _sides(self, record: Quantity, values) -> Bracket:
        """What all looks at each curve have in common, side by side and not yet compared."""
        if record.name == "mu" and self._mu is not None and np.all(values == record.query(self.fpr_floor)):
            shape = broadcast(mechanism=np.empty(self.shape), argument=values)
            return Bracket(*(np.broadcast_to(side, shape) for side in self._mu))
        found = self._looks(self._curves, record, values)
        for curves in self._achieved if record.monotone else ():
            found = nested.narrowed(record, found, self._looks(curves, record, values))
        return found

    def _looks(self, curves, record: Quantity, values) -> Bracket:
        shape = broadcast(mechanism=np.empty(self.shape), argument=values)
        owner = np.broadcast_to(np.arange(len(curves)).reshape(self.shape), shape).reshape(-1)
        flat = np.broadcast_to(np.asarray(values, float), shape).reshape(-1)
        low, high = np.full(flat.shape, -np.inf), np.full(flat.shape, np.inf)
        # a place belongs to one curve
        single = record.name == "advantage_fpr"
        entries = [(i, curve) for i, row in enumerate(curves) for curve in (row[-1:] if single else row)]
        of_setting = [np.flatnonzero(owner == i) for i in range(len(curves))]
        where = [of_setting[i] for i, _ in entries]
        symmetric = self.adjacency in SYMMETRIC
        number = sum(map(len, where))
        executor = choose(-(-number // _READS), (record, symmetric) in _COMPILED)
        if executor is COMPILED:
            self._read_compiled(record, entries, where, flat, low, high)
        else:
            with np.errstate(all="ignore"):
                for (_, curve), rows in zip(entries, where, strict=True):
                    for row in rows:
                        found = record.read(curve, flat[row], symmetric=symmetric)
                        low[row], high[row] = np.maximum(low[row], found.lower), np.minimum(high[row], found.upper)
        return Bracket(low.reshape(shape), high.reshape(shape))

    def _read_compiled(self, record: Quantity, entries, where, flat, low, high) -> None:
        """Narrow ``low`` and ``high`` by every curve at its own queries, many at a time."""
        symmetric = self.adjacency in SYMMETRIC
        _COMPILED.add((record, symmetric))
        kinds: dict[tuple, list[int]] = {}
        for k, (_, curve) in enumerate(entries):
            kinds.setdefault(tuple(np.shape(leaf) for leaf in jax.tree.leaves(curve)), []).append(k)
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
                    found = _ask_all(stack, flat[rows], record=record, symmetric=symmetric)
                    np.maximum.at(low, rows, np.asarray(found.lower))
                    np.minimum.at(high, rows, np.asarray(found.upper))

    def _query(self, name: str, values) -> Bracket:
        """One reading at the argument that it takes; a contradiction is withheld and warned of."""
        bracket, contradicted = reading(name).settle(self._sides(reading(name), values))
        if np.any(contradicted):
            warnings.warn(
                f"{name}: the two sides of {np.sum(contradicted)} of {np.size(contradicted)} answers contradict each other, which is an "
                "error of jaxgdp; they are withheld",
                ContradictionWarning,
                stacklevel=3,
            )
        return bracket

    def _rate(self, name: str, argument: str, value) -> Bracket:
        """A reading at the log of a rate in [0, 1], named ``argument`` in errors."""
        on_host(f"TradeoffCurve.{name}", value)
        return self._query(name, log_rate(closed_unit(argument, value)))

    def _argument(self, record: Quantity, argument):
        on_host(f"TradeoffCurve.{record.name}", argument)
        if record.argument is None:
            record.checked(argument)
            return np.zeros(())
        if record.argument == "fpr_floor":
            return record.query(self._floor(argument))
        argument = record.default if argument is None else argument
        if record.closed:
            return record.query(closed_unit(record.argument or "", argument))
        return record.query(record.checked(argument))

    def quantity(self, name: str, argument=None) -> Bracket:
        """Any quantity of the registry, by name.

        Args:
            name: one that ``jaxgdp.measure`` knows.
            argument: what it is asked at, broadcast against the mechanism's shape; its default (or the curve's floor) where not given.

        Returns:
            Bracket; ``jaxgdp.quantities`` says which side is the one to report.

        Raises:
            ValueError: the name is unknown, or the argument out of range.

        Example:
            >>> import jaxgdp
            >>> curve = jaxgdp.tradeoff(jaxgdp.Gaussian(2.0))
            >>> curve.quantity("epsilon", 1e-6) == curve.epsilon(1e-6)
            True
        """
        record = registry.named(name)
        return self._query(name, self._argument(record, argument))

    def answer(self, name: str, argument=None) -> tuple[Bracket, Any]:
        """:meth:`quantity`, and what is known of it beside its sides.

        Args:
            name, argument: as for :meth:`quantity`.

        Returns:
            (bracket, codes of ``jaxgdp.bracket.STATUS``): 0 where the bracket is as narrow as ``rtol`` asks, 1 where not, 2 where its two
            sides contradicted each other, so that it is all that the quantity can be.
        """
        record = registry.named(name)
        bracket, contradicted = record.settle(self._sides(record, self._argument(record, argument)))
        return bracket, record.status(bracket, contradicted, self.rtol)

    def __getattr__(self, name: str):
        # (only what has no method of its own comes here)
        if name.startswith("_") or name not in registry.REGISTRY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self.quantity, name)

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
        return self.quantity("mu", fpr_floor)

    def approximate_mu(self, d=options.D) -> Bracket:
        """d-approximate μ: f(α) ≥ (1 − d)·f_μ(α/(1 − d)) for all α, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε).

        Unlike μ with a floor it holds at every FPR, and composes: √Σμ² with 1 − Π(1 − d_i).

        Args:
            d: in (0, 1).

        Returns:
            Bracket; report the upper side, with d.

        Raises:
            ValueError: d is out of range (before tracing).
        """
        return self.quantity("approximate_mu", d)

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
        return self.quantity("regret", fpr_floor)

    def advantage(self) -> Bracket:
        """η = max over α of 1 − α − f(α) = δ(0): membership advantage (Yeom et al. 2018; Kulynych 2024).

        Returns:
            Bracket; report the upper side.
        """
        return self.quantity("advantage")

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
        return self.quantity("epsilon", delta)

    def delta(self, epsilon) -> Bracket:
        """Privacy profile δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε], the larger direction for "add_remove".

        Args:
            epsilon: ε ≥ 0 in nats.

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: ε is negative or not finite (before tracing).
        """
        return self.quantity("delta", epsilon)

    def log_delta(self, epsilon) -> Bracket:
        """log δ(ε), for a δ below the smallest double.

        Args:
            epsilon: ε ≥ 0 in nats.

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: ε is negative or not finite (before tracing).
        """
        return self._loss("log_delta", epsilon)

    def log_rest(self, epsilon) -> Bracket:
        """log(1 − δ(ε)), which keeps its digits where δ is next to 1.

        Args:
            epsilon: ε ≥ 0 in nats.

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: ε is negative or not finite (before tracing).
        """
        return self._loss("log_rest", epsilon)

    def _loss(self, name: str, epsilon) -> Bracket:
        on_host(f"TradeoffCurve.{name}", epsilon)
        return self._query(name, nonnegative("epsilon", epsilon))

    @property
    def shown_mu(self):
        """√(Σ T/σ²) of the parts that are exactly Gaussian, shape of the mechanism: what an attacker reaches who looks at nothing else."""
        return np.array([row[-1].shown_mu for row in self._curves]).reshape(self.shape)

    def log_tpr(self, fpr) -> Bracket:
        """log TPR at an FPR, for rates below the smallest double.

        Args:
            fpr: in [0, 1].

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: the FPR is out of range (before tracing).
        """
        return self._rate("log_tpr", "fpr", fpr)

    def tpr(self, fpr) -> Bracket:
        """Largest TPR of any attack at an FPR: 1 − f(α).

        Args:
            fpr: in [0, 1].

        Returns:
            Bracket; report the upper side.

        Raises:
            ValueError: the FPR is out of range (before tracing).
        """
        return self.quantity("tpr", fpr)

    def log_beta(self, alpha) -> Bracket:
        """log f(α), for rates below the smallest double.

        Args:
            alpha: in [0, 1].

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: α is out of range (before tracing).
        """
        return self._rate("log_beta", "alpha", alpha)

    def beta(self, alpha) -> Bracket:
        """The trade-off curve itself: the least FNR at FPR α, β = f(α).

        Args:
            alpha: in [0, 1].

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: α is out of range (before tracing).
        """
        return self._rate("beta", "alpha", alpha)

    def bayes_risk(self, prior=options.PRIOR) -> Bracket:
        """Least error probability of an attacker: min over α of π·α + (1 − π)·f(α).

        Args:
            prior: π in [0, 1], the prior probability that the record is absent.

        Returns:
            Bracket; report the lower side.

        Raises:
            ValueError: the prior is out of range (before tracing).
        """
        return self.quantity("bayes_risk", prior)

    def plot(self, ax=None):
        """Draw the curve with its Gaussian summary and their FPR floor (:func:`jaxgdp.plot.tradeoff_curve`).

        Args:
            ax: matplotlib ``Axes``, or None for the current one of pyplot.

        Returns:
            The ``ax``.

        Raises:
            ValueError: the curve is one of several mechanisms.
            ImportError: matplotlib is missing (the ``plot`` extra).
        """
        from .plot import tradeoff_curve

        return tradeoff_curve(self, ax)


def dominating(mechanism: Composition, adjacency: str) -> tuple[Composition, str]:
    """The composition whose pair belongs to the adjacency, and the order or orders in which to take it.

    Raises:
        ValueError: the adjacency is unknown, or "replace_one" where no sound pair is known; names the mechanism.

    Method: docs/method/adjacency.md#symmetrisation
    """
    if one_of("adjacency", adjacency, ADJACENCIES) == "replace_one":
        return mechanism.replace_one(), "add_remove"
    return mechanism, adjacency


def tradeoff(mechanism, rtol=options.RTOL, fpr_floor=options.FPR_FLOOR, adjacency=options.ADJACENCY) -> TradeoffCurve:
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
        ValueError: an argument is out of range, or no sound pair is known for the adjacency.
        TypeError: the mechanism or an argument is traced by JAX.

    Example:
        >>> import jaxgdp
        >>> curve = jaxgdp.tradeoff(jaxgdp.dpsgd(noise_multiplier=2.0, sampling_prob=1.0, num_steps=4))
        >>> bool(curve.epsilon(delta=1e-5).contains(jaxgdp.gdp.epsilon(1e-5, 1.0)))
        True
    """
    on_host("tradeoff", mechanism, rtol, fpr_floor)
    mechanism = as_composition(mechanism)
    paired, order = dominating(mechanism, adjacency)
    mu = registry.named("mu")
    question = Question(
        rtol=float(relative_width("rtol", rtol)),
        fpr_floor=float(floor_rate("fpr_floor", fpr_floor)),
        adjacency=order,
        asked=((mu, None),),
        deepest=options.DEEPEST,
        keep=True,
    )
    groups = paired.stacked()
    axes = len(mechanism.shape)
    flat = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[axes:]), groups)
    found = nested.answer(flat, question)
    sides, attacks = found.results["mu"], []
    for achieved in paired.achieved():
        own = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[axes:]), achieved.stacked())
        seen = attacks_on.answer(own, question)
        sides = nested.narrowed(mu, sides, seen.results["mu"])
        attacks.append(tuple(seen.curves))
    settled, contradicted = mu.settle(sides)
    tail = np.array([row[-1].tail_mu for row in found.curves])
    return TradeoffCurve(
        mechanism,
        adjacency,
        question.rtol,
        question.fpr_floor,
        mu.status(settled, contradicted, question.rtol).reshape(mechanism.shape),
        tail.reshape(mechanism.shape),
        tuple(found.curves),
        tuple(attacks),
        Bracket(*(np.reshape(side, mechanism.shape) for side in sides)),
    )
