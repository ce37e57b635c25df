"""Sampling before a mechanism: its privacy profile, and the sample (Balle et al. 2020, Theorem 8).

Each record enters with probability p. If neighbours differ by one record, the outputs of the larger
data set follow (1 − p)·P + p·Q, and with ε′ = log(1 + p(e^ε − 1)) the excess over e^{ε′}·P is p·(Q
− e^ε·P): δ′(ε′) = p·δ(ε). The other order of the neighbours has no more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array
from ..numerics.validation import probability, whole
from ..tradeoff import TradeoffCurve
from .clip_rectify import ROOM, Amplified, curve_of_both_orders, points
from .head import RTOL
from .identify import identify
from .profile import refine
from .source import as_source

_WORD = 2.0**32
_LEAST = 1e-30  # δ at which statements about a profile without end are enough


def subsample(source: Any, sampling_prob: float, *, rtol: float = RTOL) -> Amplified:
    """The mechanism on a Poisson sample of the records (Balle et al. 2020, Theorem 8).

    Args:
        source: a mechanism, a composition (all of it run on one sample), or a trade-off curve;
            scalar, for adding or removing a record.
        sampling_prob: p in (0, 1].
        rtol: requested relative width of the bracket of μ, in [1e-8, 1).

    Returns:
        An :class:`Amplified`. For one use of ``Gaussian``, ``Laplace`` or their subsampled forms,
        ``mechanism`` is the exact one; else one that dominates it.

    Raises:
        ValueError: an argument is out of range or batched.

    Example:
        >>> import jaxgdp
        >>> [round(subsample(jaxgdp.Laplace(1.0), p).mu.upper, 3) for p in (1.0, 0.5, 0.25)]
        [1.03, 0.526, 0.278]
    """
    p = float(probability("sampling_prob", sampling_prob))
    known = as_source(source, 0.5 * rtol)
    curve = curve_of_both_orders(known, ("add_remove",))
    most = _end(curve)
    epsilon, delta = points(known, most, rtol)
    after = np.log1p(p * np.expm1(epsilon)) * (1.0 + ROOM)
    profile = refine(after, np.minimum(p * delta * (1.0 + ROOM), 1.0))
    exact = _exact(curve.mechanism, p)
    mu = identify(profile if exact is None else exact, rtol=rtol).everywhere
    return Amplified(profile.mechanism if exact is None else exact, profile, mu, 1.0 - p)


def _end(curve: TradeoffCurve) -> float:
    """The ε from which on δ is 0, small enough, or no more than what no ε does away with."""
    epsilon = 1.0
    while epsilon < 600.0:
        delta = float(curve.delta(epsilon).upper)
        if delta <= _LEAST or delta <= float(curve.delta(2.0 * epsilon).upper):
            break
        epsilon *= 2.0
    low, high = 0.5 * epsilon, epsilon
    if float(curve.delta(high).upper) == 0.0:
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if float(curve.delta(middle).upper) == 0.0 else (middle, high)
    return high


def _exact(composition: Composition, p: float) -> Mechanism | None:
    """The subsampled form of one use of a mechanism that has one."""
    if len(composition.mechanisms) != 1 or float(composition.counts[0]) != 1.0:
        return None
    return composition.mechanisms[0].subsampled(p)


def poisson_mask(number: int, sampling_prob: float, *, rng: Any) -> Array:
    """Which records are in the sample: each with probability p, down to a multiple of 2⁻³².

    Args:
        number: of records, a whole number ≥ 1.
        sampling_prob: p in (0, 1].
        rng: a ``numpy.random.Generator``, or a JAX key used for nothing else (which may be traced).

    Returns:
        A bool array of shape (number,), of NumPy or of JAX as ``rng`` is. It is secret, as is the
        number of records in it.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> int(poisson_mask(10_000, 0.25, rng=np.random.default_rng(0)).sum())
        2531
    """
    number, p = int(whole("number", number)), float(probability("sampling_prob", sampling_prob))
    least = math.floor(p * _WORD)
    if isinstance(rng, np.random.Generator):
        return rng.integers(0, 2**32, number, dtype=np.uint64) < np.uint64(least)
    import jax
    import jax.numpy as jnp

    if p == 1.0:
        return jnp.ones(number, bool)
    return jax.random.bits(rng, (number,), jnp.uint32) < jnp.uint32(least)
