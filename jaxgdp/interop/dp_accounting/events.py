"""Events of dp_accounting as mechanisms: what each one costs, or why nobody should say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...mechanisms import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSize,
    FromPMFs,
    Gaussian,
    GaussianMixture,
    Laplace,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    SubsampledGaussian,
    SubsampledLaplace,
    TruncatedPoisson,
)
from ...mechanisms.base import Mechanism
from ...mechanisms.fixed_size import ReplacedInFixedSize
from ...mechanisms.runs import MOST_RUNS
from ...mechanisms.truncated_poisson import ZeroedInTruncated
from ...numerics.validation import ROUNDED_RATE
from ..spent import Spent, Use, best_of, one_of_many, permute_and_flip
from .discrete import (
    approximate_pair,
    discrete_gaussian_mu,
    discrete_laplace_pair,
    sampled_pair,
    special_response_pair,
)

ADD_OR_REMOVE, REPLACE, SPECIAL = "ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"
RELATIONS = (ADD_OR_REMOVE, REPLACE, SPECIAL)


class UnsupportedEvent(ValueError):
    """An event that cannot be accounted for soundly.

    Attributes:
        event: the part of the event tree that is to blame.
        bad_value: whether a value in it is out of range, rather than its kind unsupported.
    """

    def __init__(self, event: Any, message: str, bad_value: bool = False):
        super().__init__(message)
        self.event, self.bad_value = event, bad_value


def must_be(*relations: str) -> str:
    """Which relations an event is accounted for, in dp_accounting's own words."""
    return "neighboring_relation must be " + " or ".join(f"`{each}`" for each in relations)


class _Place(NamedTuple):
    event: Any
    relation: str

    @property
    def name(self) -> str:
        return type(self.event).__name__

    def number(self, field: str, valid: str, test: Callable[[float], bool]) -> float:
        """A field of the event as a number in range."""
        value = getattr(self.event, field)
        try:
            number = float(value)
            good = not isinstance(value, bool) and bool(test(number))
        except (TypeError, ValueError):
            good, number = False, math.nan
        if not good:
            raise UnsupportedEvent(
                self.event, f"{field} of {self.name} must be {valid}, got {value!r}", bad_value=True
            )
        return number

    def at_least_zero(self, field: str) -> float:
        return self.number(field, "a number >= 0", lambda a: a >= 0.0)

    def rate(self, field: str) -> float:
        """A rate; a sum of rates may exceed 1 by its rounding, and is 1 then."""
        found = self.number(field, "in [0, 1]", lambda a: 0.0 <= a <= 1.0 + ROUNDED_RATE)
        return min(found, 1.0)

    def whole(self, field: str, least: int = 0) -> int:
        return int(
            self.number(
                field, f"a whole number >= {least}", lambda a: a >= least and a == math.floor(a)
            )
        )

    def only(self, *relations: str) -> None:
        if self.relation not in relations:
            raise self.unsupported(f"has no sound pair: {must_be(*relations)}, got {self.relation}")

    def unsupported(self, why: str) -> UnsupportedEvent:
        return UnsupportedEvent(self.event, f"{self.name} {why}")

    @property
    def reach(self) -> float:
        """How far one neighbour moves a sum of values of norm one: replacing counts twice."""
        return 2.0 if self.relation == REPLACE else 1.0


_NOTHING = Spent()
_EVERYTHING = Spent(non_private=True)


def _use(kind: Callable[..., Mechanism], *fields: Any) -> Spent:
    use: Use = (kind, fields)
    return Spent({use: 1})


def _gaussian(at: _Place) -> Spent:
    sigma = at.at_least_zero("noise_multiplier")
    return _gaussian_noise(sigma / at.reach)


def _gaussian_noise(sigma: float) -> Spent:
    if sigma == math.inf:
        return _NOTHING
    return _use(Gaussian, sigma) if sigma > 0.0 else _EVERYTHING


def _laplace(at: _Place) -> Spent:
    scale = at.at_least_zero("noise_multiplier") / at.reach
    if scale == math.inf:
        return _NOTHING
    return _use(Laplace, scale) if scale > 0.0 else _EVERYTHING


