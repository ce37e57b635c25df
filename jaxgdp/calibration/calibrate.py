"""``jaxgdp.calibrate``: from the risk that is accepted to the parameter that provably meets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import options
from ..adjacency import Adjacency
from ..deprecation import keywords_after, renamed_arguments
from ..measure import measure
from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..numerics.optional import Client
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, one_of, positive, probability, whole
from ..quantities.table import documented
from ..samplers import REGISTRY
from ..targets import Regret, Target
from ..tradeoff import dominating
from ..vocabulary import explain_arguments
from . import closed_form
from .arguments import (
    only_a_batch_size,
    only_a_mechanism,
    only_records,
    records_of_one_user,
    spent_before,
)
from .black_box import solve_black_box
from .common_scale import common_scale, gaussian_mu
from .families import (
    BATCH_SIZE,
    DPSGD,
    NOISE_MULTIPLIER,
    NUM_STEPS,
    UNKNOWNS,
    After,
    BatchSize,
    Epochs,
    Scaled,
)
from .finish import Family, Found, How, complain, finish, one_target
from .records import of_records
from .result import Calibration
from .search import empty, put, search
from .status import EVERY, NONE

_CHECKS = {"noise_multiplier": positive, "sampling_prob": probability, "num_steps": whole}


@renamed_arguments(tolerance="rtol", epochs="num_epochs")
@keywords_after(1, "sampling_prob", "num_steps")
@explain_arguments
@documented
def calibrate(
    target: Target,
    *,
    sampling_prob: ArrayLike = 1.0,
    num_steps: ArrayLike | None = None,
    noise_multiplier: ArrayLike | None = None,
    solve_for: str = "noise_multiplier",
    mechanism: Mechanism | Composition | Callable[[Any], Mechanism | Composition] | None = None,
    black_box: Callable[[float], Any] | None = None,
    sampler: str = "poisson",
    num_epochs: ArrayLike | None = None,
    dataset_size: ArrayLike | None = None,
    batch_size: ArrayLike | None = None,
    after: Mechanism | Composition | None = None,
    records_per_user: int = 1,
    rtol: float = options.RTOL,
    adjacency: str = options.ADJACENCY,
    infeasible: str = "raise",
    progress: Callable[[int], object] | bool | None = None,
    client: Client | str | None = None,
) -> Calibration:
    """The smallest noise, or most steps or sampling rate, that provably meets a privacy target.

    The safe side of the certified bracket meets the target at ``value``; at ``rejected``, at most
    one step of ``rtol`` towards less privacy, it does not (Kulynych 2024, Eq. 9, with brackets in
    place of estimates). Targets and parameters broadcast: thousands of calibrations advance
    together, each round being one call of :func:`jaxgdp.measure`. The Gaussian mechanism (sampling
    rate 1) uses closed forms.

    The regret does not fall steadily with the noise. There, ``value`` is the last crossing: all
    noise from some point on meets the target by Δ ≤ Φ(μ/2) − ½, and between that point and
    ``value`` so did every noise tried, in factors of 1.1 (1.46 where the regret is below a quarter
    of the target).

    Args:
        target: one of ``jaxgdp.targets``, with scalars or arrays.
        {sampling_prob, num_steps}
        noise_multiplier: σ > 0, given only when it is not solved for.
        solve_for: "noise_multiplier", "num_steps", "sampling_prob" or "batch_size"; what is solved
            for is not given. A batch size is found for ``dataset_size`` and ``num_epochs``: the
            rate and the number of steps move with it.
        mechanism: in place of DP-SGD, a mechanism or composition, all of whose noise is multiplied
            by a common scale, or a callable scale → mechanism that takes arrays; more scale must be
            more private. ``value`` is then the scale.
        black_box: in place of DP-SGD, a callable scale → :class:`jaxgdp.BlackBox`, or scale →
            (callable ε ↦ δ(ε)); one call for each scale.
        sampler: "poisson" (``dpsgd``), or "random_allocation", "shuffled" or "deterministic": each
            record in one of the ``num_steps`` steps of each of ``num_epochs`` epochs
            (``jaxgdp.samplers``). Only the noise is solved for, for random allocation in [0.2,
            1e4]. No better upper side is known for shuffled batches than that of a fixed order, so
            they need as much noise.
        num_epochs: whole numbers ≥ 1, for samplers other than "poisson" and for a batch size that
            is solved for; default 1.
        dataset_size: n, with ``batch_size`` in place of ``sampling_prob``: rate and steps follow as
            by :func:`jaxgdp.run`, whose samplers are taken then, and ``num_epochs`` or
            ``num_steps`` are of the whole run. "unknown" gives the larger of the noise for Poisson
            and for shuffled batches. Where a batch size is solved for, n is one whole number.
        batch_size: b, expected size of a batch.
        after: a mechanism or composition, of no shape, that was run on the same data before; the
            target is for both together.
        records_per_user: most records of one user, a whole number from 1 to 256, where neighbours
            differ in a user (DP-SGD with Poisson sampling); one number.
        rtol: relative step, in [1e-6, 0.1]. Numbers of steps up to a million are settled exactly.
        {adjacency}
        infeasible: "raise", or "flag" to leave in ``status`` what some elements of a batch cannot
            have.
        progress: called with the number of calibrations finished, as they finish; True displays
            them on stderr even if it is not a terminal.
        client: ``dask.distributed.Client`` or the address of a scheduler (extra ``scale``), whose
            workers search, in pieces of up to 256 calibrations; for DP-SGD and random allocation.

    Returns:
        A :class:`Calibration`; ``value`` is the safe answer.

    Raises:
        ValueError: an argument is out of range or shapes do not broadcast (before tracing); a
            target that every noise or number of steps meets, or none up to the end of the search,
            unless flagged. (A sampling rate of 1 is an answer, with status 3.)

    Example:
        >>> import jaxgdp
        >>> found = jaxgdp.calibrate(jaxgdp.targets.FNR(fnr=0.8, fpr=0.1), num_steps=4)
        >>> round(float(found.value), 3), bool(found.achieved.lower >= 0.8)
        (4.546, True)
    """
    if not isinstance(target, Target):
        raise ValueError(
            f"target must be one of jaxgdp.targets, such as targets.Advantage(0.1), got {target!r}"
        )
    if solve_for != BATCH_SIZE and (dataset_size is not None or batch_size is not None):
        stated = {"sampler": sampler, "dataset_size": dataset_size, "batch_size": batch_size}
        stated |= {"num_epochs": num_epochs, "num_steps": num_steps}
        others = {"mechanism": mechanism, "black_box": black_box}
        others |= {"noise_multiplier": noise_multiplier}
        only_records(sampling_prob, others, solve_for)
        rest: dict[str, Any] = {"rtol": rtol, "adjacency": adjacency, "infeasible": infeasible}
        rest |= {"progress": progress, "client": client, "records_per_user": records_per_user}
        rest |= {"after": after}
        return of_records(target, stated, rest, calibrate)
    num_steps = 1 if num_steps is None else num_steps
    num_epochs = 1 if num_epochs is None else num_epochs
    how = How(
        float(checked("rtol", rtol, "in [1e-6, 0.1]", lambda a: (a >= 1e-6) & (a <= 0.1))),
        Adjacency.checked(adjacency),
        one_of("infeasible", infeasible, ("raise", "flag")),
        progress,
        client,
        None if after is None else spent_before(after, client, black_box),
    )
    one_of("solve_for", solve_for, (*UNKNOWNS, BATCH_SIZE))
    given = {
        "sampling_prob": sampling_prob, "num_steps": num_steps,
        "noise_multiplier": noise_multiplier,
    }  # fmt: skip
    own = {"mechanism": mechanism, "black_box": black_box}
    one_of("sampler", sampler, tuple(name for name, entry in REGISTRY.items() if not entry.needs))
    records = records_of_one_user(records_per_user)
    if records > 1 and (sampler != "poisson" or any(other is not None for other in own.values())):
        raise ValueError(
            "records_per_user is for DP-SGD with Poisson sampling: it must not be given with"
            " another sampler, with mechanism or with black_box"
        )
    if records > 1 and client is not None:
        raise ValueError("client must not be given with records_per_user above 1")
    if solve_for == BATCH_SIZE:
        only_a_batch_size(given | own | {"batch_size": batch_size}, sampler, records)
        epochs = {"noise_multiplier": noise_multiplier, "num_epochs": num_epochs}
        return _batch_size(target, epochs, dataset_size, how)
    if sampler != "poisson":
        return _epochs(sampler, target, given | own | {"num_epochs": num_epochs}, solve_for, how)
    if not (np.ndim(num_epochs) == 0 and num_epochs == 1):
        raise ValueError(
            "num_epochs must not be given with sampler='poisson': num_steps counts the steps of all"
            " epochs there"
        )
    if any(other is not None for other in own.values()):
        only_a_mechanism([name for name, v in own.items() if v is not None], given, solve_for)
        return _of_mechanism(target, mechanism, black_box, how)
    return _dpsgd(target, given, solve_for, how, records)


def _batch_size(
    target: Target, given: dict[str, Any], dataset_size: ArrayLike | None, how: How
) -> Calibration:
    """The largest expected batch for a number of epochs."""
    if dataset_size is None or np.ndim(dataset_size) > 0:
        raise ValueError(
            "dataset_size must be given, as one whole number, to solve for batch_size, got"
            f" {dataset_size!r}"
        )
    if isinstance(target, Regret):
        raise ValueError("solve_for must be 'noise_multiplier' for a regret, got 'batch_size'")
    records = int(whole("dataset_size", dataset_size))
    known = {
        "noise_multiplier": positive("noise_multiplier", given["noise_multiplier"]),
        "num_epochs": whole("num_epochs", given["num_epochs"]),
    }
    shape = broadcast(target=np.empty(target.shape), **known)
    family = BatchSize(shape, known, records)
    # (names the mechanism and the adjacencies it has)
    dominating(family.at(np.ones(int(np.prod(shape))), slice(None)), how.adjacency)
    return finish(_search(family, target, how), family, target, how)


def _of_mechanism(target: Target, mechanism: Any, black_box: Any, how: How) -> Calibration:
    """The scale of a mechanism, or of a black box."""
    if how.client is not None:
        own = "mechanism" if black_box is None else "black_box"
        raise ValueError(
            f"client is for DP-SGD and random allocation: it must not be given with {own}"
        )
    if black_box is not None:
        if not how.adjacency.symmetric or how.adjacency.replaces:
            raise ValueError(
                "adjacency must be 'add_remove' for a black box, which bounds both orders, got"
                f" {how.adjacency!r}"
            )
        boxes, found = solve_black_box(target, black_box, how.rtol, how.progress)
        return finish(Found(found, np.zeros(len(found.value), bool)), boxes, target, how)
    fixed = not callable(mechanism)
    family = Scaled(common_scale(mechanism) if fixed else mechanism, target.shape)
    # (without a closed form, Gaussian curves only guide the search)
    closed = fixed and target.has_closed_form and how.after is None
    mu = gaussian_mu(mechanism) if closed else None
    searched = (
        _gaussian(family, target, how, mu) if mu is not None else _search(family, target, how)
    )
    return finish(searched, family, target, how)


def _dpsgd(
    target: Target, given: dict[str, Any], solve_for: str, how: How, records: int = 1
) -> Calibration:
    unknown = UNKNOWNS[solve_for]
    known = {name: value for name, value in given.items() if name != solve_for}
    if solve_for == "noise_multiplier" and given["noise_multiplier"] is not None:
        raise ValueError(
            "noise_multiplier is what is solved for: give it with solve_for='num_steps' or"
            " 'sampling_prob' only"
        )
    if known.get("noise_multiplier", 1.0) is None:
        raise ValueError(
            f"noise_multiplier must be given to solve for {solve_for}, a finite number > 0"
        )
    if solve_for != "noise_multiplier" and isinstance(target, Regret):
        raise ValueError(f"solve_for must be 'noise_multiplier' for a regret, got {solve_for!r}")
    known = {name: _CHECKS[name](name, value) for name, value in known.items()}
    plain = np.all(np.asarray(known.get("sampling_prob", 0.0)) == 1.0)
    if how.adjacency.replaces and not plain:
        # names the mechanism and the adjacencies it has
        measure(
            DPSGD(unknown, (1,), dict.fromkeys(known, 0.5) | {"num_steps": 1}, records).at(
                np.ones(1), [0]
            ),
            adjacency=how.adjacency,
        )
    family = DPSGD(unknown, broadcast(target=np.empty(target.shape), **known), known, records)
    return finish(_by_kind(family, target, how), family, target, how)


def _epochs(
    sampler: str, target: Target, given: dict[str, Any], solve_for: str, how: How
) -> Calibration:
    sampled = given.pop("sampling_prob")
    extra = [
        name for name in ("mechanism", "black_box", "noise_multiplier") if given[name] is not None
    ]
    if not (np.ndim(sampled) == 0 and sampled == 1.0):
        extra.append("sampling_prob")
    if extra:
        raise ValueError(
            f"sampler={sampler!r} replaces Poisson sampling: {', '.join(extra)} must not be given"
            " with it"
        )
    if solve_for != "noise_multiplier":
        raise ValueError(f"solve_for must not be {solve_for!r} with sampler={sampler!r}")
    known = {name: whole(name, given[name]) for name in ("num_steps", "num_epochs")}
    family = Epochs(sampler, broadcast(target=np.empty(target.shape), **known), known)
    # (names the mechanism and the adjacencies it has)
    dominating(family.at(np.ones(len(family.known["num_steps"])), slice(None)), how.adjacency)
    return finish(_search(family, target, how), family, target, how)


def _by_kind(family: DPSGD, target: Target, how: How) -> Found:
    """Closed forms where the mechanism is Gaussian, the search elsewhere."""
    if how.after is not None:
        return _search(family, target, how)
    flat, number = target.flat(family.shape), int(np.prod(family.shape))
    found = empty(number)
    closed = np.zeros(number, bool)
    searched = np.ones(number, bool)
    if family.unknown in (NOISE_MULTIPLIER, NUM_STEPS):
        closed = (family.known["sampling_prob"] == 1.0) & target.has_closed_form
        searched = ~closed
    if np.any(closed):
        rows = np.flatnonzero(closed)
        twice = (2.0 if how.adjacency.replaces else 1.0) * family.records
        if family.unknown is NOISE_MULTIPLIER:
            per_unit = twice * np.sqrt(family.known["num_steps"][rows])
        else:
            per_unit = twice / family.known["noise_multiplier"][rows]
        if isinstance(target, Regret):
            found.status[rows] = EVERY
        else:
            put(found, rows, closed_form.solve(flat.take(rows), family.unknown, per_unit, how.rtol))
        if callable(how.progress):
            how.progress(len(rows))
    limit = np.full(number, np.inf)
    if family.unknown is NOISE_MULTIPLIER and not isinstance(target, Regret):
        detected = -np.expm1(
            family.known["num_steps"]
            * family.records
            * np.log1p(-np.minimum(family.known["sampling_prob"], 1.0 - 1e-16))
        )
        limit = np.array(np.broadcast_to(flat.without_noise(detected, how.adjacency), number))
        weak = searched & (flat.goal >= limit if flat.safe == "upper" else flat.goal <= limit)
        found.status[weak] = EVERY
        searched = searched & ~weak
        if how.infeasible == "raise" and np.any(weak):
            complain(found, family, target)
    rows = np.flatnonzero(searched)
    if len(rows):
        part = DPSGD(
            family.unknown,
            (len(rows),),
            {name: value[rows] for name, value in family.known.items()},
            family.records,
        )
        put(
            found,
            rows,
            search(
                part,
                flat.take(rows),
                how.rtol,
                how.adjacency,
                how.progress,
                how.client,
                limit[rows],
            ),
        )
    return Found(found, closed)


def _gaussian(family: Scaled, target: Target, how: How, mu: Array) -> Found:
    """Closed forms of compositions of Gaussian mechanisms whose μ at scale 1 is given."""
    number = int(np.prod(family.shape))
    if isinstance(target, Regret):
        found = empty(number)
        found.status[:] = EVERY
        return Found(found, np.ones(number, bool))
    per_unit = (2.0 if how.adjacency.replaces else 1.0) * np.broadcast_to(mu, family.shape).reshape(
        -1
    )
    found = closed_form.solve(target.flat(family.shape), family.unknown, per_unit, how.rtol)
    return Found(found, np.ones(number, bool))


def _search(family: Family, target: Target, how: How) -> Found:
    flat = target.flat(family.shape)
    if how.after is not None:
        return _search_after(family, flat, how, how.after)
    found = search(family, flat, how.rtol, how.adjacency, how.progress, how.client)
    return Found(found, np.zeros(len(found.value), bool))


def _search_after(family: Family, flat: Target, how: How, after: Composition) -> Found:
    """The search where something was run before, unless that exceeds the target already."""
    spent = measure(after, (flat.quantity,), adjacency=how.adjacency, **flat.parameters())
    within = np.broadcast_to(flat.meets(flat.read(spent[flat.quantity])), np.shape(flat.goal))
    if how.infeasible == "raise" and not np.all(within):
        first = one_target(flat, int(np.flatnonzero(~within)[0]))
        raise ValueError(
            f"target {first.describe()} cannot be met: what is given as after exceeds it already"
        )
    found, rows = empty(len(within)), np.flatnonzero(within)
    found.status[:] = NONE
    if len(rows):
        part = After(family, after, rows)
        put(found, rows, search(part, flat.take(rows), how.rtol, how.adjacency, how.progress))
    return Found(found, np.zeros(len(within), bool))


__all__ = ["calibrate"]
