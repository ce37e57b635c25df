"""``jaxgdp calibrate``: from an accepted risk to the noise, the number of steps or the sampling
rate. Its options are the registered targets and their fields.
"""

from __future__ import annotations

import dataclasses
import json as json_format
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import options
from ..arguments import ARGUMENTS, SAMPLERS, of, sentence, shown
from .command import command
from .options import (
    axis,
    cache_compiled_programs,
    check_early,
    flag,
    flag_name,
    given,
    number,
    option,
    progress_options,
    shared,
    working,
)
from .runs import sampler

if TYPE_CHECKING:
    from ..calibration import Calibration
    from ..targets import Target

_AXES = (
    "sampling_prob", "num_steps", "noise_multiplier", "num_epochs", "dataset_size", "batch_size",
)  # fmt: skip
_SETTINGS = ("solve_for", "sampler", "records_per_user", "rtol", "adjacency")
_SAFE = {"upper": "at most", "lower": "at least"}
# fields of targets that are no shared arguments
_MEANINGS = {
    "quantity": "quantity of --value, by name",
    "at": "number at which --quantity is asked",
}


def _numbers(flag: str, text: str) -> list[float]:
    return axis(flag, [text])


def _goal(name: str, target: type[Target]) -> Any:
    safe = f", {_SAFE[target.safe]}" if isinstance(target.safe, str) else ""
    return option(name, f"Target: {target.meaning or name}{safe}.", read=_numbers, many=True)


def _fields() -> dict[str, list[type[Target]]]:
    """Fields of targets beside their goals, and whose they are."""
    from ..targets import REGISTRY

    found: dict[str, list[type[Target]]] = {}
    for target in REGISTRY.values():
        for field in target.others():
            found.setdefault(field.name, []).append(target)
    return found


def _field(name: str, owners: list[type[Target]]) -> Any:
    """The option of a field of targets."""
    fields = [field for owner in owners for field in owner.others() if field.name == name]
    help = _MEANINGS.get(name)
    if help is None:
        noun = ARGUMENTS[name].meaning if name in ARGUMENTS else name
        help = of(noun, ", ".join(flag_name(owner.option) for owner in owners))
    default = fields[0].default
    default = "its own" if default is None else default
    text = fields[0].type == "str"
    default = None if default is dataclasses.MISSING else default
    if text:
        return option(name, sentence(help), default=default, metavar="NAME")
    return option(name, sentence(help), default=default, read=_numbers, many=True)


def _options() -> list[Any]:
    from ..calibration.families import UNKNOWNS
    from ..targets import REGISTRY

    return [
        *(_goal(name, target) for name, target in REGISTRY.items()),
        *(_field(name, owners) for name, owners in _fields().items() if name not in REGISTRY),
        shared("sampling_prob", many=True),
        shared("num_steps", many=True, default=1),
        shared("noise_multiplier", "given where something else is solved for", many=True),
        shared("dataset_size", "number of records, with --batch-size in place of --sampling-prob",
               many=True),
        shared("batch_size", many=True),
        option("sampler", f"One of {', '.join(SAMPLERS)}. With --dataset-size, --num-epochs and"
               " --num-steps are of the whole run; without, all but poisson need --num-steps of one"
               " epoch.", metavar="NAME", default="poisson", read=sampler),
        shared("num_epochs", "number of epochs", many=True),
        shared("records_per_user"),
        option("solve_for", f"One of {', '.join(UNKNOWNS)}.", metavar="TEXT",
               default="noise_multiplier"),
        option("spec", "TOML or JSON file of a composition whose noise gets a common scale.",
               metavar="PATH"),
        option("black_box", "MODULE:FUNCTION in Python: scale to a callable epsilon -> delta, or to"
               " a jaxgdp.BlackBox.", metavar="TEXT"),
        option("rtol", f"Relative step between what meets the target and what does not, in [1e-6,"
               f" 0.1]. [default: {shown(options.RTOL)}]", read=number),
        shared("adjacency"),
        flag("json", "Print JSON instead of text."),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp calibrate --fnr 0.7 --fpr 0.1 --sampling-prob 0.001 --num-steps 10000",
        "jaxgdp calibrate --epsilon 3 --delta 1e-5 --dataset-size 45000 --batch-size 512"
        " --num-epochs 30",
        "jaxgdp calibrate --advantage 0.05,0.1,0.2 --sampling-prob 0.01 --num-steps 1000 --json",
        "jaxgdp calibrate --epsilon 2 --delta 1e-5 --noise-multiplier 1 --sampling-prob 0.01"
        " --solve-for num_steps",
        "jaxgdp calibrate --mu 1 --spec mechanism.toml",
        "jaxgdp calibrate --epsilon 2 --delta 1e-5 --sampler random_allocation --num-steps 100"
        " --num-epochs 10",
    ),
    renamed={"--tolerance": "--rtol"},
    early=check_early,
)
def calibrate_command(spec: str | None, black_box: str | None, json: bool, **typed: Any) -> None:
    """The smallest noise, or most steps, that provably meets a privacy target; one target, numbers
    or lists that broadcast.
    """
    axes, settings = (given(**{name: typed.pop(name) for name in of}) for of in (_AXES, _SETTINGS))
    target = _target(given(**typed))
    arguments: dict[str, Any] = {name: _array(values) for name, values in axes.items()}
    with working("loading"):
        from ..calibration import calibrate
        from ..spec import read_spec

        if spec is not None:
            found = read_spec(spec)
            arguments["mechanism"] = found.mechanism
            settings = {k: v for k, v in found.settings.items() if k == "adjacency"} | settings
        if black_box is not None:
            arguments["black_box"] = _imported(black_box)
        cache_compiled_programs()
    total = _count(target, axes)
    doing = f"solving for {settings.get('solve_for', 'noise_multiplier')}"
    with working(doing, total if total > 1 else None, "calibrations") as count:
        # of many, those that cannot be had have a status that says so
        infeasible = "flag" if total > 1 else "raise"
        found = calibrate(target, **arguments, **settings, infeasible=infeasible, progress=count)
    print(json_format.dumps(found.to_dict(), indent=1, allow_nan=False) if json else _text(found))


