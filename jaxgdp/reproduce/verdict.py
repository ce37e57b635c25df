"""Whether a printed number agrees with a certified bracket, and in which direction it errs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from ..bracket import Bracket
from ..report import rounded_outward

AGREES, DIFFERS, UNDECIDED, ELSEWHERE = "agrees", "differs", "undecided", "not reproducible here"
_POWER = re.compile(r"10\^(-?\d+)")


class Comparison(NamedTuple):
    """What a comparison found.

    Attributes:
        outcome: "agrees", "differs", "undecided" (the bracket is too wide to tell), or "not
            reproducible here" (it takes data or machines that cannot be bundled).
        because: why, in words; empty where there is nothing to add.
    """

    outcome: str
    because: str


def printed_range(text: str) -> tuple[float, float]:
    """The numbers that a printed decimal stands for: half a unit of its last digit to either side.

    Args:
        text: a decimal such as "1.307", "8e-7" or "10^-3".

    Returns:
        (lower end, upper end).

    Raises:
        ValueError: not a decimal.

    Example:
        >>> printed_range("0.5"), printed_range("10^-1")
        ((0.45, 0.55), (0.05, 0.15))
    """
    try:
        value = Decimal(_POWER.sub(r"1e\1", text))
        if not value.is_finite():
            raise ArithmeticError
    except ArithmeticError:
        raise ValueError(f"printed must be a decimal number, got {text!r}") from None
    half = Decimal(5).scaleb(int(value.as_tuple().exponent) - 1)
    return float(value - half), float(value + half)


def _value(text: str) -> float:
    return float(_POWER.sub(r"1e\1", text))


def shown(bracket: Bracket, digits: int = 5) -> str:
    """A bracket as text, rounded outward: "[1.30675, 1.30683]", or one number.

    Example:
        >>> shown(Bracket(1 / 3, 2 / 3), digits=2)
        '[0.33, 0.67]'
    """
    low = rounded_outward(float(bracket.lower), up=False, digits=digits)
    high = rounded_outward(float(bracket.upper), up=True, digits=digits)
    return low if low == high else f"[{low}, {high}]"


def _outcome(printed: str, relation: str, bracket: Bracket) -> str:
    lower, upper = float(bracket.lower), float(bracket.upper)
    if relation in ("=", "≈"):
        start, end = printed_range(printed)
        agrees, differs = start <= lower and upper <= end, upper < start or lower > end
    elif relation == "<":
        agrees, differs = upper < _value(printed), lower >= _value(printed)
    elif relation == ">":
        agrees, differs = lower > _value(printed), upper <= _value(printed)
    else:
        raise ValueError(f"relation must be one of '=', '≈', '<', '>', got {relation!r}")
    return AGREES if agrees else DIFFERS if differs else UNDECIDED


def judge(
    printed: str,
    bracket: Bracket,
    relation: str = "=",
    alternatives: Iterable[tuple[str, Bracket]] = (),
) -> Comparison:
    """Compare a printed number with a bracket, and one that differs with other readings.

    Args:
        printed: decimal text as published.
        bracket: certified lower and upper side.
        relation: "=" (rounded to its last digit), "≈" (the same, meant loosely), "<" or ">" (said
            to lie below or above it).
        alternatives: (description, bracket) pairs, tried in order where the number differs: the
            first one that agrees is the explanation.

    Returns:
        A :class:`Comparison`. "=" agrees if the whole bracket rounds to the printed number and
        differs if none of it does.

    Raises:
        ValueError: the text is no decimal, or the relation is unknown.

    Example:
        >>> others = [("at N = 60,000", Bracket(1.30671, 1.30689))]
        >>> outcome, because = judge("1.307", Bracket(1.5669, 1.5671), alternatives=others)
        >>> outcome, because.partition(",")[0]
        ('differs', 'the printed number is the one at N = 60')
    """
    outcome = _outcome(printed, relation, bracket)
    if outcome == UNDECIDED:
        return Comparison(outcome, "the bracket straddles the limit")
    below = _value(printed) < float(bracket.lower)
    if outcome == AGREES:
        why = "to the digits printed; the printed number is rounded down, below the certified lower"
        return Comparison(outcome, f"{why} side" if relation == "=" and below else "")
    for description, other in alternatives:
        if _outcome(printed, relation, other) == AGREES:
            why = f"the printed number is the one {description}, where the bracket is"
            return Comparison(outcome, f"{why} {shown(other)}")
    if relation in ("=", "≈"):
        side = "below the certified lower side" if below else "above the certified upper side"
        return Comparison(outcome, f"the printed number lies {side}")
    side = {"<": "lower side is not below", ">": "upper side is not above"}[relation]
    return Comparison(outcome, f"the certified {side} {printed}")


def judge_statement(holds: bool | None, evidence: str) -> Comparison:
    """The verdict on a statement in words.

    Args:
        holds: whether the brackets prove it (True), refute it (False), or do neither (None).
        evidence: what they show.

    Example:
        >>> judge_statement(None, "brackets overlap").outcome
        'undecided'
    """
    return Comparison(UNDECIDED if holds is None else AGREES if holds else DIFFERS, evidence)
