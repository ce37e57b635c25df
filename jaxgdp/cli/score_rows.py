"""Rows of scores and memberships, as they come."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..numerics.shapes import Array

_TRUE, _FALSE = ("1", "true", "yes", "in", "member"), ("0", "false", "no", "out", "nonmember")


class ScoreRows:
    """Rows of a CSV file with columns ``score`` and ``member``, read line by line.

    Args:
        name: of the file, for errors.
    """

    def __init__(self, name: str):
        self.name, self.line = name, 0
        self.columns: dict[str, int] | None = None
        self.scores: list[float] = []
        self.members: list[bool] = []

    def read(self, lines: Iterable[str]) -> tuple[Array, Array]:
        """Read more lines: the new (member scores, nonmember scores), arrays.

        Raises:
            ValueError: a column is missing or a row is malformed; names the file and the line.
        """
        import numpy as np

        before = len(self.scores)
        try:
            for row in csv.reader(lines):
                self.line += 1
                if row:
                    self._row([cell.strip() for cell in row])
        except csv.Error as error:
            raise ValueError(f"{self.name}: cannot be read: {error}") from None
        scores, members = np.array(self.scores[before:]), np.array(self.members[before:], bool)
        return scores[members], scores[~members]

    def check(self) -> None:
        """Raise ``ValueError`` if there was no row."""
        if self.columns is None:
            raise ValueError(f"{self.name}: column 'score' is missing; it has none")
        if not self.scores:
            raise ValueError(f"{self.name}: has no scores")

    def _row(self, cells: list[str]) -> None:
        if self.columns is None:
            names = [cell.lower() for cell in cells]
            missing = [name for name in ("score", "member") if name not in names]
            if missing:
                raise ValueError(
                    f"{self.name}: column {missing[0]!r} is missing; it has"
                    f" {', '.join(names) or 'none'}"
                )
            self.columns = {name: names.index(name) for name in ("score", "member")}
            return
        places = self.columns
        at = lambda name: cells[places[name]] if places[name] < len(cells) else ""
        score, member = at("score"), at("member").lower()
        if member not in _TRUE + _FALSE:
            raise ValueError(
                f"{self.name}, line {self.line}: member must be 1 or 0, got {at('member')!r}"
            )
        try:
            self.scores.append(float(score))
        except ValueError:
            raise ValueError(
                f"{self.name}, line {self.line}: score must be a number, got {score!r}"
            ) from None
        self.members.append(member in _TRUE)
