"""``jaxgdp.report``: from a mechanism, a description or a run to its report."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from .. import spec
from .._version import __version__
from ..adjacency import Adjacency
from ..bracket import STATUS, Bracket, Status
from ..bridge.identify import identify
from ..deprecation import renamed_arguments
from ..measure import measure
from ..mechanisms import Composition, Mechanism, as_composition
from ..mechanisms.description import describe
from ..numerics.provenance import today
from ..numerics.shapes import ArrayLike
from ..numerics.validation import floor_rate, open_unit, relative_width
from ..progress import show_progress
from ..quantities.registry import REGISTRY, named
from ..quantities.table import documented
from ..runs import Run
from ..spec import SETTINGS, SEVERAL, Spec
from ..tradeoff import ContradictionWarning, TradeoffCurve, tradeoff
from .content import CURVE_FPRS, DEFAULTS, TIER_LIMIT, Alternative, Report
from .parts import parts_of, total_rho
from .statements import usual_delta


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


@renamed_arguments(deltas="delta", fprs="fpr")
@show_progress("measuring")
@documented
def report(
    mechanism: Mechanism | Composition | Run | Spec,
    *,
    title: str | None = None,
    rtol: float | None = None,
    fpr_floor: float | None = None,
    adjacency: str | None = None,
    delta: ArrayLike | None = None,
    fpr: ArrayLike | None = None,
    approximation: float | None = None,
) -> Report:
    """Everything worth publishing about one mechanism, in the two tiers of Gomez 2025.

    ε, μ, the advantage and the regret are those of :func:`jaxgdp.measure`, each asked on its own
    (``jaxgdp.epsilon(run, delta=…)`` and its kin). Rates, and all numbers of a mechanism whose two
    sides cannot meet, are read off one curve (:func:`jaxgdp.tradeoff`).

    Args:
        mechanism: a scalar mechanism or composition, a run (:func:`jaxgdp.run`), or a
            :class:`jaxgdp.spec.Spec`, whose settings count where no other is given. Of a run with
            Poisson batches the report also states what holds if the data were shuffled; of an
            unknown sampler the numbers are of the less private one.
        title: what it is.
        {rtol, fpr_floor, adjacency}
        delta: δ at which to give ε, one or several in (0, 1); default 1e-3, 1e-5, 1e-6, 1e-10.
        fpr: FPR at which to give the TPR, one or several in (0, 1); default 1e-10, 1e-9, …, 0.1.
        {approximation}

    Returns:
        A :class:`Report`; of every bracket but those of ``fnrs``, report the upper side.

    Raises:
        ValueError: an argument is out of range, or the mechanism is batched (before tracing).

    Example:
        >>> import jaxgdp
        >>> jaxgdp.report(jaxgdp.Gaussian(2.0)).tier
        'I'
    """
    given = {
        "rtol": rtol,
        "fpr_floor": fpr_floor,
        "adjacency": adjacency,
        "delta": delta,
        "fpr": fpr,
        "approximation": approximation,
    }
    settled = settle(mechanism, given, title)
    return _filled(settled, whole_curve(settled))


def _filled(settled: Settled, curve: TradeoffCurve) -> Report:
    """The report of a settled question."""
    settings, best_fpr = settled.settings, float(curve.advantage_fpr())
    answers = _Answers(settled, curve)
    regret, verdict = _scalar(answers("regret")), _verdict(curve, answers)
    tier = "I" if regret.upper < TIER_LIMIT else "II"
    tpr_fprs, curve_fprs = (*settings["fpr"], best_fpr), (*CURVE_FPRS, best_fpr)
    fnrs = _paired(curve_fprs, answers("beta", np.array(curve_fprs))) if tier == "II" else ()
    epsilons = _paired(settings["delta"], answers("epsilon", np.array(settings["delta"])))
    return Report(
        title=settled.words.get("title", ""),
        neighbours=settled.words.get("neighbours", ""),
        mechanism=describe(settled.composition),
        adjacency=settings["adjacency"],
        tier=tier,
        fpr_floor=settings["fpr_floor"],
        approximation=settings["approximation"],
        regret=regret,
        mu=_scalar(answers("mu")),
        approximate_mu=_scalar(answers("approximate_mu", settings["approximation"])),
        epsilons=epsilons,
        advantage=_scalar(answers("advantage")),
        tprs=_paired(tpr_fprs, answers("tpr", np.array(tpr_fprs))),
        fnrs=fnrs,
        others=tuple(_others(answers)),
        advantage_fpr=best_fpr,
        tail_mu=float(curve.tail_mu),
        rtol=settings["rtol"],
        spec=settled.content,
        version=__version__,
        date=today(),
        software=_software(),
        _curve=curve,
        is_gdp=None if verdict is None else verdict.is_gdp,
        same_mu=None if verdict is None else verdict.fpr_floor == 0.0,
        gdp_reason="" if verdict is None else verdict.reason,
        sampler=settled.sampler,
        alternatives=tuple(_alternatives(settled, usual_delta(settings["delta"]))),
        rho=total_rho(settled.composition),
        parts=parts_of(settled.described, settings),
        # (of all that has been asked above)
        status=_status(answers.codes, settled.composition),
    )


class _Answers:
    """Brackets by the name of a quantity, and the worst status of each.

    Attributes:
        codes: quantity → worst code.
    """

    def __init__(self, settled: Settled, curve: TradeoffCurve):
        self.settled, self.curve = settled, curve
        self.codes: dict[str, int] = {}
        # (where both sides cannot meet, asking again for each number takes long and finds no more)
        self.tight = all(part.tight for part in settled.composition.mechanisms)

    def __call__(self, name: str, argument: ArrayLike | None = None) -> Bracket:
        if named(name).own_argument == "fpr" or not self.tight:
            bracket, status = self.curve.answer(name, argument)
        else:
            bracket, status = measured(self.settled, self.settled.composition, name, argument)
        self.codes[name] = max(self.codes.get(name, 0), int(np.max(status)))
        return bracket


class _Measured(NamedTuple):
    bracket: Bracket
    status: Any


def measured(
    settled: Settled, mechanism: Composition, name: str, argument: ArrayLike | None = None
) -> _Measured:
    """One quantity, asked on its own as by ``jaxgdp.epsilon`` and its kin."""
    at = {} if argument is None else {named(name).own_argument or "": argument}
    how = {key: settled.settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    found = measure(mechanism, name, **how, **at)
    return _Measured(found[name], found.status[name])


def _verdict(curve: TradeoffCurve, answers: _Answers) -> Any:
    """Whether some μ holds at every rate; None where the sides of the curve contradict."""
    with warnings.catch_warnings():
        # (the status tells a contradiction; nothing is built on one)
        warnings.simplefilter("error", ContradictionWarning)
        try:
            return identify(curve)
        except ContradictionWarning:
            answers.codes["mu"] = int(Status.CONTRADICTION)
            return None


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


def _alternatives(settled: Settled, delta: float) -> Iterator[Alternative]:
    """The other samplers that the run may have had: shuffled data, where Poisson is claimed."""
    run = settled.run
    if run is None:
        return
    others = [name for name in run.cases if name != settled.sampler]
    if settled.sampler in ("poisson", "opacus"):
        others = ["shuffled"]
    for name in others:
        try:
            own = run.if_drawn(name)
            at = {q: delta if named(q).own_argument else None for q in Alternative.quantities()}
            sides = {q: measured(settled, own, q, where).bracket for q, where in at.items()}
        except ValueError:  # (no bracket is known for this relation, or for several records)
            continue
        yield Alternative(name, delta, **{q: _scalar(bracket) for q, bracket in sides.items()})


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
    how = {key: settled.settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    return tradeoff(settled.composition, **how)


def curve_again(content: dict[str, Any]) -> TradeoffCurve:
    """The curve behind a stored report."""
    described = spec.from_dict(content, "spec of the report")
    return whole_curve(settle(described, dict.fromkeys(SETTINGS)))


def _software() -> dict[str, str]:
    versions = {name: metadata.version(name) for name in ("jax", "numpy", "scipy")}
    return {"jaxgdp": __version__, **versions, "python": platform.python_version()}


def _others(ask: Callable[..., Bracket]) -> Iterator[tuple[str, float | None, Bracket]]:
    """(name, argument, bracket) of every quantity that wants a row and has no field."""
    own = {each.metadata["quantity"] for each in Report.certified_fields()}
    for quantity in REGISTRY.values():
        if quantity.name in own or quantity.reported == ():
            continue
        if quantity.own_argument is None:
            yield quantity.name, None, _scalar(ask(quantity.name))
            continue
        for argument in (quantity.default,) if quantity.reported is None else quantity.reported:
            if argument is not None:
                yield quantity.name, float(argument), _scalar(ask(quantity.name, argument))


def _status(codes: dict[str, int], composition: Composition) -> str:
    """The faults, worst first, with their quantities and reasons; "ok" where there are none."""
    wrong = sorted({code for code in codes.values() if code}, reverse=True)
    names = lambda code: ", ".join(name for name, mine in codes.items() if mine == code)
    told = (f"{STATUS[code]} ({names(code)})" for code in wrong)
    kinds = {type(part).__name__: part.why_not_tight for part in composition.mechanisms}
    why = (f"{kind}: {text}" for kind, text in kinds.items() if text and wrong)
    return "; ".join([*told, *why]) or STATUS[0]


def _scalar(bracket: Bracket) -> Bracket:
    return Bracket(np.float64(bracket.lower), np.float64(bracket.upper))


def _paired(arguments: Iterable[float], bracket: Bracket) -> tuple[tuple[float, Bracket], ...]:
    sides = zip(arguments, bracket.lower, bracket.upper, strict=True)
    return tuple((float(a), Bracket(np.float64(low), np.float64(high))) for a, low, high in sides)
