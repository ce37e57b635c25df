"""Random allocation: every record is used in k of t steps, chosen at random (balls and bins)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...numerics.errors import PRECISION
from ...numerics.pytree import check_fields, default, pytree
from ...numerics.shapes import Array, ArrayLike, Parameter
from ...numerics.validation import at_most, checked, known, positive, whole
from ..base import Mechanism
from ..bracketed_pair import BracketedPair, OpenPair
from ..gaussian import Gaussian
from . import one_of_many, several_of_many

_SMALLEST, _LARGEST = 0.2, 1e4  # noise multipliers for which tables are made
_STEPS = 10**7  # most steps


@pytree
@dataclass(frozen=True)
class RandomAllocation(Mechanism):
    """Gaussian noise on t sums, each record in k of them at random, one epoch ("balls and bins").

    The pair (Chua et al. 2024; zero-out adjacency) is P = N(0, σ²I_t) against the mixture Q of the
    N(e_S, σ²I_t) over the k-subsets S.

    k = 1: the likelihood ratio is the mean U of t independent V_i = e^{z_i/σ − 1/(2σ²)}, δ(ε) = E(U
    − e^ε)₊ for removing a record and E(1 − e^ε·U)₊ for adding one. Both sides of a bracket are
    tables of the law of U, sums of V on a lattice: from above with mass moved apart and its mean
    kept, from below with merged labels (``jaxgdp.mechanisms.random_allocation.one_of_many``). For
    one epoch they are 1e-3 apart or less in ε, μ and advantage for σ up to 50 and t up to 10⁶, but
    for an ε of 1e-5 and less. Tables are truncated at masses of about 1e-44: below such an FPR
    floor the upper μ is 1/σ.

    k > 1: from below, an attack that adds up log(1 − q + q·V_i) over the steps, with a q next to
    k/t (``jaxgdp.mechanisms.random_allocation.label_attack``). From above
    (``jaxgdp.mechanisms.random_allocation.several_of_many``), the smaller of two bounds: for k up
    to 64 that from the mean and the mean square of the likelihood ratio given this sum, and for all
    k allocation to 1 of ⌊t/k⌋ or ⌈t/k⌉ steps k times, a random partition of the steps into k
    blocks, which is told to the adversary. Next to δ = 1e-6, or the default FPR floor, the sides
    are 1.2 % apart or less in ε, μ and advantage for (σ, k, t) = (2, 10, 100), (0.6, 5, 391) and
    (1, 5, 10), less than 1e-3 for (10, 64, 10⁵), but 4 % in ε for (1, 100, 1000) and 6 % for (0.35,
    3, 1000). k = t is exactly t Gaussian mechanisms.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm, in [0.2, 1e4];
            any shape.
        num_steps: t, steps of the epoch, a whole number from 1 to 10⁷; any shape.
        num_selected: k, how many of them use the record, a whole number from 1 to t; any shape.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> epoch = RandomAllocation(noise_multiplier=1.0, num_steps=1000)
        >>> found = jaxgdp.measure(epoch, "epsilon", delta=1e-5, adjacency="remove").epsilon
        >>> bool(0.1387 < found.lower < 0.138847 < found.upper < 0.1390)
        True
    """

    noise_multiplier: Parameter
    num_steps: Parameter
    num_selected: Parameter = default(1)

    tight: ClassVar[bool] = False
    undifferentiable: ClassVar[str] = "its tables are made from known numbers"
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    sampling: ClassVar[str] = (
        "random allocation (balls and bins): each record in some of the steps, chosen at random"
    )
    examples: ClassVar[dict] = {
        "RandomAllocation(1, 100 steps)": lambda: RandomAllocation(1.0, 100)
    }

    def __post_init__(self) -> None:
        known(self, why="its tables are made from its parameters", **vars(self))
        check_fields(self, noise_multiplier=_noise, num_steps=whole, num_selected=whole)
        if np.any(self.num_steps > _STEPS):
            raise ValueError(
                f"num_steps must be at most {_STEPS:g} for RandomAllocation, got"
                f" {np.max(self.num_steps):g}"
            )
        at_most("num_selected", self.num_selected, "num_steps", self.num_steps)

    def gathered(self, count: Array):
        """Tables of k of t steps; t Gaussian mechanisms where k = t."""
        arrays = (self.noise_multiplier, self.num_steps, self.num_selected)
        sigma, steps, selected = np.broadcast_arrays(*(np.asarray(a, float) for a in arrays))
        every = selected == steps
        if np.all(every):
            return [(Gaussian(sigma).canonical(), steps * count)]
        above, below = np.empty(sigma.shape, object), np.empty(sigma.shape, object)
        for index in np.ndindex(sigma.shape):
            one = every[index], float(sigma[index]), int(steps[index]), int(selected[index])
            above[index], below[index] = _tables(*one[1:]) if not one[0] else _tables(one[1], 1, 1)
        # k uses are one of a sum with k times the sensitivity's square
        precision = np.where(every, 1.0, selected) * sigma**-2.0 * (1.0 + PRECISION)
        pair = BracketedPair if np.all(every | (selected == 1.0)) else OpenPair
        return [(pair.build(above, below, precision), np.where(every, steps, 1.0) * count)]


def _noise(name: str, value: ArrayLike) -> Array:
    """σ in the range for which tables are made."""
    positive(name, value)
    valid = f"in [{_SMALLEST:g}, {_LARGEST:g}] for RandomAllocation"
    return checked(name, value, valid, lambda a: (a >= _SMALLEST) & (a <= _LARGEST))


@functools.lru_cache(maxsize=1024)
def _tables(sigma: float, steps: int, selected: int):
    """Tables of ``selected`` of so many steps, from above and from below."""
    if selected == 1:
        return one_of_many.dominating_table(sigma, steps), one_of_many.attack_table(sigma, steps)
    return several_of_many.tables(sigma, steps, selected)
