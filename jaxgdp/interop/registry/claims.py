"""The claims of an entry: its structured parameters, and the numbers that stand in its text."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

SYMBOLS = ("epsilon", "delta", "rho", "mu")
_TEN = r"10(?:\^\{?|\{)?[−-](\d+)\}?"
_NUMBER = rf"(?:{_TEN}|(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?:\s*[×x]\s*10\^?\{{?[−-](\d+)\}}?)?)"
_CLAIM = re.compile(
    rf"\b(epsilon|rho|delta|mu)(?:_\{{?\w+\}}?)?['\s]*(?:-GDP\s+)?(?:=|<|≤|is about)\s*{_NUMBER}"
)
_SCALE = re.compile(rf"sensitivity\s*=\s*{_NUMBER}[,;]\s*noise scale\s*=\s*{_NUMBER}")
_TOTAL = re.compile(r"\b(total|overall|therefore)\b", re.I)
_BULLET = re.compile(r"^(\s*)(?:-|\d+\.)\s+(.*)$")


class Printed(NamedTuple):
    """A number as it was printed.

    Attributes:
        value: the number.
        half: half a unit of its last digit: what rounding may hide.
    """

    value: float
    half: float

    def may_be(self, value: float, slack: float = 0.0) -> bool:
        """Whether a number rounds to what is printed, both known to ``slack``."""
        return abs(value - self.value) <= self.half * (1.0 + 1e-9) + slack


class StatedGuarantee(NamedTuple):
    """One guarantee that an entry states.

    Attributes:
        label: for what, in the entry's words; "" for the whole.
        source: key that it stands under.
        epsilon, delta, rho, mu: as printed, or None.
        brackets: what it implies, by quantity; empty where it does not determine a guarantee.
    """

    label: str
    source: str
    epsilon: Printed | None = None
    delta: Printed | None = None
    rho: Printed | None = None
    mu: Printed | None = None
    brackets: dict[str, Any] = {}

    @property
    def stated(self) -> str:
        """Its numbers in one line."""
        letters = zip("εδρμ", SYMBOLS, strict=True)
        shown = [(letter, getattr(self, name)) for letter, name in letters]
        return ", ".join(
            f"{letter} = {number.value:g}" for letter, number in shown if number is not None
        )


class Part(NamedTuple):
    """A piece of text with its claim.

    Attributes:
        claim: its numbers.
        depth: of bullets it stands under.
        parent: position of the piece it belongs to, or None.
        listed: whether it is an element of a list.
        scale: (sensitivity, noise scale) where both are printed, or None.
        text: as it stands.
    """

    claim: StatedGuarantee
    depth: int
    parent: int | None
    listed: bool
    scale: tuple[float, float] | None
    text: str


def printed(value: float) -> Printed:
    """A number of a structured field, which has as many digits as it needs."""
    text = repr(value)
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) if "." in mantissa else 0
    return Printed(float(value), 0.5 * 10.0 ** (int(exponent or 0) - decimals))


def _from_groups(ten: str | None, mantissa: str, power: str | None) -> Printed:
    if ten is not None:
        return Printed(10.0 ** -int(ten), 0.0)
    plain = (
        printed(float(mantissa))
        if "e" in mantissa.lower()
        else Printed(float(mantissa), 0.5 * 10.0 ** -_decimals(mantissa))
    )
    factor = 10.0 ** -int(power) if power else 1.0
    return Printed(float(f"{mantissa}e-{power}") if power else plain.value, plain.half * factor)


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def plain(text: str) -> str:
    """Text without the marks of its formulas."""
    text = re.sub(r"\\+[()]", "", text)
    text = re.sub(r"\\+times", "×", text)
    text = re.sub(r"\\+prime", "'", text)
    return re.sub(r"\\+(epsilon|rho|delta|mu)", r"\1", text)


def _claim(text: str, source: str) -> StatedGuarantee:
    """The numbers of a text by symbol; several different ones count as none, but for a "total"."""
    found: dict[str, list[tuple[Printed, bool]]] = {}
    for match in _CLAIM.finditer(text):
        before = text[: match.start()]
        found.setdefault(match[1], []).append(
            (_from_groups(*match.groups()[1:]), bool(re.search(r"\btotal of\s*$", before)))
        )
    numbers = {}
    for name, seen in found.items():
        totals = [number for number, total in seen if total] or [number for number, _ in seen]
        if len({number.value for number in totals}) == 1:
            numbers[name] = totals[0]
    return StatedGuarantee(_label(text), source, **numbers)


def _label(text: str) -> str:
    """The words before the number, or behind it where none stand before."""
    label = re.split(r"[:(=]", text, maxsplit=1)[0].strip(" -\"'")
    if label in SYMBOLS:
        label = _CLAIM.sub("", text, count=1).strip(" .,-\"'")
    return textwrap.shorten(label, 60, placeholder=" …")


def _scale(text: str) -> tuple[float, float] | None:
    match = _SCALE.search(text)
    if match is None:
        return None
    groups = match.groups()
    return _from_groups(*groups[:3]).value, _from_groups(*groups[3:]).value


def _pieces(text: str) -> Iterator[tuple[int, bool, str]]:
    """(depth, listed, text) of paragraphs and bullets; "•" and ";" make a list of a paragraph."""
    paragraph: list[str] = []

    def flush() -> Iterator[tuple[int, bool, str]]:
        whole = " ".join(paragraph)
        paragraph.clear()
        split = re.split(r"•|;", whole)
        if len(split) > 1:
            for piece in split:
                yield 0, not _TOTAL.search(piece), piece.strip()
        else:
            for piece in re.split(r"(?<=[a-z)\d])\.\s+(?=[A-Z])", whole):
                yield 0, False, piece.strip()

    margin = None
    for line in text.splitlines():
        bullet = _BULLET.match(line)
        if bullet is None:
            paragraph.append(line.strip())
            continue
        yield from flush()
        margin = len(bullet[1]) if margin is None else margin
        yield 1 + (len(bullet[1]) - margin) // 2, True, bullet[2]
    yield from flush()


def parts(text: Any, source: str) -> list[Part]:
    """Pieces of a text with their claims, and which belongs to which."""
    if not isinstance(text, str):
        return []
    found: list[Part] = []
    open_at: list[tuple[int, int]] = []  # (depth, position) of pieces that may have parts
    for depth, listed, piece in _pieces(plain(text)):
        if not piece:
            continue
        while open_at and open_at[-1][0] >= depth:
            open_at.pop()
        parent = open_at[-1][1] if open_at else None
        if depth or piece.endswith(":"):
            open_at.append((depth, len(found)))
        found.append(Part(_claim(piece, source), depth, parent, listed, _scale(piece), piece))
    return found


def structured(parameters: dict[str, Any] | None) -> list[StatedGuarantee]:
    """The claims of ``privacy_parameters``: (ε, δ), and ρ."""
    parameters = parameters or {}
    value = lambda name: (
        printed(parameters[name])
        if isinstance(parameters.get(name), (int, float)) and math.isfinite(parameters[name])
        else None
    )
    claims = []
    if value("rho") is not None:
        claims.append(StatedGuarantee("", "privacy_parameters", rho=value("rho")))
    if value("epsilon") is not None:
        claims.append(
            StatedGuarantee(
                "", "privacy_parameters", epsilon=value("epsilon"), delta=value("delta")
            )
        )
    return claims
