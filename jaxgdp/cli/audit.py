"""``jaxgdp audit``: scores in a file against a claim, as a line, a figure and JSON."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

from .options import (
    FORCE_HELP,
    PROGRESS_HELP,
    cache_compiled_programs,
    figure_path,
    need,
    number,
    option,
    typer,
    working,
    writable,
)

_TRUE, _FALSE = ("1", "true", "yes", "in", "member"), ("0", "false", "no", "out", "nonmember")


def audit_command(
    scores: Annotated[
        str,
        (
            typer.Argument(help="CSV file with the columns score and member.", metavar="SCORES")
            if typer
            else None
        ),
    ],
    mu: Annotated[
        str | None, option("--mu", help="Claim: this mu of Gaussian differential privacy.")
    ] = None,
    epsilon: Annotated[
        str | None, option("--epsilon", help="Claim: this epsilon, with --delta.")
    ] = None,
    delta: Annotated[
        str | None, option("--delta", help="Of the claimed epsilon, in [0, 1).")
    ] = None,
    spec: Annotated[
        str | None,
        option(
            "--spec",
            help="Claim: the mechanism that this TOML or JSON file describes.",
            metavar="PATH",
        ),
    ] = None,
    noise_multiplier: Annotated[
        str | None, option("--noise-multiplier", help="Claim: DP-SGD of this noise multiplier.")
    ] = None,
    sampling_prob: Annotated[
        str | None, option("--sampling-prob", help="Of DP-SGD. [default: 1]")
    ] = None,
    num_steps: Annotated[str | None, option("--num-steps", help="Of DP-SGD.")] = None,
    confidence: Annotated[str, option("--confidence", help="In [0.5, 1).")] = "0.95",
    method: Annotated[
        str,
        option(
            "--method",
            help=(
                "bands, split or threshold (a score for each run), or one-run (a score for each"
                " canary of one run)."
            ),
            metavar="TEXT",
        ),
    ] = "bands",
    threshold: Annotated[
        str, option("--threshold", help="For threshold: at or above it a score means member.")
    ] = "0.5",
    num_guesses: Annotated[
        str | None,
        option("--num-guesses", help="For one-run: how many of the surest guesses to make."),
    ] = None,
    figure: Annotated[
        str | None, option("--figure", help="Figure to write: .png, .pdf or .svg.", metavar="PATH")
    ] = None,
    json: Annotated[
        str | None,
        option("--json", help="JSON file to write; - prints it instead.", metavar="PATH"),
    ] = None,
    force: Annotated[bool, option("--force", help=FORCE_HELP, metavar=None)] = False,
    quiet: Annotated[
        bool, option("--quiet", help="Not a word about what is being done.", metavar=None)
    ] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Scores of an attack against a claim: consistent, or a bug is proven with this confidence.

    Larger scores mean "more likely a member". Rows of one run with many canaries need --method
    one-run. The exit code is 0 whatever the verdict; the first word of the line says it.

    \b
    Examples:
      jaxgdp audit scores.csv --noise-multiplier 1 --sampling-prob 0.01 --num-steps 1000
      jaxgdp audit scores.csv --mu 1 --figure audit.png --json audit.json
      jaxgdp audit canaries.csv --epsilon 4 --delta 1e-5 --method one-run --num-guesses 200
    """
    drawn = _checked(figure, json, force)
    run = {
        "noise_multiplier": noise_multiplier,
        "sampling_prob": sampling_prob,
        "num_steps": num_steps,
    }
    level, at = number("--confidence", confidence), number("--threshold", threshold)
    rows = read_scores(scores)
    with working("loading", quiet=quiet, always=progress) as told:
        claim = _claim(mu, epsilon, delta, spec, run)
        from .. import audit

        cache_compiled_programs()
        told.describe("auditing")
        if method == "one-run":
            if num_guesses is None:
                raise ValueError(
                    "--method one-run needs --num-guesses, decided on before looking at the scores"
                )
            guesses = number("--num-guesses", num_guesses)
            found = audit.one_run_verdict(claim, *rows, num_guesses=guesses, confidence=level)
        else:
            member, nonmember = (_scores_of(rows, kind) for kind in (True, False))
            found = audit.verdict(
                claim, member, nonmember, confidence=level, method=method, threshold=at
            )
    if drawn is not None:
        _draw(found, drawn)
    if json == "-":
        print(found.to_json())
        return
    if json is not None:
        Path(json).write_text(found.to_json() + "\n", encoding="utf-8")
    print(found)
    written = [str(path) for path in (figure, json) if path is not None]
    if written and not quiet:
        print(f"wrote {', '.join(written)}")


