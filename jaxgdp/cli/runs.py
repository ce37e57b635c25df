"""The options that describe a run, of all commands that take one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arguments import SAMPLERS
from .options import flag_name, option, shared

if TYPE_CHECKING:
    from ..mechanisms import Composition
    from ..run_settings import Run

OPTIONS = (
    "noise_multiplier", "num_steps", "sampling_prob", "dataset_size", "batch_size", "num_epochs",
    "sampler", "records_per_user",
)  # fmt: skip
_OF_RECORDS = ("dataset_size", "batch_size", "num_epochs", "sampler")


def sampler(flag: str, text: str) -> str:
    """The name of a sampler, checked before anything is loaded."""
    if text not in SAMPLERS:
        raise ValueError(f"{flag} must be one of {', '.join(SAMPLERS)}, got {text!r}")
    return text


def sampler_option() -> Any:
    """``--sampler`` of one run."""
    help = f"How batches are drawn: one of {', '.join(SAMPLERS)}."
    return option("sampler", help, metavar="NAME", default="poisson", read=sampler)


def run_options() -> list[Any]:
    """Noise; rate and steps, or records, batches and epochs."""
    special = {"num_epochs": "number of epochs, in place of --num-steps"}
    return [
        sampler_option()
        if name == "sampler"
        else shared(name, special.get(name), default="" if name == "num_epochs" else None)
        for name in OPTIONS
    ]


def check_run(typed: dict[str, Any], others: str = "") -> None:
    """Refuse a run that lacks something, before anything is loaded.

    Args:
        typed: option → value, None where not given.
        others: what may be given in place of a run, for the message.

    Raises:
        ValueError: names what is missing or does not go together.
    """
    given = [name for name in OPTIONS if typed.get(name) is not None]
    missing = [] if "noise_multiplier" in given else ["noise_multiplier"]
    stray = [name for name in _OF_RECORDS if name in given]
    if not stray:
        missing += [] if "num_steps" in given else ["num_steps"]
    else:
        missing += [name for name in ("dataset_size", "batch_size") if name not in given]
        if "num_epochs" not in given and "num_steps" not in given:
            missing.append("num_epochs")
    if missing:
        names = " and ".join(map(flag_name, missing))
        hint = "" if stray else "; or --dataset-size, --batch-size and --num-epochs"
        instead = f" (or {others})" if others else ""
        raise ValueError(f"missing {names}{hint if len(missing) < 2 else ''}{instead}")
    if stray and "sampling_prob" in given:
        raise ValueError(
            f"--sampling-prob follows from {' and '.join(map(flag_name, stray[:2]))}: leave it out"
        )
    if stray and "num_epochs" in given and "num_steps" in given:
        raise ValueError("give --num-epochs or --num-steps, not both")
    if stray and typed["batch_size"] > typed["dataset_size"]:
        raise ValueError(
            f"--batch-size must be at most --dataset-size {typed['dataset_size']:g}, got"
            f" {typed['batch_size']:g}"
        )


def run_of(typed: dict[str, Any]) -> Composition | Run:
    """The run that the options describe, checked by :func:`check_run`."""
    given = {name: value for name, value in typed.items() if value is not None}
    if "dataset_size" in given:
        from ..run_settings import run

        return run(**given)
    from ..mechanisms import dpsgd

    return dpsgd(**({"sampling_prob": 1.0} | given))
