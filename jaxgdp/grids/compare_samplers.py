"""``jaxgdp.compare_samplers``: the same training with its batches drawn in different ways, side by
side.
"""

from __future__ import annotations  # noqa: I001

import csv
from typing import Any

import numpy as np

from ..adjacency import Adjacency
from .. import options
from .._version import __version__
from ..bracket import STATUS, Bracket
from ..measure import measure
from ..mechanisms import Composition
from ..numerics.provenance import comments, provenance
from ..numerics.validation import broadcast, checked, on_host, positive, whole
from ..quantities.registry import named, select
from ..numerics.rounding import rounded_outward
from ..samplers import REGISTRY, mechanism
from ..samplers import named as sampler_named
from ..tradeoff import dominating

QUANTITIES = ("epsilon", "mu", "advantage")
DIMENSIONS = ("noise_multiplier", "batch_size", "epochs")


def compare_samplers(
    noise_multiplier,
    dataset_size,
    batch_size,
    epochs=1,
    quantities=QUANTITIES,
    samplers=None,
    rtol=options.RTOL,
    fpr_floor=options.FPR_FLOOR,
    adjacency=options.ADJACENCY,
    delta=options.DELTA,
    epsilon=options.EPSILON,
    fpr=options.FPR,
    d=options.D,
    prior=options.PRIOR,
    truncated_batch_size=None,
    progress=None,
):
    """Certified privacy of one training by every batch sampler, side by side.

    An epoch has T = ⌈n/b⌉ batches; the last one of an epoch in order may be smaller, which changes
    no bracket. Poisson sampling draws T batches an epoch with a rate of b/n. Neighbouring data sets
    are those of the zero-out relation, which for Poisson sampling is the same as adding or removing
    a record.

    All mechanisms are made before anything is measured. Of samplers that nobody asked for by name,
    those that have no bracket for one of the settings are left out, with the reason in the
    attribute ``left_out``.

    Args:
        noise_multiplier: σ > 0, standard deviation of the noise over the clipping norm; scalar or
            one-dimensional.
        dataset_size: n, records, a whole number ≥ 1.
        batch_size: b, (expected) records in a batch, whole numbers from 1 to n; scalar or
            one-dimensional.
        epochs: E, whole numbers ≥ 1; scalar or one-dimensional.
        quantities: any of those of :func:`jaxgdp.measure`.
        samplers: names, such as ("poisson", "shuffled"); default those of
            ``jaxgdp.samplers.REGISTRY`` but for "truncated_poisson" and "fixed_size", whose
            brackets are wide and take minutes.
        rtol: relative width asked of every bracket. That of "shuffled" does not close: nobody knows
            how private it is.
        fpr_floor: FPR floor of μ, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" where that is sound.
        delta: δ of "epsilon".
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta".
        d: of "approximate_mu".
        prior: of "bayes_risk". All of these are single numbers.
        truncated_batch_size: B, the most records of a batch of "truncated_poisson", whole numbers
            from 1 to n; a number, or one for each batch size.
        progress: called with the number of settings finished, as they finish.

    Returns:
        ``xarray.Dataset`` with dimensions sampler, noise_multiplier, batch_size, epochs and, for
        each quantity q, the variables ``q`` (upper side: the one to report, but for "beta" and
        "bayes_risk"), ``q_lower`` and ``status_q`` as in :func:`jaxgdp.sweep`; the attribute
        ``answer`` says in a line how wrong it is to shuffle and to account for Poisson sampling.

    Raises:
        ValueError: an argument is out of range, a name unknown, a batch larger than the data, or a
            sampler that was asked for by name has no bracket for a setting.
        TypeError: an argument is traced by JAX.

    Example:
        >>> found = compare_samplers(0.5, dataset_size=10_000, batch_size=1, delta=1e-6, quantities="epsilon", rtol=1e-2)
        >>> "at least 5.6 times as much" in found.answer
        True
    """
    try:
        import xarray
    except ImportError:
        raise ImportError(
            "jaxgdp.compare_samplers needs xarray: pip install 'jaxgdp[sweep]'"
        ) from None
    on_host(
        "compare_samplers",
        noise_multiplier,
        dataset_size,
        batch_size,
        epochs,
        rtol,
        fpr_floor,
        delta,
        epsilon,
        fpr,
        d,
        prior,
        truncated_batch_size,
    )
    names = _chosen(samplers)
    Adjacency.checked(adjacency)
    size = whole("dataset_size", dataset_size)
    if size.ndim:
        raise ValueError(f"dataset_size must be a single number, got shape {size.shape}")
    sizes = checked(
        "batch_size",
        batch_size,
        f"a whole number in [1, {size:g}]",
        lambda a: (a >= 1.0) & (a <= size) & (a == np.floor(a)),
    )
    axes = dict(
        zip(
            DIMENSIONS,
            (positive("noise_multiplier", noise_multiplier), sizes, whole("epochs", epochs)),
            strict=True,
        )
    )
    for name, value in axes.items():
        axes[name] = np.atleast_1d(value)
        if axes[name].ndim != 1:
            raise ValueError(
                f"{name} must be a scalar or one-dimensional, got shape {axes[name].shape}"
            )
    rates: dict[str, Any] = {
        "fpr_floor": fpr_floor,
        "delta": delta,
        "epsilon": epsilon,
        "fpr": fpr,
        "d": d,
        "prior": prior,
    }
    for name, value in rates.items():
        if np.ndim(value) != 0:
            raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    records = select(quantities)
    sigma, batch, passes = (a.reshape(-1) for a in np.meshgrid(*axes.values(), indexing="ij"))
    cap = _of_batches(truncated_batch_size, tuple(len(a) for a in axes.values()))
    made, left_out = {}, []
    for name in names:
        try:
            made[name] = mechanism(
                name, sigma, np.ceil(size / batch), passes, batch / size, batch, size, cap
            )
            broadcast(sampler=np.empty(made[name].shape), settings=sigma)
            dominating(made[name], adjacency)
        except ValueError as error:
            if samplers is not None:
                raise
            made.pop(name, None)
            left_out.append(f"{name}: {error}")
    if not made:
        raise ValueError(f"no sampler has brackets for these settings: {'; '.join(left_out)}")
    names = tuple(made)
    shape = (len(names), *(len(a) for a in axes.values()))
    settings = {"rtol": rtol, "adjacency": adjacency, "progress": progress} | rates
    parts = [
        measure(own, tuple(record.name for record in records), **settings) for own in made.values()
    ]

    dimensions = ("sampler", *DIMENSIONS)
    meanings = "; ".join(f"{int(code)}: {text}" for code, text in STATUS.items())
    data: dict[str, Any] = {}
    for record in records:
        own = {
            "long_name": record.long_name,
            "symbol": record.symbol,
            "units": record.unit if record.unit == "nats" else "1",
        }
        if record.name in parts[0].at:
            own["at"] = parts[0].at[record.name]
        stack = lambda pick: np.stack([pick(part) for part in parts]).reshape(shape)
        for side, label in (("upper", record.name), ("lower", f"{record.name}_lower")):
            values = stack(lambda part: getattr(part.brackets[record.name], side))  # noqa: B023
            data[label] = (dimensions, values, own | {"side": side})
        codes = stack(lambda part: part.status[record.name])  # noqa: B023
        data[f"status_{record.name}"] = (
            dimensions,
            codes,
            {"long_name": f"status of {record.name}", "meaning": meanings},
        )
    attributes = {
        "title": "Certified privacy of one training by every batch sampler",
        "jaxgdp_version": __version__,
        "dataset_size": int(size),
        "fpr_floor": parts[0].fpr_floor,
        "rtol": parts[0].rtol,
        "adjacency": adjacency,
    }
    loose = [why for name, own in made.items() for why in (_why(name, own),) if why]
    for label, lines in (("loose", loose), ("left_out", left_out)):
        if lines:
            attributes[label] = "; ".join(lines)
    found = xarray.Dataset(data, coords={"sampler": list(names)} | axes, attrs=attributes)
    return found.assign_attrs(answer="\n".join(answers(found)))


