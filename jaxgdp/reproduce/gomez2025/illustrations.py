"""The curves that make the argument: Figures 1, 2 and 4 and Table 3 of Gomez 2025."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr

from ... import conversions, deployments, gdp
from ...bracket import Bracket
from ...mechanisms import ApproximateDP, DiscreteGaussian, RandomizedResponse
from ...numerics.shapes import Array
from ...tradeoff import TradeoffCurve, tradeoff
from ..published import read
from ..result import Finding, Number, Result, Table, decided, drawn
from ..theorem_b2 import breakpoint_regret
from ..verdict import shown
from . import figures, training

EPSILON, DELTA = 8.0, 1e-5  # of Figure 1
Answers: TypeAlias = dict[str, Number | Finding]

_NINE_HOURS = 9 * 3600.0
_FEW_SECONDS = 10.0


class Profile(NamedTuple):
    """Figure 1: a Gaussian calibrated to one (ε, δ), by its profile and by single pairs on it.

    Attributes:
        mu: μ.
        epsilon, delta: its profile.
        pairs: (ε, δ) on it, the calibration point first.
        fpr: FPRs.
        tpr: largest TPR there.
        pair_tprs: the bound on it from each pair alone.
    """

    mu: float
    epsilon: Array
    delta: Array
    pairs: tuple[tuple[float, float], ...]
    fpr: Array
    tpr: Array
    pair_tprs: tuple[Array, ...]


class Panel(NamedTuple):
    """One certified trade-off curve beside its μ-GDP bound.

    Attributes:
        title: of the panel.
        mu, regret: brackets.
        alpha: FPRs.
        beta: bracket of the FNRs.
        gaussian: f_μ there, for the upper μ.
        fpr_floor: of μ.
        others: name and FNRs of further bounds.
    """

    title: str
    mu: Bracket
    regret: Bracket
    alpha: Array
    beta: Bracket
    gaussian: Array
    fpr_floor: float
    others: tuple[tuple[str, Array], ...] = ()


def figure_1(quick: bool) -> Result:
    """The profile of an algorithm calibrated to (8, 1e-5), and what single pairs say of it."""
    mu = float(gdp.mu_from_epsilon_delta(epsilon=EPSILON, delta=DELTA))
    deltas = (DELTA, 1e-9, 1e-3, 1e-2, 0.1, 0.3)
    pairs = tuple((float(gdp.epsilon(delta=d, mu=mu)), d) for d in deltas)
    fpr = np.geomspace(1e-6, 1.0, 61 if quick else 301)
    epsilon = np.linspace(0.0, 12.0, 61 if quick else 241)
    bounds = tuple(
        1.0 - conversions.beta_from_approximate_dp(fpr=fpr, epsilon=e, delta=d) for e, d in pairs
    )
    delta, tpr = gdp.delta(epsilon=epsilon, mu=mu), 1.0 - gdp.beta(fpr=fpr, mu=mu)
    found = Profile(mu, epsilon, delta, pairs, fpr, tpr, bounds)

    at = 0.01
    alone = float(1.0 - conversions.beta_from_approximate_dp(fpr=at, epsilon=EPSILON, delta=DELTA))
    whole = float(1.0 - gdp.beta(fpr=at, mu=mu))
    answers: Answers = {
        "figure-1-mu": Number(_mu_at(EPSILON, DELTA)),
        "figure-1-risk": Finding(
            f"{alone:.4f} from (8, 1e-5) alone, {whole:.4f} from the profile",
            whole < 0.5 * alone,
            f"the single pair overstates the risk by a factor of {alone / whole:.1f}",
        ),
    }
    header = ("fpr", "tpr", *(f"tpr_from_epsilon_{e:.4g}_delta_{d:g}" for e, d in pairs))
    table = Table.of_columns(header, fpr, found.tpr, *bounds)
    return drawn("figure-1", answers, table, figures.profile_and_attacks, found, size=(7.2, 3.4))


def _mu_at(epsilon: float, delta: float) -> Bracket:
    """The μ with δ_μ(ε) = δ between two numbers at which the closed form lies on either side."""
    mu = gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=delta)
    low, high = mu * (1.0 - 1e-9), mu * (1.0 + 1e-9)
    if not gdp.delta(epsilon=epsilon, mu=low) <= delta <= gdp.delta(epsilon=epsilon, mu=high):
        return Bracket(0.0, np.inf)
    return Bracket(float(low), float(high))


def table_3(quick: bool) -> Result:
    """μ for common (ε, δ)."""
    paper = read("gomez2025")["table-3"]
    found = {(e, d): _mu_at(float(e), float(d)) for e in paper["epsilon"] for d in paper["delta"]}
    answers: Answers = {f"table-3-{e}-{d}": Number(b) for (e, d), b in found.items()}
    strict, loose = _mu_at(8.0, 1e-9), _mu_at(6.0, 1e-5)
    answers["table-3-order"] = Finding(
        f"μ {shown(strict)} against {shown(loose)}",
        bool(strict.upper < loose.lower),
        "the smaller μ is the more private one",
    )
    header = ("ε", *(f"δ = {d}" for d in paper["delta"]))
    body = tuple((e, *(shown(found[e, d]) for d in paper["delta"])) for e in paper["epsilon"])
    return Result(answers, tables={"table-3": Table(header, body)})


def _panel(title: str, curve: TradeoffCurve, quick: bool, extra: Iterable[float] = ()) -> Panel:
    """A curve where Φ⁻¹(α) is evenly spaced, with the Gaussian one of the upper μ."""
    mu, regret = (Bracket(float(b.lower), float(b.upper)) for b in (curve.mu(), curve.regret()))
    alpha = np.unique(
        [*ndtr(np.linspace(-4.0, 4.0, 41) if quick else np.linspace(-7.0, 7.0, 141)), *extra]
    )
    gaussian = gdp.beta(fpr=alpha, mu=mu.upper)
    return Panel(title, mu, regret, alpha, curve.beta(alpha), gaussian, curve.fpr_floor)


def figure_2(quick: bool) -> Result:
    """The discrete Gaussian, σ = 1, and what other definitions of privacy say about it."""
    sigma, delta = 1.0, DELTA
    rho = 1.0 / (2.0 * sigma**2)
    curve = tradeoff(DiscreteGaussian(sigma=sigma))
    corners = _discrete_gaussian_breakpoints(sigma)
    panel = _panel(
        f"discrete Gaussian, σ = {sigma:g}", curve, quick, extra=corners[0][corners[0] > 1e-12]
    )
    epsilon = float(curve.epsilon(delta=delta).upper)
    zcdp = conversions.beta_from_zcdp(fpr=panel.alpha, rho=rho)
    single = conversions.beta_from_approximate_dp(fpr=panel.alpha, epsilon=epsilon, delta=delta)
    panel = panel._replace(others=((f"{rho:g}-zCDP", zcdp), (f"({epsilon:.2f}, 1e-5)-DP", single)))

    theirs = breakpoint_regret(*corners, panel.mu.upper)
    true = curve.advantage()
    order = [
        float(conversions.advantage_from_approximate_dp(epsilon=epsilon, delta=delta)),
        float(conversions.advantage_from_zcdp(rho=rho)),
        float(gdp.advantage(mu=panel.mu.upper)),
    ]
    answers: Answers = {
        "figure-2-regret": Finding(
            f"μ {shown(panel.mu)}, Δ {shown(panel.regret, 3)}",
            decided(panel.regret.upper < 0.01, panel.regret.lower >= 0.01),
            "one use has a coarse curve of few segments; at its breakpoints alone (Algorithm 2)"
            f" the regret would be {theirs:.2g}",
        ),
        "figure-2-order": Finding(
            f"advantage: ({epsilon:.2f}, 1e-5)-DP {order[0]:.4f}, {rho:g}-zCDP {order[1]:.4f}, "
            f"μ-GDP {order[2]:.4f}, exact {shown(true)}",
            bool(order[0] > order[1] > order[2] >= true.lower),
            "the bound on the advantage falls in that order",
        ),
    }
    floor, table = panel.fpr_floor, _numbers([panel])
    return drawn(
        "figure-2", answers, table, figures.definitions, panel, size=(5.0, 4.6), fpr_floor=floor
    )


def _discrete_gaussian_breakpoints(sigma: float) -> tuple[Array, Array]:
    """(α, β) of the tests "output ≥ m" of N_Z(0, σ²) against N_Z(1, σ²) (Canonne et al. 2020)."""
    k = np.arange(-40, 42)
    null, alternative = (np.exp(-0.5 * ((k - shift) / sigma) ** 2) for shift in (0, 1))
    total = np.sum(null)
    alpha = np.append(np.cumsum(null[::-1])[::-1] / total, 0.0)[::-1]
    beta = np.append(0.0, np.cumsum(alternative) / total)[::-1]
    # far out the steps are below one unit of rounding
    used = np.append(np.diff(alpha) > 0.0, True) & (alpha < 1.0)
    return np.append(alpha[used], 1.0), np.append(beta[used], 0.0)


def _numbers(panels: list[Panel]) -> Table:
    others = (name for name, _ in panels[0].others)
    header = ("mechanism", "fpr", "fnr_lower", "fnr_upper", "fnr_gdp", *others)
    rows = (
        (p.title, *row)
        for p in panels
        for row in zip(p.alpha, *p.beta, p.gaussian, *(b for _, b in p.others), strict=True)
    )
    return Table.of_rows(header, rows)


def figure_4(quick: bool) -> Result:
    """Trade-off curves of DP-SGD, TopDown and randomized response beside their μ-GDP bounds."""
    answers: Answers = {}
    panels = [part(answers, quick) for part in (_dpsgd, _topdown, _randomized_response)]
    _approximate_dp(answers)
    floor, table = max(panel.fpr_floor for panel in panels), _numbers(panels)
    return drawn(
        "figure-4", answers, table, figures.three_panels, panels, size=(7.6, 2.9), fpr_floor=floor
    )


def _dpsgd(answers: Answers, quick: bool) -> Panel:
    stated, other = (
        training.runs(quick)["table-4", n][-1] for n in (training.STATED, training.OTHER)
    )
    at_other = f"at N = {training.OTHER:,}"
    answers["figure-4a-mu"] = Number(stated.mu, ((at_other, other.mu),))
    answers["figure-4a-regret"] = Number(stated.regret, ((at_other, other.regret),))
    line = training.lines("table-4", quick)[-1]
    reported = float(gdp.advantage(mu=stated.mu.upper))
    excess = Bracket(
        reported - float(stated.advantage.upper), reported - float(stated.advantage.lower)
    )
    answers["figure-4a-advantage"] = Number(excess)
    gap = line.gap
    return Panel(
        "(a) DP-SGD", line.mu, line.regret, gap.alpha, gap.beta, gap.gaussian, line.fpr_floor
    )


def _topdown(answers: Answers, quick: bool) -> Panel:
    def asked() -> tuple[float, tuple[TradeoffCurve, Bracket, Bracket]]:
        start = time.perf_counter()
        curve = tradeoff(deployments.census_2022_august())
        found = curve, curve.mu(), curve.regret()
        return time.perf_counter() - start, found

    first, _ = asked()
    again, (curve, mu, regret) = asked()
    answers["figure-4b-mu"] = Number(mu)
    answers["figure-4b-regret"] = Number(regret)
    answers["figure-4b-seconds"] = Finding(
        f"{first:.1f} s with compilation, {again:.2f} s again",
        again < _FEW_SECONDS,
        f"9 hours are {_NINE_HOURS / again:,.0f} times as long as the second call, and that"
        " was on 96 processors",
    )
    return _panel("(b) TopDown", curve, quick)


def _randomized_response(answers: Answers, quick: bool) -> Panel:
    curve = tradeoff(RandomizedResponse(epsilon=1.0))
    corner = 1.0 / (1.0 + np.e)
    formula = float(gdp.mu_from_pure_dp(epsilon=1.0))
    panel = _panel("(c) randomized response", curve, quick, extra=[0.0, corner, 1.0])
    answers["figure-4c-mu"] = Finding(
        shown(panel.mu, 7),
        bool(panel.mu.lower <= formula <= panel.mu.upper),
        f"the bracket holds the formula's value {formula:.6f}",
    )
    theirs = breakpoint_regret([0.0, corner, 1.0], [1.0, corner, 0.0], formula)
    answers["figure-4c-regret"] = Finding(
        shown(panel.regret),
        bool(panel.regret.lower <= theirs <= panel.regret.upper),
        f"Algorithm 2 looks at breakpoints only, where the curves touch, and returns {theirs:.1g};"
        " the largest gap lies between them, so Theorem B.2 does not hold",
    )
    return panel


def _approximate_dp(answers: Answers) -> None:
    mu = tradeoff(ApproximateDP(epsilon=1.0, delta=0.1)).mu(fpr_floor=0.0)
    answers["figure-4c-approximate"] = Finding(
        f"upper side {float(mu.upper)}",
        bool(np.isinf(mu.upper)),
        "the mass 0.1 at infinite loss is carried, not dropped",
    )
