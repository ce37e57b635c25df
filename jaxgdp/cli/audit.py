"""``jaxgdp audit``: scores in a file against a claim, as a line, a figure and JSON."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .command import command
from .options import (
    FIGURE,
    FORCE,
    argument,
    cache_compiled_programs,
    draw,
    figure_path,
    flag,
    flag_name,
    number,
    one_source,
    option,
    progress_options,
    shared,
    tell_written,
    working,
    writable,
)

if TYPE_CHECKING:
    from ..numerics.shapes import Array

_DEFAULTS = {"confidence": 0.95, "method": "bands", "threshold": 0.5}
_TRUE, _FALSE = ("1", "true", "yes", "in", "member"), ("0", "false", "no", "out", "nonmember")


def _options() -> list[Any]:
    return [
        argument("scores"),
        option("mu", "Claim: this μ of Gaussian differential privacy.", read=number),
        option("epsilon", "Claim: this ε, with --delta.", read=number),
        option("delta", "δ of the claimed ε, in [0, 1).", read=number),
        option("spec", "Claim: the mechanism that this TOML or JSON file describes.",
               metavar="PATH"),
        shared("noise_multiplier", "claim: DP-SGD with this noise multiplier"),
        shared("sampling_prob"),
        shared("num_steps"),
        option("confidence", "Confidence of the verdict, in [0.5, 1).", read=number,
               default=_DEFAULTS["confidence"]),
        option("method", "bands, split or threshold (a score for each run), or one-run (a score for"
               " each canary of one run).", metavar="TEXT", default=_DEFAULTS["method"]),
        option("threshold", "For threshold: at or above it a score means member.",
               default=_DEFAULTS["threshold"], read=number),
        option("num_guesses", "For one-run: how many of the surest guesses to make.", read=number),
        option("figure", FIGURE, metavar="PATH"),
        option("json", "JSON file to write; - prints it instead.", metavar="PATH"),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp audit scores.csv --noise-multiplier 1 --sampling-prob 0.01 --num-steps 1000",
        "jaxgdp audit scores.csv --mu 1 --figure audit.png --json audit.json",
        "jaxgdp audit canaries.csv --epsilon 4 --delta 1e-5 --method one-run --num-guesses 200",
    ),
)
def audit_command(
    scores: str,
    num_guesses: float | None,
    figure: str | None,
    json: str | None,
    force: bool,
    **typed: Any,
) -> None:
    """Scores of an attack against a claim: consistent, or a bug is proven with this confidence.

    SCORES is a CSV file with the columns score and member. Larger scores mean "more likely a
    member". Rows of one run with many canaries need --method one-run. The exit code is 0 whatever
    the verdict, which is the first word of the line.
    """
    drawn = _checked(figure, json, force)
    asked: dict[str, Any] = {
        name: default if typed[name] is None else typed[name] for name, default in _DEFAULTS.items()
    }
    rows = read_scores(scores)
    with working("loading") as shown:
        claim = _claim(**{name: value for name, value in typed.items() if name not in _DEFAULTS})
        from .. import audit

        cache_compiled_programs()
        shown.describe("auditing")
        if asked["method"] == "one-run":
            if num_guesses is None:
                raise ValueError(
                    "--method one-run needs --num-guesses, decided on before looking at the scores"
                )
            found = audit.one_run_verdict(
                claim, *rows, num_guesses=cast(int, num_guesses), confidence=asked["confidence"]
            )
        else:
            member, nonmember = (_scores_of(rows, kind) for kind in (True, False))
            found = audit.verdict(claim, member, nonmember, **asked)
    if drawn is not None:
        from ..plot import audit_verdict

        panel = lambda figure: audit_verdict(found, figure.add_subplot())
        draw(drawn, (5.2, 4.6), panel, found.line, found.stated.fpr_floor)
    if json == "-":
        print(found.to_json())
        return
    if json is not None:
        Path(json).write_text(found.to_json() + "\n", encoding="utf-8")
    print(found)
    tell_written(figure, json)


def read_scores(path: str | Path) -> tuple[Array, Array]:
    """Scores and membership from a CSV file with columns ``score`` and ``member`` in any order.

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


def _scores_of(rows: tuple[Array, Array], kind: bool) -> Array:
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
    return None if figure is None else figure_path("--figure", figure, force)


def _claim(
    mu: float | None,
    epsilon: float | None,
    delta: float | None,
    spec: str | None,
    **run: float | None,
) -> Any:
    """Exactly one claim."""
    claims = {
        "--mu": mu is not None,
        "--epsilon": epsilon is not None or delta is not None,
        "--spec": spec is not None,
        "--noise-multiplier": any(value is not None for value in run.values()),
    }
    one_source(claims, "claim: ")
    if mu is not None:
        return mu
    if claims["--epsilon"]:
        if epsilon is None or delta is None:
            raise ValueError("a claim of epsilon needs both --epsilon and --delta")
        return epsilon, delta
    if spec is not None:
        from ..spec import read_spec

        return read_spec(spec)
    missing = [name for name in ("noise_multiplier", "num_steps") if run[name] is None]
    if missing:
        raise ValueError(f"missing {flag_name(missing[0])}")
    from ..mechanisms import dpsgd

    return dpsgd(**{name: 1.0 if value is None else value for name, value in run.items()})
