"""Composition: several mechanisms, each used a number of times on the same data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.core import Tracer

from ..numerics import namespace as xp
from ..numerics.pytree import pytree
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, known, whole
from ..vocabulary import explain_arguments
from .base import AccountedBy, Mechanism, known_mechanisms
from .subsampled_gaussian import SubsampledGaussian

# mechanisms of one kind side by side and their uses, one entry a kind
Groups: TypeAlias = tuple[tuple[Mechanism, Array], ...]

# uses that stand for any number: many small steps are smooth, one large one is not
_COLLAPSED = 256.0
_MOST_RECORDS = 256  # of one user: each is a term of every mass
_FAR_FROM_PRIVATE, _OFTEN_SAMPLED = 0.05, 0.3  # σ and p that look swapped


def _traced(*values: Any) -> bool:
    return any(isinstance(value, Tracer) for value in values)


@pytree
@dataclass(frozen=True)
class Composition:
    """Mechanisms with their numbers of uses; build it with :func:`compose` or :func:`dpsgd`.

    Attributes:
        mechanisms: tuple of mechanisms.
        counts: tuple of arrays, uses of each mechanism (its *self-composition*), broadcast against
            its parameters.
    """

    mechanisms: tuple
    counts: tuple

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape over all parameters and counts."""
        shapes = [m.shape for m in self.mechanisms] + [np.shape(c) for c in self.counts]
        return np.broadcast_shapes(*shapes)

    def stacked(self) -> Groups:
        """Mechanisms of one kind side by side: ((mechanism, counts), …), shape + (number,).

        Array-valued fields keep their trailing axes behind that; one kind is one class with equal
        trailing axes. Equal mechanisms are one, used as often as all of them.

        Method: docs/method/notation.md#domination
        """
        distinct: dict[tuple, tuple] = {}
        for mechanism, count in zip(self.mechanisms, self.counts, strict=True):
            mechanism = mechanism.canonical()
            leaves = jax.tree.leaves(mechanism)
            if _traced(*leaves):
                key: Any = len(distinct)  # nobody knows yet what it equals
            else:
                leaves = [np.asarray(leaf) for leaf in leaves]
                values = tuple((leaf.shape, leaf.tobytes()) for leaf in leaves)
                key = type(mechanism), jax.tree.structure(mechanism), values
            before = distinct[key][1] if key in distinct else 0.0
            distinct[key] = mechanism, before + (count if _traced(count) else np.asarray(count))
        kinds: dict[tuple, list] = {}
        for mechanism, count in distinct.values():
            for part, uses in mechanism.gathered(count):
                inner = tuple(inner for _, inner in part.parameter_shapes().values())
                kinds.setdefault((type(part), inner), []).append((part, uses))
        shape = self.shape

        def side_by_side(inner: tuple[int, ...], *values: Any):
            numpy = xp if _traced(*values) else np
            return numpy.stack(
                [numpy.broadcast_to(v, shape + inner) for v in values], axis=len(shape)
            )

        groups = []
        for (_, inner), items in kinds.items():
            columns = zip(*(jax.tree.leaves(mechanism) for mechanism, _ in items), strict=True)
            leaves = [
                side_by_side(kept, *column) for kept, column in zip(inner, columns, strict=True)
            ]
            mechanism = jax.tree.unflatten(jax.tree.structure(items[0][0]), leaves)
            groups.append((mechanism, side_by_side((), *(count for _, count in items))))
        return tuple(groups)

    def lower_bound_mechanisms(self) -> tuple[Composition, ...]:
        """Compositions that are certainly no more revealing, from the members that each part
        declares, to be accounted for on their own.

        None where some part declares none: then the pair that dominates that part is part of the
        attack as well, and lattices serve both."""
        own = [part.lower_bound_mechanisms() for part in self.mechanisms]
        number = max(map(len, own)) if all(own) else 0
        return tuple(
            Composition(tuple(mine[min(i, len(mine) - 1)] for mine in own), self.counts)
            for i in range(number)
        )

    def replace_one(self) -> Composition:
        """The composition under replacing one record: every part's own pair for that.

        Raises:
            ValueError: a part has no sound one; names it.

        Method: docs/method/adjacency.md#relations
        """
        return Composition(tuple(part.replace_one() for part in self.mechanisms), self.counts)


def collapse_gaussians(groups: Groups) -> Groups:
    """Groups (see :meth:`Composition.stacked`) in which Gaussians without subsampling are used a
    fixed number of times, with the noise that this takes: the same pair.

    The accountant asks for this once, on all settings. ``stacked`` itself leaves the uses as they
    are stated, because bounds in closed form (√Σ T/σ²) and the number of steps follow from those.
    """
    with np.errstate(over="ignore", under="ignore"):
        return tuple(mechanism.collapse_gaussians(count, _COLLAPSED) for mechanism, count in groups)


def _advice(value: Any) -> str:
    """How something that another library describes becomes a mechanism."""
    library = type(value).__module__.partition(".")[0]
    if library == "dp_accounting":
        return (
            ": jaxgdp.interop.dp_accounting.from_event makes a mechanism of an event, from_pld of a"
            " privacy loss distribution"
        )
    return ""


