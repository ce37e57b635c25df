"""Random allocation: every record is used in k of t steps, chosen at random (balls and bins)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from ...numerics.normal import precision_above
from ...numerics.pytree import check_fields, default, pytree
from ...numerics.shapes import Array, ArrayLike, Parameter
from ...numerics.validation import at_most, broadcast, checked, known, positive, whole
from ..base import Mechanism
from ..bracketed_pair import BracketedPair, OpenPair
from ..gaussian import Gaussian
from ..laplace import Laplace
from . import allocated, one_of_many, several_of_many

_SMALLEST, _LARGEST = 0.2, 1e4  # noise multipliers for which tables are made
_STEPS = 10**7  # most steps


@pytree
@dataclass(frozen=True)
class RandomAllocation(Mechanism):
    """A record in k of t steps at random, one epoch ("balls and bins").

    Every step adds Gaussian noise to a sum, or is any other mechanism.

    Gaussian noise: the pair (Chua et al. 2024; zero-out adjacency) is P = N(0, σ²I_t) against the
    mixture Q of the N(e_S, σ²I_t) over the k-subsets S.

    k = 1: the likelihood ratio is the mean U of t independent V_i = e^{z_i/σ − 1/(2σ²)}, δ(ε) = E(U
    − e^ε)₊ for removing a record and E(1 − e^ε·U)₊ for adding one. Both sides of a bracket are
    tables of the law of U, sums of V on a lattice: from above with mass moved apart and its mean
    kept, from below with merged labels (``jaxgdp.mechanisms.random_allocation.one_of_many``). For
    one epoch they are 1e-3 apart or less in ε, μ and advantage for σ up to 50 and t up to 10⁶, but
    for an ε of 1e-5 and less. Tables are truncated at masses of about 1e-44: below such an FPR
    floor the upper μ is 1/σ.

    Any mechanism, k = 1: with (P, Q) its pair, P the law of a step without the record and Q of the
    step that has it, V is the likelihood ratio Q/P of one step and all else is the same, also where
    steps are chosen in the light of earlier ones; P-mass of outcomes that Q has not, and the
    reverse, is counted (``jaxgdp.mechanisms.random_allocation.allocated``). The sides are 1e-3
    apart or less in ε and advantage where those of the mechanism itself meet. The mechanism has to
    be one pair: a composition is refused, and so is replacing a record, which is no mixture against
    a product.

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
        mechanism: of one step, in place of ``noise_multiplier``; its shape broadcasts. It is kept
            as a composition of one use.

    Raises:
        ValueError: an argument is out of range, neither or both of ``noise_multiplier`` and
            ``mechanism`` are given, ``num_steps`` is missing, or shapes do not broadcast (before
            tracing); the mechanism is no single pair (when numbers are asked for).

    Example:
        >>> import jaxgdp
        >>> epoch = RandomAllocation(noise_multiplier=1.0, num_steps=1000)
        >>> found = jaxgdp.measure(epoch, "epsilon", delta=1e-5, adjacency="remove").epsilon
        >>> bool(0.1387 < found.lower < 0.138847 < found.upper < 0.1390)
        True
        >>> epoch = RandomAllocation(mechanism=jaxgdp.Laplace(1.0), num_steps=100)
        >>> found = jaxgdp.measure(epoch, "advantage").advantage
        >>> bool(0.036963 < found.lower < found.upper < 0.036969)
        True

    Method: docs/method/dominating.md#one-of-many
    """

    noise_multiplier: Parameter = default(None)
    num_steps: Parameter = default(None)
    num_selected: Parameter = default(1)
    mechanism: Any = None

    tight: ClassVar[bool] = False
    undifferentiable: ClassVar[str] = "its tables are made from known numbers"
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    sampling: ClassVar[str] = (
        "random allocation (balls and bins): each record in some of the steps, chosen at random"
    )
    examples: ClassVar[dict] = {
        "RandomAllocation(1, 100 steps)": lambda: RandomAllocation(1.0, 100),
        "RandomAllocation(Laplace(1), 100 steps)": lambda: RandomAllocation(
            mechanism=Laplace(1.0), num_steps=100
        ),
    }

    def __post_init__(self) -> None:
        if (self.noise_multiplier is None) == (self.mechanism is None):
            raise ValueError(
                "RandomAllocation needs either noise_multiplier or mechanism, got noise_multiplier"
                f" {self.noise_multiplier!r} and mechanism {self.mechanism!r}"
            )
        if self.num_steps is None:
            raise ValueError("num_steps must be a whole number >= 1, got None")
        known(self, why="its tables are made from its parameters", **_leaves(self))
        check_fields(self, num_steps=whole, num_selected=whole)
        if np.any(self.num_steps > _STEPS):
            raise ValueError(
                f"num_steps must be at most {_STEPS:g} for RandomAllocation, got"
                f" {np.max(self.num_steps):g}"
            )
        at_most("num_selected", self.num_selected, "num_steps", self.num_steps)
        if self.mechanism is None:
            check_fields(self, noise_multiplier=_noise)
        else:
            step = allocated.single_use(self.mechanism, self.num_selected)
            object.__setattr__(self, "mechanism", step)
        shapes = self.parameter_shapes().items()
        broadcast(**{name: np.empty(outer) for name, (outer, _) in shapes})

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """By leaf: the shape that broadcasts, and the trailing shape."""
        own = ("noise_multiplier", "num_steps", "num_selected")
        found = {name: getattr(self, name) for name in own}
        shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
        shapes = {name: (np.shape(a), ()) for name, a in found.items() if a is not None}
        if self.mechanism is not None:
            for name, both in self._step.parameter_shapes().items():
                shapes[f"mechanism.{name}"] = both
            shapes["mechanism count"] = (), ()
        return shapes

    @property
    def _step(self) -> Mechanism:
        """The mechanism of one step."""
        return self.mechanism.mechanisms[0]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Those of one step, one of as many."""
        if self.mechanism is None:
            return ()
        steps: Any = self.num_steps
        others = self._step.lower_bound_mechanisms()
        return tuple(
            RandomAllocation(mechanism=each, num_steps=steps)
            for each in others
            if allocated.is_single(each)
        )

    def gathered(self, count: Array):
        """Tables of k of t steps; t Gaussian mechanisms where k = t."""
        if self.mechanism is not None:
            return allocated.gathered(self._step, self.num_steps, self.shape, count)
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
        precision = precision_above(sigma, np.where(every, 1.0, selected))
        pair = BracketedPair if np.all(every | (selected == 1.0)) else OpenPair
        return [(pair.build(above, below, precision), np.where(every, steps, 1.0) * count)]


def _leaves(allocation: RandomAllocation) -> dict[str, Any]:
    """What is given, by name, the parameters of a mechanism apart."""
    found = {key: a for key, a in vars(allocation).items() if a is not None and key != "mechanism"}
    inner = jax.tree.leaves(allocation.mechanism)
    return found | {f"mechanism {i}": leaf for i, leaf in enumerate(inner)}


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
