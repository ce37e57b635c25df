"""DP-SGD, a tree and banded strategies side by side: the noise for one goal, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from .. import options
from ..calibration import calibrate
from ..mechanisms import MatrixMechanism
from ..numerics.shapes import Array, Float
from ..numerics.validation import checked, whole
from ..participation import BallsInBins, CyclicPoisson, MinSeparation, Participation
from ..targets import Target

_MOST_STEPS = 4096
FIXED, POISSON, BALLS = "fixed order", "Poisson", "balls in bins"


class StrategyRow(NamedTuple):
    """One strategy with one way of taking part.

    Attributes:
        strategy: its name.
        sampling: how records get into the steps.
        bands: diagonals of the strategy that are not 0.
        noise_multiplier: the least noise that provably meets the goal, for columns of norm 1.
        lower, upper: the certified bracket of the goal's quantity at that noise.
        error: root mean squared error of the prefix sums, over the clipping norm.
    """

    strategy: str
    sampling: str
    bands: int
    noise_multiplier: float
    lower: float
    upper: float
    error: float


@dataclass(frozen=True)
class StrategyComparison:
    """Strategies at the same accepted risk; from :func:`compare_strategies`.

    Attributes:
        rows: one :class:`StrategyRow` for each.
        goal: the accepted risk, in words.
        num_steps, num_epochs: of the run.
    """

    rows: tuple[StrategyRow, ...]
    goal: str
    num_steps: int
    num_epochs: int

    def __str__(self) -> str:
        wide = max(len("strategy"), *(len(row.strategy) for row in self.rows))
        title = (
            f"{self.num_steps} steps, {self.num_epochs} epochs, {self.goal}: the least noise, and"
            " the error of prefix sums"
        )
        head = (
            f"{'strategy':<{wide}}  {'sampling':<13}  {'noise':>9}  {'bracket':>22}  {'error':>9}"
        )
        lines = [
            f"{r.strategy:<{wide}}  {r.sampling:<13}  {r.noise_multiplier:>9.5g}"
            f"  {f'[{r.lower:.5g}, {r.upper:.5g}]':>22}  {r.error:>9.5g}"
            for r in self.rows
        ]
        return "\n".join([title, head, *lines])

    def best(self) -> StrategyRow:
        """The row with the least error."""
        return min(self.rows, key=lambda row: row.error)


def root_coefficients(number: int) -> Float[Array, " bands"]:
    """First coefficients of the square root of prefix sums: binom(2k, k)/4^k.

    Example:
        >>> root_coefficients(4).tolist()
        [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1.0, number)
    return np.cumprod(np.append(1.0, 1.0 - 0.5 / k))


