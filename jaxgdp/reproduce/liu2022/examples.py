"""Figures 1 and 2 of Liu 2022 and Figure E.1: profiles and GDP transformations of the examples."""

from __future__ import annotations

import math

import numpy as np

from ... import gdp
from ...bridge import Profile, gdp_transformation, head, head_mu
from ...bridge.inversion import mu_of
from ...mechanisms import Laplace
from ...numerics.shapes import Array
from ..result import Finding, Result, Table, drawn
from ..verdict import shown
from . import figures, profiles

_MOST = 8.0


def _grid(quick: bool) -> int:
    return 81 if quick else 401


def crossing(refined: Profile, mu: float) -> float | None:
    """The first corner of a refined profile above the profile of μ-GDP, if any is."""
    above = refined.delta > gdp.delta(epsilon=refined.epsilon, mu=mu) * (1.0 + 1e-11)
    return float(refined.epsilon[np.argmax(above)]) if np.any(above) else None


def figure_1(quick: bool) -> Result:
    """Privacy profiles of the three examples, naive and refined."""
    epsilon = np.linspace(0.0, _MOST, _grid(quick))
    lines = []
    refined = {}
    for name, profile, _ in profiles.three():
        naive = np.array([profile(float(e)) for e in epsilon])
        refined[name] = profiles.statements(profile, 60.0, 401 if quick else 3001)
        lines.append((name, naive, refined[name](epsilon)))
    reference = [(mu, gdp.delta(epsilon=epsilon, mu=mu)) for mu in (1.0, 2.0, 4.0)]
    (_, laplace, _), (_, noise, _), (_, cloak, _) = profiles.three()
    mu = head_mu(laplace, 4.0)
    crossed = {m: crossing(refined["ICEA"], m) for m in (1.0, 2.0, 4.0)}
    at_zero = {
        name: (p(0.0), float(refined[name](0.0))) for name, p in (("noise", noise), ("ICEA", cloak))
    }
    answers = {
        "figure-1-laplace": Finding(
            f"μ in {shown(mu)}",
            bool(mu.lower > 1.0 and mu.upper < 2.0),
            "the largest value of its GDP transformation, which is 0 from ε = 1 on, lies between 1"
            " and 2",
        ),
        "figure-1-icea": Finding(
            "; ".join(
                f"above the profile of {m:g}-GDP at ε = {e:.4g}"
                for m, e in crossed.items()
                if e is not None
            ),
            all(e is not None for e in crossed.values()),
            "a statement that the others do not improve lies above each of them; the tail falls"
            " like 1/ε",
        ),
        "figure-1-refined": Finding(
            "; ".join(
                f"{name}: δ(0) = {a:g} as inverted, {b:.6g} refined"
                for name, (a, b) in at_zero.items()
            ),
            all(b < 1.0 <= a for a, b in at_zero.values()),
            "the statements at larger ε imply a smaller δ at 0 (Theorem 2.1)",
        ),
    }
    names = (f"{name}_{kind}" for name, *_ in lines for kind in ("inverted", "refined"))
    columns = [epsilon, *(c for _, a, b in lines for c in (a, b))]
    table = Table.of_columns(("epsilon", *names), *columns, digits=17)
    picture = figures.profiles, epsilon, lines, reference
    return drawn("figure-1", answers, table, *picture, size=(8.0, 3.6))


