"""``compare_implementations``: what the way in which a step is coded does to its guarantee."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import options
from ..bracket import Bracket
from ..measure import measure
from ..mechanisms import Deterministic, Shuffled, dpsgd
from ..numerics.validation import one_number, open_unit, positive, whole
from ..samplers import Setting
from .implementations import WAYS


class Implementation(NamedTuple):
    """One way to code a step, and the ε of the run.

    Attributes:
        name: of the way.
        epsilon: bracket at ``delta``; the upper side is ∞ where no guarantee is known.
        reason: why, in words.
    """

    name: str
    epsilon: Bracket
    reason: str


class Implementations(tuple[Implementation, ...]):
    """The rows of :func:`compare_implementations`; a table where it is printed."""

    def __str__(self) -> str:
        wide = max(len(row.name) for row in self)
        return "\n".join(
            f"{row.name:<{wide}}  [{float(row.epsilon.lower):.4g}, {float(row.epsilon.upper):.4g}]"
            f"  {row.reason}"
            for row in self
        )


def compare_implementations(
    noise_multiplier: float,
    dataset_size: int,
    batch_size: int,
    num_epochs: int = 1,
    *,
    delta: float = options.DELTA,
    rtol: float = options.RTOL,
) -> Implementations:
    """ε of one training as it may have been coded: batches, sizes, means.

    Args:
        noise_multiplier: σ > 0.
        dataset_size: n, a whole number ≥ 1.
        batch_size: b, expected records of a batch, from 1 to n.
        num_epochs: E, a whole number ≥ 1.
        delta: δ in (0, 1).
        rtol: requested relative width; brackets that do not close stay wider.

    Returns:
        One :class:`Implementation` a row; where the upper side is ∞, the lower one refutes smaller
        claims.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> rows = compare_implementations(1.0, 100, 20)
        >>> rows[0].name, bool(rows[-1].epsilon.lower > rows[0].epsilon.upper)
        ('divided by the expected size', True)

    Method: docs/method/implementations.md#mean
    """
    sigma = float(positive("noise_multiplier", noise_multiplier))
    for name, value in (("dataset_size", dataset_size), ("batch_size", batch_size)):
        whole(name, value)
    n, b, epochs = int(dataset_size), int(batch_size), int(whole("num_epochs", num_epochs))
    if b > n:
        raise ValueError(f"batch_size must be at most dataset_size = {n}, got {b}")
    d = one_number("delta", open_unit("delta", delta), "in (0, 1)", lambda a: (a > 0) & (a < 1))
    rate, steps, batches = b / n, math.ceil(epochs * n / b), math.ceil(n / b)
    at = Setting(sigma, batches, epochs, rate, b, n, num_steps=steps)

    def epsilon(mechanism: object) -> Bracket:
        found = measure(mechanism, "epsilon", delta=d, rtol=rtol)["epsilon"]  # type: ignore[arg-type]
        return Bracket(float(found.lower), float(found.upper))

    rows = [
        Implementation("divided by the expected size", epsilon(dpsgd(sigma, rate, steps)),
                       "Poisson batches, as they are accounted for"),
    ]  # fmt: skip
    rows += [Implementation(way.title, epsilon(way.make(at)), way.reason) for way in WAYS]
    rows[3:3] = [
        Implementation("shuffled batches", epsilon(Shuffled(sigma, batches, epochs)),
                       "each record in one batch an epoch; a last batch that is dropped is in it"),
        Implementation("batches in a fixed order", epsilon(Deterministic(sigma, epochs)),
                       "everybody knows which batch a record is in"),
    ]  # fmt: skip
    return Implementations(rows)
