"""Group privacy of mechanisms whose groups are known."""

from __future__ import annotations

import numpy as np

from ..numerics.shapes import ArrayLike
from ..numerics.validation import checked, whole
from .base import AccountedBy, Mechanism
from .composition import Composition, as_composition
from .gaussian import Gaussian
from .groups import poisson_group
from .laplace import Laplace
from .pure_dp import PureDP
from .subsampled_gaussian import SubsampledGaussian


def group_privacy(
    mechanism: Mechanism | Composition | AccountedBy, records_per_user: ArrayLike
) -> Composition:
    """The mechanism for neighbours that differ in k records of one user, where that is known.

    Gaussian and Laplace noise: a sum moves by up to k, so the noise counts as k times less, which
    is exact. Poisson-subsampled Gaussian noise: the records enter one by one
    (:class:`GaussianMixture` with binomial weights), exact as well. ``PureDP(ε)``: k·ε, attained by
    some mechanism. For everything else :func:`jaxgdp.bridge.group_profile` bounds δ(ε) from above.

    Args:
        mechanism: a mechanism or composition of these.
        records_per_user: k, one whole number from 1 to 256.

    Returns:
        The composition for the group.

    Raises:
        ValueError: a part of another kind, or k out of range; names it.

    Example:
        >>> import jaxgdp
        >>> run = jaxgdp.compose([(jaxgdp.Gaussian(4.0), 4)])
        >>> bool(jaxgdp.mu(group_privacy(run, 3)).contains(1.5))
        True

    Method: docs/method/kahane.md#user-groups
    """
    records = checked("records_per_user", whole("records_per_user", records_per_user),
                      "one whole number from 1 to 256", lambda a: a <= 256.0)  # fmt: skip
    if np.ndim(records) != 0:
        raise ValueError(f"records_per_user must be one number, got shape {np.shape(records)}")
    composition = as_composition(mechanism)
    parts = tuple(_of_group(part, int(records)) for part in composition.mechanisms)
    return Composition(parts, composition.counts)


def _of_group(part: Mechanism, records: int) -> Mechanism:
    if records == 1:
        return part
    if isinstance(part, Gaussian):
        return Gaussian(part.noise_multiplier / records)
    if isinstance(part, Laplace):
        return Laplace(part.scale / records)
    if isinstance(part, PureDP):
        return PureDP(part.epsilon * records)
    if isinstance(part, SubsampledGaussian):
        sigma, p = np.broadcast_arrays(part.noise_multiplier, part.sampling_prob)
        if np.all(p == 1.0):
            return Gaussian(sigma / records)
        return poisson_group(sigma, p, np.full(p.shape, float(records)))
    raise ValueError(
        "mechanism must be made of Gaussian, SubsampledGaussian, Laplace and PureDP parts, whose"
        f" groups are known, got {type(part).__name__}: jaxgdp.bridge.group_profile bounds the"
        " others from above"
    )
