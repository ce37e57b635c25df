"""Bets of a sequential audit: their mean under every law that a claim allows, in exact
arithmetic."""

import jax
import mpmath
import numpy as np
import pytest
from mechanisms_of_every_class import SETTINGS

import jaxgdp
from jaxgdp import audit, gdp
from jaxgdp.audit import bets, claims, epochs, half_planes, inversion

RNG = np.random.default_rng(0)
ODDS = epochs.single(np.exp(RNG.uniform(-12.0, 12.0, (400, 2))))


def gaussian_lines(mu):
    return audit.as_claim(mu).half_planes()


def exact_mean(odds, slope, multiplier, p, q):
    """Mean of a bet's factor for one pair, with the arithmetic of mpmath."""
    p1, q1 = (mpmath.mpf(float(o)) / (1 + mpmath.mpf(float(o))) for o in odds)
    x, s = mpmath.mpf(float(multiplier)), mpmath.mpf(float(slope))
    q0 = 2 * q1 / (x + 1 + mpmath.sqrt((x + 1) ** 2 - 4 * x * q1))
    y = s * x
    p0 = 1 - 2 * (1 - p1) / (y + 1 + mpmath.sqrt((y + 1) ** 2 - 4 * y * (1 - p1)))
    member = q * q1 / q0 + (1 - q) * (1 - q1) / (1 - q0)
    return member * (p * p1 / p0 + (1 - p) * (1 - p1) / (1 - p0))


