"""What the computation behind one figure or table hands back, and one line of the verdict table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..bracket import Bracket
from .published import Published
from .verdict import ELSEWHERE, Comparison, judge, judge_statement, shown


class Number(NamedTuple):
    """Our answer to a published number.

    Attributes:
        bracket: certified lower and upper side.
        alternatives: (description, bracket) of other readings of the paper's setting.
        note: what else there is to say of the comparison.
    """

    bracket: Bracket
    alternatives: tuple[tuple[str, Bracket], ...] = ()
    note: str = ""

    @property
    def text(self) -> str:
        """The bracket, rounded outward, with the alternatives behind it."""
        others = [f"{shown(other)} {name}" for name, other in self.alternatives]
        return "; ".join([shown(self.bracket), *others])

    def verdict(self, published: Published) -> Comparison:
        """Compared with the number as printed."""
        outcome, because = judge(
            published.printed, self.bracket, published.relation, self.alternatives
        )
        return Comparison(outcome, "; ".join(filter(None, (because, self.note))))


class Finding(NamedTuple):
    """Our answer to a statement in words.

    Attributes:
        text: our number or numbers.
        holds: True, False, or None where the brackets cannot tell.
        evidence: what decides it.
    """

    text: str
    holds: bool | None
    evidence: str

    def verdict(self, published: Published) -> Comparison:
        """Whether the statement holds."""
        return judge_statement(self.holds, self.evidence)


class NotHere(NamedTuple):
    """In place of an answer that needs data or machines which cannot be bundled.

    Attributes:
        text: what is shown instead.
        why: what is missing.
    """

    text: str
    why: str

    def verdict(self, published: Published) -> Comparison:
        """Neither for nor against."""
        return Comparison(ELSEWHERE, self.why)


class Table(NamedTuple):
    """A table of text: column names and rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of_rows(
        cls, header: str | Iterable[str], rows: Iterable[Iterable[Any]], digits: int | None = None
    ) -> Table:
        """A table of text and numbers.

        Args:
            header: names of the columns, or one text with spaces between them.
            rows: cells; text is left as it is.
            digits: significant digits of numbers; None for all that they have.

        Example:
            >>> Table.of_rows("name value", [("a", 1 / 3)], digits=3).rows
            (('a', '0.333'),)
        """
        names = header.split() if isinstance(header, str) else header
        return cls(tuple(names), tuple(tuple(_cell(x, digits) for x in row) for row in rows))

    @classmethod
    def of_columns(
        cls, header: str | Iterable[str], *columns: Iterable[Any], digits: int | None = None
    ) -> Table:
        """The same from columns of equal length."""
        return cls.of_rows(header, zip(*columns, strict=True), digits)


def _cell(value: Any, digits: int | None) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if digits is None else f"{float(value):.{digits}g}"


def decided(holds: Any, fails: Any) -> bool | None:
    """True where a statement certainly holds, False where it certainly fails, else None."""
    return True if holds else False if fails else None


def element(bracket: Bracket, index: int) -> Bracket:
    """One element of a bracket of arrays, as floats."""
    return Bracket(float(bracket.lower[index]), float(bracket.upper[index]))


@dataclass(frozen=True)
class Result:
    """What one figure or table came to.

    Attributes:
        answers: :class:`Number`, :class:`Finding` or :class:`NotHere` by the name of the published
            number; keys must be those the data file lists.
        draw: a function that draws on a matplotlib ``Figure``, or None for tables.
        size: width and height of the figure in inches.
        tables: tables by file stem: the table itself, or the numbers behind the figure.
        fpr_floor: of the μ and the regrets in the figure and the tables, 0 where they hold at every
            FPR, None where there are none.
    """

    answers: Mapping[str, Number | Finding | NotHere]
    draw: Callable[[Any], Any] | None = None
    size: tuple[float, float] = (7.0, 4.0)
    tables: dict[str, Table] = field(default_factory=dict)
    fpr_floor: float | None = None


def drawn(
    name: str,
    answers: Mapping[str, Number | Finding | NotHere],
    table: Table,
    draw: Callable[..., Any],
    *shown: Any,
    size: tuple[float, float],
    fpr_floor: float | None = None,
) -> Result:
    """What a figure came to: ``draw(*shown, figure)`` draws it, the table holds its numbers."""
    return Result(answers, functools.partial(draw, *shown), size, {name: table}, fpr_floor)


class Row(NamedTuple):
    """One line of the verdict table."""

    item: str
    name: str
    where: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    because: str


def rows(
    published: list[Published], answers: Mapping[str, Number | Finding | NotHere]
) -> list[Row]:
    """The verdict on every published number that was answered, in the paper's order."""
    found = []
    for p in published:
        answer = answers[p.name]
        outcome, because = answer.verdict(p)
        paper = f"{p.relation} {p.printed}" if p.relation in ("≈", "<", ">") else p.printed
        found.append(Row(p.item, p.name, p.where, p.quantity, paper, answer.text, outcome, because))
    return found
