"""A report in a sentence, a paragraph, a model card's block or LaTeX; numbers rounded outward."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import options
from ..adjacency import Adjacency
from ..numerics.rounding import rounded_outward
from ..numerics.validation import one_of
from ..run_settings import SAMPLINGS, Run
from ..spec import from_dict
from . import strength, words
from .counted import counted_sentence, not_counted
from .words import plain

if TYPE_CHECKING:
    from .content import Alternative, Report

_DIGITS, _FEWER = 3, 2  # of a statement's numbers; of those of other samplers
_LOOSE = 1.05  # how far apart both sides of ε are before a statement gives both
_MOST_WORDS = 120  # letters of a mechanism that a statement repeats
_UNITS = {
    Adjacency.ADD_REMOVE: "one record added or removed",
    Adjacency.ADD: "one record added",
    Adjacency.REMOVE: "one record removed",
    Adjacency.REPLACE_ONE: "one record replaced by another",
}


def usual_delta(deltas: Iterable[float]) -> float:
    """The δ of a statement where none is named: 1e-5, or the first."""
    known = list(deltas)
    return options.DELTA if options.DELTA in known else known[0]


def statement(report: Report, style: str = "sentence", delta: float | None = None) -> str:
    """The statement of a report; see :meth:`jaxgdp.Report.statement`."""
    one_of("style", style, tuple(STYLES))
    known = tuple(each for each, _ in report.epsilons)
    at = usual_delta(known) if delta is None else float(one_of("delta", delta, known))
    if (caution := caution_of(report, at)) is not None:
        warnings.warn(caution, UserWarning, stacklevel=3)
    return STYLES[style](report, at)


def caution_of(report: Report, delta: float) -> str | None:
    """Why δ is too large for the number of records, where that is known; else None."""
    run = run_of(report)
    if run is None or delta * run.dataset_size < 1.0:
        return None
    return (
        f"delta {plain(delta)} is not below 1/{_count(run.dataset_size)}, one over the number of"
        " records: such a guarantee allows a mechanism that publishes a record outright. State"
        " epsilon at a smaller delta"
    )


def run_of(report: Report) -> Run | None:
    """The run of a report, or None where it is of something else."""
    return from_dict(report.spec).run if "run" in report.spec else None


def _count(value: Any) -> str:
    return f"{float(value):,.0f}"


def _upper(value: Any, digits: int = _DIGITS) -> str:
    return rounded_outward(float(value), up=True, digits=digits)


def lead(report: Report) -> str:
    """What was done, in one sentence."""
    run = run_of(report)
    if run is not None:
        at = run.counts(report.sampler)
        batch = "batch" if report.sampler in ("shuffled", "deterministic") else "expected batch"
        size = float(at.rate) * run.dataset_size if report.sampler == "opacus" else run.batch_size
        title = f"{report.title}: trained" if report.title else "Trained"
        return (
            f"{title} with DP-SGD (noise multiplier {run.noise_multiplier:g}, {batch}"
            f" {rounded_outward(float(size), up=True, digits=6)} of {_count(run.dataset_size)},"
            f" {_count(at.steps)} steps)."
        )
    entries = report.spec.get("mechanism", [])
    kind = entries[0].get("type") if len(entries) == 1 else None
    title = f"{report.title}: " if report.title else ""
    if kind == "SubsampledGaussian":
        only, (t, rest) = entries[0], (("T", "") if not title else ("t", title))
        return (
            f"{rest}{t}rained with DP-SGD (noise multiplier {only['noise_multiplier']:g}, sampling"
            f" rate {only['sampling_prob']:.6g}, {_count(only['count'])} steps)."
        )
    if kind == "Gaussian" and not title:
        only = entries[0]
        uses = "" if only["count"] == 1 else f", {_count(only['count'])} uses"
        return (
            f"Released with Gaussian noise (noise multiplier {only['noise_multiplier']:g}{uses})."
        )
    if title:
        return f"{title[:-2]}."
    if len(report.mechanism) <= _MOST_WORDS:
        return f"Released with {report.mechanism}."
    composition = from_dict(report.spec).mechanism
    kinds = dict.fromkeys(type(part).__name__ for part in composition.mechanisms)
    uses = sum(float(count) for count in composition.counts)
    return f"Released with {_count(uses)} uses of {' and '.join(kinds)}."


def condition(report: Report) -> str:
    """What the numbers suppose of the batches, or ""."""
    if report.sampler:
        return SAMPLINGS[report.sampler].condition
    poisson = words.sampling(report.spec).startswith("Poisson")
    return SAMPLINGS["poisson"].condition if poisson else ""


def unit(report: Report) -> str:
    """Whom the numbers protect, in a few words."""
    if report.neighbours:
        return report.neighbours
    run, relation = run_of(report), _UNITS[Adjacency(report.adjacency)]
    if words.replaced(report.spec):
        return _UNITS[Adjacency.REPLACE_ONE]
    if run is not None and run.records_per_user > 1:
        of_user = f"one user with up to {_count(run.records_per_user)} records"
        return relation.replace("one record", of_user)
    return relation


def _epsilon(report: Report, delta: float) -> str:
    upper = float(dict(report.epsilons)[delta].upper)
    if math.isinf(upper):
        return f"no finite ε at δ = {plain(delta)}"
    lower = float(dict(report.epsilons)[delta].lower)
    text = f"ε ≤ {_upper(upper)} at δ = {plain(delta)}"
    if upper > _LOOSE * lower:
        text += f" (an attack shows {rounded_outward(lower, up=False, digits=_FEWER)})"
    return text


def _mu(report: Report) -> str:
    if math.isinf(float(report.mu.upper)):
        return f"no finite μ for error rates ≥ {plain(report.fpr_floor)}"
    return f"μ ≤ {_upper(report.mu.upper)} for error rates ≥ {plain(report.fpr_floor)}"


def claim(report: Report, delta: float) -> str:
    """The guarantee, in one sentence."""
    supposed = f"{condition(report)}: " if condition(report) else ""
    text = f"{supposed}{_epsilon(report, delta)}, {_mu(report)}, {unit(report)}."
    return text if supposed else text[:1].upper().replace("Ε", "ε").replace("Μ", "μ") + text[1:]


def otherwise(other: Alternative) -> str:
    """What holds by another sampler, in one sentence."""
    low = rounded_outward(float(other.epsilon.lower), up=False, digits=_FEWER)
    high = _upper(other.epsilon.upper, _FEWER)
    supposed = SAMPLINGS[other.sampler].condition
    at = f" at δ = {plain(other.delta)}"
    if _upper(other.epsilon.lower, _FEWER) == high:
        return f"{supposed}: ε ≤ {_upper(other.epsilon.upper)}{at}."
    return f"{supposed}: ε between {low} and {high}{at}."


def short_sentence(report: Report, delta: float) -> str:
    """What was done, the guarantee, and what holds by other samplers."""
    others = (otherwise(each) for each in report.alternatives)
    shorter = (text.replace(f" at δ = {plain(delta)}.", ".") for text in others)
    caution = caution_of(report, delta)
    note = [] if caution is None else [f"Caution: {caution}."]
    return " ".join([lead(report), claim(report, delta), *shorter, *note])


def paragraph(report: Report, delta: float) -> str:
    """The sentence, how strong that is, and what is not counted."""
    others = [
        f"{SAMPLINGS[each.sampler].condition}, it rises to {strength.between(each.advantage)}."
        for each in report.alternatives
    ]
    status = [] if report.status == "ok" else [f"Accuracy: {report.status}."]
    return " ".join(
        [
            short_sentence(report, delta),
            strength.sentence(report),
            *others,
            "All numbers are certified upper bounds, rounded up.",
            *([f"Counted: {counted_sentence(report)}."] if report.counted else []),
            f"Not counted: {'; '.join(not_counted(report))}.",
            *status,
            f"Computed by jaxgdp {report.version}{f' on {report.date}' if report.date else ''}.",
        ]
    )


def _yaml_number(value: float) -> str:
    """A float as every YAML parser reads it: 1.0e-05, as 1e-05 is text to many."""
    if math.isinf(value):
        return ".inf"
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}" if e else text


def _yaml(value: Any, indent: str = "") -> list[str]:
    """Lines of a table; texts as JSON strings, which YAML has, too."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, dict):
            lines += [f"{indent}{key}:", *_yaml(inner, indent + "  ")]
        elif isinstance(inner, list):
            lines.append(f"{indent}{key}:")
            for each in inner:
                first, *rest = _yaml(each, indent + "    ")
                lines += [f"{indent}  - {first.strip()}", *rest]
        else:
            number = isinstance(inner, float)
            shown = _yaml_number(inner) if number else json.dumps(inner, ensure_ascii=False)
            lines.append(f"{indent}{key}: {shown}")
    return lines


