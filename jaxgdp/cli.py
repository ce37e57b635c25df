"""The command line: ``jaxgdp report``, ``jaxgdp landscape`` and ``jaxgdp reproduce``."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import Annotated

from ._version import __version__

try:
    import typer
except ImportError:
    typer = None

_EXTRAS = {"rich": "cli", "xarray": "sweep", "h5netcdf": "sweep", "h5py": "sweep", "matplotlib": "plot"}
_FIGURE_SUFFIXES = (".png", ".pdf", ".svg")
_MOST_RATES = 100_000


def _number(option: str, text: str) -> float:
    """A number or a fraction such as 16384/50000."""
    try:
        top, slash, bottom = text.partition("/")
        return float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{option} must be a number, got {text!r}") from None


def _numbers(option: str, texts) -> list[float]:
    """Numbers from a repeated option or comma-separated lists."""
    return [_number(option, piece) for text in texts for piece in text.split(",")]


def _need(*modules: str) -> None:
    """Fail before computing if an optional package is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ValueError(f"this command needs {module}: pip install 'jaxgdp[{_EXTRAS[module]}]'")


def _writable(option: str, text: str) -> Path:
    """An output path whose folder exists, checked before hours of work."""
    path = Path(text)
    if not text or path.is_dir():
        raise ValueError(f"{option} must be the path of a file, got {text!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must lie in an existing folder, got {text!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} must be writable, got {text!r}")
    return path


def _cache_compiled_programs() -> None:
    """Keep compiled programs between runs of this command line, per user and machine; never essential."""
    if os.environ.get("JAXGDP_NO_CACHE", "") not in ("", "0") or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    with contextlib.suppress(Exception):
        import jax

        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) / "jaxgdp" / (platform.node() or "local")
        folder.mkdir(parents=True, exist_ok=True)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_compilation_cache_min_compile_time_secs", 0.5)


def _option(*names: str, help: str, metavar: str | None = "NUMBER"):
    return typer.Option(*names, help=help, metavar=metavar) if typer else None


_SIGMA = "Noise multiplier, > 0."
_FLOOR_HELP = "Smallest FPR at which mu must hold, in [1e-300, 0.5)."
_RTOL_HELP = "Relative width asked of the mu bracket, in [1e-8, 1)."


def report_command(
    noise_multiplier: Annotated[str, _option("--noise-multiplier", help=_SIGMA)],
    num_steps: Annotated[str, _option("--num-steps", help="Number of steps, a whole number >= 1.")],
    sampling_prob: Annotated[
        str, _option("--sampling-prob", help="Sampling rate in (0, 1]; fractions such as 16384/50000 are fine.")
    ] = "1.0",
    fpr_floor: Annotated[str, _option("--fpr-floor", help=_FLOOR_HELP)] = "1e-10",
    rtol: Annotated[str, _option("--rtol", help=_RTOL_HELP)] = "1e-3",
    delta: Annotated[
        list[str] | None,
        _option(
            "--delta",
            help="Deltas at which to give epsilon, repeated or comma-separated. [default: 1e-3,1e-5,1e-6,1e-10]",
        ),
    ] = None,
    adjacency: Annotated[str, _option("--adjacency", help="add_remove, add, remove or replace_one.", metavar="TEXT")] = "add_remove",
    json: Annotated[bool, _option("--json", help="Print JSON instead of text.", metavar=None)] = False,
) -> None:
    """Certified privacy of one DP-SGD run.

    \b
    Example:
      jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000
    """
    numbers = {
        "noise_multiplier": _number("--noise-multiplier", noise_multiplier),
        "sampling_prob": _number("--sampling-prob", sampling_prob),
        "num_steps": _number("--num-steps", num_steps),
    }
    settings = {"rtol": _number("--rtol", rtol), "fpr_floor": _number("--fpr-floor", fpr_floor), "adjacency": adjacency}
    if delta:
        settings["deltas"] = _numbers("--delta", delta)
    from .mechanisms import dpsgd
    from .report import report

    mechanism = dpsgd(**numbers)
    _cache_compiled_programs()
    result = report(mechanism, **settings)
    print(result.to_json() if json else result)


