"""``jaxgdp statement``: the privacy of a run in a sentence, a paragraph, a model card's block."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .command import command
from .options import (
    cache_compiled_programs,
    given,
    one_source,
    option,
    progress_options,
    shared,
    working,
)
from .runs import OPTIONS, check_run, run_of, run_options

_STYLES = ("sentence", "paragraph", "model-card", "latex")


def _style(flag: str, text: str) -> str:
    if text not in _STYLES:
        raise ValueError(f"{flag} must be one of {', '.join(_STYLES)}, got {text!r}")
    return text


def _options() -> list[Any]:
    return [
        *run_options(),
        option("spec", "TOML or JSON file that describes a mechanism or a run.", metavar="PATH"),
        option("deployment", "A real deployment, such as census_2020_pl94_persons.",
               metavar="NAME"),
        option("style", f"One of {', '.join(_STYLES)}.", metavar="NAME", default=_STYLES[0],
               read=_style),
        option("title", "What it is.", metavar="TEXT"),
        shared("delta", "δ at which to give ε"),
        shared("fpr_floor"),
        shared("rtol"),
        shared("adjacency"),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp statement --noise-multiplier 0.9 --dataset-size 45000 --batch-size 512"
        " --num-epochs 30",
        "jaxgdp statement --noise-multiplier 0.9 --dataset-size 45000 --batch-size 512"
        " --num-epochs 30 --sampler unknown --style model-card",
        "jaxgdp statement --spec release.toml --style latex",
    ),
)
def statement_command(
    spec: str | None, deployment: str | None, style: str | None, delta: float | None, **typed: Any
) -> None:
    """The privacy of a run in words: for Poisson batches, and if the data were shuffled."""
    run = {name: typed.pop(name) for name in OPTIONS}
    sources = {"a run": any(value is not None for value in run.values())}
    sources |= {"--spec": spec is not None, "--deployment": deployment is not None}
    if not any(sources.values()):
        check_run(run, "--spec, --deployment")
    if one_source(sources, "of ") == "a run":
        check_run(run)
    with working("loading") as shown:
        from ..report import report
        from ..spec import from_deployment, read_spec

        mechanism: Any
        if spec is not None:
            mechanism = read_spec(spec)
        else:
            mechanism = run_of(run) if deployment is None else from_deployment(deployment)
        cache_compiled_programs()
        shown.describe("measuring")
        settings: dict[str, Any] = given(**typed)
        settings |= {} if delta is None else {"delta": delta}
        found = report(mechanism, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = found.statement(style or _STYLES[0])
    print(text)
    for warning in caught:
        print(f"jaxgdp: warning: {warning.message}", file=sys.stderr)
