"""``jaxgdp prove``: a report, one number, or a certificate, in exact arithmetic."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import options
from ..numerics.optional import how_to_install
from ..vocabulary import did_you_mean
from .command import command
from .options import (
    FORCE,
    argument,
    cache_compiled_programs,
    flag,
    given,
    number,
    option,
    progress_options,
    shared,
    tell_written,
    working,
    writable,
)

if TYPE_CHECKING:
    from ..mechanisms import Composition
    from ..proof import Proof

_RUN = ("noise_multiplier", "num_steps", "sampling_prob")
_ARGUMENTS = ("delta", "epsilon", "fpr", "prior", "approximation", "fpr_floor")
_MAX_SECONDS = 60.0


def _options() -> list[Any]:
    return [
        argument("report", required=False),
        *(shared(name) for name in _RUN),
        option("mechanism", "TOML or JSON file that describes a mechanism.", metavar="PATH"),
        option("deployment", "A real deployment, such as census_2020_pl94_persons.",
               metavar="NAME"),
        option("quantity", "Which number to prove.", metavar="NAME"),
        option("lower", "Lower side of the claim.", read=number),
        option("upper", "Upper side of the claim. Without sides, what jaxgdp finds is proven.",
               read=number),
        *(option(name, f"The {name.replace('_', ' ')} that the quantity is asked at.", read=number)
          for name in _ARGUMENTS),
        shared("adjacency"),
        option("max-seconds", "How long to look.", default=_MAX_SECONDS, read=number,
               to="max_seconds"),
        option("check", "A certificate to check and to compute again.", metavar="PATH"),
        option("output", "File to write the certificates to.", metavar="PATH"),
        flag("json", "Print the certificates instead of text."),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp prove report.json --output certificates.json",
        "jaxgdp prove --noise-multiplier 1.1 --sampling-prob 0.01 --num-steps 1000"
        " --quantity epsilon --delta 1e-5 --upper 2.1",
        "jaxgdp prove --mechanism topdown.toml --quantity mu",
        "jaxgdp prove --check certificates.json",
    ),
)
def prove_command(
    report: str | None,
    mechanism: str | None,
    deployment: str | None,
    quantity: str | None,
    lower: float | None,
    upper: float | None,
    adjacency: str | None,
    max_seconds: float | None,
    check: str | None,
    output: str | None,
    json: bool,
    force: bool,
    **numbers: Any,
) -> int:
    """Prove or refute numbers in exact integers and ball arithmetic (exit code 1 unless all are
    proven)."""
    if importlib.util.find_spec("flint") is None:
        raise ValueError(f"this command needs python-flint: {how_to_install('proof')}")
    run = given(**{name: numbers.pop(name) for name in _RUN})
    asked = given(**numbers)
    path = writable("--output", output, force)
    sources = {
        "REPORT": report,
        "--mechanism": mechanism,
        "--deployment": deployment,
        "--check": check,
        "--noise-multiplier": run or None,
    }
    chosen = [name for name, value in sources.items() if value is not None]
    if len(chosen) != 1:
        raise ValueError(f"give one of {', '.join(sources)}; got {' and '.join(chosen) or 'none'}")
    seconds = _MAX_SECONDS if max_seconds is None else max_seconds
    of_one = given(quantity=quantity, lower=lower, upper=upper, adjacency=adjacency, **asked)
    if (report is not None or check is not None) and of_one:
        raise ValueError(f"{chosen[0]} says what is claimed: give no --{next(iter(of_one))}")
    if report is None and check is None and quantity is None:
        raise ValueError("give --quantity: which number to prove")
    with working("loading") as shown:
        if check is not None:
            shown.describe("computing again")
            proofs = _checked(check)
        elif report is not None:
            shown.describe("proving")
            proofs = _of_report(report, max(seconds, 300.0) if max_seconds is None else seconds)
        else:
            shown.describe("proving")
            built = _mechanism(run, mechanism, deployment)
            settings = given(adjacency=adjacency)
            proofs = [_of_one(built, str(quantity), lower, upper, seconds, asked, settings)]
    return _tell(proofs, path, json)


def _mechanism(run: dict[str, float], path: str | None, deployment: str | None) -> Composition:
    from ..mechanisms import dpsgd
    from ..spec import from_deployment, read_spec

    if path is not None:
        return read_spec(path).mechanism
    if deployment is not None:
        return from_deployment(deployment).mechanism
    if "noise_multiplier" not in run:
        raise ValueError("missing --noise-multiplier")
    return dpsgd(**{name: run.get(name, 1.0) for name in _RUN})


def _of_one(
    mechanism: Composition,
    quantity: str,
    lower: float | None,
    upper: float | None,
    seconds: float,
    asked: dict[str, Any],
    settings: dict[str, Any],
) -> Proof:
    """One claim; what ``measure`` finds where none is made."""
    from ..proof import ARGUMENTS, prove

    if quantity not in ARGUMENTS:
        raise ValueError(
            f"--quantity must be one of {', '.join(ARGUMENTS)}, got {quantity!r}"
            f"{did_you_mean(quantity, ARGUMENTS)}"
        )
    if lower is None and upper is None:
        from ..measure import measure

        cache_compiled_programs()
        lower, upper = measure(mechanism, quantity, **asked, **settings)[quantity]
    sides = (-float("inf") if lower is None else lower, float("inf") if upper is None else upper)
    settings = {"adjacency": settings.get("adjacency", options.ADJACENCY)}
    return prove(mechanism, quantity, sides, seconds, **settings, **asked)


def _of_report(path: str, seconds: float) -> list[Proof]:
    from ..report import Report
    from ..report.proven import prove_report
    from ..spec import read_json

    try:
        return prove_report(Report.from_dict(read_json(path)), seconds).proofs
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checked(path: str) -> list[Proof]:
    from ..proof import check
    from ..spec import read_json

    content = read_json(path)
    held = content.get("certificates") if isinstance(content, dict) else None
    try:
        return [check(each) for each in ([content] if held is None else held)]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _tell(proofs: list[Proof], path: Path | None, as_json: bool) -> int:
    """Certificates to a file or to stdout, a line for each proof; the exit code."""
    content = [proof.to_dict() for proof in proofs]
    whole: Any = content[0] if len(content) == 1 else {"certificates": content}
    text = json.dumps(whole, indent=2, allow_nan=False)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
        tell_written(path)
    print(text if as_json else "\n".join(map(str, proofs)))
    bad = [proof for proof in proofs if proof.verdict != "proven"]
    if bad and as_json:
        print(f"jaxgdp: {len(bad)} of {len(proofs)} numbers are not proven", file=sys.stderr)
    return 1 if bad else 0
