"""Shared parts of all commands: options, numbers typed as text, output paths, the cache."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..arguments import ARGUMENTS, WHOLE, Argument, sentence, shown, spelled_out
from ..numerics.optional import how_to_install
from ..progress import Progress, show_progress
from .command import click

_EXTRAS = {
    **dict.fromkeys(("xarray", "h5netcdf", "h5py"), "sweep"),
    **dict.fromkeys(("zarr", "dask", "distributed"), "scale"),
    **dict.fromkeys(("fpdf", "yaml"), "report"),
    "rich": "cli",
    "vl_convert": "explore",
    "matplotlib": "plot",
}
FIGURE_SUFFIXES = (".png", ".pdf", ".svg")
_MOST = 1_000_000  # numbers of one range
_OF_RUNS = ("noise_multiplier", "sampling_prob", "num_steps", "dataset_size", "batch_size")


def one_source(sources: Mapping[str, object], what: str) -> str:
    """The option that was given, of some that exclude each other.

    Raises:
        ValueError: none was given, or several; lists all.
    """
    chosen = [name for name, value in sources.items() if value]
    if len(chosen) != 1:
        raise ValueError(
            f"give one {what}{', '.join(sources)}; got {' and '.join(chosen) or 'none'}"
        )
    return chosen[0]


def number(option: str, text: str) -> float:
    """A number or a fraction such as 16384/50000."""
    try:
        top, slash, bottom = text.partition("/")
        return float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{option} must be a number, got {text!r}") from None


def numbers(option: str, texts: Iterable[str]) -> list[float]:
    """Numbers from a repeated option or comma-separated lists."""
    return [number(option, piece) for text in texts for piece in text.split(",")]


def axis(name: str, texts: Iterable[str], rounded: bool = False) -> list[float]:
    """Numbers from a repeated option, comma-separated lists and ranges FROM:TO:NUMBER[:log].

    Args:
        name: of the option.
        texts: as typed.
        rounded: whether what ranges give is rounded to whole numbers, each once.

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
            raise ValueError(f"this command needs {module}: {how_to_install(_EXTRAS[module])}")


def writable(option: str, text: str | None, force: bool = False) -> Path | None:
    """An output path in an existing folder, or None; a file is replaced only with ``force``."""
    if text is None:
        return None
    path = Path(text)
    if not text or path.is_dir():
        raise ValueError(f"{option} must be the path of a file, got {text!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must lie in an existing folder, got {text!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} must be writable, got {text!r}")
    kept([path], force)
    return path


def kept(paths: Iterable[str | Path], force: bool) -> None:
    """Refuse to replace files without ``force``.

    Raises:
        ValueError: one of them exists; names the first and how to go on.
    """
    there = [] if force else [str(path) for path in paths if Path(path).exists()]
    if there:
        others = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise ValueError(
            f"{there[0]}{others} exists already: give --force to replace it, or another name"
        )


def figure_path(option: str, text: str | None, force: bool = False) -> Path | None:
    """:func:`writable`, for a figure; matplotlib must be there to draw it."""
    path = writable(option, text, force)
    if path is None:
        return None
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise ValueError(f"{option} must end in {', '.join(FIGURE_SUFFIXES)}, got {text!r}")
    need("matplotlib")
    return path


def cache_compiled_programs() -> None:
    """Keep compiled programs between runs, per user and machine; never essential."""
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


RANGES = "Repeated, comma-separated, or ranges FROM:TO:NUMBER[:log]."
FORCE = "Replace files that exist already."
QUIET = "Show no progress and no summary."
PROGRESS = "Show progress on stderr also where that is no terminal."
FIGURE = "Figure to write: .png, .pdf or .svg."


def flag_name(name: str) -> str:
    """The option of an argument: ``--fpr-floor`` of ``fpr_floor``."""
    return "--" + name.replace("_", "-")


def option(
    name: str,
    help: str = "",
    *,
    default: Any = None,
    metavar: str = "NUMBER",
    read: Callable[[str, str], Any] | None = None,
    many: bool = False,
    required: bool = False,
    to: str | None = None,
) -> Any:
    """An option whose value is None where not given, so that defaults stand where they are used.

    Args:
        name: of the argument, such as "fpr_floor".
        help: a sentence.
        default: shown after the help.
        metavar: placeholder of the value.
        read: (option, text) → value; None keeps the text.
        many: whether it may be repeated; the value is then one list of everything that was read.
        required: whether the command fails without it.
        to: name of the command's argument where that is another one.
    """

    def read_all(context: Any, param: Any, value: Any) -> Any:
        if many:
            found = [each for text in value for each in (read or _words)(flag_name(name), text)]
            return found or None
        return value if value is None or read is None else read(flag_name(name), value)

    extra = "" if default is None or default == "" else f" [default: {shown(default)}]"
    return click.Option(
        [flag_name(name), to or name], help=spelled_out(help) + extra, metavar=metavar,
        multiple=many, required=required, callback=read_all,
    )  # fmt: skip


