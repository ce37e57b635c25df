"""Group privacy of any mechanism, from above: k neighbours in a row."""

from __future__ import annotations

import numpy as np

from .. import options
from ..mechanisms import Composition, FromProfile, as_composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array, Float
from ..numerics.validation import checked, whole
from ..tradeoff import TradeoffCurve, tradeoff

_GRID = 400  # values of ε of one record, on either side of 0
_LEAST, _LARGEST = 1e-20, 600.0  # δ up to which they reach, and the largest ε of a group


def group_profile(
    mechanism: Mechanism | Composition, records_per_user: int, rtol: float = options.RTOL
) -> FromProfile:
    """What k records of one user may show at most, as a profile (ε, δ).

    Between two data sets that differ in k records there are k neighbouring steps, so the TPR at an
    FPR is at most that of one record, k times over: T_k = T ∘ … ∘ T, that is f_k = 1 − (1 − f)^∘k
    (Dong, Roth & Su 2022, Theorem 2.14). As T(α) ≤ e^b·α + δ(b) for every b, that gives
    δ_k(a + b) ≤ δ_{k−1}(a) + e^a·δ(b), least over a grid of a and b. The upper
    sides of the mechanism's own bracket are taken, so the profile is an upper bound, no lower one:
    where the mechanism of the group is known, use :func:`jaxgdp.group_privacy`.

    Args:
        mechanism: any mechanism or composition, unbatched, for add-or-remove neighbours.
        records_per_user: k, a whole number from 1 to 256.
        rtol: relative width asked of every bracket.

    Returns:
        ``FromProfile``: its **upper** sides hold for the group; its lower ones are those of the
        profile, not of the mechanism.

    Raises:
        ValueError: a batch, k out of range, or a group so large that nothing is bounded for it up
            to an ε of some hundred.

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
    curve = tradeoff(composition, rtol=rtol)
    step, one = _profile(curve, records)
    found, many = one, 1  # (δ at whole multiples of the step from −_GRID on)
    while many < records:
        found, many = _chained(found, one, step), many + 1
    epsilon = step * np.arange(len(found) - _GRID)
    delta = np.minimum.accumulate(np.clip(found[_GRID:] * (1.0 + 1e-9), 1e-300, 1.0))
    if delta[-1] >= 1.0:
        raise ValueError(
            "records_per_user must be so small that delta of the group is below 1 at an epsilon of"
            f" {epsilon[-1]:.4g}, got {records}"
        )
    return FromProfile(epsilon, delta)


def _profile(curve: TradeoffCurve, records: int) -> tuple[float, Float[Array, " points"]]:
    """A step, and upper bounds on δ at −_GRID … _GRID times it: δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""
    deepest = min(float(curve.epsilon(delta=_LEAST).upper), _LARGEST / (2.0 * records))
    step = max(deepest, 1e-9) / _GRID
    epsilon = step * np.arange(_GRID + 1)
    upper = np.clip(np.asarray(curve.delta(epsilon=epsilon).upper, float), 0.0, 1.0)
    negative = 1.0 - np.exp(-epsilon[:0:-1]) * (1.0 - upper[:0:-1])
    return step, np.append(np.minimum(negative * (1.0 + 1e-12), 1.0), upper)


def _chained(
    first: Float[Array, " long"], second: Float[Array, " points"], step: float
) -> Float[Array, " longer"]:
    """min over a + b of first(a) + e^a·second(b), from −_GRID steps on."""
    out = np.full(len(first) + _GRID, 1.0)
    factor = np.exp(step * (np.arange(len(first)) - _GRID))
    for j, delta in enumerate(second):
        # a = (i − _GRID) steps, b = (j − _GRID) steps, a + b at place i + j − _GRID
        low = max(_GRID - j, 0)
        place = np.arange(low, len(first)) + j - _GRID
        np.minimum.at(out, place, (first + factor * delta)[low:])
    return out
