"""Exact privacy profiles of mechanisms that make tables, in ball arithmetic, one formula each,
written down from the definitions, and settings of extreme ranges. Needs python-flint.

A case is a pair with its table and δ(ε) of both orders, ε ≥ 0, of what the table has to dominate.
"""

import itertools

import numpy as np
from flint import arb, fmpq
from laws_in_balls import fractions, of_atoms

import jaxgdp
from jaxgdp import runs
from jaxgdp.numerics.errors import UNIT
from jaxgdp.proof.balls import exact, gaussian_delta, upper_tail


class Case:
    """A table beside the profile that it has to be above.

    Attributes:
        pair: the mechanism that holds the table.
        delta: (order, ε in balls) → δ in balls, order 0 for removing a record.
        error: what the table declares, relative to its TPR.
        convex: whether δ is convex in e^ε; of one that is not, a table holds the convex hull, and
            the two agree at the table's losses.
    """

    def __init__(self, pair, delta, error, *, convex=True):
        self.pair, self.delta, self.error, self.convex = pair, delta, error, convex
        self.law = of_atoms(pair)

    def points(self, rng):
        """ε at the table's losses (without a generator: at some), next to them, between them, next
        to 0 and beyond the last."""
        some = np.asarray(self.pair.loss)[np.isfinite(np.asarray(self.pair.log_p))]
        some = np.unique(np.abs(some))
        if rng is None:
            return some[:: max(len(some) // 60, 1)]
        if len(some) > 12:
            some = np.unique(np.append(rng.choice(some, 10), some[[0, -1]]))
        if not self.convex:
            return some
        middle = 0.5 * (some[1:] + some[:-1])
        around = np.append(some * (1.0 - 1e-9), some * (1.0 + 1e-9))
        return np.concatenate([[0.0, 1e-12, 2.0 * some[-1]], some, middle, around])

    def short(self, epsilon):
        """By how much the table's δ falls short in either order, over what may be off."""
        at, growth = exact(float(epsilon)), exact(float(epsilon)).exp()
        all_of = self.law.above(exact(-1e300))
        for order in (0, 1):
            if order == 0:
                q, p = self.law.above(at)
                own, shown = self.law.plus + q - growth * p, self.law.plus + q
            else:
                above = self.law.above(-at)
                q, p = (a - b for a, b in zip(all_of, above, strict=True))
                own, shown = self.law.minus + p - growth * q, self.law.minus + p
            true = self.delta(order, at)
            slack = exact(self.error) * shown + exact(1e-290)
            yield float((true - own) / slack)


def scale(rng, low=-6.0, high=6.0):
    """Half of them from the whole range, half from where people are."""
    return 10.0 ** (rng.uniform(low, high) if rng.integers(2) else rng.uniform(-1.0, 1.0))


def _any_sign(delta):
    """δ(ε) of a symmetric pair for any real ε."""

    def found(epsilon):
        if epsilon >= 0:
            return delta(epsilon)
        return 1 - epsilon.exp() * (1 - delta(-epsilon))

    return found


def _table_error(pair):
    """What a table of atoms declares: a few units and those of its logs, and of its losses."""
    columns = pair.log_p, pair.log_q, pair.log_p_minus, pair.log_q_plus
    logs = np.concatenate([np.ravel(column) for column in columns])
    deepest = float(np.max(np.abs(logs[np.isfinite(logs)]), initial=0.0))
    return (16.0 + 4.0 * deepest) * UNIT + float(np.max(pair.place))


# --- batches of a fixed size ----------------------------------------------------------------------


def fixed_size(rng):
    """q·((1 − β)·δ_{2/σ} + β·δ_{1/σ}), at 1 + q·(e^ε − 1); or q·δ_{2/σ}."""
    sigma = max(scale(rng, -1.3, 6.0), 0.05)
    size = int(10.0 ** rng.uniform(0.31, 15.0))
    batch = int(rng.choice([1, size - 1, size, max(1, int(size * 10.0 ** rng.uniform(-9, 0)))]))
    batch = min(max(batch, 1), size)
    return fixed_size_case(sigma, batch, size, replaced=bool(rng.integers(2)))


def fixed_size_case(sigma, batch, size, *, replaced):
    """The same of given parameters, for zero-out or for replacing a record."""
    near, mechanism = 1, jaxgdp.FixedSize(sigma, batch, size)
    if replaced:
        near, mechanism = 2, mechanism.replace_one()
    rate, s = arb(fmpq(batch, size)), exact(sigma)

    def delta(order, epsilon):
        inner = (1 + epsilon.expm1() / rate).log()
        beta = (epsilon - inner).exp()
        far, close = (gaussian_delta(inner, m / s) for m in (2, near))
        return rate * ((1 - beta) * far + beta * close)

    pair = mechanism.canonical()
    return Case(pair, delta, _table_error(pair), convex=False)


# --- a profile's own points -----------------------------------------------------------------------


def profile(rng):
    """The lower convex hull of the points, of their mirror images and of (0, 1)."""
    number = int(rng.integers(1, 7))
    kind = rng.integers(3)
    steps = 10.0 ** rng.uniform(-9.0, (0.5, 3.0, -3.0)[kind], number)
    epsilons = np.cumsum(steps) - (steps[0] if rng.integers(2) else 0.0)
    deltas = np.sort(10.0 ** rng.uniform(-(3.0, 290.0, 12.0)[kind], -1e-3, number))[::-1]
    if rng.integers(3) == 0:
        deltas[-1] = 0.0
    growth = [exact(float(e)).exp() for e in epsilons]
    points = [(exact(0), exact(1))]
    for g, d in zip(growth, map(float, deltas), strict=True):
        points += [(g, exact(d)), (1 / g, 1 - (1 - exact(d)) / g)]

    def delta(order, epsilon):
        at, found = epsilon.exp(), [exact(1)]
        left = [(g, d) for g, d in points if g <= at]
        right = [(g, d) for g, d in points if not g <= at]
        found += [d for _, d in left]  # (δ does not increase)
        for (a, x), (b, y) in itertools.product(left, right):
            found.append(x + (y - x) * (at - a) / (b - a))
        lowest = found[0]
        for value in found[1:]:
            lowest = lowest.min(value)
        return lowest.max(exact(0))

    pair = jaxgdp.FromProfile(epsilons, deltas).canonical()
    return Case(pair, delta, _table_error(pair))


# --- keys that only one record has ----------------------------------------------------------------


def thresholded_gaussian(rng):
    """The largest over the number of new cells: 1 − a + a·δ_μ(ε − log a), or δ_μ(ε + log a)."""
    sigma, cells = scale(rng), int(rng.integers(1, 4))
    threshold = float(1.0 + sigma * rng.uniform(-9.0, 30.0))
    mechanism = jaxgdp.ThresholdedGaussian(sigma, threshold, cells)
    s = exact(sigma)
    tail = (exact(threshold) - 1) / s
    hidden = 1 - upper_tail(tail) if tail >= 0 else upper_tail(-tail)

    def counts(known, epsilon):
        if known == 0:
            return exact(0) if epsilon >= 0 else -epsilon.expm1()
        return _any_sign(lambda e: gaussian_delta(e, exact(known).sqrt() / s))(epsilon)

    def delta(order, epsilon):
        best = exact(0)
        for new in range(cells + 1):
            a = hidden**new
            if order == 0:
                value = 1 - a + a * counts(cells - new, epsilon - a.log())
            else:
                value = counts(cells - new, epsilon + a.log())
            best = best.max(value)
        return best

    pair = mechanism.gathered(1.0)[0][0]
    return Case(pair, delta, float(pair.uncertain))


def coin_of_thresholded_laplace(rng):
    """Whether any of D new cells is published: 1 − (1 − q)^D, which only the larger data show."""
    scale_of, cells = scale(rng), int(rng.integers(1, 65))
    threshold = float(1.0 + scale_of * rng.uniform(-9.0, 600.0))
    mechanism = jaxgdp.ThresholdedLaplace(scale_of, threshold, cells)
    away = (exact(threshold) - 1) / exact(scale_of)
    shown = (-away).exp() / 2 if away >= 0 else 1 - away.exp() / 2
    hidden = (1 - shown) ** cells

    def delta(order, epsilon):
        return 1 - hidden if order == 0 else (1 - epsilon.exp() * hidden).max(exact(0))

    pair = mechanism.gathered(1.0)[0][0]
    return Case(pair, delta, float(pair.uncertain))


# --- choices --------------------------------------------------------------------------------------


def noisy_maximum(rng):
    """Two scores with normal noise: μ = r/(√2·σ); more candidates show no less."""
    sigma, monotone = scale(rng, -1.5, 4.0), bool(rng.integers(2))
    number = int(rng.choice([2, 2, 3, 1000, 10**9]))
    mechanism = jaxgdp.NoisyMaximum(sigma, number, "gaussian", monotone)
    mu = (1 if monotone else 2) / (exact(2).sqrt() * exact(sigma))
    pair = mechanism.gathered(1.0)[0][0]
    return Case(pair, lambda order, e: gaussian_delta(e, mu), float(pair.uncertain))


def selected(rng):
    """The best of K runs by every order of three outputs, Pr[best ≤ y] = G(F(y))."""
    rows = rng.dirichlet(np.ones(3), 2) + 10.0 ** rng.uniform(-6.0, -1.0)
    p, q = rows / rows.sum(axis=1, keepdims=True)
    mean = float(rng.choice([1.5, 3.0, 30.0, 1e4]))
    law = (runs.Geometric(mean), runs.Poisson(mean), runs.Fixed(int(mean) + 1))[rng.integers(3)]
    whole = [[fmpq(*v.as_integer_ratio()) for v in row.tolist()] for row in (q, p)]
    whole = [[arb(v / sum(row, fmpq(0))) for v in row] for row in whole]

    def generating(z):
        if isinstance(law, runs.Geometric):
            rate = 1 / exact(mean)
            return rate * z / (1 - (1 - rate) * z)
        if isinstance(law, runs.Poisson):
            return (exact(mean) * (z - 1)).exp()
        return z ** (int(mean) + 1)

    def best(masses, order):
        below, total = generating(exact(0)), exact(0)
        found = [below]  # (no run at all)
        for k in order:
            total = total + masses[k]
            upto = exact(1) if len(found) == 3 else generating(total)
            found.append(upto - below)
            below = upto
        return found

    laws = [[best(row, order) for row in whole] for order in itertools.permutations(range(3))]

    def delta(order, epsilon):
        growth, largest = epsilon.exp(), exact(0)
        for law_of_q, law_of_p in laws:
            these, those = (law_of_q, law_of_p) if order == 0 else (law_of_p, law_of_q)
            gains = ((a - growth * b).max(exact(0)) for a, b in zip(these, those, strict=True))
            largest = largest.max(sum(gains, exact(0)))
        return largest

    pair = jaxgdp.Selected(jaxgdp.FromPMFs(p, q), law).canonical()
    return Case(pair, delta, float(pair.uncertain))


def finite(rng):
    """Outputs of two tables, over their exact sums."""
    rows = 10.0 ** rng.uniform(-float(rng.choice([1.0, 20.0, 290.0])), 0.0, (2, rng.integers(2, 9)))
    rows[1, 0] = 0.0 if rng.integers(2) else rows[1, 0]
    p, q = rows / rows.sum(axis=1, keepdims=True)
    law = fractions(p, q)

    def delta(order, epsilon):
        growth = epsilon.exp()
        some = [(b, a) if order == 0 else (a, b) for _, b, a in law.rows]
        gains = ((these - growth * those).max(exact(0)) for these, those in some)
        return sum(gains, law.plus if order == 0 else law.minus)

    pair = jaxgdp.FromPMFs(p, q).canonical()
    return Case(pair, delta, _table_error(pair))


DRAWN = {
    "FixedSize": fixed_size,
    "FromPMFs": finite,
    "FromProfile": profile,
    "NoisyMaximum": noisy_maximum,
    "Selected": selected,
    "ThresholdedGaussian": thresholded_gaussian,
    "ThresholdedLaplace": coin_of_thresholded_laplace,
}
