"""``compare_implementations``: what the way in which a step is coded does to its guarantee."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import options
from ..bracket import Bracket
from ..measure import measure
from ..mechanisms import Deterministic, DrawnBatchSize, Shuffled, compose, dpsgd
from ..numerics.validation import one_number, open_unit, positive, whole

_MISSED = 0.125  # of δ: chance that some batch is larger than an attack allows for
_EMPTY = 0.25  # of δ: e^ε times the chance that a batch has none of the other records


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

    def epsilon(mechanism: object) -> Bracket:
        found = measure(mechanism, "epsilon", delta=d, rtol=rtol)["epsilon"]  # type: ignore[arg-type]
        return Bracket(float(found.lower), float(found.upper))

    rows = [
        Implementation("divided by the expected size", epsilon(dpsgd(sigma, rate, steps)),
                       "Poisson batches, as they are accounted for"),
    ]  # fmt: skip
    for known, relation in ((True, "zeroed"), (False, "added or removed")):
        step = DrawnBatchSize(sigma, rate, n, known)
        rows.append(
            Implementation(
                f"divided by the drawn size, a record {relation}",
                epsilon(compose([(step, steps)])),
                "noise is added to the sum: the size is told, and nothing else",
            )
        )
    rows += [
        Implementation("shuffled batches", epsilon(Shuffled(sigma, batches, epochs)),
                       "each record in one batch an epoch; a last batch that is dropped is in it"),
        Implementation("batches in a fixed order", epsilon(Deterministic(sigma, epochs)),
                       "everybody knows which batch a record is in"),
        Implementation("noise of the expected size on a mean over the drawn size",
                       Bracket(_mean_over_drawn(sigma, rate, n, b, steps, d), math.inf),
                       "a record turns the mean by 2/k, and small batches have too little noise"),
        Implementation("means of micro-batches clipped in place of gradients",
                       Bracket(float(epsilon(dpsgd(0.5 * sigma, rate, steps)).lower), math.inf),
                       "one record turns a clipped mean around: twice the sensitivity at least"),
    ]  # fmt: skip
    return Implementations(rows)


def _mean_over_drawn(
    sigma: float, rate: float, number: int, batch: int, steps: int, delta: float
) -> float:
    """ε that an attack reaches: all other gradients oppose the record, so that the mean of k moves
    by 2/k, at noise σ/b.

    Batches of more than a bound are given up, which lowers the TPR by the probability that one is
    drawn; where no other record is drawn the mean is another one, which may raise the FPR by that
    probability. The attack at the bound has 1.5·δ, and loses less than δ/2 of it to both.

    Method: docs/method/implementations.md#mean
    """
    from scipy.stats import binom  # (slow to load)

    asked = 1.5 * delta
    if asked >= 1.0:
        return 0.0
    largest = float(binom.isf(_MISSED * delta / steps, number - 1, rate)) + 1.0
    attacked = dpsgd(0.5 * sigma * largest / batch, rate, steps)
    own = measure(attacked, "epsilon", delta=asked, adjacency="remove")["epsilon"]
    empty = steps * (1.0 - rate) ** (number - 1)
    most = math.log(_EMPTY * delta / empty) if empty > 0.0 else math.inf
    return max(min(float(own.lower), most), 0.0)