def _discrete_laplace(at: _Place) -> Spent:
    a = at.at_least_zero("noise_parameter")
    moves = int(at.reach) * at.whole("sensitivity")
    if moves == 0:
        return _NOTHING
    if a == 0.0 or a == math.inf:
        # no noise at all, or a law that does not exist
        return _EVERYTHING
    return (
        _use(DiscreteLaplace, 1.0 / a)
        if moves == 1
        else _use(FromPMFs, *discrete_laplace_pair(a, moves))
    )


def _discrete_gaussian(at: _Place) -> Spent:
    sigma = at.at_least_zero("sigma")
    # integers: the squared norm of a move is a whole number
    squared = math.floor((at.reach * at.at_least_zero("sensitivity")) ** 2 * (1.0 + 1e-12))
    if squared == 0:
        return _NOTHING
    if sigma == 0.0:
        return _EVERYTHING
    moves = math.isqrt(squared)
    if squared == 1 or (at.event.dimension == 1 and moves <= 16):
        return _use(DiscreteGaussian, sigma, float(moves))
    # a move of k is k moves of one, and moves along several axes compose (Dong et al. 2022,
    # Theorems 2.14 and 3.2)
    size = moves if at.event.dimension == 1 else math.sqrt(squared)
    return _gaussian_noise(1.0 / (size * discrete_gaussian_mu(sigma)))


def _randomized_response(at: _Place) -> Spent:
    p, k = at.rate("noise_parameter"), at.whole("num_buckets", least=1)
    at.only(REPLACE, SPECIAL)
    if k == 1 or p == 1.0:
        return _NOTHING
    if p == 0.0:
        return _EVERYTHING
    if at.relation == REPLACE:
        return _use(RandomizedResponse, math.log1p(k * (1.0 - p) / p), float(k))
    return _use(FromPMFs, *special_response_pair(p, k))


def _epsilon_delta(at: _Place) -> Spent:
    epsilon, delta = at.at_least_zero("epsilon"), at.rate("delta")
    if delta == 1.0 or epsilon == math.inf:
        return _EVERYTHING
    if delta == 0.0:
        return _use(PureDP, epsilon) if epsilon > 0.0 else _NOTHING
    return _use(ApproximateDP, epsilon, delta)


def _approximate(at: _Place) -> Spent:
    """With probability 1 − δ as private as the inner event, else anything may happen."""
    delta = at.rate("delta")
    inner = spending(at.event.event, at.relation)
    if delta == 1.0:
        return _EVERYTHING
    return inner.plus(_use(ApproximateDP, 0.0, delta)) if delta > 0.0 else inner


def _exponential(at: _Place) -> Spent:
    epsilon = at.at_least_zero("epsilon")
    if epsilon == math.inf:
        return _EVERYTHING
    return _use(ExponentialMechanism, epsilon) if epsilon > 0.0 else _NOTHING


def _permute_and_flip(at: _Place) -> Spent:
    # not of ε-bounded range (see ExponentialMechanism); the pair of Laplace noise of scale 1/ε
    epsilon = at.at_least_zero("epsilon")
    if epsilon == math.inf:
        return _EVERYTHING
    return _use(permute_and_flip, epsilon) if epsilon > 0.0 else _NOTHING


def _zcdp(at: _Place) -> Spent:
    rho, xi = at.at_least_zero("rho"), at.at_least_zero("xi")
    return _EVERYTHING if math.inf in (rho, xi) else Spent(rho=rho, xi=xi)


def _tree(at: _Place) -> Spent:
    at.only(SPECIAL)
    steps = np.atleast_1d(at.event.step_counts)
    if steps.size == 0 or np.any(steps < 1) or np.any(steps != np.floor(steps)):
        message = (
            f"step_counts of {at.name} must be whole numbers >= 1, got {at.event.step_counts!r}"
        )
        raise UnsupportedEvent(at.event, message, bad_value=True)
    # a record adds to every complete node above its leaf
    nodes = int(np.max(steps)).bit_length()
    return _gaussian_noise(at.at_least_zero("noise_multiplier") / math.sqrt(nodes))


