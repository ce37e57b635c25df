"""The question of a report, checked, and how its numbers are asked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import options, spec
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..measure import measure
from ..mechanisms import Composition, Mechanism, as_composition
from ..numerics.shapes import ArrayLike
from ..numerics.validation import floor_rate, open_unit, relative_width
from ..quantities.registry import named
from ..run_settings import Run
from ..spec import SETTINGS, SEVERAL, Spec
from ..tradeoff import TradeoffCurve, tradeoff
from .statements import usual_delta

DEFAULTS = {
    "adjacency": options.ADJACENCY,
    "fpr_floor": options.FPR_FLOOR,
    "rtol": options.RTOL,
    "delta": options.REPORT_DELTAS,
    "fpr": options.REPORT_FPRS,
    "approximation": options.APPROXIMATION,
}


class Settled(NamedTuple):
    """A question, checked: what was not given is as the description has it, or default.

    Attributes:
        composition: the mechanism that the numbers are of.
        words: title and neighbours, where there are any.
        settings: every one of ``spec.SETTINGS``.
        content: the description from which the report can be computed again.
        described: what was described, if it was.
        run: the run, if it is one.
        sampler: by which its batches are supposed to be drawn, or "".
    """

    composition: Composition
    words: dict[str, str]
    settings: dict[str, Any]
    content: dict[str, Any]
    described: Spec | None
    run: Run | None
    sampler: str


class _Measured(NamedTuple):
    bracket: Bracket
    status: Any


def measured(
    settled: Settled, mechanism: Composition, name: str, argument: ArrayLike | None = None
) -> _Measured:
    """One quantity, asked on its own as by ``jaxgdp.epsilon`` and its kin."""
    at: dict[str, Any] = {} if argument is None else {named(name).own_argument or "": argument}
    how: dict[str, Any] = {key: settled.settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    found = measure(mechanism, name, **how, **at)
    return _Measured(found[name], found.status[name])


def settle(
    mechanism: Mechanism | Composition | Run | Spec, given: dict[str, Any], title: str | None = None
) -> Settled:
    """The checked question of a report; see :func:`report`."""
    words, described, stated, place = {}, None, {}, ""
    run = mechanism if isinstance(mechanism, Run) else None
    if isinstance(mechanism, Spec):
        described, run, place = mechanism, mechanism.run, f"{mechanism.source}: "
        words = {"title": mechanism.title, "neighbours": mechanism.neighbours}
        words = {key: value for key, value in words.items() if value}
        stated, mechanism = mechanism.settings, mechanism.mechanism
    words |= {} if title is None else {"title": title}
    chosen = {
        key: given[key] if given[key] is not None else stated.get(key, DEFAULTS[key])
        for key in SETTINGS
    }
    settings = _checked_settings(chosen, "" if given["adjacency"] is not None else place)
    first = as_composition(mechanism) if run is None else next(iter(run.cases.values()))
    if first.shape != ():
        raise ValueError(
            f"{place}mechanism must be scalar (shape ()) for a report, got shape {first.shape}"
        )
    changed = {key: value for key, value in settings.items() if _differs(value, DEFAULTS[key])}
    settled = Settled(first, words, settings, {}, described, run, "" if run is None else "poisson")
    if run is not None:
        settled = _of_run(settled)
    return settled._replace(content=_content(settled, changed))


def _checked_settings(settings: dict[str, Any], place: str) -> dict[str, Any]:
    """Settings in range, as plain numbers and lists."""
    found = dict(settings)
    found["adjacency"] = Adjacency.checked(settings["adjacency"], f"{place}adjacency").value
    found["rtol"] = float(relative_width("rtol", settings["rtol"]))
    found["fpr_floor"] = float(floor_rate("fpr_floor", settings["fpr_floor"]))
    found["approximation"] = float(open_unit("approximation", settings["approximation"]))
    for name in SEVERAL:
        found[name] = np.atleast_1d(open_unit(name, settings[name])).reshape(-1).tolist()
    return found


def _of_run(settled: Settled) -> Settled:
    """The sampler that the numbers are of: of several, the one with the largest upper ε."""
    assert settled.run is not None
    cases = settled.run.cases
    if len(cases) > 1:
        at = usual_delta(settled.settings["delta"])
        upper = {
            name: float(measured(settled, own, "epsilon", at).bracket.upper)
            for name, own in cases.items()
        }
        chosen = max(upper, key=lambda name: upper[name])
    else:
        chosen = next(iter(cases))
    return settled._replace(composition=cases[chosen], sampler=chosen)


def _content(settled: Settled, changed: dict[str, Any]) -> dict[str, Any]:
    """The description from which a report can be computed again."""
    described, words = settled.described, settled.words
    if settled.run is not None:
        return words | changed | {"run": settled.run.given()}
    if described is not None and "deployment" in described.content:
        if Adjacency(settled.settings["adjacency"]).replaces:
            raise ValueError(
                f"{described.source}: adjacency of a deployment is part of it, got 'replace_one'"
            )
        kept = ("title", "neighbours", "deployment")
        own = {key: described.content[key] for key in kept if key in described.content}
        title = {} if words["title"] == described.title else {"title": words["title"]}
        return own | title | changed
    content = spec.to_dict(settled.composition, **words, **changed)
    if described is not None and any(p.name or p.share or p.rho for p in described.parts):
        content["mechanism"] = described.content["mechanism"]
        if "rho" in described.content:
            content = {"rho": described.content["rho"], **content}
    return content


def _differs(value: Any, default: Any) -> bool:
    return tuple(value) != default if isinstance(default, tuple) else value != default


def whole_curve(settled: Settled) -> TradeoffCurve:
    """The curve of a settled question."""
    how: dict[str, Any] = {key: settled.settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    return tradeoff(settled.composition, **how)


def curve_again(content: dict[str, Any]) -> TradeoffCurve:
    """The curve behind a stored report."""
    described = spec.from_dict(content, "spec of the report")
    return whole_curve(settle(described, dict.fromkeys(SETTINGS)))
