"""The entry point: a claim, and what exact arithmetic says about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import options, spec
from .._version import __version__
from ..bracket import Bracket
from . import balls
from .balls import Ball, Sides, dyadic, exact, precision
from .certificate import certificate, to_text
from .claims import Claim, claim
from .compose import MOST_POINTS, OutOfTime, TooLong, clock
from .describe import parts_of
from .gaussian_bounds import NotDecidable
from .refine import Finder, Look, Question

VERDICTS = ("proven", "refuted", "undecided")
_FIRST = 1e-2  # of the variance of the loss that discretisation may add at first
_POINTS = 1e5  # of one use at first, where it would have too many
_WORTH = 0.3  # of the variance of the last look, from which on there is another one
_FINER = (1.0 / 400.0, 0.25)  # how much less it may add from one look to the next
_MARGIN = 0.3  # of the distance to the claim's sides that a bracket aims to be as wide as
_MOST_BITS = 6  # looks with more bits where nothing is discretised
_MOST_LOOKS = 8  # at many claims
_COST = 0.6  # looks take this power longer with the variance that they may not add
_PARAMETER_BITS = 1600  # of the balls that hold parameters


@dataclass(frozen=True)
class Effort:
    """How finely a proof looked; looking as finely again gives the same bracket.

    Attributes:
        variance: what discretisation might add to the variance of the loss; 0 where there is none.
        finer: number of times that bits were added.
        bits: masses were multiples of 2^−bits; 0 where closed forms or lists of atoms sufficed.
        spacing: of the lattice at the end, in nats.
        points: of the composed law.
        smallest: a probability that was taken to matter; it decides on the bits.
    """

    variance: float
    finer: int
    smallest: float
    bits: int = 0
    spacing: float = 0.0
    points: int = 0


@dataclass(frozen=True)
class Proof:
    """What exact arithmetic says about a claim; from :func:`prove`.

    Attributes:
        verdict: "proven", "refuted" or "undecided".
        bracket: a bracket that is proven, whatever the verdict, rounded outward to doubles.
        claim: what was claimed.
        side: of a refuted claim, the side that is wrong: "lower" or "upper"; else "".
        excess: by how much at least; 0.0 where nothing is refuted.
        reason: why nothing was decided, and how much finer one would have to look; else "".
        mechanism: description of the mechanism, as in files (``jaxgdp.spec``).
        effort: how finely it was looked.
        versions: of what computed it.
        seconds: how long it computed.
    """

    verdict: str
    bracket: Bracket
    claim: Claim
    side: str
    excess: float
    reason: str
    mechanism: list
    effort: Effort
    versions: dict
    seconds: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict:
        """The certificate, ready for JSON."""
        return certificate(self)

    def to_json(self) -> str:
        """The certificate: strict JSON, with a digest."""
        return to_text(self.to_dict())

    def __str__(self) -> str:
        said = {
            "proven": "proven",
            "refuted": f"refuted: the {self.side} side is wrong by at least {self.excess:.3g}",
            "undecided": f"undecided: {self.reason}",
        }[self.verdict]
        low, high = self.bracket
        return f"{self.claim}: {said}; proven is [{low!r}, {high!r}]"


def _double(value: Ball, up: bool) -> float:
    """An exact end as a double, rounded outward."""
    if not value.is_finite():
        return math.inf if value > 0 else -math.inf
    true = dyadic(value)
    near = float(true)
    if up and near < true:
        return math.nextafter(near, math.inf)
    if not up and near > true:
        return math.nextafter(near, -math.inf)
    return near


def outward(sides: Sides, extent: tuple[float, float]) -> Bracket:
    """Two doubles with exact sides between them."""
    low, high = _double(sides.lower, False), _double(sides.upper, True)
    return Bracket(max(low, extent[0]), min(high, extent[1]))


def _clipped(sides: Sides, extent: tuple[float, float]) -> Sides:
    low = sides.lower if sides.lower > extent[0] else exact(extent[0])
    high = sides.upper if sides.upper < extent[1] else exact(extent[1])
    return Sides(low, high)


class _Judge:
    """Sides against a claim."""

    def __init__(self, made: Claim):
        self.claim = made

    def verdict(self, sides: Sides) -> tuple[str, str, float]:
        """(verdict, wrong side, excess)."""
        low, high = sides
        with precision(256):
            if low > self.claim.upper:
                return "refuted", "upper", _double((low - self.claim.upper).lower(), False)
            if high < self.claim.lower:
                return "refuted", "lower", _double((self.claim.lower - high).lower(), False)
        if low >= self.claim.lower and high <= self.claim.upper:
            return "proven", "", 0.0
        return "undecided", "", 0.0

    def finer(self, bracket: Bracket) -> float:
        """How much narrower the bracket would have to be, about: ≥ 1; ∞ where a side is none."""
        low, high = bracket
        width = high - low
        if not math.isfinite(width):
            return math.inf
        guess = low + width / 3.0  # (cells blur the side from above twice as much)
        sides = [s for s in (self.claim.lower, self.claim.upper) if math.isfinite(s)]
        distance = min((abs(guess - side) for side in sides), default=width)
        return max(1.0, width / max(distance, width * 1e-12, 1e-320))


def versions() -> dict:
    """Names and versions of what computes a proof."""
    flint = balls.flint
    return {
        "jaxgdp": __version__,
        "python-flint": flint.__version__,
        "flint": getattr(flint, "__FLINT_VERSION__", "unknown"),
    }


def prove(
    mechanism: Any,
    quantity: str,
    bracket: Any,
    max_seconds: float = 60,
    *,
    adjacency: str = options.ADJACENCY,
    **asked: float,
) -> Proof:
    """Prove, or refute, that a number lies in a bracket, in exact integers and ball arithmetic.

    Nothing of what finds brackets (``measure``, ``tradeoff``, reports) takes part, and no
    floating-point operation decides: masses of cells are balls, which are rounded to whole numbers
    on the safe side; powers of their polynomials are exact; readings are balls again.

    Args:
        mechanism: a scalar mechanism or composition of Gaussian, SubsampledGaussian, Deterministic,
            Laplace, SubsampledLaplace, DiscreteGaussian, DiscreteLaplace, RandomizedResponse,
            PureDP, ApproximateDP and FromPMFs.
        quantity: "delta", "epsilon", "tpr", "beta", "advantage", "bayes_risk", "mu",
            "approximate_mu" or "regret" (of the true μ at that floor).
        bracket: (lower, upper), such as ``measure`` answers; −∞ or ∞ for a side that claims
            nothing.
        max_seconds: how long to look finer and finer, in seconds of this thread's computing.
        adjacency: "add_remove", "add" or "remove".
        **asked: what the quantity is asked at, by its name, such as ``delta=1e-6``; the defaults
            are those of ``measure``.

    Returns:
        A :class:`Proof`. Its bracket is proven whatever the verdict is.

    Raises:
        ValueError: a mechanism, a quantity or an argument that cannot be proven; names it.
        ImportError: python-flint is not installed (the ``proof`` extra).

    Example:
        >>> import jaxgdp
        >>> run = jaxgdp.dpsgd(noise_multiplier=1.1, sampling_prob=0.05, num_steps=50)
        >>> prove(run, "epsilon", (2.1, 2.2), delta=1e-5).verdict
        'proven'
        >>> prove(run, "epsilon", (2.1, 2.17), delta=1e-5).verdict
        'refuted'

    Method: docs/method/proof.md#verdicts
    """
    balls.require()
    made = claim(quantity, bracket, adjacency, asked)
    if not max_seconds > 0:
        raise ValueError(f"max_seconds must be a number > 0, got {max_seconds!r}")
    with precision(_PARAMETER_BITS):
        parts = parts_of(mechanism)
    question = Question(made.quantity, made.argument, made.adjacency, made.smallest)
    finder = Finder(parts, question)
    entries = spec.to_dict(mechanism)["mechanism"]
    return _Search(finder, made, entries, clock(), float(max_seconds)).run()


def prove_all(mechanism: Any, claims: Sequence[Claim], max_seconds: float = 300) -> list[Proof]:
    """:func:`prove` of many claims about one mechanism, which is composed once for each look.

    Args:
        mechanism: as in :func:`prove`.
        claims: from ``jaxgdp.proof.claims.claim``.
        max_seconds: for all of them together.

    Raises:
        ValueError: the mechanism cannot be proven.
        ImportError: python-flint is not installed.
    """
    balls.require()
    with precision(_PARAMETER_BITS):
        parts = parts_of(mechanism)
    entries, started = spec.to_dict(mechanism)["mechanism"], clock()
    smallest = min(made.smallest for made in claims)
    shared: dict = {}
    searches = [
        _Search(
            Finder(parts, Question(c.quantity, c.argument, c.adjacency, smallest), shared),
            c, entries, started, float(max_seconds),
        )
        for c in claims
    ]  # fmt: skip
    found: dict[int, Proof] = {}
    share = _FIRST
    for finer in range(_MOST_LOOKS):
        begun = clock()
        for i, search in enumerate(searches):
            if i not in found or found[i].verdict == "undecided":
                variance = 0.0 if search.finder.exact else search.finder.variance * share
                found[i] = search.once(variance, finer, found.get(i))
        shared.clear()
        needed = [s.judge.finer(found[i].bracket) for i, s in enumerate(searches)
                  if found[i].verdict == "undecided"]  # fmt: skip
        if not needed:
            break
        now = clock()
        left, spent = started + max_seconds - now, now - begun
        allowed = (max(left, 1e-3) / max(spent, 1e-3) / 1.5) ** (-1.0 / _COST)
        if allowed > 0.5:
            break
        share *= max(min(max(_MARGIN / max(needed), _FINER[0]), _FINER[1]), allowed)
    return [found[i] for i in range(len(searches))]


class _Search:
    """Looks, finer and finer, until the claim is decided or the time is spent."""

    def __init__(
        self, finder: Finder, made: Claim, mechanism: list, started: float, max_seconds: float
    ):
        self.finder, self.claim, self.mechanism = finder, made, mechanism
        self.started, self.deadline = started, started + max_seconds
        self.judge, self.smallest = _Judge(made), finder.question.smallest

    def _left(self) -> float:
        return self.deadline - clock()

    def run(self) -> Proof:
        """All looks."""
        variance = 0.0 if self.finder.exact else _FIRST * self.finder.variance
        finer, last, reason = 0, None, ""
        while True:
            try:
                look = self.finder.look(variance, finer, self.deadline)
            except OutOfTime:
                reason = "the time was spent before a finer look was done"
                break
            except NotDecidable as error:
                shorter = self._shorter(error, variance, last[1] if last else None)
                if shorter is not None:
                    variance = shorter
                    continue
                reason = str(error)
                break
            # (where a closed form could not be read, a law was composed after all)
            variance = variance or look.variance
            last = (look, variance, finer)
            found = self.proof(*last)
            if found.verdict != "undecided":
                return found
            step = self._next(found, look, variance, finer)
            if isinstance(step, str):
                reason = step
                break
            variance, finer = step
        return self.proof(*(last or (None, variance, finer)), reason=reason)

    def _shorter(self, error: Exception, variance: float, last: float | None) -> float | None:
        """The variance of a look whose laws are not too long, if it is worth one after that of the
        last look.
        """
        if not isinstance(error, TooLong) or not variance > 0.0:
            return None
        if last is None:
            return variance * (error.points / _POINTS) ** 2
        longest = 1.1 * variance * (error.points / MOST_POINTS) ** 2
        return longest if longest < _WORTH * last else None

    def once(self, variance: float, finer: int, before: Proof | None) -> Proof:
        """One look; what was known before where none is possible any more."""
        try:
            look = self.finder.look(variance, finer, self.deadline)
        except (OutOfTime, NotDecidable) as error:
            last = before.effort.variance if before is not None else None
            shorter = self._shorter(error, variance, last)
            if shorter is not None:
                return self.once(shorter, finer, before)
            reason = str(error) or "the time was spent before a finer look was done"
            return before or self.proof(None, variance, finer, reason)
        found = self.proof(look, variance, finer)
        needed = self.judge.finer(found.bracket)
        return self.proof(
            look, variance, finer,
            f"a bracket narrower by a factor of about {needed:.2g} would decide it",
        )  # fmt: skip

    def _next(
        self, found: Proof, look: Look, variance: float, finer: int
    ) -> tuple[float, int] | str:
        """The next effort, or why there is none."""
        needed = self.judge.finer(found.bracket)
        if self.finder.exact:
            if finer >= _MOST_BITS:
                return "the number and a side of the claim cannot be told apart"
            return variance, finer + 1
        wanted = min(max(_MARGIN / needed, _FINER[0]), _FINER[1])
        allowed = (max(self._left(), 1e-3) / max(look.seconds, 1e-3) / 1.5) ** (-1.0 / _COST)
        if allowed > 0.5:
            return f"a bracket narrower by a factor of about {needed:.2g} would decide it"
        return variance * max(wanted, allowed), finer + 1

    def proof(self, look: Look | None, variance: float, finer: int, reason: str = "") -> Proof:
        """What one look says."""
        extent = self.claim.extent
        if look is None:
            sides, effort = Sides(*map(exact, extent)), Effort(0.0, 0, self.smallest)
        else:
            sides = _clipped(look.sides, extent)
            effort = Effort(variance, finer, self.smallest, look.bits, look.spacing, look.points)
        if sides.lower > sides.upper:
            raise ArithmeticError(
                "the sides of a proof exclude each other, which is an error of jaxgdp.proof"
            )
        verdict, side, excess = self.judge.verdict(sides)
        return Proof(
            verdict, outward(sides, extent), self.claim, side, excess,
            reason if verdict == "undecided" else "", self.mechanism, effort, versions(),
            clock() - self.started,
        )  # fmt: skip


def again(proof: Proof, mechanism: Any) -> Proof:
    """The last look of a proof, once more.

    Raises:
        ValueError: the mechanism cannot be proven.
    """
    balls.require()
    made = proof.claim
    with precision(_PARAMETER_BITS):
        parts = parts_of(mechanism)
    smallest = proof.effort.smallest
    finder = Finder(parts, Question(made.quantity, made.argument, made.adjacency, smallest))
    search = _Search(finder, made, proof.mechanism, clock(), math.inf)
    effort = proof.effort
    try:
        look = finder.look(effort.variance, effort.finer, math.inf)
    except NotDecidable:
        return search.proof(None, effort.variance, effort.finer, proof.reason)
    return search.proof(look, effort.variance, effort.finer, proof.reason)
