"""Figures 2, 3(b), 6 of Kulynych 2024: closed forms, and the cost of an advantage."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ... import gdp
from ...bracket import Bracket
from ...calibration import standard_epsilon, worst_case_gap
from ...conversions import advantage_from_approximate_dp, beta_from_approximate_dp
from ...numerics.shapes import Array, ArrayLike
from ..result import Finding, Number, Result, Table, drawn
from . import figures

DELTA = 1e-5
ADVANTAGE = 0.5  # of Section 3.1 and Figure 3(b)
AT = 0.1  # its FPR
_EPSILONS = (0.5, 1.0, 2.0)  # of Figure 2; the text does not say which
_SLACK = 1e-12  # rounding of the closed forms


class Region(NamedTuple):
    """One panel of Figure 2: the curve of any (ε, δ)-DP mechanism, and of the Gaussian."""

    epsilon: float
    delta: float
    mu: float
    alpha: Array
    generic: Array
    exact: Array


def _rates(quick: bool) -> Array:
    return np.linspace(0.0, 1.0, 201 if quick else 2001)


@functools.cache
def regions(quick: bool) -> list[Region]:
    """The panels of Figure 2."""
    found = []
    for epsilon in _EPSILONS:
        mu = float(gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=DELTA))
        corner = (1.0 - DELTA) / (1.0 + np.exp(epsilon))
        alpha = np.union1d(_rates(quick), [corner, fixed_point(mu)])
        generic = beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=DELTA)
        found.append(Region(epsilon, DELTA, mu, alpha, generic, gdp.beta(fpr=alpha, mu=mu)))
    return found


def fixed_point(mu: float) -> float:
    """α = f_μ(α): Φ(−μ/2), from the advantage 1 − 2α.

    Example:
        >>> round(fixed_point(2.0), 6)
        0.158655
    """
    return 0.5 * (1.0 - float(gdp.advantage(mu=mu)))


def figure_2(quick: bool) -> Result:
    """Trade-off curves of Gaussian mechanisms that satisfy (ε, δ)-DP."""
    panels = regions(quick)
    above = all(np.all(r.exact >= r.generic - _SLACK) for r in panels)
    gaps = [
        (
            float(gdp.tpr(fpr=AT, mu=r.mu)),
            1.0 - float(beta_from_approximate_dp(fpr=AT, epsilon=r.epsilon, delta=r.delta)),
        )
        for r in panels
    ]
    text = "; ".join(
        f"ε = {r.epsilon:g}: TPR {own:.4f}, allowed {generic:.4f}"
        for r, (own, generic) in zip(panels, gaps, strict=True)
    )
    answers = {
        "figure-2-conservative": Finding(
            f"at FPR 0.1, δ = 1e-5, {text}",
            bool(above and all(own < generic for own, generic in gaps)),
            f"f_μ lies on or above the curve of Eq. 5 at all {sum(len(r.alpha) for r in panels):,}"
            " points, μ exact for each ε",
        ),
        "figure-2-closest": _closest(panels),
        "figure-2-advantage": _bound_on_advantage(panels),
        "figure-2-name": Finding(
            "TPR − FPR",
            False,
            "a slip of the pen: α is the paper's FPR, and Eq. 7 has 1 − β − α; TPR minus FNR would"
            " be 1 − 2β",
        ),
    }
    rows = (
        (f"{r.epsilon:g}", f"{r.delta:g}", *row)
        for r in panels
        for row in zip(r.alpha, r.generic, r.exact, strict=True)
    )
    header = "epsilon delta fpr fnr_any_mechanism fnr_gaussian"
    table = Table.of_rows(header, rows)
    return drawn("figure-2", answers, table, figures.regions, panels, size=(7.6, 2.9))


def _closest(panels: list[Region]) -> Finding:
    """Is 1 − α − f(α) largest where α² + f(α)² is smallest?"""
    same, text = True, []
    for r in panels:
        for curve in (r.generic, r.exact):
            best, near = np.argmax(1.0 - r.alpha - curve), np.argmin(r.alpha**2 + curve**2)
            fixed = abs(r.alpha[near] - curve[near])
            largest = 1.0 - r.alpha[best] - curve[best]
            same = same and best == near and fixed < 1e-9
            same = same and abs(largest - (1.0 - 2.0 * r.alpha[near])) < 1e-9
        text.append(
            f"ε = {r.epsilon:g}: η = {float(gdp.advantage(mu=r.mu)):.4f} at α ="
            f" {fixed_point(r.mu):.4f}"
        )
    return Finding(
        "; ".join(text),
        bool(same),
        "both curves are convex and symmetric, so both are extremal on the diagonal",
    )


def _bound_on_advantage(panels: list[Region]) -> Finding:
    """Is Eq. 8 reached, and never exceeded, by the curve of Eq. 5?"""
    largest = [float(np.max(1.0 - r.alpha - r.generic)) for r in panels]
    formula = [
        float(advantage_from_approximate_dp(epsilon=r.epsilon, delta=r.delta)) for r in panels
    ]
    text = "; ".join(f"ε = {r.epsilon:g}: {a:.6f}" for r, a in zip(panels, largest, strict=True))
    return Finding(
        text,
        bool(np.allclose(largest, formula, rtol=0.0, atol=1e-12)),
        "the largest 1 − α − f(α) of Eq. 5 is the formula's value",
    )


class Cost(NamedTuple):
    """FNR by either calibration to one advantage, of the generic mechanism and the Gaussian."""

    alpha: Array
    generic_standard: Array
    generic_direct: Array
    gaussian_standard: Array
    gaussian_direct: Array

    @property
    def generic(self) -> Array:
        """FNR lost by the generic mechanism."""
        return self.generic_standard - self.generic_direct

    @property
    def gaussian(self) -> Array:
        """FNR lost by the Gaussian mechanism."""
        return self.gaussian_standard - self.gaussian_direct


def cost(alpha: ArrayLike, advantage: float = ADVANTAGE, delta: float = DELTA) -> Cost:
    """What each calibration leaves an attacker at each FPR.

    Generic: (ε*, δ*) with ε* of Eq. 30 against (0, η*), the advantage. Gaussian: μ of the mechanism
    that just meets (ε*, δ*), against the μ whose advantage is η* (Corollary B.3).
    """
    alpha = np.asarray(alpha, np.float64)
    epsilon = float(standard_epsilon(advantage, delta))
    standard = float(gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=delta))
    direct = float(gdp.mu_from_advantage(advantage=advantage))
    return Cost(
        alpha,
        beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=delta),
        beta_from_approximate_dp(fpr=alpha, epsilon=0.0, delta=advantage),
        gdp.beta(fpr=alpha, mu=standard),
        gdp.beta(fpr=alpha, mu=direct),
    )


def figure_3b() -> dict[str, Number | Finding]:
    """Answers about the generic mechanism: Proposition 3.6 and its example."""
    at = cost([AT])
    gap = float(at.generic[0])
    limit = 0.5 * (1.0 - ADVANTAGE)
    inside = cost(np.linspace(0.0, limit, 502)[1:])
    error = float(np.max(np.abs(inside.generic - worst_case_gap(ADVANTAGE, inside.alpha, DELTA))))
    return {
        "figure-3b-gap": Number(Bracket(gap - _SLACK, gap + _SLACK)),
        "figure-3b-accuracy": Number(Bracket(*[0.5 * (1.0 + ADVANTAGE)] * 2)),
        "figure-3b-proposition": Finding(
            f"largest difference {error:.0e} at 501 FPRs up to {limit:g}",
            error < 1e-12,
            "= (η − δ)(1 − 2α/(1 − η)), derived from Eqs. 8 and 31; an equality for this mechanism,"
            " and zero at α = (1 − η)/2",
        ),
    }


def figure_6(quick: bool) -> Result:
    """The cost of calibrating to an advantage, Gaussian against generic mechanism."""
    found = cost(np.union1d(_rates(quick), [1e-4, 1e-3, 0.01, AT]))
    most = float(np.max(found.generic)), float(np.max(found.gaussian))
    where = float(found.alpha[np.argmax(found.gaussian)])
    at = cost([0.01, AT, 0.25])
    crossing = float(found.alpha[np.flatnonzero(found.gaussian > found.generic)[0]])
    points = 100.0 * np.array([at.gaussian, at.generic])
    listed = "; ".join(
        f"FPR {a:g}: {g:.1f} against {h:.1f} points"
        for a, g, h in zip(at.alpha, *points, strict=True)
    )
    mixed = 100.0 * float(at.generic_standard[1] - at.gaussian_direct[1])
    answers = {
        "figure-6-low": Finding(
            f"{100 * most[1]:.1f} percentage points at FPR {where:.3f}, against {100 * most[0]:.1f}"
            " as FPR goes to 0",
            most[1] < most[0],
            "towards FPR 0 the Gaussian mechanism loses nothing and the generic one all of η − δ;"
            f" {listed}",
        ),
        "figure-6-ten": Finding(
            f"{points[0, 1]:.1f} percentage points against {points[1, 1]:.1f}",
            bool(points[0, 1] < points[1, 1]),
            f"from FPR {crossing:.2f} on the Gaussian mechanism loses more than the generic one, as"
            " standard calibration makes it far more private than (ε, δ) says; measured from the"
            f" (ε, δ) bound instead of the mechanism's own curve it would be {mixed:.1f}",
        ),
    }
    header = "fpr generic_standard generic_direct gaussian_standard gaussian_direct"
    table = Table.of_columns(header, *found)
    return drawn("figure-6", answers, table, figures.cost_panels, found, ADVANTAGE, size=(7.2, 3.4))