def _transformed(epsilon: Array, values: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore"):
        return mu_of(epsilon, np.log(values), np.log1p(-values))


def figure_2(quick: bool) -> Result:
    """GDP transformations, and the two staircases of Theorem 4.3 for several widths."""
    epsilon = np.linspace(0.0, _MOST, _grid(quick))
    lines = []
    for name, profile, _ in profiles.three():
        refined = profiles.statements(profile, 60.0, 401 if quick else 3001)
        lines.append((name, gdp_transformation(refined, epsilon).upper))
    at_zero = [float(values[0]) for _, values in lines]
    # by the closed profiles far out: ratios that go to μ_t
    (_, laplace, _), (_, noise, limit), (_, cloak, _) = profiles.three()
    ratio = lambda p, e: e / math.sqrt(-2.0 * math.log(p(e)))
    far = [ratio(noise, e) for e in (5.0, 15.0, 35.0)]
    growing = [ratio(cloak, e) for e in (1e2, 1e4, 1e6)]
    falls = bool(laplace(1.0) == 0.0 and np.all(np.diff(np.abs(np.array(far) - limit)) < 0.0))
    answers = {
        "figure-2-origin": Finding(
            "; ".join(
                f"{name}: {value:.5g}" for (name, _), value in zip(lines, at_zero, strict=True)
            ),
            bool(np.all(np.isfinite(at_zero))),
            "μ_A(0) = 2Φ⁻¹((1 + δ(0))/2) of the refined profiles, whose δ(0) is below 1",
        ),
        "figure-2-tails": Finding(
            "Laplace: δ = 0 from ε = 1 on, μ_t = 0; noise: ratio"
            f" {', '.join(f'{x:.5f}' for x in far)} at ε = 5, 15, 35, μ_t = {limit:.6g}; ICEA:"
            f" ratio {', '.join(f'{x:.4g}' for x in growing)} at ε = 1e2, 1e4, 1e6, μ_t = ∞",
            falls and abs(far[-1] - limit) < 1e-2 * limit and growing[0] < growing[1] < growing[2],
            "ε/√(−2 log δ(ε)) of the closed forms (Theorem 3.3)",
        ),
        "figure-2-staircases": _staircases(),
    }
    stairs = []
    for width in (0.5, 0.1):
        grid = np.arange(0.0, 3.0 + 0.5 * width, width)
        delta = np.array([noise(float(e)) for e in grid])
        refined = profiles.statements(noise, 60.0, 401)(grid)
        delta = np.minimum(delta, refined)
        least, most = _transformed(grid[:-1], delta[1:])[0], _transformed(grid[1:], delta[:-1])[1]
        stairs.append((width, grid, least, most))
    header = ("epsilon", *(name for name, _ in lines))
    table = Table.of_columns(header, epsilon, *(v for _, v in lines), digits=17)
    picture = figures.transformations, epsilon, lines, stairs
    return drawn("figure-2", answers, table, *picture, size=(8.0, 3.6))


def _staircases() -> Finding:
    """The transformation lies between both staircases, √(π/2) widths apart at most at one δ."""
    worst, inside = 0.0, True
    for _, profile, _ in profiles.three():
        refined = profiles.statements(profile, 60.0, 401)
        for width in (0.5, 0.1, 0.02):
            grid = np.arange(0.0, 4.0, width)
            delta = np.asarray(refined(grid))
            above = _transformed(grid[1:], delta[:-1])[1]
            at = _transformed(grid[:-1], delta[:-1])[0]
            worst = max(worst, float(np.max((above - at) / width)))
            middle = np.asarray(refined(0.5 * (grid[1:] + grid[:-1])))
            low, high = _transformed(0.5 * (grid[1:] + grid[:-1]), middle)
            least = _transformed(grid[:-1], delta[1:])[0]
            inside &= bool(
                np.all(least <= high * (1 + 1e-10)) and np.all(low <= above * (1 + 1e-10))
            )
    return Finding(
        f"steepest rise of a step {worst:.5f} per unit of ε, against √(π/2) ="
        f" {math.sqrt(math.pi / 2):.5f}",
        inside and worst <= math.sqrt(math.pi / 2) * (1 + 1e-9),
        "widths 0.5, 0.1 and 0.02 on the three examples; the transformation at the middle of every"
        " step lies between both",
    )


def figure_e1(quick: bool) -> Result:
    """GDP transformations of Laplace mechanisms, below the bound of Theorem 5.1 for pure DP."""
    losses = (0.5, 1.0, 2.0, 4.0)
    lines, rows, below = [], [], True
    for loss in losses:
        epsilon = np.linspace(0.0, 1.2 * loss, _grid(quick))
        values = np.array([profiles.laplace(1.0 / loss)(float(e)) for e in epsilon])
        found = head(Laplace(1.0 / loss), loss, 1e-3 if quick else 1e-4).mu
        bound = float(gdp.mu_from_pure_dp(epsilon=loss))
        below &= bool(found.upper < bound)
        lines.append((loss, epsilon, _transformed(epsilon, values)[1], bound))
        rows.append((f"{loss:g}", *(f"{x:.17g}" for x in (*found, bound))))
    text = "; ".join(
        f"ε = {r[0]}: [{float(r[1]):.6f}, {float(r[2]):.6f}] < {float(r[3]):.6f}" for r in rows
    )
    answers = {
        "figure-e1-below": Finding(
            text,
            below,
            "certified heads up to ε = Δ/b, beyond which δ is 0, against −2Φ⁻¹(1/(1 + e^ε))",
        )
    }
    header = ("epsilon_of_the_mechanism", "mu_lower", "mu_upper", "mu_of_pure_dp")
    table, picture = Table(header, tuple(rows)), (figures.laplace, lines)
    return drawn("figure-e1", answers, table, *picture, size=(5.6, 3.8), fpr_floor=0.0)
