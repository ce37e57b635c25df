"""How strong the protection of a report is: a word, and an attacker's success out of 100."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..numerics.rounding import rounded_outward

if TYPE_CHECKING:
    from ..bracket import Bracket
    from .content import Report


class Grade(NamedTuple):
    """A word and the most that an attacker may reach for it.

    Attributes:
        word: of the protection.
        advantage: largest advantage, TPR − FPR.
        found: largest share of members found by an attacker who is wrong about one non-member in a
            thousand.
        meaning: in words.
    """

    word: str
    advantage: float
    found: float
    meaning: str


# no law and no consensus sets these limits; a Gaussian mechanism of μ = 0.25, 1.05 and 2.6 has the
# advantages 0.1, 0.4 and 0.8
GRADES = (
    Grade("strong", 0.1, 0.01, "an attacker hardly does better than by guessing"),
    Grade("moderate", 0.4, 0.1, "an attacker is wrong nearly as often as by guessing"),
    Grade("weak", 0.8, 0.5, "an attacker often tells whose records were used"),
    Grade("next to none", 2.0, 2.0, "an attacker almost always tells whose records were used"),
)
_FPR = 1e-3


def grade(advantage: float, found: float = 0.0) -> Grade:
    """The grade of an upper advantage, and of a share of members found at FPR 1e-3.

    Example:
        >>> grade(0.05).word, grade(0.05, found=0.3).word, grade(0.95).word
        ('strong', 'weak', 'next to none')
    """
    return next(g for g in GRADES if advantage <= g.advantage and found <= g.found)


def graded(report: Report) -> Grade:
    """The grade of a report, by the upper sides of its numbers."""
    found = dict(report.tprs).get(_FPR)
    return grade(float(report.advantage.upper), 0.0 if found is None else float(found.upper))


def success(advantage: float, *, up: bool = True) -> str:
    """How often of 100 times an attacker is right who must decide at even odds: 50·(1 + η).

    Example:
        >>> success(0.3412), success(0.8525, up=False)
        ('67.1', '92.6')
    """
    value = min(50.0 * (1.0 + advantage), 100.0)
    return rounded_outward(value, up=up, digits=3)


def sentence(report: Report) -> str:
    """The first sentence of every report."""
    right = success(float(report.advantage.upper))
    return (
        f"Protection: {graded(report).word}. An attacker's success rises from 50 to at most"
        f" {right} in 100."
    )


def between(advantage: Bracket) -> str:
    """A success that is known from both sides: "between 92.6 and 99.9"."""
    low, high = success(float(advantage.lower), up=False), success(float(advantage.upper))
    return f"between {low} and {high}"


def explanation() -> str:
    """The limits of the grades, in words."""
    limits = [
        f"{g.word}: at most {50.0 * (1.0 + g.advantage):g} in 100, and at most"
        f" {100.0 * g.found:g} % of members found where one non-member in a thousand is wrongly"
        " flagged"
        for g in GRADES[:-1]
    ]
    return "; ".join([*limits, f"{GRADES[-1].word}: beyond"])
