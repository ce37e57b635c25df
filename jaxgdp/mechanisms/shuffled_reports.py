"""Shuffled reports of local randomisers: every user randomises, and nobody sees who said what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from ..numerics.errors import UNIT
from ..numerics.normal import square_above
from ..numerics.pytree import put, unchecked
from ..numerics.recent import Recent
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import broadcast, checked, known, whole_up_to
from ..pairs.peak import largest_mu
from ..pairs.table import NOTHING, Table
from .base import Mechanism
from .bracketed_pair import BracketedPair, OpenPair, TailPair
from .report_tables import Added, Clones, Event, counts_table, dominating_table, sums_table, swapped

MOST_USERS = 10**9
_TABLES = Recent(most=2**26)
_ROOM = 1e-9  # by which a pair of given laws may exceed e^ε and a sum may miss one
_WORDS = "'any', 'binary', 'k-ary', such as '16-ary', or two laws of a report"


@dataclass(frozen=True)
class ShuffledReports(Mechanism):
    """Reports of n users, each randomised on its own by ε₀ and shuffled before anybody sees them.

    Every user's value goes through the same ε₀-DP local randomiser, and only the multiset of all
    reports is published. The relation is that of one user's value being another one.

    From above, a report of another user is a clone: with probability 1/(e^{ε₀} + 1) each it is what
    the user in question would say more, and what it would say less, whatever its own value
    ("stronger clones", Feldman, McMillan & Talwar 2023; proven on the method page for reports
    that do not depend on earlier ones). For k answers the other k − 2 of them cover, too. From
    below, the user's and all others' values are chosen, and the counts of two answers are known
    exactly.

    Args:
        epsilon: ε₀ of the local randomiser, in [1e-6, 20]; any shape.
        num_users: n, a whole number from 1 to 10⁹; broadcasts.
        randomizer: "any" ε₀-DP randomiser; "binary" randomised response; "k-ary" randomised
            response, with any number of answers, or with a given one as in "16-ary"; or two laws of
            a report, for two values of the user, of an ε₀-DP randomiser.

    Raises:
        ValueError: an argument is out of range, laws differ by more than e^{ε₀}, or shapes do not
            broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> reports = ShuffledReports(epsilon=4.0, num_users=100_000)
        >>> found = jaxgdp.epsilon(reports, delta=1e-6)
        >>> bool(0.11 < found.lower < found.upper < 0.12)
        True

    Method: docs/method/shuffled-reports.md#clones
    """

    epsilon: Parameter
    num_users: Parameter
    randomizer: Any = "any"

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side allows for the worst randomiser and tells how many reports are clones; the"
        " lower side is an attack on one randomiser with chosen values of all users"
    )
    undifferentiable: ClassVar[str] = "its tables are made from known numbers"
    relation: ClassVar[str] = "one user's value being another one"
    beside_noise: ClassVar[str] = "shuffled reports of users"
    sampling: ClassVar[str] = "none: every user reports, and the reports are shuffled"
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "ShuffledReports(1, 1000 users)": lambda: ShuffledReports(1.0, 1000)
    }

    def __post_init__(self) -> None:
        known(self, why="its tables are made from them", epsilon=self.epsilon,
              num_users=self.num_users)  # fmt: skip
        valid = "in [1e-6, 20]"
        epsilon = checked("epsilon", self.epsilon, valid, lambda a: (a >= 1e-6) & (a <= 20.0))
        users = whole_up_to("num_users", self.num_users, MOST_USERS)
        broadcast(epsilon=epsilon, num_users=users)
        randomizer = _randomizer(self.randomizer, float(np.min(epsilon)))
        put(self, epsilon=epsilon, num_users=users, randomizer=randomizer)

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """The randomiser is not swept."""
        swept = {"epsilon": self.epsilon, "num_users": self.num_users}
        return {name: (np.shape(value), ()) for name, value in swept.items()}

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """Nothing: the part is these reports."""
        return []

    def replaces_record(self) -> bool:
        """A user's value is replaced."""
        return True

    def replace_one(self) -> ShuffledReports:
        """Itself: a user's value is replaced."""
        return self

    def _tables(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Tables from above, and those of every attack from below, by index."""
        shape = self.shape
        epsilon, users = np.broadcast_arrays(self.epsilon, self.num_users)
        above, below = np.empty(shape, object), [np.empty(shape, object) for _ in range(4)]
        for index in np.ndindex(shape):
            key = float(epsilon[index]), int(users[index]), self.randomizer
            made = _TABLES.get(key, lambda key=key: _made(*key))
            above[index] = made[0]
            for k, table in enumerate(made[1]):
                below[k][index] = table
        return above, below

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """A pair that dominates, and the first of the attacks."""
        above, below = self._tables()
        pair = OpenPair.build(above, below[0], _precision(above))
        return [(TailPair.of(pair, np.zeros(self.shape)), count)]  # (losses are bounded)

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """The other attacks: other values of the other users."""
        above, below = self._tables()
        precision = _precision(above)
        return tuple(BracketedPair.build(table, table, precision) for table in below[1:])


def _flatten(mechanism: ShuffledReports) -> tuple:
    key = jax.tree_util.GetAttrKey
    swept = ((key(name), getattr(mechanism, name)) for name in ("epsilon", "num_users"))
    return tuple(swept), mechanism.randomizer


def _unflatten(randomizer: Any, children: Any) -> ShuffledReports:
    epsilon, users = children
    return unchecked(ShuffledReports, epsilon=epsilon, num_users=users, randomizer=randomizer)


jax.tree_util.register_pytree_with_keys(ShuffledReports, _flatten, _unflatten)


def answers(randomizer: str) -> int | None:
    """k of "k-ary" with a number; None for any other word.

    Example:
        >>> answers("16-ary"), answers("binary"), answers("any")
        (16, 2, None)
    """
    if randomizer == "binary":
        return 2
    number, _, rest = randomizer.partition("-")
    return int(number) if rest == "ary" and number.isdecimal() else None


def _randomizer(value: ArrayLike | str, epsilon: float) -> Any:
    """The word, or two laws as tuples."""
    if isinstance(value, str):
        if value in ("any", "k-ary") or 2 <= (answers(value) or 0) <= MOST_USERS:
            return value
        raise ValueError(f"randomizer must be {_WORDS}, got {value!r}")
    try:
        laws = np.asarray(value, float)
    except (TypeError, ValueError):
        laws = np.empty(0)
    if laws.ndim != 2 or len(laws) != 2 or not np.all((laws >= 0.0) & (laws <= 1.0)):
        raise ValueError(f"randomizer must be {_WORDS}, got {value!r}")
    if np.any(np.abs(np.sum(laws, axis=1) - 1.0) > _ROOM):
        sums = np.sum(laws, axis=1)
        raise ValueError(f"randomizer must hold laws that sum to 1, got sums {sums.tolist()}")
    most = np.exp(epsilon) * (1.0 + _ROOM)
    if np.any(laws[0] > most * laws[1]) or np.any(laws[1] > most * laws[0]):
        raise ValueError(
            f"randomizer must hold laws within a factor of e^epsilon = {np.exp(epsilon):.6g} of"
            " each other: raise epsilon to that of the randomiser"
        )
    first, second = (np.ravel(law).tolist() for law in np.vsplit(laws, 2))
    return tuple(first), tuple(second)


def _precision(tables: np.ndarray) -> np.ndarray:
    """μ² of one use at every rate."""
    found = np.empty(tables.shape)
    for index in np.ndindex(tables.shape):
        table: Any = tables[index]
        if len(table.loss) == 1:  # (a single loss, 0)
            found[index] = 0.0
            continue
        mu = np.asarray(largest_mu(np.log(table.p), np.log(table.p) + table.loss))
        found[index] = square_above(mu * (1.0 + 4.0 * table.error) + 4.0 * table.error)
    return found


def _made(epsilon: float, users: int, randomizer: Any) -> tuple[Table, list[Table]]:
    """A table from above and four from below."""
    ratio = float(np.exp(epsilon))
    # (a larger ε₀ dominates; no table from above may end before ε₀ where the logarithm is rounded)
    most = ratio * (1.0 + 8.0 * UNIT)
    if not isinstance(randomizer, str):
        return _of_laws(most, users, np.array(randomizer))
    number = answers(randomizer)
    clones = Clones(most, 1.0 / (most + 1.0))
    if number is not None and number > 2:
        each = 1.0 / (most + number - 1.0)
        clones = Clones(most, each, (number - 2.0) * each, (number - 2.0) * each)
    above = dominating_table(users, clones)
    low, high = 1.0 / (ratio + 1.0), ratio / (ratio + 1.0)
    below = []
    if number is None or number == 2:
        one = counts_table(users, Event(low, high), Event(high, low))
        below += [one, swapped(one), *_halves(users, low, high)]
    if number != 2 and users > 1:
        each = 1.0 / (ratio + (number or 3) - 1.0)
        rest = ((number or 3) - 2.0) * each
        first = Added(ratio * each, rest, each)
        below.insert(0, sums_table(users - 1, each, first, Added(each, rest, ratio * each)))
    below = (below or [NOTHING])[:4]
    return above, below + [below[0]] * (4 - len(below))


def _halves(users: int, low: float, high: float) -> list[Table]:
    """Binary reports where half of the others, or all but one of half, have each value.

    Two users of both values report 0, 1 or 2 events; one user is left over where n is even.
    """
    pairs, left_over = divmod(users - 1, 2)
    if pairs == 0:
        return []
    first, second = Added(low, high, 0.0), Added(high, low, 0.0)
    if left_over:
        same, both = low * high, low * low + high * high
        first, second = Added(same, both, same), Added(high * high, 2.0 * same, low * low)
    return [sums_table(pairs, low * high, first, second)]


def _of_laws(ratio: float, users: int, laws: Array) -> tuple[Table, list[Table]]:
    """Two laws of a report: what exceeds in each is a and b, the rest covers itself."""
    if np.array_equal(laws[0], laws[1]):
        return NOTHING, [NOTHING] * 4
    laws = laws / np.sum(laws, axis=1, keepdims=True)
    some = np.all(laws > 0.0, axis=0)
    ratio = max(ratio, float(np.max(np.exp(np.abs(np.log(laws[0][some] / laws[1][some]))))))
    # (rounded up by what dividing and adding may have lost, which counts where laws are close)
    gap = 0.5 * float(np.sum(np.abs(laws[0] - laws[1]))) + 8.0 * len(laws[0]) * UNIT
    each = min(gap * (1.0 + _ROOM) / (ratio - 1.0), 1.0 / (ratio + 1.0))
    rest = max(1.0 - (ratio + 1.0) * each, 0.0)
    above = dominating_table(users, Clones(ratio, each, rest / ratio, rest))
    more = laws[1] > laws[0]
    if gap < 1e-12:  # (too close for an attack whose probabilities are rounded)
        return above, [NOTHING] * 4
    first, second = (Event(float(sum(law[more])), float(sum(law[~more]))) for law in laws)
    one = counts_table(users, first, second)
    other = swapped(counts_table(users, Event(*second[::-1]), Event(*first[::-1])))
    return above, [one, other, one, other]
