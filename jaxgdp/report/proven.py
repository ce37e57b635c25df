"""``jaxgdp report --prove``: the numbers of a report, proven in exact arithmetic."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from ..bracket import Bracket
from ..numerics.provenance import today
from ..proof import ARGUMENTS, Claim, Proof, claim, prove_all
from ..spec import from_dict

if TYPE_CHECKING:
    from .content import Report

MAX_SECONDS = 300.0


class ProvenReport(NamedTuple):
    """A report that says what of it is proven, and the proofs."""

    report: Report
    proofs: list[Proof]


def claims_of(report: Report) -> list[Claim]:
    """Every bracket of a report as a claim; other adjacencies and quantities are left out."""
    found = []

    def add(quantity: str, argument: float | None, bracket: Bracket) -> None:
        known = ARGUMENTS.get(quantity)
        asked = {} if known is None else {known.name: argument}
        if quantity in ARGUMENTS:
            found.append(claim(quantity, bracket, report.adjacency, asked))

    add("mu", report.fpr_floor, report.mu)
    add("approximate_mu", report.approximation, report.approximate_mu)
    add("regret", report.fpr_floor, report.regret)
    add("advantage", None, report.advantage)
    several = {"epsilon": report.epsilons, "tpr": report.tprs, "beta": report.fnrs}
    for quantity, rows in several.items():
        for argument, bracket in rows:
            add(quantity, argument, bracket)
    for quantity, argument, bracket in report.others:
        add(quantity, argument, bracket)
    return found


def prove_report(report: Report, max_seconds: float = MAX_SECONDS) -> ProvenReport:
    """Prove every number of a report.

    Args:
        report: from :func:`jaxgdp.report`.
        max_seconds: for all of them together.

    Returns:
        The report with a line on what is proven, and the proofs.

    Raises:
        ValueError: the mechanism or the adjacency is one that cannot be proven; names it.
        ImportError: python-flint is not installed (the ``proof`` extra).
    """
    proofs = prove_all(from_dict(report.spec).mechanism, claims_of(report), max_seconds)
    return ProvenReport(dataclasses.replace(report, proven=line(proofs)), proofs)


def line(proofs: list[Proof]) -> str:
    """One line on what is proven."""
    names = lambda verdict: ", ".join(_name(p.claim) for p in proofs if p.verdict == verdict)
    proven = sum(proof.verdict == "proven" for proof in proofs)
    number = (
        f"all {proven} numbers" if proven == len(proofs) else f"{proven} of {len(proofs)} numbers"
    )
    text = f"{number} proven in exact arithmetic on {today()}"
    if names("refuted"):
        text += f"; REFUTED: {names('refuted')}"
    if names("undecided"):
        text += f"; not decided: {names('undecided')}"
    return text


def _name(made: Claim) -> str:
    at = "" if made.argument is None else f" at {made.asked} = {made.argument:g}"
    return f"{made.quantity}{at}"