def _target(typed: dict[str, Any]) -> Target:
    """The one target requested."""
    from ..targets import REGISTRY

    names, fields = ", ".join(map(flag_name, REGISTRY)), _fields()
    # (a goal that is also a field of another target, such as an epsilon, belongs to that one)
    chosen = [name for name in REGISTRY if name in typed]
    several = [name for name in chosen if not any(o.option in chosen for o in fields.get(name, []))]
    if len(several) != 1:
        both = " and ".join(map(flag_name, several)) or "none"
        raise ValueError(f"give exactly one target of {names}; got {both}")
    goal, kind = several[0], REGISTRY[several[0]]
    own = {field.name: field for field in kind.others()}
    if stray := [name for name in typed if name != goal and name not in own]:
        raise ValueError(f"{flag_name(stray[0])} does not belong to {flag_name(goal)}")
    for name, field in own.items():
        if name not in typed and field.default is dataclasses.MISSING:
            raise ValueError(f"{flag_name(goal)} needs {flag_name(name)}")
    values = {name: _array(typed[name]) for name in own if name in typed}
    return kind(**{kind.goal_field: _array(typed[goal])}, **values)


def _array(values: Any) -> Any:
    """One number as it is, several as a list."""
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _count(target: Target, axes: dict[str, list[float]]) -> int:
    import numpy as np

    from ..numerics.validation import broadcast

    settings = {name: _array(values) for name, values in axes.items()}
    return int(np.prod(broadcast(target=np.empty(target.shape), **settings)))


def _imported(text: str) -> Callable[[float], Any]:
    """``module:function``, found from the working folder too."""
    import importlib

    module, colon, function = text.partition(":")
    if not (module and colon and function):
        raise ValueError(f"--black-box must be MODULE:FUNCTION, got {text!r}")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--black-box {text!r} cannot be imported: {error}") from None
    finally:
        sys.path.remove("")


def _text(found: Calibration) -> str:
    """The one result, or a row for each."""
    import numpy as np

    from ..calibration import STATUS
    from ..report import rounded_outward

    if not found.status.shape:
        return str(found)
    goal = np.broadcast_to(found.target.goal, found.status.shape).reshape(-1)
    up = found.solve_for in ("noise_multiplier", "scale")
    name, own = found.solve_for, found.target.goal_field
    titles = (f"{own} asked", name, f"{own} lower", f"{own} upper")
    lines = ["  ".join([*(f"{title:>20}" for title in titles), "status"])]
    flat = [np.asarray(a).reshape(-1) for a in (goal, found.value, *found.achieved, found.status)]
    for asked, value, low, high, status in zip(*flat, strict=True):
        safe = rounded_outward(value, up=up, digits=8) if np.isfinite(value) else "none"
        sides = [
            rounded_outward(side, up=k == 1, digits=6) if np.isfinite(side) else "-"
            for k, side in enumerate((low, high))
        ]
        lines.append(f"{asked:>20g}  {safe:>20}  {sides[0]:>20}  {sides[1]:>20}  {int(status)}")
    codes = np.unique(found.status).tolist()
    return "\n".join(lines + [f"status {code}: {STATUS[code]}" for code in codes])
