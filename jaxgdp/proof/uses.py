"""One use of a mechanism, as the exact law of its privacy loss in balls.

For each *order* of the pair, "remove" (Q against P) or "add" (P against Q), outputs have a mass
under the *numerator*, which counts in the TPR, and one under the *denominator*, which counts in the
FPR; the loss is the log of their ratio. A law is a part without atoms, given by its tails, and
atoms."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .balls import Ball, exact, upper_tail

ORDERS = ("remove", "add")


class Masses(NamedTuple):
    """Masses of the same outputs under the numerator and under the denominator."""

    numerator: Ball
    denominator: Ball


class Atom(NamedTuple):
    """Outputs of one loss; on a lattice also the place there."""

    loss: Ball
    masses: Masses
    place: int | None = None


class Lattice(NamedTuple):
    """All losses are shift + whole number·unit."""

    unit: Ball
    shift: Ball


def worth_a_place(atoms: Sequence[Atom], bits: int) -> Sequence[Atom]:
    """All but those that the numerator shows with a probability below 2^−bits together; at least
    one, where there is one.
    """
    faint = exact(2) ** -bits / max(len(atoms), 1)
    return [atom for atom in atoms if not atom.masses.numerator < faint] or list(atoms[:1])


class Span(NamedTuple):
    """Losses that are worth cells, as doubles; for steering only."""

    low: float
    high: float


class Use:
    """What a proof has to know of one use; by default nothing but atoms."""

    symmetric = False
    lattice: Lattice | None = None
    continuous = False

    def tails(self, order: str, loss: Ball) -> Masses:
        """Masses of the part without atoms whose loss is above ``loss``."""
        return Masses(exact(0), exact(0))

    def atoms(self, order: str, bits: int) -> Sequence[Atom]:
        """The atoms of finite loss; those left out have a mass below 2^−bits together."""
        return ()

    def infinite(self, order: str) -> Ball:
        """Numerator's mass of outputs that the denominator never shows."""
        return exact(0)

    def largest_loss(self, order: str) -> Ball | None:
        """A loss that is never exceeded, not even at +∞; None where there is none."""
        return None

    def span(self, order: str, bits: int) -> Span:
        """Beyond it the numerator has a mass of about 2^−bits."""
        raise NotImplementedError


def _quantile_bound(bits: float) -> float:
    """z with Pr[Z > z] < 2^−bits: that is at most e^{−z²/2}/2."""
    return (2.0 * 0.6931471805599453 * max(bits, 0.0)) ** 0.5


@dataclass(frozen=True)
class SampledGaussian(Use):
    """P = N(0, σ²) against Q = (1 − p)·N(0, σ²) + p·N(1, σ²); no sampling where p = 1."""

    variance: Ball
    rate: Ball

    continuous = True

    @property
    def plain(self) -> bool:
        """Whether every record is in every batch."""
        return bool(self.rate == 1)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """The swapped pair has the same losses where nothing is sampled."""
        return self.plain

    def _output(self, loss: Ball) -> Ball | None:
        """The output x of loss log Q(x)/P(x); None where even −∞ has more."""
        if self.plain:
            return self.variance * loss + exact(1) / 2
        excess = loss.exp() - (1 - self.rate)
        if excess > 0:
            return self.variance * (excess / self.rate).log() + exact(1) / 2
        return None

    def tails(self, order: str, loss: Ball) -> Masses:
        """Two normal tails, mixed; a loss that may or may not be possible gives all that may be."""
        if order == "remove":
            x = self._output(loss)
            if x is None:
                return Masses(*[self._undecided(loss, 1)] * 2)
            sign = 1
        else:
            x = self._output(-loss)
            if x is None:
                return Masses(*[self._undecided(-loss, 0)] * 2)
            sign = -1
        sigma = self.variance.sqrt()
        without, with_record = upper_tail(sign * x / sigma), upper_tail(sign * (x - 1) / sigma)
        mixed = (1 - self.rate) * without + self.rate * with_record
        return Masses(mixed, without) if order == "remove" else Masses(without, mixed)

    def _undecided(self, loss: Ball, beyond: int) -> Ball:
        """``beyond`` where no output has so small a loss, and anything where that is unknown."""
        return exact(beyond) if loss.exp() - (1 - self.rate) <= 0 else exact(0).union(exact(1))

    def largest_loss(self, order: str) -> Ball | None:
        """−log(1 − p) where a record is added to a sample."""
        return None if self.plain or order == "remove" else -(1 - self.rate).log()

    def span(self, order: str, bits: int) -> Span:
        """Losses at the outputs where the numerator's tails are that small."""
        sigma, reach = float(self.variance) ** 0.5, _quantile_bound(bits)
        # (a record that is seldom sampled has its own tail seldom)
        seldom = _quantile_bound(bits + math.log2(float(self.rate)))
        # the loss as a function of the output, by balls: exp overflows no ball
        loss = lambda x: float(
            (1 - self.rate + self.rate * ((exact(x) - 0.5) / self.variance).exp()).log()
        )
        if order == "remove":
            return Span(loss(-sigma * reach), loss(max(sigma * reach, 1.0 + sigma * seldom)))
        return Span(-loss(sigma * reach), -loss(-sigma * reach))


