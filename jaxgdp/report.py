"""One mechanism's privacy report: every number a bracket, every bracket with the side that is safe to report."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from ._version import __version__
from .bracket import Bracket
from .engine import STATUS
from .mechanisms import as_composition
from .tradeoff import tradeoff
from .validation import open_unit

TIER_LIMIT = 0.01
PAPER_FPRS = tuple(float(f"1e-{k}") for k in range(10, 0, -1))
_VERDICTS = {
    "I": f"Tier I: the regret is certified below {TIER_LIMIT:g}, so mu stands for the whole trade-off curve",
    "II": f"Tier II: the regret is not certified below {TIER_LIMIT:g}, so publish the trade-off curve beside mu",
}


def rounded_outward(value: float, *, up: bool, digits: int = 6) -> str:
    """Decimal text of a bracket's side that never lies on the wrong side of it.

    Args:
        value: the side, infinite or NaN included.
        up: round towards +∞ (upper side), else towards −∞.
        digits: significant digits.

    Returns:
        Text; ``float`` of it is ≥ ``value`` if ``up``, else ≤ ``value``, up to one rounding of the conversion back.

    Example:
        >>> rounded_outward(2 / 3, up=True, digits=3), rounded_outward(2 / 3, up=False, digits=3)
        ('0.667', '0.666')
    """
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    short = context.plus(Decimal(value))
    if short == 0:
        return "0"
    if -5 < short.adjusted() < digits:
        text = f"{short:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{short:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"


def _value(value) -> str:
    """A number, or how many there are."""
    return f"{float(value):.10g}" if np.ndim(value) == 0 else f"<{np.size(value)} values>"


def describe(mechanism) -> str:
    """A composition of scalars in one line: ``SubsampledGaussian(…) x count``, parts joined by ``+``."""
    parts = []
    for part, count in zip(mechanism.mechanisms, mechanism.counts, strict=True):
        fields = ", ".join(f"{f.name}={_value(getattr(part, f.name))}" for f in dataclasses.fields(part))
        parts.append(f"{type(part).__name__}({fields}) x {float(count):.16g}")
    return " + ".join(parts)


def _json_number(value):
    """Finite numbers as they are, infinities as text, NaN as null."""
    if math.isfinite(value):
        return float(value)
    return None if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _json_bracket(bracket: Bracket) -> dict:
    return {"lower": _json_number(bracket.lower), "upper": _json_number(bracket.upper), "report": "upper"}


@dataclass(frozen=True)
class Report:
    """What to publish about one mechanism; build it with :func:`report`.

    All brackets are scalars of float64; the upper side is the safe one to report, for every one of them.

    Attributes:
        mechanism: text of the composition.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        tier: "I" where the upper side of the regret is below 0.01, else "II".
        mu: μ over FPRs from ``fpr_floor`` to f(``fpr_floor``) (Gomez 2025, Eq. 11).
        fpr_floor: smallest FPR at which ``mu`` holds.
        approximate_mu: d-approximate μ, which holds at every FPR.
        approximation: its d.
        regret: Δ of reporting the upper μ (Gomez 2025, Eq. 13).
        epsilons: tuple of (δ, ε bracket in nats).
        advantage: membership advantage η.
        advantage_fpr: α*, the FPR of the attack that reaches the lower side of the advantage.
        tprs: tuple of (FPR, TPR bracket), α* last.
        tail_mu: limit of μ as the floor goes to 0.
        status: "ok", or why the μ bracket is wider than ``rtol``; the brackets hold all the same.
        rtol: relative width asked of the μ bracket.
        version: of jaxgdp.
    """

    mechanism: str
    adjacency: str
    tier: str
    mu: Bracket
    fpr_floor: float
    approximate_mu: Bracket
    approximation: float
    regret: Bracket
    epsilons: tuple[tuple[float, Bracket], ...]
    advantage: Bracket
    advantage_fpr: float
    tprs: tuple[tuple[float, Bracket], ...]
    tail_mu: float
    status: str
    rtol: float
    version: str

    def _head(self) -> list[tuple[str, str]]:
        return [
            ("mechanism", self.mechanism),
            ("adjacency", self.adjacency),
            ("verdict", _VERDICTS[self.tier]),
            ("status", self.status),
        ]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Quantity, lower, upper, side to report."""
        brackets = [
            (f"mu, FPR and FNR >= {self.fpr_floor:g}", self.mu),
            (f"mu, {self.approximation:g}-approximate, any rate", self.approximate_mu),
            ("regret Delta of that mu", self.regret),
            *((f"epsilon at delta = {delta:g}", bracket) for delta, bracket in self.epsilons),
            ("advantage", self.advantage),
            *((f"TPR at FPR = {fpr:g}", bracket) for fpr, bracket in self.tprs[:-1]),
            (f"TPR at alpha* = {self.tprs[-1][0]:.6g}", self.tprs[-1][1]),
        ]
        rows = [
            (name, rounded_outward(float(b.lower), up=False), rounded_outward(float(b.upper), up=True), "upper")
            for name, b in brackets
        ]
        limit = rounded_outward(self.tail_mu, up=True)
        return [*rows, ("limit of mu as FPR -> 0", rounded_outward(self.tail_mu, up=False), limit, "upper")]

    def __str__(self) -> str:
        rows = [("quantity", "lower", "upper", "report"), *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}" for a, b, c, d in rows]
        lines.insert(1, "-" * max(map(len, lines)))
        head = [f"{name:<10} {text}" for name, text in self._head()]
        return "\n".join([f"jaxgdp {self.version} privacy report", *head, "", *lines])

    def to_markdown(self) -> str:
        """The report as a Markdown list and table."""
        head = [f"- **{name}**: {text}" for name, text in self._head()]
        table = ["| quantity | lower | upper | report |", "|---|---:|---:|---|"]
        table += ["| " + " | ".join(row) + " |" for row in self._rows()]
        return "\n".join([f"### Privacy report (jaxgdp {self.version})", "", *head, "", *table])

    def to_dict(self) -> dict:
        """The report as plain Python values, ready for JSON: infinities are the text "inf", NaN is ``None``."""
        return {
            "version": self.version,
            "mechanism": self.mechanism,
            "adjacency": self.adjacency,
            "rtol": self.rtol,
            "tier": self.tier,
            "status": self.status,
            "fpr_floor": self.fpr_floor,
            "mu": _json_bracket(self.mu),
            "approximate_mu": {"d": self.approximation} | _json_bracket(self.approximate_mu),
            "regret": _json_bracket(self.regret),
            "epsilon": [{"delta": delta} | _json_bracket(bracket) for delta, bracket in self.epsilons],
            "advantage": _json_bracket(self.advantage),
            "advantage_fpr": _json_number(self.advantage_fpr),
            "tpr": [{"fpr": fpr} | _json_bracket(bracket) for fpr, bracket in self.tprs],
            "tail_mu": _json_number(self.tail_mu),
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as strict JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def report(
    mechanism,
    *,
    rtol=1e-3,
    fpr_floor=1e-10,
    adjacency="add_remove",
    deltas=(1e-3, 1e-5, 1e-6, 1e-10),
    approximation=1e-10,
) -> Report:
    """Everything worth publishing about one mechanism, as Gomez 2025 recommends (Tier I or Tier II).

    Args:
        mechanism: a scalar mechanism or composition.
        rtol: relative width asked of the μ bracket, in [1e-8, 1).
        fpr_floor: smallest FPR at which μ must hold, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove" or "replace_one".
        deltas: δ values in (0, 1) at which to give ε.
        approximation: d of the d-approximate μ, in (0, 1).

    Returns:
        A :class:`Report`; of every bracket, report the upper side.

    Raises:
        ValueError: an argument is out of range, or the mechanism is batched (before tracing).

    Example:
        >>> import jaxgdp
        >>> jaxgdp.report(jaxgdp.Gaussian(2.0)).tier
        'I'
    """
    mechanism = as_composition(mechanism)
    if mechanism.shape != ():
        raise ValueError(f"mechanism must be scalar (shape ()) for a report, got shape {mechanism.shape}")
    deltas = np.atleast_1d(open_unit("delta", deltas)).reshape(-1)
    approximation = float(open_unit("approximation", approximation))
    curve = tradeoff(mechanism, rtol=rtol, fpr_floor=fpr_floor, adjacency=adjacency)

    best_fpr = float(curve.advantage_fpr())
    fprs = (*PAPER_FPRS, best_fpr)
    regret = _scalar(curve.regret())
    return Report(
        mechanism=describe(mechanism),
        adjacency=adjacency,
        tier="I" if regret.upper < TIER_LIMIT else "II",
        mu=_scalar(curve.mu()),
        fpr_floor=float(fpr_floor),
        approximate_mu=_scalar(curve.approximate_mu(approximation)),
        approximation=approximation,
        regret=regret,
        epsilons=_paired(deltas, curve.epsilon(deltas)),
        advantage=_scalar(curve.advantage()),
        advantage_fpr=best_fpr,
        tprs=_paired(fprs, curve.tpr(np.array(fprs))),
        tail_mu=float(curve.tail_mu),
        status=STATUS[int(curve.status)],
        rtol=float(rtol),
        version=__version__,
    )


def _scalar(bracket: Bracket) -> Bracket:
    return Bracket(np.float64(bracket.lower), np.float64(bracket.upper))


def _paired(arguments, bracket: Bracket) -> tuple[tuple[float, Bracket], ...]:
    sides = zip(arguments, bracket.lower, bracket.upper, strict=True)
    return tuple((float(a), Bracket(np.float64(low), np.float64(high))) for a, low, high in sides)
