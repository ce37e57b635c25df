"""``jaxgdp calibrate``: from an accepted risk to the noise, the number of steps or the sampling
rate.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated, Any

from .options import (
    FLOOR_HELP,
    PROGRESS_HELP,
    QUIET_HELP,
    cache_compiled_programs,
    number,
    numbers,
    option,
    working,
)

# option of the goal → (class in jaxgdp.targets, its other fields → their option, whether they have
# a default)
_TARGETS = {
    "mu": ("Mu", {"fpr_floor": ("--fpr-floor", True)}),
    "approximate_mu": ("ApproximateMu", {"approximation": ("--approximation", True)}),
    "epsilon": ("EpsilonDelta", {"delta": ("--delta", False)}),
    "advantage": ("Advantage", {}),
    "fnr": ("FNR", {"fpr": ("--fpr", False)}),
    "tpr": ("TPR", {"fpr": ("--fpr", False)}),
    "accuracy": ("Accuracy", {"fpr": ("--fpr", False)}),
    "precision": ("Precision", {"fpr": ("--fpr", False)}),
    "bayes_risk": ("BayesRisk", {"prior": ("--prior", True)}),
    "success": ("AttackSuccess", {"baseline": ("--baseline", False)}),
    "regret": ("Regret", {"fpr_floor": ("--fpr-floor", True)}),
    "value": ("OfQuantity", {"quantity": ("--quantity", False), "at": ("--at", True)}),
}
_LIST = "A number or a comma-separated list."


def _goal(name: str, help: str):
    return option(name, help=help)


def calibrate_command(
    mu: Annotated[str | None, _goal("--mu", "Target: mu, over FPRs from --fpr-floor on.")] = None,
    approximate_mu: Annotated[
        str | None, _goal("--approximate-mu", "Target: d-approximate mu, d in --approximation.")
    ] = None,
    epsilon: Annotated[str | None, _goal("--epsilon", "Target: epsilon at --delta, nats.")] = None,
    advantage: Annotated[
        str | None, _goal("--advantage", "Target: membership advantage, max TPR - FPR.")
    ] = None,
    fnr: Annotated[
        str | None, _goal("--fnr", "Target: FNR of every attack at --fpr, at least.")
    ] = None,
    tpr: Annotated[
        str | None, _goal("--tpr", "Target: TPR of every attack at --fpr, at most.")
    ] = None,
    accuracy: Annotated[
        str | None, _goal("--accuracy", "Target: attack accuracy at --fpr, equal priors.")
    ] = None,
    precision: Annotated[
        str | None, _goal("--precision", "Target: attack precision at --fpr, equal priors.")
    ] = None,
    bayes_risk: Annotated[
        str | None, _goal("--bayes-risk", "Target: least error probability at --prior.")
    ] = None,
    success: Annotated[
        str | None,
        _goal(
            "--success",
            "Target: success of re-identification, attribute inference or reconstruction, at"
            " --baseline.",
        ),
    ] = None,
    regret: Annotated[str | None, _goal("--regret", "Target: regret of reporting mu.")] = None,
    value: Annotated[
        str | None,
        _goal("--value", "Target: safe side of --quantity, any that `jaxgdp quantities` lists."),
    ] = None,
    quantity: Annotated[
        str | None, option("--quantity", help="Quantity of --value, by name.", metavar="NAME")
    ] = None,
    at: Annotated[
        str | None, option("--at", help="What --quantity is asked at. [default: its own]")
    ] = None,
    fpr: Annotated[
        str | None, option("--fpr", help="FPR of --fnr, --tpr, --accuracy and --precision.")
    ] = None,
    delta: Annotated[str | None, option("--delta", help="Delta of --epsilon, in (0, 1).")] = None,
    prior: Annotated[
        str | None,
        option(
            "--prior",
            help="Probability that the record is absent, for --bayes-risk. [default: 0.5]",
        ),
    ] = None,
    baseline: Annotated[
        str | None, option("--baseline", help="Success without seeing the output.")
    ] = None,
    fpr_floor: Annotated[
        str | None, option("--fpr-floor", help=f"{FLOOR_HELP} [default: 1e-10]")
    ] = None,
    approximation: Annotated[
        str | None,
        option("--approximation", help="d of --approximate-mu, in (0, 1). [default: 1e-10]"),
    ] = None,
    sampling_prob: Annotated[
        list[str] | None,
        option("--sampling-prob", help=f"Sampling rate in (0, 1]. {_LIST} [default: 1]"),
    ] = None,
    num_steps: Annotated[
        list[str] | None,
        option("--num-steps", help=f"Number of steps, whole. {_LIST} [default: 1]"),
    ] = None,
    noise_multiplier: Annotated[
        list[str] | None,
        option("--noise-multiplier", help=f"Given when something else is solved for. {_LIST}"),
    ] = None,
    sampler: Annotated[
        str | None,
        option(
            "--sampler",
            help=(
                "poisson, random_allocation, shuffled or deterministic; all but poisson:"
                " --num-steps of one epoch. [default: poisson]"
            ),
            metavar="NAME",
        ),
    ] = None,
    num_epochs: Annotated[
        list[str] | None,
        option(
            "--num-epochs",
            help=f"Epochs, whole, for other samplers than poisson. {_LIST} [default: 1]",
        ),
    ] = None,
    solve_for: Annotated[
        str,
        option("--solve-for", help="noise_multiplier, num_steps or sampling_prob.", metavar="TEXT"),
    ] = "noise_multiplier",
    spec: Annotated[
        str | None,
        option(
            "--spec",
            help="TOML or JSON file of a composition whose noise gets a common scale.",
            metavar="PATH",
        ),
    ] = None,
    black_box: Annotated[
        str | None,
        option(
            "--black-box",
            help=(
                "MODULE:FUNCTION in Python: scale to a callable epsilon -> delta, or to a"
                " jaxgdp.BlackBox."
            ),
            metavar="TEXT",
        ),
    ] = None,
    tolerance: Annotated[str, option("--rtol", help="Relative step, in [1e-6, 0.1].")] = "1e-3",
    adjacency: Annotated[
        str | None,
        option(
            "--adjacency",
            help="add_remove, add, remove or replace_one. [default: add_remove]",
            metavar="TEXT",
        ),
    ] = None,
    json: Annotated[
        bool, option("--json", help="Print JSON instead of text.", metavar=None)
    ] = False,
    quiet: Annotated[bool, option("--quiet", help=QUIET_HELP, metavar=None)] = False,
    progress: Annotated[bool, option("--progress", help=PROGRESS_HELP, metavar=None)] = False,
) -> None:
    """The smallest noise, or most steps, that provably meets a privacy target; one target, numbers
    or lists that broadcast.

    \b
    Examples: jaxgdp calibrate --fnr 0.7 --fpr 0.1 --sampling-prob 0.001 --num-steps 10000 jaxgdp
      calibrate --advantage 0.05,0.1,0.2 --sampling-prob 0.01 --num-steps 1000 --json jaxgdp
      calibrate --epsilon 2 --delta 1e-5 --noise-multiplier 1 --sampling-prob 0.01 --solve-for
      num_steps jaxgdp calibrate --mu 1 --spec mechanism.toml jaxgdp calibrate --epsilon 2 --delta
      1e-5 --sampler random_allocation --num-steps 100 --num-epochs 10
    """
    given = {
        "mu": mu, "approximate_mu": approximate_mu, "epsilon": epsilon, "advantage": advantage, "fnr": fnr, "tpr": tpr,
        "accuracy": accuracy, "precision": precision, "bayes_risk": bayes_risk, "success": success, "regret": regret,
        "value": value,
    }  # fmt: skip
    others = {
        "--fpr": fpr, "--delta": delta, "--prior": prior, "--baseline": baseline, "--fpr-floor": fpr_floor,
        "--approximation": approximation, "--quantity": quantity, "--at": at,
    }  # fmt: skip
    with working("loading", quiet=quiet, always=progress):
        target = _target(given, others)
    settings = {
        "sampling_prob": sampling_prob, "num_steps": num_steps, "noise_multiplier": noise_multiplier, "num_epochs": num_epochs,
    }  # fmt: skip
    arguments: dict[str, Any] = {
        name: _array("--" + name.replace("_", "-"), texts)
        for name, texts in settings.items()
        if texts is not None
    }
    if spec is not None:
        found = _from_spec(spec)
        arguments["mechanism"] = found.mechanism
        adjacency = adjacency or found.settings.get("adjacency")
    if black_box is not None:
        arguments["black_box"] = _imported(black_box)
    step = number("--rtol", tolerance)
    with working("loading", quiet=quiet, always=progress):
        from ..calibration import calibrate

        cache_compiled_programs()
    total = _count(target, arguments)
    settings = {
        "solve_for": solve_for, "rtol": step, "adjacency": adjacency or "add_remove", "sampler": sampler or "poisson",
    }  # fmt: skip
    shown = (f"solving for {solve_for}", total if total > 1 else None, "calibrations")
    with working(*shown, quiet, progress) as count:
        # of many, those that cannot be had are told in their status
        found = calibrate(
            target,
            **arguments,
            **settings,
            infeasible="flag" if total > 1 else "raise",
            progress=count,
        )
    print(json_format.dumps(found.to_dict(), indent=1, allow_nan=False) if json else _text(found))


def _target(given: dict, others: dict):
    """The one target asked for."""
    from .. import targets

    chosen = [name for name, value in given.items() if value is not None]
    names = ", ".join("--" + name.replace("_", "-") for name in given)
    if len(chosen) != 1:
        told = " and ".join("--" + name.replace("_", "-") for name in chosen) or "none"
        raise ValueError(f"give exactly one target of {names}; got {told}")
    goal = chosen[0]
    kind, fields = _TARGETS[goal]
    values = {
        "mu" if goal == "approximate_mu" else goal: _array(
            "--" + goal.replace("_", "-"), [given[goal]]
        )
    }
    needed = {name for name, _ in fields.values()}
    if stray := [
        name for name, value in others.items() if value is not None and name not in needed
    ]:
        raise ValueError(f"{stray[0]} does not belong to --{goal.replace('_', '-')}")
    for field, (name, has_default) in fields.items():
        if others[name] is not None:
            values[field] = others[name] if field == "quantity" else _array(name, [others[name]])
        elif not has_default:
            raise ValueError(f"--{goal.replace('_', '-')} needs {name}")
    return getattr(targets, kind)(**values)


def _array(name: str, texts):
    found = numbers(name, texts)
    return found[0] if len(found) == 1 else found


def _count(target, arguments) -> int:
    import numpy as np

    from ..numerics.validation import broadcast

    plain = {
        name: value for name, value in arguments.items() if name not in ("mechanism", "black_box")
    }
    return int(np.prod(broadcast(target=np.empty(target.shape), **plain)))


def _from_spec(path: str):
    from ..spec import read_spec

    return read_spec(path)


def _imported(text: str):
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


def _text(found) -> str:
    """The one result, or a row for each."""
    import numpy as np

    from ..calibration import STATUS
    from ..report import rounded_outward

    if not found.status.shape:
        return str(found)
    goal = np.broadcast_to(found.target.goal, found.status.shape).reshape(-1)
    up = found.solve_for in ("noise_multiplier", "scale")
    name, own = found.solve_for, found.target.goal_field
    lines = [
        f"{own + ' asked':>20}  {name:>20}  {own + ' lower':>20}  {own + ' upper':>20}  status"
    ]
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
