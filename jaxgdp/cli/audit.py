"""``jaxgdp audit``: scores in a file against a claim, as a line, a figure and JSON."""

from __future__ import annotations

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
from .score_rows import ScoreRows

if TYPE_CHECKING:
    from ..numerics.shapes import Array

_DEFAULTS = {"confidence": 0.95, "method": "bands", "threshold": 0.5}


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
        flag("sequential", "Look after every pair of runs and stop as soon as the claim is refuted,"
             " which is valid: exit code 3. SCORES may be - for stdin."),
        flag("follow", "With --sequential: wait for more rows at the end of the file."),
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
        "jaxgdp audit - --sequential --mu 1 < scores.csv",
        "jaxgdp audit canaries.csv --epsilon 4 --delta 1e-5 --method one-run --num-guesses 200",
    ),
)
def audit_command(
    scores: str,
    num_guesses: float | None,
    figure: str | None,
    json: str | None,
    force: bool,
    sequential: bool,
    follow: bool,
    **typed: Any,
) -> int:
    """Scores of an attack against a claim: consistent, or a bug is proven with this confidence.

    SCORES is a CSV file with the columns score and member. Larger scores mean "more likely a
    member". Rows of one run with many canaries need --method one-run. The exit code is 0 whatever
    the verdict, which is the first word of the line; with --sequential it is 3 if the claim is
    refuted.
    """
    drawn = _checked(figure, json, force)
    if sequential:
        _refuse_fixed(num_guesses, typed)
        return _sequential(scores, follow, drawn, json, typed)
    if follow:
        raise ValueError("--follow needs --sequential: only such an audit may be looked at again")
    asked: dict[str, Any] = {
        name: default if typed[name] is None else typed[name] for name, default in _DEFAULTS.items()
    }
    rows = read_scores(scores)
    with working("loading") as shown:
        claim, audit = _loaded(typed)
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
    _tell(found, figure, json)
    return 0


def _tell(found: Any, figure: str | Path | None, json: str | None) -> None:
    """The line, or JSON in its place or in a file."""
    if json == "-":
        print(found.to_json())
        return
    if json is not None:
        Path(json).write_text(found.to_json() + "\n", encoding="utf-8")
    print(found)
    tell_written(figure, json)


def _refuse_fixed(num_guesses: float | None, typed: dict[str, Any]) -> None:
    """Options of audits with a fixed size are refused by name."""
    given = [name for name in ("method", "threshold") if typed[name] is not None]
    given += ["num_guesses"] if num_guesses is not None else []
    if given:
        raise ValueError(f"{flag_name(given[0])} has no meaning with --sequential: leave it out")


def _sequential(
    source: str, follow: bool, drawn: Path | None, json: str | None, typed: dict[str, Any]
) -> int:
    """An audit that ends as soon as it refutes; its exit code."""
    from .sequential import REFUTED, run_sequential

    confidence = _DEFAULTS["confidence"] if typed["confidence"] is None else typed["confidence"]
    with working("loading") as shown:
        claim, audit = _loaded(typed)
        found = audit.Sequential(claim, cast(float, confidence))
        found, path = run_sequential(found, source, follow, shown)
    if drawn is not None:
        from ..plot import wealth_over_time

        panel = lambda figure: wealth_over_time(
            {found.text: path}, figure.add_subplot(), found.confidence
        )
        draw(drawn, (6.4, 4.2), panel, found.line, None)
    _tell(found, drawn, json)
    return REFUTED if found.refuted else 0


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

    rows = ScoreRows(str(path))
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows.read(file.readlines())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    rows.check()
    return np.array(rows.scores), np.array(rows.members)


def _scores_of(rows: tuple[Array, Array], kind: bool) -> Array:
    scores, members = rows
    chosen = scores[members == kind]
    if not len(chosen):
        raise ValueError(
            f"the scores hold no {'member' if kind else 'nonmember'}: both classes are needed"
        )
    return chosen


def _checked(figure: str | None, json: str | None, force: bool) -> Path | None:
    writable("--json", None if json == "-" else json, force)
    return figure_path("--figure", figure, force)


def _loaded(typed: dict[str, Any]) -> tuple[Any, Any]:
    """The claim that was given, and the audits' module, which takes a second to load."""
    claim = _claim(**{name: value for name, value in typed.items() if name not in _DEFAULTS})
    from .. import audit

    cache_compiled_programs()
    return claim, audit


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