def read_scores(path):
    """Scores and membership from a CSV file with the columns ``score`` and ``member``, in any
    order, others ignored.

    Args:
        path: of the file; membership as 1 or 0, true or false, yes or no, in or out.

    Returns:
        (scores, truth values), arrays of one length.

    Raises:
        ValueError: the file cannot be read, a column is missing, or a row is malformed; names the
            file and the line.
    """
    import numpy as np

    scores, members = [], []
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            names = {str(name).strip().lower(): name for name in table.fieldnames or ()}
            missing = [name for name in ("score", "member") if name not in names]
            if missing:
                raise ValueError(
                    f"{path}: column {missing[0]!r} is missing; it has {', '.join(names) or 'none'}"
                )
            for row in table:
                score, member = ((row[names[name]] or "").strip() for name in ("score", "member"))
                if member.lower() not in _TRUE + _FALSE:
                    raise ValueError(
                        f"{path}, line {table.line_num}: member must be 1 or 0, got {member!r}"
                    )
                try:
                    scores.append(float(score))
                except ValueError:
                    raise ValueError(
                        f"{path}, line {table.line_num}: score must be a number, got {score!r}"
                    ) from None
                members.append(member.lower() in _TRUE)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if not scores:
        raise ValueError(f"{path}: has no scores")
    return np.array(scores), np.array(members)


def _scores_of(rows, kind: bool):
    scores, members = rows
    chosen = scores[members == kind]
    if not len(chosen):
        raise ValueError(
            f"the scores hold no {'member' if kind else 'nonmember'}: both classes are needed"
        )
    return chosen


def _checked(figure: str | None, json: str | None, force: bool) -> Path | None:
    if json is not None and json != "-":
        writable("--json", json, force)
    if figure is None:
        return None
    path = figure_path("--figure", figure, force)
    need("matplotlib")
    return path


def _claim(mu, epsilon, delta, spec, run: dict):
    """Exactly one claim."""
    given = {
        "--mu": mu is not None,
        "--epsilon": epsilon is not None or delta is not None,
        "--spec": spec is not None,
        "--noise-multiplier": any(text is not None for text in run.values()),
    }
    chosen = [name for name, there in given.items() if there]
    if len(chosen) != 1:
        raise ValueError(
            f"give one claim: {', '.join(given)}; got {' and '.join(chosen) or 'none'}"
        )
    if mu is not None:
        return number("--mu", mu)
    if given["--epsilon"]:
        if epsilon is None or delta is None:
            raise ValueError("a claim of epsilon needs both --epsilon and --delta")
        return number("--epsilon", epsilon), number("--delta", delta)
    if spec is not None:
        from ..spec import read_spec

        return read_spec(spec)
    missing = [name for name in ("noise_multiplier", "num_steps") if run[name] is None]
    if missing:
        raise ValueError(f"missing --{missing[0].replace('_', '-')}")
    from ..mechanisms import dpsgd

    return dpsgd(
        **{k: 1.0 if v is None else number("--" + k.replace("_", "-"), v) for k, v in run.items()}
    )


def _draw(found, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..plot import audit_verdict, save

    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    audit_verdict(found, figure.add_subplot())
    save(figure, path, question=found.line, fpr_floor=found.stated.fpr_floor)
