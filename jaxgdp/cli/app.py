"""The command line: ``jaxgdp report``, ``calibrate``, ``bridge``, ``audit``, ``samplers``,
``sweep``, ``landscape`` and others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .._version import __version__
from .audit import audit_command
from .bridge import bridge_command
from .calibrate import calibrate_command
from .options import FLOOR_HELP as _FLOOR_HELP
from .options import FORCE_HELP as _FORCE_HELP
from .options import PROGRESS_HELP as _PROGRESS_HELP
from .options import RTOL_HELP as _RTOL_HELP
from .options import axis as _axis
from .options import cache_compiled_programs as _cache_compiled_programs
from .options import figure_path as _figure_path
from .options import need as _need
from .options import number as _number
from .options import numbers as _numbers
from .options import option as _option
from .options import working as _working
from .options import writable as _writable
from .quantities import quantities_command
from .report import deployments_command, report_command
from .reproduce import reproduce_command
from .samplers import samplers_command
from .sweep import sweep_command

if TYPE_CHECKING:
    import typer
else:
    try:
        import typer
    except ImportError:
        typer = None

_MOST_RATES = 100_000
_MOST_COLUMNS = 3  # panels of a figure side by side
_INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended: 128 + SIGINT


def landscape_command(
    noise_multiplier: Annotated[
        list[str] | None,
        _option(
            "--noise-multiplier",
            help="Noise multipliers, repeated or comma-separated. [default: 0.5 to 8]",
        ),
    ] = None,
    num_steps: Annotated[
        list[str] | None,
        _option(
            "--num-steps",
            help="Numbers of steps, repeated or comma-separated. [default: 400,1000,2000]",
        ),
    ] = None,
    sampling_prob: Annotated[
        list[str] | None,
        _option(
            "--sampling-prob",
            help="Sampling rates, repeated or comma-separated; replaces the range below.",
        ),
    ] = None,
    sampling_probs_number: Annotated[
        str, _option("--sampling-probs-number", help="How many log-spaced sampling rates.")
    ] = "64",
    min_sampling_prob: Annotated[
        str, _option("--min-sampling-prob", help="Smallest sampling rate.")
    ] = "1e-4",
    max_sampling_prob: Annotated[
        str, _option("--max-sampling-prob", help="Largest sampling rate.")
    ] = "1",
    fpr_floor: Annotated[
        str | None, _option("--fpr-floor", help=_FLOOR_HELP + " [default: 1e-10]")
    ] = None,
    rtol: Annotated[str | None, _option("--rtol", help=_RTOL_HELP + " [default: 1e-3]")] = None,
    source: Annotated[
        str | None,
        _option(
            "--from",
            help="Draw a store of `jaxgdp sweep`, or some values of it, and compute nothing.",
            metavar="PATH",
        ),
    ] = None,
    kind: Annotated[
        str,
        _option(
            "--figure-type",
            help="lines, or heat-map with a panel for each number of steps.",
            metavar="TEXT",
        ),
    ] = "lines",
    csv: Annotated[
        str, _option("--csv", help="CSV file to write.", metavar="PATH")
    ] = "landscape.csv",
    netcdf: Annotated[
        str, _option("--netcdf", help="NetCDF file to write.", metavar="PATH")
    ] = "landscape.nc",
    figure: Annotated[
        str, _option("--figure", help="Figure to write: .png, .pdf or .svg.", metavar="PATH")
    ] = "landscape.png",
    force: Annotated[bool, _option("--force", help=_FORCE_HELP, metavar=None)] = False,
    quiet: Annotated[
        bool, _option("--quiet", help="No progress bar and no summary.", metavar=None)
    ] = False,
    progress: Annotated[bool, _option("--progress", help=_PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Regret of reporting mu over a grid of DP-SGD settings: figure, CSV, NetCDF and a summary.

    \b
    Example:
      jaxgdp landscape --noise-multiplier 1,2,4 --num-steps 400,2000 --figure regret.pdf
      jaxgdp landscape --from sweep.zarr --figure-type heat-map --figure regret.pdf
    """
    paths = [
        _writable("--csv", csv, force),
        _writable("--netcdf", netcdf, force),
        _figure_path("--figure", figure, force),
    ]
    from ..numerics.validation import one_of

    one_of("--figure-type", kind, ("lines", "heat-map"))
    _need(
        "xarray",
        "h5netcdf",
        "h5py",
        "matplotlib",
        *(["zarr", "dask"] if source is not None else []),
    )
    if source is not None:
        asked = {"--rtol": rtol, "--fpr-floor": fpr_floor}
        if given := [name for name, value in asked.items() if value is not None]:
            raise ValueError(
                f"{', '.join(given)} is what the store was computed at: it must not be given with"
                " --from"
            )
        wanted = {
            "noise_multiplier": noise_multiplier,
            "sampling_prob": sampling_prob,
            "num_steps": num_steps,
        }
        _draw_store(paths, kind, source, wanted, quiet, progress)
        return
    settings = {
        "rtol": _number("--rtol", "1e-3" if rtol is None else rtol),
        "fpr_floor": _number("--fpr-floor", "1e-10" if fpr_floor is None else fpr_floor),
    }
    if sampling_prob:
        rates = _numbers("--sampling-prob", sampling_prob)
    else:
        ends = [
            _number("--min-sampling-prob", min_sampling_prob),
            _number("--max-sampling-prob", max_sampling_prob),
        ]
        rates = _log_spaced(ends, _number("--sampling-probs-number", sampling_probs_number))
    sigmas = _numbers("--noise-multiplier", noise_multiplier) if noise_multiplier else None
    steps = _numbers("--num-steps", num_steps) if num_steps else None
    _draw_landscape(paths, kind, sigmas, rates, steps, settings, quiet, progress)


