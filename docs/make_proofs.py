"""Write ``docs/proofs.md``: numbers that the package prints, proven in exact arithmetic.

    python docs/make_proofs.py [SECONDS FOR EACH SETTING]

Each bracket is what ``measure`` finds; ``jaxgdp.proof`` then proves it, or does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jaxgdp
from jaxgdp import deployments
from jaxgdp.proof import Proof, claim, provable, prove_all
from jaxgdp.report import rounded_outward

PAGE = Path(__file__).parent / "proofs.md"
SECONDS = 120.0

ASKED = {
    "mu": {"fpr_floor": 1e-10},
    "regret": {"fpr_floor": 1e-10},
    "advantage": {},
    "epsilon": {"delta": 1e-5},
    "tpr": {"fpr": 1e-3},
}
HEAD = """# Numbers that are proven

Every bracket of this page was found by `measure` and then proven by `jaxgdp.prove`, in
[exact integers and ball arithmetic](method/proof.md), by a program that shares nothing with the
one that found it. `make proofs` computes the page again; `jaxgdp prove` does the same for a report
or a number of yours, and writes a certificate. The proven brackets hold whatever was claimed.

"""
TITLES = (
    "| quantity | claimed: lower | upper | proven: lower | upper | verdict |\n"
    "|---|---|---|---|---|---|"
)


class Setting(NamedTuple):
    """A mechanism, where its numbers are printed, and which of them to prove."""

    where: str
    mechanism: jaxgdp.Composition
    questions: list[tuple[str, dict]]


def usual(*names: str) -> list[tuple[str, dict]]:
    """Quantities at their usual arguments."""
    return [(name, ASKED[name]) for name in names]


def readme() -> Iterator[Setting]:
    """The runs of the README."""
    run = jaxgdp.dpsgd(9.4, 16384 / 50_000, 2000)
    yield Setting("README: the worked example (σ 9.4, p 16384/50000, T 2000)", run, usual(*ASKED))
    mixed = jaxgdp.compose([(jaxgdp.DiscreteGaussian(sigma=8.28), 10), (jaxgdp.Laplace(2.0), 1)])
    yield Setting("README: discrete Gaussian and Laplace noise", mixed, usual("mu", "epsilon"))


def papers() -> Iterator[Setting]:
    """DP-SGD of the five papers."""
    for sigma in (9.4, 5.5, 3.5):
        run = jaxgdp.dpsgd(sigma, 16384 / 60_000, 2000)
        yield Setting(f"Gomez 2025: σ {sigma}, p 16384/60000, T 2000", run, usual("mu", "regret"))
    run = jaxgdp.dpsgd(0.6, 0.001, 10_000)
    questions = usual("advantage") + [("tpr", {"fpr": a}) for a in (0.01, 0.05, 0.1)]
    yield Setting("Kulynych 2024: p 0.001, T 10000, σ 0.6", run, questions)
    for sigma, steps, epsilons in (
        (0.35, 1000, (1.0, 4.0, 8.0)),
        (0.4, 10_000, (4.0,)),
        (0.7, 1000, (0.61,)),
        (0.8, 1000, (1.0,)),
        (1.0, 1000, (1.0,)),
    ):
        run = jaxgdp.dpsgd(sigma, 1.0 / steps, steps)
        questions = [("delta", {"epsilon": e}) for e in epsilons]
        yield Setting(f"Chua 2024: Poisson, σ {sigma}, T {steps}, one epoch", run, questions)
    fifty = jaxgdp.compose([(jaxgdp.PureDP(0.2), 50)])
    yield Setting("Liu 2022: 50 uses of a 0.2-DP mechanism", fifty, usual("mu", "epsilon"))


def shipped() -> Iterator[Setting]:
    """The shipped deployments."""
    for name in deployments.names():
        mechanism = jaxgdp.mechanisms.as_composition(deployments.about(name).mechanism())
        yield Setting(f"Deployment `{name}`", mechanism, usual("mu", "epsilon", "advantage"))


def proofs_of(setting: Setting, seconds: float) -> list[Proof]:
    """What is found, proven."""
    claims = []
    for quantity, asked in setting.questions:
        bracket = jaxgdp.measure(setting.mechanism, quantity, **asked)[quantity]
        claims.append(claim(quantity, bracket, "add_remove", asked))
    return prove_all(setting.mechanism, claims, seconds)


def rows(proofs: list[Proof]) -> list[str]:
    """Lines of a table."""
    found = []
    for proof in proofs:
        made = proof.claim
        at = "" if made.argument is None else f" at {made.asked} = {made.argument:g}"
        sides = [
            rounded_outward(value, up=up)
            for value, up in (
                (made.lower, False),
                (made.upper, True),
                (proof.bracket.lower, False),
                (proof.bracket.upper, True),
            )
        ]
        found.append(f"| {made.quantity}{at} | {' | '.join(sides)} | {proof.verdict} |")
    return found


def main(seconds: float = SECONDS) -> int:
    """Write the page; 1 if a number is refuted."""
    sections, left, number, refuted = [], [], [0, 0], 0
    for title, settings in (
        ("README", readme()),
        ("Papers", papers()),
        ("Shipped deployments", shipped()),
    ):
        lines = [f"## {title}", ""]
        for setting in settings:
            try:
                proofs = proofs_of(setting, seconds)
            except ValueError as error:
                left.append(f"- {setting.where}: {error}.")
                continue
            print(setting.where, [proof.verdict for proof in proofs], flush=True)
            number[0] += sum(proof.verdict == "proven" for proof in proofs)
            number[1] += len(proofs)
            refuted += sum(proof.verdict == "refuted" for proof in proofs)
            left += [
                f"- {setting.where}, {p.claim.quantity}: {p.reason}."
                for p in proofs
                if p.verdict == "undecided"
            ]
            lines += [f"**{setting.where}**", "", TITLES, *rows(proofs), ""]
        sections.append("\n".join(lines))
    count = f"{number[0]} of {number[1]} numbers are proven.\n\n"
    rest = [
        "- Numbers of other mechanisms (shuffled batches, fixed sizes, random allocation, profiles,"
        f" densities and others): proofs know {', '.join(provable())}.",
        "- [The registry](registry.md): its brackets are of what an entry claims, (ε, δ), ρ or ε,"
        " and closed forms of that, not of a mechanism.",
        "- Brackets whose sides are of different laws, which no proof brings together.",
    ]
    tail = "\n".join(["## What is not proven, and why", "", *left, *rest, ""])
    PAGE.write_text(HEAD + count + "\n".join(sections) + "\n" + tail, encoding="utf-8")
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
