"""Section 4 of Liu 2022: the head, the gap beyond, clip and rectify, sampling (Figure E.2)."""

from __future__ import annotations

import math

import numpy as np

from ... import gdp
from ...bridge import clip_and_rectify, gdp_transformation, head, identify, subsample
from ...mechanisms import ApproximateDP, Laplace
from ...numerics import gaussian_profile
from ..result import Finding, Result, Table, drawn
from ..verdict import shown
from . import figures, profiles

_RATES = (1.0, 0.5, 0.25, 0.1)


def _slope() -> Finding:
    """Theorem 4.2: 0 ≤ ∂μ/∂ε ≤ √(π/2) at fixed δ, Mills' ratio Φ(b)/φ(b) at b = −μ/2 − ε/μ ≤ 0."""
    rng = np.random.default_rng(0)
    mu, epsilon = 10.0 ** rng.uniform(-2, 1, 2000), 10.0 ** rng.uniform(-3, 1.5, 2000)
    a, b = gaussian_profile.arguments(epsilon, mu)
    step = 1e-5 * (1.0 + epsilon)
    log_delta = gaussian_profile.log_delta(epsilon, mu)
    # ∂μ/∂ε = −∂_ε log δ/∂_μ log δ by differences
    down = gaussian_profile.log_delta(epsilon + step, mu) - log_delta
    moved = 1e-5 * mu
    low, high = (gaussian_profile.log_delta(epsilon, mu + sign * moved) for sign in (-1.0, 1.0))
    slope = -(down / step) / ((high - low) / (2.0 * moved))
    largest = float(np.max(slope))
    return Finding(
        f"largest of 2,000 slopes {largest:.5f}, least {float(np.min(slope)):.3g}",
        bool(largest <= math.sqrt(math.pi / 2) * (1 + 1e-3) and np.min(slope) >= 0.0),
        "differences of δ_μ(ε); in closed form the slope is Φ(b)/φ(b) at b = −μ/2 − ε/μ, at most"
        f" √(π/2) = {math.sqrt(math.pi / 2):.5f}",
    )


def _searches(quick: bool) -> Finding:
    rows = []
    for name, profile, _ in profiles.three()[:2]:
        refined = profiles.statements(profile, 60.0, 401 if quick else 2001)
        found = head(refined, 8.0, 1e-4)
        rows.append((name, found.evaluations, found.searches, found.status, found.mu))
    return Finding(
        "; ".join(
            f"{n}: {e} evaluations, {s} binary searches, μ in {shown(m)}" for n, e, s, _, m in rows
        ),
        all(s <= 6.0 * math.log(e) and status == "ok" for _, e, s, status, _ in rows),
        "searches of the head up to ε = 8 to 1e-4, counted for both sides",
    )


def section_4(quick: bool) -> Result:
    """Theorems 4.2 to 4.4, Algorithm 1 and Section 4.2."""
    gap = float(gaussian_profile.log_delta(np.array(100.0), np.array(6.0)) / math.log(10.0))
    source = ApproximateDP(1.0, 1e-5)
    before, mended = identify(source), clip_and_rectify(source, 1e-3)
    after = identify(mended.mechanism)
    # the paper's order of what a head guarantee is worth: mass δ at infinity on top of μ
    failing = profiles.statements(
        lambda e: 1e-10 + (1.0 - 1e-10) * float(gdp.delta(epsilon=e, mu=1.0)),
        12.0,
        201 if quick else 801,
    )
    measured = head(failing, 5.0, 1e-3)
    sampled = [(rate, subsample(Laplace(1.0), rate, rtol=1e-3).mu) for rate in _RATES]
    falling = all(a[1].lower > b[1].upper for a, b in zip(sampled[:-1], sampled[1:], strict=True))
    answers = {
        "section-4-slope": _slope(),
        "section-4-searches": _searches(quick),
        "section-4-gap": Finding(
            f"δ_6(100) = 10^{gap:.1f}",
            gap < -30.0,
            "the Gaussian profile at ε = 100 with μ = 6: what a head μ verified up to ε_h = 100 may"
            " miss",
        ),
        "section-4-head": Finding(
            "with a failure of probability 1e-10 on top of 1-GDP the head up to ε = 5 is"
            f" {shown(measured.mu)}, for FPRs from {measured.fpr_floor:.2g} on",
            bool(measured.mu.upper < 1.01 and identify(failing).is_gdp is False),
            "the statements leave mass at infinity, so no μ holds at every rate",
        ),
        "section-4-rectify": Finding(
            f"(1, 1e-5)-DP, clipped at α = 1e-3: μ in {shown(mended.mu)} at every rate; "
            f"outputs changed with probability at most {mended.changed:.3g}",
            before.is_gdp is False and after.is_gdp is True and bool(np.isfinite(mended.mu.upper)),
            "no μ held before; the mended mechanism's losses are bounded",
        ),
        "section-4-sampling": Finding(
            "; ".join(f"p = {rate:g}: {shown(mu)}" for rate, mu in sampled),
            falling,
            "Laplace noise with b = 1, Poisson sampling; brackets of the μ at every rate",
        ),
    }
    body = ((f"{rate:g}", *mu) for rate, mu in sampled)
    table = Table.of_rows("sampling_prob mu_lower mu_upper", body, digits=17)
    return Result(answers, tables={"section-4": table}, fpr_floor=0.0)


def figure_e2(quick: bool) -> Result:
    """GDP transformations of the sampled Laplace mechanism."""
    lines, least = [], True
    epsilon = np.linspace(0.0, 1.1, 41 if quick else 221)
    for rate in _RATES:
        found = subsample(Laplace(1.0), rate, rtol=1e-3)
        values = gdp_transformation(found.profile, epsilon)
        if lines:
            least &= bool(np.all(values.lower <= lines[-1][1].upper * (1 + 1e-9)))
        lines.append((rate, values))
    answers = {
        "figure-e2-order": Finding(
            "; ".join(
                f"p = {rate:g}: {float(values.upper[0]):.5f} at ε = 0" for rate, values in lines
            ),
            least,
            "at every ε of the grid a smaller sampling probability has no larger value",
        )
    }
    header = ("epsilon", *(f"mu_at_p_{rate:g}" for rate in _RATES))
    table = Table.of_columns(header, epsilon, *(v.upper for _, v in lines), digits=17)
    return drawn("figure-e2", answers, table, figures.sampled, epsilon, lines, size=(5.6, 3.8))
