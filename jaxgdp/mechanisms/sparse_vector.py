"""Sparse vector: which of many answers are the first above a threshold is published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from scipy.special import gammaln, logsumexp

from ..numerics.errors import INDEX_LAW, UNIT
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import put, pytree, unchecked
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import (
    broadcast,
    checked,
    finite,
    known,
    positive,
    truth,
    whole,
    whole_up_to,
)
from ..pairs.table import NOTHING, Table
from . import growth, sparse_laws
from .base import EVERY_RECORD, Mechanism
from .bracketed_pair import BracketedPair, OpenPair, TailPair
from .laplace_bound import LaplaceAbove, with_attacks

MOST_QUERIES = 10**9
NOISES = ("laplace", "gaussian")
_MOST_LISTED, _MOST_LOG = 10**6, 600.0  # answers told, and log of things published, listed


@dataclass(frozen=True)
class SparseVector(Mechanism):
    """Answers are compared with a noisy threshold one after the other, up to the c-th above it.

    The noise of the threshold is drawn once, that of each of up to n answers anew, and all that is
    published is which answers were found above (Dwork et al. 2009; Lyu, Su & Li 2017, Algorithm 1).
    Every answer moves by at most 1 between neighbouring data sets, in any direction; k = 2, or k =
    1 where all move in the same direction (``monotone``), as counts do. Queries may depend on what
    was published before.

    - Laplace noise, of scales b₁ of the threshold and b₂ of an answer: ε-DP with ε = 1/b₁ + k·c/b₂
      whatever n is, and more: the pair of Laplace noise of scale 1/ε dominates.
    - Normal noise, of standard deviations σ₁ and σ₂: each of the N things that may be published
      grows as under a Gaussian of μ = √(1/σ₁² + k²c/σ₂²), and all answers together show no more
      than a Gaussian; the curve of the fastest growth that these allow.

    The lower side is the exact law of what is published on a few streams of answers. A tight curve
    is an open problem (arXiv 2407.20068): the sides are far apart where c is large.

    Args:
        threshold_scale: b₁ or σ₁, in units of what one answer moves by; > 0, any shape.
        query_scale: b₂ or σ₂, in the same units; > 0.
        num_queries: n, the most queries, a whole number from 1 to 10⁹.
        cutoff: c, after how many answers above the threshold it ends, a whole number ≥ 1.
        noise: "laplace" or "gaussian".
        monotone: whether all answers move in the same direction, True or False.
        resampled: whether the noise of the threshold is drawn anew after every answer above it: c
            times the sparse vector of c = 1. Arrays broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> search = SparseVector(threshold_scale=2.0, query_scale=4.0, num_queries=100)
        >>> found = jaxgdp.epsilon(search, delta=1e-9)  # 1/2 + 2/4
        >>> bool(0.5 < found.lower < found.upper <= 1.0)
        True

    Method: docs/method/noisy-maximum.md#sparse-noise
    """

    threshold_scale: Parameter
    query_scale: Parameter
    num_queries: Parameter
    cutoff: Any = 1
    noise: str = "laplace"
    monotone: Any = False
    resampled: Any = False

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side allows for any queries; the lower side is an attack with given ones, and no"
        " tight curve is known"
    )
    undifferentiable: ClassVar[str] = "its tables are made from known numbers"
    relation: ClassVar[str] = "answers that move by at most 1 each, in either order"
    beside_noise: ClassVar[str] = "that only the answers above a threshold are published"
    sampling: ClassVar[str] = EVERY_RECORD
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "SparseVector(2, 4, 20 queries)": lambda: SparseVector(2.0, 4.0, 20),
        "SparseVector(2, 4, 20 queries, gaussian)": lambda: SparseVector(
            2.0, 4.0, 20, noise="gaussian"
        ),
    }

    def __post_init__(self) -> None:
        swept = {name: getattr(self, name) for name in _SWEPT}
        known(self, why="its tables are made from its parameters", **swept)
        if self.noise not in NOISES:
            words = " or ".join(repr(word) for word in NOISES)
            raise ValueError(f"noise must be {words}, got {self.noise!r}")
        found = {
            "threshold_scale": positive("threshold_scale", self.threshold_scale),
            "query_scale": positive("query_scale", self.query_scale),
            "num_queries": whole_up_to("num_queries", self.num_queries, MOST_QUERIES),
            "cutoff": whole("cutoff", self.cutoff),
            "monotone": truth("monotone", self.monotone),
            "resampled": truth("resampled", self.resampled),
        }
        broadcast(**found)
        put(self, **found)

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """The kind of noise is not swept."""
        return {name: (np.shape(getattr(self, name)), ()) for name in _SWEPT}

    def replace_one(self) -> SparseVector:
        """Itself, for answers that move so much when a record is replaced."""
        return self

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """Nothing: the part is the choice of answers."""
        return []

    def probabilities(self, answers: ArrayLike, threshold: ArrayLike = 0.0) -> Array:
        """The exact law of the first answer that is found above the threshold.

        Args:
            answers: shape (n,), finite numbers in units of what one moves by, in their order.
            threshold: one number.

        Returns:
            n + 1 probabilities to about ten digits, the last one that none is found above; the
            scales are one number each.

        Raises:
            ValueError: an argument is not as said.

        Example:
            >>> search = SparseVector(threshold_scale=2.0, query_scale=4.0, num_queries=2)
            >>> law = search.probabilities([0.0, 3.0])
            >>> [round(float(p), 6) for p in law]
            [0.5, 0.328332, 0.171668]
        """
        values = finite("answers", answers)
        if values.ndim != 1 or np.ndim(self.threshold_scale) or np.ndim(self.query_scale):
            raise ValueError(
                "answers must be one row of numbers, and both scales one number each, got shapes"
                f" {values.shape}, {np.shape(self.threshold_scale)}, {np.shape(self.query_scale)}"
            )
        level = checked("threshold", threshold, "one finite number", np.isfinite)
        if level.ndim:
            raise ValueError(f"threshold must be one finite number, got shape {level.shape}")
        scales = float(self.threshold_scale), float(self.query_scale)
        return sparse_laws.index_law(self.noise, *scales, values - level)

    def _settings(self) -> list[_Setting]:
        """Scalars of every index."""
        columns = [np.broadcast_to(np.asarray(getattr(self, n)), self.shape) for n in _SWEPT]
        return [_Setting(self.noise, *(c[i] for c in columns)) for i in np.ndindex(self.shape)]

    def _rounds(self) -> Array:
        rounds = np.minimum(self.cutoff, self.num_queries)
        return np.broadcast_to(np.where(self.resampled, rounds, 1.0), self.shape)

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The pair of any queries, and the first of the attacks."""
        shape, settings = self.shape, self._settings()
        # (an attack on fewer rounds is one of the others)
        below = [s.attacks()[0] if s.attacked == s.rounds else NOTHING for s in settings]
        below = _tables(shape, below)
        uses = count * self._rounds()
        if self.noise == "laplace":
            epsilon = np.array([setting.epsilon for setting in settings]).reshape(shape)
            return [(with_attacks(LaplaceAbove, (1.0 - 4.0 * UNIT) / epsilon, below), uses)]
        above = _tables(shape, [setting.table() for setting in settings])
        together = np.array([setting.together for setting in settings]).reshape(shape)
        pair = OpenPair.build(above, below, square_above(together))
        return [(TailPair.of(pair, np.full(shape, np.nan)), uses)]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Attacks by other streams of answers."""
        settings = self._settings()
        found = [setting.attacks() for setting in settings]
        attacked = np.array([float(s.attacked) for s in settings]).reshape(self.shape)
        some = (1, 2) if all(s.attacked == s.rounds for s in settings) else (0, 1, 2)
        members = []
        for tables in (_tables(self.shape, [each[k] for each in found]) for k in some):
            largest = np.array([np.max(np.abs(table.loss)) for table in tables.flat])
            # (losses are known up to twice the error of a mass)
            precision = square_above(pure_dp_mu(largest + 4.0 * INDEX_LAW)).reshape(self.shape)
            pair = BracketedPair.build(tables, tables, precision)
            members.append(_Rounds(pair, attacked))
        return tuple(members)


_SWEPT = ("threshold_scale", "query_scale", "num_queries", "cutoff", "monotone", "resampled")


def _flatten(mechanism: SparseVector) -> tuple:
    key = jax.tree_util.GetAttrKey
    return tuple((key(name), getattr(mechanism, name)) for name in _SWEPT), mechanism.noise


def _unflatten(noise: str, children: Any) -> SparseVector:
    return unchecked(SparseVector, **dict(zip(_SWEPT, children, strict=True)), noise=noise)


jax.tree_util.register_pytree_with_keys(SparseVector, _flatten, _unflatten)


def _tables(shape: tuple[int, ...], tables: list[Table]) -> np.ndarray:
    found = np.empty(len(tables), object)
    found[:] = tables
    return found.reshape(shape)


@pytree
@dataclass(frozen=True)
class _Rounds(Mechanism):
    """An attack on each of several rounds of one use; not checked."""

    attack: Mechanism
    rounds: Array

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """By leaf."""
        inner = {f"attack.{name}": both for name, both in self.attack.parameter_shapes().items()}
        return inner | {"rounds": (np.shape(self.rounds), ())}

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The attack, as often as there are rounds."""
        return list(self.attack.gathered(count * self.rounds))


