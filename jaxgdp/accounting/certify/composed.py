"""What composing a law on a circular lattice gives, whichever way it is done: block sums of the
T-fold self-composition of tilted lattice masses, with their error.
"""

from __future__ import annotations

from typing import NamedTuple

from ...numerics import namespace as xp
from ...numerics.errors import SUM_OF_LOGS, UNIT
from ...numerics.shapes import Array, Float
from .discretisation import Weights

_LARGEST = 300.0  # log of an error beyond which nothing is known


class Window(NamedTuple):
    """Where one law is composed, and under which tilt (unbatched).

    Attributes:
        start: offset (in points, from the sum of centres) of the first point of the first block.
        tilt: decay rate s of the block weights e^{−s·i·h}.
        h: lattice spacing, in nats.
        miss_low: tilt offset of the Chernoff bound on the mass that wraps around from below.
        miss_high: the same from above.
    """

    start: Float[Array, ""]
    tilt: Float[Array, ""]
    h: Float[Array, ""]
    miss_low: Float[Array, ""]
    miss_high: Float[Array, ""]


class Composed(NamedTuple):
    """Block sums of the composed, tilted masses W (unbatched); block k covers J_k < J ≤ J_k + M.

    Attributes:
        plain: Σ W_J·e^{−s(ℓ_J − t_k)} over the block, shape (blocks,), t_k the threshold before the
            block.
        split: the same, weighted with the share that connect-the-dots moves to the block's upper
            end.
        log_total: log of the composed normalisation Π M^T.
        roundoff: bound on the relative error of the normalisation.
        noise: root of the summed squares of the rounding errors of all W_J.
        escaped: bound on the truncation error: the mass that wraps around, and frequencies left
            out.
        sums: relative error of the block sums.
    """

    plain: Float[Array, " vertices"]
    split: Float[Array, " vertices"]
    log_total: Float[Array, ""]
    roundoff: Float[Array, ""]
    noise: Float[Array, ""]
    escaped: Float[Array, ""]
    sums: Array | float

    def guard(
        self, rate: Float[Array, ""], h: Float[Array, ""], size: Array | float
    ) -> Float[Array, ""]:
        """Bound on the error of Σ e^{−rate·i·h}·W over any stretch of the window (Cauchy–Schwarz).

        Method: docs/method/rounding.md#guard
        Method: docs/method/windows.md#escaped
        """
        terms = xp.minimum(-1.0 / xp.expm1(-2.0 * xp.maximum(rate * h, 1e-12)), size * 1.0)
        bound = 2.0 * self.noise * xp.sqrt(terms) + self.escaped
        # (what is not a number vouches for nothing)
        return xp.where(bound < xp.inf, bound, xp.inf)

    def sound(self) -> Composed:
        """Itself, or, where some block sum is not finite, no sums and an error of everything.

        Method: docs/method/rounding.md#guard
        """
        finite = xp.isfinite(
            xp.sum(self.plain) + xp.sum(self.split) + self.log_total + self.roundoff
        )
        clean = lambda a: xp.where(finite, a, 0.0)
        return Composed(
            clean(self.plain),
            clean(self.split),
            clean(self.log_total),
            clean(self.roundoff),
            self.noise,
            xp.where(finite, self.escaped, xp.inf),
            self.sums,
        )


def normalisation(
    weights: Weights, count: Float[Array, " components"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """log Π M^T of the composed masses and a bound on its error.

    Method: docs/method/rounding.md#shared
    """
    log_total = count @ weights.log_total
    whole = SUM_OF_LOGS[1] * UNIT * (count @ xp.abs(weights.log_total))
    return log_total, count @ weights.roundoff + whole


def root_of_squares(spectrum: Float[Array, " frequencies"], size: Array | float) -> Array:
    """Root of the summed squares of a law, by Parseval, from absolute values at its lowest
    frequencies, of ``size`` and both signs.
    """
    return xp.sqrt(2.0 * xp.sum(spectrum * spectrum) / size)


def growth_less_one(growth: Array) -> Array:
    """A bound on e^growth − 1 for a growth between 0 and 1: growth·(1 + growth)."""
    return growth * (1.0 + growth)


def change_of_powers(
    power: Float[Array, " frequencies"],
    log_power: Float[Array, " frequencies"],
    growth: Float[Array, " frequencies"],
) -> Float[Array, " frequencies"]:
    """Bound on the change of Π φ^T, of this absolute value, where each φ changes by δ; ``growth``
    is Σ T·log(1 + |δ/φ|), or more.

    |Π (φ + δ)^T − Π φ^T| ≤ Π (|φ| + |δ|)^T − Π |φ|^T, however large the change is.

    Method: docs/method/frequencies.md#second-order
    Method: docs/method/narrow.md#spectrum
    """
    small = growth < 1.0
    large = xp.exp(xp.where(small, -xp.inf, xp.minimum(log_power + growth, _LARGEST)))
    return xp.where(small, power * growth_less_one(growth), large)
