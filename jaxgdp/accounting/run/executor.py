"""What an executor is: whoever runs the stages over many settings."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from ...numerics.shapes import Array, Bool, Float
from ..certify.vertices import Vertices
from ..plan import Plan
from ..question import Kind, Rates

Groups: TypeAlias = tuple[tuple[Any, Array], ...]
Halves: TypeAlias = tuple[Vertices, Vertices]  # from above and from below


class Executor(Protocol):
    """Runs the stages over the leading axis of their arguments (host arrays in, arrays
    out that may be on devices).

    Attributes:
        name: "eager", "compiled", "product" or "float32".
        padded: whether chunks should all have the same size.
        keeps: whether vertices of half-curves stay where they were composed until they are read,
            not to be moved: on accelerators.
        chunks: how many chunks of a lattice it works on at once: one on each device, or as many as
            accelerators have memory for.
        log_noise: log of how many times larger its noise is than that of doubles; decides how
            strongly laws are tilted.
    """

    name: str
    padded: bool
    log_noise: float

    @property
    def keeps(self) -> bool: ...

    @property
    def chunks(self) -> int: ...

    def parts(self, groups: Groups) -> Any:
        """``curve.gaussian_parts`` of every setting."""
        ...

    def plan_whole(
        self,
        groups: Groups,
        depths: tuple[Array, Array | None],
        rtol: float,
        max_neg_log_density: Float[Array, " settings"],
        known_reach: tuple[Array, Array],
        anchor: Float[Array, " settings"],
        pieces: int,
    ) -> tuple[Plan, Array]:
        """Plans of whole half-curves, and numbers of steps; see ``stages.plan_whole``."""
        ...

    def plan_threshold(
        self,
        groups: Groups,
        threshold: Float[Array, " settings"],
        rtol: float,
        share: Float[Array, " settings"],
        reverse: Bool[Array, "settings sides"],
    ) -> tuple[Plan, Array]:
        """Plans about one threshold, and numbers of steps; see ``stages.plan_threshold``."""
        ...

    def step(self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any) -> Any:
        """One step of every component on its lattice; see ``stages.steps``."""
        ...

    def half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any = None
    ) -> Halves:
        """Vertices of planned pieces of half-curves.

        Args:
            groups: of every piece.
            plans: of every piece.
            reverse: whether the pair is swapped.
            tables: of a sparse lattice, or None.
            shape: a ``Dense`` lattice, or the number of vertices of a sparse one.
            known: one step of every component and its low frequencies, if they are known already.
        """
        ...

    def read(
        self, parts: Any, plus: list, minus: list, rates: Rates, kind: Kind, pieces: int
    ) -> Any:
        """Numbers requested (see ``reading.read``), of ``pieces`` pieces a setting."""
        ...
