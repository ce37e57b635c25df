"""Sides against exact enumeration: every output of every use, in fractions."""

import itertools
import random
from fractions import Fraction

import mpmath
import pytest

pytest.importorskip("flint")
import jaxgdp
from jaxgdp.proof import refine
from jaxgdp.proof.balls import dyadic, precision
from jaxgdp.proof.describe import parts_of
from jaxgdp.proof.refine import Finder, Question

DIGITS = 60


class Exact:
    """A product of finite pairs, with its quantities."""

    def __init__(self, pairs, order):
        outputs = [(Fraction(1), Fraction(1))]
        for q, p in pairs:
            each = [(Fraction(x), Fraction(y)) for x, y in zip(q, p, strict=True)]
            outputs = [(a * c, b * d) for (a, b), (c, d) in itertools.product(outputs, each)]
        self.outputs = [(b, a) for a, b in outputs] if order == "add" else outputs
        ratio = lambda pair: (1, 0) if pair[1] == 0 else (0, pair[0] / pair[1])
        self.points, fpr, tpr = [(Fraction(0), Fraction(0))], Fraction(0), Fraction(0)
        for n, d in sorted(self.outputs, key=ratio, reverse=True):
            fpr, tpr = fpr + d, tpr + n
            self.points.append((fpr, tpr))

    def delta(self, growth):
        """δ where e^ε is ``growth``."""
        return sum(max(n - growth * d, 0) for n, d in self.outputs)

    def tpr(self, fpr):
        """The polygon at an FPR."""
        best = Fraction(0)
        for (a, s), (b, t) in itertools.pairwise(self.points):
            if a <= fpr <= b:
                share = (fpr - a) / (b - a) if b > a else 1
                best = max(best, s + share * (t - s))
        return best

    def level(self, fpr, tpr):
        z = lambda x: (
            mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(x.numerator) / x.denominator - 1)
        )
        return z(tpr) - z(fpr)

    def mu(self, floor):
        """Over vertices and the two ends of the range."""
        inverse = next(
            a + (1 - floor - s) * (b - a) / (t - s)
            for (a, s), (b, t) in itertools.pairwise(self.points)
            if s < 1 - floor <= t
        )
        some = [(f, t) for f, t in self.points if f >= floor and t <= 1 - floor]
        some += [(floor, self.tpr(floor)), (inverse, 1 - floor)]
        return max(self.level(f, t) for f, t in some if f >= floor and t <= 1 - floor)

    def approximate_mu(self, d):
        rest = 1 - d
        some = [(f / rest, (t - d) / rest) for f, t in self.points if t > d and f < rest]
        return max((self.level(f, t) for f, t in some if t < 1), default=0)


def table(rng, number):
    """A pair of doubles that sum to one exactly: multiples of 2^-12."""
    rows = []
    for _ in range(2):
        cuts = sorted(rng.sample(range(1, 2**12), number - 1))
        rows.append([(b - a) / 2**12 for a, b in itertools.pairwise([0, *cuts, 2**12])])
    return rows


def find(mechanism, quantity, argument, adjacency, variance=1e-4, smallest=1e-9):
    with precision(400):
        finder = Finder(parts_of(mechanism), Question(quantity, argument, adjacency, smallest))
    return finder.look(variance * finder.variance, 0, float("inf")).sides


def holds(sides, value) -> bool:
    """Whether sides hold a fraction, or a number of 60 digits to 50 of them."""
    low, high = (dyadic(side) for side in sides)
    if isinstance(value, mpmath.mpf):
        assert mpmath.mp.dps >= DIGITS
        slack = Fraction(1, 10**45)
        value = Fraction(*map(int, (value.man, 1))) * Fraction(2) ** int(value.exp)
        return low - slack <= value <= high + slack
    return low <= value <= high


