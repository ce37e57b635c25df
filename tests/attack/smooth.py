"""Exact curves of pairs whose loss has a distribution function in closed form (with or without
atoms).
"""

import mpmath
from mpmath import mpf

from .curve import ONE, ZERO, Curve, largest, rough_gap
from .normal import delta as gaussian_delta

_HALVINGS = 90
_GRID, _ZOOMS = 24, 6


class Smooth(Curve):
    """A curve from ``rates(ε)`` → (Pr_P[ℓ > ε], Pr_Q[ℓ > ε]) at any real ε, and the smallest and
    largest loss worth looking at.

    For ``both`` orders, δ at each ε ≥ 0 is the larger of both.
    """

    def __init__(self, rates, low, high, both=False, swap=False, level=(ZERO, ZERO)):
        self.rates, self.low, self.high, self.both, self.swap = (
            rates,
            mpf(low),
            mpf(high),
            both,
            swap,
        )
        self.level = level  # mass of P at −∞ and of Q at +∞

    def _turned(self, **how):
        return Smooth(self.rates, self.low, self.high, level=self.level, **how)

    def _one(self, epsilon):
        """δ of Q against P (or of P against Q) at any real ε."""
        if self.swap:
            alpha, tpr = self.rates(-epsilon)
            return (1 - alpha) - mpmath.exp(epsilon) * (1 - tpr)
        alpha, tpr = self.rates(epsilon)
        return tpr - mpmath.exp(epsilon) * alpha

    def _directed(self, epsilon):
        return max(self._one(epsilon), ZERO, -mpmath.expm1(epsilon))

    def profile(self, epsilon):
        epsilon = mpf(epsilon)
        if not self.both:
            return self._directed(epsilon)
        if epsilon < 0:
            return 1 - mpmath.exp(epsilon) * (1 - self.profile(-epsilon))
        return max(self._directed(epsilon), self.swapped()._directed(epsilon))

    def swapped(self):
        """The curve of Q against P."""
        return self._turned(swap=not self.swap)

    def symmetrised(self):
        """Both orders."""
        return self._turned(both=True)

    def plain(self):
        return self._turned()

    def _span(self):
        if self.both:
            widest = max(abs(self.low), abs(self.high))
            return -widest - 1, widest + 1
        return (-self.high - 1, -self.low + 1) if self.swap else (self.low - 1, self.high + 1)

    def _least(self, value):
        """Smallest value of a function with one valley over the losses."""
        low, high = self._span()
        ratio = (mpmath.sqrt(5) - 1) / 2
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        at_a, at_b = value(a), value(b)
        for _ in range(_HALVINGS):
            if at_a < at_b:
                high, b, at_b = b, a, at_a
                a = high - ratio * (high - low)
                at_a = value(a)
            else:
                low, a, at_a = a, b, at_b
                b = low + ratio * (high - low)
                at_b = value(b)
        return min(at_a, at_b)

    def tpr(self, fpr):
        """The lowest supporting line, TPR ≤ δ(ε) + e^ε·α."""
        fpr = mpf(fpr)
        return min(ONE, self._least(lambda e: self.profile(e) + mpmath.exp(e) * fpr))

    def fpr(self, fnr):
        """The highest supporting line, α ≥ e^{−ε}·(1 − δ(ε) − β)."""
        fnr = mpf(fnr)
        return max(ZERO, -self._least(lambda e: -mpmath.exp(-e) * (1 - self.profile(e) - fnr)))

    def epsilon(self, delta):
        delta = mpf(delta)
        low, high = ZERO, max(abs(self.low), abs(self.high)) + 1
        end = self.level[0] if self.swap else max(self.level) if self.both else self.level[1]
        if end > delta:
            return mpmath.inf
        while self.profile(high) > delta:
            high *= 2
        if self.profile(low) <= delta:
            return ZERO
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.profile(middle) > delta else (low, middle)
        return high

    def _highest(self, rough):
        """Where a function is largest over the losses, from a grid that closes in on the best of
        its points; doubles are enough.
        """
        low, high = self.low, self.high
        for _ in range(_ZOOMS):
            at = [low + (high - low) * k / _GRID for k in range(_GRID + 1)]
            values = [rough(e) for e in at]
            k = max(range(len(at)), key=lambda i: values[i])
            low, high = at[max(k - 1, 0)], at[min(k + 1, _GRID)]
        return at[k]

    def best_inside(self, inside, d=ZERO):
        if d > 0 and max(self.level) > d * (1 + mpf(10) ** -30):
            return mpmath.inf
        least = mpf(10) ** (12 - mpmath.mp.dps)

        def points(epsilon):
            alpha, tpr = self.rates(epsilon)
            return (
                [(alpha, tpr)] if inside(alpha, tpr) and alpha > least and 1 - tpr > least else []
            )

        best = points(self._highest(lambda e: largest(points(e), d, rough=True)))
        return largest(best, d)

    def regret(self, floor):
        mu = self.mu(floor)
        if mu == mpmath.inf:
            return None
        gap = lambda e: (gaussian_delta(mu, e) - self.profile(e)) / (1 + mpmath.exp(e))
        rough = lambda e: rough_gap(float(mu), float(e), float(self.profile(e)))
        sides = (1, -1) if self.both else (-1,) if self.swap else (1,)
        return max(
            gap(ZERO),
            *(gap(side * self._highest(lambda e, side=side: rough(side * e))) for side in sides),
        )
