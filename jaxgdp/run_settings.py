"""``jaxgdp.run``: a run of DP-SGD from what people know of it: records, batches, epochs, sampler.

Rates and numbers of steps follow from these, and :attr:`Run.rounding` states how they were rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .mechanisms import Composition, Deterministic, FixedSize, RandomAllocation, Shuffled, dpsgd
from .mechanisms import compose as _compose
from .mechanisms.base import AccountedBy
from .numerics.shapes import Array, ArrayLike, Float
from .numerics.validation import broadcast, on_host, one_of, positive, whole
from .vocabulary import explain_arguments

UNKNOWN = ("poisson", "shuffled")  # the samplers of a run whose sampler is not known


class Counts(NamedTuple):
    """What follows from n, b and the length of a run, as arrays that broadcast.

    Attributes:
        batches: T = ⌈n/b⌉, batches of an epoch.
        rate: the chance of a record to be in a batch.
        steps: of the whole run.
        epochs: whole epochs that hold the steps.
    """

    batches: Float[Array, ...]
    rate: Float[Array, ...]
    steps: Float[Array, ...]
    epochs: Float[Array, ...]


def counts(
    dataset_size: ArrayLike,
    batch_size: ArrayLike,
    num_epochs: ArrayLike | None,
    num_steps: ArrayLike | None,
    loader: bool = False,
) -> Counts:
    """Batches, rate, steps and epochs; steps are rounded up, which counts no less than was spent.

    Args:
        dataset_size: n, checked.
        batch_size: b, checked, at most n.
        num_epochs: E > 0, or None where ``num_steps`` is given.
        num_steps: steps of the run, or None.
        loader: whether batches are drawn at rate 1/T, T of them an epoch, as Opacus does, in place
            of rate b/n, n/b of them an epoch.

    Example:
        >>> counts(45_000, 512, 30, None).steps, counts(45_000, 512, 30, None, loader=True).steps
        (np.float64(2637.0), np.float64(2640.0))
    """
    size, batch = np.asarray(dataset_size, float), np.asarray(batch_size, float)
    batches = np.ceil(size / batch)
    rate = 1.0 / batches if loader else batch / size
    if num_steps is not None:
        steps = np.asarray(num_steps, float)
    else:
        passes = np.asarray(num_epochs, float)
        steps = np.maximum(np.ceil(passes * batches if loader else passes * size / batch), 1.0)
    epochs = np.ceil(steps / batches) if num_epochs is None else np.ceil(np.asarray(num_epochs))
    return Counts(batches, rate, steps, epochs)


class Sampling(NamedTuple):
    """One sampler of a run.

    Attributes:
        condition: how a statement begins that supposes it.
        loader: whether its rate is 1/⌈n/b⌉, see :func:`counts`.
        make: (run, counts) → mechanism.
        rounding: (run, counts) → how numbers were rounded, in words; of one run.
    """

    condition: str
    loader: bool
    make: Callable[[Run, Counts], Composition]
    rounding: Callable[[Run, Counts], str]


@dataclass(frozen=True)
class Run(AccountedBy):
    """A run of DP-SGD, accepted wherever a mechanism is; build it with :func:`run`.

    Where the sampler is "unknown" there are two mechanisms: :func:`jaxgdp.measure` and its kin then
    answer for both, along a first axis in the order of :attr:`cases`.

    Attributes:
        noise_multiplier, dataset_size, batch_size, num_epochs, num_steps, sampler,
            records_per_user: as given.
    """

    noise_multiplier: Any
    dataset_size: Any
    batch_size: Any
    num_epochs: Any
    num_steps: Any
    sampler: str
    records_per_user: Any = 1

    def counts(self, sampler: str | None = None) -> Counts:
        """Batches, rate, steps and epochs by a sampler, by default the run's own."""
        loader = SAMPLINGS[sampler or self.sampler].loader
        return counts(self.dataset_size, self.batch_size, self.num_epochs, self.num_steps, loader)

    def if_drawn(self, sampler: str) -> Composition:
        """The mechanism of the run if its batches were drawn by that sampler.

        Args:
            sampler: a name that :func:`run` takes, but "unknown".

        Raises:
            ValueError: there is no such sampler, or it has no bracket for this noise.
        """
        one_of("sampler", sampler, tuple(SAMPLINGS))
        return SAMPLINGS[sampler].make(self, self.counts(sampler))

    @property
    def cases(self) -> dict[str, Composition]:
        """Sampler → mechanism: two where the sampler is "unknown", else one."""
        names = UNKNOWN if self.sampler == "unknown" else (self.sampler,)
        return {name: self.if_drawn(name) for name in names}

    @property
    def mechanism(self) -> Composition:  # type: ignore[override]
        """The one mechanism of the run.

        Raises:
            ValueError: the sampler is "unknown", so there are two.
        """
        if self.sampler == "unknown":
            raise ValueError(
                "sampler 'unknown' stands for two mechanisms, Poisson and shuffled: jaxgdp.measure"
                " and jaxgdp.report answer for both; elsewhere give .if_drawn('poisson') or"
                " .if_drawn('shuffled')"
            )
        return self.if_drawn(self.sampler)

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape of all arguments; () for one run."""
        mine = {name: getattr(self, name) for name in FIELDS if name != "sampler"}
        return broadcast(
            **{name: np.asarray(v, float) for name, v in mine.items() if v is not None}
        )

    def given(self) -> dict[str, Any]:
        """The arguments of :func:`run` that were given, ready for JSON."""
        kept = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        if np.all(np.asarray(kept["records_per_user"]) == 1.0):
            del kept["records_per_user"]
        return {name: _plain(value) for name, value in kept.items()}

    @property
    def rounding(self) -> str:
        """How rate and steps follow from the arguments and were rounded, in words.

        Example:
            >>> print(run(0.9, 45_000, 512, num_epochs=30, sampler="opacus").rounding)
            Opacus: rate 1/len(loader) = 1/88, 30 epochs of 88 steps are 2,640 steps
        """
        if self.shape:
            return "steps of every run are rounded up to whole numbers"
        names = UNKNOWN if self.sampler == "unknown" else (self.sampler,)
        return "; ".join(SAMPLINGS[name].rounding(self, self.counts(name)) for name in names)


FIELDS = (
    "noise_multiplier", "dataset_size", "batch_size", "num_epochs", "num_steps", "sampler",
    "records_per_user",
)  # fmt: skip


def _plain(value: Any) -> Any:
    """Numbers as JSON has them, whole ones without a point."""
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return [_plain(each) for each in np.asarray(value, float)]
    number = float(value)
    return int(number) if number == int(number) else number


@explain_arguments
def run(
    noise_multiplier: ArrayLike,
    dataset_size: ArrayLike,
    batch_size: ArrayLike,
    num_epochs: ArrayLike | None = None,
    num_steps: ArrayLike | None = None,
    sampler: str = "poisson",
    records_per_user: ArrayLike = 1,
) -> Run:
    """A run of DP-SGD from records, batches and epochs; taken wherever a mechanism is.

    Args:
        noise_multiplier: σ > 0, standard deviation of the noise over the clipping norm.
        dataset_size: n, records, a whole number ≥ 1.
        batch_size: b, (expected) records in a batch, a whole number from 1 to n.
        num_epochs: E > 0; give this or ``num_steps``.
        num_steps: steps of the whole run, a whole number ≥ 1.
        sampler: "poisson" (rate b/n, ⌈E·n/b⌉ steps); "opacus" (what ``make_private`` does to a
            loader without ``drop_last``: rate 1/⌈n/b⌉, E·⌈n/b⌉ steps); "shuffled" and
            "random_allocation" (each record in one of ⌈n/b⌉ batches of each of ⌈E⌉ epochs);
            "deterministic" (batches in a fixed order); "fixed_size" (batches of b records, anew at
            every step); or "unknown": Poisson and shuffled, both.
        records_per_user: the most records of one user, whom the numbers then protect as a whole.

    Returns:
        A :class:`Run`. Arrays broadcast to many runs.

    Raises:
        ValueError: an argument is out of range, a batch larger than the data, none or both of
            ``num_epochs`` and ``num_steps`` given, or an unknown sampler.

    Example:
        >>> import jaxgdp
        >>> mine = run(0.9, dataset_size=45_000, batch_size=512, num_epochs=30)
        >>> print(mine.rounding)
        rate 512/45,000 = 0.0113778, 30 epochs are 2,636.72 steps, counted as 2,637
        >>> round(jaxgdp.epsilon(mine, delta=1e-5).upper, 2)
        4.29
    """
    on_host("run", noise_multiplier, dataset_size, batch_size, num_epochs, num_steps)
    one_of("sampler", sampler, (*SAMPLINGS, "unknown"))
    if (num_epochs is None) == (num_steps is None):
        both = "none" if num_epochs is None else "both"
        raise ValueError(f"give one of num_epochs and num_steps, got {both}")
    size, batch = whole("dataset_size", dataset_size), whole("batch_size", batch_size)
    if np.any(batch > size):
        worst, most = (float(a[batch > size][0]) for a in np.broadcast_arrays(batch, size))
        raise ValueError(
            f"batch_size must be at most dataset_size {most:.0f}, got {worst:.0f}: check their"
            " order, run(noise_multiplier, dataset_size, batch_size, …)"
        )
    checked = {
        "noise_multiplier": positive("noise_multiplier", noise_multiplier),
        "dataset_size": size,
        "batch_size": batch,
        "num_epochs": None if num_epochs is None else positive("num_epochs", num_epochs),
        "num_steps": None if num_steps is None else whole("num_steps", num_steps),
        "records_per_user": whole("records_per_user", records_per_user),
    }
    broadcast(**{name: value for name, value in checked.items() if value is not None})
    plain = {name: v if v is None or np.ndim(v) else float(v) for name, v in checked.items()}
    found = Run(**plain, sampler=sampler)
    _ = found.cases  # (what a sampler has no brackets for is refused at once)
    return found


def _drawn(run: Run, at: Counts) -> Composition:
    """Poisson sampling."""
    return dpsgd(run.noise_multiplier, at.rate, at.steps, records_per_user=run.records_per_user)


def _one_record(make: Callable[[Run, Counts], Composition]) -> Callable[[Run, Counts], Composition]:
    """A maker of mechanisms that protect one record, which refuses more by name."""

    def checked(run: Run, at: Counts) -> Composition:
        if not np.all(np.asarray(run.records_per_user) == 1.0):
            raise ValueError(
                "records_per_user must be 1 for samplers other than 'poisson' and 'opacus': no"
                " bracket for several records of a user is known there"
            )
        return make(run, at)

    return checked


@_one_record
def _shuffled(run: Run, at: Counts) -> Composition:
    return _compose([Shuffled(run.noise_multiplier, at.batches, at.epochs)])


@_one_record
def _allocated(run: Run, at: Counts) -> Composition:
    return _compose([(RandomAllocation(run.noise_multiplier, at.batches), at.epochs)])


@_one_record
def _in_order(run: Run, at: Counts) -> Composition:
    return _compose([Deterministic(run.noise_multiplier, at.epochs)])


@_one_record
def _fixed_size(run: Run, at: Counts) -> Composition:
    step = FixedSize(run.noise_multiplier, run.batch_size, run.dataset_size)
    return _compose([(step, at.steps)])


def _number(value: ArrayLike) -> str:
    """1,000s apart: "2,637", "2,636.72"."""
    number = float(np.asarray(value))
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


def _epochs(value: ArrayLike) -> str:
    text = f"{float(np.asarray(value)):,g}"
    return f"{text} epoch{'' if text == '1' else 's'}"


def _rate_rounding(run: Run, at: Counts) -> str:
    rate = f"rate {_number(run.batch_size)}/{_number(run.dataset_size)} = {float(at.rate):.6g}"
    if run.num_epochs is None:
        return f"{rate}, {_number(at.steps)} steps as given"
    exact = run.num_epochs * run.dataset_size / run.batch_size
    if exact == at.steps:
        return f"{rate}, {_epochs(run.num_epochs)} are {_number(exact)} steps"
    counted = f"counted as {_number(at.steps)}"
    return f"{rate}, {_epochs(run.num_epochs)} are {_number(exact)} steps, {counted}"


def _loader_rounding(run: Run, at: Counts) -> str:
    batches, steps = _number(at.batches), _number(at.steps)
    rate = f"Opacus: rate 1/len(loader) = 1/{batches}"
    if run.num_epochs is None:
        return f"{rate}, {steps} steps as given"
    return f"{rate}, {_epochs(run.num_epochs)} of {batches} steps are {steps} steps"


def _epochs_rounding(run: Run, at: Counts) -> str:
    batches = f"{_number(at.batches)} batches an epoch"
    if run.num_epochs is None:
        return f"{batches}, {_number(at.steps)} steps, counted as {_epochs(at.epochs)}"
    if run.num_epochs != at.epochs:
        return f"{batches}, {_epochs(run.num_epochs)}, counted as {_epochs(at.epochs)}"
    return f"{batches}, {_epochs(at.epochs)}"


def _shuffled_rounding(run: Run, at: Counts) -> str:
    return f"shuffled: {_epochs_rounding(run, at)}"


SAMPLINGS: dict[str, Sampling] = {
    "poisson": Sampling("If batches were Poisson samples", False, _drawn, _rate_rounding),
    "opacus": Sampling("If batches were Poisson samples", True, _drawn, _loader_rounding),
    "shuffled": Sampling("If the data were shuffled", False, _shuffled, _shuffled_rounding),
    "random_allocation": Sampling(
        "If each record was in one random batch an epoch", False, _allocated, _epochs_rounding
    ),
    "deterministic": Sampling(
        "If batches were in a fixed order", False, _in_order, _epochs_rounding
    ),
    "fixed_size": Sampling(
        "If batches were drawn anew with a fixed size", False, _fixed_size, _rate_rounding
    ),
}