def landscape_command(
    noise_multiplier: Annotated[
        list[str] | None,
        _option("--noise-multiplier", help="Noise multipliers, repeated or comma-separated. [default: 0.5 to 8]"),
    ] = None,
    num_steps: Annotated[
        list[str] | None,
        _option("--num-steps", help="Numbers of steps, repeated or comma-separated. [default: 400,1000,2000]"),
    ] = None,
    sampling_prob: Annotated[
        list[str] | None,
        _option("--sampling-prob", help="Sampling rates, repeated or comma-separated; replaces the range below."),
    ] = None,
    sampling_probs_number: Annotated[
        str, _option("--sampling-probs-number", help="How many log-spaced sampling rates.")
    ] = "64",
    min_sampling_prob: Annotated[str, _option("--min-sampling-prob", help="Smallest sampling rate.")] = "1e-4",
    max_sampling_prob: Annotated[str, _option("--max-sampling-prob", help="Largest sampling rate.")] = "1",
    fpr_floor: Annotated[str, _option("--fpr-floor", help=_FLOOR_HELP)] = "1e-10",
    rtol: Annotated[str, _option("--rtol", help=_RTOL_HELP)] = "1e-3",
    csv: Annotated[str, _option("--csv", help="CSV file to write.", metavar="PATH")] = "landscape.csv",
    netcdf: Annotated[str, _option("--netcdf", help="NetCDF file to write.", metavar="PATH")] = "landscape.nc",
    figure: Annotated[
        str, _option("--figure", help="Figure to write: .png, .pdf or .svg.", metavar="PATH")
    ] = "landscape.png",
    quiet: Annotated[bool, _option("--quiet", help="No progress bar and no summary.", metavar=None)] = False,
) -> None:
    """Regret of reporting mu over a grid of DP-SGD settings: figure, CSV, NetCDF and a summary.

    \b
    Example:
      jaxgdp landscape --noise-multiplier 1,2,4 --num-steps 400,2000 --figure regret.pdf
    """
    paths = [_writable("--csv", csv), _writable("--netcdf", netcdf), _writable("--figure", figure)]
    if paths[2].suffix.lower() not in _FIGURE_SUFFIXES:
        raise ValueError(f"--figure must end in {', '.join(_FIGURE_SUFFIXES)}, got {figure!r}")
    _need("xarray", "h5netcdf", "h5py", "matplotlib", "rich")
    settings = {"rtol": _number("--rtol", rtol), "fpr_floor": _number("--fpr-floor", fpr_floor)}
    if sampling_prob:
        rates = _numbers("--sampling-prob", sampling_prob)
    else:
        ends = [_number("--min-sampling-prob", min_sampling_prob), _number("--max-sampling-prob", max_sampling_prob)]
        rates = _log_spaced(ends, _number("--sampling-probs-number", sampling_probs_number))
    sigmas = _numbers("--noise-multiplier", noise_multiplier) if noise_multiplier else None
    steps = _numbers("--num-steps", num_steps) if num_steps else None
    _draw_landscape(paths, sigmas, rates, steps, settings, quiet)


def reproduce_command(
    paper: Annotated[str, typer.Argument(help="Which paper: gomez2025.", metavar="PAPER") if typer else None],
    output: Annotated[str, _option("--output", help="Folder to write to; made if missing.", metavar="DIR")],
    only: Annotated[
        list[str] | None,
        _option(
            "--only",
            help="A figure or table, such as figure-3, repeated or comma-separated. [default: all]",
            metavar="NAME",
        ),
    ] = None,
    quick: Annotated[bool, _option("--quick", help="Coarser grids, for a first look.", metavar=None)] = False,
    figure_format: Annotated[str, _option("--format", help="Of figures: png, pdf or svg.", metavar="TEXT")] = "png",
    quiet: Annotated[bool, _option("--quiet", help="No progress bar and no summary.", metavar=None)] = False,
) -> None:
    """Figures and tables of a paper as files, and a verdict on each of its numbers.

    \b
    Example:
      jaxgdp reproduce gomez2025 --output reproduction --only figure-4,table-2
    """
    from .reproduce import check, items, reproduce
    from .reproduce.document import summary

    names = list(items(paper)) if only is None else [name for text in only for name in text.split(",")]
    settings = {"output": output, "only": names, "quick": quick, "figure_format": figure_format}
    check(paper, **settings)
    _need(*(["rich", "matplotlib"] + ["xarray"] * ("figure-3" in names)))
    _cache_compiled_programs()
    with _progress(len(set(names)), quiet, "figures and tables") as progress:
        found = reproduce(paper, **settings, progress=lambda name: progress(1))
    if not quiet:
        print(summary(found.rows))
        for row in found.rows:
            if row.verdict != "agrees":
                print(
                    f"  {row.verdict}: {row.where}, {row.quantity}: paper {row.paper}, ours {row.ours}; {row.because}"
                )
        print(f"wrote {len(found.files)} files, {found.files[0]} first")


