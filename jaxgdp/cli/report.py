"""``jaxgdp report``: of one run, a description, a deployment or a stored report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import options
from ..report.formats import FORMATS, Format, named, of_path
from .command import command
from .options import (
    FORCE,
    argument,
    cache_compiled_programs,
    flag,
    flag_name,
    given,
    need,
    option,
    progress_options,
    shared,
    tell_written,
    working,
    writable,
)
from .runs import OPTIONS, check_run, run_of, run_options

if TYPE_CHECKING:
    from ..mechanisms import Composition
    from ..progress import Progress
    from ..report import Report
    from ..run_settings import Run
    from ..spec import Spec

_MOST_DIFFERENCES = 10
_SHORT = ("json", "markdown")  # formats that have an option of their own
_AUDIENCES = ("legal", "paper", "card")


def _options() -> list[Any]:
    return [
        *run_options(),
        option("spec", "TOML or JSON file that describes a composed mechanism.", metavar="PATH"),
        option("deployment", "A real deployment, such as census_2020_pl94_persons.",
               metavar="NAME"),
        option("from", "A JSON report to compute again and compare: exit code 1 if it differs.",
               metavar="PATH", to="stored"),
        shared("fpr_floor"),
        shared("rtol"),
        shared("delta", "δ at which to give ε", many=True, default=options.REPORT_DELTAS),
        shared("fpr", "FPR at which to give the TPR", many=True, default="1e-10, 1e-9, ..., 0.1"),
        shared("approximation", "probability d that is set aside by the d-approximate μ"),
        shared("adjacency"),
        option("title", "What it is.", metavar="TEXT"),
        option("tuning", "Law of the number of runs of which the best was published, such as"
               " geometric:10, logarithmic:10, poisson:10, negative_binomial:10:0.5 or fixed:5.",
               metavar="LAW", read=_law),
        option("for", f"For one kind of reader, one of {', '.join(_AUDIENCES)}: Markdown or HTML,"
               " LaTeX, Markdown.", metavar="NAME", read=_audience, to="reader"),
        option("format", f"{', '.join(FORMATS)}. [default: what the name of --output ends in, else"
               " text]", metavar="TEXT", to="form"),
        option("output", "File to write instead of stdout.", metavar="PATH"),
        option("metadata", "TOML, JSON or YAML file with what a registry requires beside the"
               " numbers (--format registry).", metavar="PATH"),
        *(flag(name, f"The same as --format {name}.") for name in _SHORT),
        flag("prove", "Prove every number in exact arithmetic, and say so; takes minutes."),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp report --noise-multiplier 9.4 --sampling-prob 16384/50000 --num-steps 2000",
        "jaxgdp report --noise-multiplier 0.9 --dataset-size 45000 --batch-size 512 --num-epochs 30"
        " --sampler unknown --output report.html",
        "jaxgdp report --spec topdown.toml --json > report.json",
        "jaxgdp report --deployment census_2020_pl94_persons --output report.html",
        "jaxgdp report --spec topdown.toml --format registry --metadata about.toml",
        "jaxgdp report --from report.json",
    ),
)
def report_command(
    spec: str | None,
    deployment: str | None,
    stored: str | None,
    form: str | None,
    output: str | None,
    metadata: str | None,
    reader: str | None,
    json: bool,
    markdown: bool,
    prove: bool,
    force: bool,
    **numbers: Any,
) -> int:
    """Certified privacy of one DP-SGD run, of a described mechanism, or of a deployment."""
    run = {name: numbers.pop(name) for name in OPTIONS}
    settings = given(**numbers)
    _one_source(run, {"--spec": spec, "--deployment": deployment, "--from": stored})
    short = [name for name, chosen in zip(_SHORT, (json, markdown), strict=True) if chosen]
    if reader is not None:
        _no_form(form, short, metadata, stored)
    kind, path = _form(form, short, output, force, metadata)
    reader_text = None if reader is None else _for_reader(reader, path)
    if stored is not None:
        with working("loading") as shown:
            settings |= {"prove": True} if prove else {}
            return _check(stored, list(settings), kind.name != "text" or path is not None, shown)
    with working("loading") as shown:
        mechanism = _mechanism(run, spec, deployment)
        about = {} if metadata is None else _about(metadata)
        from ..report import report

        cache_compiled_programs()
        shown.describe("reporting")
        result = report(mechanism, **settings)
        if prove:
            from ..report.proven import prove_report

            shown.describe("proving")
            result = prove_report(result).report
        shown.describe("writing")
        if reader_text is not None:
            text = reader_text(result)
            if path is not None:
                path.write_text(text + "\n", encoding="utf-8")
        else:
            if path is not None:
                kind.save(result, path, **about)
            text = "" if path is not None or kind.text is None else kind.text(result, **about)
    if path is not None:
        tell_written(path)
    elif reader is None and kind.name == "text":
        _show(result)
    else:
        print(text)
    return 0


def _law(flag: str, text: str) -> Any:
    from ..mechanisms.runs import parse

    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def _audience(flag: str, text: str) -> str:
    if text not in _AUDIENCES:
        raise ValueError(f"{flag} must be one of {', '.join(_AUDIENCES)}, got {text!r}")
    return text


def _no_form(form: str | None, short: list[str], metadata: str | None, stored: str | None) -> None:
    """Refuse what does not go with ``--for``."""
    others = {"--format": form, "--metadata": metadata, "--from": stored}
    given = [name for name, value in others.items() if value is not None]
    if given or short:
        raise ValueError(
            f"--for has a form of its own: leave out {(given or [flag_name(short[0])])[0]}"
        )


def _for_reader(reader: str, path: Path | None) -> Callable[[Report], str]:
    """What makes the text for one kind of reader."""
    from ..report.audience import named as audience

    chosen = audience(reader)
    return chosen.text if path is None else chosen.of_path(path)


def _form(
    form: str | None, short: list[str], output: str | None, force: bool, metadata: str | None
) -> tuple[Format, Path | None]:
    """The format and the path or None, checked before anything is computed."""
    if len(short) > 1:
        raise ValueError("give --json or --markdown, not both")
    if short and form is not None:
        raise ValueError(f"give --format or --{short[0]}, not both")
    path = writable("--output", output, force)
    name = short[0] if short else form
    chosen = of_path(path or "") if name is None else named(name, "--format")
    if chosen.text is None and path is None:
        raise ValueError(f"--format {chosen.name} needs a file: --output report{chosen.suffix}")
    if metadata is not None and not chosen.metadata:
        takes = " or ".join(each.name for each in FORMATS.values() if each.metadata)
        raise ValueError(f"--metadata belongs to --format {takes}")
    need(*chosen.needs)
    return chosen, path


def _about(path: str) -> dict[str, Any]:
    """The options beside the numbers."""
    import tomllib

    from ..interop.registry import load
    from ..spec import read_text

    found = tomllib.loads(read_text(path)) if Path(path).suffix.lower() == ".toml" else load(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: must hold a table of keys, got {type(found).__name__}")
    return found


@command(
    lambda: [argument("name", required=False), flag("markdown", "Print Markdown instead of text.")],
    ("jaxgdp deployments census_2020_pl94_persons",),
)
def deployments_command(name: str | None, markdown: bool) -> None:
    """The deployments of this package; with a name, the table, source and citation of that
    deployment."""
    from .. import deployments

    if name is not None:
        found = deployments.about(name)
        print(found.to_markdown() if markdown else found)
        return
    known = [deployments.about(each) for each in deployments.names()]
    width = max(len(each.name) for each in known)
    for each in known:
        name = f"- `{each.name}`:" if markdown else f"{each.name:<{width}} "
        print(name, each.title)


def _one_source(run: dict[str, Any], sources: dict[str, str | None]) -> None:
    """Exactly one way of saying what to report on."""
    chosen = [name for name, value in sources.items() if value is not None]
    typed = [flag_name(name) for name, value in run.items() if value is not None]
    if len(chosen) > 1 or (chosen and typed):
        raise ValueError(f"give one of {', '.join([*chosen, *typed])}, not several")
    if not chosen:
        check_run(run, ", ".join(sources))


def _mechanism(
    run: dict[str, Any], spec: str | None, deployment: str | None
) -> Composition | Run | Spec:
    from ..spec import from_deployment, read_spec

    if spec is not None:
        return read_spec(spec)
    return run_of(run) if deployment is None else from_deployment(deployment)


def _show(result: Report) -> None:
    """A rich table on a terminal, plain text elsewhere."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            Console().print(result)
            return
    print(result)


def _check(path: str, settings: list[str], other_form: bool, shown: Progress) -> int:
    """Compute a stored report again; exit code 1 if the result differs."""
    if settings or other_form:
        raise ValueError("--from takes everything from the stored report: give no other option")
    from ..report import Report, differences, recompute
    from ..spec import read_json

    data = read_json(path)
    try:
        old = Report.from_dict(data)
        cache_compiled_programs()
        shown.describe("computing again")
        found = differences(old, fresh := recompute(old))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if "command" in data and data["command"] != old.command:
        found.append(f"command: stored {data['command']!r}, computed {old.command!r}")
    versions = ""
    if old.version != fresh.version:
        versions = f" (stored by jaxgdp {old.version}, computed by {fresh.version})"
    if not found:
        print(f"{path}: computed again, every number agrees{versions}")
        return 0
    lines = [f"jaxgdp: {path} does not agree with its own specification{versions}:"]
    lines += [f"  {line}" for line in found[:_MOST_DIFFERENCES]]
    if len(found) > _MOST_DIFFERENCES:
        lines.append(f"  and {len(found) - _MOST_DIFFERENCES} more")
    print("\n".join(lines), file=sys.stderr)
    return 1
