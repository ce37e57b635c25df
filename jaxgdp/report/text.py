"""A report as text, Markdown or a rich table; printed sides are rounded outward."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from ..arguments import spelled_out
from ..numerics.rounding import rounded_outward
from ..numerics.showing import cells
from ..quantities.registry import named
from ..spec import SEVERAL
from . import strength, words
from .counted import EXPLAINED as COUNTED_EXPLAINED
from .counted import TITLES as COUNTED_TITLES
from .counted import not_counted
from .counted import rows as counted_rows
from .parts import epsilon_by_rho, shown_rho
from .statements import short_sentence, usual_delta

if TYPE_CHECKING:
    from ..bracket import Bracket
    from .content import Report

TIER_LIMIT = 0.01
PART_TITLES = ("part", "share", "rho", "sigma", "mu")
_VERDICTS = {
    "I": (
        f"Tier I: the regret is certified below {TIER_LIMIT:g}, so mu stands for the whole"
        " trade-off curve"
    ),
    "II": (
        f"Tier II: the regret is not certified below {TIER_LIMIT:g}, so publish the trade-off curve"
        " beside mu"
    ),
}


def command(spec: dict[str, Any]) -> str:
    """The command line of a description's report: options if they suffice, a name, or a file."""
    words = ["jaxgdp", "report"]
    entries = spec.get("mechanism", [])
    plain = {
        "SubsampledGaussian": ("noise_multiplier", "sampling_prob"),
        "Gaussian": ("noise_multiplier",),
    }
    if "deployment" in spec:
        words += ["--deployment", spec["deployment"]]
    elif "run" in spec:
        for name, value in spec["run"].items():
            words += ["--" + name.replace("_", "-"), str(value)]
    elif len(entries) == 1 and entries[0].get("type") in plain:
        for name in plain[entries[0]["type"]]:
            words += ["--" + name.replace("_", "-"), repr(entries[0][name])]
        words += ["--num-steps", repr(entries[0]["count"])]
    else:
        words += ["--spec", "spec.json"]
        return shlex.join(words)
    if "title" in spec:
        words += ["--title", spec["title"]]
    if "neighbours" in spec:
        return "jaxgdp report --spec spec.json"
    for name in ("adjacency", "fpr_floor", "rtol", "approximation"):
        if name in spec:
            words += ["--" + name.replace("_", "-"), str(spec[name])]
    for name in SEVERAL:
        if name in spec:
            words += [f"--{name}", ",".join(map(repr, spec[name]))]
    return shlex.join(words)


def publish_line(report: Report) -> str:
    """Both μ and the regret, to publish, with six digits."""
    up = lambda value: rounded_outward(float(value), up=True)
    mu, approximate = up(report.mu.upper), up(report.approximate_mu.upper)
    floor, d = f"{report.fpr_floor:g}", f"{report.approximation:g}"
    regret = f"Delta <= {up(report.regret.upper)}"
    if mu == approximate and report.same_mu:
        return f"mu = {mu} at every FPR and FNR, those below {floor} included; {regret}"
    return (
        f"mu = {mu} at every FPR and FNR >= {floor}; mu = {approximate} at every rate but for"
        f" probability d = {d}; {regret}"
    )


def gdp_line(report: Report) -> str:
    """Whether a μ holds at every rate, and why (Liu et al. 2022, Theorem 3.3)."""
    if report.same_mu:
        where = "at every rate, with that mu"
    elif report.is_gdp:
        where = (
            f"at every rate with mu = {rounded_outward(report.tail_mu, up=True)} only, that mu"
            " holds above the floor"
        )
    else:
        where = "above the floor only"
    return f"{where}: {report.gdp_reason}"


