"""Correlated noise: matrix factorisation, DP-FTRL and banded strategies."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from ...numerics.errors import PRECISION
from ...numerics.pytree import put, unchecked
from ...numerics.shapes import Array, ArrayLike, Float, Parameter
from ...numerics.validation import known, positive, whole
from ...participation import (
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    MinSeparation,
    Participation,
    Single,
    parsed,
)
from ..base import Mechanism
from ..bracketed_pair import BracketedPair, OpenPair
from ..gaussian import Gaussian
from ..subsampled_gaussian import SubsampledGaussian
from . import counts, positions
from .ranges import MixtureRange, SampledRange
from .separation import Sensitivity, squared_sensitivity
from .strategy import MOST_STEPS, bands, gram, matrix, modes, squared_norms


class _Known(NamedTuple):
    """What is not swept: all but the noise, hashable."""

    strategy: bytes
    shape: tuple[int, ...]
    participation: Participation
    num_steps: int


@dataclass(frozen=True)
class MatrixMechanism(Mechanism):
    """Noise that is correlated over the steps: C·X + σZ is released, rows of X are the steps' sums.

    C is the lower triangular *strategy* and X holds the sums of clipped gradients (norm ≤ 1), which
    may depend on everything released before (Denisov et al. 2022). Who adds C⁻¹·σZ to the sums
    releases the same. What a record costs depends on the steps it takes part in
    (``jaxgdp.participation``):

    - ``Single``, ``MinSeparation``: nothing is random, and the mechanism is exactly Gaussian with μ
      = max_π ‖Σ_{i in π} C e_i‖/σ. Both sides meet where CᵀC ≥ 0 and C has no more bands than the
      separation, or is Toeplitz with coefficients ≥ 0 that do not increase; else the largest sum is
      bracketed.
    - ``CyclicPoisson``: with no more bands than groups, the columns of a group do not overlap: a
      composition of subsampled Gaussians of noise σ/‖C e_j‖ (Choquette-Choo et al. 2023), attained
      by equal gradients. Both sides meet where one group has the largest norms.
    - ``BallsInBins``, ``RandomShift`` (C ≥ 0): certified brackets by Kahane's inequality. From
      above by a Gaussian chain, or by one common Gaussian and independent rest; from
      below by an attack on a few bands. The sides do not meet unless columns do not overlap.
    - ``BMinSep`` (C ≥ 0): bounded only, by one mixture of shifts on either side. From above by the
      number of steps, with the largest norm that so many columns have; from below by the output
      along the sum of all columns.

    Adaptively chosen gradients, and directions of their own at every step, are covered.

    Args:
        strategy: C, a square lower triangular matrix, or its Toeplitz coefficients (then with
            ``num_steps``): the first column, as far as it is not 0.
        noise_multiplier: σ, standard deviation of every entry of Z over the clipping norm; > 0, any
            shape.
        participation: one of ``jaxgdp.participation``, or its text.
        num_steps: n, a whole number from 1 to 10⁴; that of a matrix if left out.

    Raises:
        ValueError: an argument is out of range; C is not lower triangular, has a 0 on its diagonal
            or fewer steps than bands; more bands than groups for ``CyclicPoisson``; a negative
            entry for random positions; a cycle longer than the run (before tracing).

    Example:
        >>> import jaxgdp
        >>> from jaxgdp.participation import CyclicPoisson, MinSeparation
        >>> root = [1.0, 0.5, 0.375, 0.3125]  # four bands of the square root of prefix sums
        >>> every = MinSeparation(separation=100, max_participations=4)
        >>> fixed = MatrixMechanism(root, 5.0, every, num_steps=400)
        >>> sampled = MatrixMechanism(root, 5.0, CyclicPoisson(0.1, cycle=4), num_steps=400)
        >>> bool(jaxgdp.mu(sampled).upper < jaxgdp.mu(fixed).upper)
        True

    Method: docs/method/kahane.md#fixed-steps
    """

    strategy: Parameter
    noise_multiplier: Parameter
    participation: Any
    num_steps: Any = None

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "with random positions no matrix of inner products for which the law of the ratio is known"
        " is that of the strategy: the upper side has larger ones, the lower one smaller ones; with"
        " fixed or cyclic participation both sides meet where the most exposed record is known"
    )
    undifferentiable: ClassVar[str] = "its parts are made from known numbers"
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    noise_scale: ClassVar[str] = "noise_multiplier"
    examples: ClassVar[dict] = {
        "MatrixMechanism(3 bands, 1, cyclic)": lambda: MatrixMechanism(
            [1.0, 0.5, 0.375], 1.0, CyclicPoisson(0.2, 3), 12
        )
    }

    def __post_init__(self) -> None:
        known(self, why="its parts are made from them", strategy=self.strategy,
              noise_multiplier=self.noise_multiplier)  # fmt: skip
        steps = None if self.num_steps is None else _steps(self.num_steps)
        full = matrix(self.strategy, steps)
        if len(full) > MOST_STEPS:
            raise ValueError(f"strategy must have at most {MOST_STEPS} steps, got {len(full)}")
        chosen = parsed(self.participation)
        _fits(full, chosen)
        put(
            self,
            strategy=np.asarray(self.strategy, float),
            noise_multiplier=positive("noise_multiplier", self.noise_multiplier),
            participation=chosen,
            num_steps=len(full),
        )

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Only the noise is swept."""
        return {"noise_multiplier": (np.shape(self.noise_multiplier), ())}

    def _known(self) -> _Known:
        c = np.asarray(self.strategy, float)
        return _Known(c.tobytes(), c.shape, self.participation, int(self.num_steps))

    def describe_sampling(self) -> str:
        """As the participation says."""
        return self.participation.words()

    def replace_one(self) -> MatrixMechanism:
        """Without sampling, replacing a record moves every sum by up to 2: noise σ/2.

        Raises:
            ValueError: there is sampling: no sound pair is known.
        """
        if not isinstance(self.participation, Single | MinSeparation):
            raise ValueError(
                "adjacency must be one of 'add_remove', 'add', 'remove' for a MatrixMechanism with"
                f" {type(self.participation).__name__}, got 'replace_one'"
            )
        return MatrixMechanism(
            self.strategy, self.noise_multiplier / 2.0, self.participation, self.num_steps
        )

    def gathered(self, count: Array) -> list[tuple[Mechanism, Array]]:
        """The parts that dominate together, each with its attack."""
        sigma = np.asarray(self.noise_multiplier, float)
        return [(part, count * uses) for part, uses in _plan(self._known()).parts(sigma)]