@pytest.mark.parametrize("listed", (True, False), ids=("listed", "on a lattice"))
@pytest.mark.parametrize("seed", range(4))
def test_sides_hold_what_fractions_give(seed, listed, monkeypatch):
    """δ, advantage, TPR, FNR, Bayes risk, μ and d-approximate μ of products of tables."""
    if not listed:
        monkeypatch.setattr(refine, "_MOST_ATOMS", 0)
    rng = random.Random(seed)
    tables = [table(rng, rng.choice([2, 3, 4])) for _ in range(rng.choice([1, 2]))]
    counts = [rng.choice([1, 2, 3]) for _ in tables]
    parts = [(jaxgdp.FromPMFs(p=p, q=q), n) for (p, q), n in zip(tables, counts, strict=True)]
    mechanism = jaxgdp.compose(parts)
    pairs = [(q, p) for (p, q), n in zip(tables, counts, strict=True) for _ in range(n)]
    width = 0.0 if listed else 0.01
    both = {order: Exact(pairs, order) for order in ("remove", "add")}
    ask = lambda quantity, argument, adjacency: find(mechanism, quantity, argument, adjacency)
    for adjacency in ("remove", "add", "add_remove"):
        mine = [both[adjacency]] if adjacency in both else list(both.values())
        for argument in (0.0, 0.5, 1.75):
            growth = mpmath.exp(argument)
            true = max(each_delta(exact, growth) for exact in mine)
            sides = ask("delta", argument, adjacency)
            assert holds(sides, true)
            assert float(sides.upper - sides.lower) <= width + 1e-15
        if len(mine) == 1:  # (the hull of both orders is checked by its supporting lines)
            for argument in (0.01, 0.3, 0.85):
                true = mine[0].tpr(Fraction(argument))
                assert holds(ask("tpr", argument, adjacency), true)
                assert holds(ask("beta", argument, adjacency), 1 - true)
            risk = (1 - Fraction(0.3)) * (1 - mine[0].delta(Fraction(0.3) / (1 - Fraction(0.3))))
            assert holds(ask("bayes_risk", 0.3, adjacency), risk)
    exact = both["remove"]
    assert holds(ask("advantage", None, "add_remove"), exact.delta(Fraction(1)))
    if exact.tpr(Fraction(0.01)) <= 1 - Fraction(0.01):
        assert holds(ask("mu", 0.01, "add_remove"), exact.mu(Fraction(0.01)))
    assert holds(ask("approximate_mu", 0.02, "add"), exact.approximate_mu(Fraction(0.02)))


def each_delta(exact, growth):
    """δ with 60 digits."""
    number = lambda x: mpmath.mpf(x.numerator) / x.denominator
    return sum(max(number(n) - growth * number(d), mpmath.mpf(0)) for n, d in exact.outputs)


@pytest.mark.parametrize("adjacency", ("remove", "add", "add_remove"))
def test_symmetric_and_other_pairs_together_hold_what_fractions_give(adjacency, monkeypatch):
    """A pair on a lattice of its own beside one whose orders differ."""
    monkeypatch.setattr(refine, "_MOST_ATOMS", 0)
    delta = 2.0**-7
    table = [0.5, 0.375, 0.125], [0.25, 0.5, 0.25]
    mechanism = jaxgdp.compose(
        [
            (jaxgdp.ApproximateDP(0.0, delta), 1),
            (jaxgdp.RandomizedResponse(0.5, 5), 2),
            (jaxgdp.FromPMFs(*table), 2),
        ]
    )
    e = Fraction(*map(int, mpmath.libmp.to_rational(mpmath.exp(mpmath.mpf("0.5"))._mpf_)))
    response = [1 / (e + 4), 3 / (e + 4), e / (e + 4)], [e / (e + 4), 3 / (e + 4), 1 / (e + 4)]
    rest = 1 - Fraction(delta)
    shown = [0, rest, Fraction(delta)], [Fraction(delta), rest, 0]
    pairs = [shown, response, response, (table[1], table[0]), (table[1], table[0])]
    both = {order: Exact(pairs, order) for order in ("remove", "add")}
    mine = [both[adjacency]] if adjacency in both else list(both.values())
    for argument in (0.0, 0.4, 1.5):
        true = max(each_delta(exact, mpmath.exp(argument)) for exact in mine)
        sides = find(mechanism, "delta", argument, adjacency)
        assert holds(sides, true) and float(sides.upper - sides.lower) < 0.02
    if len(mine) == 1:
        for argument in (0.05, 0.4):
            true = mine[0].tpr(Fraction(argument))
            sides = find(mechanism, "beta", argument, adjacency)
            assert holds(sides, mpmath.mpf(1) - mpmath.mpf(true.numerator) / true.denominator)


def test_atom_that_is_not_where_its_masses_say_is_an_error():
    from jaxgdp.proof.balls import exact
    from jaxgdp.proof.cells import laws_of
    from jaxgdp.proof.laws import Grid
    from jaxgdp.proof.uses import Finite, Lattice, pure

    with precision(200):
        right = pure(exact(0.5), exact(0))
        wrong = Finite(right.outputs, Lattice(exact(1.0), exact(0.5)), (0, 1), True)
        grid = Grid(exact(1.0), exact(0.5), 64)
        with pytest.raises(ArithmeticError, match="not where"):
            laws_of(wrong, "remove", grid, 1, 1.0, 1.0)