def _mixture(at: _Place) -> Spent:
    at.only(ADD_OR_REMOVE, SPECIAL)
    moves, probs = (
        np.asarray(getattr(at.event, name), float) for name in ("sensitivities", "sampling_probs")
    )
    fine = (
        moves.ndim == 1
        and moves.shape == probs.shape
        and np.all(np.isfinite(moves))
        and np.all(probs >= 0.0)
    )
    if not fine or abs(math.fsum(probs) - 1.0) > 1e-9:
        message = (
            f"sensitivities and sampling_probs of {at.name} must be equally many, the latter"
            f" summing to 1, got {at.event}"
        )
        raise UnsupportedEvent(at.event, message, bad_value=True)
    sigma = at.at_least_zero("standard_deviation")
    real = (moves != 0.0) & (probs > 0.0)
    sizes = np.unique(np.abs(moves[real]))
    if sizes.size == 0 or sigma == math.inf:
        return _NOTHING
    if sigma == 0.0:
        return _EVERYTHING
    if np.unique(np.sign(moves[real])).size > 1:
        raise at.unsupported(f"is supported with sensitivities of one sign, got {list(moves)}")
    if sizes.size == 1:
        return _sampled_gaussian(sigma / sizes[0], min(math.fsum(probs[real]), 1.0))
    weights = [math.fsum(probs[real & (np.abs(moves) == size)]) for size in sizes]
    rest = math.fsum(probs[~real])
    return _use(GaussianMixture, sigma, (0.0, *sizes.tolist()), (rest, *weights))


def _without_replacement(at: _Place) -> Spent:
    """Batches of a fixed size, each drawn anew: of a record that counts as zero, or replaced."""
    at.only(REPLACE, SPECIAL)
    size, batch = at.whole("source_dataset_size"), at.whole("sample_size")
    if batch > size:
        message = f"sample_size of {at.name} must be at most {size}, got {batch}"
        raise UnsupportedEvent(at.event, message, bad_value=True)
    inner = at.event.event
    if type(inner).__name__ != "GaussianDpEvent":
        raise at.unsupported(f"is supported for a GaussianDpEvent inside, got {inner}")
    sigma = _Place(inner, at.relation).at_least_zero("noise_multiplier")
    if batch == 0 or sigma == math.inf:
        return _NOTHING
    if sigma == 0.0:
        return _EVERYTHING
    if batch == size:
        return _gaussian_noise(sigma / at.reach)
    kind = ReplacedInFixedSize if at.relation == REPLACE else FixedSize
    try:
        return _checked(_use(kind, sigma, float(batch), float(size)))
    except ValueError as error:
        raise at.unsupported(f"cannot be accounted for: {error}") from None


def _checked(spent: Spent) -> Spent:
    """The same, once its mechanism has been built."""
    spent.mechanism()
    return spent


def _sampled_gaussian(sigma: float, p: float) -> Spent:
    if p == 0.0 or sigma == math.inf:
        return _NOTHING
    if sigma == 0.0:
        return _EVERYTHING
    return _gaussian_noise(sigma) if p == 1.0 else _use(SubsampledGaussian, sigma, p)


def _truncated(at: _Place) -> Spent:
    """Poisson sampling whose batches are cut to at most B records: ``jaxgdp.TruncatedPoisson``.

    For special-record neighbours a record counts as zero, and takes its place in the batch."""
    at.only(ADD_OR_REMOVE, SPECIAL)
    p, sigma = at.rate("sampling_probability"), at.at_least_zero("noise_multiplier")
    size, most = at.whole("dataset_size"), at.whole("truncated_batch_size")
    if p == 0.0 or most == 0 or size == 0:
        return _NOTHING
    inner = _sampled_gaussian(sigma, p)
    if at.relation == ADD_OR_REMOVE:
        # the larger of two neighbours may have one record more than the event says
        if most > size or inner.non_private or inner.nothing:
            return inner
        return _use(TruncatedPoisson, sigma, p, float(most), size + 1.0)
    if most >= size or inner.non_private or inner.nothing:
        return inner
    return _use(ZeroedInTruncated, sigma, p, float(most), float(size))


