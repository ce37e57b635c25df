"""A product grid of DP-SGD settings in one call, as a labelled data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import options
from ._version import __version__
from .bracket import STATUS
from .measure import measure
from .mechanisms import dpsgd
from .numerics.validation import on_host, positive, probability, whole
from .quantities.registry import named


def _column(name, value, check):
    array = np.atleast_1d(check(name, value))
    if array.ndim != 1:
        raise ValueError(f"{name} must be a scalar or one-dimensional, got shape {array.shape}")
    return array


def sweep(
    noise_multiplier,
    sampling_prob,
    num_steps,
    quantities=("mu", "regret"),
    rtol=options.RTOL,
    fpr_floor=options.FPR_FLOOR,
    adjacency=options.ADJACENCY,
    delta=options.DELTA,
    epsilon=options.EPSILON,
    fpr=options.FPR,
    d=options.D,
    prior=options.PRIOR,
    progress=None,
    **others,
):
    """Certified quantities over the product of noise multipliers, sampling rates and numbers of steps.

    Each lattice shape is compiled once and the grid is cut into chunks, so memory stays bounded.

    Args:
        noise_multiplier: σ > 0, scalar or one-dimensional.
        sampling_prob: p in (0, 1], likewise.
        num_steps: whole numbers ≥ 1, likewise.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk",
            "approximate_mu" and whatever else is registered (``jaxgdp.quantities``).
        rtol: relative width asked of every bracket (of the regret: a width of rtol/10).
        fpr_floor: FPR floor of μ, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" (where every sampling rate is 1).
        delta: δ of "epsilon".
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta".
        d: of "approximate_mu".
        prior: of "bayes_risk", the probability that the record is absent. All of these are single numbers.
        progress: called with the number of settings finished, as they finish.
        **others: what quantities registered by others are asked at, single numbers.

    Returns:
        ``xarray.Dataset`` with dimensions noise_multiplier, sampling_prob, num_steps and, for each quantity q, the
        variables ``q`` (upper side: the one to report, but for "beta" and "bayes_risk"), ``q_lower`` and ``status_q`` (0 where ``rtol``
        was reached, 1 where not, 2 where its sides contradicted each other and it is withheld; brackets hold everywhere); ``status``, the
        worst of all quantities, and ``lattice_size``. Units and version are attributes.

    Raises:
        ValueError: an argument is out of range or a quantity unknown.
        TypeError: an argument is traced by JAX.

    Example:
        >>> grid = sweep(noise_multiplier=[1.0, 2.0], sampling_prob=1.0, num_steps=[1])
        >>> bool((grid.mu_lower <= 1.0)[0, 0, 0] & (grid.mu >= 1.0)[0, 0, 0])
        True
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("jaxgdp.sweep needs xarray: pip install 'jaxgdp[sweep]'") from None
    on_host("sweep", noise_multiplier, sampling_prob, num_steps, rtol, fpr_floor, delta, epsilon, fpr, d, prior, others)
    axes = {
        "noise_multiplier": _column("noise_multiplier", noise_multiplier, positive),
        "sampling_prob": _column("sampling_prob", sampling_prob, probability),
        "num_steps": _column("num_steps", num_steps, whole),
    }
    rates: dict[str, Any] = {
        "fpr_floor": fpr_floor,
        "delta": delta,
        "epsilon": epsilon,
        "fpr": fpr,
        "d": d,
        "prior": prior,
    } | others
    for name, value in rates.items():
        if np.ndim(value) != 0:
            raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    columns = [a.reshape(-1) for a in np.meshgrid(*axes.values(), indexing="ij")]
    found = measure(dpsgd(*columns), quantities, rtol=rtol, adjacency=adjacency, progress=progress, **rates)
    shape = tuple(len(a) for a in axes.values())

    meanings = "; ".join(f"{int(code)}: {text}" for code, text in STATUS.items())
    data = {}
    for name, bracket in found.brackets.items():
        record = named(name)
        attributes = {"long_name": record.long_name, "units": record.unit if record.unit == "nats" else "1"}
        if name in found.at:
            attributes["at"] = found.at[name]
        sides = (
            ("achieved by an attack", "safe to report") if record.grows else ("safe to report", "achieved by an attack")
        )
        lower, upper = (
            attributes | {"side": f"{side}: {what}"} for side, what in zip(bracket._fields, sides, strict=True)
        )
        data[name] = (tuple(axes), bracket.upper.reshape(shape), upper)
        data[f"{name}_lower"] = (tuple(axes), bracket.lower.reshape(shape), lower)
        told = {"long_name": f"status of {name}", "meaning": meanings}
        data[f"status_{name}"] = (tuple(axes), found.status[name].reshape(shape), told)
    told = {"long_name": "worst status of all quantities", "meaning": meanings}
    data["status"] = (tuple(axes), found.worst.reshape(shape), told)
    data["lattice_size"] = (tuple(axes), found.lattice_size.reshape(shape), {"long_name": "lattice points used"})
    attributes = {
        "title": "Certified privacy of DP-SGD",
        "jaxgdp_version": __version__,
        "fpr_floor": found.fpr_floor,
        "rtol": found.rtol,
        "adjacency": adjacency,
    }
    return xarray.Dataset(data, coords=axes, attrs=attributes)
