"""Table 1 of Kulynych 2024: FNR from FPR and another risk, checked in exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from ..result import Finding, Result, Table

Formula: TypeAlias = Callable[[Any, Any], Any]


class Conversion(NamedTuple):
    """One row of the table.

    Attributes:
        name: of the risk measure.
        risk: the measure from FPR and FNR, its definition.
        derived: FNR from FPR and the measure, with the formula.
        printed: readings of what the paper prints, likewise.
    """

    name: str
    risk: Formula
    derived: tuple[str, Formula]
    printed: tuple[tuple[str, Formula], ...]


CONVERSIONS = (
    Conversion(
        "advantage",
        lambda a, b: 1 - a - b,
        ("1 − α − η", lambda a, r: 1 - a - r),
        (("1 − α − η", lambda a, r: 1 - a - r),),
    ),
    Conversion(
        "accuracy",
        lambda a, b: ((1 - a) + (1 - b)) / 2,
        ("2(1 − a) − α", lambda a, r: 2 * (1 - r) - a),
        (("2(α − a)", lambda a, r: 2 * (a - r)), ("2(a − α)", lambda a, r: 2 * (r - a))),
    ),
    Conversion(
        "precision",
        lambda a, b: (1 - b) / (1 - b + a),
        ("1 − αv/(1 − v)", lambda a, r: 1 - a * r / (1 - r)),
        (
            ("(α − 1)(v − 1)/v − 1", lambda a, r: (a - 1) * (r - 1) / r - 1),
            ("(α − 1)(v − 1)/v", lambda a, r: (a - 1) * (r - 1) / r),
            ("(α − 1)(v − 1)/(v − 1)", lambda a, r: (a - 1) * (r - 1) / (r - 1)),
        ),
    ),
)

# more points than the degrees of these rational functions allow an accidental identity to survive
_RATES = [(Fraction(i, 40), Fraction(j, 40)) for i in range(1, 39) for j in range(1, 40 - i)]
_EXAMPLE = (Fraction(1, 10), Fraction(1, 2))


def _exchanged(a: Fraction, b: Fraction) -> Fraction:
    """Precision with FPR and FNR exchanged."""
    return (1 - a) / (1 - a + b)


def returns_fnr(risk: Formula, formula: Formula) -> bool:
    """Whether a formula gives β back from α and risk(α, β), in exact fractions.

    Example:
        >>> returns_fnr(lambda a, b: 1 - a - b, lambda a, r: 1 - a - r)
        True
    """
    return all(formula(a, risk(a, b)) == b for a, b in _RATES)


def table_1(quick: bool) -> Result:
    """FNR from FPR and advantage, accuracy or precision."""
    answers, body = {}, []
    alpha, beta = _EXAMPLE
    for c in CONVERSIONS:
        label, formula = c.derived
        if not returns_fnr(c.risk, formula):
            raise ArithmeticError(
                f"the derived formula for {c.name} does not return the false negative rate"
            )
        right = [text for text, reading in c.printed if returns_fnr(c.risk, reading)]
        level = c.risk(alpha, beta)
        got = [f"{text} = {float(reading(alpha, level)):.4g}" for text, reading in c.printed]
        evidence = f"at α = 0.1, β = 0.5 the {c.name} is {float(level):.4g}; {got[0]}"
        if not right:
            evidence += f"; the definition solved for β is {label}"
            if c.name == "precision":
                swapped = [text for text, reading in c.printed if returns_fnr(_exchanged, reading)]
                evidence += (
                    f"; {swapped[0]} solves (1 − α)/(1 − α + β) = v, where the error rates are"
                    " exchanged"
                )
            if len(got) > 1:
                evidence += f"; other readings fail too: {', '.join(got[1:])}"
        answers[f"table-1-{c.name}"] = Finding(f"β = {label}", bool(right), evidence)
        for kind, (text, reading) in [("derived", c.derived), *(("printed", p) for p in c.printed)]:
            holds = "yes" if returns_fnr(c.risk, reading) else "no"
            numbers = (f"{float(x):.6g}" for x in (level, reading(alpha, level)))
            body.append((c.name, kind, text, *numbers, holds))
    at = "measure at α = 0.1, β = 0.5"
    header = ("measure", "formula", "β", at, "β by the formula", "returns β")
    return Result(answers, tables={"table-1": Table(header, tuple(body))})