def _allocation(at: _Place) -> Spent:
    """Each record in k of t steps, chosen at random, of a Gaussian mechanism; or in one of t steps
    of one use of anything else.
    """
    at.only(ADD_OR_REMOVE, SPECIAL)
    steps, selected = at.whole("num_steps", least=1), at.whole("num_selected", least=1)
    if selected > steps:
        message = f"num_selected of {at.name} must be at most num_steps = {steps}, got {selected}"
        raise UnsupportedEvent(at.event, message, bad_value=True)
    inner = at.event.event
    if type(inner).__name__ != "GaussianDpEvent":
        one = spending(inner, at.relation)
        single = len(one.uses) == 1 and set(one.uses.values()) == {1} and not (one.rho or one.xi)
        if one.nothing or one.non_private:
            return one
        if selected > 1 or not single:
            raise at.unsupported(
                "is supported for a GaussianDpEvent inside, or for num_selected = 1 and one use of"
                f" one mechanism, got {selected} of {inner}"
            )
        return _checked(_use(one_of_many, next(iter(one.uses)), float(steps)))
    sigma = _Place(inner, at.relation).at_least_zero("noise_multiplier")
    if sigma == 0.0:
        return _EVERYTHING
    if sigma == math.inf:
        return _NOTHING
    return _use(RandomAllocation, sigma, float(steps), float(selected))


def _selected(at: _Place) -> Spent:
    """The best of a random number of runs: ``jaxgdp.Selected`` with the law of that number."""
    one = spending(at.event.event, at.relation)
    shape = at.number("shape", "in (-1, 100], or inf", lambda a: -1.0 < a <= 100.0 or a == math.inf)
    if shape == math.inf:  # (a Poisson number may be 0)
        mean = at.number("mean", "in [0, 1e12]", lambda a: 0.0 <= a <= MOST_RUNS)
    else:
        mean = at.number("mean", "in [1, 1e12]", lambda a: 1.0 <= a <= MOST_RUNS)
    if mean == 0.0 or one.nothing:
        return _NOTHING
    if one.non_private:
        return _EVERYTHING
    if mean == 1.0 and shape != math.inf:
        return one
    return _use(best_of, tuple(one.uses.items()), one.rho, one.xi, mean, shape)


def _mentions(event: Any, name: str) -> bool:
    """Whether an event of that name is anywhere in the tree."""
    inner = [getattr(event, "event", None), *getattr(event, "events", ())]
    return type(event).__name__ == name or any(_mentions(e, name) for e in inner if e is not None)


def _poisson(at: _Place) -> Spent:
    p = at.rate("sampling_probability")
    inner = at.event.event
    if type(inner).__name__ == at.name:
        # a sample of a sample; the inner rate is checked where it is used
        q = _Place(inner, at.relation).rate("sampling_probability")
        return _poisson(_Place(type(inner)(p * q, inner.event), at.relation))
    whole = spending(inner, at.relation)
    if p == 1.0:
        return whole
    if p == 0.0 or whole.nothing:
        return _NOTHING
    if whole.non_private:
        return _EVERYTHING
    if at.relation == REPLACE:
        raise at.unsupported(
            f"with a sampling_probability below 1 has no sound pair for {REPLACE}:"
            f" {must_be(ADD_OR_REMOVE, SPECIAL)}"
        )
    kinds = {kind for kind, _ in whole.uses}
    zcdp = whole.rho > 0.0 or whole.xi > 0.0
    if kinds == {Gaussian} and not zcdp:
        # the same sample each time: several Gaussians are one
        precision = sum(times / fields[0] ** 2 for (_, fields), times in whole.uses.items())
        return _sampled_gaussian(1.0 / math.sqrt(precision), p)
    if len(whole.uses) == 1 and not zcdp:
        (((kind, fields), times),) = whole.uses.items()
        if times == 1 and kind is Laplace:
            return _use(SubsampledLaplace, fields[0], p)
        if times == 1 and kind is DiscreteLaplace:
            return _use(FromPMFs, *sampled_pair(*discrete_laplace_pair(1.0 / fields[0], 1), p))
        if times == 1 and kind is FromPMFs and not _mentions(inner, "RandomizedResponseDpEvent"):
            return _use(FromPMFs, *sampled_pair(*fields, p))
        if (
            times == 1
            and kind in (PureDP, ApproximateDP, ExponentialMechanism, permute_and_flip)
            and at.relation == ADD_OR_REMOVE
        ):
            return _use(FromPMFs, *sampled_pair(*approximate_pair(*fields), p))
        if kind is DiscreteGaussian:
            mu = math.sqrt(times) * fields[1] * discrete_gaussian_mu(fields[0])
            return _sampled_gaussian(1.0 / mu, p)
    raise at.unsupported(
        "is supported for Gaussian noise, however composed, or one use of another mechanism, got"
        f" {inner}"
    )


