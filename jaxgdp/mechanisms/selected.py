"""Private selection: the best of several runs of a mechanism is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from ..numerics.errors import SELECTION
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import pytree, unchecked
from ..numerics.recent import Recent
from ..numerics.shapes import Array
from ..numerics.validation import broadcast, known
from ..pairs.table import Table
from . import profile_table, selection_tables
from .base import Mechanism
from .bracketed_pair import BracketedPair, OpenPair, TailPair
from .certified_curve import CertifiedCurve
from .composition import Composition, as_composition, compose
from .gaussian import Gaussian
from .runs import BY_NAME, Geometric, Runs

_LAWS = ", ".join(f"jaxgdp.runs.{name}" for name in BY_NAME)
# made from a certified curve: a second or so each
_TABLES, _RUNS, _TOGETHER = Recent(most=2**27), Recent(most=2**25), Recent(most=2**24)


@pytree
@dataclass(frozen=True)
class Selected(Mechanism):
    """The best of K runs of a mechanism by any score, and nothing else, is published.

    This is what a search over hyperparameters does: K configurations, each drawn at random (or the
    same one K times), are run on the data, and the one with the best score is published. The score
    may depend on the data only through what the run publishes or accounts for. K is drawn from the
    given law, whatever the data, and is not told.

    Both sides are made from the certified curve of one run, in both orders, for any mechanism or
    composition:

    - The upper side is Σ c_j·δ(ε + κ_j), a bound for every score that follows from the law of K and
      the largest TPR of one run at each FPR; or 1 − G(1 − δ(ε − e₁)), or the composition of all
      runs where their number is fixed: the least of these.
    - The lower side is a score that is carried out: an order of the outputs which brings outputs of
      large and of small likelihood ratios next to each other, so that the former gain most. Several
      such orders are tried.

    Args:
        mechanism: one run: a mechanism or a composition.
        runs: the law of K, of ``jaxgdp.runs``; its shape broadcasts with that of the mechanism.

    Raises:
        ValueError: no mechanism, no law of ``jaxgdp.runs``, or shapes that do not broadcast (before
            tracing).

    Example:
        >>> import jaxgdp
        >>> search = Selected(jaxgdp.Gaussian(2.0), jaxgdp.runs.Geometric(mean=10.0))
        >>> found = jaxgdp.epsilon(search, delta=1e-5)
        >>> bool(2.99 < found.lower), bool(found.upper < 3.147)  # one run: 1.993
        (True, True)
    """

    mechanism: Any
    runs: Any

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, a bound for every score, is not known to be reached by one; the lower side"
        " is a score that is carried out"
    )
    undifferentiable: ClassVar[str] = "its tables are made from the certified curve of one run"
    relation: ClassVar[str] = "those of one run"
    beside_noise: ClassVar[str] = "the choice of one run"
    sampling: ClassVar[str] = "as in each run; the best run alone is published"
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "Selected(Gaussian(2), Geometric(10))": lambda: Selected(Gaussian(2.0), Geometric(10.0))
    }

    def __post_init__(self) -> None:
        composition = as_composition(self.mechanism)
        if not isinstance(self.runs, Runs):
            raise ValueError(f"runs must be one of {_LAWS}, got {self.runs!r}")
        known(self, why="its tables are made from a certified curve", **_named(composition))
        broadcast(mechanism=np.empty(composition.shape), runs=np.empty(self.runs.batch_shape))
        object.__setattr__(self, "mechanism", composition)

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """By leaf: the shape that broadcasts, and the trailing shape."""
        shapes = {}
        for i, part in enumerate(self.mechanism.mechanisms):
            for name, both in part.parameter_shapes().items():
                shapes[f"mechanism[{i}].{name}"] = both
        for i, count in enumerate(self.mechanism.counts):
            shapes[f"count[{i}]"] = np.shape(count), ()
        for i, leaf in enumerate(jax.tree.leaves(self.runs)):
            shapes[f"runs[{i}]"] = np.shape(leaf), ()
        return shapes

    def describe_sampling(self) -> str:
        """How records get into one run, in words for reports."""
        inner = "; ".join(part.describe_sampling() for part in self.mechanism.mechanisms)
        return f"in each run: {inner}"

    def _all_single(self) -> bool:
        return all(self.runs.at(i).single() for i in np.ndindex(self.runs.batch_shape))

    def canonical(self) -> Mechanism:
        """The tables; this mechanism itself where every K is 1."""
        return self if self._all_single() else self._pair()

    def gathered(self, count: Array) -> list[tuple[Mechanism, Array]]:
        """One run, where every K is 1."""
        found = []
        for part, uses in zip(self.mechanism.mechanisms, self.mechanism.counts, strict=True):
            found += list(part.canonical().gathered(np.asarray(uses) * count))
        return found

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """The same selection under scores that show most at other δ, and in the other order."""
        if self._all_single():
            return ()
        return self._attacks()

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """One run."""
        return [(self.mechanism, 1)]

    def replaces_record(self) -> bool:
        """As in each run."""
        return all(part.replaces_record() for part in self.mechanism.mechanisms)

    def replace_one(self) -> Selected:
        """The selection from runs under replacing a record."""
        return unchecked(Selected, mechanism=self.mechanism.replace_one(), runs=self.runs)

    def _tables(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Tables from above, and those of every attack from below, by index."""
        shape = self.shape
        above = np.empty(shape, object)
        below = [np.empty(shape, object) for _ in _ATTACKS]
        for index in np.ndindex(shape):
            one = _element(self.mechanism, shape, index)
            runs = _runs_at(self.runs, shape, index)
            made = _TABLES.get(_key(one, runs), lambda one=one, runs=runs: _made(one, runs))
            above[index] = made[0]
            for k, table in enumerate(made[1]):
                below[k][index] = table
        return above, below

    def _pair(self) -> TailPair:
        above, below = self._tables()
        found = OpenPair.build(above, below[0], _precision(above))
        return TailPair.of(found, self._limit())

    def _limit(self) -> np.ndarray:
        """What the tail of one run tends to: δ of the best is at most Σ c_j·δ(ε + κ_j) of one run,
        and at least a share of it, and a shift of ε does not change the limit.
        """
        limit = np.full(self.shape, np.nan)
        for index in np.ndindex(self.shape):
            if np.isinf(_runs_at(self.runs, self.shape, index).most()):
                one = _element(self.mechanism, self.shape, index)
                parts = zip(one.mechanisms, one.counts, strict=True)
                limit[index] = sum(float(_tail_limit(part)) * float(uses) for part, uses in parts)
        return limit

    def _attacks(self) -> tuple[Mechanism, ...]:
        _, below = self._tables()
        return tuple(BracketedPair.build(table, table, _precision(table)) for table in below)