@dataclass(frozen=True)
class SampledLaplace(Use):
    """P = Lap(0, b) against Q = (1 − p)·Lap(0, b) + p·Lap(1, b), with L = 1/b.

    v, the loss without sampling, has density ¼·e^{−(v + L)/2} under P between atoms at ∓L.
    """

    largest: Ball
    rate: Ball

    continuous = True

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """The swapped pair has the same losses where nothing is sampled."""
        return bool(self.rate == 1)

    @property
    def lattice(self) -> Lattice | None:  # type: ignore[override]
        """Both atoms are multiples of L where nothing is sampled."""
        return Lattice(self.largest, exact(0)) if self.symmetric else None

    def _unsampled(self, loss: Ball) -> Ball:
        """v of an output whose loss is ``loss``, no further out than the atoms."""
        if self.symmetric:
            v = loss
        else:
            excess = (loss.exp() - (1 - self.rate)) / self.rate
            if excess > 0:
                v = excess.log()
            elif excess <= 0:
                return -self.largest
            else:
                top = excess.upper().log()
                return (-self.largest).union(top.max(-self.largest).min(self.largest))
        return v.max(-self.largest).min(self.largest)

    def _mixed(self, without: Ball, with_record: Ball, order: str) -> Masses:
        mixed = (1 - self.rate) * without + self.rate * with_record
        return Masses(mixed, without) if order == "remove" else Masses(without, mixed)

    def tails(self, order: str, loss: Ball) -> Masses:
        """Integrals of the density between the atoms."""
        big = self.largest
        v = self._unsampled(loss if order == "remove" else -loss)
        if order == "remove":
            without = ((-(big + v) / 2).exp() - (-big).exp()) / 2
            with_record = (1 - (-(big - v) / 2).exp()) / 2
        else:  # the outputs of smaller v
            without = (1 - (-(big + v) / 2).exp()) / 2
            with_record = ((-(big - v) / 2).exp() - (-big).exp()) / 2
        return self._mixed(without, with_record, order)

    def _loss(self, v: Ball) -> Ball:
        return v if self.symmetric else (1 - self.rate + self.rate * v.exp()).log()

    def atoms(self, order: str, bits: int) -> Sequence[Atom]:
        """The outputs below 0 and above 1."""
        sign = 1 if order == "remove" else -1
        half, rare = exact(1) / 2, (-self.largest).exp() / 2
        found = []
        for side, without, with_record in ((-1, half, rare), (1, rare, half)):
            place = sign * side if self.symmetric else None
            loss = sign * self._loss(side * self.largest)
            found.append(Atom(loss, self._mixed(without, with_record, order), place))
        return found

    def largest_loss(self, order: str) -> Ball | None:
        """That of the atom at the end."""
        first, second = (atom.loss for atom in self.atoms(order, 0))
        return first.max(second)

    def span(self, order: str, bits: int) -> Span:
        """From one atom to the other."""
        ends = sorted(float(a.loss) for a in self.atoms(order, bits))
        return Span(*ends)