def _chosen(wanted) -> tuple[str, ...]:
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


def _of_batches(value, grid: tuple[int, ...]):
    """One number for each setting of the grid, of one for all or for each batch size."""
    if value is None:
        return None
    value = whole("truncated_batch_size", value)
    if value.shape not in ((), (1,), (grid[1],)):
        raise ValueError(
            f"truncated_batch_size must be a number or one for each of {grid[1]} batch sizes, got"
            f" shape {value.shape}"
        )
    return np.broadcast_to(value.reshape(1, -1, 1), grid).reshape(-1)


def _why(name: str, own: Composition) -> str:
    """Which side of a sampler's bracket is loose, and why; "" where they meet."""
    return "; ".join(
        f"{name}: {part.why_not_tight}" for part in own.mechanisms if part.why_not_tight
    )


def answers(found) -> list[str]:
    """ "I shuffle, but I accounted for Poisson sampling: how wrong am I?", a line for each setting.

    Args:
        found: from :func:`compare_samplers`, with "shuffled" and "poisson" and any quantity that
            grows with the privacy loss.

    Returns:
        Lines of plain text; none where a sampler or a quantity is missing.
    """
    if not {"shuffled", "poisson"} <= set(found["sampler"].values.tolist()):
        return []
    grows = [
        name for name in found.data_vars if f"{name}_lower" in found and named(str(name)).grows
    ]
    if not grows:
        return []
    name = "epsilon" if "epsilon" in grows else str(grows[0])
    lines = []
    for index in np.ndindex(*(found.sizes[axis] for axis in DIMENSIONS)):
        at = found.isel(dict(zip(DIMENSIONS, index, strict=True)))
        told, truth = at.sel(sampler="poisson"), at.sel(sampler="shuffled")
        told = Bracket(float(told[f"{name}_lower"]), float(told[name]))
        truth = Bracket(float(truth[f"{name}_lower"]), float(truth[name]))
        batches, epochs = (
            int(np.ceil(found.attrs["dataset_size"] / float(at["batch_size"]))),
            int(at["epochs"]),
        )
        where = (
            f"sigma = {float(at['noise_multiplier']):g}, {batches} batches an epoch, {epochs}"
            f" epoch{'s' * (epochs > 1)}"
        )
        point = found[name].attrs.get("at")
        argument = "" if point is None else f" ({named(name).argument} = {point:g})"
        reported, low, high = (
            rounded_outward(value, up=up, digits=4)
            for value, up in ((told.upper, True), (truth.lower, False), (truth.upper, True))
        )
        lines.append(
            f"{where}: shuffled, but accounted for as Poisson sampling: the {name} reported is"
            f" {reported}, the true one is between {low} and {high},"
            f" {_how_wrong(told, truth)}{argument}"
        )
    return lines