def _log_spaced(ends: list[float], number: float) -> list[float]:
    import numpy as np

    low, high = ends
    if not (0.0 < low <= high <= 1.0):
        raise ValueError(
            f"sampling rates must satisfy 0 < min <= max <= 1, got min {low:g} and max {high:g}"
        )
    if not (1 <= number <= _MOST_RATES and number == int(number)):
        raise ValueError(
            f"--sampling-probs-number must be a whole number from 1 to {_MOST_RATES}, got"
            f" {number:g}"
        )
    return np.geomspace(low, high, int(number)).tolist()


def _draw_store(paths, kind, source, wanted, quiet, always) -> None:
    with _working("reading", quiet=quiet, always=always):
        from ..grids import landscape as grid

        dataset = grid.read_store(source)
        for name, texts in wanted.items():
            if texts:
                dataset = grid.chosen(dataset, name, _axis("--" + name.replace("_", "-"), texts))
    _write_landscape(paths, kind, dataset, quiet, always)


def _draw_landscape(paths, kind, sigmas, rates, steps, settings, quiet, always) -> None:
    with _working("loading", quiet=quiet, always=always):
        from ..accounting.run.executors import for_one_call
        from ..grids import landscape as grid

        _cache_compiled_programs()
    sigmas = grid.NOISE_MULTIPLIERS if sigmas is None else sigmas
    steps = grid.NUM_STEPS if steps is None else steps
    number = len(sigmas) * len(rates) * len(steps)
    with _working("measuring", number, quiet=quiet, always=always) as count:
        asked = {"noise_multiplier": sigmas, "sampling_prob": rates, "num_steps": steps, **settings}
        dataset = grid.landscape(progress=count, executor=for_one_call(number), **asked)
    _write_landscape(paths, kind, dataset, quiet, always)


