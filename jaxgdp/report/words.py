"""The sentences of a report for readers who are no specialists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..adjacency import Adjacency
from ..bracket import STATUS
from ..numerics.rounding import rounded_outward
from ..run_settings import SAMPLINGS
from ..spec import from_dict, known_mechanisms
from . import strength

if TYPE_CHECKING:
    from .content import Report

ATTACKER = (
    "sees everything that was published, knows all other records and the mechanism, and has any"
    " computing power"
)
NOT_COUNTED = (
    "trials: choosing hyperparameters, or the best of several runs, by looking at the same data",
    (
        "whatever else is computed from the same data: other releases, statistics used to prepare"
        " or to clip them, invariants"
    ),
    (
        "people with more than one record: the numbers are for one unit as described, and k units"
        " weigh more"
    ),
    (
        "faults outside the mathematics: sampling or noise other than described, floating-point"
        " noise, weak random numbers, timing"
    ),
)


def plain(value: float) -> str:
    """A number as people write it: 1e-5 for 1e-05.

    Example:
        >>> plain(1e-05), plain(0.9), plain(2e-10)
        ('1e-5', '0.9', '2e-10')
    """
    return re.sub(r"e-0*", "e-", f"{value:g}")


def _sampled(entry: dict) -> list[str]:
    """Words for one part; a mechanism from outside the package is known by its name alone."""
    name = entry.get("type")
    if name is not None and name not in known_mechanisms():
        return [f"as {name} has it"]
    plain = {key: value for key, value in entry.items() if key not in ("share", "name")}
    if "share" in entry and not plain.keys() & {"sigma", "noise_multiplier"}:
        plain["rho"] = 1.0  # (how much noise a budget means changes no word)
    parts = from_dict({"mechanism": [plain]}).mechanism.mechanisms
    return [part.describe_sampling() for part in parts]


def sampling(spec: dict) -> str:
    """How records get into the uses of a mechanism, in words; of a mixture, each way once.

    Args:
        spec: description of a mechanism (``Report.spec``).

    Example:
        >>> sampling({"mechanism": [{"type": "Laplace", "scale": 2.0}]})
        'none: every use includes every record'
    """
    if "run" in spec:
        cases = from_dict({"run": spec["run"]}).run.cases.values()  # type: ignore[union-attr]
        parts = (part for case in cases for part in case.mechanisms)
        return "; or ".join(dict.fromkeys(part.describe_sampling() for part in parts))
    entries = [{"deployment": spec["deployment"]}] if "deployment" in spec else spec["mechanism"]
    return "; also ".join(dict.fromkeys(words for entry in entries for words in _sampled(entry)))


def adjacency(report: Report) -> str:
    """The neighbouring relation: its name and meaning, and which orders of a pair count."""
    relation = Adjacency.checked(report.adjacency)
    own = replaced(report.spec)
    if own and not report.neighbours:
        orders = "both orders" if relation.symmetric else "one order only"
        return f"{relation} ({own}; {orders})"
    meaning = relation.order_meaning if report.neighbours else relation.meaning
    return f"{relation} ({meaning})"


def replaced(spec: dict) -> str:
    """The relation of a mechanism whose own pair is that of replacing a record, in its words; "" of
    others.

    Example:
        >>> replaced({"mechanism": [{"type": "ShuffledReports", "epsilon": 1, "num_users": 9}]})
        "one user's value being another one"
    """
    entries = spec.get("mechanism", ())
    if not entries or any(entry.get("type") not in known_mechanisms() for entry in entries):
        return ""
    described = {key: spec[key] for key in ("rho", "mechanism") if key in spec}
    parts = from_dict(described).mechanism.mechanisms
    if not all(part.replaces_record() for part in parts):
        return ""
    return "; ".join(dict.fromkeys(part.relation for part in parts))


def question(report: Report) -> str:
    """The question of the report."""
    return (
        "how well an attacker can tell two neighbouring data sets apart by the output of"
        f" {report.title or report.mechanism}"
    )


def unit(report: Report) -> str:
    """Whom the numbers protect."""
    if report.neighbours:
        return report.neighbours
    if replaced(report.spec):
        return "one record, whose value may be any other one"
    return "one record, as the mechanism's sensitivity or clipping has it"


def _of(share: float) -> str:
    """A share in natural frequencies, rounded up: "at most 6.34 in 100"."""
    scales = {10**k: f"{10**k:,}" for k in range(2, 6)} | {10**6: "a million", 10**9: "a billion"}
    many = next((scale for scale in scales if share * scale >= 1.0), 10**9)
    said = scales[many]
    return f"at most {rounded_outward(min(share, 1.0) * many, up=True, digits=3)} in {said}"


_FLAGGED = {1e-3: "a thousand", 1e-6: "a million"}


def verdict(report: Report) -> list[str]:
    """The most that an attacker can do, in sentences; numbers are upper sides, rounded up."""
    told = []
    for fpr, bracket in reversed(report.tprs):
        if fpr in _FLAGGED:
            told.append(
                "An attacker who wrongly takes one non-member in"
                f" {_FLAGGED[fpr]} for a member finds {_of(float(bracket.upper))} of the members,"
                f" whose record was used; guessing finds one in {_FLAGGED[fpr]}."
            )
    right = strength.success(float(report.advantage.upper))
    told.append(
        f"One who must decide at even odds is right at most {right} times in 100; guessing is right"
        " 50 times."
    )
    return told


def otherwise(report: Report) -> list[str]:
    """What holds if the batches of a run were drawn in another way, a sentence each."""
    told = []
    for other in report.alternatives:
        word = strength.grade(float(other.advantage.upper)).word
        sides = strength.between(other.advantage)
        low = rounded_outward(float(other.epsilon.lower), up=False, digits=2)
        high = rounded_outward(float(other.epsilon.upper), up=True, digits=2)
        told.append(
            f"{SAMPLINGS[other.sampler].condition} instead, protection is {word}: an attacker's"
            f" success rises from 50 to {sides} in 100, and ε at δ = {plain(other.delta)} is"
            f" between {low} and {high}."
        )
    return told


def accuracy(report: Report) -> str:
    """How precise the numbers are, in words, and what of them is proven."""
    proven = f"; {report.proven}" if report.proven else ""
    if report.status == STATUS[0]:
        return f"every number is certified, and as precise as asked{proven}"
    return (
        "every number is certified, but some are less precise than asked, so that the safe side may"
        f" be larger than need be: {report.status}{proven}"
    )


def rounding(report: Report) -> str:
    """How rate and steps of a run were rounded, or ""."""
    run = from_dict(report.spec).run if "run" in report.spec else None
    return "" if run is None else run.rounding


def tier(report: Report) -> str:
    """Whether one number will do."""
    up = lambda value: rounded_outward(float(value), up=True)
    if report.tier == "I":
        return (
            f"How to report it: μ = {up(report.mu.upper)} stands for the whole trade-off curve"
            f" (Tier I: its regret Δ is at most {up(report.regret.upper)}, below 0.01)."
        )
    return (
        f"How to report it: μ = {up(report.mu.upper)} alone overstates what an attacker can do by"
        f" up to Δ = {up(report.regret.upper)} (Tier II), so look at the curve as well."
    )


def definitions(report: Report) -> list[tuple[str, str]]:
    """The words of a report and what they mean."""
    anywhere = rounded_outward(report.tail_mu, up=True)
    if report.same_mu:
        beyond = "; but this μ holds at smaller ones, too"
    elif anywhere == "inf":
        beyond = (
            ". Attackers more careful than that may do better than μ allows; no finite μ is known"
            " to hold for all"
        )
    else:
        beyond = (
            f". Attackers more careful than that may do better than μ allows; μ = {anywhere} holds"
            " for all of them"
        )
    told = {
        "μ": "the attacker's task is at least as hard as telling two bell curves of width 1 apart"
        " whose centres lie μ apart; 0 is perfect privacy",
        "FPR floor": f"smallest error rate that μ speaks of, here {report.fpr_floor:g}{beyond}",
        "d": f"a probability set aside, here {report.approximation:g}: but for it, the"
        " d-approximate μ holds at every error rate",
        "Δ, regret": "how much at most the curve of μ overstates the attacker: the largest gap"
        " between both curves along the diagonal, from 0 to ½",
        "FPR": "share of non-members, whose record was not used, whom the attacker takes for"
        " members (α)",
        "TPR": "share of members, whose record was used, whom the attacker finds; FNR = 1 − TPR,"
        " the share that is missed",
        "advantage": "largest TPR − FPR of any attack",
        "ε at δ": "no set of outcomes gets more likely through the record than e^ε times as likely,"
        " plus δ",
    }
    return list(told.items())
