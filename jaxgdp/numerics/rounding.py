"""Decimal text of a bracket's sides that never claims more than the bracket."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def rounded_outward(value: float, *, up: bool, digits: int = 6) -> str:
    """Decimal text of a bracket's side that never lies on the wrong side of it.

    Args:
        value: the side, infinite or NaN included.
        up: round towards +∞ (upper side), else towards −∞.
        digits: significant digits.

    Returns:
        Text; ``float`` of it is ≥ ``value`` if ``up``, else ≤ ``value``, up to one rounding of the
        conversion back.

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
