"""The certified trade-off curve of a mechanism, kept for any number of evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import options
from ..bracket import STATUS, Bracket
from ..deprecation import renamed_arguments, warn
from ..mechanisms import Composition
from ..mechanisms.description import describe
from ..numerics.shapes import Array, ArrayLike
from ..numerics.showing import cells, html_table, short
from .queries import Queries

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _told(status: Array) -> str:
    """The worst of all codes, in words."""
    return STATUS[int(np.max(status))]


@dataclass(frozen=True)
class TradeoffCurve(Queries):
    """Both sides of the trade-off curve of a mechanism; build it with :func:`tradeoff`.

    Every method broadcasts its argument against the mechanism's shape and returns a
    :class:`Bracket` of that shape, within the one that a curve of coarser ``rtol`` gives; an
    argument out of its range is a ``ValueError`` (before tracing). Quantities that have no method
    of their own are methods all the same: ``curve.name(argument)``.

    Attributes:
        mechanism: the composition.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        rtol: requested relative width of the μ bracket at ``fpr_floor``.
        fpr_floor: default FPR floor of :meth:`mu` and :meth:`regret`.
        status: of μ at ``fpr_floor``: 0 where ``rtol`` was reached, else another code of
            ``jaxgdp.bracket.STATUS``; brackets hold all the same. :meth:`answer` gives that of any
            other number.
        tail_mu: a μ that holds at every FPR: √(Σ T/σ²) for Gaussians, the limit as the floor goes
            to 0 (nothing is subsampled away in the far tail); √(Σ μ²) of the components' own
            otherwise; ∞ where there is mass at infinity.
    """

    mechanism: Composition
    adjacency: str
    rtol: float
    fpr_floor: float
    status: Any
    tail_mu: Any
    _curves: tuple
    # of mechanisms that are no more revealing, where those are looked at on their own: for one side
    # only
    _achieved: tuple = ()
    # both sides of quantities at ``fpr_floor`` as they were found with the curve, in the shape of
    # the mechanism
    _known: Mapping[str, Bracket] = field(default_factory=dict)
    # for each mechanism the accuracies of its curves
    _of_levels: tuple = ()
    # numbers that were computed alone, by name, argument and accuracy
    _alone: dict[tuple, Bracket] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        asked = f"rtol={self.rtol:g}, fpr_floor={self.fpr_floor:g}, tail_mu={short(self.tail_mu)}"
        return (
            f"TradeoffCurve({describe(self.mechanism)}, {self.adjacency}, {asked}, status"
            f" {_told(self.status)})"
        )

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

    def mu(self, fpr_floor: ArrayLike | None = None) -> Bracket:
        """μ*: the tight Gaussian-DP parameter from the FPR floor to f(floor) (Gomez 2025, Eq. 11).

        max over α of Φ⁻¹(1 − α) − Φ⁻¹(f(α)). It grows as the floor falls. At floor 0 it is ∞ for a
        pair with mass at infinity, and the upper side is √(Σ T/σ²) for Gaussians, subsampled or
        not. All adjacencies share it.

        Args:
            fpr_floor: in [0, 0.5); default the curve's own.

        Returns:
            Bracket; report the upper side, with its floor.

        Example:
            >>> import jaxgdp
            >>> bool(jaxgdp.tradeoff(jaxgdp.Gaussian(2.0)).mu().contains(0.5))
            True
        """
        return self.quantity("mu", fpr_floor)

    @renamed_arguments(d="approximation")
    def approximate_mu(self, approximation: ArrayLike = options.APPROXIMATION) -> Bracket:
        """d-approximate μ: f(α) ≥ (1 − d)·f_μ(α/(1 − d)), that is δ(ε) ≤ d + (1 − d)·δ_μ(ε).

        Unlike μ with a floor it holds at every FPR, and composes: √Σμ² with 1 − Π(1 − d_i). Report
        the upper side, with the approximation d in (0, 1).
        """
        return self.quantity("approximate_mu", approximation)

    def regret(self, fpr_floor: ArrayLike | None = None) -> Bracket:
        """Δ of reporting :meth:`mu` in place of the curve: max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε).

        How far the Gaussian curve lies below the true one, along the diagonal; the rotated, exact
        form of Gomez 2025, Eq. 13. Report the upper side, with the floor of μ in [0, 0.5).
        """
        return self.quantity("regret", fpr_floor)

    def advantage(self) -> Bracket:
        """η = max over α of 1 − α − f(α) = δ(0) (Yeom et al. 2018); report the upper side."""
        return self.quantity("advantage")

    def advantage_fpr(self) -> Array:
        """α*: the FPR of the attack that reaches the lower side of the advantage."""
        return self._query("advantage_fpr", np.zeros(())).upper

    def epsilon(self, delta: ArrayLike) -> Bracket:
        """Smallest ε ≥ 0 with δ(ε) ≤ δ, in nats, at δ in (0, 1); report the upper side."""
        return self.quantity("epsilon", delta)

    def delta(self, epsilon: ArrayLike) -> Bracket:
        """Privacy profile δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε], the larger direction for "add_remove".

        ε ≥ 0 in nats; report the upper side.
        """
        return self.quantity("delta", epsilon)

    def log_delta(self, epsilon: ArrayLike) -> Bracket:
        """log δ(ε) at ε ≥ 0 in nats, for a δ below the smallest double; report the upper side."""
        return self._loss("log_delta", epsilon)

    def log_one_minus_delta(self, epsilon: ArrayLike) -> Bracket:
        """log(1 − δ(ε)) at ε ≥ 0, with its digits where δ is next to 1; report the lower side."""
        return self._loss("log_one_minus_delta", epsilon)

    def log_rest(self, epsilon: ArrayLike) -> Bracket:
        """The old name of :meth:`log_one_minus_delta`; warns."""
        warn("TradeoffCurve.log_rest", "TradeoffCurve.log_one_minus_delta")
        return self.log_one_minus_delta(epsilon)

    @property
    def gaussian_part_mu(self):
        """√(Σ T/σ²) of the parts that are Gaussian: the μ that an attacker reaches by these."""
        return np.array([row[-1].gaussian_part_mu for row in self._curves]).reshape(self.shape)

    @property
    def shown_mu(self) -> Array:
        """Deprecated: ``gaussian_part_mu``."""
        warn("TradeoffCurve.shown_mu", "TradeoffCurve.gaussian_part_mu")
        return self.gaussian_part_mu

    def log_tpr(self, fpr: ArrayLike) -> Bracket:
        """log TPR at an FPR in [0, 1], below the smallest double too; report the upper side."""
        return self._rate("log_tpr", "fpr", fpr)

    def tpr(self, fpr: ArrayLike) -> Bracket:
        """Largest TPR of any attack at an FPR in [0, 1], 1 − f(α); report the upper side."""
        return self.quantity("tpr", fpr)

    @renamed_arguments(alpha="fpr")
    def log_beta(self, fpr: ArrayLike) -> Bracket:
        """log f(α) at an FPR α in [0, 1], below the smallest double; report the lower side."""
        return self._rate("log_beta", "fpr", fpr)

    @renamed_arguments(alpha="fpr")
    def beta(self, fpr: ArrayLike) -> Bracket:
        """The curve itself: the least FNR f(α) at FPR α in [0, 1]; report the lower side."""
        return self.quantity("beta", fpr)

    def bayes_risk(self, prior: ArrayLike = options.PRIOR) -> Bracket:
        """Least error probability of an attacker: min over α of π·α + (1 − π)·f(α).

        The prior probability π that the record is absent is in [0, 1]; report the lower side.
        """
        return self.quantity("bayes_risk", prior)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve and its Gaussian summary: :func:`jaxgdp.plot.tradeoff_curve`."""
        from ..plot import tradeoff_curve

        return tradeoff_curve(self, ax)
