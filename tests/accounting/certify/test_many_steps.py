"""What roundings of sums of very many terms make of their law, against exact sums."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from jaxgdp.accounting.certify.seldom_sampled.many_steps import Roundings
from jaxgdp.mechanisms.random_allocation import dyadic_sum


@pytest.mark.parametrize(("number", "off"), [(10**3, 1e-9), (10**6, 1e-12), (10**9, 3e-14)])
@pytest.mark.parametrize("share", [0.5, 1e-3])
def test_error_of_many_terms_holds_the_worst_masses_of_one(number, off, share):
    # one of two outcomes has too much, the other one too little: no other law has more in the tail
    high = mpmath.mpf(off) * (1 if share == 0.5 else mpmath.mpf(1 - share))
    low = high * share / (1 - share)
    allowed = Roundings(number, 0.0, 0.0, off).error(0.0, 0.0, 0.1)
    assert number < 10**4 or allowed < 0.1 * number * off
    seen = []
    with mpmath.workdps(40):
        p, q = mpmath.mpf(share), 1 - mpmath.mpf(share)
        for depth in (0.0, 1.0, 5.0, 20.0, 35.0):
            k = round(number * share + depth * math.sqrt(number * share * (1.0 - share)))
            if not 0 <= k <= number:
                continue
            # the mass of k and all larger numbers is off by no more than that of k
            change = k * mpmath.log1p(high) + (number - k) * mpmath.log1p(-low)
            log_mass = mpmath.log(mpmath.binomial(number, k)) + k * mpmath.log(p)
            log_mass += (number - k) * mpmath.log(q)
            if log_mass > -690:
                seen.append(float(abs(change)))
    assert 0.0 < max(seen) <= allowed


def test_errors_of_sums_that_are_made_of_halves_hold_those_of_exact_ones():
    # every sum is off by as much as is allowed, where it is above its mean and below it
    masses, off, number = [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)], Fraction(1, 10**7), 43
    roundings = Roundings(number, 0.0, 0.0, float(off))

    def moved(law):
        half = len(law) // 2
        size = min(sum(law[:half]), sum(law[half + 1 :]))
        low, high = sum(law[:half]), sum(law[half + 1 :])
        return [
            m * (1 - off * size / low if i < half else 1 + off * size / high if i > half else 1)
            for i, m in enumerate(law)
        ]

    def add(a, b):
        out = [Fraction(0)] * (len(a) + len(b) - 1)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                out[i + j] += x * y
        return out

    def join(a, b, terms):
        found = moved(add(a, b))
        roundings.add(terms, (0.0, 0.0), float(off), a is b)
        return found

    def exact(a, b, terms):
        return add(a, b)

    law = dyadic_sum.by_parts(moved(masses), number, join)
    true = dyadic_sum.by_parts(masses, number, exact)
    assert sum(true) == 1
    allowed = roundings.error(0.0, 0.0, 0.1)
    worst = max(abs(float(a / b) - 1.0) for a, b in zip(law, true, strict=True))
    assert 0.0 < worst <= allowed


def test_error_is_never_larger_than_where_nothing_cancels():
    rng = np.random.default_rng(3)
    for number in 10 ** np.arange(1, 12):
        off = 10.0 ** rng.uniform(-15.0, -9.0)
        worst = float(number) * off
        assert Roundings(int(number), 0.1, 1.0, off).error(1.0, 0.0, worst) <= worst


def test_total_that_is_off_is_counted():
    few = Roundings(10**6, 0.0, 0.0, 1e-14).error(0.0, 0.0, 1e-3)
    more = Roundings(10**6, 0.0, 0.0, 1e-14).error(1e-9, 0.0, 1e-3)
    assert more >= few + 1e-9
