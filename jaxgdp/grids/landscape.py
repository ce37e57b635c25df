"""The regret landscape of DP-SGD (Gomez 2025, Figure 3): grid, worst cases, rule of thumb."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from .. import options
from ..deprecation import keywords_after, renamed_names
from ..numerics.optional import Dataset
from ..numerics.rounding import rounded_outward
from ..numerics.shapes import Array, ArrayLike, Float
from ..quantities.table import documented
from ..scale.store import undamaged
from . import dataset as labelled_data
from .sweep import sweep

NOISE_MULTIPLIERS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
NUM_STEPS = (400, 1000, 2000)
SAMPLING_PROBS = tuple(float(p) for p in np.geomspace(1e-4, 1.0, 64))
RULE_NOISE_MULTIPLIER = 2.0
RULE_NUM_STEPS = 400
RULE_LIMIT = 0.01
QUESTION = (
    "mu of DP-SGD with Poisson sampling above the FPR floor, and the regret Delta of reporting it;"
    " sides are certified bounds"
)
_DRAWN = tuple(f"{name}{end}" for name in ("mu", "regret") for end in ("", "_lower", "_upper"))
_DIMENSIONS = ("noise_multiplier", "sampling_prob", "num_steps")


class Worst(NamedTuple):
    """The largest Δ over sampling rates at one (σ, T), and the rate of its upper side."""

    noise_multiplier: float
    num_steps: int
    sampling_prob: float
    lower: float
    upper: float


class RuleVerdict(NamedTuple):
    """The rule of thumb at one (σ, T), as decided by the brackets.

    Attributes:
        noise_multiplier: σ.
        num_steps: T.
        verdict: "holds" (every upper side below the limit), "fails" (some lower side of Δ(μ*)
            reaches it) or "undecided".
        sampling_probs: rates on the grid where it fails, or, if undecided, where the bracket
            straddles the limit.
    """

    noise_multiplier: float
    num_steps: int
    verdict: str
    sampling_probs: tuple[float, ...]


@keywords_after(3, "rtol", "fpr_floor", "progress", "executor")
@documented
def landscape(
    noise_multiplier: ArrayLike = NOISE_MULTIPLIERS,
    sampling_prob: ArrayLike = SAMPLING_PROBS,
    num_steps: ArrayLike = NUM_STEPS,
    *,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    progress: Callable[[int], None] | None = None,
    executor: str | None = None,
) -> Dataset:
    """μ* and its regret Δ over a grid of DP-SGD settings, by default that of Gomez 2025, Figure 3.

    Args:
        noise_multiplier: σ > 0, one-dimensional.
        sampling_prob: p in (0, 1], one-dimensional.
        num_steps: whole numbers T ≥ 1, one-dimensional.
        {rtol, fpr_floor}
        progress: called with the number of settings finished, as they finish.
        executor: as for :func:`jaxgdp.sweep`.

    Returns:
        ``xarray.Dataset`` of :func:`jaxgdp.sweep` with μ and the regret: ``mu`` and ``regret`` are
        the upper sides, safe to report; both sides are ``mu_lower``, ``mu_upper``,
        ``regret_lower`` and ``regret_upper``, and ``status`` is the worse of both.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> grid = landscape(noise_multiplier=[2.0], sampling_prob=[0.5, 1.0], num_steps=[10])
        >>> bool((grid.regret_lower <= grid.regret_upper).all())
        True
    """
    return sweep(
        noise_multiplier=noise_multiplier, sampling_prob=sampling_prob, num_steps=num_steps,
        quantities=("mu", "regret"), rtol=rtol, fpr_floor=fpr_floor, progress=progress,
        executor=executor,
    )  # fmt: skip


def read_store(path: str | PathLike[str]) -> Dataset:
    """The data of a store of :func:`jaxgdp.sweep`, in memory, if they can be drawn as a landscape.

    Args:
        path: of the store.

    Returns:
        ``xarray.Dataset`` with μ, the regret and their status.

    Raises:
        ValueError: it is not whole, or holds no μ or no regret.
        OSError: there is no such store, or a file of it is not what was written; names the file.
    """
    import xarray

    try:
        undamaged(path)
        found = xarray.open_zarr(path)
    except (KeyError, ValueError) as error:
        raise OSError(f"{path} is no store of jaxgdp.sweep: {error}") from None
    try:
        labelled_data.quantities_of(found)
    except ValueError as error:
        raise ValueError(f"store {path}: {error}, into another store") from None
    lacking = [name for name in _DRAWN if name not in found]
    if lacking:
        raise ValueError(f"store {path} must hold mu and regret, it lacks {', '.join(lacking)}")
    found = found[[*_DRAWN, "status"]].load().drop_encoding()
    missing = int(np.sum(found["status"].values < 0))
    if missing:
        raise ValueError(
            f"store {path} must be whole, {missing} of its {found['status'].size} settings are"
            " missing"
        )
    return found


def chosen(dataset: Dataset, name: str, values: Sequence[float]) -> Dataset:
    """The part of a data set at some coordinates.

    Raises:
        ValueError: there is no such coordinate; lists those that exist.
    """
    there = dataset[name].values
    rows = []
    for value in values:
        (near,) = np.nonzero(np.isclose(there, value, rtol=1e-9, atol=0.0))
        if not len(near):
            nearest = there[np.argmin(np.abs(there - value))]
            raise ValueError(
                f"{name} must be one of the store's {len(there)} values, got {value:g}, nearest is"
                f" {nearest:g}"
            )
        rows.append(int(near[0]))
    return dataset.isel({name: rows})


class _Line(NamedTuple):
    """Δ along the sampling rates of one (σ, T), rates ascending."""

    noise_multiplier: float
    num_steps: int
    rates: Float[Array, " settings"]
    lower: Float[Array, " settings"]
    upper: Float[Array, " settings"]


def _lines(dataset: Dataset) -> Iterator[_Line]:
    """The line of every (σ, T)."""
    ordered = dataset.transpose(*_DIMENSIONS).sortby("sampling_prob")
    rates = ordered["sampling_prob"].values
    lower, upper = ordered["regret_lower"].values, ordered["regret_upper"].values
    for i, sigma in enumerate(ordered["noise_multiplier"].values):
        for k, steps in enumerate(ordered["num_steps"].values):
            yield _Line(float(sigma), int(steps), rates, lower[i, :, k], upper[i, :, k])


def worst_regret(dataset: Dataset) -> list[Worst]:
    """Largest regret of the reported (upper) μ over sampling rates, for every (σ, T).

    max_p lower(p) ≤ max_p Δ(p) ≤ max_p upper(p).

    Args:
        dataset: from :func:`landscape`.

    Returns:
        One :class:`Worst` per (σ, T); report the upper side.
    """
    found = []
    for sigma, steps, rates, lower, upper in _lines(dataset):
        at = int(np.argmax(upper))
        found.append(Worst(sigma, steps, float(rates[at]), float(np.max(lower)), float(upper[at])))
    return found


def rule_of_thumb(dataset: Dataset, limit: float = RULE_LIMIT) -> list[RuleVerdict]:
    """Where "σ ≥ 2 and T ≥ 400 imply Δ < 0.01" (Gomez 2025, Section 5) holds, by the brackets.

    The rule fails where a lower side reaches the limit and holds where every upper side stays below
    it. Settings whose bracket is wider than requested (``status`` not 0) count like the others:
    their brackets are valid.

    Args:
        dataset: from :func:`landscape`.
        limit: the bound on Δ.

    Returns:
        One :class:`RuleVerdict` per (σ, T) with σ ≥ 2 and T ≥ 400, for the grid's sampling rates.
    """
    verdicts = []
    for sigma, steps, rates, lower, upper in _lines(dataset):
        if sigma < RULE_NOISE_MULTIPLIER or steps < RULE_NUM_STEPS:
            continue
        fails, holds = lower >= limit, upper < limit
        verdict = "fails" if np.any(fails) else "holds" if np.all(holds) else "undecided"
        where = rates[fails if np.any(fails) else ~holds]
        verdicts.append(RuleVerdict(sigma, steps, verdict, tuple(map(float, where))))
    return verdicts


def write_csv(dataset: Dataset, path: str | PathLike[str]) -> None:
    """One row per setting: σ, p, T, both sides of μ and Δ, status (0: as narrow as requested).

    Above the header stand lines that begin with "#": version, date, question, FPR floor and
    ``rtol`` (pandas: ``comment="#"``)."""
    labelled_data.write_csv(dataset, path, QUESTION, _DIMENSIONS)


def write_netcdf(dataset: Dataset, path: str | PathLike[str]) -> None:
    """The data set as NetCDF 4, with units, version, date, question, FPR floor and ``rtol``."""
    about = labelled_data.question_of(dataset, QUESTION)
    dataset.assign_attrs(about).to_netcdf(path, engine="h5netcdf")


def _rates(rates: Sequence[float]) -> str:
    ends = f"p = {rates[0]:.4g}" if len(rates) == 1 else f"p = {rates[0]:.4g} to {rates[-1]:.4g}"
    return f"{ends} ({len(rates)} of the grid's rates)"


def _as_narrow_as_asked(dataset: Dataset, row: Worst) -> bool:
    return int(dataset["status"].sel({name: getattr(row, name) for name in _DIMENSIONS})) == 0


def summary_text(dataset: Dataset) -> str:
    """Worst Δ of every (σ, T), and where the rule of thumb holds, as plain text."""
    floor = dataset.attrs.get("fpr_floor")
    lines = [
        "Worst regret Delta over sampling rates"
        + ("" if floor is None else f" (mu at FPR floor {floor:g})"),
        f"{'sigma':>8}  {'T':>8}  {'lower':>12}  {'upper':>12}  at p",
    ]
    for row in worst_regret(dataset):
        low = rounded_outward(row.lower, up=False, digits=4)
        high = rounded_outward(row.upper, up=True, digits=4)
        wide = "" if _as_narrow_as_asked(dataset, row) else "  (mu bracket wider than asked)"
        columns = f"{row.noise_multiplier:>8g}  {row.num_steps:>8d}  {low:>12}  {high:>12}"
        lines.append(f"{columns}  {row.sampling_prob:.4g}{wide}")
    lines += ["Report the upper side.", ""]
    lines.append(
        f"Rule of thumb: sigma >= {RULE_NOISE_MULTIPLIER:g} and T >= {RULE_NUM_STEPS} imply Delta <"
        f" {RULE_LIMIT:g}"
    )
    verdicts = rule_of_thumb(dataset)
    held = [v for v in verdicts if v.verdict == "holds"]
    if held:
        all_of = "all " if len(held) == len(verdicts) else ""
        more = "" if all_of else f" of {len(verdicts)}"
        lines.append(f"  holds at {all_of}{len(held)}{more} pairs of sigma and T")
    for v in verdicts:
        if v.verdict != "holds":
            where = f" at {_rates(v.sampling_probs)}"
            lines.append(f"  sigma = {v.noise_multiplier:g}, T = {v.num_steps}: {v.verdict}{where}")
    if not verdicts:
        lines.append("  no setting of this grid has sigma and T that large")
    return "\n".join([*lines, "", labelled_data.narrow_and_wide(dataset["status"].values)])


__getattr__ = renamed_names("jaxgdp.landscape", Verdict=RuleVerdict)
