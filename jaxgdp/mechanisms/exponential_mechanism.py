"""The exponential mechanism, and whatever else has bounded range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.normal import pure_dp_mu, square_above
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import nonnegative
from ..pairs.cells import Cells
from ..pairs.known_curves import BoundedRangeCurve
from ..pairs.peak import bounded_nodes
from ..pairs.stretches import stretch_cells
from .base import EVERY_RECORD, Mechanism
from .bounded_range import LEAST_EPSILON, MOST_USES, BoundedRangeBlock
from .randomized_response import RandomizedResponse

_LARGEST = 700.0  # ε of a block beyond which its uses are composed one by one
_LEAST = 1e-9  # ε below this counts as this much


@pytree
@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """Any mechanism of ε-bounded range: losses in an interval of length ε (Durfee & Rogers 2019).

    The exponential mechanism with weights e^{ε·u/(2Δ)} on a score u of sensitivity Δ is, and so is
    report-noisy-max with Gumbel noise, its twin; so is binary randomized response at ε/2.
    Permute-and-flip at the same ε is not: of two candidates with scores 2Δ apart it picks the wrong
    one with probability ½·e^{−ε}, with equal scores either, and the losses between these lie ε +
    log(2 − e^{−ε}) apart. It is ε-DP: use ``PureDP``.

    If the interval is [t − ε, t], 0 ≤ t ≤ ε, the mechanism is dominated by a pair on its two ends,
    of profile (e^{−t} − e^{−ε})(e^t − e^g)/(1 − e^{−ε}) (Dong, Durfee & Rogers 2020, Lemma 3.2).
    The largest over t is at t = (ε + g)/2, and (1 − e^{(g − ε)/2})²/(1 − e^{−ε}) is itself a
    profile, for |g| ≤ ε: that of a loss with density e^{−ℓ/2}/(4·sinh(ε/2)) under P on [−ε, ε].
    This pair dominates every mechanism of ε-bounded range in both directions, whatever t, hence
    also every composition in which each mechanism and its t depend on earlier outputs.

    One use is μ-GDP with μ = −2Φ⁻¹(1/(1 + e^{ε/2})), and no less. For several uses of equal ε the
    largest profile of all adaptive choices is found by dynamic programming, 64 uses at a time
    (``bounded_range``), which is much tighter than composing the pair with itself (whose μ is up to
    15 % larger). The lower side of a bracket is an attack on one member of the family, randomized
    response at ε/2 every time. No member is the worst everywhere, so for several uses brackets do
    not close, whatever ``rtol``: they stay 1 to 6 % apart in μ.

    Args:
        epsilon: ε ≥ 0 in nats, the length of the interval; any shape.

    Raises:
        ValueError: ε is negative or not a finite number (before tracing).

    Example:
        >>> ExponentialMechanism(epsilon=[0.1, 1.0]).shape
        (2,)
    """

    epsilon: Parameter

    tight: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True
    undifferentiable: ClassVar[str] = (
        "the largest profile of several uses is found by a program on known numbers"
    )
    relation: ClassVar[str] = "those that the range was stated for"
    sampling: ClassVar[str] = EVERY_RECORD
    examples: ClassVar[dict] = {"ExponentialMechanism(1)": lambda: ExponentialMechanism(1.0)}

    def __post_init__(self) -> None:
        check_fields(self, epsilon=nonnegative)

    def known_curve(self) -> BoundedRangeCurve | None:
        """That of one use: each of its points is reached by some interval."""
        epsilon = np.asarray(float(self.epsilon))
        return BoundedRangeCurve(epsilon, epsilon) if epsilon > _LEAST else None

    def gathered(self, count: Array):
        """Blocks of up to 64 uses, with the dominating pair of each block."""
        epsilon, count = np.broadcast_arrays(self.epsilon, count)
        # (beyond, what the program adds up is no double)
        large = epsilon * (np.minimum(2.0 * count, MOST_USES) + 1.0) > _LARGEST
        if np.all(count == 1.0) or np.any(epsilon < LEAST_EPSILON) or np.any(large):
            return [(self, count)]
        whole = np.minimum(count, MOST_USES)
        rest = np.where(count > MOST_USES, count % MOST_USES, 0.0)
        most = int(np.max(whole))
        parts = [
            (BoundedRangeBlock.build(epsilon, whole, most), np.maximum(count // MOST_USES, 1.0))
        ]
        if np.any(rest > 0.0):
            parts.append((BoundedRangeBlock.build(epsilon, rest, most), np.ones_like(count)))
        return parts

    def lower_bound_member(self) -> RandomizedResponse:
        """The mechanism of ε-bounded range on which the attack of the lower side is run."""
        return RandomizedResponse(0.5 * self.epsilon, np.full((), 2.0))

    def loss_nodes(self, depth: Array | float):
        """Means of narrow cells."""
        return bounded_nodes(self)

    def tail_precision(self):
        """μ² with μ = −2Φ⁻¹(1/(1 + e^{ε/2})): the largest of all t is where t = ε/2.

        With w(ℓ) = e^{ℓ/2} times the density of the loss under P, D(x) = e^{−x/2}·δ(x) is ∫_x^∞
        2·sinh((ℓ − x)/2)·w(ℓ) dℓ, so that D'' = D/4 + w. The dominating pair of all t has w
        constant on [−ε, ε]; a Gaussian pair has a normal w. Both are symmetric and, with this μ,
        have the same error rate at ℓ = 0, so the difference E = D_μ − D has E(0) = E'(0) = 0, and
        E(x) > 0 for x ≥ ε. On [0, ε] the difference w_μ − w falls: it is positive up to some y₀ and
        negative beyond. Were y₀ = 0, E would be negative on all of (0, ε], which it is not at ε. So
        E ≥ 0 up to y₀; and beyond, E could only turn negative and come back through a minimum,
        where 0 ≤ E'' = E/4 + w_μ − w < 0. Hence δ ≤ δ_μ everywhere, and every single t, a chord of
        the same curve, too."""
        return square_above(pure_dp_mu(0.5 * self.epsilon))

    def loss_bounds(self):
        """∓ε."""
        largest = xp.maximum(self.epsilon, _LEAST)
        return -largest, largest

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells of the dominating pair (unbatched).

        A stretch of width w about the loss m has P-mass e^{−m/2}·sinh(w/4)/sinh(ε/2) and Q-mass e^m
        times that."""
        low, high = self.loss_bounds()
        edge = xp.clip(xp.concatenate([low[None], ell, high[None]]), low, high)
        width, middle = xp.diff(edge), 0.5 * (edge[1:] + edge[:-1])
        some = width > 0.0
        w = xp.where(some, width, 1.0)
        # e^{−m/2}·sinh(w/4)/sinh(ε/2), written from the cell's lower end
        log_x = -0.5 * (edge[:-1] - low) + xp.log(xp.expm1(-0.5 * w) / xp.expm1(-high))
        return stretch_cells(xp.where(some, log_x, -xp.inf), middle, ell, end)

    def replace_one(self) -> ExponentialMechanism:
        """Itself, for a bound on the range that holds for replacing a record."""
        return self
