"""Where nothing has to be composed: Gaussian noise, and one use of anything, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

from .balls import Ball, Sides, exact, gaussian_delta, upper_tail
from .points import Point
from .uses import Use


@dataclass(frozen=True)
class OneUse:
    """One use in one order: any threshold on the loss is a test with known rates."""

    use: Use
    order: str
    bits: int

    def test(self, epsilon: Ball) -> Point:
        """Rates of accusing losses that are certainly above ``epsilon``."""
        tpr, fpr = self.use.tails(self.order, epsilon)
        for atom in self.use.atoms(self.order, self.bits):
            if atom.loss > epsilon:
                tpr, fpr = tpr + atom.masses.numerator, fpr + atom.masses.denominator
        return Point(fpr, tpr)

    def delta(self, epsilon: Ball) -> Sides:
        """δ(ε); atoms that may be at ε count from above and not from below."""
        largest = self.use.largest_loss(self.order)
        if largest is not None and epsilon >= largest:
            return Sides(exact(0), exact(0))
        growth, point = epsilon.exp(), self.test(epsilon)
        value, more = point.tpr - growth * point.fpr, exact(0)
        for atom in self.use.atoms(self.order, self.bits):
            if not atom.loss > epsilon and not atom.loss < epsilon:
                more += (atom.masses.numerator - growth * atom.masses.denominator).abs_upper()
        upper = (value + more).upper().max(exact(0))
        return Sides(value.lower().max(exact(0)), upper.upper())


@dataclass(frozen=True)
class GaussianHalf:
    """Gaussian noise alone: N(0, 1) against N(μ, 1)."""

    mu: Ball

    def test(self, epsilon: Ball) -> Point:
        """Rates of accusing losses above ``epsilon``."""
        half, ratio = self.mu / 2, epsilon / self.mu
        return Point(upper_tail(ratio + half), upper_tail(ratio - half))

    def delta(self, epsilon: Ball) -> Sides:
        """δ_μ(ε)."""
        value = gaussian_delta(epsilon, self.mu)
        return Sides(value.lower().max(exact(0)), value.upper())
