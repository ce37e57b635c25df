"""How lines are told apart: by colour, and without colour by dashes, markers and darkness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.optional import Axes, missing
from ..quantities.base import Quantity
from ..quantities.registry import REGISTRY

# Okabe and Ito's palette, told apart by colour-blind readers; its yellow is left out as too pale
# for print
BLACK = "#000000"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DOTTED = ":"
FEW = 25  # so many points or fewer are data of their own and get a marker each
_LETTERS = {"μ": r"\mu", "μ_d": r"\mu_d", "ε": r"\varepsilon", "δ": r"\delta", "β": r"\beta"} | {
    "η": r"\eta", "Δ": r"\Delta",
}  # fmt: skip
_APART = 0.13  # between markers, of the diagonal of the axes


def line_style(number: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line of that number, from 0 on.

    Args:
        number: whole number ≥ 0; styles repeat after 30 lines.

    Returns:
        Keywords of matplotlib's ``plot``.

    Example:
        >>> line_style(0)["marker"], line_style(1)["marker"]
        ('o', 's')
    """
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def marked(number_of_points: int, line: int = 0, lines: int = 1) -> dict[str, Any]:
    """The places of a line's markers: every point where these are few, else equal distances.

    Args:
        number_of_points: on the line.
        line, lines: which of how many lines, so that markers do not cover one another.

    Returns:
        Keywords of matplotlib's ``plot``.
    """
    if number_of_points <= FEW:
        return {"markersize": 4}
    return {"markersize": 4, "markevery": (_APART * (line % lines) / lines, _APART)}


def grid(ax: Axes) -> None:
    """A faint grid behind everything."""
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)
    ax.set_axisbelow(True)


def power(value: float) -> str:
    """A rate as mathematical text: 1e-10 as $10^{-10}$.

    Example:
        >>> power(1e-10), power(0.25), power(3e-7)
        ('10^{-10}', '0.25', '3 \\\\times 10^{-7}')
    """
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    if not exponent:
        return mantissa
    return ("" if mantissa == "1" else rf"{mantissa} \times ") + f"10^{{{int(exponent)}}}"


def symbol(quantity: Quantity) -> str:
    """The symbol of a quantity as mathematical text.

    Example:
        >>> symbol(REGISTRY["epsilon"]), symbol(REGISTRY["tpr"])
        ('$\\\\varepsilon$', 'TPR')
    """
    letter = _LETTERS.get(quantity.symbol)
    return quantity.symbol if letter is None else f"${letter}$"


def at_argument(quantity: Quantity, value: float) -> str:
    """The argument of a quantity, for a label; "" if it has none.

    Example:
        >>> at_argument(REGISTRY["epsilon"], 1e-5), at_argument(REGISTRY["tpr"], 0.1)
        (' at $\\\\delta = 10^{-5}$', ' at FPR $= 0.1$')
        >>> at_argument(REGISTRY["mu"], 0.0)
        ' (every FPR)'
    """
    argument = quantity.argument
    if argument is None:
        return ""
    if quantity.own_argument is None:
        return f" ({from_floor(value)})"
    if argument not in REGISTRY:
        return f" at {argument.upper() if argument == 'fpr' else argument} $= {power(value)}$"
    return f" at ${symbol(REGISTRY[argument]).strip('$')} = {power(value)}$"


def from_floor(fpr_floor: float) -> str:
    """The range of FPRs over which a μ holds, as text for a label; the floor is rounded up.

    Example:
        >>> from_floor(0.0), from_floor(1e-10)
        ('every FPR', 'FPR $\\\\geq 10^{-10}$')
    """
    return "every FPR" if fpr_floor == 0.0 else rf"FPR $\geq {power(float(rounded_up(fpr_floor)))}$"


def rounded_up(value: float) -> str:
    """Four digits, rounded up: what may be reported.

    Example:
        >>> rounded_up(1.56721), rounded_up(2.0), rounded_up(1e-10)
        ('1.568', '2', '1e-10')
    """
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    if float(f"{value:.3e}") < value:
        mantissa = f"{float(mantissa) + 1e-3:.3f}"
    return f"{float(f'{mantissa}e{exponent}'):.4g}"


def plain_log(axis: Any) -> None:
    """A logarithmic axis over few decades: 1, 2 and 5 in full, in place of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def axes_or_current(ax: Axes | None) -> Axes:
    """``ax``, or the current one of pyplot where it is None."""
    if ax is not None:
        return ax
    need_matplotlib()
    import matplotlib.pyplot as plt

    return plt.gca()


def need_matplotlib() -> None:
    """An error that names the extra, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing("figures need matplotlib", "plot") from None