def _how_wrong(told: Bracket, truth: Bracket) -> str:
    if truth.lower > told.upper:
        return f"at least {np.floor(10.0 * truth.lower / told.upper) / 10.0:g} times as much"
    if truth.upper <= told.upper:
        return "not more than that"
    return (
        f"which may be up to {np.ceil(10.0 * truth.upper / told.lower) / 10.0:g} times as much and"
        " is not known"
    )


def write_csv(found, path) -> None:
    """One row per sampler and setting: both sides of every quantity and their status.

    Above the header stand lines that begin with "#": version, date, question and settings (pandas:
    ``comment="#"``)."""
    own = [str(name) for name in found.data_vars if f"{name}_lower" in found]
    header = [
        "sampler",
        *DIMENSIONS,
        *(f"{name}_{side}" for name in own for side in ("lower", "upper", "status")),
    ]
    asked = {name: found.attrs[name] for name in ("dataset_size", "rtol", "adjacency")}
    asked |= {f"{name}_at": found[name].attrs["at"] for name in own if "at" in found[name].attrs}
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(comments(provenance(found.attrs["title"], found.attrs["fpr_floor"], **asked)))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for index in np.ndindex(*(found.sizes[axis] for axis in ("sampler", *DIMENSIONS))):
            at = found.isel(dict(zip(("sampler", *DIMENSIONS), index, strict=True)))
            sides = (
                value
                for name in own
                for value in (
                    repr(float(at[f"{name}_lower"])),
                    repr(float(at[name])),
                    int(at[f"status_{name}"]),
                )
            )
            axes = (repr(float(at["noise_multiplier"])), int(at["batch_size"]), int(at["epochs"]))
            writer.writerow([str(at["sampler"].values), *axes, *sides])


def summary_text(found) -> str:
    """Both sides of every quantity by sampler, and the answers, as plain text."""
    own = [str(name) for name in found.data_vars if f"{name}_lower" in found]
    columns = "".join(f"  {name + ' lower':>18}  {name + ' upper':>18}" for name in own)
    lines = [f"{'sigma':>8}  {'batch':>8}  {'epochs':>6}  {'sampler':<18}{columns}"]
    for index in np.ndindex(*(found.sizes[axis] for axis in DIMENSIONS)):
        at = found.isel(dict(zip(DIMENSIONS, index, strict=True)))
        where = (
            f"{float(at['noise_multiplier']):>8g}  {int(at['batch_size']):>8d} "
            f" {int(at['epochs']):>6d}"
        )
        for sampler in found["sampler"].values.tolist():
            one = at.sel(sampler=sampler)
            sides = "".join(
                f"  {float(one[f'{name}_lower']):>18.6g}  {float(one[name]):>18.6g}" for name in own
            )
            lines.append(f"{where}  {sampler:<18}{sides}")
    lines += ["", *answers(found)]
    if "left_out" in found.attrs:
        lines += ["", f"left out: {found.attrs['left_out']}"]
    if "loose" in found.attrs:
        lines += ["", found.attrs["loose"]]
    return "\n".join(lines)
