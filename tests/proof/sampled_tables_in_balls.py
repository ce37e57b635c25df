"""Exact privacy profiles of random allocation, batches in bins, drawn batch sizes and shuffled
reports in ball arithmetic, written down from the definitions, with settings of extreme ranges.
Needs python-flint.

One of two Gaussian steps, two positions in bins, and one or two of three steps are trapezoidal
sums of entire functions over closed forms: with log-normal factors S and F independent, the
likelihood ratio is S·F, and E(SF − c)₊ given F is the formula of Black (1976). Spacings are such
that what the sum misses is below 1e-60.
"""

import itertools
import math

import numpy as np
from flint import arb, fmpq
from laws_in_balls import Listed, fractions
from reports_in_balls import shuffled
from sides_in_balls import Case, Side, listed

import jaxgdp
from jaxgdp.participation import BallsInBins
from jaxgdp.proof.balls import exact, upper_tail

# --- sums over closed forms -----------------------------------------------------------------------


def _black(forward, strike, vol, *, put):
    d = ((forward / strike).log() + vol * vol / 2) / vol
    if put:
        return strike * upper_tail(d - vol) - forward * upper_tail(d)
    return forward * upper_tail(-d) - strike * upper_tail(vol - d)


def _product(factors, vol):
    """δ of E(SF − e^ε)₊ and of E(1 − e^ε·SF)₊, of weights and values of F, log S of deviation v."""
    values: dict = {}

    def delta(order, epsilon):
        if (order, epsilon) not in values:
            growth = exact(epsilon if order == 0 else -epsilon).exp()
            total = sum((w * _black(f, growth, vol, put=bool(order)) for w, f in factors), exact(0))
            values[order, epsilon] = total if order == 0 else total / growth
        return values[order, epsilon]

    return delta


def _normal_nodes(width, shift):
    """Points and weights of a trapezoidal sum for a standard normal law, of functions of width
    ``width`` that move its mass by up to ``shift``."""
    h = min(0.17, 0.11 * width)
    number = int((shift + 17.0) / h) + 1
    h = exact(h)
    return [
        (h * k, h * (-((h * k) ** 2) / 2).exp() / (2 * arb.pi()).sqrt())
        for k in range(-number, number + 1)
    ]


def two_positions(variances, shared):
    """(e^{u₁ − v₁/2} + e^{u₂ − v₂/2})/2, of covariance r: given u₁ − u₂ log-normal."""
    (v1, v2), r = (exact(v) for v in variances), exact(shared)
    apart = v1 + v2 - 2 * r
    share = (v1 - r) / apart
    vol, spread = (v1 - share * share * apart).sqrt(), apart.sqrt()
    width = float(1 / spread)
    factors = []
    for x, w in _normal_nodes(width, float(spread)):
        d = x * spread
        both = (share * d - v1 / 2).exp() + ((share - 1) * d - v2 / 2).exp()
        factors.append((w, both / 2 * (vol * vol / 2).exp()))
    return _product(factors, vol)


def one_or_two_of_three(sigma, selected):
    """e^{km/σ − k/(2σ²)}·e_k(e^{w/σ})/3, of the mean m of three normal numbers and what they
    differ from it by, w: a plane, of which (x, y) are coordinates."""
    s = exact(sigma)
    vol = selected / (s * exact(3).sqrt())
    forward = (vol * vol / 2 - exact(selected) / (2 * s * s)).exp()
    nodes = _normal_nodes(sigma * 0.8, 1.0 / sigma)
    a, b = exact(2).sqrt(), exact(6).sqrt()
    factors = []
    for x, wx in nodes:
        for y, wy in nodes:
            if not (wx * wy > exact(1e-60)):
                continue
            parts = (x / a + y / b, y / b - x / a, -2 * y / b)
            sign = 1 if selected == 1 else -1
            total = sum(((sign * part / s).exp() for part in parts), exact(0))
            factors.append((wx * wy, forward * total / 3))
    return _product(factors, vol)


