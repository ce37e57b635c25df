"""``jaxgdp sweep``: certified quantities over a grid, into a store that outlives the process."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from ..arguments import Range
from .command import command
from .options import (
    Argument,
    cache_compiled_programs,
    given,
    need,
    option,
    progress_options,
    quiet,
    shared,
    working,
)

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
        shared("num_steps", many=True, required=True),
        shared("sampling_prob", many=True),
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
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp sweep --store sweep.zarr --noise-multiplier 0.5:8:64:log"
        " --sampling-prob 1e-4:1:64:log --num-steps 400,2000",
        "jaxgdp landscape --from sweep.zarr",
    ),
    renamed={"--d": "--approximation"},
)
def sweep_command(
    store: str, workers: float | None, scheduler: str | None, **settings: Any
) -> None:
    """Certified quantities over a grid of DP-SGD settings, in a Zarr store that xarray opens.

    Settings that are already in the store are not computed again: after Ctrl-C or a failure, the
    same command goes on.
    """
    need("xarray", "zarr", "dask", *(["distributed"] if workers or scheduler else []))
    if workers is not None and scheduler is not None:
        raise ValueError("give --workers or --scheduler, not both")
    settings = {"sampling_prob": [1.0]} | given(**settings)
    axes = ("noise_multiplier", "sampling_prob", "num_steps")
    total = math.prod(len(settings[name]) for name in axes)
    with working("loading"):
        from ..grids.dataset import narrow_and_wide
        from ..grids.sweep import sweep

        cache_compiled_programs()
    with contextlib.ExitStack() as stack:
        shown = working("sweeping", total, rate=True)
        count, client = stack.enter_context(shown), scheduler
        if workers is not None:
            from ..scale.local import workers as started

            client = stack.enter_context(started(int(workers)))
        found = sweep(**settings, store=store, client=client, progress=count)
        status = found["status"].values
    if not quiet():
        print(narrow_and_wide(status))
        print(f"{store} is whole")
