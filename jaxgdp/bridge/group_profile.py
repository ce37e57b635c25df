"""Group privacy of any mechanism, from above: k neighbours in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import options
from ..measure import measure
from ..mechanisms import Composition, FromProfile, as_composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array, Float
from ..numerics.validation import checked, whole

_GRID = 400  # FPRs
_LEAST = 1e-60  # smallest FPR that is looked at


def group_profile(
    mechanism: Mechanism | Composition, records_per_user: int, rtol: float = options.RTOL
) -> FromProfile:
    """What k records of one user may show at most, as a profile (ε, δ).

    Between two data sets that differ in k records there are k neighbouring steps, so the TPR at an
    FPR is at most that of one record, k times over: T_k = T ∘ … ∘ T, that is f_k = 1 − (1 − f)^∘k
    (Dong, Roth & Su 2022, Theorem 2.14). The upper sides of the mechanism's own bracket are taken,
    and between two FPRs the larger TPR, so the profile is an upper bound. It is no lower one:
    where the mechanism of the group is known, use :func:`jaxgdp.mechanisms.of_groups.group_privacy`.

    Args:
        mechanism: any mechanism or composition, unbatched, for add-or-remove neighbours.
        records_per_user: k, a whole number from 1 to 256.
        rtol: relative width asked of every bracket.

    Returns:
        ``FromProfile``: its **upper** sides hold for the group; its lower ones are those of the
        profile, not of the mechanism.

    Raises:
        ValueError: a batch, or k out of range.

    Example:
        >>> import jaxgdp
        >>> found = group_profile(jaxgdp.Gaussian(2.0), 2)
        >>> exact = jaxgdp.delta(jaxgdp.Gaussian(1.0), epsilon=1.0).upper
        >>> bool(exact <= jaxgdp.delta(found, epsilon=1.0).upper <= 1.05 * exact)
        True

    Method: docs/method/kahane.md#user-groups
    """
    records = int(
        checked(
            "records_per_user",
            whole("records_per_user", records_per_user),
            "one whole number from 1 to 256",
            lambda a: a <= 256.0,
        )  # fmt: skip
    )
    composition = as_composition(mechanism)
    if composition.shape:
        raise ValueError(f"mechanism must be one, unbatched, got shape {composition.shape}")
    fpr = np.concatenate([np.geomspace(_LEAST, 1e-6, _GRID // 4), np.geomspace(1e-6, 1.0, _GRID)])
    fpr = np.unique(np.append(fpr, 1.0 - np.geomspace(1e-9, 0.5, _GRID // 2)))[:-1]
    rate = fpr.copy()
    for _ in range(records):
        rate = _tpr(composition, rate, rtol)
    # δ(ε) = sup_α T(α) − e^ε·α, with T of the right end and α of the left end of every interval
    left, right = np.append(0.0, fpr), np.append(rate, 1.0)
    slopes = np.diff(right) / np.maximum(np.diff(left), 1e-300)
    top = float(np.log(np.maximum(slopes.max(), 1.0)))
    epsilon = np.linspace(0.0, min(top + 1.0, 600.0), 4 * _GRID)
    delta = np.array([float(np.max(right - np.exp(e) * left)) for e in epsilon])
    delta = np.clip(delta * (1.0 + 1e-12), 1e-300, 1.0)
    return FromProfile(epsilon, delta)


def _tpr(composition: Composition, fpr: Float[Array, " rates"], rtol: float) -> Array:
    """Upper bounds on the TPR at increasing FPRs."""
    inside = (fpr > 0.0) & (fpr < 1.0)
    found: Any = np.array(fpr)
    if np.any(inside):
        some = fpr[inside]
        batch = Composition(
            composition.mechanisms,
            tuple(np.broadcast_to(count, some.shape) for count in composition.counts),
        )
        upper = measure(batch, "tpr", fpr=some, rtol=rtol, fpr_floor=1e-300).brackets["tpr"].upper
        found[inside] = np.minimum(upper, 1.0)
    return np.maximum.accumulate(np.maximum(found, fpr))
