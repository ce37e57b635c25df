"""The contract of mechanisms, with defaults, and how a new one is written.

A mechanism is a frozen dataclass of numeric fields, registered with ``pytree``, that inherits from
:class:`Mechanism`. A user builds it with fields of any shape that broadcast; the core calls its
methods unbatched (fields are scalars) and batches them with ``vmap``. It must define
``loss_nodes``, ``tail_precision`` and ``cells``."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from ..deprecation import warn
from ..numerics import namespace as xp
from ..numerics.shapes import Array
from ..pairs.cells import Cells
from ..pairs.known_curves import KnownCurve

_RENAMED = {  # parts of the contract, by their names before 0.3
    "closes": "tight",
    "loose": "why_not_tight",
    "attacked": "lower_bound_member",
    "achieved": "lower_bound_mechanisms",
    "shown_precision": "gaussian_part_precision",
    "merge": "collapse_gaussians",
}


EVERY_RECORD = "none: every use includes every record"
FIXED_GUARANTEE = "whatever it was: only the guarantee is known"


def poisson_words(rate: Array) -> str:
    """Poisson sampling at a rate, in words for reports."""
    if float(rate) == 1.0:
        return EVERY_RECORD
    return (
        f"Poisson sampling: each step takes every record with probability {float(rate):.6g},"
        " independently of all others and of other steps; shuffled data or batches of a fixed size"
        " are not covered"
    )


class AccountedBy:
    """Something that a mechanism accounts for, and that is accepted wherever a mechanism is.

    Attributes:
        mechanism: the one that accounts for it.
        cases: name → mechanism, where one of several accounts for it and nobody knows which.
    """

    mechanism: Mechanism

    @property
    def cases(self) -> dict[str, Any]:
        """Name → mechanism; none where there is only ``mechanism``."""
        return {}


class Mechanism:
    """Defaults of a mechanism whose privacy loss has atoms and no shortcut.

    A mechanism stands for a dominating pair (P, Q) and gives its *privacy loss distribution*, the
    law of ℓ = log(dQ/dP) under P and under Q, exactly: as masses of the cells between lattice
    points, with the *infinity masses* at −∞ and +∞ apart.

    Attributes:
        atomic: whether the loss sits on atoms, so that even many uses never get smooth: dense
            lattices only.
        tight: whether both sides of a bracket are of the same pair, so that a finer lattice brings
            them together.
        why_not_tight: which side of its brackets is not tight and why, in words; "" where both are.
        sums_to_one: whether the exact P-masses of its cells add up to 1, and the Q-masses too, and
            its cells bound the error of their shares (``Cells.share_error``): what is known of the
            sum then keeps digits where steps are tiny.
        symmetric: whether the swapped pair (Q against P) has the same privacy losses, so that one
            half of the curve is enough.
        trailing: number of trailing axes of each array-valued field (0 where not named); they do
            not broadcast.
        differentiable: fields in which ``jaxgdp.differentiable`` may take derivatives: ``cells``
            has masses (log_x, log_y and what goes to the infinities) with the right derivatives in
            them, at fixed points, and ``atoms`` names what moves in one piece.
        undifferentiable: why there are no derivatives in the other fields, for those who try.
        relation: what "remove" and "add" mean for its pair, in words: the relation of data sets
            that it is a pair of.
        sampling: how records get into its uses, in words for reports; "" where its author gives
            none.
        beside_noise: what a report counts by it beside the noise, in words; "" where nothing.
        noise_scale: the field that all its noise is proportional to, by which calibration scales
            it; "" where there is none.
        examples: settings by name, one or more, of a class of the package that users build: what
            tables of the documentation and tests of every class go through.

    Method: docs/method/notation.md#brackets
    """

    atomic: ClassVar[bool] = True
    tight: ClassVar[bool] = True
    why_not_tight: ClassVar[str] = ""
    sums_to_one: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    trailing: ClassVar[dict[str, int]] = {}
    differentiable: ClassVar[tuple[str, ...]] = ()
    undifferentiable: ClassVar[str] = "it does not declare how its cells move with that"
    relation: ClassVar[str] = "those of the pair it was made from"
    sampling: ClassVar[str] = ""
    beside_noise: ClassVar[str] = ""
    noise_scale: ClassVar[str] = ""
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Classes that define something by its name of versions before 0.3 work, and warn."""
        super().__init_subclass__(**keywords)
        for old, new in _RENAMED.items():
            if old in vars(cls) and new not in vars(cls):
                setattr(cls, new, vars(cls)[old])
                warn(f"{cls.__name__}.{old}", f"{cls.__name__}.{new}")

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """By field: the shape that broadcasts, and the trailing shape of one mechanism."""
        shapes = {}
        for field in dataclasses.fields(cast(Any, self)):
            shape = np.shape(getattr(self, field.name))
            kept = len(shape) - self.trailing.get(field.name, 0)
            shapes[field.name] = shape[:kept], shape[kept:]
        return shapes

    @classmethod
    def given_fields(cls) -> dict[str, dataclasses.Field]:
        """Fields that users give, by name: what files and one-line descriptions hold."""
        return {field.name: field for field in dataclasses.fields(cast(Any, cls)) if field.init}

    def given(self) -> dict[str, Any]:
        """The values of these fields by name, without those that were left out."""
        fields = {name: getattr(self, name) for name in self.given_fields()}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of the parameters."""
        return np.broadcast_shapes(*(outer for outer, _ in self.parameter_shapes().values()))

    def noise_alone(self) -> list[tuple[Any, Any]] | None:
        """What is left of one use, as mechanisms and counts, if ``beside_noise`` is taken away; an
        empty list where nothing is, None where it is not known.
        """
        return None

    def replaces_record(self) -> bool:
        """Whether its own pair is that of replacing a record, and not of leaving one out."""
        return False

    def describe_sampling(self) -> str:
        """How records get into the uses of this mechanism, in words for reports."""
        return self.sampling or f"as {type(self).__name__} has it"

    def subsampled(self, sampling_prob: float) -> Mechanism | None:
        """The mechanism on a Poisson sample of the records, exactly; None where nobody knows it.

        Args:
            sampling_prob: probability that a record is in the sample, in (0, 1].
        """
        return None

    def noise_tail(self, distance: float) -> float:
        """Mass of the noise at ``distance`` (in units of the sensitivity) and beyond, on one side;
        of a scalar mechanism that adds noise to an answer.

        Raises:
            ValueError: it does not, or nobody has said so.
        """
        raise ValueError(
            f"mechanism must add noise of a known law, as Laplace and Gaussian do, got {self!r}"
        )

    def canonical(self) -> Mechanism:
        """This mechanism in the form that compositions stack: itself."""
        return self

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """Mechanisms with numbers of uses that dominate ``count`` uses of this one together:
        itself, unless there is better.
        """
        return [(self, count)]

    def collapse_gaussians(self, count: Array, into: float) -> tuple[Mechanism, Array]:
        """Replace ``count`` uses by ``into`` uses of another where that is exact: not here."""
        return self, count

    def lower_bound_member(self) -> Mechanism:
        """The mechanism that the attack of the lower side is run on: itself, unless it stands for a
        family without a worst member.

        Method: docs/method/attack.md#family
        """
        return self

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Mechanisms certainly no more revealing than this one, worth a look; none by default.

        If the law of ``lower_bound_member`` is far from that of the dominating pair, a lattice
        planned for the one serves the other badly. The lower sides of brackets are then also those
        of these mechanisms, on lattices of their own.

        Method: docs/method/attack.md#family
        """
        return ()

    def known_curve(self) -> KnownCurve | None:
        """The trade-off curve of one use where it is known in closed form (unbatched, on the host),
        else None.

        One use of such a mechanism needs no lattice.

        Method: docs/method/known.md#which
        """
        return None

    def bracketed(self) -> Any:
        """Two tables, of a pair from above and of an attack from below (unbatched), where these are
        what is known of one use; else None.
        """
        return None

    def reveals_nothing(self) -> Array:
        """Whether there is no privacy loss but 0: then the mechanism can be left out."""
        if not self.bounded():
            return xp.zeros((), bool)
        low, high = self.loss_bounds()
        return (low == 0.0) & (high == 0.0) & xp.isfinite(self.tail_precision())

    def loss_nodes(self, depth: Array | float) -> tuple[Array, Array]:
        """Increasing nodes of the finite losses under P and log weights; for steering only.

        They reach at least to where both P and Q have a tail of e^{−depth}; first and last node are
        the ends of that range."""
        raise NotImplementedError

    def gaussian_precision(self) -> Array:
        """1/σ² where the loss has a Gaussian's cumulants, else 0; for steering only."""
        return xp.zeros(())

    def gaussian_part_precision(self) -> Array:
        """Square of a Gaussian-DP parameter that one use certainly has at every FPR: 1/σ² where it
        is exactly Gaussian, else 0.
        """
        return xp.zeros(())

    def tail_precision(self) -> Array:
        """Square of a GDP parameter that bounds one use at every FPR; ∞ with mass at ±∞."""
        raise NotImplementedError

    def limit_precision(self) -> Array:
        """Square of limsup ε/√(−2 log δ(ε)) of one use (Liu et al. 2022, Theorem 3.3).

        ∞ with mass at +∞ or −∞; else 0 where the loss is bounded, and ``tail_precision`` unless the
        mechanism has a smaller bound. NaN where it is not known.

        Method: docs/method/mu.md#tail
        """
        everywhere = self.tail_precision()
        return xp.where(xp.isinf(everywhere), xp.inf, 0.0) if self.bounded() else everywhere

    def loss_bounds(self) -> tuple[Array, Array]:
        """Smallest and largest finite privacy loss, rounded outward; ∓∞ where there is none."""
        return xp.asarray(-xp.inf), xp.asarray(xp.inf)

    @classmethod
    def bounded(cls) -> bool:
        """Whether the class has loss bounds of its own."""
        return cls.loss_bounds is not Mechanism.loss_bounds

    def finite_loss_bounds(self) -> tuple[Array, Array]:
        """Smallest and largest finite loss of the pair that the cells are of, rounded outward; what
        the mechanism itself loses beyond is at infinities there.
        """
        return self.loss_bounds()

    @classmethod
    def ends(cls) -> bool:
        """Whether the class has such bounds."""
        return cls.bounded() or cls.finite_loss_bounds is not Mechanism.finite_loss_bounds

    def largest_losses(self) -> tuple[Array, Array]:
        """A loss that the pair, and one that the swapped pair, never exceeds, not even at +∞; ∞
        where there is none.
        """
        return xp.asarray(xp.inf), xp.asarray(xp.inf)

    def work_per_point(self) -> float:
        """About how long a pass over a lattice takes for each point, over that of a mechanism with
        simple cells; it bounds the work and certifies nothing."""
        return 1.0

    def loss_unit(self) -> Array:
        """The length of which every atom's loss is a multiple, or 0: keeps atoms exact."""
        return xp.zeros(())

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Exact masses of the cells between the points ``ell`` (unbatched); see ``cells.Cells``.

        The first cell whose lower point is at least ``end`` is open: it holds everything beyond.
        """
        raise NotImplementedError

    def atoms(self, ell: Array) -> tuple[Array, Array, Array] | None:
        """Cells, losses and log Q-masses of what moves when a parameter changes.

        Losses have derivatives in the parameters, as have the masses that ``cells`` finds between
        the points ``ell``; together they describe how a mechanism changes. Cells are numbered as in
        ``cells``, which has each atom in the cell named here; what is in one cell may be given as
        one. None where the loss has a density, smooth in the parameters, at every place."""
        return None

    def replace_one(self) -> Mechanism:
        """The mechanism whose pair is that of replacing one record.

        Raises:
            ValueError: there is no sound one.

        Method: docs/method/adjacency.md#relations
        """
        name = type(self).__name__
        raise ValueError(
            f"adjacency must be one of 'add_remove', 'add', 'remove' for {name}, got 'replace_one'"
        )


def known_mechanisms() -> dict[str, type[Mechanism]]:
    """Classes of the package that users build, by name: those with ``examples`` of their own.

    Example:
        >>> sorted(known_mechanisms())[:3]
        ['ApproximateDP', 'Deterministic', 'DiscreteGaussian']
    """
    package = __name__.rpartition(".")[0]
    classes = importlib.import_module(package)
    for name in classes.__all__:
        getattr(classes, name)  # (loads it)
    kinds: list[type[Mechanism]] = [Mechanism]
    for kind in kinds:  # (grows as it goes)
        kinds.extend(kind.__subclasses__())
    own = [
        kind
        for kind in kinds[1:]
        if "examples" in vars(kind) and kind.__module__.startswith(f"{package}.")
    ]
    return {kind.__name__: kind for kind in sorted(own, key=lambda kind: kind.__name__)}
