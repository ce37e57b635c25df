"""Partition selection: which of the keys that occur in the data are published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numerics.errors import THRESHOLD, UNIT
from ..numerics.pytree import check_fields, default, pytree, unchecked
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, known, open_unit, whole
from .approximate_dp import ApproximateDP
from .base import EVERY_RECORD, Mechanism
from .bracketed_pair import AttackPair
from .from_pmfs import FromPMFs


def _epsilon(name: str, value: ArrayLike) -> Array:
    return checked(name, value, "in [1e-6, 50]", lambda a: (a >= 1e-6) & (a <= 50.0))


@pytree
@dataclass(frozen=True)
class PartitionSelection(Mechanism):
    """Keys are published with the largest probability that (ε, δ) allows for their users.

    Desfontaines, Voss, Gipson & Mandayam (2020): π(0) = 0 and π(n + 1) = min(e^ε·π(n) + δ, 1 −
    e^{−ε}(1 − π(n) − δ), 1). Noise of a truncated geometric law and a threshold do the same where
    the ends of that law divide evenly. A user has at most ``max_keys`` keys, each of them decided
    on its own. The upper side is that of (ε, δ) for each key; the lower side is the decision on
    keys of a fixed number of users.

    Args:
        epsilon: ε in [1e-6, 50], of one key; any shape.
        delta: δ in (0, 1), of one key.
        max_keys: the most keys of one user, a whole number ≥ 1. All broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> keys = PartitionSelection(epsilon=1.0, delta=1e-6)
        >>> bool(jaxgdp.delta(keys, epsilon=1.0).contains(1e-6))
        True

    Method: docs/method/domains.md#partitions
    """

    epsilon: Parameter
    delta: Parameter
    max_keys: Parameter = default(1)

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side allows for the worst number of users at every use; the lower side has one"
        " number for all uses"
    )
    undifferentiable: ClassVar[str] = "its attack is made from known numbers"
    relation: ClassVar[str] = "adding or removing a user with a limited number of keys"
    beside_noise: ClassVar[str] = "which keys are published"
    sampling: ClassVar[str] = EVERY_RECORD
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "PartitionSelection(1, 1e-6)": lambda: PartitionSelection(1.0, 1e-6)
    }

    def __post_init__(self) -> None:
        known(self, why="its attack is made from its parameters", **vars(self))
        check_fields(self, epsilon=_epsilon, delta=open_unit, max_keys=whole)

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """Nothing: the part is the choice of keys."""
        return []

    def _turn(self) -> Array:
        """The last n at which π(n + 1) = e^ε·π(n) + δ: π(n) ≤ (1 − δ)/(e^ε + 1)."""
        growth = np.expm1(self.epsilon)
        most = (1.0 - self.delta) / (growth + 2.0)
        return np.floor(np.log1p(most * growth / self.delta) / self.epsilon)

    def probability(self, users: ArrayLike) -> Array:
        """π(n): the probability that a key of n users is published.

        Args:
            users: n ≥ 0, whole numbers of any shape that broadcasts.

        Example:
            >>> keys = PartitionSelection(epsilon=1.0, delta=1e-3)
            >>> keys.probability([0, 1, 2]).round(6).tolist()
            [0.0, 0.001, 0.003718]
        """
        n = np.asarray(users, float)
        growth, turn = np.expm1(self.epsilon), self._turn()
        first = self.delta * np.expm1(np.minimum(n, turn + 1.0) * self.epsilon) / growth
        at_turn = self.delta * np.expm1((turn + 1.0) * self.epsilon) / growth
        more, rest = np.maximum(n - turn - 1.0, 0.0), self.delta / growth
        left = np.exp(-more * self.epsilon) * (1.0 - at_turn + rest) - rest
        return np.where(n <= turn + 1.0, np.minimum(first, 1.0), 1.0 - np.clip(left, 0.0, 1.0))

    def _decisions(self, users: Array) -> tuple[Array, Array]:
        """Probabilities of both decisions on a key of n and of n + 1 users, on the last axis.

        Each is moved towards the other by what it may be off: a test with a larger FPR and a
        smaller TPR is worse at every rate, so that the lower side holds.
        """
        fewer, more = (np.asarray(self.probability(n)) for n in (users, users + 1.0))
        room = np.where(fewer > 0.0, self._error(users, fewer) + 2.0 * UNIT, 0.0)
        larger = np.minimum(fewer + room, 1.0)
        smaller = np.maximum(more - self._error(users + 1.0, more), larger)
        wide = np.broadcast_arrays(larger, smaller)
        p, q = (np.stack([1.0 - each, each], axis=-1) for each in wide)
        return p, q

    def _error(self, users: Array, probability: Array) -> Array:
        """How far a computed π(n) may be off: nε and each function by a few roundings.

        Behind the turn a difference of numbers of the size 1 + δ/(e^ε − 1) is taken.
        """
        relative = 2.0 * UNIT * (users * self.epsilon + 16.0) * probability
        behind = 16.0 * UNIT * (1.0 + self.delta / np.expm1(self.epsilon))
        return relative + np.where(users > self._turn() + 1.0, behind, 0.0)

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """(ε, δ) for each key, and the decision where it changes most."""
        p, q = self._decisions(self._turn())
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(p), np.log(q)
        loss = log_q - log_p
        epsilon, delta = (
            np.broadcast_to(value, loss.shape[:-1]) for value in (self.epsilon, self.delta)
        )
        pair = unchecked(
            PartitionPair, epsilon=epsilon, delta=delta, attack_loss=loss, attack_p=log_p
        )
        return [(pair, count * self.max_keys)]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Decisions on new keys, and on keys where the decision changes most."""
        turn = self._turn()
        some = (0.0 * turn, turn, turn + 1.0)
        return tuple(_Decision(*self._decisions(n), self.max_keys) for n in some)


@pytree
@dataclass(frozen=True)
class _Decision(Mechanism):
    """Decisions on keys of a fixed number of users; not checked."""

    p: Array
    q: Array
    keys: Array

    trailing: ClassVar[dict[str, int]] = {"p": 1, "q": 1}

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """One decision for each key."""
        return [(FromPMFs(self.p, self.q).canonical(), count * self.keys)]


@pytree
@dataclass(frozen=True)
class PartitionPair(ApproximateDP):
    """The pair of (ε, δ), and an attack of two outcomes; not checked.

    Attributes:
        epsilon, delta: of one key.
        attack_loss, attack_p: losses and log P-masses of the attack.
    """

    attack_loss: Array
    attack_p: Array

    tight: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False  # (a decision on a new key tells only if it is published)
    trailing: ClassVar[dict[str, int]] = {"attack_loss": 1, "attack_p": 1}

    def known_curve(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: both sides are of different pairs."""

    def lower_bound_member(self) -> AttackPair:
        """The two outcomes."""
        log_q = self.attack_p + self.attack_loss
        return AttackPair(self.attack_loss, self.attack_p, log_q, THRESHOLD)
