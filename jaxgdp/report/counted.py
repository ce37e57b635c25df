"""What a report has counted beside the noise itself, and what it has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..measure import measure
from ..mechanisms import Composition, Mechanism, as_composition, compose
from ..mechanisms.runs import Runs
from ..numerics.rounding import rounded_outward
from ..run_settings import Run
from ..spec import Spec, from_dict
from . import words

if TYPE_CHECKING:
    from .content import Report

TITLES = ("counted", "law", "mu without it", "share of mu")
_TUNING = words.NOT_COUNTED[0]


class Counted(NamedTuple):
    """One thing that the numbers hold for.

    Attributes:
        what: in words.
        law: the numbers that it was counted with.
        without: upper side of μ of the same release without it; None where that is not computed.
        share: of μ, by the squares: 1 − (μ without it/μ)², from the upper sides.
    """

    what: str
    law: str
    without: float | None
    share: float | None


_WORDS = {
    "ThresholdedGaussian": "keys that only one record has",
    "ThresholdedLaplace": "keys that only one record has",
    "PartitionSelection": "which keys are published",
    "GaussianMixture": "records of one user",
    "ShuffledReports": "shuffling of randomised reports",
}


def tuned(mechanism: Any, runs: Runs, title: str | None = None) -> tuple[Composition, str | None]:
    """A search over runs of a mechanism, by the law of their number.

    Args:
        mechanism: of one run, as :func:`jaxgdp.report` takes it.
        runs: of ``jaxgdp.runs``.
        title: of the report.

    Raises:
        ValueError: no law of ``jaxgdp.runs``, or no mechanism.
    """
    from ..mechanisms import Selected

    if isinstance(mechanism, Spec):
        title = mechanism.title if title is None else title
        mechanism = mechanism.mechanism
    if isinstance(mechanism, Run) and len(mechanism.cases) > 1:
        raise ValueError("tuning must not be given with an unknown sampler: name the sampler")
    return as_composition(Selected(mechanism, runs)), title


def counted(report: Report) -> tuple[Counted, ...]:
    """What the numbers of a report hold for, beside the noise."""
    kinds = {entry.get("type") for entry in report.spec.get("mechanism", ())}
    if not kinds & {"Selected", *_WORDS}:
        return ()
    described = {key: report.spec[key] for key in ("rho", "mechanism") if key in report.spec}
    composition = from_dict(described).mechanism
    found = []
    for part in composition.mechanisms:
        name = type(part).__name__
        if name == "Selected":
            found.append(_selection(report, composition, part))
        elif name in _WORDS:
            found.append(Counted(_WORDS[name], _law(part), None, None))
    return tuple(found)


def _selection(report: Report, composition: Composition, part: Any) -> Counted:
    others = [
        (one, count)
        for one, count in zip(composition.mechanisms, composition.counts, strict=True)
        if one is not part
    ]
    own = zip(composition.mechanisms, composition.counts, strict=True)
    once = [(part.mechanism, count) for one, count in own if one is part]

    how = {"fpr_floor": report.fpr_floor, "adjacency": report.adjacency, "rtol": report.rtol}
    without = float(np.max(measure(compose(once + others), "mu", **how)["mu"].upper))
    whole = float(report.mu.upper)
    share = None if not np.isfinite(whole) or whole == 0.0 else 1.0 - min(without / whole, 1.0) ** 2
    return Counted("the choice of one run", str(part.runs), without, share)


def _law(part: Mechanism) -> str:
    fields = {name: getattr(part, name) for name in part.given_fields()}
    shown = [
        f"{name}={value if isinstance(value, str) else format(float(np.asarray(value)), '.6g')}"
        for name, value in fields.items()
        if np.ndim(value) == 0
    ]
    return ", ".join(shown)


def rows(report: Report) -> list[tuple[str, ...]]:
    """The table of what was counted: what, its law, μ without it, and its share of μ."""
    up = lambda value: rounded_outward(float(value), up=True, digits=6)
    return [
        (
            each.what,
            each.law,
            "-" if each.without is None else up(each.without),
            "-" if each.share is None else f"{100.0 * each.share:.3g} %",
        )
        for each in counted(report)
    ]


def not_counted(spec: dict[str, Any]) -> tuple[str, ...]:
    """The omissions of a report on a description: a search that was counted is none of them.

    Example:
        >>> len(not_counted({"mechanism": [{"type": "Gaussian", "noise_multiplier": 1.0}]}))
        4
    """
    kinds = {entry.get("type") for entry in spec.get("mechanism", ())}
    return tuple(
        text for text in words.NOT_COUNTED if not (text == _TUNING and "Selected" in kinds)
    )
