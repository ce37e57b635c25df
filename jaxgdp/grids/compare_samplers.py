"""``jaxgdp.compare_samplers``: one training with its batches drawn in different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from .. import options
from ..adjacency import Adjacency
from ..deprecation import keywords_after, renamed_arguments
from ..measure import measure
from ..mechanisms import Composition
from ..numerics.optional import Dataset
from ..numerics.shapes import Array, ArrayLike, Float
from ..numerics.validation import broadcast, on_host, positive, whole, whole_up_to
from ..quantities import registry
from ..quantities.table import documented
from ..run_settings import counts
from ..samplers import REGISTRY, Setting, mechanism
from ..samplers import named as sampler_named
from ..tradeoff import dominating
from . import dataset
from .arguments import asked_at, axis, single_numbers
from .implementations import WAYS
from .samplers_text import DIMENSIONS, answers, summary_text

if TYPE_CHECKING:
    from os import PathLike

QUANTITIES = ("epsilon", "mu", "advantage")


@renamed_arguments(epochs="num_epochs", d="approximation")
@keywords_after(
    5, "samplers", "as_implemented", "rtol", "fpr_floor", "adjacency", "delta", "epsilon", "fpr",
    "approximation", "prior", "truncated_batch_size", "progress",
)  # fmt: skip
@documented
def compare_samplers(
    noise_multiplier: ArrayLike,
    dataset_size: int,
    batch_size: ArrayLike,
    num_epochs: ArrayLike = 1,
    quantities: str | tuple[str, ...] | list[str] = QUANTITIES,
    *,
    samplers: str | Iterable[str] | None = None,
    as_implemented: bool = False,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    truncated_batch_size: ArrayLike | None = None,
    progress: Callable[[int], None] | None = None,
    **at: float,
) -> Dataset:
    """Certified privacy of one training by every batch sampler, side by side.

    An epoch has T = ⌈n/b⌉ batches; the last one of an epoch in order may be smaller, which changes
    no bracket. Poisson sampling draws ⌈E·n/b⌉ batches in all with a rate of b/n, as
    :func:`jaxgdp.run` does. Neighbouring data sets
    are those of the zero-out relation, which for Poisson sampling is the same as adding or removing
    a record.

    All mechanisms are made before anything is measured. If no samplers are named, those that have
    no bracket for one of the settings are left out, with the reason in the attribute ``left_out``.

    Args:
        noise_multiplier: σ > 0, standard deviation of the noise over the clipping norm; scalar or
            one-dimensional.
        dataset_size: n, records, a whole number ≥ 1.
        batch_size: b, (expected) records in a batch, whole numbers from 1 to n; scalar or
            one-dimensional.
        num_epochs: E, whole numbers ≥ 1; scalar or one-dimensional.
        quantities: any of those of :func:`jaxgdp.measure`.
        samplers: names, such as ("poisson", "shuffled"); default those of
            ``jaxgdp.samplers.REGISTRY`` but for "truncated_poisson" and "fixed_size", whose
            brackets are wide and take minutes.
        as_implemented: whether further rows follow, of Poisson batches whose steps are coded in
            other ways (:func:`jaxgdp.compare_implementations`): "drawn_size_zeroed" and
            "drawn_size_added" divide the noisy sum by the number of records drawn, where a record
            is zeroed, or added or removed; "noise_on_drawn_mean" adds noise to a mean over them;
            "micro_batch_means" clips means. No guarantee is known for the last two: their lower
            side is an attack.
        rtol: requested relative width of every bracket. That of "shuffled" does not close: its
            exact privacy is an open question.
        {fpr_floor, adjacency}
        truncated_batch_size: B, the most records of a batch of "truncated_poisson", whole numbers
            from 1 to n; a number, or one for each batch size.
        progress: called with the number of settings finished, as they finish.
        **at: arguments of the quantities, single numbers (``delta``, ``epsilon``, ``fpr``, …), as
            for :func:`jaxgdp.measure`.

    Returns:
        ``xarray.Dataset`` with dimensions sampler, noise_multiplier, batch_size, num_epochs and,
        for each quantity q, the variables ``q`` (the side to report), ``q_lower``, ``q_upper`` and
        ``status_q`` as in :func:`jaxgdp.sweep`; the attribute ``answer`` states in one line how
        wrong it is to shuffle and to account for Poisson sampling.

    Raises:
        ValueError: an argument is out of range, a name unknown, a batch larger than the data, or a
            sampler that was requested by name has no bracket for a setting.
        TypeError: an argument is traced by JAX, or no quantity has an argument of that name.

    Example:
        >>> found = compare_samplers(
        ...     0.5, dataset_size=10_000, batch_size=1, delta=1e-6, quantities="epsilon", rtol=1e-2
        ... )
        >>> "at least 5.6 times as much" in found.answer
        True
    """
    dataset.need_xarray("compare_samplers")
    on_host(
        "compare_samplers", noise_multiplier, dataset_size, batch_size, num_epochs, rtol, fpr_floor,
        truncated_batch_size, at,
    )  # fmt: skip
    makers = _chosen(samplers, as_implemented)
    Adjacency.checked(adjacency)
    size = whole("dataset_size", dataset_size)
    if size.ndim:
        raise ValueError(f"dataset_size must be a single number, got shape {size.shape}")
    axes = _axes(noise_multiplier, size, batch_size, num_epochs)
    numbers = single_numbers("compare_samplers", fpr_floor, at)
    asked = registry.select(quantities)
    cap = _of_batches(truncated_batch_size, tuple(len(a) for a in axes.values()))
    left_out = None if samplers is not None else []
    made = _mechanisms(makers, size, axes, cap, adjacency, left_out)
    found = [
        measure(
            own, tuple(quantity.name for quantity in asked), rtol=rtol, adjacency=adjacency,
            progress=progress, **numbers,
        )
        for own in made.values()
    ]  # fmt: skip
    parts = [dataset.values(part) for part in found]
    shape = (len(made), *(len(a) for a in axes.values()))
    data = {name: np.stack([part[name] for part in parts]).reshape(shape) for name in parts[0]}
    title = "Certified privacy of one training by every batch sampler"
    about = dataset.attributes(title, numbers["fpr_floor"], found[0].rtol, adjacency)
    about |= {"dataset_size": int(size)} | _remarks(made, left_out or [])
    if as_implemented:
        told = (f"{way.name}: {way.title} ({way.reason})" for way in WAYS if way.name in made)
        about["as_implemented"] = "; ".join(told)
    described = dataset.variables(asked, asked_at(tuple(q.name for q in asked), numbers))
    whole_set = dataset.labelled({"sampler": list(made)} | axes, data, described, about)
    return whole_set.assign_attrs(answer="\n".join(answers(whole_set)))


def _axes(
    noise_multiplier: ArrayLike,
    size: Float[Array, ""],
    batch_size: ArrayLike,
    num_epochs: ArrayLike,
) -> dict[str, Float[Array, " settings"]]:
    """Coordinates of noise multipliers, batch sizes and numbers of epochs, in this order."""
    at_most_all = lambda name, value: whole_up_to(name, value, float(size))
    return {
        "noise_multiplier": axis("noise_multiplier", noise_multiplier, positive),
        "batch_size": axis("batch_size", batch_size, at_most_all),
        "num_epochs": axis("num_epochs", num_epochs, whole),
    }


def _mechanisms(
    makers: dict[str, Callable[[Setting], Composition]],
    size: Float[Array, ""],
    axes: dict[str, Float[Array, " settings"]],
    cap: Float[Array, " settings"] | None,
    adjacency: str,
    left_out: list[str] | None,
) -> dict[str, Composition]:
    """Sampler → its mechanism at every setting of the grid.

    Args:
        left_out: a list that takes the reasons of samplers that have no bracket for these settings;
            None refuses them.
    """
    sigma, batch, passes = (a.reshape(-1) for a in np.meshgrid(*axes.values(), indexing="ij"))
    made: dict[str, Composition] = {}
    for name, make in makers.items():
        try:
            at = counts(size, batch, passes, None)
            own = make(Setting(sigma, at.batches, passes, at.rate, batch, size, cap, at.steps))
            broadcast(sampler=np.empty(own.shape), settings=sigma)
            dominating(own, adjacency)
            made[name] = own
        except ValueError as error:
            if left_out is None:
                raise
            left_out.append(f"{name}: {error}")
    if not made:
        reasons = "; ".join(left_out or [])
        raise ValueError(f"no sampler has brackets for these settings: {reasons}")
    return made


def _chosen(
    wanted: str | Iterable[str] | None, as_implemented: bool
) -> dict[str, Callable[[Setting], Composition]]:
    """What makes the mechanism of a setting, by the name of its row."""
    if not isinstance(as_implemented, (bool, np.bool_)):
        raise ValueError(f"as_implemented must be True or False, got {as_implemented!r}")
    further = {way.name: way.make for way in WAYS} if as_implemented else {}
    return {name: _sampled(name) for name in _names(wanted)} | further


def _sampled(name: str) -> Callable[[Setting], Composition]:
    return lambda at: mechanism(name, *vars(at).values())


def _names(wanted: str | Iterable[str] | None) -> tuple[str, ...]:
    if wanted is None:
        return tuple(name for name, sampler in REGISTRY.items() if sampler.by_default)
    wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    if not wanted:
        raise ValueError("samplers must name at least one sampler, got none")
    for name in wanted:
        sampler_named(name)
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"samplers must name each sampler once, got {wanted!r}")
    return wanted


def _of_batches(value: ArrayLike | None, grid: tuple[int, ...]) -> Float[Array, " settings"] | None:
    """One number for each setting of the grid, from one for all or one for each batch size."""
    if value is None:
        return None
    numbers = whole("truncated_batch_size", value)
    if numbers.shape not in ((), (1,), (grid[1],)):
        raise ValueError(
            f"truncated_batch_size must be a number or one for each of {grid[1]} batch sizes, got"
            f" shape {numbers.shape}"
        )
    return np.broadcast_to(numbers.reshape(1, -1, 1), grid).reshape(-1)


def _remarks(made: dict[str, Composition], left_out: list[str]) -> dict[str, str]:
    """Attributes for samplers whose sides do not meet, and for those that are left out."""
    parts = ((name, part) for name, own in made.items() for part in own.mechanisms)
    loose = [f"{name}: {part.why_not_tight}" for name, part in parts if part.why_not_tight]
    remarks = {"loose": loose, "left_out": left_out}
    return {name: "; ".join(lines) for name, lines in remarks.items() if lines}


def write_csv(found: Dataset, path: str | PathLike[str]) -> None:
    """One row per sampler and setting: every quantity with both sides and its status.

    Above the header stand lines that begin with "#": version, date, question and settings (pandas:
    ``comment="#"``)."""
    dataset.write_csv(found, path, found.attrs["title"], ("sampler", *DIMENSIONS))


__all__ = ["QUANTITIES", "answers", "compare_samplers", "summary_text", "write_csv"]