def tree_strategy(number: int) -> Float[Array, "steps steps"]:
    """A lower triangular C with CᵀC = TᵀT, T the nodes of a binary tree over the steps."""
    nodes, width = [], 1
    while width < 2 * number:
        starts = range(0, number, width)
        nodes += [((np.arange(number) >= s) & (np.arange(number) < s + width)) for s in starts
                  if width == 1 or s + width // 2 < number]  # fmt: skip
        width *= 2
    tree = np.array(nodes, float)
    product = tree.T @ tree
    # (of the reversed matrix, so that the factor is lower triangular with CᵀC the product)
    return np.tril(np.linalg.cholesky(product[::-1, ::-1])[::-1, ::-1].T)


def prefix_error(c: Float[Array, "steps steps"]) -> float:
    """Root mean squared error of the prefix sums over σ: ‖A·C⁻¹‖_F/√n, A the lower triangle."""
    number = len(c)
    inverse = solve_triangular(c, np.eye(number), lower=True)
    return float(np.sqrt((np.cumsum(inverse, axis=0) ** 2).sum() / number))


def compare_strategies(
    target: Target,
    num_steps: int,
    num_epochs: int = 1,
    *,
    bands: Iterable[int] = (4, 16),
    balls_in_bins: bool = False,
    rtol: float = options.RTOL,
) -> StrategyComparison:
    """The noise that DP-SGD, a tree and banded strategies need, and the error that is left.

    Every record is used ``num_epochs`` times (with sampling, on average) in so many steps, all
    strategies have columns of norm 1, and σ is the least noise that provably meets the goal. The
    error is that of prefix sums, which momentum-free training with a fixed learning rate is made
    of: σ·‖A·C⁻¹‖_F/√n. Banded strategies have the first coefficients of the square root of prefix
    sums.

    Args:
        target: one of ``jaxgdp.targets``, of one number.
        num_steps: n, a whole number from 2 to 4096.
        num_epochs: a whole number that divides n.
        bands: numbers of diagonals, whole numbers up to n/num_epochs.
        balls_in_bins: whether to add banded strategies with random batches that are used in turn:
            seconds for every noise that is tried.
        rtol: relative step between what meets the target and what does not.

    Returns:
        A :class:`StrategyComparison`; ``print`` writes a table, ``jaxgdp.plot.strategies`` draws
        it.

    Raises:
        ValueError: an argument is out of range, or the target cannot be met.

    Example:
        >>> import jaxgdp
        >>> found = compare_strategies(jaxgdp.targets.Mu(1.0), 64, num_epochs=4, bands=[4])
        >>> found.best().strategy
        '4 bands'
    """
    steps = int(checked("num_steps", whole("num_steps", num_steps), "from 2 to 4096",
                        lambda a: (a >= 2.0) & (a <= _MOST_STEPS)))  # fmt: skip
    epochs = int(whole("num_epochs", num_epochs))
    if steps % epochs:
        raise ValueError(f"num_epochs must divide num_steps = {steps}, got {epochs}")
    if target.shape:
        raise ValueError(f"target must be of one number, got shape {target.shape}")
    cycle = steps // epochs
    widths = [int(whole("bands", each)) for each in bands]
    if any(not 1 <= each <= cycle for each in widths):
        raise ValueError(f"bands must be from 1 to num_steps/num_epochs = {cycle}, got {widths}")
    fixed = MinSeparation(cycle, epochs)
    cases: list[tuple[str, str, Array, Participation]] = [
        ("DP-SGD", FIXED, np.ones(1), fixed),
        ("DP-SGD", POISSON, np.ones(1), CyclicPoisson(1.0 / cycle, 1)),
        ("tree", FIXED, tree_strategy(steps), fixed),
    ]
    for width in widths:
        if width == 1:
            continue
        c = root_coefficients(width)
        cases.append((f"{width} bands", FIXED, c, fixed))
        cases.append((f"{width} bands", POISSON, c, CyclicPoisson(width / cycle, width)))
        if balls_in_bins:
            cases.append((f"{width} bands", BALLS, c, BallsInBins(cycle)))
    rows = tuple(_row(*case, steps, target, rtol) for case in cases)
    return StrategyComparison(rows, target.describe(), steps, epochs)


def _row(
    name: str,
    sampling: str,
    strategy: Array,
    participation: Participation,
    steps: int,
    target: Target,
    rtol: float,
) -> StrategyRow:
    toeplitz = strategy.ndim == 1
    norm = np.sqrt((strategy if toeplitz else strategy[:, 0]) @ (
        strategy if toeplitz else strategy[:, 0]
    ))  # fmt: skip
    scaled = strategy / norm
    mechanism = MatrixMechanism(scaled, 1.0, participation, steps)
    found = calibrate(target, mechanism=mechanism, rtol=rtol)
    sigma = float(found.value)
    if toeplitz:
        full = np.zeros((steps, steps))
        for lag, value in enumerate(scaled.tolist()):
            np.fill_diagonal(full[lag:], value)
    else:
        full = scaled
    count = len(strategy) if toeplitz else steps
    low, high = (float(side) for side in found.achieved)
    return StrategyRow(name, sampling, count, sigma, low, high, sigma * prefix_error(full))


__all__ = ["StrategyComparison", "StrategyRow", "compare_strategies"]