def head(report: Report) -> list[tuple[str, str]]:
    """Names and values above the tables."""
    title = [("title", report.title)] if report.title else []
    neighbours = [("neighbours", report.neighbours)] if report.neighbours else []
    others = [("otherwise", text) for text in words.otherwise(report)]
    rounding = [("rounding", words.rounding(report))] if words.rounding(report) else []
    said = [
        *title,
        ("strength", strength.sentence(report)),
        *others,
        ("statement", short_sentence(report, usual_delta(d for d, _ in report.epsilons))),
        ("question", report.question),
        ("mechanism", report.mechanism),
        ("sampling", words.sampling(report.spec)),
        *rounding,
        *neighbours,
        ("adjacency", words.adjacency(report)),
        ("in words", " ".join(words.verdict(report))),
        ("verdict", _VERDICTS[report.tier]),
        ("publish", publish_line(report)),
        *([] if report.is_gdp is None else [("GDP", gdp_line(report))]),
        *([("rho", rho_line(report))] if report.rho is not None else []),
        ("accuracy", words.accuracy(report)),
    ]
    return [(name, spelled_out(text)) for name, text in said]


def rho_line(report: Report) -> str:
    """ρ of the whole, and ε by it alone beside ε of the mechanisms."""
    told = [f"ρ ≤ {shown_rho(report.rho or 0.0)}"]
    for delta, bracket in report.epsilons:
        alone = epsilon_by_rho(report, delta)
        by_rho = rounded_outward(float(alone or 0.0), up=True, digits=4)
        own = rounded_outward(float(bracket.upper), up=True, digits=4)
        told.append(f"at δ = {delta:g}, ρ alone says ε ≤ {by_rho}, the mechanisms say {own}")
    return "; ".join(told)


def part_rows(report: Report) -> list[tuple[str, ...]]:
    """Name, share, ρ, σ, μ of every part; ρ and μ are rounded to the safe side."""
    budget = lambda value: "-" if value is None else shown_rho(value)
    return [
        (
            part.name,
            "-" if part.share is None else f"{100.0 * part.share:.4g} %",
            budget(part.rho),
            "-" if part.sigma is None else f"{part.sigma:.4g}",
            rounded_outward(float(part.mu.upper), up=True, digits=4),
        )
        for part in report.parts
    ]


def _sides(name: str, bracket: Bracket, side: str) -> tuple[str, str, str, str]:
    return name, *cells(bracket.lower, bracket.upper), side


def rows(report: Report) -> list[tuple[str, str, str, str]]:
    """Quantity, lower, upper, side to report."""
    brackets = [
        (f"mu, FPR and FNR >= {report.fpr_floor:g}", report.mu),
        (f"mu, {report.approximation:g}-approximate, any rate", report.approximate_mu),
        ("regret Delta of that mu", report.regret),
        *((f"epsilon at delta = {delta:g}", bracket) for delta, bracket in report.epsilons),
        ("advantage", report.advantage),
        *((f"TPR at FPR = {fpr:g}", bracket) for fpr, bracket in report.tprs[:-1]),
        (f"TPR at alpha* = {report.tprs[-1][0]:.6g}", report.tprs[-1][1]),
    ]
    others = [
        _sides(_other_name(name, at), bracket, named(name).safe_side)
        for name, at, bracket in report.others
    ]
    limit = cells(report.tail_mu, report.tail_mu)
    return [
        *(_sides(name, b, "upper") for name, b in brackets),
        *others,
        # (true and useless where sampling does not help: not for quoting)
        ("a mu that holds at every FPR", *limit, "upper" if report.same_mu else "-"),
    ]


def _other_name(name: str, argument: float | None) -> str:
    if argument is None:
        return named(name).long_name or name
    return f"{name} at {named(name).argument} = {argument:g}"


def curve_rows(report: Report) -> list[tuple[str, str, str, str]]:
    """Tier II: FPR, lower and upper FNR, side to report (Gomez 2025, Section 4.3)."""
    names = [*(f"f(alpha) at alpha = {fpr:g}" for fpr, _ in report.fnrs[:-1])]
    names += [f"f(alpha*) at alpha* = {fpr:.6g}" for fpr, _ in report.fnrs[-1:]]
    return [
        _sides(name, bracket, "lower")
        for name, (_, bracket) in zip(names, report.fnrs, strict=True)
    ]


