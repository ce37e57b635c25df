"""Composition through one number next to the exact one (Liu et al. 2022, Section 5.2).

Each part is replaced by the Gaussian mechanism of its own μ; μ composes as √(Σ k·μ²). Or the exact
composition is measured first and summarised once. Both are upper bounds; the second is never the
larger one where μ holds at every rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import gdp, options
from ..bracket import Bracket
from ..mechanisms import Composition, Mechanism, as_composition
from ..numerics.errors import COMPOSED_MU
from ..numerics.rounding import rounded_outward
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import open_unit
from ..tradeoff import TradeoffCurve, tradeoff
from .identify import GdpVerdict, identify

DELTAS = (1e-3, 1e-5, 1e-6, 1e-10)


class Part(NamedTuple):
    """A part of a composition, its uses, and the verdict on one use."""

    mechanism: Mechanism
    uses: float
    verdict: GdpVerdict


@dataclass(frozen=True)
class Summary:
    """A composition by three routes; build it with :func:`summarize`.

    Attributes:
        mus: the verdict on each part, used once.
        by_parts: √(Σ k·μ²) of the upper sides; ∞ where a part has no μ at every rate.
        whole: verdict on the exact composition: the summary by its own μ.
        deltas: δ at which the ε of each are compared.
        exact: bracket of ε of the exact composition at each δ, nats; report the upper side.
        by_mu: ε of the Gaussian mechanism of ``whole.head_mu``, nats, which bounds the exact ε
            where that μ holds.
        by_parts_epsilon: ε of the Gaussian mechanism of ``by_parts``, nats.
        curve: the trade-off curve of the exact composition.
    """

    mus: tuple[Part, ...]
    by_parts: float
    whole: GdpVerdict
    deltas: tuple[float, ...]
    exact: Bracket
    by_mu: Array
    by_parts_epsilon: Array
    curve: TradeoffCurve

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Column names and rows of text, rounded up."""
        up = lambda x: rounded_outward(float(x), up=True, digits=5)
        header = ("delta", "exact epsilon", "by mu of the whole", "by mu of the parts")
        columns = zip(self.deltas, self.exact.upper, self.by_mu, self.by_parts_epsilon, strict=True)
        return header, tuple((f"{d:g}", up(e), up(m), up(p)) for d, e, m, p in columns)

    def __str__(self) -> str:
        header, rows = self.table()
        cells = [header, *rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
        lines = [
            "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells
        ]
        parts = rounded_outward(self.by_parts, up=True, digits=6)
        whole = rounded_outward(float(self.whole.head_mu.upper), up=True, digits=6)
        floor = f" from FPR {self.whole.fpr_floor:.3g} on" if self.whole.fpr_floor > 0.0 else ""
        return "\n".join([f"mu of the whole {whole}{floor}, by parts {parts}", *lines])


def summarize(
    mechanism: Mechanism | Composition,
    *,
    deltas: ArrayLike = DELTAS,
    fpr_floor: float = options.FPR_FLOOR,
    rtol: float = options.RTOL,
) -> Summary:
    """The exact composition, its Gaussian summary, and the composition of the parts' own μ.

    Args:
        mechanism: a mechanism or composition, scalar.
        deltas: δ in (0, 1) at which ε is compared, one axis.
        fpr_floor: FPR down to which the μ of the whole must hold where no μ holds everywhere, in
            [1e-300, 0.5).
        rtol: requested relative width of the brackets, in [1e-8, 1).

    Raises:
        ValueError: an argument is out of range or batched.

    Example:
        >>> import jaxgdp
        >>> found = summarize(jaxgdp.compose([(jaxgdp.PureDP(0.2), 50)]), deltas=[1e-5])
        >>> round(found.by_parts, 3), round(float(found.whole.head_mu.upper), 3)
        (1.771, 1.42)
    """
    composition: Composition = as_composition(mechanism)
    deltas = tuple(np.atleast_1d(open_unit("deltas", deltas)).reshape(-1).tolist())
    curve = tradeoff(composition, rtol=rtol, fpr_floor=fpr_floor)
    whole = identify(curve)
    used = zip(composition.mechanisms, composition.counts, strict=True)
    parts = [Part(part, float(uses), identify(part, rtol=rtol)) for part, uses in used]
    squares = sum(uses * float(verdict.everywhere.upper) ** 2 for _, uses, verdict in parts)
    by_parts = float(np.sqrt(squares)) * (1.0 + COMPOSED_MU)
    at = np.array(deltas)

    def epsilon(mu: float) -> Array:
        if not np.isfinite(mu):
            return np.full(len(at), np.inf)
        return gdp.epsilon(delta=at, mu=mu) * (1.0 + 1e-9)

    by_mu, by_all = epsilon(float(whole.head_mu.upper)), epsilon(by_parts)
    return Summary(tuple(parts), by_parts, whole, deltas, curve.epsilon(at), by_mu, by_all, curve)
