"""What every command of the command line shares: options, numbers typed as text, output paths, the
cache.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
from pathlib import Path

from ..progress import show_progress

try:
    import typer
except ImportError:
    typer = None

_EXTRAS = {
    **dict.fromkeys(("xarray", "h5netcdf", "h5py"), "sweep"),
    **dict.fromkeys(("zarr", "dask", "distributed"), "scale"),
    **dict.fromkeys(("fpdf", "yaml"), "report"),
    "rich": "cli",
    "matplotlib": "plot",
}
FIGURE_SUFFIXES = (".png", ".pdf", ".svg")
_MOST = 1_000_000  # numbers of one range


def number(option: str, text: str) -> float:
    """A number or a fraction such as 16384/50000."""
    try:
        top, slash, bottom = text.partition("/")
        return float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{option} must be a number, got {text!r}") from None


def numbers(option: str, texts) -> list[float]:
    """Numbers from a repeated option or comma-separated lists."""
    return [number(option, piece) for text in texts for piece in text.split(",")]


def axis(name: str, texts, rounded: bool = False) -> list[float]:
    """Numbers from a repeated option, comma-separated lists and ranges FROM:TO:NUMBER[:log].

    Args:
        name: of the option. texts: as typed. rounded: round what ranges give to whole numbers, each
            once.

    Example:
        >>> axis("--x", ["1,2", "1:100:3:log"])
        [1.0, 2.0, 1.0, 10.0, 100.0]
    """
    found: list[float] = []
    for piece in (piece for text in texts for piece in text.split(",")):
        found += _range(name, piece, rounded) if ":" in piece else [number(name, piece)]
    return found


def _range(name: str, text: str, rounded: bool) -> list[float]:
    import numpy as np

    parts = text.split(":")
    if len(parts) not in (3, 4) or parts[3:] not in ([], ["log"], ["linear"]):
        raise ValueError(f"{name} must be numbers or FROM:TO:NUMBER[:log], got {text!r}")
    low, high, many = (number(name, part) for part in parts[:3])
    if not (1 <= many <= _MOST and many == int(many)):
        raise ValueError(
            f"{name} must ask for a whole number of values from 1 to {_MOST}, got {text!r}"
        )
    log = parts[3:] == ["log"]
    if not (np.isfinite(low) and np.isfinite(high)) or (log and not (low > 0.0 and high > 0.0)):
        raise ValueError(
            f"{name} must have ends that are finite{' and above 0' if log else ''}, got {text!r}"
        )
    values = (np.geomspace if log else np.linspace)(low, high, int(many))
    return list(dict.fromkeys(np.round(values).tolist())) if rounded else values.tolist()


def need(*modules: str) -> None:
    """Fail before computing if an optional package is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"this command needs {module}: pip install 'jaxgdp[{_EXTRAS[module]}]'"
            )


def writable(option: str, text: str, force: bool = False) -> Path:
    """An output path whose folder exists, checked before hours of work; a file that is there
    already is replaced only if told so.
    """
    path = Path(text)
    if not text or path.is_dir():
        raise ValueError(f"{option} must be the path of a file, got {text!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must lie in an existing folder, got {text!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} must be writable, got {text!r}")
    kept([path], force)
    return path


def kept(paths, force: bool) -> None:
    """Refuse to replace files, unless told to.

    Raises:
        ValueError: one of them exists; names the first and how to go on.
    """
    there = [] if force else [str(path) for path in paths if Path(path).exists()]
    if there:
        others = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise ValueError(
            f"{there[0]}{others} exists already: give --force to replace it, or another name"
        )


def figure_path(option: str, text: str, force: bool = False) -> Path:
    """:func:`writable`, for a figure."""
    path = writable(option, text, force)
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise ValueError(f"{option} must end in {', '.join(FIGURE_SUFFIXES)}, got {text!r}")
    return path


def cache_compiled_programs() -> None:
    """Keep compiled programs between runs of this command line, per user and machine; never
    essential.
    """
    if os.environ.get("JAXGDP_NO_CACHE", "") not in ("", "0") or os.environ.get(
        "JAX_COMPILATION_CACHE_DIR"
    ):
        return
    with contextlib.suppress(Exception):
        import jax

        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) / "jaxgdp" / (platform.node() or "local")
        folder.mkdir(parents=True, exist_ok=True)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def option(*names: str, help: str, metavar: str | None = "NUMBER"):
    return typer.Option(*names, help=help, metavar=metavar) if typer else None


SIGMA_HELP = "Noise multiplier, > 0."
FLOOR_HELP = "Smallest FPR at which mu must hold, in [1e-300, 0.5)."
RTOL_HELP = "Relative width asked of the mu bracket, in [1e-8, 1)."


FORCE_HELP = "Replace files that are there already."
QUIET_HELP = "Not a word about what is being done."
PROGRESS_HELP = "Say what is being done on stderr, also where that is no terminal."


@contextlib.contextmanager
def working(
    doing: str,
    total: int | None = None,
    noun: str = "settings",
    quiet: bool = False,
    always: bool = False,
    rate: bool = False,
):
    """Say what is being done, and how much of it is finished, on stderr: a bar on a terminal;
    elsewhere lines, if asked for.

    Args:
        doing: such as "measuring". total: how much there is to do, None where nothing is counted.
            noun: of what.
        quiet: say nothing. always: also where stderr is no terminal. rate: also how fast, and how
            long the rest will take.

    Yields:
        :class:`jaxgdp.progress.Progress`.
    """
    progress = False if quiet else always or None
    with show_progress(doing, total, progress, noun, rate) as shown:
        yield shown
