"""``jaxgdp strategies``: DP-SGD, a tree and banded strategies side by side."""

from __future__ import annotations

from typing import Any

from .command import command
from .options import (
    FIGURE,
    FORCE,
    cache_compiled_programs,
    draw,
    figure_path,
    flag,
    number,
    numbers,
    option,
    progress_options,
    shared,
    tell_written,
    working,
)


def _options() -> list[Any]:
    return [
        shared("num_steps", required=True),
        shared("num_epochs"),
        option("mu", "Largest mu.", metavar="NUMBER", read=number),
        option("epsilon", "Largest epsilon at --delta.", metavar="NUMBER", read=number),
        shared("delta", "δ at which ε is meant"),
        option("bands", "Numbers of bands, comma-separated. [default: 4,16]", metavar="NUMBER",
               many=True),
        flag("balls_in_bins", "Add batches that are drawn once and used in turn: takes minutes."),
        option("figure", FIGURE, metavar="PATH"),
        flag("force", FORCE),
        *progress_options(),
    ]  # fmt: skip


@command(_options, ("jaxgdp strategies --num-steps 256 --num-epochs 4 --mu 1 --bands 4,16",))
def strategies_command(
    num_steps: float,
    num_epochs: float | None,
    mu: float | None,
    epsilon: float | None,
    delta: float | None,
    bands: list[str] | None,
    balls_in_bins: bool,
    figure: str | None,
    force: bool,
) -> None:
    """The noise that strategies of correlated noise need for one goal, and the error of prefix
    sums that is left.
    """
    if (mu is None) == (epsilon is None):
        raise ValueError("give exactly one of --mu and --epsilon")
    drawn = figure_path("--figure", figure, force)
    with working("loading"):
        from .. import options
        from ..grids.compare_strategies import compare_strategies
        from ..targets import EpsilonDelta, Mu

        cache_compiled_programs()
    at = options.DELTA if delta is None else delta
    target = Mu(mu) if mu is not None else EpsilonDelta(epsilon, at)
    chosen: dict[str, Any] = {}
    if bands:
        chosen["bands"] = [int(each) for each in numbers("--bands", bands)]
    with working("calibrating"):
        found = compare_strategies(
            target,
            int(num_steps),
            1 if num_epochs is None else int(num_epochs),
            balls_in_bins=balls_in_bins,
            **chosen,
        )
    if drawn is not None:
        from ..plot import strategies

        panel = lambda page: strategies(found, page.add_subplot())
        draw(drawn, (6.4, 4.2), panel, "Strategies of correlated noise", None)
    print(found)
    tell_written(drawn)