@pytest.mark.parametrize("mu", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_mean_is_at_most_one_under_every_law_below_the_curve(mu, precision):
    lines = half_planes.HalfPlanes(*(np.asarray(x, precision) for x in gaussian_lines(mu)))
    odds = ODDS.astype(precision)[:60]
    found, factors = epochs.best_bets(odds, lines)
    multiplier, line = found.multiplier.reshape(-1), found.line.reshape(-1)
    used = np.flatnonzero(multiplier > 0.0)
    assert len(used) > 10
    assert np.all(multiplier.astype(np.float32) == multiplier)
    at = np.concatenate([np.geomspace(1e-9, 0.5, 7), 1.0 - np.geomspace(1e-9, 0.4, 4)])
    with mpmath.workdps(40):
        for i in used[:12]:
            slope, p1 = lines.slope[line[i]], odds[i]
            for p in map(mpmath.mpf, at):
                q = mpmath.ncdf(mpmath.erfinv(2 * p - 1) * mpmath.sqrt(2) + mu)
                assert exact_mean(p1, slope, multiplier[i], p, q) <= 1
                # and what members do more seldom is no evidence either
                assert exact_mean(p1, slope, multiplier[i], p, q / 2) <= 1
    # computed factors err by less than what is subtracted for them
    exact = np.asarray(
        bets.log_factors(
            odds.astype(float)[used],
            lines.slope.astype(float)[line[used]],
            multiplier[used].astype(float),
        )
    )
    error = np.abs(factors.reshape(-1, 4)[used] - exact)
    u = 0.5 * np.finfo(precision).eps
    assert np.all(error <= u * (16.0 + 4.0 * np.abs(exact)))


def test_bet_against_a_closer_line_has_a_mean_above_one():
    """The condition decides: a multiplier a little too large pays under a law of the claim."""
    lines = gaussian_lines(1.0)
    odds = epochs.single(np.array([[0.1, 10.0]]))
    slope, c = lines.slope[36:37], lines.intercept[36:37]
    x = bets.largest_multiplier(odds, slope, c)
    with mpmath.workdps(40):
        s, c = mpmath.mpf(float(slope[0])), mpmath.mpf(float(c[0]))
        best = lambda x: max(
            exact_mean(odds[0], slope[0], x, p, s * p + c)
            for p in mpmath.linspace(0, (1 - c) / s, 200)
        )
        assert best(x[0]) <= 1 < best(1.01 * x[0])


@pytest.mark.parametrize(
    "claim", [0.02, 1.0, 6.0, (1.0, 1e-5), (0.0, 0.1), (3.0, 0.0), "zcdp", "curve", "mechanism"]
)
def test_half_planes_hold_the_claim(claim):
    """No FNR of the claim's curve lies below a half-plane, and the planes are close to the
    curve."""
    if claim == "zcdp":
        stated = audit.zero_concentrated(0.5)
    elif claim == "mechanism":
        stated = audit.as_claim(jaxgdp.tradeoff(jaxgdp.dpsgd(1.0, 0.1, 20), rtol=0.01))
    elif claim == "curve":
        stated = audit.Claim("1-GDP", audit.as_claim(1.0).fnr)
    else:
        stated = audit.as_claim(claim)
    lines = stated.half_planes()
    fpr = np.concatenate(
        [[0.0], np.geomspace(1e-8, 0.5, 60), 1.0 - np.geomspace(1e-8, 0.49, 60), [1.0]]
    )
    most = 1.0 - np.asarray(stated.fnr(fpr).upper, float)
    allowed = np.min(lines.slope[:, None] * fpr + lines.intercept[:, None], axis=0)
    assert np.all(np.minimum(allowed, 1.0) >= most - 1e-14)
    tightest = 1.0 - np.asarray(stated.fnr(fpr).lower, float)
    assert np.max(np.minimum(allowed, 1.0) - tightest) < (0.08 if claim == "zcdp" else 0.015)
    assert np.all(np.asarray(lines.slope, np.float32) == lines.slope)
    assert np.all(np.asarray(lines.intercept, np.float32) == lines.intercept)


def test_bets_against_gaussian_curves_have_their_excess():
    mu = np.array([0.0, 0.3, 1.0, 5.0])[:, None]
    factors, excess = inversion._against_gaussian(ODDS[None, :60], mu)
    p = np.concatenate([np.geomspace(1e-9, 0.5, 200), 1.0 - np.geomspace(1e-9, 0.49, 200)])
    for row, more, m in zip(factors, excess, mu[:, 0], strict=True):
        q = gdp.tpr(fpr=p, mu=m) if m else p
        e = np.exp(row)[:, :, None]
        mean = (q * e[:, 0] + (1 - q) * e[:, 1]) * (p * e[:, 2] + (1 - p) * e[:, 3])
        assert np.all(mean <= 1.0 + more[:, None] + 1e-12) and np.all(more < 1e-9)
    assert np.mean(np.any(factors[2] != 0.0, axis=-1)) > 0.2


def test_claims_of_every_mechanism_have_words():
    for name, (batch, uses) in SETTINGS.items():
        one = jax.tree.map(lambda x: np.asarray(x)[0] if np.ndim(x) and len(x) == 2 else x, batch)
        text = claims._named(jaxgdp.compose([(one, uses[0])]))
        assert text.startswith(f"{name}(") and " = " in text


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_half_planes_hold_every_mechanism(name):
    batch, uses = SETTINGS[name]
    one = jax.tree.map(lambda x: np.asarray(x)[0] if np.ndim(x) and len(x) == 2 else x, batch)
    try:
        curve = jaxgdp.tradeoff(jaxgdp.compose([(one, uses[0])]), rtol=0.05)
    except (ValueError, TypeError, IndexError):
        pytest.skip("no single setting can be taken out of this batch")
    lines = audit.as_claim(curve).half_planes()
    fpr = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 60), 1.0 - np.geomspace(1e-9, 0.49, 60)])
    allowed = np.min(lines.slope[:, None] * fpr + lines.intercept[:, None], axis=0)
    assert np.all(np.minimum(allowed, 1.0) >= 1.0 - np.asarray(curve.beta(fpr).upper) - 1e-13)


@pytest.mark.parametrize("claim", [0.0, 1e-6, 40.0, 1e6, (0.0, 0.0), (50.0, 0.0), (700.0, 0.1)])
def test_claims_at_the_ends_are_answered(claim):
    """Nothing is refuted by what the claim allows, and claims of next to nothing are refuted at
    once.
    """
    z = np.random.default_rng(0).standard_normal((2, 200))
    state = audit.Sequential(claim)
    assert not state.update(z[0], z[1]).refuted
    weak = claim in (0.0, 1e-6, (0.0, 0.0))
    assert state.update(z[0] + 3.0, z[1]).refuted is weak
