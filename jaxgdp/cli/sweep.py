"""``jaxgdp sweep``: certified quantities over a grid, into a store that outlives the process."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from ..arguments import Range
from ..grids.cost import A_SECOND, Cost
from .command import command
from .options import (
    Argument,
    cache_compiled_programs,
    check_early,
    flag,
    given,
    need,
    option,
    progress_options,
    quiet,
    shared,
    working,
)
from .runs import sampler_option

_DEFAULT = 2  # quantities, where none is named
_WORTH_TELLING = 60.0  # seconds of a sweep whose cost is told before it begins
_MOST = 1_000_000  # workers, and settings of a chunk
_NUMBER = Range(
    f"a whole number from 1 to {_MOST}", lambda value: 1 <= value <= _MOST and value == int(value)
)


def _options() -> list[Any]:
    from ..quantities import registry
    from ..quantities.table import meaning
    from ..scale.layout import SETTINGS

    return [
        option("store", "Zarr store to fill, or to go on with.", metavar="PATH", required=True),
        shared("noise_multiplier", many=True, required=True),
        shared("num_steps", many=True),
        shared("sampling_prob", many=True),
        shared("dataset_size", "number of records, with --batch-size in place of --sampling-prob"),
        shared("batch_size", many=True),
        shared("num_epochs", "number of epochs, in place of --num-steps", many=True, default=""),
        sampler_option(),
        shared("records_per_user"),
        option("quantity", f"Quantities, repeated or comma-separated, of"
               f" {', '.join(registry.REGISTRY)}. [default: mu,regret]",
               metavar="NAME", many=True, to="quantities"),
        shared("rtol"),
        shared("fpr_floor"),
        *(
            shared(name, meaning(name), known=Argument(name, quantity.default))
            for name, quantity in registry.arguments().items()
        ),
        shared("adjacency"),
        shared("workers", known=Argument(
            "processes on this machine, each on cores of its own", None, _NUMBER)),
        option("scheduler", "Address of a Dask scheduler, whose workers have the same store.",
               metavar="ADDRESS"),
        shared("chunk_size", known=Argument(
            "largest number of settings in a chunk of the store", SETTINGS, _NUMBER)),
        shared("executor", default="by the number of settings"),
        flag("yes", "Begin even what may take more than a day."),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp sweep --store sweep.zarr --noise-multiplier 0.5:8:64:log"
        " --sampling-prob 1e-4:1:64:log --num-steps 400,2000",
        "jaxgdp sweep --store runs.zarr --noise-multiplier 0.5:2:7:log --dataset-size 45000"
        " --batch-size 256,512,1024 --num-epochs 10,30 --quantity epsilon",
        "jaxgdp landscape --from sweep.zarr --figure regret.pdf",
    ),
    renamed={"--d": "--approximation"},
    early=check_early,
)
def sweep_command(
    store: str, workers: float | None, scheduler: str | None, **settings: Any
) -> None:
    """Certified quantities over a grid of DP-SGD settings, in a Zarr store that xarray opens.

    Settings that are already in the store are not computed again: after Ctrl-C or a failure, the
    same command goes on. With more values on an axis it extends the store: only new settings are
    computed.
    """
    need("xarray", "zarr", "dask", *(["distributed"] if workers or scheduler else []))
    if workers is not None and scheduler is not None:
        raise ValueError("give --workers or --scheduler, not both")
    settings = given(**settings)
    axes = ("noise_multiplier", "sampling_prob", "num_steps", "batch_size", "num_epochs")
    cost = Cost.of(
        tuple(len(settings[name]) for name in axes if name in settings),
        len(settings.get("quantities", range(_DEFAULT))),
    )
    cost.check(stored=True, yes=settings["yes"])
    if not quiet() and cost.seconds > _WORTH_TELLING:
        print(f"{cost}; memory for one chunk at a time", file=sys.stderr)
    with working("loading"):
        from ..grids.dataset import narrow_and_wide
        from ..grids.sweep import sweep

        cache_compiled_programs()
    with contextlib.ExitStack() as stack:
        shown = working("sweeping", cost.settings, rate=A_SECOND)
        count, client = stack.enter_context(shown), scheduler
        if workers is not None:
            from ..scale.local import workers as started

            client = stack.enter_context(started(int(workers)))
        found = sweep(**settings, store=store, client=client, progress=count)
        status = found["status"].values
    if not quiet():
        print(narrow_and_wide(status))
        print(f"{store} is whole")
