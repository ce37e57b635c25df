"""``jaxgdp samplers``: one training by every batch sampler, and how wrong it is to account for
another one than is used.
"""

from __future__ import annotations

from typing import Annotated

from .options import (
    FLOOR_HELP,
    FORCE_HELP,
    PROGRESS_HELP,
    QUIET_HELP,
    RTOL_HELP,
    cache_compiled_programs,
    figure_path,
    need,
    number,
    numbers,
    option,
    working,
    writable,
)


def samplers_command(
    noise_multiplier: Annotated[
        list[str],
        option("--noise-multiplier", help="Noise multipliers, repeated or comma-separated."),
    ],
    dataset_size: Annotated[str, option("--dataset-size", help="Number of records.")],
    batch_size: Annotated[
        list[str],
        option("--batch-size", help="(Expected) batch sizes, repeated or comma-separated."),
    ],
    epochs: Annotated[
        list[str] | None,
        option("--epochs", help="Numbers of epochs, repeated or comma-separated. [default: 1]"),
    ] = None,
    sampler: Annotated[
        list[str] | None,
        option(
            "--sampler",
            help=(
                "Samplers, repeated or comma-separated. [default: all but truncated_poisson and"
                " fixed_size, which take minutes]"
            ),
            metavar="NAME",
        ),
    ] = None,
    truncated_batch_size: Annotated[
        list[str] | None,
        option(
            "--truncated-batch-size",
            help="Most records of a batch of truncated_poisson, for all or each batch size.",
        ),
    ] = None,
    delta: Annotated[str, option("--delta", help="Delta at which to give epsilon.")] = "1e-5",
    fpr_floor: Annotated[str, option("--fpr-floor", help=FLOOR_HELP)] = "1e-10",
    rtol: Annotated[str, option("--rtol", help=RTOL_HELP)] = "1e-3",
    adjacency: Annotated[
        str, option("--adjacency", help="add_remove, add, remove or replace_one.", metavar="TEXT")
    ] = "add_remove",
    csv: Annotated[str | None, option("--csv", help="CSV file to write.", metavar="PATH")] = None,
    figure: Annotated[
        str | None, option("--figure", help="Figure to write: .png, .pdf or .svg.", metavar="PATH")
    ] = None,
    force: Annotated[bool, option("--force", help=FORCE_HELP, metavar=None)] = False,
    quiet: Annotated[bool, option("--quiet", help=QUIET_HELP, metavar=None)] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Epsilon, mu and advantage of one training by every batch sampler, side by side.

    The last lines answer: "I shuffle, but I accounted for Poisson sampling: how wrong am I?"

    \b
    Example:
      jaxgdp samplers --noise-multiplier 0.5 --dataset-size 10000 --batch-size 10 --epochs 1,10
    """
    need("xarray", *(["matplotlib"] if figure is not None else []))
    paths = {} if csv is None else {"csv": writable("--csv", csv, force)}
    paths |= {} if figure is None else {"figure": figure_path("--figure", figure, force)}
    settings = {
        "noise_multiplier": numbers("--noise-multiplier", noise_multiplier),
        "dataset_size": number("--dataset-size", dataset_size),
        "batch_size": numbers("--batch-size", batch_size),
        "num_epochs": numbers("--epochs", epochs) if epochs else 1,
        "samplers": (
            None if sampler is None else [name for text in sampler for name in text.split(",")]
        ),
        "delta": number("--delta", delta),
        "fpr_floor": number("--fpr-floor", fpr_floor),
        "rtol": number("--rtol", rtol),
        "adjacency": adjacency,
    }
    if truncated_batch_size:
        settings["truncated_batch_size"] = numbers("--truncated-batch-size", truncated_batch_size)
    with working("loading", quiet=quiet, always=progress):
        from ..grids import compare_samplers

        cache_compiled_programs()
    with working("measuring", quiet=quiet, always=progress):
        found = compare_samplers.compare_samplers(**settings)
    if csv is not None:
        compare_samplers.write_csv(found, paths["csv"])
    if figure is not None:
        _draw(found, paths["figure"])
    print(compare_samplers.summary_text(found))
    if paths and not quiet:
        print(f"\nwrote {', '.join(str(path) for path in paths.values())}")


def _draw(found, path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..grids.compare_samplers import QUANTITIES
    from ..plot import sampler_panels, save

    figure = Figure(figsize=(10.2, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    sampler_panels(found, figure, QUANTITIES)
    save(figure, path, question=found.attrs["title"], fpr_floor=found.attrs["fpr_floor"])
