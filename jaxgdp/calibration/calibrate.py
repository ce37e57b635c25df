"""``jaxgdp.calibrate``: from the risk that is accepted to the parameter that provably meets it."""

from __future__ import annotations

import numpy as np

from ..adjacency import Adjacency
from ..bracket import Bracket
from ..measure import measure
from ..numerics.validation import broadcast, checked, one_of, positive, probability, whole
from ..samplers import REGISTRY
from ..targets import TPR, Regret, Target
from ..tradeoff import dominating
from . import closed_form
from .black_box import solve_black_box
from .common_scale import common_scale, gaussian_mu
from .families import DPSGD, NOISE_MULTIPLIER, NUM_STEPS, SAMPLING_PROB, UNKNOWNS, Epochs, Scaled
from .result import Calibration
from .search import empty, put, search
from .solver import Solved
from .status import EVERY, NONE

_CHECKS = {"noise_multiplier": positive, "sampling_prob": probability, "num_steps": whole}


def calibrate(
    target,
    sampling_prob=1.0,
    num_steps=1,
    *,
    noise_multiplier=None,
    solve_for="noise_multiplier",
    mechanism=None,
    black_box=None,
    sampler="poisson",
    num_epochs=1,
    tolerance=1e-3,
    adjacency="add_remove",
    infeasible="raise",
    progress=None,
    client=None,
) -> Calibration:
    """The smallest noise, or the largest number of steps or sampling rate, that provably meets a
    privacy target.

    The safe side of the certified bracket meets the target at ``value``; at ``rejected``, at most
    one tolerance step towards less privacy, it does not (Kulynych 2024, Eq. 9, with brackets in
    place of estimates). Targets and parameters broadcast: thousands of calibrations advance
    together, each round being one call of :func:`jaxgdp.measure`. The Gaussian mechanism (sampling
    rate 1) uses closed forms.

    The regret does not fall steadily with the noise. There, ``value`` is the last crossing: all
    noise from some point on meets the target by Δ ≤ Φ(μ/2) − ½, and between that point and
    ``value`` so did every noise looked at, in factors of 1.1.

    Args:
        target: one of ``jaxgdp.targets``, with scalars or arrays.
        sampling_prob: p in (0, 1].
        num_steps: whole numbers ≥ 1.
        noise_multiplier: σ > 0, given only when it is not solved for.
        solve_for: "noise_multiplier", "num_steps" or "sampling_prob"; what is solved for is not
            given.
        mechanism: in place of DP-SGD, a mechanism or composition, all of whose noise is multiplied
            by a common scale, or a callable scale → mechanism that takes arrays; more scale must be
            more private. ``value`` is then the scale.
        black_box: in place of DP-SGD, a callable scale → :class:`jaxgdp.BlackBox`, or scale →
            (callable ε ↦ δ(ε)); one call for each scale.
        sampler: "poisson" (``dpsgd``), or "random_allocation", "shuffled" or "deterministic": each
            record in one of the ``num_steps`` steps of each of ``num_epochs`` epochs
            (``jaxgdp.samplers``). Only the noise is solved for, for random allocation in [0.2,
            1e4]. Nobody knows a better upper side of shuffled batches than that of a fixed order,
            so they need as much.
        num_epochs: whole numbers ≥ 1, for samplers other than "poisson".
        tolerance: relative step, in [1e-6, 0.1]; for steps at least 1.
        adjacency: as for :func:`jaxgdp.measure`.
        infeasible: "raise", or "flag" to leave in ``status`` what some elements of a batch cannot
            have.
        progress: called with the number of calibrations finished, as they finish; True shows them
            on stderr, also where that is no terminal.
        client: ``dask.distributed.Client`` or the address of a scheduler (extra ``scale``), whose
            workers search, in pieces of up to 256 calibrations; for DP-SGD and random allocation.

    Returns:
        A :class:`Calibration`; ``value`` is the safe answer.

    Raises:
        ValueError: an argument is out of range or shapes do not broadcast (before tracing); a
            target that every noise or number of steps meets, or none, unless flagged. (A sampling
            rate of 1 is an answer, with status 3.)

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
    tolerance = float(
        checked("tolerance", tolerance, "in [1e-6, 0.1]", lambda a: (a >= 1e-6) & (a <= 0.1))
    )
    relation = Adjacency.checked(adjacency)
    one_of("infeasible", infeasible, ("raise", "flag"))
    one_of("solve_for", solve_for, tuple(UNKNOWNS))
    given = {
        "sampling_prob": sampling_prob,
        "num_steps": num_steps,
        "noise_multiplier": noise_multiplier,
    }
    one_of("sampler", sampler, tuple(name for name, record in REGISTRY.items() if not record.needs))
    if sampler != "poisson":
        return _epochs(
            sampler, target, given | {"mechanism": mechanism, "black_box": black_box, "num_epochs": num_epochs}, solve_for,
            tolerance, adjacency, infeasible, progress, client,
        )  # fmt: skip
    if not (np.ndim(num_epochs) == 0 and num_epochs == 1):
        raise ValueError(
            "num_epochs must not be given with sampler='poisson': num_steps counts the steps of all"
            " epochs there"
        )
    own = [
        name
        for name, other in (("mechanism", mechanism), ("black_box", black_box))
        if other is not None
    ]
    if own:
        _only_a_mechanism(own, given, solve_for)
        if client is not None:
            raise ValueError(
                f"client is for DP-SGD and random allocation: it must not be given with {own[0]}"
            )
    if black_box is not None:
        if not relation.symmetric or relation.replaces:
            raise ValueError(
                "adjacency must be 'add_remove' for a black box, which bounds both orders, got"
                f" {adjacency!r}"
            )
        family, found = solve_black_box(target, black_box, tolerance, progress)
        return _finish(
            (found, np.zeros(len(found.value), bool)),
            family,
            target,
            tolerance,
            adjacency,
            infeasible,
        )
    if mechanism is not None:
        fixed = not callable(mechanism)
        family = Scaled(common_scale(mechanism) if fixed else mechanism, target.shape)
        mu = gaussian_mu(mechanism) if fixed else None
        found = (
            _gaussian(family, target, tolerance, adjacency, mu)
            if mu is not None
            else _search(family, target, tolerance, adjacency, progress)
        )
        return _finish(found, family, target, tolerance, adjacency, infeasible)
    return _dpsgd(target, given, solve_for, tolerance, adjacency, infeasible, progress, client)


def _only_a_mechanism(own, given, solve_for):
    if len(own) > 1:
        raise ValueError("give mechanism or black_box, not both")
    extra = [
        name
        for name, default in (("sampling_prob", 1.0), ("num_steps", 1), ("noise_multiplier", None))
        if given[name] is not default
    ]
    extra = [
        name
        for name in extra
        if not (name != "noise_multiplier" and np.ndim(given[name]) == 0 and given[name] == 1)
    ]
    if extra or solve_for != "noise_multiplier":
        raise ValueError(
            f"{own[0]} replaces DP-SGD: {', '.join(extra) or 'solve_for'} must not be given with it"
        )


def _dpsgd(
    target, given, solve_for, tolerance, adjacency, infeasible, progress, client
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
    if Adjacency(adjacency).replaces and not plain:
        # names the mechanism and the adjacencies it has
        measure(
            DPSGD(unknown, (1,), dict.fromkeys(known, 0.5) | {"num_steps": 1}).at(np.ones(1), [0]),
            adjacency=adjacency,
        )
    family = DPSGD(unknown, broadcast(target=np.empty(target.shape), **known), known)
    return _finish(
        _by_kind(family, target, tolerance, adjacency, infeasible, progress, client),
        family,
        target,
        tolerance,
        adjacency,
        infeasible,
    )


def _epochs(
    sampler, target, given, solve_for, tolerance, adjacency, infeasible, progress, client
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
    dominating(family.at(np.ones(len(family.known["num_steps"])), slice(None)), adjacency)
    found = _search(family, target, tolerance, adjacency, progress, client)
    return _finish(found, family, target, tolerance, adjacency, infeasible)


def _by_kind(family: DPSGD, target, tolerance, adjacency, infeasible, progress, client):
    """Closed forms where the mechanism is Gaussian, the search elsewhere."""
    flat, number = target.flat(family.shape), int(np.prod(family.shape))
    found = empty(number)
    closed = np.zeros(number, bool)
    searched = np.ones(number, bool)
    if family.unknown in (NOISE_MULTIPLIER, NUM_STEPS):
        closed = family.known["sampling_prob"] == 1.0
        searched = ~closed
    if np.any(closed):
        rows = np.flatnonzero(closed)
        twice = 2.0 if Adjacency(adjacency).replaces else 1.0
        if family.unknown is NOISE_MULTIPLIER:
            per_unit = twice * np.sqrt(family.known["num_steps"][rows])
        else:
            per_unit = twice / family.known["noise_multiplier"][rows]
        if isinstance(target, Regret):
            found.status[rows] = EVERY
        else:
            put(
                found, rows, closed_form.solve(flat.take(rows), family.unknown, per_unit, tolerance)
            )
        if callable(progress):
            progress(len(rows))
    if family.unknown is NOISE_MULTIPLIER and not isinstance(target, Regret):
        detected = -np.expm1(
            family.known["num_steps"]
            * np.log1p(-np.minimum(family.known["sampling_prob"], 1.0 - 1e-16))
        )
        limit = np.broadcast_to(flat.without_noise(detected, adjacency), number)
        weak = searched & (flat.goal >= limit if flat.safe == "upper" else flat.goal <= limit)
        found.status[weak] = EVERY
        searched = searched & ~weak
        if infeasible == "raise" and np.any(weak):
            _complain(found, family, target)
    rows = np.flatnonzero(searched)
    if len(rows):
        part = DPSGD(
            family.unknown,
            (len(rows),),
            {name: value[rows] for name, value in family.known.items()},
        )
        put(found, rows, search(part, flat.take(rows), tolerance, adjacency, progress, client))
    return found, closed


def _gaussian(family, target, tolerance, adjacency, mu):
    """Closed forms of compositions of Gaussian mechanisms whose μ at scale 1 is given."""
    number = int(np.prod(family.shape))
    if isinstance(target, Regret):
        found = empty(number)
        found.status[:] = EVERY
        return found, np.ones(number, bool)
    per_unit = (2.0 if Adjacency(adjacency).replaces else 1.0) * np.broadcast_to(
        mu, family.shape
    ).reshape(-1)
    found = closed_form.solve(target.flat(family.shape), family.unknown, per_unit, tolerance)
    return found, np.ones(number, bool)


def _search(family, target, tolerance, adjacency, progress, client=None):
    found = search(family, target.flat(family.shape), tolerance, adjacency, progress, client)
    return found, np.zeros(len(found.value), bool)


def _impossible(found: Solved, family):
    """Which elements have no answer; a sampling rate of 1 is one."""
    return (found.status == NONE) | (
        (found.status == EVERY) & (family.unknown is not SAMPLING_PROB)
    )


def _complain(found: Solved, family, target):
    """Raise for the first element that cannot be had."""
    bad = np.flatnonzero(_impossible(found, family))
    flat, row = target.flat(family.shape), bad[0]
    known = "".join(
        f", {name} {value[row]:g}" for name, value in getattr(family, "known", {}).items()
    )
    others = (
        f" (and {len(bad) - 1} more; infeasible='flag' leaves them in status)"
        if len(bad) > 1
        else ""
    )
    name = family.unknown.name
    why = (
        "is a target weaker than no noise: every"
        if found.status[row] == EVERY
        else "cannot be met: no"
    )
    if found.status[row] == EVERY and name != "noise_multiplier":
        why = "is met over the whole range searched: every"
    raise ValueError(f"target {_one(flat, row).describe()}{known} {why} {name} meets it{others}")


def _one(flat: Target, row: int) -> Target:
    return flat.take(np.array([row]))


def _finish(answer, family, target, tolerance, adjacency, infeasible) -> Calibration:
    """The result in the user's shape."""
    found, closed = answer
    shape = family.shape
    if infeasible == "raise" and np.any(_impossible(found, family)):
        _complain(found, family, target)

    def measure_tpr(fprs):
        """TPR of the calibrated mechanisms at a few FPRs, along one more axis."""
        some = np.flatnonzero(np.isfinite(found.value) & (found.status != EVERY))
        sides = np.full((2, len(found.value), len(fprs)), np.nan)
        if hasattr(family, "box"):
            for row in some:
                for k, fpr in enumerate(fprs):
                    sides[:, row, k] = family.box(float(found.value[row])).read(
                        TPR(0.5 + 0.5 * fpr, fpr)
                    )
        elif len(some):
            rows = np.repeat(some, len(fprs))
            asked = np.tile(np.asarray(fprs), len(some))
            mechanism = family.at(found.value[rows], rows)
            part = measure(
                mechanism, ("tpr",), fpr=asked, fpr_floor=0.5 * asked, adjacency=adjacency
            ).brackets["tpr"]
            sides[:, some] = np.reshape(part, (2, len(some), len(fprs)))
        return Bracket(*(side.reshape(*shape, len(fprs)) for side in sides))

    shaped = [
        (
            Bracket(*(side.reshape(shape) for side in a))
            if isinstance(a, Bracket)
            else a.reshape(shape)
        )
        for a in found
    ]
    value, achieved, rejected, rejected_achieved, status, iterations, evaluations = shaped
    return Calibration(
        value, achieved, rejected, rejected_achieved, status, iterations, evaluations,
        tolerance, target, family.unknown.name, adjacency, closed.reshape(shape), measure_tpr,
    )  # fmt: skip


__all__ = ["calibrate"]
