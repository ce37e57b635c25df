"""Kulynych 2024, Section 3.3 and Appendix B: times, an asymptotic μ, closed forms."""

from __future__ import annotations

import time

import numpy as np

from ... import gdp
from ...measure import Measured, measure
from ...mechanisms import Gaussian, dpsgd
from ..published import read
from ..result import Finding, NotHere, Result, Table
from ..verdict import shown
from . import closed_forms, noise


def section_3(quick: bool) -> Result:
    """Times of one evaluation and one calibration, and what the asymptotic μ is worth."""
    paper = read("kulynych2024")["dpsgd"]
    rate, steps = paper["sampling_prob"], paper["num_steps"]
    sigma = np.array([0.6, 1.0, 2.0])
    settings = {"quantities": ("tpr", "mu"), "fpr": 0.01, "fpr_floor": 1e-3, "rtol": 1e-2}

    def asked() -> tuple[float, Measured]:
        start = time.perf_counter()
        found = measure(dpsgd(sigma, rate, steps), **settings)
        return (time.perf_counter() - start) / len(sigma), found

    (first, _), (again, found) = asked(), asked()
    limit = rate * np.sqrt(steps * np.expm1(1.0 / sigma**2))
    tpr, asymptotic = found.brackets["tpr"], gdp.tpr(fpr=0.01, mu=limit)
    text = "; ".join(
        f"σ = {s:g}: μ {m:.4f}, TPR {a:.5f}, certified at least {low:.5f}"
        for s, m, a, low in zip(sigma, limit, asymptotic, tpr.lower, strict=True)
    )
    under = [bool(a < low) for a, low in zip(asymptotic, tpr.lower, strict=True)]
    answers = {
        "section-3-evaluation": NotHere(
            f"{1e3 * again:.0f} ms a setting, compiled; {1e3 * first:.0f} ms the first time",
            f"another program on another machine; ours: both sides of TPR and μ, {len(sigma)}"
            " settings in a call",
        ),
        "section-3-calibration": noise.time_of_calibration(quick),
        "section-3-limit": Finding(
            text,
            all(under),
            (
                "at FPR 0.01 an attack exists whose TPR is above what the asymptotic μ allows"
                if all(under)
                else f"proved for {sum(under)} of {len(under)} noise multipliers"
            ),
        ),
    }
    header = "noise_multiplier asymptotic_mu asymptotic_tpr tpr_lower tpr_upper"
    table = Table.of_columns(header, sigma, limit, asymptotic, *tpr)
    return Result(answers, tables={"section-3": table})


def appendix_b(quick: bool) -> Result:
    """The Gaussian mechanism's closed forms against certified brackets of the same mechanism."""
    eta = np.array([0.01, 0.1, 0.25, 0.5])
    alpha, beta = 0.1, np.array([0.85, 0.7, 0.5, 0.2])
    by_advantage = closed_forms.sigma_for_advantage(eta)
    by_rates = closed_forms.sigma_for_rates(alpha, beta)
    epsilon, sigma = 1.0, np.concatenate([by_advantage, by_rates])
    names, rtol = ("advantage", "tpr", "delta"), 1e-2 if quick else 1e-3
    found = measure(Gaussian(sigma), names, fpr=alpha, epsilon=epsilon, fpr_floor=1e-3, rtol=rtol)
    advantage, tpr, delta = found.brackets.values()
    number = len(eta)
    inside = lambda low, value, high: bool(np.all((low <= value * (1 + 1e-9)) & (value <= high)))
    holds = inside(advantage.lower[:number], eta, advantage.upper[:number])
    rates = tpr.lower[number:], tpr.upper[number:]
    same = inside(rates[0], 1.0 - beta, rates[1])
    profile = gdp.delta(epsilon=epsilon, mu=1.0 / sigma)
    exact = inside(delta.lower, profile, delta.upper * (1 + 1e-9))
    pair = lambda low, high: shown(type(advantage)(low, high), 4)
    answers = {
        "appendix-b-advantage": Finding(
            "; ".join(
                f"η = {e:g}: σ = {s:.5f}, {pair(a, b)}"
                for e, s, a, b in zip(eta, by_advantage, *advantage, strict=False)
            ),
            holds,
            "each certified bracket of the advantage holds its target",
        ),
        "appendix-b-rates": Finding(
            "; ".join(
                f"β = {e:g}: σ = {s:.5f}, {pair(1 - b, 1 - a)}"
                for e, s, a, b in zip(beta, by_rates, *rates, strict=True)
            ),
            same,
            "each certified bracket of the FNR at FPR 0.1 holds its target",
        ),
        "appendix-b-profile": Finding(
            f"δ(1) from {np.min(profile):.4g} to {np.max(profile):.4g}",
            exact,
            "each certified bracket of δ(1) holds the formula's value",
        ),
    }
    body = [
        ("advantage", f"{e:g}", s, a, b)
        for e, s, a, b in zip(eta, by_advantage, *advantage, strict=False)
    ]
    body += [
        ("fnr at fpr 0.1", f"{e:g}", s, 1 - b, 1 - a)
        for e, s, a, b in zip(beta, by_rates, *rates, strict=True)
    ]
    table = Table.of_rows("target value sigma lower upper", body, digits=17)
    return Result(answers, tables={"appendix-b": table})
