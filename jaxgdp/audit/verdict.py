"""A claim compared with attacks: consistent, or a bug is proven with this confidence."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.provenance import provenance
from ..numerics.shapes import ArrayLike
from ..numerics.validation import whole
from .canaries import count_right, guess
from .claims import Claim, as_claim
from .many_runs import THRESHOLD, Limits, lower_bounds
from .one_run import one_run_level, one_run_mu
from .scores import confidence_level, score_rows

_ROUNDING = 1.0 - 1e-12  # of rates that are compared
_CURVE = 100


@dataclass(frozen=True)
class Verdict:
    """An audit against a claim; build it with :func:`verdict` or :func:`one_run_verdict`.

    Attributes:
        claim: in words.
        refuted: whether the claim is refuted: with the confidence, no mechanism that satisfies it
            does what was observed.
        confidence: probability that a mechanism which satisfies the claim is not refuted.
        method: "bands", "split", "threshold" or "one run".
        mu_lower: lower bound on μ that the scores prove, with the same confidence.
        mu_claimed: bracket of the claim's own μ, or None.
        points: :class:`jaxgdp.audit.Limits` of the error rates, or None for one run.
        worst: position in ``points`` of the limit that lies furthest below the claim, or least far
            above it.
        details: other findings by name.
        stated: the :class:`jaxgdp.audit.Claim` itself.
    """

    claim: str
    refuted: bool
    confidence: float
    method: str
    mu_lower: float
    mu_claimed: Bracket | None
    points: Limits | None
    worst: int | None
    details: dict[str, Any]
    stated: Claim

    @property
    def line(self) -> str:
        """The verdict in one line."""
        level = f"{100.0 * self.confidence:g} %"
        shown = f"mu >= {self.mu_lower:.4g}"
        if self.mu_claimed is not None:
            most = float(self.mu_claimed.upper)
            shown += (
                f", claimed mu <= {most:.4g} at its FPR floor"
                if np.isfinite(most)
                else ", the claim has no finite mu at its FPR floor"
            )
        if not self.refuted:
            return (
                f"consistent: {self.claim} is not refuted at confidence {level} ({self.method};"
                f" {shown})"
            )
        if self.points is None or self.worst is None:
            why = (
                f"{self.details['num_correct']} of {self.details['num_guesses']} guesses right, p"
                f" <= {self.details['level']:.3g}"
            )
        else:
            a, b = self.points.fpr_limit[self.worst], self.points.fnr_limit[self.worst]
            why = (
                f"an attack has FPR <= {a:.4g} and FNR <= {b:.4g}, where the claim demands FNR >="
                f" {self.details['demanded']:.4g}"
            )
        return (
            f"A BUG IS PROVEN: {self.claim} is refuted at confidence {level} ({self.method}; {why};"
            f" {shown})"
        )

    @functools.cached_property
    def curve(self) -> tuple[np.ndarray, Bracket]:
        """(FPRs, bracket of the FNRs that the claim allows), for figures."""
        half = np.geomspace(1e-4, 0.5, _CURVE // 2)
        fprs = np.concatenate([[0.0], half, 1.0 - half[-2::-1], [1.0]])
        return fprs, self.stated.fnr(fprs)

    def __str__(self) -> str:
        return self.line

    def to_dict(self) -> dict:
        """Everything but the curve, ready for JSON."""
        points = None
        if self.points is not None:
            names = ("fpr_limit", "fnr_limit", "empirical_fpr", "empirical_fnr", "threshold")
            points = {name: [_plain(x) for x in getattr(self.points, name)] for name in names}
            points |= {"members": self.points.members, "nonmembers": self.points.nonmembers}
        mu = (
            None
            if self.mu_claimed is None
            else {k: _plain(float(getattr(self.mu_claimed, k))) for k in ("lower", "upper")}
        )
        return {
            **provenance(f"whether scores refute {self.claim}", self.stated.fpr_floor),
            "claim": self.claim,
            "refuted": self.refuted,
            "verdict": self.line,
            "confidence": self.confidence,
            "method": self.method,
            "mu_lower_bound": _plain(float(self.mu_lower)),
            "mu_claimed": mu,
            "points": points,
            "worst": self.worst,
            "details": {name: _plain(value) for name, value in self.details.items()},
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def _plain(value: Any):
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        value = float(value)
        return value if np.isfinite(value) else str(value)
    return value


def _of_several(confidence: float, number: int) -> float:
    """The confidence of each of so many verdicts that have this one together (Bonferroni)."""
    share = (1.0 - confidence_level("confidence", confidence)) / int(whole("num_verdicts", number))
    return confidence_level("confidence", 1.0 - share) if number != 1 else confidence


def verdict(
    claim: Any,
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    confidence: float = 0.95,
    method: str = "bands",
    threshold: ArrayLike = THRESHOLD,
    seed: int = 0,
    num_verdicts: int = 1,
) -> Verdict:
    """Is a claim consistent with scores of runs with and without a record?

    The two data sets must be neighbours in the relation that the claim is about, and each score
    come from a run of its own. The claim is refuted if, at some threshold, the upper limit of the
    FNR lies below what the claim demands at the upper limit of the FPR: b < f(a) ≤ f(α) contradicts
    β ≥ f(α), β ≤ b. For a certified curve the lower side stands for f, so a mechanism is refuted
    only where it does worse than the *upper* side of its privacy loss. As the true curve is convex,
    the limits that no line between two others undercuts are enough.

    Args:
        claim: a mechanism, a :class:`jaxgdp.TradeoffCurve`, a number μ, a pair (ε, δ), or a
            :class:`jaxgdp.spec.Spec`.
        member_scores: one score for each run with the record, larger the more likely, shape (n₁,).
        nonmember_scores: likewise without it, shape (n₀,).
        confidence: in [0.5, 1 - 1e-9].
        method: as for :func:`jaxgdp.audit.mu_lower_bound`.
        threshold: as for :func:`jaxgdp.audit.mu_lower_bound`.
        seed: as for :func:`jaxgdp.audit.mu_lower_bound`.
        num_verdicts: how many verdicts are drawn from these runs in all, k. Each is held to the
            confidence 1 − (1 − c)/k, so that all of them together have the confidence c
            (Bonferroni). Several scores, methods, thresholds or numbers of guesses are that many.
            Several claims against the same scores need it not, but may be counted, too: limits of
            error rates hold at once for all, and of one number of right guesses the claim that
            holds and is refuted first is refuted with no more than its own probability.

    Returns:
        A :class:`Verdict`; ``print`` writes one line.

    Raises:
        ValueError: scores or numbers that are refused, or no claim.

    Example:
        >>> import numpy as np
        >>> from scipy.special import ndtri
        >>> z = ndtri((np.arange(1000) + 0.5) / 1000)
        >>> print(verdict(1.0, z + 1.0, z))
        consistent: 1-GDP is not refuted at confidence 95 % (bands; mu >= 0.7293, claimed mu ...
        >>> verdict(1.0, z + 2.0, z).refuted
        True
    """
    stated = as_claim(claim)
    confidence = _of_several(confidence, num_verdicts)
    points = lower_bounds(member_scores, nonmember_scores, confidence, method, threshold, seed)
    demanded = np.asarray(stated.fnr(points.fpr_limit).lower, float)
    margin = demanded * _ROUNDING - points.fnr_limit
    worst = int(np.argmax(margin))
    return Verdict(
        stated.text,
        bool(margin[worst] > 0.0),
        points.confidence,
        method,
        points.mu,
        stated.mu,
        points,
        worst,
        {
            "demanded": float(demanded[worst]),
            "members": points.members,
            "nonmembers": points.nonmembers,
        },
        stated,
    )


def one_run_verdict(
    claim: Any,
    scores: ArrayLike,
    included: ArrayLike,
    num_guesses: int,
    confidence: float = 0.95,
    num_verdicts: int = 1,
) -> Verdict:
    """Is a claim consistent with one run of many canaries, each put in by a fair coin?

    Args:
        claim: as for :func:`verdict`.
        scores: of every canary, shape (m,), larger the more likely in.
        included: which were put in, shape (m,).
        num_guesses: r, fixed before looking: the surest ones are made (:func:`jaxgdp.audit.guess`).
        confidence: in [0.5, 1 - 1e-9].
        num_verdicts: as for :func:`verdict`.

    Raises:
        ValueError: scores or numbers that are refused, or no claim.

    Example:
        >>> import numpy as np
        >>> coins = np.random.default_rng(0).random(1000) < 0.5
        >>> one_run_verdict(1.0, coins + 0.0, coins, 500).refuted
        True
    """
    stated, confidence = as_claim(claim), _of_several(confidence, num_verdicts)
    found = score_rows("scores", scores)
    included = np.asarray(included)
    if included.shape != found.shape or not np.isin(included, (0, 1)).all():
        raise ValueError(
            f"included must hold a truth value for each of the {found.shape} scores, got"
            f" {included.shape}"
        )
    right = count_right(guess(found, num_guesses), included)
    level = one_run_level(stated, len(found), num_guesses, right)
    mu = one_run_mu(len(found), num_guesses, right, confidence)
    details = {
        "num_canaries": len(found),
        "num_guesses": int(num_guesses),
        "num_correct": right,
        "level": level,
    }
    refuted = level <= 1.0 - confidence
    return Verdict(
        stated.text, refuted, confidence, "one run", mu, stated.mu, None, None, details, stated
    )
