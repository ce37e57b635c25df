"""The trade-off curve of a report as two figures: on plain axes, and on logarithmic ones."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from .. import gdp
from ..adjacency import Adjacency
from ..numerics.optional import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..numerics.shapes import Array
    from .content import Report

# points: of small rates, of the others, and of the Gaussian curve
_TAIL, _MIDDLE, _FINE = 12, 20, 2001
_BAND, _GAUSSIAN, _CHANCE = "#0072B2", "#000000", "#767676"


class Drawn(NamedTuple):
    """The curves of a report: points so close that lines between them are no visible error.

    Attributes:
        low, high: (α, β) of the lower and of the upper side of f, α increasing.
        gaussian: (α, f_μ(α)) of the reported μ, which lies below.
        fpr_floor: smallest FPR of ``mu``.
        mu: the reported μ.
    """

    low: np.ndarray
    high: np.ndarray
    gaussian: np.ndarray
    fpr_floor: float
    mu: float


def _places(mu: float, floor: float, last: float) -> np.ndarray:
    """FPRs up to ``last``: even in Φ⁻¹ for small ones, in α − f_μ(α) for those that are visible."""
    tail = ndtr(np.linspace(ndtri(floor), ndtri(last), _TAIL))
    fine = ndtr(np.linspace(ndtri(floor), ndtri(last), _FINE))
    along = fine - gdp.beta(fpr=fine, mu=min(mu, 5.0))
    even = np.interp(np.linspace(along[0], along[-1], _MIDDLE), along, fine)
    return np.unique(np.concatenate([tail, even, [last]]))


def points(report: Report) -> Drawn:
    """The curve of a report where it is drawn; the half beyond the diagonal may be mirrored."""
    floor, mu = max(report.fpr_floor, 1e-15), float(report.mu.upper)
    symmetric = Adjacency(report.adjacency).symmetric
    # (α* is where a curve may have a corner)
    alpha = _places(mu, floor, report.advantage_fpr if symmetric else 1.0 - floor)
    if not symmetric:
        alpha = np.union1d(alpha, [report.advantage_fpr])
    beta = report.curve().beta(alpha)
    ends = np.array([[0.0, 1.0], [1.0, 0.0]])
    sides = []
    for side in beta:
        known = np.column_stack([alpha, side])
        whole = np.vstack([ends, known, known[:, ::-1]] if symmetric else [ends, known])
        sides.append(whole[np.lexsort((-whole[:, 1], whole[:, 0]))])
    fine = ndtr(np.linspace(ndtri(floor), -ndtri(floor), _FINE))
    gaussian = gdp.beta(fpr=fine, mu=mu) if np.isfinite(mu) else np.zeros_like(fine)
    return Drawn(*sides, np.column_stack([fine, gaussian]), report.fpr_floor, mu)


def _matplotlib():
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("reports with figures need matplotlib", "report") from None
    return mpl, Figure, FigureCanvasSVG


def _lines(drawn: Drawn, ax: Axes, shown: Callable[[Array], Array]) -> None:
    """The band of both sides, the lower side, the Gaussian curve of the reported μ, guessing."""
    band = np.vstack([shown(drawn.low), shown(drawn.high)[::-1]])
    ax.fill(*band.T, color=_BAND, alpha=0.35, linewidth=0)
    ax.plot(*shown(drawn.low).T, color=_BAND, linewidth=1.8, label="this mechanism")
    style = {"linestyle": (0, (1, 1.6)), "linewidth": 1.8, "color": _GAUSSIAN}
    ax.plot(*shown(drawn.gaussian).T, label=f"Gaussian, μ = {drawn.mu:.4g}", **style)
    chance = np.column_stack([drawn.gaussian[:, 0], 1.0 - drawn.gaussian[:, 0]])
    ax.plot(*shown(chance).T, color=_CHANCE, linewidth=1.2, linestyle="--", label="guessing")


def whole(drawn: Drawn, ax: Axes) -> None:
    """FNR against FPR from 0 to 1."""
    _lines(drawn, ax, lambda curve: curve)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set_xlabel("FPR: share of non-members flagged")
    ax.set_ylabel("FNR: share of members missed")
    ax.legend(loc="upper right", frameon=False)


def far_out(drawn: Drawn, ax: Axes) -> None:
    """TPR against small FPR, from the floor on: where hardly any non-member is flagged."""

    def found(curve: Array) -> Array:
        inside = curve[(curve[:, 0] >= drawn.fpr_floor) & (curve[:, 0] <= 0.5)]
        return np.column_stack([inside[:, 0], np.maximum(1.0 - inside[:, 1], inside[:, 0])])

    _lines(drawn, ax, found)
    ax.set(xscale="log", yscale="log", xlim=(max(drawn.fpr_floor, 1e-15), 0.5))
    ax.locator_params(axis="x", numticks=6)
    ax.set_xlabel(f"FPR, from the floor {drawn.fpr_floor:g} on")
    ax.set_ylabel("TPR: share of members found")
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)


_WHOLE = "Trade-off between an attacker's two errors; the nearer to the axes, the better for the"
PANELS = (
    (whole, f"{_WHOLE} attacker."),
    (
        far_out,
        "The same for attackers who flag very few non-members: the most members that they find.",
    ),
)


def svgs(report: Report, font: str = "none") -> list[str]:
    """The figures as SVG elements; the font "none" keeps text as text, "path" draws it.

    Raises:
        ImportError: matplotlib is missing (the ``report`` extra).
    """
    mpl, Figure, Canvas = _matplotlib()
    drawn = points(report)
    found = []
    for number, (draw, _) in enumerate(PANELS):
        settings = {
            "svg.fonttype": font,
            "font.size": 11,
            "font.family": "sans-serif",
            "svg.hashsalt": f"jaxgdp{number}",
        }
        with mpl.rc_context(settings):
            figure = Figure(figsize=(4.6, 4.2), layout="constrained")
            Canvas(figure)
            draw(drawn, figure.add_subplot())
            file = io.StringIO()
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        text = file.getvalue()
        text = text[text.index("<svg") :]
        found.append(re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S))
    return found