def compose(mechanisms: Iterable) -> Composition:
    """Compose mechanisms adaptively on one data set, each with a number of uses.

    Args:
        mechanisms: iterable of mechanisms or (mechanism, count) pairs; counts are whole numbers ≥ 1
            of any shape that broadcasts. A ``Composition`` inside counts as its parts.

    Raises:
        ValueError: nothing to compose, a part that is no mechanism, a count that is no whole number
            ≥ 1, or shapes that do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> compose([(jaxgdp.Gaussian(2.0), 10), (jaxgdp.Laplace(scale=5.0), [100, 200])]).shape
        (2,)

    Method: docs/method/notation.md#domination
    """
    parts, counts = [], []
    try:
        items = list(mechanisms)
    except TypeError:
        raise ValueError(
            f"mechanisms must be an iterable of mechanisms or pairs, got {mechanisms!r}"
        ) from None
    for position, item in enumerate(items):
        mechanism, count = item if isinstance(item, (tuple, list)) and len(item) == 2 else (item, 1)
        count = whole(f"count of mechanism {position}", count)
        if isinstance(mechanism, AccountedBy):
            mechanism = mechanism.mechanism
        if isinstance(mechanism, Composition):
            for inner, times in zip(mechanism.mechanisms, mechanism.counts, strict=True):
                parts.append(inner)
                counts.append(times * count)
        elif isinstance(mechanism, Mechanism):
            parts.append(mechanism)
            counts.append(count)
        else:
            raise ValueError(
                f"mechanism {position} must be one of {', '.join(known_mechanisms())} or a"
                f" Composition, got {mechanism!r}{_advice(mechanism)}"
            )
    if not parts:
        raise ValueError("mechanisms must hold at least one mechanism, got none")
    named = {f"mechanism {i}": np.empty(m.shape) for i, m in enumerate(parts)}
    broadcast(**named, **{f"count of mechanism {i}": c for i, c in enumerate(counts)})
    return Composition(tuple(parts), tuple(counts))


def _warn_of_swapped(sigma: Any, p: Any, steps: Any) -> None:
    """Warn where σ is as small as rates usually are, and p as large as noise usually is.

    One step with σ ≤ 0.05 has losses of 200 nats and more: nobody trains with that. Exchanged with
    a p of at least 0.3, the two would be a usual setting.
    """
    if not all(isinstance(each, np.ndarray | np.generic | float) for each in (sigma, p, steps)):
        return
    sigma, p, steps = np.broadcast_arrays(sigma, p, steps)
    swapped = (sigma <= _FAR_FROM_PRIVATE) & (p >= _OFTEN_SAMPLED) & (steps > 1.0)
    if np.any(swapped):
        warnings.warn(
            f"noise_multiplier {sigma[swapped][0]:g} and sampling_prob {p[swapped][0]:g} look"
            " swapped: such a run has next to no privacy. dpsgd takes (noise_multiplier,"
            " sampling_prob, num_steps); check their order",
            UserWarning,
            stacklevel=4,
        )


@explain_arguments
def dpsgd(
    noise_multiplier: ArrayLike,
    sampling_prob: ArrayLike,
    num_steps: ArrayLike,
    records_per_user: ArrayLike = 1,
) -> Composition:
    """DP-SGD with Poisson sampling: T steps of the subsampled Gaussian (Abadi et al. 2016).

    With ``records_per_user`` = k the neighbours differ in one user with up to k records, each of
    which enters every batch on its own: T steps of ``GaussianMixture`` with the shifts 0, …, k and
    binomial weights (Ganesh 2024), which is tight.

    Args:
        noise_multiplier: σ > 0, any shape.
        sampling_prob: p in (0, 1], the probability that a record enters a batch; any shape.
        num_steps: T, a whole number ≥ 1; any shape.
        records_per_user: k, most records of one user, a whole number from 1 to 256; any shape. All
            four broadcast together.

    Returns:
        A :class:`Composition` of broadcast shape.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Warns:
        UserWarning: σ and p look swapped (σ ≤ 0.05 and p ≥ 0.3 in more than one step).

    Example:
        >>> dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000).shape
        ()
    """
    steps = whole("num_steps", num_steps)
    step = SubsampledGaussian(noise_multiplier, sampling_prob)
    broadcast(
        noise_multiplier=step.noise_multiplier, sampling_prob=step.sampling_prob, num_steps=steps
    )
    _warn_of_swapped(step.noise_multiplier, step.sampling_prob, steps)
    return Composition((_of_users(step, records_per_user, steps),), (steps,))


def _of_users(step: SubsampledGaussian, records_per_user: ArrayLike, steps: Array) -> Mechanism:
    """The step for users with so many records."""
    records = checked(
        "records_per_user",
        whole("records_per_user", records_per_user),
        f"a whole number from 1 to {_MOST_RECORDS}",
        lambda a: a <= _MOST_RECORDS,
    )
    if not _traced(records) and np.all(np.asarray(records) == 1.0):
        return step
    known(step, why="the weights of a user's records are made from them",
          sampling_prob=step.sampling_prob, records_per_user=records)  # fmt: skip
    broadcast(records_per_user=records, sampling_prob=step.sampling_prob, num_steps=steps,
              noise_multiplier=step.noise_multiplier)  # fmt: skip
    if np.all(np.asarray(step.sampling_prob) == 1.0):
        return SubsampledGaussian(step.noise_multiplier / np.asarray(records), step.sampling_prob)
    from .groups import poisson_group

    return poisson_group(step.noise_multiplier, step.sampling_prob, records)


def as_composition(mechanism: Mechanism | Composition | AccountedBy) -> Composition:
    """A mechanism used once, or a composition as it is.

    Raises:
        ValueError: not a mechanism.
    """
    return mechanism if isinstance(mechanism, Composition) else compose([mechanism])
