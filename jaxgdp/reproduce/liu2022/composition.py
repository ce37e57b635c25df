"""Section 5 of Liu 2022: pure DP under GDP, and the 50-fold composition of 0.2-DP (Figure 3)."""

from __future__ import annotations

import math

import numpy as np

from ... import gdp
from ...bridge import head_mu, identify
from ...mechanisms import Laplace, PureDP, compose
from ...tradeoff import TradeoffCurve, tradeoff
from ..published import read
from ..result import Finding, Result, Table, drawn
from ..verdict import shown
from . import figures


def setting() -> tuple[float, int]:
    """(ε of one use, number of uses)."""
    paper = read("liu2022")["composition"]
    return paper["epsilon"], paper["uses"]


def curve(quick: bool) -> TradeoffCurve:
    """Certified curve of the composition, by the optimal theorem (Kairouz et al. 2015)."""
    epsilon, uses = setting()
    return tradeoff(compose([(PureDP(epsilon), uses)]), rtol=1e-3 if quick else 1e-5)


def by_parts() -> tuple[float, float]:
    """μ of the composition from one use: any ε-DP mechanism (Theorem 5.1), Laplace noise."""
    epsilon, uses = setting()
    one = float(gdp.mu_from_pure_dp(epsilon=epsilon))
    laplace = float(head_mu(Laplace(1.0 / epsilon), epsilon, 1e-6).upper)
    return math.sqrt(uses) * one, math.sqrt(uses) * laplace


def limit() -> float:
    """μ of the central limit theorem for randomized response (Dong et al. 2022, Theorem 3.4)."""
    epsilon, uses = setting()
    mean = epsilon * math.tanh(0.5 * epsilon)
    return 2.0 * uses * mean / math.sqrt(uses * (epsilon**2 - mean**2))


def figure_3(quick: bool) -> Result:
    """Trade-off curves of the composition by every route."""
    exact = curve(quick)
    alpha = np.linspace(0.0, 1.0, 101 if quick else 401)
    beta = exact.beta(alpha)
    verdict = identify(exact)
    whole = float(verdict.head_mu.upper)
    parts = by_parts()
    curves = [
        (name, gdp.beta(fpr=alpha, mu=mu))
        for name, mu in zip(("GDP", "GDP (Laplace)", "GDP summary"), (*parts, whole), strict=True)
    ]
    regret = exact.regret()
    ordered = bool(
        np.all(curves[0][1] <= curves[2][1])
        and np.all(curves[2][1] <= beta.upper + 1e-12)
        and np.all(curves[0][1] <= curves[1][1])
    )
    answers = {
        "figure-3-order": Finding(
            f"regret of the summary {shown(regret)}",
            ordered,
            "at every FPR of the grid: GDP from pure DP below GDP from Laplace noise, and the"
            " summary below the exact curve",
        )
    }
    header = ("fpr", "fnr_lower", "fnr_upper", *(name for name, _ in curves))
    table = Table.of_columns(header, alpha, *beta, *(c for _, c in curves), digits=17)
    floor, lines = float(verdict.fpr_floor), (alpha, beta, curves)
    return drawn(
        "figure-3", answers, table, figures.composition, *lines, size=(4.6, 4.4), fpr_floor=floor
    )


def section_5(quick: bool) -> Result:
    """Theorem 5.1, and the μ of the composition by four routes."""
    rows, tight = [], True
    for epsilon in (0.2, 0.5, 1.0, 2.0, 4.0):
        found = head_mu(PureDP(epsilon), epsilon, 1e-4)
        closed = float(gdp.mu_from_pure_dp(epsilon=epsilon))
        tight &= bool(found.lower <= closed * (1 + 1e-9) and closed <= found.upper * (1 + 1e-9))
        rows.append((f"{epsilon:g}", *(f"{x:.17g}" for x in (*found, closed))))
    exact = curve(quick)
    verdict = identify(exact)
    parts, asymptotic = by_parts(), limit()
    answers = {
        "section-5-pure": Finding(
            "; ".join(
                f"ε = {r[0]}: [{float(r[1]):.6f}, {float(r[2]):.6f}], {float(r[3]):.6f}"
                for r in rows
            ),
            tight,
            "each certified bracket of the head up to ε holds the closed form; δ is 0 beyond, so it"
            " holds at every rate",
        ),
        "section-5-laplace": Finding(
            f"√50·μ: {parts[0]:.5f} for 0.2-DP, {parts[1]:.5f} for Laplace noise",
            parts[1] < parts[0],
            "μ of one use composed as √(Σ μ²)",
        ),
        "section-5-summary": Finding(
            f"μ of the optimal composition {shown(verdict.head_mu)}, at every rate; by the central"
            f" limit theorem {asymptotic:.5f}",
            bool(verdict.fpr_floor == 0.0 and verdict.head_mu.upper < parts[1]),
            "certified at every FPR, where the limit theorem has an unknown error: here it is "
            + ("below" if asymptotic < verdict.head_mu.lower else "not below")
            + " the certified lower side",
        ),
    }
    table = Table(("epsilon", "mu_lower", "mu_upper", "closed_form"), tuple(rows))
    return Result(answers, tables={"section-5": table}, fpr_floor=0.0)
