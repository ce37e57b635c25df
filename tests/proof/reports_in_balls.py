"""Exact profiles of shuffled reports in ball arithmetic, by enumeration. Needs python-flint."""

import math

import numpy as np
from sides_in_balls import Case, listed

import jaxgdp
from jaxgdp.proof.balls import exact


def _multinomial(number, each, rest, most):
    """Numbers of a, of b and of covering reports, and probabilities, up to ``most`` of either."""
    covers = number if rest > 0 else 0
    free = 1 - 2 * each - rest
    for a in range(min(number, most) + 1):
        for b in range(min(number - a, most) + 1):
            for c in range(min(number - a - b, covers) + 1) if covers else (0,):
                left = number - a - b - c
                if not free > 0 and left:
                    continue
                ways = 1  # n!/(a! b! c! left!)
                for i in range(a + b + c):
                    ways *= number - i
                ways //= math.factorial(a) * math.factorial(b) * math.factorial(c)
                mass = exact(ways) * each ** (a + b) * (rest**c if c else 1)
                yield a, b, c, mass * (free**left if left else 1)


def _reports(number, ratio, each, cover, weight, most):
    """The user may be any of the n: densities (ρa + b + wc)/n and (a + ρb + wc)/n."""
    return listed(
        [
            (m * (ratio * a + b + weight * c) / number, m * (a + ratio * b + weight * c) / number)
            for a, b, c, m in _multinomial(number, each, cover, most)
        ]
    )


def shuffled(rng):
    kind = ("any", "binary", "k-ary", "laws")[rng.integers(4)]
    epsilon = float(rng.choice([1e-6, 20.0, 10.0 ** rng.uniform(-6.0, 1.3), rng.uniform(0.1, 8.0)]))
    number = int(rng.integers(1, 25 if kind in ("any", "binary") else 11))
    if kind == "any" and epsilon > 8.0:
        number = int(min(10.0 ** rng.uniform(0.0, 9.0), 6.0 * np.exp(epsilon)))
    return shuffled_case(kind, epsilon, number, rng)


def shuffled_case(kind, epsilon, number, rng=None):
    """Of a kind: the clones' profile, and that of the attack from one random choice of values."""
    ratio = exact(epsilon).exp()
    randomizer, most = kind, 40
    if kind in ("any", "binary"):
        each, cover, weight = 1 / (ratio + 1), exact(0), exact(0)
    elif kind == "k-ary":
        k = int(rng.choice([3, 4, 16, 1000, 10**9]))
        randomizer, each = f"{k}-ary", 1 / (ratio + k - 1)
        cover, weight = (k - 2) * each, exact(1)
    else:
        first = rng.dirichlet(np.ones(3)).tolist()
        change = np.exp(min(epsilon, 3.0) * rng.uniform(-0.4, 0.4, 3))
        second = (np.array(first) * change / np.dot(first, change)).tolist()
        randomizer = (first, second)
        laws = [[exact(v) for v in law] for law in randomizer]
        laws = [[v / sum(law, exact(0)) for v in law] for law in laws]
        gap = sum((abs(a - b) for a, b in zip(*laws, strict=True)), exact(0)) / 2
        each = gap / (ratio - 1)
        cover, weight = (1 - (ratio + 1) * each) / ratio, ratio
    mechanism = jaxgdp.ShuffledReports(epsilon, number, randomizer)
    pair = mechanism.gathered(1.0)[0][0]
    truth = _reports(number, ratio, each, cover, weight, most)
    if kind == "binary":
        attacked = _counted(number, each, 1 - each)
    elif kind == "laws":
        more = [b > a for a, b in zip(*randomizer, strict=True)]
        one, other = (
            sum((v for v, m in zip(law, more, strict=True) if m), exact(0)) for law in laws
        )
        attacked = _counted(number, one, other)
    else:
        attacked = truth
    return Case(f"{kind} {randomizer!r}, ε₀ = {epsilon!r}, n = {number}", pair, truth, attacked)


def _counted(number, one, other):
    """The number of events of n users, all but one of them of the first value."""
    others = [
        exact(math.comb(number - 1, k)) * one**k * (1 - one) ** (number - 1 - k)
        for k in range(number)
    ]
    before, after = [exact(0), *others], [*others, exact(0)]
    return listed(
        [
            ((1 - one) * b + one * a, (1 - other) * b + other * a)
            for a, b in zip(before, after, strict=True)
        ]
    )