def allocation_of_two(rng):
    sigma = float(
        rng.choice([0.2, 1e4, 10.0 ** rng.uniform(-0.69, 4.0), 10.0 ** rng.uniform(-0.6, 1)])
    )
    pair = jaxgdp.RandomAllocation(sigma, 2).gathered(1.0)[0][0]
    v = 1 / exact(sigma) ** 2
    return Case(f"1 of 2, σ = {sigma!r}", pair, two_positions((v, v), 0))


def allocation_of_three(rng):
    sigma = float(rng.choice([0.8, 1e4, 10.0 ** rng.uniform(-0.1, 4.0), rng.uniform(1.0, 3.0)]))
    k = int(rng.integers(1, 3))
    pair = jaxgdp.RandomAllocation(sigma, 3, k).gathered(1.0)[0][0]
    return Case(f"{k} of 3, σ = {sigma!r}", pair, one_or_two_of_three(sigma, k))


def balls_in_bins(rng):
    """Every other step, from the first or the second on, of correlated noise."""
    steps = int(rng.integers(2, 6))
    lags = [1.0, *(rng.choice([0.0, 1e-9, 0.3, 0.99, 2.0]) for _ in range(min(steps, 3) - 1))]
    columns = [
        [
            sum(lags[i - j] for j in range(first, i + 1, 2) if i - j < len(lags))
            for i in range(steps)
        ]
        for first in (0, 1)
    ]
    columns = [[fmpq(*float(v).as_integer_ratio()) for v in column] for column in columns]
    product = lambda a, b: sum((x * y for x, y in zip(a, b, strict=True)), fmpq(0))
    largest = max(float(arb(product(c, c))) for c in columns)
    low, high = math.sqrt(largest / 23.0), math.sqrt(largest / 1e-7)
    sigma = float(
        rng.choice([low, high, 10.0 ** rng.uniform(np.log10(low), np.log10(high)), low * 5])
    )
    try:
        pair = jaxgdp.MatrixMechanism(lags, sigma, BallsInBins(2), steps).gathered(1.0)[0][0]
    except ValueError as error:  # (noise that is refused)
        assert "noise_multiplier must be from" in str(error)
        return None
    over = exact(sigma) ** 2
    variances = [arb(product(c, c)) / over for c in columns]
    shared = arb(product(*columns)) / over
    return Case(f"bins {lags}, {steps}, σ = {sigma!r}", pair, two_positions(variances, shared))


# --- enumeration ----------------------------------------------------------------------------------


def _allocated(law, steps):
    """Outcomes of one of several steps of a pair of finitely many: numbers of each kind."""
    one = [(a, b) for _, b, a in law.rows] + [(law.minus, exact(0)), (exact(0), law.plus)]
    rows = []
    for drawn in itertools.combinations_with_replacement(range(len(one)), steps):
        counts = [drawn.count(k) for k in range(len(one))]
        ways = math.factorial(steps) // math.prod(map(math.factorial, counts))
        p = exact(ways)
        for (a, _), n in zip(one, counts, strict=True):
            p *= a**n
        q = exact(0)
        for k, n in enumerate(counts):
            if n:
                term = exact(ways) * n / steps * one[k][1]
                for j, ((a, _), m) in enumerate(zip(one, counts, strict=True)):
                    term *= a ** (m - (j == k))
                q += term
        rows.append((p, q))
    return rows


def allocation_of_tables(rng):
    """Outputs of a table with masses down to 1e-15, and randomised response."""
    steps = int(rng.integers(2, 6))
    if rng.integers(2):
        epsilon = 10.0 ** rng.uniform(-9.0, 1.7)
        step = jaxgdp.RandomizedResponse(epsilon)
        low = 1 / (1 + exact(epsilon).exp())
        ratio = exact(epsilon)
        law = Listed([(-ratio, low, 1 - low), (ratio, 1 - low, low)])
        name = f"response {epsilon!r}"
    else:
        rows = 10.0 ** rng.uniform(-float(rng.choice([1.0, 15.0])), 0.0, (2, 3))
        if rng.integers(2):
            rows[1] = rows[0] * (1.0 + 10.0 ** rng.uniform(-12.0, -3.0) * rng.uniform(-1, 1, 3))
        rows[rng.integers(2), 0] *= rng.integers(2)
        p, q = rows / rows.sum(axis=1, keepdims=True)
        step, law = jaxgdp.FromPMFs(p, q), fractions(p, q)
        name = f"table {p.tolist()!r} {q.tolist()!r}"
    pair = jaxgdp.RandomAllocation(mechanism=step, num_steps=steps).gathered(1.0)[0][0]
    return Case(f"1 of {steps}, {name}", pair, listed(_allocated(law, steps)))


