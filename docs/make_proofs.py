"""Write ``docs/proofs.md``: numbers that the package prints, proven in exact arithmetic.

    python docs/make_proofs.py [SECONDS FOR EACH SETTING] [PART OF A SETTING'S NAME]

Finished proofs are kept in ``docs/proofs.json``, as certificates; what is claimed again as before
is not proven again (delete the file to prove everything). Several of these programs may run at
once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from printed_numbers import ELSEWHERE, GROUPS, Setting, claimed  # (beside this file)

from jaxgdp import spec
from jaxgdp.proof import claim, provable, prove_all
from jaxgdp.report import rounded_outward

PAGE = Path(__file__).parent / "proofs.md"
STORE = Path(__file__).parent / "proofs.json"
SECONDS = 120.0
HEAD = """# Numbers that are proven

Every bracket of this page is what the package prints, rounded outward to the digits shown, and
was then proven by `jaxgdp.prove`, in [exact integers and ball arithmetic](method/proof.md), by a
program that shares nothing with the one that found it. `make proofs` computes the page again (all
of it in some six minutes of one core); `jaxgdp prove` does the same for a report or a number of
yours, and writes a certificate. The certificates of this page are in `docs/proofs.json`. The proven
brackets hold whatever was claimed.

"""
TITLES = (
    "| quantity | claimed: lower | upper | proven: lower | upper | verdict |\n"
    "|---|---|---|---|---|---|"
)
_COMMON = ("certificate", "format")  # the same in all certificates

Stored = dict[str, Any]


def full(setting: Stored, proof: Stored) -> Stored:
    """The whole certificate of a stored proof."""
    made = dict(proof["claim"], mechanism=setting["mechanism"])
    rest = {k: v for k, v in proof.items() if k != "printed"}
    return {"certificate": "jaxgdp proof", "format": 1, **rest, "claim": made}


def _short(certificate: Stored, printed: tuple[str, ...]) -> Stored:
    made = {k: v for k, v in certificate["claim"].items() if k != "mechanism"}
    rest = {k: v for k, v in certificate.items() if k not in _COMMON}
    return {**rest, "claim": made, "printed": list(printed)}


def load() -> dict[str, Stored]:
    """Stored proofs by the name of their setting."""
    if not STORE.exists():
        return {}
    return json.loads(STORE.read_text(encoding="utf-8"))["settings"]


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    import fcntl

    with (Path(tempfile.gettempdir()) / "jaxgdp_proofs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keep(where: str, setting: Stored) -> None:
    """Store the proofs of a setting, beside those of others that were stored meanwhile."""
    with _locked():
        write({**load(), where: setting})


def write(settings: dict[str, Stored]) -> None:
    """All stored proofs, one a line, at once."""
    lines = []
    for where, setting in settings.items():
        proofs = ",\n  ".join(json.dumps(proof, ensure_ascii=False) for proof in setting["proofs"])
        rest = {k: v for k, v in setting.items() if k != "proofs"}
        head = json.dumps(rest, ensure_ascii=False)[:-1]
        lines.append(f'{json.dumps(where, ensure_ascii=False)}: {head}, "proofs": [\n  {proofs}]}}')
    fresh = STORE.with_suffix(f".{os.getpid()}")
    fresh.write_text('{"settings": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    fresh.replace(STORE)


def _same(stored: Stored, made: Any) -> bool:
    asked = {} if made.asked is None else {made.asked: made.argument}
    sides = [float(stored["claim"][side]) for side in ("lower", "upper")]
    return (
        stored["claim"]["quantity"] == made.quantity
        and stored["claim"]["asked"] == asked
        and stored["claim"]["adjacency"] == made.adjacency
        and sides == [made.lower, made.upper]
    )


def proven(group: str, setting: Setting, seconds: float, before: Stored | None) -> Stored:
    """A setting with its proofs, those from before where the same is claimed."""
    mechanism = spec.to_dict(setting.mechanism)["mechanism"]
    claims = [
        claim(question.quantity, bracket, "add_remove", question.asked)
        for question, bracket in zip(setting.questions, claimed(setting), strict=True)
    ]
    known = before["proofs"] if before and before["mechanism"] == mechanism else []
    found: list[Stored | None] = [
        next((each for each in known if _same(each, made) and each["verdict"] == "proven"), None)
        for made in claims
    ]
    missing = [i for i, each in enumerate(found) if each is None]
    if missing:
        fresh = prove_all(setting.mechanism, [claims[i] for i in missing], seconds)
        for i, proof in zip(missing, fresh, strict=True):
            found[i] = _short(proof.to_dict(), ())
    proofs = [
        {**(each or {}), "printed": list(question.printed)}
        for each, question in zip(found, setting.questions, strict=True)
    ]
    return {"group": group, "mechanism": mechanism, "proofs": proofs}


def _row(proof: Stored) -> str:
    made, bracket = proof["claim"], proof["bracket"]
    at = "".join(f" at {name} = {value:g}" for name, value in made["asked"].items())
    printed = f" (printed: {', '.join(proof['printed'])})" if proof["printed"] else ""
    sides = [
        rounded_outward(float(value), up=up)
        for value, up in (
            (made["lower"], False),
            (made["upper"], True),
            (bracket["lower"], False),
            (bracket["upper"], True),
        )
    ]
    return f"| {made['quantity']}{at}{printed} | {' | '.join(sides)} | {proof['verdict']} |"


def page(settings: dict[str, Stored]) -> str:
    """The page, from stored proofs alone."""
    sections, left = [], []
    for group in GROUPS:
        lines = [f"## {group}", ""]
        for where, setting in settings.items():
            if setting["group"] == group and not setting["proofs"]:
                left.append(f"- {where}: not computed yet; `make proofs` does.")
            elif setting["group"] == group:
                lines += [f"**{where}**", "", TITLES, *map(_row, setting["proofs"]), ""]
                left += [
                    f"- {where}, {proof['claim']['quantity']}: {proof['reason']}."
                    for proof in setting["proofs"]
                    if proof["verdict"] == "undecided"
                ]
        sections.append("\n".join(lines))
    verdicts = [proof["verdict"] for each in settings.values() for proof in each["proofs"]]
    count = f"{verdicts.count('proven')} of {len(verdicts)} numbers are proven.\n\n"
    others = "; ".join(f"{digits} ({why})" for digits, why in ELSEWHERE.items())
    rest = [
        f"- Other numbers of the README: {others}.",
        "- Numbers of other mechanisms (shuffled batches, fixed sizes, random allocation, profiles,"
        f" densities and others): proofs know {', '.join(provable())}.",
        "- [The registry](registry.md): of a stated ρ the upper sides follow from Rényi"
        " divergences, which no single mechanism reaches; their lower sides are proven, of Gaussian"
        " noise.",
        "- Curves of the papers' figures, at every setting of a grid: those with a printed number"
        " are settings of this page. Liu's μ of heads and Negoescu's estimates are of no such"
        " mechanism.",
        "- Brackets whose sides are of different laws, which no proof brings together.",
    ]
    tail = "\n".join(["## What is not proven, and why", "", *left, *rest, ""])
    return HEAD + count + "\n".join(sections) + "\n" + tail


def main(seconds: float = SECONDS, part: str = "") -> int:
    """Prove what is not proven yet and write the page; 1 if a number is refuted."""
    names = []
    for group, made in GROUPS.items():
        if group == "README" and not part.startswith(group[: len(part)]):
            continue  # (its settings are found by calibrations)
        for setting in made():
            names.append(setting.where)
            if part in setting.where:
                found = proven(group, setting, seconds, load().get(setting.where))
                print(setting.where, [proof["verdict"] for proof in found["proofs"]], flush=True)
                keep(setting.where, found)
    with _locked():
        stored = load()
        if not part:
            stored = {name: stored[name] for name in names}
            write(stored)
        PAGE.write_text(page(stored), encoding="utf-8")
    every = [proof["verdict"] for each in stored.values() for proof in each["proofs"]]
    return 1 if "refuted" in every else 0


if __name__ == "__main__":
    asked = [*sys.argv[1:], *(str(SECONDS), "")[len(sys.argv) - 1 :]]
    sys.exit(main(float(asked[0]), asked[1]))