class _Setting:
    """One sparse vector, in scalars; a round of it where thresholds are resampled.

    Attributes:
        told: how many answers above the threshold are published.
        attacked: how many rounds an attack has, each with an answer beside the one that ends it.
        moves: k, by how much an answer moves against the threshold, at most.
    """

    def __init__(self, noise: str, first: Any, second: Any, asked: Any, *rest: Any) -> None:
        cutoff, monotone, resampled = rest
        self.noise, self.asked, self.monotone = noise, int(asked), bool(monotone)
        self.threshold, self.query = float(first), float(second)
        self.rounds = int(min(cutoff, asked)) if resampled else 1
        self.attacked = min(self.rounds, max(self.asked // 2, 1))
        self.told = 1 if resampled else int(min(cutoff, asked))
        self.moves = 1.0 if self.monotone else 2.0

    @property
    def epsilon(self) -> float:
        """1/b₁ + k·c/b₂."""
        return 1.0 / self.threshold + self.moves * self.told / self.query

    @property
    def separate(self) -> float:
        """√(1/σ₁² + k²c/σ₂²), at most which each of the things that are published grows."""
        return float(np.hypot(1.0 / self.threshold, self.moves * np.sqrt(self.told) / self.query))

    @property
    def together(self) -> float:
        """√(v·Σ⁻¹·v), Σ = σ₂²·I + σ₁²·11ᵀ, of the answers' moves v, at most which all together
        grow.
        """
        n, one, two = float(self.asked), self.threshold**2, self.query**2
        if self.monotone:
            moved = min(n, (two + n * one) / (2.0 * one))
            return float(np.sqrt(moved / two * (1.0 - one * moved / (two + n * one))))
        odd = float(self.asked % 2)
        return float(np.sqrt((n - odd * one / (two + n * one)) / two))

    def log_outcomes(self) -> float:
        """log of how many things may be published, all but one."""
        j = np.arange(self.told + 1.0)
        n = float(self.asked)
        terms = gammaln(n + 1.0) - gammaln(j + 1.0) - gammaln(n - j + 1.0)
        return float(np.asarray(logsumexp(terms[1:]))) * (1.0 + 1e-9)

    def table(self) -> Table:
        """The pair that dominates with normal noise."""
        lines = growth.normal_lines().scaled(self.together)
        outcomes = self.log_outcomes() if self.told <= _MOST_LISTED else np.inf
        if outcomes < _MOST_LOG:
            own = growth.normal_lines(max(float(np.exp(outcomes)), 1.0)).scaled(self.separate)
            lines = growth.joined(lines, own)
        return growth.table(lines, 1.0 + 8.0 * UNIT)

    def attacks(self) -> tuple[Table, ...]:
        """Three attacks on one round."""
        # (an answer that is above for certain ends a round, so that the next one is like it)
        asked = self.asked if self.attacked == 1 else self.asked // self.attacked - 1
        largest = self.epsilon if self.noise == "laplace" else 3.0 * self.separate
        return sparse_laws.attacks(
            self.noise, self.threshold, self.query, asked, self.told, self.monotone, largest
        )
