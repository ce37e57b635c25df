"""``jaxgdp.report``: from a mechanism, a description or a run to its report."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any

import numpy as np

from .._version import __version__
from ..bracket import STATUS, Bracket, Status
from ..bridge.identify import identify
from ..deprecation import renamed_arguments
from ..mechanisms import Composition, Mechanism
from ..mechanisms.description import describe
from ..mechanisms.runs import Runs
from ..numerics.provenance import today
from ..numerics.shapes import ArrayLike
from ..progress import show_progress
from ..quantities.registry import REGISTRY, named
from ..quantities.table import documented
from ..run_settings import Run
from ..spec import Spec
from ..tradeoff import ContradictionWarning, TradeoffCurve
from . import counted
from .alternative import Alternative
from .content import CURVE_FPRS, TIER_LIMIT, Report
from .parts import parts_of, total_rho
from .settled import Settled, measured, settle, whole_curve
from .statements import usual_delta


@renamed_arguments(deltas="delta", fprs="fpr")
@show_progress("measuring")
@documented
def report(
    mechanism: Mechanism | Composition | Run | Spec,
    *,
    title: str | None = None,
    tuning: Runs | None = None,
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
        tuning: the law of the number of runs of which the best was published, of ``jaxgdp.runs``:
            the numbers are then those of the whole search (:class:`jaxgdp.Selected`).
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
    if tuning is not None:
        mechanism, title = counted.tuned(mechanism, tuning, title)
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
    mu = _scalar(answers("mu"))
    return Report(
        title=settled.words.get("title", ""),
        neighbours=settled.words.get("neighbours", ""),
        mechanism=describe(settled.composition),
        adjacency=settings["adjacency"],
        tier=tier,
        fpr_floor=settings["fpr_floor"],
        approximation=settings["approximation"],
        regret=regret,
        mu=mu,
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
        counted=counted.counted(settled, float(mu.upper)),
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