def _tables(report: Report) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    tables.append((("quantity", "lower", "upper", "report"), list(rows(report))))
    if report.fnrs:
        tables.append((("trade-off curve", "lower", "upper", "report"), list(curve_rows(report))))
    if report.parts:
        tables.append((PART_TITLES, part_rows(report)))
    if found := counted_rows(report.counted):
        tables.append((COUNTED_TITLES, found))
    return tables


def _reproduction(report: Report) -> list[str]:
    """How anyone gets the same numbers, with the description in Tier II or where needed."""
    described = "--spec" in report.command
    file = " where spec.json holds the description below" if described else ""
    spec = [json.dumps(report.spec, allow_nan=False)] if described or report.tier == "II" else []
    return [f"reproduce with: {report.command}{file}", *spec]


def _explanations(report: Report) -> list[tuple[str, str]]:
    """The meaning of the tables' names, and the omissions."""
    told = [*words.definitions(report)]
    if report.counted:
        told.append(("counted", COUNTED_EXPLAINED))
    told.append(("not counted", "; ".join(not_counted(report))))
    return [(spelled_out(name), spelled_out(text)) for name, text in told]


def heading(report: Report) -> str:
    """Who computed it, and when."""
    return f"jaxgdp {report.version} privacy report" + (f", {report.date}" if report.date else "")


def plain(report: Report) -> str:
    """The report as plain text."""
    lines = [heading(report), *(f"{name:<10} {text}" for name, text in head(report))]
    for titles, table in _tables(report):
        lined = [titles, *table]
        widths = [max(len(row[i]) for row in lined) for i in range(len(titles))]
        text = [
            "  ".join(
                f"{cell:<{width}}" if i in (0, 3) else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in lined
        ]
        text.insert(1, "-" * max(map(len, text)))
        lines += ["", *text]
    lines += ["", *(f"{name}: {text}" for name, text in _explanations(report))]
    return "\n".join([*lines, "", *_reproduction(report)])


def markdown(report: Report) -> str:
    """The report as Markdown: a list, tables, what the names mean, how to reproduce it."""
    clean = lambda text: text.replace("|", "\\|").replace("*", "\\*")
    date = f", {report.date}" if report.date else ""
    lines = [f"### Privacy report (jaxgdp {report.version}{date})", ""]
    lines += [f"- **{name}**: {clean(text)}" for name, text in head(report)]
    for titles, table in _tables(report):
        rule = "|---" + "|---:" * (len(titles) - 2) + "|---|"
        lines += ["", "| " + " | ".join(titles) + " |", rule]
        lines += ["| " + " | ".join(map(clean, row)) + " |" for row in table]
    lines += ["", *(f"- **{name}**: {clean(text)}" for name, text in _explanations(report))]
    _, *spec = _reproduction(report)
    lines += ["", "```sh", report.command, "```"]
    for each in spec:
        lines += ["", "```json", each, "```"]
    return "\n".join(lines)


def rich_form(report: Report):
    """The report as something a rich console prints.

    Raises:
        ImportError: rich is not installed.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    colours = {"strength": "bold", "statement": "bold"}
    for name, text in head(report):
        facts.add_row(Text(name, style="dim"), Text(text, style=colours.get(name, "")))
    parts = [Text(heading(report), style="bold"), facts]
    for titles, table in _tables(report):
        shown = Table(show_edge=False, pad_edge=False)
        for place, title in enumerate(titles):
            shown.add_column(title, justify="left" if place in (0, 3) else "right")
        for row in table:
            styles = ("bold" if row[3] == title else "" for title in titles)
            shown.add_row(*(Text(*cell) for cell in zip(row, styles, strict=True)))
        parts += [Text(), shown]
    explained = (Text.assemble((name, "dim"), f": {text}") for name, text in _explanations(report))
    return Group(*parts, Text(), *explained, Text(), *map(Text, _reproduction(report)))