def _nothing(at: _Place) -> Spent:
    return _NOTHING


def _everything(at: _Place) -> Spent:
    return _EVERYTHING


def _self_composed(at: _Place) -> Spent:
    return _NOTHING.plus(spending(at.event.event, at.relation), at.whole("count"))


def _composed(at: _Place) -> Spent:
    total = _NOTHING
    for event in at.event.events:
        total = total.plus(spending(event, at.relation))
    return total


# newer versions of dp_accounting have more events than older ones: all go by name
_RULES = {
    "NoOpDpEvent": _nothing,
    "NonPrivateDpEvent": _everything,
    "SelfComposedDpEvent": _self_composed,
    "ComposedDpEvent": _composed,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "RandomizedResponseDpEvent": _randomized_response,
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "ApproximateDpEvent": _approximate,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
    "ZCDpEvent": _zcdp,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "MixtureOfGaussiansDpEvent": _mixture,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "PoissonSampledDpEvent": _poisson,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "RandomAllocationDpEvent": _allocation,
    "RepeatAndSelectDpEvent": _selected,
}
SUPPORTED = tuple(sorted(_RULES))


def relation_name(neighboring_relation: Any) -> str:
    """The name of a dp_accounting ``NeighboringRelation``.

    Raises:
        ValueError: it is none of those known.
    """
    name = getattr(neighboring_relation, "name", neighboring_relation)
    if name not in RELATIONS:
        raise ValueError(
            f"neighboring_relation must be one of {', '.join(RELATIONS)}, got"
            f" {neighboring_relation!r}"
        )
    return name


def spending(event: Any, relation: str) -> Spent:
    """The mechanisms that an event tree spends.

    Raises:
        UnsupportedEvent: names the part of the tree, and what is wrong with it.
    """
    name = type(event).__name__
    from dp_accounting import dp_event

    if name not in _RULES or getattr(dp_event, name, None) is not type(event):
        raise UnsupportedEvent(event, f"{name} is not supported: known are {', '.join(SUPPORTED)}")
    return _RULES[name](_Place(event, relation))


def from_event(event: Any, neighboring_relation: Any = "ADD_OR_REMOVE_ONE") -> Composition:
    """The composition that an event of dp_accounting stands for, every count respected.

    The pairs of the composition are those of the neighbouring relation, so ask it with the default
    adjacency, both orders. Noise multipliers are relative to the norm of one record's value: under
    REPLACE_ONE a record is taken away and another one added, and noise counts for half. Where a
    mechanism is known only by a guarantee (zCDP, (ε, δ)) its pair is the worst one that allows.

    Args:
        event: a ``DpEvent``.
        neighboring_relation: a ``NeighboringRelation`` or its name.

    Raises:
        ValueError: an unknown relation; an event that is unsupported for it, or has a value out of
            range (named); one that spends nothing (``NoOpDpEvent``) or everything
            (``NonPrivateDpEvent``): no composition stands for those.

    Example:
        >>> import dp_accounting
        >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
        >>> from_event(dp_accounting.SelfComposedDpEvent(step, 1000)).counts
        (array(1000.),)
    """
    return spending(event, relation_name(neighboring_relation)).mechanism()