def _tail_limit(part: Mechanism) -> Array:
    found: Any = 0.0
    for pair, uses in part.canonical().gathered(np.ones(())):
        found = found + np.asarray(pair.limit_precision()) * np.asarray(uses)
    return found


def _precision(tables: np.ndarray) -> np.ndarray:
    """μ² of one use at every rate: ∞ where there is mass at infinity."""
    found = np.empty(tables.shape)
    for index in np.ndindex(tables.shape):
        table: Any = tables[index]
        infinite = table.p_minus > 0.0 or table.q_plus > 0.0
        largest = float(np.max(np.abs(table.loss))) * (1.0 + SELECTION)
        found[index] = np.inf if infinite else square_above(pure_dp_mu(np.asarray(largest)))
    return found


# an order, and a δ next to which a score shows most
_ATTACKS = tuple((order, level) for level in selection_tables.LEVELS for order in (0, 1))


def _named(composition: Composition) -> dict[str, Any]:
    return {f"mechanism {i}": leaf for i, leaf in enumerate(jax.tree.leaves(composition))}


def _element(composition: Composition, shape: tuple[int, ...], index: tuple[int, ...]):
    """The composition at one index of a shape that it broadcasts to."""
    taken = lambda a, kept: np.broadcast_to(np.asarray(a), shape + kept)[index]
    parts = []
    for part in composition.mechanisms:
        leaves, structure = jax.tree.flatten(part)
        inner = [kept for _, kept in part.parameter_shapes().values()]
        parts.append(jax.tree.unflatten(structure, list(map(taken, leaves, inner))))
    counts = tuple(taken(count, ()) for count in composition.counts)
    return Composition(tuple(parts), counts)


def _runs_at(runs: Runs, shape: tuple[int, ...], index: tuple[int, ...]) -> Runs:
    """The law at one index of a shape that it broadcasts to."""
    leaves, structure = jax.tree.flatten(runs)
    return jax.tree.unflatten(structure, [np.broadcast_to(a, shape)[index] for a in leaves])


def _key(*parts: Composition | Runs) -> tuple:
    leaves, structure = jax.tree.flatten(parts)
    return str(structure), tuple(
        (np.shape(leaf), np.asarray(leaf, float).tobytes()) for leaf in leaves
    )


def _made(composition: Composition, runs: Runs) -> tuple[Table, list[Table]]:
    """A table from above and one from below for each attack."""
    curve = CertifiedCurve(composition)
    profile, cells = _RUNS.get(
        _key(composition),
        lambda: (profile_table.follow(curve.deltas), selection_tables.achieved_cells(curve)),
    )
    together = None
    if np.isfinite(runs.most()):
        # (nothing but a bound from above is asked of all runs)
        every = compose([(composition, runs.most())])
        together = _TOGETHER.get(
            _key(every), lambda: profile_table.follow(CertifiedCurve(every).deltas)
        )
    above = selection_tables.dominating_table(profile, runs, together)
    below = [selection_tables.attack_table(cells, runs, level, order) for order, level in _ATTACKS]
    return above, below
