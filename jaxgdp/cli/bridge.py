"""``jaxgdp bridge``: from (ε, δ) statements, or a description, to a certified μ."""

from __future__ import annotations

import csv as csv_format
import json as json_format
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import options
from .command import command
from .options import (
    FORCE,
    cache_compiled_programs,
    draw,
    figure_path,
    flag,
    given,
    number,
    one_source,
    option,
    progress_options,
    shared,
    tell_written,
    working,
)

if TYPE_CHECKING:
    from ..bridge import GdpVerdict
    from ..numerics.shapes import Array, ArrayLike
    from ..progress import Progress

FPRS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
_POINTS = 301
_LARGEST_FILE = 16 * 2**20


class _Result(NamedTuple):
    """The printed and drawn results: the verdict, and the functions it was found from."""

    verdict: GdpVerdict
    profile: Callable[[ArrayLike], Array]
    beta: Callable[[ArrayLike], Array]
    last: float
    source: Any


def _options() -> list[Any]:
    return [
        option("epsilon_delta", "A statement EPSILON,DELTA (ε in nats); repeated.",
               metavar="EPSILON,DELTA", many=True, read=lambda _, text: [_pair(text)], to="pairs"),
        option("csv", "CSV file of statements: columns epsilon, delta.", metavar="PATH"),
        option("spec", "TOML or JSON file that describes a composed mechanism.", metavar="PATH"),
        shared("fpr_floor"),
        shared("rtol"),
        option("figure", "Profile, transformation and trade-off curve: .png, .pdf or .svg.",
               metavar="PATH"),
        flag("force", FORCE),
        flag("json", "Print JSON instead of text."),
        *progress_options(),
    ]  # fmt: skip


@command(
    _options,
    (
        "jaxgdp bridge --epsilon-delta 1,1e-5 --epsilon-delta 2,1e-9",
        "jaxgdp bridge --csv statements.csv --figure bridge.pdf",
        "jaxgdp bridge --spec mechanism.toml --json",
    ),
)
def bridge_command(
    pairs: list[tuple[float, float]] | None,
    csv: str | None,
    spec: str | None,
    figure: str | None,
    force: bool,
    json: bool,
    **settings: float | None,
) -> None:
    """Gaussian DP from a privacy profile: whether, with which mu, and from which FPR on."""
    sources = {"--epsilon-delta": pairs, "--csv": csv, "--spec": spec}
    one_source(sources, "of ")
    asked = {"fpr_floor": options.FPR_FLOOR, "rtol": options.RTOL} | given(**settings)
    path = figure_path("--figure", figure, force)
    with working("loading") as shown:
        if spec is None:
            statements = _read_csv(csv) if csv is not None else pairs or []
            shown.describe("measuring")
            found = _of_statements(statements, asked)
        else:
            cache_compiled_programs()
            found = _of_spec(spec, asked, shown)
    rows = _rates(found)
    print(_json(found, rows) if json else _text(found, rows))
    if path is not None:
        with working("drawing"):
            _draw(found, path)
        tell_written(None if json else path)


def _pair(text: str) -> tuple[float, float]:
    pieces = text.split(",")
    if len(pieces) != 2:
        raise ValueError(f"--epsilon-delta must be EPSILON,DELTA, got {text!r}")
    return number("--epsilon-delta", pieces[0]), number("--epsilon-delta", pieces[1])