def _log_spaced(ends: list[float], number: float) -> list[float]:
    import numpy as np

    low, high = ends
    if not (0.0 < low <= high <= 1.0):
        raise ValueError(f"sampling rates must satisfy 0 < min <= max <= 1, got min {low:g} and max {high:g}")
    if not (1 <= number <= _MOST_RATES and number == int(number)):
        raise ValueError(f"--sampling-probs-number must be a whole number from 1 to {_MOST_RATES}, got {number:g}")
    return np.geomspace(low, high, int(number)).tolist()


@contextlib.contextmanager
def _progress(total: int, quiet: bool, noun: str = "settings"):
    """A function that counts what is finished on stderr: a bar on a terminal, a line per tenth elsewhere."""
    if sys.stderr.isatty() and not quiet:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn(noun), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(noun, total=total)
            yield lambda number: bar.advance(task, number)
        return
    finished = 0

    def count(number):
        nonlocal finished
        before, finished = finished, finished + number
        if not quiet and 10 * finished // total > 10 * before // total:
            print(f"{finished}/{total} {noun}", file=sys.stderr, flush=True)

    yield count


def _draw_landscape(paths, sigmas, rates, steps, settings, quiet) -> None:
    from . import landscape as grid

    _cache_compiled_programs()
    sigmas = grid.NOISE_MULTIPLIERS if sigmas is None else sigmas
    steps = grid.NUM_STEPS if steps is None else steps
    with _progress(len(sigmas) * len(rates) * len(steps), quiet) as progress:
        dataset = grid.landscape(
            noise_multiplier=sigmas, sampling_prob=rates, num_steps=steps, progress=progress, **settings
        )
    csv, netcdf, figure = paths
    grid.write_csv(dataset, csv)
    grid.write_netcdf(dataset, netcdf)
    _save_figure(dataset, figure)
    if not quiet:
        print(grid.summary_text(dataset))
        print(f"wrote {csv}, {netcdf}, {figure}")


def _save_figure(dataset, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .plot import regret_landscape

    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    regret_landscape(dataset, figure.add_subplot())
    figure.savefig(path, dpi=200)


def _start(
    context: typer.Context,
    version: Annotated[bool, _option("--version", help="Print the version.", metavar=None)] = False,
) -> None:
    """Certified differential-privacy accounting.

    \b
    Examples:
      jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000
      jaxgdp landscape --figure landscape.png
      jaxgdp reproduce gomez2025 --output reproduction
    """
    if version:
        print(f"jaxgdp {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _build():
    built = typer.Typer(name="jaxgdp", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    built.callback(invoke_without_command=True)(_start)
    built.command("report")(report_command)
    built.command("landscape")(landscape_command)
    built.command("reproduce")(reproduce_command)
    return built


app = _build() if typer else None


def _fail(message) -> int:
    print("jaxgdp: error: " + " ".join(str(message).split()), file=sys.stderr)
    return 2


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; default those of the process.

    Returns:
        Exit code: 0, or 2 after one line on stderr that names what was wrong, or 130 when interrupted.
    """
    if typer is None:
        return _fail("the command line needs typer: pip install 'jaxgdp[cli]'")
    try:
        code = app(args=sys.argv[1:] if argv is None else list(argv), prog_name="jaxgdp", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (ValueError, ImportError, OSError) as error:
        return _fail(error)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted")
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # what typer says about options it does not know
            return _fail(error.format_message())
        raise