# --- drawn batch sizes ----------------------------------------------------------------------------


def _binomial(number, rate, width=90):
    """Probabilities of a binomial law where they are not faint."""
    rate = exact(rate)
    if not rate < 1:
        return [(number, exact(1))]
    middle = int(number * float(rate))
    low, high = max(0, middle - width), min(number, middle + width)
    first = exact(math.comb(number, low) if number < 10_000 else 1)
    if number >= 10_000:
        first = (
            arb(number + 1).lgamma() - arb(low + 1).lgamma() - arb(number - low + 1).lgamma()
        ).exp()
    mass = first * rate**low * (1 - rate) ** (number - low)
    found = []
    for k in range(low, high + 1):
        found.append((k, mass))
        mass = mass * (number - k) / (k + 1) * rate / (1 - rate)
    return found


def _normal_gain(first, second, mu):
    """∫(a·N(μ, 1) − b·N(0, 1))₊, b ≥ 0."""
    if not first > 0:
        return exact(0)
    if not second > 0:
        return first - second
    at = (second / first).log() / mu
    return first * upper_tail(at - mu / 2) - second * upper_tail(at + mu / 2)


def drawn_batch(rng):
    """Sums over every size of integrals of two normal laws."""
    sigma = 10.0 ** (rng.uniform(-3.0, 6.0) if rng.integers(2) else rng.uniform(-1.0, 1.0))
    number = int(10.0 ** rng.uniform(0.0, 9.0)) if rng.integers(2) else int(rng.integers(1, 60))
    if number < 60:
        rate = float(
            rng.choice([10.0 ** rng.uniform(-15, 0), 1 - 10.0 ** rng.uniform(-15, -1), 1.0])
        )
    else:
        rate = min(10.0 ** rng.uniform(-6.0, 1.0) / number, 0.9)
    return drawn_batch_case(sigma, rate, number, known=bool(rng.integers(2)))


def drawn_batch_case(sigma, rate, number, *, known):
    mu, growth_of = 1 / exact(sigma), lambda e: exact(e).exp()
    p = exact(rate)
    sizes = _binomial(number if known else number - 1, rate)

    def delta(order, epsilon):
        growth, total = growth_of(epsilon), exact(0)
        for k, mass in sizes:
            share = exact(k) / number
            if known:
                none, some = 1 - share, share
            else:  # (k of the others, or k − 1 of them and the record: p·k/(n − k)·e^ℓ)
                none, some = 1 - p, (1 - p) * k / (number - k)
            if order == 0:
                found = _normal_gain(some, growth - none, mu)
            else:
                found = _normal_gain(1 - growth * none, growth * some, mu)
            total += mass * found
        if not known and order == 0:
            total += p**number
        return total

    step = jaxgdp.DrawnBatchSize(sigma, rate, number, known)
    pair = step.gathered(1.0)[0][0]
    none = Side([-np.inf], None, [0.0], exact(0), exact(0), 0.0)
    return Case(f"size σ = {sigma!r}, p = {rate!r}, n = {number}, {known}", pair, delta, below=none)


DRAWN = {
    "BallsInBins": balls_in_bins,
    "DrawnBatchSize": drawn_batch,
    "RandomAllocation of a mechanism": allocation_of_tables,
    "RandomAllocation of three steps": allocation_of_three,
    "RandomAllocation of two steps": allocation_of_two,
    "ShuffledReports": shuffled,
}
