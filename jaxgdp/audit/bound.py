"""A number found by an audit, with what it bounds, on which side, and how surely."""

from __future__ import annotations

from typing import Any

LOWER, ESTIMATE = "lower bound", "estimate"


class Bound(float):
    """A float with its meaning, which ``print`` writes; it computes and formats as a float.

    Attributes:
        quantity: what it is about, such as "mu".
        side: "lower bound" (the truth is at least this with the confidence), or "estimate" (no
            guarantee).
        confidence: probability, over repetitions of the experiment, that a lower bound is one; None
            for an estimate.
        caveat: what the number does not prove.
        details: other findings, by name.

    Example:
        >>> bound = Bound(0.5, "mu", confidence=0.95)
        >>> print(bound)
        mu >= 0.5 with confidence 95 %
        >>> 2.0 * bound
        1.0
    """

    quantity: str
    side: str
    confidence: float | None
    caveat: str
    details: dict[str, Any]

    def __new__(
        cls,
        value: float,
        quantity: str,
        side: str = LOWER,
        confidence: float | None = None,
        caveat: str = "",
        details: dict[str, Any] | None = None,
    ):
        made = super().__new__(cls, value)
        made.quantity, made.side, made.confidence, made.caveat = quantity, side, confidence, caveat
        made.details = {} if details is None else details
        return made

    def __getnewargs__(self):  # type: ignore[override]
        return float(self), self.quantity, self.side, self.confidence, self.caveat, self.details

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __str__(self) -> str:
        relation = ">=" if self.side == LOWER else "="
        text = f"{self.quantity} {relation} {float(self):.6g}"
        if self.confidence is not None:
            text += f" with confidence {100.0 * self.confidence:g} %"
        elif self.side == ESTIMATE:
            text += " (an estimate)"
        return f"{text}; {self.caveat}" if self.caveat else text
