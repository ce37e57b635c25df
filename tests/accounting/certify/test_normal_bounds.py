"""Bounds by moments and a limit theorem, against laws that can be enumerated."""

import numpy as np
from mpmath import binomial, mp, mpf

from jaxgdp.accounting.certify import normal_bounds
from jaxgdp.accounting.certify.discrete_pairs import DiscretePair
from jaxgdp.accounting.certify.tilted_moments import Parts, tilted_sum


def _pair(a, b):
    """P = (1 − a, a) against Q = (1 − b, b), and both losses to many digits."""
    loss = mp.log((1 - b) / (1 - a)), mp.log(b / a)
    columns = (np.array([float(x) for x in loss]), np.log([float(1 - a), float(a)]))
    error = np.full(2, 1e-15), 1e-15 * np.abs(columns[0])
    return DiscretePair(*columns, *error, 0.0, 0.0, 0.0, 0.0), loss


def _exact(a, b, loss, uses, t):
    """FPR, FNR, δ and 1 − δ at a threshold, and how near to it the next atom is."""
    total = [mpf(0)] * 3
    near = mp.inf
    for k in range(uses + 1):
        ways = binomial(uses, k)
        p, q = (ways * x**k * (1 - x) ** (uses - k) for x in (a, b))
        at = k * loss[1] + (uses - k) * loss[0]
        near = min(near, abs(at - t))
        more = (p, 0, q - mp.exp(t) * p) if at > t else (0, q, 0)
        total = [x + y for x, y in zip(total, more, strict=True)]
    alpha, beta, delta = total
    return (alpha, beta, delta, beta + mp.exp(t) * alpha), near


def test_bounds_hold_exact_laws_of_any_number_of_uses():
    generator, checked, close = np.random.default_rng(7), 0, 0
    with mp.workdps(40), np.errstate(all="ignore"):
        for _ in range(40):
            uses = int(np.exp(generator.uniform(0.0, np.log(300.0))))
            a = mpf(float(np.exp(generator.uniform(-8.0, -0.1))))
            b = min(a * mp.exp(float(np.exp(generator.uniform(-12.0, 2.0)))), (1 + a) / 2)
            a, b = (b, a) if generator.uniform() < 0.3 else (a, b)
            pair, loss = _pair(a, b)
            scale = float(abs(loss[1] - loss[0]) * mp.sqrt(uses * a * (1 - a)))
            s = np.array([0.05 + float(generator.uniform()) * (1.5 + 6.0 / scale)])
            total = tilted_sum(Parts(((pair, float(uses)),)), s)
            t = total.mean + generator.normal() * generator.choice([0.0, 1.0]) * total.deviation
            exact, near = _exact(a, b, loss, uses, mpf(float(t[0])))
            if near < 1e-11 * (1.0 + abs(float(t[0]))):
                continue  # (on which side of t its atom is, is a matter of rounding)
            at = normal_bounds.place(total, t)
            found = [normal_bounds.false_positives(at), None, None, None]
            if s[0] <= 1.0:
                found[1] = normal_bounds.false_negatives(at, t)
                found[3] = normal_bounds.rest(at, t)
            else:
                found[2] = normal_bounds.profile(at, t)
            for bounds, value in zip(found, exact, strict=True):
                if bounds is not None:
                    low, high = float(bounds.lower[0]), float(bounds.upper[0])
                    log_value = mp.log(value) if value > 0 else mp.ninf
                    assert low <= log_value <= high, (uses, a, b, s, t)
                    checked += 1
                    close += high - low < 3.0
    assert checked > 60 and close > 5


def test_many_uses_are_known_well():
    """(of 10¹² uses δ is known to a thousandth)"""
    pair, _ = _pair(mpf(1) / (1 + mp.exp(mpf("1e-6"))), mpf(1) / (1 + mp.exp(mpf("-1e-6"))))
    total = tilted_sum(Parts(((pair, 1e12),)), np.array([1.0, 2.0, 4.0]))
    bounds = normal_bounds.profile(normal_bounds.place(total, total.mean), total.mean)
    assert np.all(bounds.upper - bounds.lower < 1e-3)