def _up(value: Any, digits: int = _DIGITS) -> float:
    return float(_upper(value, digits))


def _guarantee(report: Report, delta: float) -> dict[str, Any]:
    sampler = {"sampler": report.sampler} if report.sampler else {}
    return sampler | {
        "epsilon": _up(dict(report.epsilons)[delta].upper),
        "delta": float(delta),
        "mu": _up(report.mu.upper),
        "fpr_floor": float(report.fpr_floor),
        "advantage": _up(report.advantage.upper),
    }


def _possible(other: Alternative) -> dict[str, Any]:
    down = lambda value: float(rounded_outward(float(value), up=False, digits=_FEWER))
    return {
        "sampler": other.sampler,
        "epsilon": _up(other.epsilon.upper, _FEWER),
        "epsilon_at_least": down(other.epsilon.lower),
        "delta": float(other.delta),
        "mu": _up(other.mu.upper, _FEWER),
        "mu_at_least": down(other.mu.lower),
    }


def model_card(report: Report, delta: float) -> str:
    """A block of YAML for the head of a model card."""
    run = run_of(report)
    trained = {} if run is None else {"training": run.given() | {"rounding": run.rounding}}
    block = {
        "statement": short_sentence(report, delta),
        "protection": strength.graded(report).word,
        "unit": unit(report),
        "mechanism": report.mechanism,
        **trained,
        "guarantees": [_guarantee(report, delta), *map(_possible, report.alternatives)],
        **({"counted": counted_sentence(report)} if report.counted else {}),
        "not_counted": "; ".join(not_counted(report)),
        "software": f"jaxgdp {report.version}",
        "command": report.command,
    }
    if report.date:
        block["date"] = report.date
    return "\n".join(["privacy:", *_yaml(block, "  ")])


