"""From mechanisms of the package to uses in balls: their fields are read, and nothing else.

Every number is the double that the field holds, exactly. What the class documents about the pair is
stated here again, on purpose: a proof shares no formula with what it proves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import mechanisms
from .balls import Ball, exact
from .compose import Part
from .uses import DiscreteNormal, Finite, Masses, SampledGaussian, SampledLaplace, Use, pure


def _number(mechanism: Any, name: str) -> float:
    return float(np.asarray(getattr(mechanism, name)))


def _ball(mechanism: Any, name: str) -> Ball:
    return exact(_number(mechanism, name))


def _gaussian(mechanism: Any) -> Use:
    sigma = _ball(mechanism, "noise_multiplier")
    return SampledGaussian(sigma * sigma, exact(1))


def _deterministic(mechanism: Any) -> Use:
    """E epochs have the noise σ/√E."""
    sigma = _ball(mechanism, "noise_multiplier")
    return SampledGaussian(sigma * sigma / _ball(mechanism, "num_epochs"), exact(1))


def _sampled_gaussian(mechanism: Any) -> Use:
    sigma = _ball(mechanism, "noise_multiplier")
    return SampledGaussian(sigma * sigma, _ball(mechanism, "sampling_prob"))


def _laplace(mechanism: Any) -> Use:
    return SampledLaplace(1 / _ball(mechanism, "scale"), exact(1))


def _sampled_laplace(mechanism: Any) -> Use:
    return SampledLaplace(1 / _ball(mechanism, "scale"), _ball(mechanism, "sampling_prob"))


def _discrete_gaussian(mechanism: Any) -> Use:
    return DiscreteNormal(_ball(mechanism, "sigma"), int(_number(mechanism, "sensitivity")))


def _discrete_laplace(mechanism: Any) -> Use | None:
    """Every integer has a loss of 1/b or −1/b: randomized response at ε = 1/b."""
    return pure(1 / _ball(mechanism, "scale"), exact(0))


def _pure_dp(mechanism: Any) -> Use | None:
    return pure(_ball(mechanism, "epsilon"), exact(0))


def _approximate_dp(mechanism: Any) -> Use | None:
    return pure(_ball(mechanism, "epsilon"), _ball(mechanism, "delta"))


def _randomized_response(mechanism: Any) -> Use | None:
    others = int(_number(mechanism, "num_categories")) - 2
    return pure(_ball(mechanism, "epsilon"), exact(0), others)


def _from_pmfs(mechanism: Any) -> Use:
    """Each number over the exact sum of all numbers of its side."""
    rows = (np.asarray(side, float).reshape(-1) for side in (mechanism.p, mechanism.q))
    p, q = ([exact(value) for value in row] for row in rows)
    all_p, all_q = sum(p, exact(0)), sum(q, exact(0))
    return Finite(tuple(Masses(b / all_q, a / all_p) for a, b in zip(p, q, strict=True)))


_READERS: dict[type, Callable[[Any], Use | None]] = {
    mechanisms.Gaussian: _gaussian,
    mechanisms.Deterministic: _deterministic,
    mechanisms.SubsampledGaussian: _sampled_gaussian,
    mechanisms.Laplace: _laplace,
    mechanisms.SubsampledLaplace: _sampled_laplace,
    mechanisms.DiscreteGaussian: _discrete_gaussian,
    mechanisms.DiscreteLaplace: _discrete_laplace,
    mechanisms.PureDP: _pure_dp,
    mechanisms.ApproximateDP: _approximate_dp,
    mechanisms.RandomizedResponse: _randomized_response,
    mechanisms.FromPMFs: _from_pmfs,
}


def provable() -> list[str]:
    """Names of the mechanisms that can be proven."""
    return sorted(kind.__name__ for kind in _READERS)


def parts_of(mechanism: Any) -> list[Part]:
    """The uses of a mechanism or composition, with Gaussian noise without sampling as one use.

    Raises:
        ValueError: it is a batch, or has a part that cannot be proven; names the part.
    """
    composition = mechanisms.as_composition(mechanism)
    if composition.shape != ():
        raise ValueError(
            "mechanism must be one setting, got a batch of shape"
            f" {composition.shape}; prove its settings one after the other"
        )
    counts: dict[bytes, list] = {}
    for part, count in zip(composition.mechanisms, composition.counts, strict=True):
        if type(part) not in _READERS:
            raise ValueError(
                f"mechanism must be made of {', '.join(provable())}, got {type(part).__name__}, of"
                " which no proof in exact integers is known"
            )
        fields = [np.asarray(getattr(part, name), float) for name in part.given_fields()]
        key = type(part).__name__.encode() + b"".join(
            str(field.shape).encode() + field.tobytes() for field in fields
        )
        counts.setdefault(key, [part, 0])[1] += int(np.asarray(count))
    read = [(_READERS[type(part)](part), number) for part, number in counts.values()]
    return _merged([Part(use, number) for use, number in read if use is not None])


def _merged(parts: Sequence[Part]) -> list[Part]:
    """Gaussian noise without sampling adds up: 1/σ² = Σ 1/σ_i²."""
    precision, others = exact(0), []
    for part in parts:
        if isinstance(part.use, SampledGaussian) and part.use.plain:
            precision += part.count / part.use.variance
        else:
            others.append(part)
    if precision > 0:
        others.append(Part(SampledGaussian(1 / precision, exact(1)), 1))
    return others