def _read_csv(path: str) -> list[tuple[float, float]]:
    """Statements of a file: two columns, or those named epsilon and delta, without # lines."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"--csv must be the path of a file, got {path!r}")
    if file.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"{path}: larger than {_LARGEST_FILE >> 20} MiB")
    places, pairs = None, []
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    for position, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv_format.reader([line]))]
        if places is None:
            names = [cell.lower() for cell in cells]
            if {"epsilon", "delta"} <= set(names):
                places = names.index("epsilon"), names.index("delta")
                continue
            if len(cells) != 2:
                raise ValueError(
                    f"{path}, line {position}: needs columns epsilon and delta, got {line!r}"
                )
            places = 0, 1
        try:
            pairs.append(tuple(float(cells[place]) for place in places))
        except (ValueError, IndexError):
            raise ValueError(f"{path}, line {position}: needs two numbers, got {line!r}") from None
    if not pairs:
        raise ValueError(f"{path}: no statements in it")
    return pairs


def _of_statements(pairs: list[tuple[float, float]], settings: dict[str, Any]) -> _Result:
    import numpy as np

    from ..bridge import identify, refine

    epsilon, delta = np.array(pairs, float).T
    profile = refine(epsilon, delta)
    verdict = identify(profile, **settings)
    return _Result(verdict, profile, profile.beta, float(profile.epsilon[-1]), profile)


def _of_spec(path: str, settings: dict[str, Any], shown: Progress) -> _Result:
    from ..bridge import identify
    from ..spec import read_spec
    from ..tradeoff import tradeoff

    described = read_spec(path)
    shown.describe("measuring")
    adjacency = described.settings.get("adjacency", "add_remove")
    curve = tradeoff(described.mechanism, adjacency=adjacency, **settings)
    verdict = identify(curve, rtol=settings["rtol"])
    last = float(curve.epsilon(1e-12).upper)
    last = last if math.isfinite(last) else 20.0
    delta, beta = lambda e: curve.delta(e).upper, lambda a: curve.beta(a).lower
    return _Result(verdict, delta, beta, last, curve)


def _rates(found: _Result) -> list[tuple[float, float, float]]:
    """(FPR, least FNR, least FNR by μ or NaN where it does not hold)."""
    from .. import gdp

    mu, floor = float(found.verdict.head_mu.upper), found.verdict.fpr_floor
    rows = []
    for fpr in FPRS:
        holds = math.isfinite(mu) and fpr >= floor * (1.0 - 1e-9)
        gaussian = float(gdp.beta(fpr=fpr, mu=mu)) if holds else math.nan
        rows.append((fpr, float(found.beta(fpr)), gaussian))
    return rows


def _text(found: _Result, rows: list[tuple[float, float, float]]) -> str:
    from ..numerics.rounding import rounded_outward

    verdict = found.verdict
    down = lambda x: rounded_outward(x, up=False, digits=6)
    top = rounded_outward(float(verdict.head_mu.upper), up=True, digits=6)
    sides = f"[{down(float(verdict.head_mu.lower))}, {top}]"
    floor = verdict.fpr_floor
    where = "at every rate" if floor == 0.0 else f"for FPRs from {floor:.3g} on"
    tail = "not known" if verdict.tail_mu is None else f"{verdict.tail_mu:.6g}"
    lines = [f"verdict   {verdict.claim}", f"why       {verdict.reason}"]
    lines += [f"mu        {sides}, {where}; report the upper side", f"tail mu   {tail}", ""]
    lines += [f"{'FPR':>8}  {'FNR at least':>14}  {'by mu':>14}"]
    for fpr, fnr, gaussian in rows:
        by_mu = "-" if math.isnan(gaussian) else down(gaussian)
        lines.append(f"{fpr:>8g}  {down(fnr):>14}  {by_mu:>14}")
    return "\n".join(lines)


def _json(found: _Result, rows: list[tuple[float, float, float]]) -> str:
    from ..numerics.provenance import provenance

    plain = lambda x: x if x is None or math.isfinite(x) else ("inf" if x > 0 else None)
    verdict = found.verdict
    sides = lambda b: {side: plain(float(getattr(b, side))) for side in ("lower", "upper")}
    bracket = lambda b: sides(b) | {"report": "upper"}
    question = "whether a mu of Gaussian DP holds, which, and from which FPR on"
    content = {
        **provenance(question, float(verdict.fpr_floor)),
        "is_gdp": verdict.is_gdp,
        "tail_mu": plain(verdict.tail_mu),
        "mu": bracket(verdict.head_mu),
        "fpr_floor": verdict.fpr_floor,
        "everywhere": bracket(verdict.everywhere),
        "claim": verdict.claim,
        "reason": verdict.reason,
        "fnr": [
            {"fpr": fpr, "lower": fnr, "by_mu": None if math.isnan(g) else g}
            for fpr, fnr, g in rows
        ],
    }
    return json_format.dumps(content, indent=1, allow_nan=False)


def _draw(found: _Result, path: Path) -> None:
    import numpy as np

    from .. import gdp
    from ..bridge import gdp_transformation
    from ..plot import bridge_panels

    mu = float(found.verdict.head_mu.upper)
    epsilon = np.linspace(0.0, 1.1 * min(max(found.last, 0.5), 500.0), _POINTS)
    alpha = np.linspace(0.0, 1.0, _POINTS)
    shown = mu if math.isfinite(mu) else 0.0
    delta = np.asarray(found.profile(epsilon)), gdp.delta(epsilon=epsilon, mu=shown)
    rates = alpha, np.asarray(found.beta(alpha)), gdp.beta(fpr=alpha, mu=shown)
    floor, transformation = found.verdict.fpr_floor, gdp_transformation(found.source, epsilon)
    panels = partial(bridge_panels, epsilon, delta, transformation, rates, shown, floor)
    draw(path, (10.5, 3.4), panels, f"is it Gaussian DP: {found.verdict}", floor)
