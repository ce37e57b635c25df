"""Several claims, attacks, thresholds or epochs at once: verdicts that are corrected, and say so.

Fixed sequence. Hypotheses are tested in an order that was fixed beforehand, each at the full level,
until one is not refuted. A true claim can be refuted wrongly only if it is the first true one in
the order, so that the chance of any wrong refutation is at most α.

Averages. The mean of the wealths of several audits of one claim (attacks, thresholds, epochs of one
run) has a mean of at most 1, however they depend on each other. Of several claims, each is refuted
if the mean over every set of claims that contains it reaches 1/α (closed testing): its adjusted
wealth is the least of (its own + the k smallest others)/(k + 1) over k (Vovk and Wang 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.shapes import ArrayLike
from .scores import confidence_level
from .sequential import Sequential
from .verdict import Verdict, verdict


@dataclass(frozen=True)
class Several:
    """Verdicts that hold together; ``print`` writes one line for each and one on the correction.

    Attributes:
        refuted: by name, whether it is refuted; those that were not tested are not.
        confidence: probability that no true claim is among the refuted ones.
        rule: how the verdicts were corrected.
        lines: by name, the verdict in words.
        verdicts: by name, each :class:`jaxgdp.audit.Verdict` or adjusted wealth.
    """

    refuted: dict[str, bool]
    confidence: float
    rule: str
    lines: dict[str, str]
    verdicts: dict[str, Any]

    def __str__(self) -> str:
        rows = [f"{name}: {line}" for name, line in self.lines.items()]
        level = f"{100.0 * self.confidence:g} %"
        return "\n".join([*rows, f"(corrected: {self.rule}; all verdicts together {level})"])


def _named(parts: Any, what: str) -> dict[str, Any]:
    found = (
        dict(parts) if isinstance(parts, Mapping) else {f"{i + 1}": p for i, p in enumerate(parts)}
    )
    if not found:
        raise ValueError(f"{what} must hold at least one, got none")
    return found


def fixed_sequence(
    experiments: Mapping[str, tuple[Any, ArrayLike, ArrayLike]] | Sequence[Any],
    confidence: float = 0.95,
    **options: Any,
) -> Several:
    """Claims tested one after the other, in an order fixed before the scores were seen.

    Args:
        experiments: by name or in a list, (claim, member scores, nonmember scores), in order.
        confidence: of all verdicts together, in [0.5, 1 - 1e-9].
        options: ``method``, ``threshold`` and ``seed`` of :func:`jaxgdp.audit.verdict`.

    Returns:
        :class:`Several`; after the first claim that is not refuted nothing is tested.

    Raises:
        ValueError: no experiment, or as for :func:`jaxgdp.audit.verdict`.

    Example:
        >>> import numpy as np
        >>> from scipy.special import ndtri
        >>> z = ndtri((np.arange(1000) + 0.5) / 1000)
        >>> found = fixed_sequence({"last step": (1.0, z + 2, z), "loss": (1.0, z, z)})
        >>> found.refuted
        {'last step': True, 'loss': False}
    """
    confidence = confidence_level("confidence", confidence)
    refuted, lines, verdicts = {}, {}, {}
    going = True
    for name, (claim, members, nonmembers) in _named(experiments, "experiments").items():
        if not going:
            refuted[name], verdicts[name] = False, None
            lines[name] = "not tested: a claim before it was not refuted"
            continue
        found: Verdict = verdict(claim, members, nonmembers, confidence, **options)
        refuted[name], lines[name], verdicts[name] = found.refuted, found.line, found
        going = found.refuted
    return Several(refuted, confidence, "fixed sequence", lines, verdicts)


def averaged(audits: Sequence[Sequential]) -> float:
    """The mean of the wealths of several audits of one claim: evidence against the claim.

    Args:
        audits: of one claim, updated to the same runs before one looks; they may share runs.

    Returns:
        A wealth: the claim is refuted at confidence c if it is at least 1/(1 − c), at any time.

    Raises:
        ValueError: audits of different claims, or none.

    Example:
        >>> averaged([Sequential(1.0), Sequential(1.0)]) <= 1.0
        True
    """
    audits = list(audits)
    texts = {audit.text for audit in audits}
    if len(texts) != 1:
        raise ValueError(
            f"audits must be of one claim, got {', '.join(sorted(texts)) or 'none'}: of several"
            " claims, jaxgdp.audit.simultaneous tells which are refuted"
        )
    return float(np.mean([float(audit.wealth) for audit in audits])) * (1.0 - 1e-12)


def simultaneous(
    audits: Mapping[str, Sequential] | Sequence[Sequential], confidence: float | None = None
) -> Several:
    """Which of several claims are refuted, whenever one looks, by averages of wealths.

    Args:
        audits: by name or in a list; the same runs may serve several.
        confidence: of all verdicts together; the largest of the audits' own if left out.

    Returns:
        :class:`Several`, with adjusted wealths for verdicts.

    Raises:
        ValueError: no audit, or a confidence out of range.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> scores = 2.0 + rng.standard_normal(200), rng.standard_normal(200)
        >>> audits = {f"mu = {mu}": Sequential(mu).update(*scores) for mu in (0.5, 3.0)}
        >>> simultaneous(audits).refuted
        {'mu = 0.5': True, 'mu = 3.0': False}
    """
    named = _named(audits, "audits")
    most = max(audit.confidence for audit in named.values())
    confidence = confidence_level("confidence", most if confidence is None else confidence)
    wealth = {name: float(audit.wealth) for name, audit in named.items()}
    adjusted = {}
    for name, own in wealth.items():
        others = np.sort([w for other, w in wealth.items() if other != name])
        sums = own + np.concatenate([[0.0], np.cumsum(others)])
        adjusted[name] = float(np.min(sums / (1.0 + np.arange(len(sums))))) * (1.0 - 1e-12)
    level = (1.0 + 1e-12) / (1.0 - confidence)
    refuted = {name: value >= level for name, value in adjusted.items()}
    lines = {
        name: f"{'A BUG IS PROVEN' if refuted[name] else 'consistent so far'}: {audit.text},"
        f" adjusted wealth {adjusted[name]:.4g} of {1.0 / (1.0 - confidence):.4g}"
        for name, audit in named.items()
    }
    return Several(refuted, confidence, "averages of wealths, closed testing", lines, adjusted)
