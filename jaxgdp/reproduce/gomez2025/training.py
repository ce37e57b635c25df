"""DP-SGD of De et al. 2022: Tables 2, 4 and 5, Figures 4(a), 5 and 6 of Gomez 2025."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ... import deployments, options
from ...bracket import Bracket
from ...measure import measure
from ...mechanisms import dpsgd
from ...tradeoff import tradeoff
from ..gap import Gap, largest_gap
from ..published import read
from ..renyi import renyi_epsilon
from ..result import Finding, Number, Result, Table, decided, drawn, element
from ..verdict import shown
from . import figures

STATED, OTHER = 50_000, 60_000  # training records: as the paper says, and as its numbers say
RTOL, QUICK_RTOL = 1e-4, 1e-3
_LINE_RTOL = 2e-5  # differences of curves need more digits than μ
_TABLES = {"table-4": 4, "table-5": 5}
_RETURNS = "Rényi accounting returns every printed ε to 1 % at"
_OTHER_NAME = f"at N = {OTHER:,}"


class Run(NamedTuple):
    """One column of Table 4 or 5 at one number of training records, with its certified answers."""

    epsilon: str
    noise_multiplier: float
    num_steps: int
    sampling_prob: float
    mu: Bracket
    regret: Bracket
    tight_epsilon: Bracket
    advantage: Bracket


@functools.cache
def runs(quick: bool) -> dict[tuple[str, int], list[Run]]:
    """Every column of Tables 4 and 5, by (table, number of training records), in one call."""
    paper = read("gomez2025")
    columns = []
    for name, number in _TABLES.items():
        for records in (STATED, OTHER):
            trained = deployments.de_et_al_2022(table=number, dataset_size=records)
            (step,), (steps,) = trained.mechanisms, trained.counts
            rate = np.broadcast_to(step.sampling_prob, trained.shape)
            settings = zip(paper[name]["epsilon"], step.noise_multiplier, steps, rate, strict=True)
            columns += [(name, records, *setting) for setting in settings]
    _, _, _, sigma, steps, rate = map(np.array, zip(*columns, strict=True))
    delta, rtol = float(paper["table-4"]["delta"]), QUICK_RTOL if quick else RTOL
    asked: dict[str, Any] = {"rtol": rtol, "delta": delta, "fpr_floor": options.FPR_FLOOR}
    answers = measure(
        dpsgd(sigma, rate, steps), ("mu", "regret", "epsilon", "advantage"), **asked
    ).brackets.values()
    found: dict[tuple[str, int], list[Run]] = {}
    for i, (name, records, eps, *_) in enumerate(columns):
        brackets = (element(b, i) for b in answers)
        found.setdefault((name, records), []).append(
            Run(eps, float(sigma[i]), int(steps[i]), float(rate[i]), *brackets)
        )
    return found


def table_2(quick: bool) -> Result:
    """μ in place of (ε, δ) for the image classifiers of De et al. 2022."""
    paper = read("gomez2025")["table-2"]
    found = runs(quick)
    answers: dict[str, Number | Finding] = {}
    ours = {}
    for kind, name in (("trained", "table-4"), ("tuned", "table-5")):
        ours[kind] = []
        for stated, other in zip(found[name, STATED], found[name, OTHER], strict=True):
            if float(stated.epsilon) in paper["epsilon"]:
                key = f"table-2-{kind}-{float(stated.epsilon):g}"
                answers[key] = Number(stated.mu, ((_OTHER_NAME, other.mu),))
                ours[kind].append(f"μ in {shown(stated.mu)}")
    worst = {n: _largest([r.regret for t in _TABLES for r in found[t, n]]) for n in (STATED, OTHER)}
    answers["table-2-regret"] = Number(worst[STATED], ((_OTHER_NAME, worst[OTHER]),))

    header = (
        "data set",
        "pre-training",
        "δ",
        *(f"ε = {e}, printed μ = {m}" for e, m in zip(paper["epsilon"], paper["mu"], strict=True)),
    )
    certified = {("CIFAR-10", "none"): ours["trained"], ("CIFAR-10", "ImageNet"): ours["tuned"]}
    body = []
    for row in paper["row"]:
        mus = certified.get((row["dataset"], row["pretraining"]), ["μ not computed"] * 4)
        cells = [f"{a} %, {m}" if a else "" for a, m in zip(row["accuracy"], mus, strict=True)]
        body.append((row["dataset"], row["pretraining"], row["delta"], *cells))
    return Result(
        answers, tables={"table-2": Table(header, tuple(body))}, fpr_floor=options.FPR_FLOOR
    )


def _largest(brackets: list[Bracket]) -> Bracket:
    return Bracket(max(b.lower for b in brackets), max(b.upper for b in brackets))


def hyperparameters(name: str, quick: bool) -> Result:
    """Table 4 or 5: ε as printed, certified, and by Rényi accounting for two training sets."""
    delta = float(read("gomez2025")[name]["delta"])
    stated, other = (runs(quick)[name, n] for n in (STATED, OTHER))
    renyi = [
        [renyi_epsilon(r.noise_multiplier, r.sampling_prob, r.num_steps, delta) for r in column]
        for column in (stated, other)
    ]
    answers: dict[str, Number | Finding] = {}
    for run, bound in zip(stated, renyi[0], strict=True):
        printed = float(run.epsilon)
        tight = run.tight_epsilon
        holds = decided(tight.upper <= printed, tight.lower > printed)
        answers[f"{name}-epsilon-{run.epsilon}"] = Finding(
            shown(run.tight_epsilon),
            holds,
            f"printed is an upper bound: Rényi accounting gives {bound:.3f}; the certified ε is "
            f"{100 * (1 - run.tight_epsilon.upper / printed):.0f} % smaller",
        )
    # which number of records gives the printed ε, if each is a Rényi bound rounded to a whole
    # number
    fits = [
        all(abs(b / float(r.epsilon) - 1.0) < 0.01 for b, r in zip(bounds, stated, strict=True))
        for bounds in renyi
    ]
    lists = [", ".join(f"{b:.2f}" for b in bounds) for bounds in renyi]
    if not fits[0]:
        why = "no number of records tried returns the printed ε"
    elif fits[1]:
        why = f"{_RETURNS} N = {STATED:,}, but also at N = {OTHER:,}"
    else:
        why = f"{_RETURNS} N = {STATED:,} and none at N = {OTHER:,}: the printed ε are those of the"
        why += " former"
    text = f"Rényi ε {lists[0]} at N = {STATED:,}; {lists[1]} at N = {OTHER:,}"
    answers[f"{name}-records"] = Finding(text, fits[0] and not fits[1], why)
    bounds = (f"ε Rényi, N = {STATED:,}", f"ε Rényi, N = {OTHER:,}")
    header = ("σ", "T", "p", "ε printed", "ε certified", *bounds, "μ", f"μ {_OTHER_NAME}", "Δ")
    body = tuple(
        (
            f"{a.noise_multiplier:g}", f"{a.num_steps}", f"{a.sampling_prob:.5g}", a.epsilon,
            shown(a.tight_epsilon), f"{x:.3f}", f"{y:.3f}", shown(a.mu), shown(b.mu),
            shown(a.regret, 3),
        )
        for a, b, x, y in zip(stated, other, *renyi, strict=True)
    )  # fmt: skip
    return Result(answers, tables={name: Table(header, body)}, fpr_floor=options.FPR_FLOOR)


class Line(NamedTuple):
    """One mechanism of Figure 5 or 6: its curve, the Gaussian below it, their distance."""

    label: str
    noise_multiplier: float
    mu: Bracket
    regret: Bracket
    gap: Gap
    fpr_floor: float


@functools.cache
def _line(epsilon: str, sigma: float, steps: int, rate: float, quick: bool) -> Line:
    curve = tradeoff(dpsgd(sigma, rate, steps), rtol=QUICK_RTOL if quick else _LINE_RTOL)
    mu, regret = (Bracket(float(b.lower), float(b.upper)) for b in (curve.mu(), curve.regret()))
    gap = largest_gap(curve, mu.upper, points=61 if quick else 141, rounds=2 if quick else 8)
    return Line(f"ε = {float(epsilon):g}", sigma, mu, regret, gap, curve.fpr_floor)


def lines(name: str, quick: bool) -> list[Line]:
    """The mechanisms of Figure 5 (Table 4) or 6 (Table 5), ε = 1, 2, 4, 8, at the stated rate."""
    wanted = [str(float(e)) for e in read("gomez2025")["table-2"]["epsilon"]]
    chosen = [r for r in runs(quick)[name, STATED] if r.epsilon in wanted]
    return [
        _line(r.epsilon, r.noise_multiplier, r.num_steps, r.sampling_prob, quick) for r in chosen
    ]


def _against_twice_regret(line: Line) -> bool | None:
    """Whether the largest distance is at most 2Δ."""
    gap, regret = line.gap.largest, line.regret
    return decided(gap.upper <= 2.0 * regret.lower, gap.lower > 2.0 * regret.upper)


def curves_and_gaps(figure: str, name: str, quick: bool) -> Result:
    """Figure 5 or 6: four trade-off curves beside their μ-GDP bounds, and the differences."""
    found = lines(name, quick)
    below = [_against_twice_regret(line) for line in found]
    text = "; ".join(
        f"σ = {x.noise_multiplier:g}: {shown(x.gap.largest, 3)} against 2Δ ="
        f" {shown(Bracket(2 * x.regret.lower, 2 * x.regret.upper), 3)}"
        for x in found
    )
    words = {True: "at most 2Δ", False: "above 2Δ", None: "undecided"}
    evidence = "; ".join(
        f"σ = {x.noise_multiplier:g}: {words[b]}" for x, b in zip(found, below, strict=True)
    )
    if figure == "figure-5":
        wanted = [x.noise_multiplier != 9.4 for x in found]
        wrong = any(b is not None and b != w for b, w in zip(below, wanted, strict=True))
        holds = False if wrong else None if None in below else True
        if not holds:
            evidence += (
                "; for symmetric curves the largest difference is never below 2Δ, since left of its"
                " fixed point f falls at least as fast as the FPR grows"
            )
    else:
        ratios = [x.gap.largest.midpoint / (2.0 * x.regret.midpoint) for x in found]
        holds = all(0.5 < r < 2.0 for r in ratios)
        evidence = f"ratio to 2Δ from {min(ratios):.2f} to {max(ratios):.2f}; {evidence}"

    body = [
        (x.label, f"{x.noise_multiplier:g}", a, low, high, g)
        for x in found
        for a, low, high, g in zip(x.gap.alpha, *x.gap.beta, x.gap.gaussian, strict=True)
    ]
    header = "mechanism noise_multiplier fpr fnr_lower fnr_upper fnr_gdp"
    answers, table = {f"{figure}-gap": Finding(text, holds, evidence)}, Table.of_rows(header, body)
    floor = max(line.fpr_floor for line in found)
    return drawn(
        figure, answers, table, figures.curves_and_gaps, found, size=(7.2, 3.5), fpr_floor=floor
    )