def _flatten(mechanism: MatrixMechanism) -> tuple:
    noise = jax.tree_util.GetAttrKey("noise_multiplier"), mechanism.noise_multiplier
    return (noise,), mechanism._known()


def _unflatten(fixed: _Known, children: Any) -> MatrixMechanism:
    (noise,) = children
    strategy = np.frombuffer(fixed.strategy).reshape(fixed.shape)
    return unchecked(
        MatrixMechanism,
        strategy=strategy,
        noise_multiplier=noise,
        participation=fixed.participation,
        num_steps=fixed.num_steps,
    )


jax.tree_util.register_pytree_with_keys(MatrixMechanism, _flatten, _unflatten)


def _steps(value: ArrayLike) -> int:
    if np.ndim(value) != 0:
        raise ValueError(f"num_steps must be one number, got shape {np.shape(value)}")
    return int(whole("num_steps", value))


def _fits(c: Float[Array, "steps steps"], chosen: Participation) -> None:
    """Refuse, by name, what nobody knows how to account for."""
    name, number = type(chosen).__name__, bands(c)
    if isinstance(chosen, CyclicPoisson) and number > chosen.cycle:
        raise ValueError(
            f"strategy must have at most cycle = {chosen.cycle:g} bands for {name}, got {number}:"
            " overlapping columns that are sampled again are an open problem"
        )
    if isinstance(chosen, CyclicPoisson | BallsInBins) and chosen.cycle > len(c):
        raise ValueError(
            f"cycle must be at most the number of steps, {len(c)}, got {chosen.cycle:g}"
        )
    if isinstance(chosen, BallsInBins | BMinSep) and np.any(c < 0.0):
        raise ValueError(
            f"strategy must have no negative entry for {name}: with signs the worst gradients are"
            " not known"
        )


class _Fixed(NamedTuple):
    """Nothing is random: a Gaussian, or two."""

    squared: Sensitivity

    def parts(self, sigma: Array) -> list[tuple[Mechanism, float]]:
        low, high = np.sqrt(self.squared.lower), np.sqrt(self.squared.upper)
        if low == high:
            return [(Gaussian(sigma / high).canonical(), 1.0)]
        one = np.ones_like(sigma)
        return [(SampledRange(sigma / high, one, sigma / low, one), 1.0)]


class _Cyclic(NamedTuple):
    """Groups in turn: norms of the columns of a group that dominates all, and of one group."""

    prob: float
    upper: Float[Array, " uses"]
    lower: Float[Array, " uses"]

    def parts(self, sigma: Array) -> list[tuple[Mechanism, float]]:
        pairs, counts = np.unique(np.stack([self.upper, self.lower]), axis=1, return_counts=True)
        found: list[tuple[Mechanism, float]] = []
        for (high, low), uses in zip(pairs.T, counts, strict=True):
            if high == low:
                found.append((SubsampledGaussian(sigma / high, self.prob), float(uses)))
            else:
                p = np.full_like(sigma, self.prob)
                found.append((SampledRange(sigma / high, p, sigma / low, p), float(uses)))
        return found