def _words(name: str, text: str) -> list[str]:
    return text.split(",")


def flag(name: str, help: str, **settings: Any) -> Any:
    """An option without a value."""
    return click.Option([flag_name(name), name], is_flag=True, help=help, **settings)


def argument(name: str, **settings: Any) -> Any:
    """A positional argument."""
    return click.Argument([name], metavar=name.upper(), **settings)


def shared(
    name: str,
    meaning: str | None = None,
    *,
    many: bool = False,
    default: Any = None,
    required: bool = False,
    known: Argument | None = None,
) -> Any:
    """The option of an argument that many functions share, from the table of arguments.

    A number out of range is refused before anything is loaded.

    Args:
        name: of the argument.
        meaning: what it means to this command, where that is special.
        many: whether it takes several numbers and ranges.
        default: other than the table's.
        required: whether there is no default.
        known: the argument itself, where it is in no table.
    """
    found = known or ARGUMENTS[name]
    meaning = meaning or found.meaning
    valid = "" if found.range is None else f", {found.range.words}"
    help = sentence(meaning + valid) + (f" {RANGES}" if many else "")
    text = name == "adjacency" or name == "executor"

    def read(flag: str, typed: str) -> Any:
        values = axis(flag, [typed], rounded=found.range is WHOLE) if many else number(flag, typed)
        for value in values if isinstance(values, list) else [values]:
            in_range(name if known is None else flag, found.range, value)
        return values

    default = None if required else found.default if default is None else default
    return option(
        name, help, default=default, metavar="TEXT" if text else "NUMBER",
        read=None if text else read, many=many, required=required,
    )  # fmt: skip


def check_early(typed: list[str]) -> None:
    """Refuse numbers of a run that are out of range before options are made from registries, which
    takes seconds. What cannot be read here is left to them.

    Raises:
        ValueError: names the argument, its range and the number.
    """
    found = zip(typed, [*typed, ""][1:], strict=True)
    pairs = [text.split("=", 1) if "=" in text else (text, after) for text, after in found]
    for name in _OF_RUNS:
        own = ARGUMENTS[name].range
        texts = [value for flag, value in pairs if flag == flag_name(name) and value]
        for value in axis(flag_name(name), texts, rounded=own is WHOLE) if texts else []:
            in_range(name, own, value)


def in_range(label: str, range: Any, value: float) -> None:
    """Refuse a number out of its range."""
    if range and not (math.isfinite(value) and range.holds(value)):
        raise ValueError(f"{label} must be {range.words}, got {value:g}")


def given(**values: Any) -> dict[str, Any]:
    """Those of some options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def progress_options() -> list[Any]:
    """``--quiet`` and ``--progress``, which :func:`quiet` and :func:`working` read."""
    helps = {"quiet": QUIET, "progress": PROGRESS}
    return [flag(name, help, expose_value=False, callback=_keep) for name, help in helps.items()]


def _keep(context: Any, param: Any, value: bool) -> None:
    context.meta[param.name] = value


def quiet() -> bool:
    """Whether the command is to show no progress and no summary."""
    return click.get_current_context().meta["quiet"]


def working(
    doing: str, total: int | None = None, noun: str = "settings", rate: bool | float = False
) -> contextlib.AbstractContextManager[Progress]:
    """Show on stderr what is being done and how much of it is finished, as the command's options
    have it (see :func:`jaxgdp.progress.show_progress`).
    """
    always = click.get_current_context().meta["progress"]
    return show_progress(doing, total, False if quiet() else always or None, noun, rate)


def tell_written(*paths: str | Path | None) -> None:
    """Name the files that were written, unless the command is to be quiet."""
    written = [str(path) for path in paths if path is not None]
    if written and not quiet():
        print(f"wrote {', '.join(written)}")


def draw(
    path: Path,
    size: tuple[float, float],
    drawing: Callable[[Any], object],
    question: str,
    fpr_floor: float | None,
) -> None:
    """Save what ``drawing`` puts on a matplotlib ``Figure`` of that size."""
    from ..plot.saving import blank_figure, save

    figure = blank_figure(size)
    drawing(figure)
    save(figure, path, question=question, fpr_floor=fpr_floor)
