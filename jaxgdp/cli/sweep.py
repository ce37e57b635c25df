"""``jaxgdp sweep``: certified quantities over a grid, into a store that outlives the process."""

from __future__ import annotations

import contextlib
from typing import Annotated

from .options import (
    FLOOR_HELP,
    PROGRESS_HELP,
    QUIET_HELP,
    RTOL_HELP,
    axis,
    cache_compiled_programs,
    need,
    number,
    option,
    working,
)

_RANGE = "Repeated, comma-separated, or ranges FROM:TO:NUMBER[:log]."
_MOST = 1_000_000  # workers, and settings of a chunk


def sweep_command(
    store: Annotated[
        str, option("--store", help="Zarr store to fill, or to go on with.", metavar="PATH")
    ],
    noise_multiplier: Annotated[
        list[str], option("--noise-multiplier", help=f"Noise multipliers. {_RANGE}")
    ],
    num_steps: Annotated[
        list[str],
        option(
            "--num-steps", help=f"Numbers of steps. {_RANGE} Of ranges, rounded to whole numbers."
        ),
    ],
    sampling_prob: Annotated[
        list[str] | None, option("--sampling-prob", help=f"Sampling rates. {_RANGE} [default: 1]")
    ] = None,
    quantity: Annotated[
        list[str] | None,
        option(
            "--quantity",
            help="Quantities, repeated or comma-separated. [default: mu,regret]",
            metavar="NAME",
        ),
    ] = None,
    rtol: Annotated[str, option("--rtol", help=RTOL_HELP)] = "1e-3",
    fpr_floor: Annotated[str, option("--fpr-floor", help=FLOOR_HELP)] = "1e-10",
    delta: Annotated[str, option("--delta", help="Delta of epsilon.")] = "1e-5",
    epsilon: Annotated[str, option("--epsilon", help="Epsilon of delta, nats.")] = "1",
    fpr: Annotated[str, option("--fpr", help="FPR of tpr and beta.")] = "1e-3",
    d: Annotated[str, option("--d", help="d of approximate_mu.")] = "1e-10",
    prior: Annotated[str, option("--prior", help="Prior of bayes_risk.")] = "0.5",
    adjacency: Annotated[
        str, option("--adjacency", help="add_remove, add, remove or replace_one.", metavar="TEXT")
    ] = "add_remove",
    workers: Annotated[
        str | None, option("--workers", help="Processes on this machine, each on cores of its own.")
    ] = None,
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            help="Address of a Dask scheduler, whose workers see the same store.",
            metavar="ADDRESS",
        ),
    ] = None,
    chunk_size: Annotated[
        str, option("--chunk-size", help="Settings of a chunk of the store, at most.")
    ] = "1024",
    executor: Annotated[
        str | None,
        option(
            "--executor",
            help="eager, compiled or product. [default: by the number of settings]",
            metavar="TEXT",
        ),
    ] = None,
    quiet: Annotated[bool, option("--quiet", help=QUIET_HELP, metavar=None)] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """Certified quantities over a grid of DP-SGD settings, in a Zarr store that xarray opens.

    What a store has already is not computed again: after Ctrl-C, or whatever else, the same command
    goes on.

    \b
    Examples: jaxgdp sweep --store sweep.zarr --noise-multiplier 0.5:8:64:log --sampling-prob
      1e-4:1:64:log --num-steps 400,2000 jaxgdp landscape --from sweep.zarr
    """
    need("xarray", "zarr", "dask", *(["distributed"] if workers or scheduler else []))
    if workers is not None and scheduler is not None:
        raise ValueError("give --workers or --scheduler, not both")
    grid = {
        "noise_multiplier": axis("--noise-multiplier", noise_multiplier),
        "sampling_prob": axis("--sampling-prob", sampling_prob or ["1"]),
        "num_steps": axis("--num-steps", num_steps, rounded=True),
    }
    texts = {
        "rtol": rtol,
        "fpr_floor": fpr_floor,
        "delta": delta,
        "epsilon": epsilon,
        "fpr": fpr,
        "approximation": d,
        "prior": prior,
    }
    settings = {name: number("--" + name.replace("_", "-"), text) for name, text in texts.items()}
    names = [name for text in quantity or ["mu,regret"] for name in text.split(",")]
    size = _whole("--chunk-size", chunk_size)
    several = None if workers is None else _whole("--workers", workers)
    total = len(grid["noise_multiplier"]) * len(grid["sampling_prob"]) * len(grid["num_steps"])
    with working("loading", quiet=quiet, always=progress):
        from ..grids.sweep import sweep

        cache_compiled_programs()
    with contextlib.ExitStack() as stack:
        count = stack.enter_context(
            working("sweeping", total, quiet=quiet, always=progress, rate=True)
        )
        client = scheduler
        if several is not None:
            from ..scale.local import workers as started

            client = stack.enter_context(started(several))
        found = sweep(
            **grid, quantities=names, adjacency=adjacency, store=store, client=client, executor=executor, progress=count,
            chunk_size=size, **settings,
        )  # fmt: skip
        status = found["status"].values
    if not quiet:
        wide = int((status != 0).sum())
        print(
            f"{total} settings, {total - wide} as narrow as asked, {wide} wider (their brackets"
            " hold too)"
        )
        print(f"{store} is whole")


def _whole(name: str, text: str) -> int:
    value = number(name, text)
    if not (1 <= value <= _MOST and value == int(value)):
        raise ValueError(f"{name} must be a whole number from 1 to {_MOST}, got {text!r}")
    return int(value)
