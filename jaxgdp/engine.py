"""From a batch of mechanisms to certified curves: choose lattices, run bucket after bucket, refine what is too wide.

Two kinds of compiled program serve any batch: one plans tilts and windows, the other, one per lattice size, goes from the plan
to the requested summaries. Batches are cut into chunks of fixed size, so memory is bounded and nothing is
retraced within a sweep.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .bracket import Bracket
from .half_curve import Grid, half_curve, merge
from .normal import ndtri_exp
from .precision import with_float64
from .summaries.curve import Curve
from .summaries.error_rates import error_rates
from .summaries.mu import approximate_mu, mu
from .summaries.profile import advantage, epsilon, log_delta
from .summaries.regret import regret
from .windows import Plan, plan_pieces

MAX_SIZE = 2**20
OK, WIDE = 0, 1
STATUS = {OK: "ok", WIDE: "wider than rtol at the largest lattice"}
_CHUNK = 2**19  # lattice points worked on at once
_VERTICES = 200.0  # vertices between ℓ = 0 and the floor at rtol 1e-3
_PIECE = 10.0  # standard deviations one tilt serves
_PIECES = (1, 8, 64)  # tilts along a half-curve, fewest first


@dataclass(frozen=True)
class Question:
    """What to compute for every setting; hashable, so that it decides the program.

    Attributes:
        rtol: relative width of the μ bracket.
        fpr_floor: FPR floor of μ and of the regret.
        adjacency: "add_remove", "add" or "remove".
        names: summaries wanted, of ``SUMMARIES``, each with its parameter: (("mu", None), ("epsilon", 1e-5), …).
        deepest: smallest TPR (or δ) that has to be resolved, or None for nothing beyond the floor.
        keep: whether whole curves are wanted instead of summaries.
    """

    rtol: float
    fpr_floor: float
    adjacency: str = "add_remove"
    names: tuple = (("mu", None),)
    deepest: float | None = None
    keep: bool = False


def _summaries(curve: Curve, question: Question, log_floor) -> dict[str, Any]:
    symmetric = question.adjacency == "add_remove"
    reported = mu(curve, log_floor)
    results = {"mu": reported}
    for name, parameter in question.names:
        if name == "regret":
            results[name] = regret(curve, reported, symmetric=symmetric)
        elif name == "advantage":
            results[name] = advantage(curve)
        elif name == "epsilon":
            results[f"{name}@{parameter:g}"] = epsilon(curve, np.log(parameter), symmetric=symmetric)
        elif name == "delta":
            value = log_delta(curve, jnp.asarray(parameter), symmetric=symmetric)
            results[f"{name}@{parameter:g}"] = jax.tree.map(jnp.exp, value)
        elif name == "tpr":
            value, _ = error_rates(curve, jnp.asarray(np.log(parameter)), symmetric=symmetric)
            results[f"{name}@{parameter:g}"] = jax.tree.map(jnp.exp, value)
        elif name == "approximate_mu":
            results[f"{name}@{parameter:g}"] = approximate_mu(curve, np.log(parameter))
    return results


@functools.partial(jax.jit, static_argnames=("pieces",))
def _plan_program(groups, z_floor, z_delta, rtol, lean, *, pieces):
    """Plans of both half-curves, and the merged number of steps, for a batch."""

    def one(groups):
        merged, count = merge(groups)
        sides = (
            plan_pieces(merged, count, z_floor, z_delta, rtol, lean, reverse=reverse, pieces=pieces)
            for reverse in (False, True)
        )
        return (*sides, jnp.sum(count))

    return jax.vmap(one)(groups)


@functools.partial(jax.jit, static_argnames=("grids", "question"))
def _curve_program(groups, plans, log_floor, *, grids, question):
    """Curves of a batch of planned settings, or the summaries asked for."""
    both = question.adjacency != "add_remove" or question.keep

    def one(groups, plans):
        merged, count = merge(groups)
        (upper_plus, lower_plus), (upper_minus, lower_minus) = (
            half_curve(merged, count, plan, grid, reverse=reverse, attack=both or not reverse)
            for reverse, plan, grid in zip((False, True), plans, grids, strict=True)
        )
        precision = sum(jnp.sum(c * jax.vmap(lambda m: m.tail_precision())(m)) for m, c in groups)
        curve = Curve(upper_plus, upper_minus, lower_plus, lower_minus or lower_plus, jnp.sqrt(precision))
        if question.adjacency == "add":
            curve = Curve(upper_minus, upper_plus, curve.lower_minus, lower_plus, curve.tail_mu)
        if question.keep:
            return {"mu": mu(curve, log_floor)}, curve
        return _summaries(curve, question, log_floor), None

    return jax.vmap(one)(groups, plans)


class Answer(NamedTuple):
    """Results of one batch.

    Attributes:
        results: name → Bracket of arrays of shape (settings,).
        status: code per setting, keys of ``STATUS``.
        sizes: lattice points used per setting.
        curves: list of (indices, Curve) when curves were kept.
    """

    results: dict
    status: Any
    sizes: Any
    curves: list


def _relative_width(bracket: Bracket):
    with np.errstate(invalid="ignore"):
        relative = (bracket.upper - bracket.lower) / np.maximum(bracket.upper, 1e-300)
    return np.where(np.isfinite(relative), relative, np.inf)


def _take(tree, rows):
    return jax.tree.map(lambda a: np.asarray(a)[rows], tree)


def _chunks(rows, largest, many):
    """Cut row numbers into equal chunks, the last one filled up by repetition; yields (padded rows, how many are real).

    Of ``many`` settings every chunk has the largest size, so that each bucket compiles once; few settings are not padded
    as far.
    """
    size = largest if many > 64 else 1 if len(rows) == 1 else min(largest, 8) if len(rows) <= 8 else largest
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield np.concatenate([part, np.full(size - len(part), part[0])]), len(part)


# lattice sizes tried for each kind of single-step tail: few, because each is one more program to compile
_MENU = {"light": (13, 15, 17, 19), "heavy": (14, 16, 18, 20), "whole": (13, 16, 18, 20)}


def _share(tail: str, pieces: int) -> int:
    """Lattice points per vertex."""
    return (2 if pieces == 1 else 8) if tail == "heavy" else 16


def _size(tail: str, wanted: float, largest: int) -> int:
    """The smallest lattice of the menu that holds ``wanted`` points."""
    sizes = [2**k for k in _MENU[tail] if 2**k <= largest] or [largest]
    return next((size for size in sizes if size >= wanted), sizes[-1])


def _grids(size: int, tail: str, pieces: int) -> tuple[Grid, Grid]:
    """Lattices of the two half-curves for one bucket.

    ``tail`` says how far one step reaches: "light" (a small part of the composed window, whose high frequencies can be
    dropped), "heavy" (up to half of it, to the right), or "whole" (one step is most of the composition).
    """
    block = _share(tail, pieces)
    if tail == "whole":
        grid = Grid(size, size // 2, size // 2, block, False, pieces)
        return grid, grid
    left, right = size // 32, size // (8 if tail == "light" else 2)
    low_pass = tail == "light"
    return Grid(size, left, right, block, low_pass, pieces), Grid(size, right, left, block, low_pass, pieces)


def _plan(groups, rows, question, z_floor, z_delta, pieces, lean):
    """Plan the given settings; returns plans (plus, minus), first lattice sizes and tail classes."""
    out = []
    for chunk, real in _chunks(rows, 64 if pieces == 1 else 8, groups[0][1].shape[0]):
        answer = _plan_program(_take(groups, chunk), z_floor, z_delta, question.rtol, lean, pieces=pieces)
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], answer))  # noqa: B023
    plus, minus, steps = jax.tree.map(lambda *a: np.concatenate(a), *out)
    sides = (plus, minus)
    width = [p.high - p.low for p in sides]
    # expected relative width 0.14·h²·T/V, from the variance under the tilt; the brackets themselves decide later
    spacing = np.sqrt(0.7 * question.rtol / 0.14 / steps[:, None])
    points = np.maximum(*(np.max(w / (spacing * p.spread), axis=1) for w, p in zip(width, sides, strict=True)))
    # a step's reach in parts of the composed window: its short and its long side
    short, long = (
        np.maximum(np.max(a.max(-1) / width[0], axis=1), np.max(b.max(-1) / width[1], axis=1))
        for a, b in ((plus.reach_low, minus.reach_high), (plus.reach_high, minus.reach_low))
    )
    light = (short < 0.9 / 32) & (long < 0.9 / 8) & (steps >= 100)
    heavy = short < 0.9 / 32
    tail = np.where(light, "light", np.where(heavy, "heavy", "whole"))
    reach = np.where(light, 1.0, np.where(heavy, 2.0 * long, 2.0 * np.maximum(long, short)))
    points = points * np.maximum(reach, 1.0)
    # vertices: enough of them between the thresholds asked for, however much wider the window is
    thresholds = [
        np.max(w / np.maximum(p.cut_high - p.cut_low, 1e-300), axis=1) for w, p in zip(width, sides, strict=True)
    ]
    vertices = _VERTICES * np.sqrt(1e-3 / question.rtol) * np.maximum(*thresholds)
    points = np.maximum(points, 0.7 * vertices * np.array([_share(t, pieces) for t in tail]))
    return sides, points, tail


@with_float64
def answer(groups, question: Question, progress=None, max_size: int = MAX_SIZE) -> Answer:
    """Certified summaries of a flat batch of mechanisms.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest lattice to try.

    Returns:
        An :class:`Answer`.
    """
    number = groups[0][1].shape[0]
    finished = progress or (lambda done: None)
    log_floor = np.log(question.fpr_floor)
    z_floor = -float(ndtri_exp(jnp.asarray(log_floor)))
    deepest = question.deepest
    z_delta = -np.inf if deepest is None else -float(ndtri_exp(jnp.asarray(np.log(deepest))))

    stored: dict[int, Any] = {}
    queue: dict[tuple, list] = {}

    def enqueue(rows, pieces, lean=0.5):
        """Plan the rows with this many pieces and put them where they belong."""
        plans, points, tails = _plan(groups, rows, question, z_floor, z_delta, pieces, lean)
        if pieces not in stored:
            stored[pieces] = jax.tree.map(lambda a: np.zeros((number,) + a.shape[1:]), plans)
        for kept, new in zip(jax.tree.leaves(stored[pieces]), jax.tree.leaves(plans), strict=True):
            kept[rows] = new
        length = np.maximum(plans[0].length[:, 0], plans[1].length[:, 0])
        long = (length > _PIECE) & (pieces < _PIECES[-1])
        for row, n, tail in zip(rows[~long], points[~long], tails[~long], strict=True):
            queue.setdefault((_size(tail, n, max_size), pieces, str(tail)), []).append(row)
        if np.any(long):
            enqueue(rows[long], _PIECES[_PIECES.index(pieces) + 1], lean)

    enqueue(np.arange(number), _PIECES[1 if question.keep else 0])
    results: dict[str, Any] = {}
    status = np.full(number, WIDE)
    used = np.zeros(number, np.int64)
    width = np.full(number, np.inf)
    tries, leaned = np.zeros(number, np.int64), np.zeros(number, bool)
    curves: list = [None] * number if question.keep else []
    while queue:
        key = min(queue)
        size, pieces, tail = key
        rows = np.asarray(queue.pop(key))
        grids = _grids(size, tail, pieces)
        largest = max(1, min(64, _CHUNK // (size * pieces * groups[0][1].shape[-1])))
        for chunk, real in _chunks(rows, largest, number):
            found, curve = _curve_program(
                _take(groups, chunk), _take(stored[pieces], chunk), log_floor, grids=grids, question=question
            )
            found, curve = jax.tree.map(lambda a: np.asarray(a)[:real], (found, curve))  # noqa: B023
            chunk = chunk[:real]
            relative = _relative_width(found["mu"])
            better = (relative < width[chunk]) | (used[chunk] == 0)
            for name, bracket in found.items():
                store = results.setdefault(name, Bracket(np.zeros(number), np.full(number, np.inf)))
                for kept, new in zip(store, bracket, strict=True):
                    kept[chunk[better]] = new[better]
            if question.keep:
                for i in np.flatnonzero(better):
                    curves[chunk[i]] = _take(curve, i)
            progress_made = relative < 0.5 * width[chunk]
            used[chunk[better]], width[chunk[better]] = size, relative[better]
            done = relative <= question.rtol
            status[chunk[done]] = OK
            refine = ~done & (size < max_size) & (size < 2 ** _MENU[tail][-1])
            # a finer lattice did not help: where single large steps take over from many small ones, the middle of the
            # range is the wrong place for the tilt
            stuck = ~done & ~progress_made & (tries[chunk] > 0)
            lean = stuck & ~leaned[chunk]
            refine &= ~stuck
            tries[chunk] += 1
            for row, wide in zip(chunk[refine], relative[refine], strict=True):
                factor = np.sqrt(min(wide / (0.8 * question.rtol), 16.0))
                if tail == "light" and wide > 0.3:  # the frequencies dropped were needed
                    queue.setdefault((_size("heavy", size, max_size), pieces, "heavy"), []).append(row)
                else:
                    queue.setdefault((_size(tail, size * max(factor, 1.1), max_size), pieces, tail), []).append(row)
            if np.any(lean):
                leaned[chunk[lean]], tries[chunk[lean]] = True, 0
                enqueue(chunk[lean], pieces, 0.25)
            finished(int(np.sum(~(refine | lean))))
    return Answer(results, status, used, curves)


__all__ = ["MAX_SIZE", "STATUS", "Answer", "Plan", "Question", "answer"]
