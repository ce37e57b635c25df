"""A product grid of DP-SGD settings in one call, as a labelled data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._version import __version__
from .accounting.engine import STATUS
from .measure import measure
from .mechanisms import dpsgd
from .numerics.validation import positive, probability, whole

_LONG_NAMES = {
    "mu": "Gaussian-DP parameter over FPRs from the floor to f(floor)",
    "regret": "regret of reporting the upper mu",
    "advantage": "membership advantage",
    "epsilon": "epsilon at the given delta",
    "delta": "delta at the given epsilon",
    "tpr": "largest true positive rate at the given FPR",
    "beta": "least false negative rate at the given FPR",
    "bayes_risk": "least error probability of an attacker with the given prior",
    "approximate_mu": "d-approximate Gaussian-DP parameter",
}
_SAFE_BELOW = ("beta", "bayes_risk")


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
    rtol=1e-3,
    fpr_floor=1e-10,
    adjacency="add_remove",
    delta=1e-5,
    epsilon=1.0,
    fpr=1e-3,
    d=1e-10,
    prior=0.5,
    progress=None,
):
    """Certified quantities over the product of noise multipliers, sampling rates and numbers of steps.

    Each lattice shape is compiled once and the grid is cut into chunks, so memory stays bounded.

    Args:
        noise_multiplier: σ > 0, scalar or one-dimensional. sampling_prob: p in (0, 1]. num_steps: whole numbers ≥ 1.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk",
            "approximate_mu".
        rtol: relative width asked of the μ bracket. fpr_floor: FPR floor of μ, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" (where every sampling rate is 1).
        delta: δ of "epsilon". epsilon: ε of "delta", nats. fpr: FPR of "tpr" and "beta". d: of "approximate_mu".
        prior: of "bayes_risk", the probability that the record is absent. All of these are single numbers.
        progress: called with the number of settings finished, as they finish.

    Returns:
        ``xarray.Dataset`` with dimensions noise_multiplier, sampling_prob, num_steps and, for each quantity q, the
        variables ``q`` (upper side: the one to report, but for "beta" and "bayes_risk") and ``q_lower``; ``status`` (0 where
        ``rtol`` was reached; brackets hold everywhere) and ``lattice_size``. Units and version are attributes.

    Raises:
        ValueError: an argument is out of range or a quantity unknown (before tracing).

    Example:
        >>> grid = sweep(noise_multiplier=[1.0, 2.0], sampling_prob=1.0, num_steps=[1])
        >>> bool((grid.mu_lower <= 1.0)[0, 0, 0] & (grid.mu >= 1.0)[0, 0, 0])
        True
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("jaxgdp.sweep needs xarray: pip install 'jaxgdp[sweep]'") from None
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
    }
    for name, value in rates.items():
        if np.ndim(value) != 0:
            raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    columns = [a.reshape(-1) for a in np.meshgrid(*axes.values(), indexing="ij")]
    found = measure(dpsgd(*columns), quantities, rtol=rtol, adjacency=adjacency, progress=progress, **rates)
    shape = tuple(len(a) for a in axes.values())

    data = {}
    for name, bracket in found.brackets.items():
        attributes = {"long_name": _LONG_NAMES[name], "units": "nats" if name == "epsilon" else "1"}
        if name in found.at:
            attributes["at"] = found.at[name]
        sides = "lower: safe to report", "upper: achieved by an attack"
        if name not in _SAFE_BELOW:
            sides = "lower: achieved by an attack", "upper: safe to report"
        lower, upper = (attributes | {"side": side} for side in sides)
        data[name] = (tuple(axes), bracket.upper.reshape(shape), upper)
        data[f"{name}_lower"] = (tuple(axes), bracket.lower.reshape(shape), lower)
    meanings = "; ".join(f"{code}: {text}" for code, text in STATUS.items())
    data["status"] = (
        tuple(axes),
        np.max(list(found.status.values()), axis=0).reshape(shape),
        {"long_name": "status", "meaning": meanings},
    )
    data["lattice_size"] = (tuple(axes), found.lattice_size.reshape(shape), {"long_name": "lattice points used"})
    attributes = {
        "title": "Certified privacy of DP-SGD",
        "jaxgdp_version": __version__,
        "fpr_floor": found.fpr_floor,
        "rtol": found.rtol,
        "adjacency": adjacency,
    }
    return xarray.Dataset(data, coords=axes, attrs=attributes)
