"""What a report has counted beside the noise itself, and what it has not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..measure import measure
from ..mechanisms import Composition, Mechanism, as_composition, compose
from ..mechanisms.description import describe
from ..mechanisms.runs import Runs
from ..numerics.rounding import rounded_outward
from ..run_settings import Run
from ..run_settings import run as run_of
from ..spec import Spec
from . import words

if TYPE_CHECKING:
    from .content import Report
    from .settled import Settled

TITLES = ("counted", "law", "mu without it", "share of mu")
EXPLAINED = (
    "μ without it: the upper side of μ of the same release without what the row counts; share of μ:"
    " 1 − (μ without it/μ)², by squares, as they add up for Gaussian noise; shares of several rows"
    " need not"
)
_TUNING, _, _RECORDS, _ = words.NOT_COUNTED


class Counted(NamedTuple):
    """One thing that the numbers hold for.

    Attributes:
        what: in words.
        law: the numbers that it was counted with.
        without: upper side of μ of the same release without it; None where that is not known.
        share: of μ, by the squares: 1 − (μ without it/μ)², from the upper sides; None where one of
            them is not known or μ is infinite.
    """

    what: str
    law: str
    without: float | None
    share: float | None


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


def counted(settled: Settled, mu: float) -> tuple[Counted, ...]:
    """What the numbers of a report hold for, beside the noise.

    Args:
        settled: the question of the report.
        mu: upper side of μ of the whole.
    """
    how = {key: settled.settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    whole = settled.composition
    uses = list(zip(whole.mechanisms, whole.counts, strict=True))
    found = []
    if settled.run is not None:
        if settled.run.records_per_user > 1:
            law = f"records_per_user={float(settled.run.records_per_user):g}"
            given: dict[str, Any] = settled.run.given() | {"records_per_user": 1}
            single = run_of(**given)
            rest = [(single.if_drawn(settled.sampler), 1)]
            found.append(_row("all records of a user", law, rest, how, mu))
        uses = []
    for i, (part, count) in enumerate(uses):
        if not part.beside_noise:
            continue
        alone = part.noise_alone()
        rest = None
        if alone is not None:
            rest = uses[:i] + [(each, n * count) for each, n in alone] + uses[i + 1 :]
        found.append(_row(part.beside_noise, _law(part), rest, how, mu))
    return tuple(found)


def _row(
    what: str, law: str, rest: list[tuple[Any, Any]] | None, how: dict[str, Any], mu: float
) -> Counted:
    without = None
    if rest is not None:
        try:
            own = measure(compose(rest), "mu", **how)["mu"].upper if rest else 0.0
            without = float(np.max(own))
        except ValueError:  # (no pair of it is known for this relation)
            pass
    share = None
    if without is not None and not np.isnan(without) and np.isfinite(mu) and mu > 0.0:
        share = 1.0 - min(without / mu, 1.0) ** 2
    return Counted(what, law, None if without is None or np.isnan(without) else without, share)


def _law(part: Mechanism) -> str:
    own = getattr(part, "runs", None)
    if isinstance(own, Runs):
        return str(own)
    text = describe(as_composition(part))
    return text[text.index("(") + 1 : text.rindex(")")]


def rows(found: Iterable[Counted]) -> list[tuple[str, ...]]:
    """The table of what was counted: what, its law, μ without it, and its share of μ."""
    up = lambda value: rounded_outward(float(value), up=True, digits=6)
    return [
        (
            each.what,
            each.law,
            "-" if each.without is None else up(each.without),
            "-" if each.share is None else f"{100.0 * each.share:.3g} %",
        )
        for each in found
    ]


def counted_sentence(report: Report) -> str:
    """What was counted, in one line, with the shares of μ that are known; "" where nothing."""
    told = []
    for what, law, _, share in rows(report.counted):
        told.append(f"{what} ({law}{'' if share == '-' else f'; {share} of μ'})")
    return "; ".join(told)


def not_counted(report: Report) -> tuple[str, ...]:
    """The omissions of a report: what was counted is none of them.

    Example:
        >>> import jaxgdp
        >>> len(not_counted(jaxgdp.report(jaxgdp.Gaussian(1.0))))
        4
    """
    kinds = {entry.get("type") for entry in report.spec.get("mechanism", ())}
    left_out = {_TUNING} if "Selected" in kinds else set()
    if report.spec.get("run", {}).get("records_per_user", 1) > 1:
        left_out.add(_RECORDS)
    return tuple(text for text in words.NOT_COUNTED if text not in left_out)