class _Counted(NamedTuple):
    """A random number of steps: a mixture of shifts from above and one from below."""

    above: counts.Shifts
    below: counts.Shifts

    def parts(self, sigma: Array) -> list[tuple[Mechanism, float]]:
        rows = [np.broadcast_to(a, (*np.shape(sigma), len(a))) for a in (*self.above, *self.below)]
        return [(MixtureRange(sigma, *rows), 1.0)]


class _Positions(NamedTuple):
    """One of several first steps, drawn at random."""

    gram: Float[Array, "cycle cycle"]
    columns: Float[Array, "cycle bands"]

    def parts(self, sigma: Array) -> list[tuple[Mechanism, float]]:
        above, below = np.empty(sigma.shape, object), np.empty(sigma.shape, object)
        tight = True
        for index in np.ndindex(sigma.shape):
            found = _tables(
                self.gram.tobytes(), self.columns.tobytes(), len(self.gram), float(sigma[index])
            )
            above[index], below[index], tight = found.above, found.below, tight and found.tight
        precision = np.diag(self.gram).max() / sigma**2 * (1.0 + 64.0 * PRECISION)
        kind = BracketedPair if tight else OpenPair
        return [(kind.build(above, below, precision), 1.0)]


@functools.lru_cache(maxsize=64)
def _tables(gram_bytes: bytes, column_bytes: bytes, cycle: int, sigma: float) -> positions.Tables:
    products = np.frombuffer(gram_bytes).reshape(cycle, cycle) / sigma**2
    columns = np.frombuffer(column_bytes).reshape(cycle, -1) / sigma
    low, high = float(np.diag(products).min()), float(np.diag(products).max())
    if low < positions.SMALLEST or high > positions.LARGEST:
        root = (float(np.diag(products).max()) * sigma**2) ** 0.5
        raise ValueError(
            f"noise_multiplier must be from {root / positions.LARGEST**0.5:.4g} to"
            f" {root / positions.SMALLEST**0.5:.4g} for random positions of this strategy, got"
            f" {sigma:g}"
        )
    return positions.tables(products, columns)


@functools.lru_cache(maxsize=64)
def _plan(fixed: _Known) -> _Fixed | _Cyclic | _Counted | _Positions:
    given, steps = np.frombuffer(fixed.strategy).reshape(fixed.shape), fixed.num_steps
    chosen, c = fixed.participation, matrix(given, steps)
    toeplitz = given.ndim == 1
    if isinstance(chosen, Single):
        largest = float(squared_norms(c).max())
        return _Fixed(Sensitivity(largest, largest))
    if isinstance(chosen, MinSeparation):
        most = min(int(chosen.max_participations), -(-steps // int(chosen.separation)))
        return _Fixed(squared_sensitivity(c, int(chosen.separation), most, toeplitz))
    if isinstance(chosen, CyclicPoisson):
        return _cyclic(c, chosen)
    if isinstance(chosen, BMinSep):
        apart, p = int(chosen.separation), float(chosen.sampling_prob)
        return _Counted(
            counts.shifts_above(c, apart, p, toeplitz), counts.shifts_below(c, apart, p)
        )
    if not isinstance(chosen, BallsInBins):
        raise ValueError(f"participation must be one that is known, got {chosen!r}")
    cycle = int(chosen.cycle)
    columns = modes(c, cycle)
    uses = [len(range(j, steps, cycle)) for j in range(cycle)]
    width = min(bands(c), cycle)
    own = np.array(
        [
            [np.sqrt(min(uses)) * c[j + m, j] if j + m < steps else 0.0 for m in range(width)]
            for j in range(cycle)
        ]
    )
    return _Positions(gram(columns), own)


def _cyclic(c: Float[Array, "steps steps"], chosen: CyclicPoisson) -> _Cyclic:
    """Norms by size: the largest of any group at every place, and those of the heaviest group."""
    cycle = int(chosen.cycle)
    norms = np.sqrt(squared_norms(c))
    rows = [np.sort(norms[j::cycle])[::-1] for j in range(cycle)]
    longest = max(map(len, rows))
    full = np.stack([np.pad(row, (0, longest - len(row))) for row in rows])
    whole_groups = [j for j, row in enumerate(rows) if len(row) == longest]
    heaviest = max(whole_groups, key=lambda j: float((full[j] ** 2).sum()))
    return _Cyclic(float(chosen.sampling_prob), full.max(axis=0), full[heaviest])