@dataclass(frozen=True)
class Finite(Use):
    """Finitely many outputs, some of which only one of both laws may show.

    Attributes:
        outputs: masses under Q (numerator) and P (denominator).
        lattice: the lattice that all finite losses are on, if it is known (of a symmetric pair).
        places: their whole numbers there.
        symmetric: whether the swapped pair has the same losses.
    """

    outputs: tuple[Masses, ...]
    lattice: Lattice | None = None  # type: ignore[misc]
    places: tuple[int, ...] = ()
    symmetric: bool = False

    def _swapped(self, order: str) -> list[Masses]:
        if order == "remove" or self.symmetric:
            return list(self.outputs)
        return [Masses(each.denominator, each.numerator) for each in self.outputs]

    def atoms(self, order: str, bits: int) -> Sequence[Atom]:
        """Outputs that both laws show; of a symmetric pair the same for both orders."""
        found, places = [], iter(self.places)
        for masses in self._swapped(order):
            if masses.numerator > 0 and masses.denominator > 0:
                place = next(places, None)
                loss = (masses.numerator / masses.denominator).log()
                if place is not None and self.lattice is not None:
                    loss = self.lattice.shift + place * self.lattice.unit
                found.append(Atom(loss, masses, place))
        return found

    def infinite(self, order: str) -> Ball:
        """What only the numerator shows."""
        only = [m.numerator for m in self._swapped(order) if not m.denominator > 0]
        return sum(only, exact(0))

    def largest_loss(self, order: str) -> Ball | None:
        """That of an output, unless some are shown by the numerator alone."""
        losses = [atom.loss for atom in self.atoms(order, 0)]
        only = (m for m in self._swapped(order) if not m.denominator > 0)
        if not losses or any(not m.numerator == 0 for m in only):
            return None
        return functools.reduce(lambda a, b: a.max(b), losses)

    def span(self, order: str, bits: int) -> Span:
        """From the smallest loss to the largest, of outputs that are not too faint."""
        losses = [float(atom.loss) for atom in worth_a_place(self.atoms(order, bits), bits)]
        return Span(min(losses), max(losses)) if losses else Span(0.0, 0.0)


@dataclass(frozen=True)
class DiscreteNormal(Use):
    """Mass ∝ e^{−k²/(2σ²)} on the integers against the same moved by s."""

    sigma: Ball
    sensitivity: int

    symmetric = True

    @property
    def lattice(self) -> Lattice:  # type: ignore[override]
        """The loss at k is s·k/σ² − s²/(2σ²)."""
        unit = self.sensitivity / (self.sigma * self.sigma)
        return Lattice(unit, -unit * self.sensitivity / 2)

    def reach(self, bits: int) -> int:
        """Integers beyond which either side has a mass below 2^−bits (a geometric series)."""
        return int(float(self.sigma) * _quantile_bound(bits + 8)) + 2 * self.sensitivity + 4

    def atoms(self, order: str, bits: int) -> Sequence[Atom]:
        """The integers around both centres."""
        reach, s = self.reach(bits), self.sensitivity
        scale = 1 / (2 * self.sigma * self.sigma)
        weight = [(-scale * (k * k)).exp() for k in range(reach + s + 1)]
        total = self._total(bits)
        lattice, found = self.lattice, []
        for k in range(-reach, reach + s + 1):
            masses = Masses(weight[abs(k - s)] / total, weight[abs(k)] / total)
            found.append(Atom(lattice.shift + k * lattice.unit, masses, k))
        return found

    def _total(self, bits: int) -> Ball:
        """Σ e^{−k²/(2σ²)} over all integers; those beyond a reach are below a geometric series."""
        reach = self.reach(bits + 64)
        scale = 1 / (2 * self.sigma * self.sigma)
        weight = [(-scale * (k * k)).exp() for k in range(reach + 1)]
        ratio = (-scale * (2 * reach + 1)).exp()
        rest = 2 * weight[-1] * ratio / (1 - ratio)
        known = weight[0] + 2 * sum(weight[1:], exact(0))
        return known + exact(0).union(rest.upper())

    def span(self, order: str, bits: int) -> Span:
        """Losses at the last integers."""
        lattice, reach = self.lattice, self.reach(bits)
        low, high = (
            float(lattice.shift + k * lattice.unit) for k in (-reach, reach + self.sensitivity)
        )
        return Span(low, high)


def pure(epsilon: Ball, infinite: Ball, others: int = 0) -> Finite | None:
    """Losses −ε, 0 (of ``others`` outputs alike) and ε, and ``infinite`` at both infinities.

    None where nothing is revealed.
    """
    if epsilon == 0:
        if infinite == 0:
            return None
        both = Masses(1 - infinite, 1 - infinite)
        outputs = (Masses(exact(0), infinite), both, Masses(infinite, exact(0)))
        return Finite(outputs, None, (), True)
    growth = epsilon.exp()
    scale = (1 - infinite) / (growth + 1 + others)
    low, high = Masses(scale, growth * scale), Masses(growth * scale, scale)
    if others:
        lattice, places = Lattice(epsilon, exact(0)), (-1, 0, 1)
        finite: tuple[Masses, ...] = (low, Masses(others * scale, others * scale), high)
    else:
        lattice, places = Lattice(2 * epsilon, -epsilon), (0, 1)
        finite = (low, high)
    outputs = (Masses(exact(0), infinite), *finite, Masses(infinite, exact(0)))
    return Finite(outputs, lattice, places, True)
