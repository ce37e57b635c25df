"""How many pairs of scores refute a claim of twice the noise, and how many the best test needs.

    python benchmarks/audit_power.py           # about a minute of CPU
    python benchmarks/audit_power.py --quick

The claim is 1-GDP, scores are N(0, 1) and N(2, 1), the level is 5 %.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import ndtr

from jaxgdp import audit

CLAIMED, TRUE, LEVEL = 1.0, 2.0, 0.05
MOST = 240  # pairs of each simulated audit


def simulated(audits):
    """Pairs until refutation, and the chance of the fixed-size bound at each of its sizes."""
    rng = np.random.default_rng(0)
    claim, looks = audit.Sequential(CLAIMED), []
    scores = rng.standard_normal((audits, 2, MOST)) + np.array([TRUE, 0.0])[:, None]
    for member, nonmember in scores:
        path = claim.path(member, nonmember)
        looks.append(
            np.argmax(path >= -np.log(LEVEL)) + 1 if path.max() >= -np.log(LEVEL) else MOST
        )
    chance = {
        n: float(np.mean(audit.mu_lower_bound(scores[:, 0, :n], scores[:, 1, :n]) > CLAIMED))
        for n in (*range(40, 65, 4), *range(84, 121, 4))
    }
    return np.array(looks), chance


def nearest(threshold):
    """The point of the claim's curve that is nearest to the true rates at a threshold, in relative
    entropy: (FPR, TPR, slope, distance)."""
    p, q = ndtr(-threshold), ndtr(TRUE - threshold)
    kl = lambda a, b: a * np.log(a / b) + (1.0 - a) * np.log((1.0 - a) / (1.0 - b))
    t = threshold + np.linspace(-3.0, 3.0, 6001)
    distance = kl(p, ndtr(-t)) + kl(q, ndtr(CLAIMED - t))
    best = int(np.argmin(distance))
    slope = np.exp(CLAIMED * t[best] - CLAIMED**2 / 2)
    return ndtr(-t[best]), ndtr(CLAIMED - t[best]), slope, distance[best]


class Best(NamedTuple):
    """The best bets on several thresholds at once, by cells between thresholds.

    Attributes:
        nats: their growth a pair.
        single: the growth of the best bet on one threshold.
        factors: of members and of nonmembers, shape (2, cells).
        chances: of the cells under the true laws, shape (2, cells).
    """

    nats: float
    single: float
    factors: np.ndarray
    chances: np.ndarray


def best_bets(number):
    """The best bets on so many thresholds at once, with both laws known.

    By convex duality their growth tends to the relative entropy of the truth to the nearest pair of
    laws that the claim allows, which is the truth divided by the factors.
    """
    level = (np.arange(number) + 1.0) / (number + 1.0)
    pooled = lambda t: 0.5 * (ndtr(t) + ndtr(t - TRUE))
    at = np.array([brentq(lambda t, u=u: pooled(t) - u, -9.0, 11.0) for u in level])
    fpr, tpr, slope, single = map(np.array, zip(*map(nearest, at), strict=True))
    size = (ndtr(TRUE - at) - tpr) / (tpr * (1.0 - tpr))
    ends = np.concatenate([[-np.inf], at, [np.inf]])
    chances = np.stack([np.diff(ndtr(ends - TRUE)), np.diff(ndtr(ends))])
    above = (np.arange(number + 1)[:, None] > np.arange(number)).astype(float)
    member_by, nonmember_by = above - tpr, (fpr - above) * slope

    def factors(bet):
        return np.stack([1.0 + member_by @ bet, 1.0 + nonmember_by @ bet])

    def lost(logs):
        bet = np.exp(logs) * size
        paid = factors(bet)
        if paid.min() <= 0.0:
            return 1e3, np.zeros(number)
        weight = chances / paid
        slopes = weight[0] @ member_by + weight[1] @ nonmember_by
        return -float(np.sum(chances * np.log(paid))), -slopes * bet

    found = minimize(lost, np.full(number, -np.log(number)), jac=True, method="L-BFGS-B")
    paid = factors(np.exp(found.x) * size)
    return Best(-float(found.fun), float(single.max()), paid, chances)


def power_of_best_test(best, pairs, draws=20_000):
    """Power at the level of the best test of the truth against the nearest pair, by simulation."""
    rng = np.random.default_rng(1)

    def sums(laws):
        return sum(
            np.log(paid)[rng.choice(len(law), (draws, pairs), p=law / law.sum())].sum(axis=1)
            for paid, law in zip(best.factors, laws, strict=True)
        )

    null, truth = sums(best.chances / best.factors), sums(best.chances)
    return float(np.mean(truth > np.quantile(null, 1.0 - LEVEL)))


def main(argv=None):
    """Print the numbers; returns them by name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40 audits in place of 200")
    args = parser.parse_args(argv)
    looks, chance = simulated(40 if args.quick else 200)
    best = best_bets(21)
    of_chance = lambda least: min((n for n, c in chance.items() if c >= least), default=MOST)
    wald = -np.log(LEVEL) / best.nats
    found = {
        "pairs until refutation, median": float(np.median(looks)),
        "pairs until refutation, mean": float(looks.mean()),
        "fixed size for a chance of 1/2": of_chance(0.5),
        "fixed size for a chance of 95 %": of_chance(0.95),
        "nats a pair, one threshold": best.single,
        "nats a pair, all thresholds": best.nats,
        "Wald's bound on the mean": wald,
        "ratio of the means": float(looks.mean()) / wald,
    }
    for pairs in (6, 8, 9):
        found[f"power of the best test, {pairs} pairs"] = power_of_best_test(best, pairs)
    for name, value in found.items():
        print(f"{name:34} {value:.3f}")
    return found


if __name__ == "__main__":
    main()
