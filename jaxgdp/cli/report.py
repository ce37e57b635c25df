"""``jaxgdp report``, of one DP-SGD run, a description in a file, a deployment or a stored report;
``jaxgdp deployments``.
"""

from __future__ import annotations

import sys
from typing import Annotated

from .options import (
    FLOOR_HELP,
    FORCE_HELP,
    PROGRESS_HELP,
    QUIET_HELP,
    RTOL_HELP,
    SIGMA_HELP,
    cache_compiled_programs,
    need,
    number,
    numbers,
    option,
    typer,
    working,
    writable,
)

_MOST_DIFFERENCES = 10
FORMATS = {
    "text": (),
    "json": (),
    "markdown": (),
    "html": ("matplotlib",),
    "pdf": ("matplotlib", "fpdf"),
    "registry": ("yaml",),
}
_SUFFIXES = {
    ".txt": "text",
    ".json": "json",
    ".md": "markdown",
    ".html": "html",
    ".pdf": "pdf",
    ".yaml": "registry",
}


def report_command(
    noise_multiplier: Annotated[str | None, option("--noise-multiplier", help=SIGMA_HELP)] = None,
    num_steps: Annotated[
        str | None, option("--num-steps", help="Number of steps, a whole number >= 1.")
    ] = None,
    sampling_prob: Annotated[
        str | None,
        option(
            "--sampling-prob",
            help="Sampling rate in (0, 1]; fractions such as 16384/50000 are fine. [default: 1]",
        ),
    ] = None,
    spec: Annotated[
        str | None,
        option(
            "--spec", help="TOML or JSON file that describes a composed mechanism.", metavar="PATH"
        ),
    ] = None,
    deployment: Annotated[
        str | None,
        option(
            "--deployment",
            help="A real deployment, such as census_2020_pl94_persons.",
            metavar="NAME",
        ),
    ] = None,
    stored: Annotated[
        str | None,
        option(
            "--from",
            help="A JSON report to compute again and compare: exit code 1 if it differs.",
            metavar="PATH",
        ),
    ] = None,
    fpr_floor: Annotated[
        str | None, option("--fpr-floor", help=f"{FLOOR_HELP} [default: 1e-10]")
    ] = None,
    rtol: Annotated[str | None, option("--rtol", help=f"{RTOL_HELP} [default: 1e-3]")] = None,
    delta: Annotated[
        list[str] | None,
        option(
            "--delta",
            help=(
                "Deltas at which to give epsilon, repeated or comma-separated. [default:"
                " 1e-3,1e-5,1e-6,1e-10]"
            ),
        ),
    ] = None,
    approximation: Annotated[
        str | None,
        option("--approximation", help="d of the d-approximate mu, in (0, 1). [default: 1e-10]"),
    ] = None,
    adjacency: Annotated[
        str | None,
        option(
            "--adjacency",
            help="add_remove, add, remove or replace_one. [default: add_remove]",
            metavar="TEXT",
        ),
    ] = None,
    form: Annotated[
        str | None,
        option(
            "--format",
            help=f"{', '.join(FORMATS)}. [default: what the name of --output ends in, else text]",
            metavar="TEXT",
        ),
    ] = None,
    output: Annotated[
        str | None, option("--output", help="File to write instead of stdout.", metavar="PATH")
    ] = None,
    metadata: Annotated[
        str | None,
        option(
            "--metadata",
            help=(
                "TOML, JSON or YAML file with what a registry asks for beside the numbers (--format"
                " registry)."
            ),
            metavar="PATH",
        ),
    ] = None,
    json: Annotated[
        bool, option("--json", help="The same as --format json.", metavar=None)
    ] = False,
    markdown: Annotated[
        bool, option("--markdown", help="The same as --format markdown.", metavar=None)
    ] = False,
    force: Annotated[bool, option("--force", help=FORCE_HELP, metavar=None)] = False,
    quiet: Annotated[bool, option("--quiet", help=QUIET_HELP, metavar=None)] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Certified privacy of one DP-SGD run, of a described mechanism, or of a deployment.

    \b
    Examples:
      jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000
      jaxgdp report --spec topdown.toml --json > report.json
      jaxgdp report --deployment census_2020_pl94_persons --output report.html
      jaxgdp report --spec topdown.toml --format registry --metadata about.toml
      jaxgdp report --from report.json
    """
    run = {
        "--noise-multiplier": noise_multiplier,
        "--num-steps": num_steps,
        "--sampling-prob": sampling_prob,
    }
    sources = {"--spec": spec, "--deployment": deployment, "--from": stored}
    settings = {
        "fpr_floor": None if fpr_floor is None else number("--fpr-floor", fpr_floor),
        "rtol": None if rtol is None else number("--rtol", rtol),
        "approximation": (
            None if approximation is None else number("--approximation", approximation)
        ),
        "deltas": numbers("--delta", delta) if delta else None,
        "adjacency": adjacency,
    }
    _one_source(run, sources)
    form, path = _form(form, json, markdown, output, force, metadata)
    if stored is not None:
        with working("loading", quiet=quiet, always=progress) as told:
            given = [name for name, value in settings.items() if value is not None]
            code = _check(stored, given, form != "text" or path is not None, told)
        if code:
            raise typer.Exit(code)
        return
    with working("loading", quiet=quiet, always=progress) as told:
        mechanism = _mechanism(run, spec, deployment)
        about = {} if metadata is None else _about(metadata)
        from ..report import report

        cache_compiled_programs()
        told.describe("reporting")
        result = report(mechanism, **settings)
        if form in ("html", "pdf"):
            told.describe("drawing")
        text = _text(result, form, path, about)
    if path is not None:
        if text is not None:
            path.write_text(text + "\n", encoding="utf-8")
        if not quiet:
            print(f"wrote {path}")
    elif form == "text":
        _show(result)
    else:
        print(text)


def _form(form, json: bool, markdown: bool, output: str | None, force: bool, metadata: str | None):
    """(format, path or None), checked before anything is computed."""
    short = [name for name, given in (("json", json), ("markdown", markdown)) if given]
    if len(short) > 1:
        raise ValueError("give --json or --markdown, not both")
    if short and form is not None:
        raise ValueError(f"give --format or --{short[0]}, not both")
    path = None if output is None else writable("--output", output, force)
    named = short[0] if short else form
    if named is None:
        named = "text" if path is None else _SUFFIXES.get(path.suffix.lower(), "text")
    if named not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}, got {named!r}")
    if named == "pdf" and path is None:
        raise ValueError("--format pdf needs a file: --output report.pdf")
    if metadata is not None and named != "registry":
        raise ValueError("--metadata belongs to --format registry")
    need(*FORMATS[named])
    return named, path


def _about(path: str) -> dict:
    """What is given beside the numbers."""
    import tomllib
    from pathlib import Path

    from ..interop.registry import load
    from ..spec import read_text

    found = tomllib.loads(read_text(path)) if Path(path).suffix.lower() == ".toml" else load(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: must hold a table of keys, got {type(found).__name__}")
    return found


def _text(result, form: str, path, about: dict) -> str | None:
    """What is to be printed or written; None where it is a file already."""
    if form == "pdf":
        return result.to_pdf(path)
    if form == "registry":
        from ..interop.registry import dump

        return dump(result.to_registry(**about)).rstrip()
    ways = {
        "text": result.__str__,
        "json": result.to_json,
        "markdown": result.to_markdown,
        "html": result.to_html,
    }
    return ways[form]()


def deployments_command(
    name: Annotated[
        str | None,
        typer.Argument(help="Which one. [default: list all]", metavar="NAME") if typer else None,
    ] = None,
    markdown: Annotated[
        bool, option("--markdown", help="Print Markdown instead of text.", metavar=None)
    ] = False,
) -> None:
    """The deployments that this package knows; of one, its table, source and citation.

    \b
    Example:
      jaxgdp deployments census_2020_pl94_persons
    """
    from .. import deployments

    if name is not None:
        record = deployments.about(name)
        print(record.to_markdown() if markdown else record)
        return
    records = [deployments.about(each) for each in deployments.names()]
    width = max(len(record.name) for record in records)
    for record in records:
        print(
            f"- `{record.name}`: {record.title}"
            if markdown
            else f"{record.name:<{width}}  {record.title}"
        )


def _one_source(run: dict, sources: dict) -> None:
    """Exactly one way of saying what to report on."""
    chosen = [name for name, value in sources.items() if value is not None]
    options = [name for name, value in run.items() if value is not None]
    if len(chosen) > 1 or (chosen and options):
        raise ValueError(f"give one of {', '.join([*chosen, *options])}, not several")
    if not chosen:
        missing = [name for name in ("--noise-multiplier", "--num-steps") if run[name] is None]
        if missing:
            raise ValueError(f"missing {' and '.join(missing)} (or one of {', '.join(sources)})")


def _mechanism(run: dict, spec: str | None, deployment: str | None):
    from ..mechanisms import dpsgd
    from ..spec import from_deployment, read_spec

    if spec is not None:
        return read_spec(spec)
    if deployment is not None:
        return from_deployment(deployment)
    found = {
        name[2:].replace("-", "_"): 1.0 if text is None else number(name, text)
        for name, text in run.items()
    }
    return dpsgd(**found)


def _show(result) -> None:
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


def _check(path: str, given: list[str], other_form: bool, told) -> int:
    """Compute a stored report again; exit code 1 if it says anything else."""
    if given or other_form:
        raise ValueError("--from takes everything from the stored report: give no other option")
    from ..report import Report, differences, recompute
    from ..spec import read_json

    data = read_json(path)
    try:
        old = Report.from_dict(data)
        cache_compiled_programs()
        told.describe("computing again")
        found = differences(old, fresh := recompute(old))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if "command" in data and data["command"] != old.command:
        found.append(f"command: stored {data['command']!r}, computed {old.command!r}")
    versions = (
        ""
        if old.version == fresh.version
        else f" (stored by jaxgdp {old.version}, computed by {fresh.version})"
    )
    if found:
        print(
            f"jaxgdp: {path} does not agree with its own specification{versions}:", file=sys.stderr
        )
        for line in found[:_MOST_DIFFERENCES]:
            print(f"  {line}", file=sys.stderr)
        if len(found) > _MOST_DIFFERENCES:
            print(f"  and {len(found) - _MOST_DIFFERENCES} more", file=sys.stderr)
        return 1
    print(f"{path}: computed again, every number agrees{versions}")
    return 0