_LATEX = {"ε": r"\varepsilon", "μ": r"\mu", "δ": r"\delta", "σ": r"\sigma", "ρ": r"\rho",
          "Δ": r"\Delta", "α": r"\alpha", "β": r"\beta", "≤": r"\leq", "≥": r"\geq"}  # fmt: skip
_SIGNED = re.compile(r"(?:([εμδσρΔ]) )?([≤≥=]) (\d[\d.]*(?:e-?\d+)?)")


def latex_text(text: str) -> str:
    """Plain text as LaTeX: special characters escaped, symbols and their numbers as mathematics.

    Example:
        >>> print(latex_text("ε ≤ 4.29 at δ = 1e-5, 100 %"))
        $\\varepsilon \\leq 4.29$ at $\\delta = 10^{-5}$, 100 \\%
    """
    escaped = re.sub(r"([#$%&_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    escaped = re.sub(r"(?<=\d),(?=\d{3})", "{,}", escaped)

    def signed(found: re.Match[str]) -> str:
        symbol = _LATEX[found[1]] + " " if found[1] else ""
        return f"${symbol}{_LATEX.get(found[2], found[2])} {latex_number(found[3])}$"

    escaped = _SIGNED.sub(signed, escaped)
    for sign, command in _LATEX.items():
        escaped = escaped.replace(sign, f"${command}$")
    return escaped.replace("−", "--").replace("√", r"$\surd$")


def latex_number(text: str) -> str:
    """A number as mathematics: 4.3e-8 as a power of ten."""
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def latex(report: Report, delta: float) -> str:
    """The sentence as LaTeX."""
    return latex_text(short_sentence(report, delta))


STYLES: dict[str, Callable[[Report, float], str]] = {
    "sentence": short_sentence,
    "paragraph": paragraph,
    "model-card": model_card,
    "latex": latex,
}
