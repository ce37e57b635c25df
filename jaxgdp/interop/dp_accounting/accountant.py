"""A privacy accountant that goes wherever one of dp_accounting's goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dp_accounting as dpa

from ... import options
from ...mechanisms import Composition
from ...numerics.shapes import ArrayLike
from ...numerics.validation import floor_rate, relative_width
from ..safe_sides import MuAndRegret, MuOrRegret
from ..spent import Spent
from .events import UnsupportedEvent, relation_name, spending


class Accountant(MuOrRegret, dpa.PrivacyAccountant):
    """Certified accounting of ``DpEvent``s; every number is the safe side of a bracket.

    Pass the class, or ``lambda: Accountant(...)``, to ``dp_accounting.calibrate_dp_mechanism`` and
    to jax_privacy. Events are kept as counts, so memory and time do not grow with the number of
    steps. Events that are not known to be sound are refused by name and change nothing.

    Args:
        neighboring_relation: a ``dp_accounting.NeighboringRelation``.
        rtol: requested relative width of the brackets, in [1e-8, 1).
        fpr_floor: default FPR floor of μ and regret, in [1e-300, 0.5).

    Raises:
        ValueError: an unknown relation, or a number out of range.

    Example:
        >>> accountant = Accountant().compose(dpa.GaussianDpEvent(2.0), 4)
        >>> round(accountant.get_epsilon(1e-5), 4)
        4.3772
    """

    def __init__(
        self,
        neighboring_relation: dpa.NeighboringRelation = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
        rtol: float = options.RTOL,
        fpr_floor: float = options.FPR_FLOOR,
    ):
        self._relation = relation_name(neighboring_relation)
        super().__init__(dpa.NeighboringRelation[self._relation])
        self.rtol = float(relative_width("rtol", rtol))
        self.fpr_floor = float(floor_rate("fpr_floor", fpr_floor))
        self._spent = Spent()
        self._answers: dict[tuple[Any, ...], Any] = {}

    def _maybe_compose(self, event: dpa.DpEvent, count: int, do_compose: bool) -> Any:
        try:
            if count < 0:
                raise UnsupportedEvent(
                    event, f"count must be a whole number >= 0, got {count!r}", bad_value=True
                )
            spent = self._spent.plus(spending(event, self._relation), count)
        except UnsupportedEvent as refused:
            return dpa.PrivacyAccountant.CompositionErrorDetails(
                invalid_event=refused.event, error_message=str(refused)
            )
        if do_compose:
            self._spent, self._answers = spent, {}
        return None

    def compose(self, event: dpa.DpEvent, count: int = 1) -> Accountant:
        """Add an event, used a number of times.

        Args:
            event: a ``DpEvent``.
            count: a whole number ≥ 1.

        Raises:
            ValueError: the count, or a value in the event, is out of range; names it. Nothing is
                composed.
            TypeError: ``event`` is no ``DpEvent``. Nothing is composed.
            dp_accounting.UnsupportedEventError: the event or a part of it is not supported; names
            it. Nothing is composed.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"count must be a whole number >= 1, got {count!r}")
        if isinstance(event, dpa.DpEvent):
            try:
                spending(event, self._relation)
            except UnsupportedEvent as refused:
                if refused.bad_value:
                    raise
        super().compose(event, count)
        return self

    def mechanism(self) -> Composition:
        """The composition so far, for :func:`jaxgdp.measure`, :func:`jaxgdp.tradeoff` and
        :func:`jaxgdp.report`: both sides of every bracket.

        Raises:
            ValueError: nothing was composed, or something non-private.
        """
        return self._spent.mechanism()

    @property
    def _contains_non_dp_event(self) -> bool:
        """Whether something was released without privacy; dp_accounting's own tests read this."""
        return self._spent.non_private

    def _once(self, name: str, *arguments: float) -> Any:
        key = (name, *arguments)
        if key not in self._answers:
            self._answers[key] = getattr(self._spent, name)(*arguments)
        return self._answers[key]

    def get_epsilon(self, target_delta: float) -> float:
        """Smallest ε known to hold at δ in [0, 1]: an upper bound; ∞ where there is none."""
        return self._once("epsilon", float(target_delta), self.rtol)

    def get_delta(self, target_epsilon: float) -> float:
        """δ(ε), an upper bound."""
        return self._once("delta", float(target_epsilon), self.rtol)

    def get_true_positive_rates(self, false_positive_rates: ArrayLike, deltas: Any = None) -> Any:
        """Largest TPR of any attack at each FPR, an upper bound; a float, or an array of them.

        Args:
            false_positive_rates: in [0, 1].
            deltas: not needed, the whole curve is used.
        """
        del deltas
        return self._spent.tpr(false_positive_rates, self.rtol)

    def get_false_negative_rates(self, false_positive_rates: ArrayLike) -> Any:
        """Least FNR of any attack at each FPR, the trade-off curve: a lower bound."""
        return self._spent.beta(false_positive_rates, self.rtol)

    def get_mu_and_regret(self, fpr_floor: float | None = None) -> MuAndRegret:
        """μ at FPRs down to the floor and the regret of reporting it, both upper bounds."""
        floor = self.fpr_floor if fpr_floor is None else float(fpr_floor)
        return self._once("mu_and_regret", floor, self.rtol)

    def get_advantage(self) -> float:
        """Membership advantage max TPR − FPR, an upper bound."""
        return self._once("advantage", self.rtol)

    def get_gdp_parameter_estimate(
        self, false_positive_rates: Sequence[float] | None = None, deltas: Any = None
    ) -> float:
        """μ at FPRs down to the smallest one given, an upper bound rather than an estimate."""
        del deltas
        floor = None if false_positive_rates is None else float(min(false_positive_rates))
        return self.get_mu(floor)