def _write_landscape(paths, kind, dataset, quiet, always) -> None:
    from ..grids import landscape as grid

    csv, netcdf, figure = paths
    with _working("writing", quiet=quiet, always=always):
        grid.write_csv(dataset, csv)
        grid.write_netcdf(dataset, netcdf)
        _save_figure(dataset, figure, kind)
    if not quiet:
        print(grid.summary_text(dataset))
        print(f"wrote {csv}, {netcdf}, {figure}")


def _save_figure(dataset, path: Path, kind: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..grids.landscape import QUESTION
    from ..plot import regret_heat_map, regret_panels, save

    panels = dataset.sizes["num_steps"]
    columns = min(panels, _MOST_COLUMNS)
    rows = -(-panels // columns)
    heat = kind == "heat-map"
    size = (1.5 + 3.2 * columns, 1.2 + 3.2 * rows) if heat else (3.4 * max(2, panels), 4.4)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    if heat:
        axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        regret_heat_map(dataset, axes[:panels])
        for spare in axes[panels:]:
            spare.remove()
    else:
        regret_panels(dataset, figure)
    save(figure, path, question=QUESTION, fpr_floor=dataset.attrs["fpr_floor"])


def _start(
    context: typer.Context,
    version: Annotated[bool, _option("--version", help="Print the version.", metavar=None)] = False,
) -> None:
    """Certified differential-privacy accounting.

    \b
    Examples: jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000 jaxgdp
      report --deployment census_2020_pl94_persons jaxgdp calibrate --fnr 0.7 --fpr 0.1
      --sampling-prob 0.001 --num-steps 10000 jaxgdp bridge --epsilon-delta 1,1e-5 --epsilon-delta
      2,1e-9 jaxgdp audit scores.csv --mu 1 --figure audit.png jaxgdp samplers --noise-multiplier
      0.5 --dataset-size 10000 --batch-size 10 jaxgdp quantities jaxgdp landscape --figure
      landscape.png jaxgdp sweep --store sweep.zarr --noise-multiplier 0.5:8:64:log --sampling-prob
      1e-4:1:64:log --num-steps 400,2000 jaxgdp reproduce gomez2025 --output reproduction
    """
    if version:
        print(f"jaxgdp {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _build():
    built = typer.Typer(
        name="jaxgdp", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    built.callback(invoke_without_command=True)(_start)
    built.command("report")(report_command)
    built.command("calibrate")(calibrate_command)
    built.command("bridge")(bridge_command)
    built.command("audit")(audit_command)
    built.command("samplers")(samplers_command)
    built.command("deployments")(deployments_command)
    built.command("quantities")(quantities_command)
    built.command("sweep")(sweep_command)
    built.command("landscape")(landscape_command)
    built.command("reproduce")(reproduce_command)
    return built


app: Any = _build() if typer else None


def _fail(message) -> int:
    print("jaxgdp: error: " + " ".join(str(message).split()), file=sys.stderr)
    return 2


@contextlib.contextmanager
def _second_interrupt_ends():
    """The first Ctrl-C is an exception as always; a second one does not wait for what is still
    computing in other threads.
    """
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def first(number, frame):
        signal.signal(signal.SIGINT, second)
        signal.default_int_handler(number, frame)

    def second(number, frame):
        _fail("interrupted")
        os._exit(_INTERRUPTED)

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; default those of the process.

    Returns:
        Exit code: 0, or 2 after one line on stderr that names what was wrong, or 130 when
        interrupted.
    """
    if typer is None:
        return _fail("the command line needs typer: pip install 'jaxgdp[cli]'")
    try:
        with _second_interrupt_ends():
            return _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        _fail("interrupted")
        return _INTERRUPTED


def _run(argv: list[str]) -> int:
    try:
        code = app(args=argv, prog_name="jaxgdp", standalone_mode=False)
        sys.stdout.flush()
        if code == _INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (ValueError, ImportError, OSError) as error:
        return _fail(error)
    except typer.Abort:  # what earlier versions make of it
        raise KeyboardInterrupt from None
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is not None:  # what typer says about options it does not know
            return _fail(message())
        raise
