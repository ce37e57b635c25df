"""Noisy maximum: the index of the largest of several noisy scores is published."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from scipy.special import logsumexp

from ..numerics.errors import PRECISION, UNIT
from ..numerics.normal import precision_above
from ..numerics.pytree import put, pytree, unchecked
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import broadcast, finite, known, positive, truth, whole_up_to
from ..pairs.known_curves import BoundedRangeCurve
from ..pairs.table import NOTHING, Table
from . import growth, maximum_laws
from .base import EVERY_RECORD, Mechanism
from .bracketed_pair import OpenPair, TailPair
from .exponential_mechanism import ExponentialMechanism
from .from_pmfs import FromPMFs
from .laplace import Laplace
from .laplace_bound import LaplaceWorst, with_attacks
from .randomized_response import RandomizedResponse

MOST_CANDIDATES = 10**9
NOISES = ("gumbel", "exponential", "permute-and-flip", "gaussian", "laplace")
_SKEWED = (0.5, 0.15, 0.02)  # how likely the event of an attack is, half-way between data sets


@dataclass(frozen=True)
class NoisyMaximum(Mechanism):
    """The index of the largest of K scores with independent noise, and nothing else, is published.

    Every score moves by at most 1 between neighbouring data sets, in any direction; if all scores
    move in the same direction (``monotone``), as counts do, that is worth half of the noise. With r
    = 2, or r = 1 where ``monotone``, the upper side for any scores and any K ≥ 2 is

    - "gumbel": the exponential mechanism, of bounded range ε = r/b;
    - "exponential", and permute-and-flip, which has the same law (Ding et al. 2021): the pair of
      Laplace noise of scale b/r, which is reached by two scores; it is ε-DP, ε = r/b, and its curve
      is above that of ε-DP alone;
    - "laplace": a pair of the same ε, which is not reached;
    - "gaussian": the curve of the fastest growth that any event can have; for K = 2 this is μ =
      r/(√2·σ), and reached.

    The lower side is the exact law of the index on scores of two heights.

    Args:
        scale: b of Gumbel, exponential and Laplace noise, σ of normal noise, in units of what one
            score moves by; > 0, any shape. For permute-and-flip with weights e^{ε·u/2} it is 2/ε.
        num_candidates: K, how many scores there are, a whole number from 1 to 10⁹.
        noise: "gumbel", "exponential", "permute-and-flip", "gaussian" or "laplace".
        monotone: whether all scores move in the same direction, True or False. Arrays broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> choice = NoisyMaximum(scale=2.0, num_candidates=50, noise="permute-and-flip")
        >>> found = jaxgdp.advantage(choice)  # (e − 1)/(e + 1) = 0.4621 of a mechanism that is 1-DP
        >>> round(float(found.lower), 4), round(float(found.upper), 4)
        (0.3935, 0.3935)

    Method: docs/method/noisy-maximum.md#pure
    """

    scale: Parameter
    num_candidates: Parameter
    noise: str = "gumbel"
    monotone: Any = False

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side allows for the worst scores at every use; the lower side is an attack with"
        " the same scores at all uses"
    )
    undifferentiable: ClassVar[str] = "its tables are made from known numbers"
    relation: ClassVar[str] = "scores that move by at most 1 each, in either order"
    sampling: ClassVar[str] = EVERY_RECORD
    beside_noise: ClassVar[str] = "that only the index of the largest score is published"
    noise_scale: ClassVar[str] = "scale"
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "NoisyMaximum(2, 10 candidates, gaussian)": lambda: NoisyMaximum(2.0, 10, "gaussian"),
        "NoisyMaximum(2, 10 candidates, permute-and-flip)": lambda: NoisyMaximum(
            2.0, 10, "permute-and-flip"
        ),
    }

    def __post_init__(self) -> None:
        swept = {name: getattr(self, name) for name in ("scale", "num_candidates", "monotone")}
        known(self, why="its tables are made from its parameters", **swept)
        if self.noise not in NOISES:
            words = ", ".join(repr(word) for word in NOISES)
            raise ValueError(f"noise must be one of {words}, got {self.noise!r}")
        checked = {
            "scale": positive("scale", self.scale),
            "num_candidates": whole_up_to("num_candidates", self.num_candidates, MOST_CANDIDATES),
            "monotone": truth("monotone", self.monotone),
        }
        broadcast(**checked)
        put(self, **checked)

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """The kind of noise is not swept."""
        return {name: (np.shape(getattr(self, name)), ()) for name in _SWEPT}

    def replace_one(self) -> NoisyMaximum:
        """Itself, for scores that move so much when a record is replaced."""
        return self

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """Nothing: the part is the choice of an index."""
        return []

    @property
    def law(self) -> str:
        """The law of the noise: permute-and-flip has that of exponential noise."""
        return "exponential" if self.noise == "permute-and-flip" else self.noise

    def probabilities(self, scores: ArrayLike) -> Array:
        """The exact law of the published index on given scores.

        Args:
            scores: shape (…, K), finite numbers, K ≥ 1 from here.

        Returns:
            Probabilities of the same shape, to about ten digits each; the scale is one number.

        Raises:
            ValueError: scores or the scale are not as said.

        Example:
            >>> choice = NoisyMaximum(scale=2.0, num_candidates=3, noise="exponential")
            >>> choice.probabilities([1.0, 0.0, 0.0]).round(6).tolist()
            [0.516096, 0.241952, 0.241952]
        """
        values = finite("scores", scores)
        if np.ndim(self.scale) or not values.ndim:
            raise ValueError(
                "scores must hold numbers along its last axis, and scale must be one number, got"
                f" shapes {values.shape} and {np.shape(self.scale)}"
            )
        s = values / float(np.asarray(self.scale))
        s = s - np.max(s, axis=-1, keepdims=True)
        if self.law == "gumbel":
            return np.exp(s - np.asarray(logsumexp(s, axis=-1, keepdims=True)))
        kinks = s if self.law != "gaussian" else s[..., :1] * 0.0
        if self.law == "exponential":
            kinks = kinks * 0.0  # (the largest one is at least the largest score)
        x, weight = maximum_laws.nodes(self.law, kinks, float(np.log(s.shape[-1])))
        away = x[..., None, :] - s[..., :, None]
        below = np.maximum(maximum_laws.log_below(self.law, away), -1e100)
        others = np.sum(below, axis=-2, keepdims=True) - below
        inside = weight[..., None, :] + maximum_laws.log_density(self.law, away) + others
        return np.exp(np.asarray(logsumexp(inside, axis=-1)))

    def _parts(self) -> tuple[Array, Array, Array]:
        """The scale, K and r, of one shape."""
        reach = np.where(np.asarray(self.monotone) == 1.0, 1.0, 2.0)
        return tuple(
            np.broadcast_to(np.asarray(a, float), self.shape)
            for a in (self.scale, self.num_candidates, reach)
        )  # type: ignore[return-value]

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The pair of any scores; nothing where there is one candidate."""
        scale, candidates, reach = self._parts()
        if np.all(candidates == 1.0):
            return [(_nothing(self.shape), count)]
        used = count * (candidates > 1.0)
        if self.law == "gumbel":
            # (rounded up)
            epsilon = reach / scale * (1.0 + 2.0 * UNIT)
            return list(_GumbelRange(epsilon).gathered(used))
        if self.law != "exponential":
            return [(self._tables(), count)]
        attacks = np.empty(self.shape, object)
        for index in np.ndindex(self.shape):
            attacks[index] = maximum_laws.bit(*self._event(index, _SKEWED[0]))
        return [(with_attacks(LaplaceWorst, scale / reach * (1.0 - 2.0 * UNIT), attacks), used)]

    def _tables(self) -> MaximumPair:
        scale, candidates, reach = self._parts()
        above, below, once = (np.empty(self.shape, object) for _ in range(3))
        for index in np.ndindex(self.shape):
            number, shift = int(candidates[index]), float(reach[index] / scale[index])
            if number == 1:
                above[index] = below[index] = once[index] = NOTHING
                continue
            above[index] = _above(self.law, number, shift * (1.0 + 2.0 * UNIT))
            every = maximum_laws.every_rate(self.law, number, shift)
            once[index] = maximum_laws.hull_of(every)
            below[index] = maximum_laws.bit(*self._event(index, _SKEWED[0]))
        half = np.floor(0.5 * candidates)
        square = precision_above(scale / reach) * (1.0 + 4.0 * PRECISION)
        precision = square * half * (candidates - half) / candidates
        # (one score against all others, whose events are what is left far out)
        limit = square * (candidates - 1.0) / candidates
        if self.law == "laplace":
            known = Laplace(scale / reach * (1.0 - 2.0 * UNIT)).tail_precision()
            precision = np.where(candidates > 1.0, np.asarray(known), 0.0)
            limit = np.zeros(self.shape)
        pair = TailPair.of(OpenPair.build(above, below, precision), limit)
        single = OpenPair.build(above, once, precision)
        fields = {field.name: getattr(pair, field.name) for field in dataclasses.fields(pair)}
        return MaximumPair(
            **fields,
            once_loss=single.attack_loss,
            once_p=single.attack_p,
            once_q=single.attack_q,
            once_uncertain=np.asarray(single.attack_uncertain),
            once_apart=np.asarray(single.attack_apart),
        )

    def _event(self, index: tuple[int, ...], likely: float) -> tuple[float, float]:
        """Both error rates of an event that is so likely half-way between data sets."""
        scale, candidates, reach = (a[index] for a in self._parts())
        shift = min(float(reach / scale), maximum_laws.FARTHEST)
        if candidates == 1.0:
            return 0.5, 0.5
        if self.law == "exponential":
            # (two scores: the difference of their noise has Laplace's law)
            ahead = np.log(2.0 * likely)
            alpha = 0.5 * np.exp(ahead - 0.5 * shift)
            less = -np.abs(ahead + 0.5 * shift)
            power = 0.5 * np.exp(ahead + 0.5 * shift)
            beta = 0.5 * np.exp(less) if ahead + 0.5 * shift > 0.0 else 1.0 - power
            room = 1.0 + 16.0 * UNIT * (1.0 + shift)
            return max(alpha * room, 1e-290), max(beta * room, 1e-290)
        group, candidates = max(float(candidates) // 2.0, 1.0), float(candidates)
        place = _place(self.law, int(group), int(candidates - group), likely)
        ahead = np.array([place - 0.5 * shift])
        found = maximum_laws.rates(self.law, group, candidates - group, ahead, shift)
        return float(found.alpha[0]), float(found.beta[0])

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Attacks with rarer events; none for Gumbel noise, whose family has its own member."""
        if np.all(np.asarray(self.num_candidates) == 1.0):
            return (_nothing(self.shape),)
        if self.law == "gumbel":
            return ()
        found = []
        for likely in _SKEWED:
            p, q = np.empty((*self.shape, 2)), np.empty((*self.shape, 2))
            for index in np.ndindex(self.shape):
                alpha, beta = self._event(index, likely)
                alpha, beta = (alpha, beta) if alpha + beta < 1.0 else (0.5, 0.5)
                p[index], q[index] = (1.0 - alpha, alpha), (beta, 1.0 - beta)
            found.append(FromPMFs(p, q))
        return tuple(found)


def _nothing(shape: tuple[int, ...]) -> RandomizedResponse:
    return RandomizedResponse(np.zeros(shape), np.full((), 2.0))


def _above(law: str, candidates: int, shift: float) -> Table:
    """A pair that dominates, of scores that move by so much against each other."""
    if law == "gaussian":
        return growth.table(growth.maximum_lines(candidates), shift)
    return growth.table(growth.laplace_lines(), shift, shift)


_SWEPT = ("scale", "num_candidates", "monotone")


def _flatten(mechanism: NoisyMaximum) -> tuple:
    key = jax.tree_util.GetAttrKey
    return tuple((key(name), getattr(mechanism, name)) for name in _SWEPT), mechanism.noise


def _unflatten(noise: str, children: Any) -> NoisyMaximum:
    return unchecked(NoisyMaximum, **dict(zip(_SWEPT, children, strict=True)), noise=noise)


jax.tree_util.register_pytree_with_keys(NoisyMaximum, _flatten, _unflatten)


def _place(noise: str, group: int, others: int, likely: float) -> float:
    """By how much a group has to be ahead for its event to be so likely, about."""
    low, high = -60.0, 60.0
    for _ in range(24):
        middle = 0.5 * (low + high)
        more = maximum_laws.log_wins(noise, float(group), float(others), np.array(middle))
        low, high = (low, middle) if more > np.log(likely) else (middle, high)
    return 0.5 * (low + high)


@pytree
@dataclass(frozen=True)
class _GumbelRange(ExponentialMechanism):
    """The exponential mechanism of an ε that was rounded up; not checked."""

    def known_curve(self) -> BoundedRangeCurve | None:
        """Between both ends of that rounding."""
        known = super().known_curve()
        return known and BoundedRangeCurve(known.low * (1.0 - 6.0 * UNIT), known.high)


@pytree
@dataclass(frozen=True)
class MaximumPair(TailPair):
    """Tables of a pair that dominates and of an attack, and what one use alone shows; not checked.

    Attributes:
        once_loss, once_p, once_q, once_uncertain, once_apart: as those of the attack, for one use:
            every point of its curve is reached on data sets of its own.
    """

    once_loss: Array
    once_p: Array
    once_q: Array
    once_uncertain: Array
    once_apart: Array

    trailing: ClassVar[dict[str, int]] = OpenPair.trailing | dict.fromkeys(
        ("once_loss", "once_p", "once_q"), 1
    )

    def bracketed(self) -> OpenPair:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Both tables of one use."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(OpenPair)}
        once = {
            "attack_loss": self.once_loss,
            "attack_p": self.once_p,
            "attack_q": self.once_q,
            "attack_uncertain": self.once_uncertain,
            "attack_apart": self.once_apart,
        }
        return OpenPair(**(fields | once))
