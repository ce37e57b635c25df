"""``jaxgdp samplers``: one training by every sampler, and how wrong it is to confuse two."""

from __future__ import annotations

from typing import Any

from .command import command
from .options import (
    FIGURE,
    FORCE,
    cache_compiled_programs,
    check_early,
    draw,
    figure_path,
    flag,
    given,
    need,
    option,
    progress_options,
    shared,
    tell_written,
    working,
    writable,
)


def _options() -> list[Any]:
    from .. import samplers

    slow = [name for name, sampler in samplers.REGISTRY.items() if not sampler.by_default]
    return [
        shared("noise_multiplier", many=True, required=True),
        shared("dataset_size", required=True),
        shared("batch_size", many=True, required=True),
        shared("num_epochs", many=True),
        option(
            "sampler",
            f"Samplers, repeated or comma-separated, of {', '.join(samplers.REGISTRY)}. [default:"
            f" all but {' and '.join(slow)}, which take minutes]",
            metavar="NAME",
            many=True,
            to="samplers",
        ),
        flag(
            "as_implemented",
            "Further rows: what dividing by the drawn batch size, noise on a mean, or clipping"
            " means of micro-batches does.",
        ),
        shared("truncated_batch_size", "for all or each batch size: largest number of records in a"
               " batch of truncated_poisson", many=True),
        shared("delta", "δ at which to give ε"),
        shared("fpr_floor"),
        shared("rtol"),
        shared("adjacency"),
        option("csv", "CSV file to write.", metavar="PATH"),
        option("figure", FIGURE, metavar="PATH"),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp samplers --noise-multiplier 0.5 --dataset-size 10000 --batch-size 10"
        " --num-epochs 1,10",
    ),
    renamed={"--epochs": "--num-epochs"},
    early=check_early,
)
def samplers_command(csv: str | None, figure: str | None, force: bool, **settings: Any) -> None:
    """Epsilon, mu and advantage of one training by every batch sampler, side by side.

    The last lines answer: "I shuffle, but I accounted for Poisson sampling: how wrong am I?"
    """
    need("xarray")
    table = writable("--csv", csv, force)
    drawn = figure_path("--figure", figure, force)
    with working("loading"):
        from ..grids import compare_samplers

        cache_compiled_programs()
    with working("measuring"):
        found = compare_samplers.compare_samplers(**given(**settings))
    if table is not None:
        compare_samplers.write_csv(found, table)
    if drawn is not None:
        from ..plot import sampler_panels

        panels = lambda figure: sampler_panels(found, figure, compare_samplers.QUANTITIES)
        draw(drawn, (10.2, 3.8), panels, found.attrs["title"], found.attrs["fpr_floor"])
    print(compare_samplers.summary_text(found))
    tell_written(table, drawn)
