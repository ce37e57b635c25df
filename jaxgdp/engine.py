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
from . import spectrum
from .half_curve import Dense, Sparse, Vertices, half_curve, merge
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
_VERTICES = 100.0  # vertices between ℓ = 0 and the floor at rtol 1e-3
_PIECE = 10.0  # standard deviations one tilt serves
_FAINTEST = 26.0  # −log of the density, per unit of rtol, that rounding leaves usable
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
def _plan_program(groups, z_floor, z_delta, rtol, faintest, seen, *, pieces):
    """Plans of both half-curves, and the merged number of steps, for a batch."""

    def one(groups, faintest, seen):
        merged, count = merge(groups)
        sides = (
            plan_pieces(merged, count, z_floor, z_delta, rtol, faintest, side, reverse=reverse, pieces=pieces)
            for reverse, side in zip((False, True), seen, strict=True)
        )
        return (*sides, jnp.sum(count))

    return jax.vmap(one)(groups, faintest, seen)


def _seen(v: Vertices, question: Question, log_floor):
    """How far out a half-curve has to be known: the first firm vertex past every rate asked for, (threshold, log FPR).

    Where the firm vertices end before, the rest of the way is guessed from them; (inf, 0) where there are none.
    """
    t, log_alpha, log_tpr = (a.reshape(-1) for a in (v.threshold(), v.log_alpha, v.log_tpr))
    firm = (v.used & v.firm).reshape(-1)
    past = firm & (log_alpha <= log_floor - 0.05)
    if question.deepest is not None:
        past = past & (log_tpr <= np.log(question.deepest) - 0.05)
    k = jnp.argmin(jnp.where(past, t, jnp.inf))
    last = jnp.argmax(jnp.where(firm, t, -jnp.inf))
    short = jnp.minimum(log_floor - 0.05 - log_alpha[last], 0.0)
    ahead = t[last] * (1.0 + 2.0 * short / log_alpha[last])
    guess = jnp.where(firm[last], ahead, jnp.inf), jnp.where(firm[last], log_alpha[last] + short, 0.0)
    return jnp.where(past[k], t[k], guess[0]), jnp.where(past[k], log_alpha[k], guess[1])


@functools.partial(jax.jit, static_argnames=("shape", "question"))
def _curve_program(groups, plans, log_floor, tables, *, shape, question):
    """Curves of a batch of planned settings, or the summaries asked for, and how far out each half had to be known.

    ``shape`` is a pair of ``Dense`` lattices, or the number of vertices of ``Sparse`` ones, whose ``tables`` are arguments.
    """
    both = question.adjacency != "add_remove" or question.keep
    grids = shape if tables is None else [Sparse(t, shape) for t in tables]

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
        seen = _seen(upper_plus, question, log_floor), _seen(upper_minus, question, log_floor)
        if question.keep:
            return {"mu": mu(curve, log_floor)}, seen, curve
        return _summaries(curve, question, log_floor), seen, None

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


class _Lattice(NamedTuple):
    """What a bucket of settings shares; equal ones run together, and those of equal shapes share a program.

    Attributes:
        kind: "sparse" (many small steps), "heavy" (dense, one step reaches up to half of the window, to the right) or
            "whole" (dense, one step is most of the composition).
        vertices: of each piece. frequencies: kept, if sparse. size: N. base: points per octave, if sparse.
        short, long: octaves of points on the two sides of one step, if sparse.
        pieces: tilts along the half-curve.
    """

    kind: str
    vertices: int
    frequencies: int
    size: int
    base: int
    short: int
    long: int
    pieces: int

    def grids(self):
        """(shape, tables) of the two half-curves; see ``_curve_program``."""
        if self.kind == "sparse":
            key = (self.size, self.frequencies, self.vertices, self.base)
            plus, minus = (self.short, self.long), (self.long, self.short)
            return self.vertices, (spectrum.tables(*key, *plus), spectrum.tables(*key, *minus))
        size, block = self.size, self.size // self.vertices
        if self.kind == "whole":
            return (Dense(size, size // 2, size // 2, block),) * 2, None
        left, right = size // 32, size // 2
        return (Dense(size, left, right, block), Dense(size, right, left, block)), None

    def work(self) -> int:
        """Numbers of one setting's largest array."""
        points = self.base * (self.short + self.long + 4)
        wide = max(points, self.frequencies * points // 32, 2 * self.vertices) if self.kind == "sparse" else self.size
        return wide * self.pieces


_SIZES = {"heavy": (14, 16, 18, 20), "whole": (13, 16, 18, 20)}  # of dense lattices
_FREQUENCIES, _VERTEX_MENU = (128, 1024, 4096), (512, 2048, 8192, 32768)
_OCTAVES = ((3, 3), (3, 14), (14, 14))  # of points on the short and on the long side of one step
_TABLE = 2**22  # largest table
_FEWEST = 100  # steps, for a sparse lattice


def _at_least(menu, wanted):
    """The smallest entry of a menu that is enough, else the largest."""
    return next((entry for entry in menu if entry >= wanted), menu[-1])


class _Needs(NamedTuple):
    """What each setting needs of a lattice at accuracy ``rtol`` (arrays over settings).

    Attributes:
        points: points of a sparse lattice; dense: of a dense one. bandwidth: frequencies. vertices: of a piece.
        short, long: reach of a step on its two sides, in points of a sparse lattice.
        steps: number of steps. whole: whether one step is most of the composition.
    """

    points: Any
    dense: Any
    bandwidth: Any
    vertices: Any
    short: Any
    long: Any
    steps: Any
    whole: Any


def _lattice(need: _Needs, row: int, detail: float, rtol: float, pieces: int, largest: int, dense: bool) -> _Lattice:
    """The lattice for one setting, ``detail`` times finer than foreseen."""
    frequencies = _at_least(_FREQUENCIES, need.bandwidth[row])
    vertices = _at_least(_VERTEX_MENU, max(need.vertices[row] * detail, 2 * frequencies))
    base = int(2 ** np.ceil(np.log2(32.0 * detail * np.sqrt(1e-3 / rtol) / 1.3)))
    size = 2 * vertices
    while size < need.points[row] * detail and size < 2**40:
        size *= 2
    finer = size / need.points[row]
    enough = [pair for pair in _OCTAVES if all(
        spectrum.reach(base, octaves) > 1.1 * finer * reach[row] + 8
        for octaves, reach in zip(pair, (need.short, need.long), strict=True)
    )]  # fmt: skip
    sparse = not dense and need.steps[row] >= _FEWEST and need.bandwidth[row] <= _FREQUENCIES[-1] and enough
    if sparse and base * (sum(enough[0]) + 4) * frequencies <= _TABLE:
        return _Lattice("sparse", vertices, frequencies, size, base, *enough[0], pieces)
    kind = "whole" if need.whole[row] else "heavy"
    sizes = [2**k for k in _SIZES[kind] if 2**k <= largest] or [largest]
    size = _at_least(sizes, need.dense[row] * detail)
    share = (2 if pieces == 1 else 8) if kind == "heavy" else 16
    return _Lattice(kind, size // share, 0, size, 0, 0, 0, pieces)


def _plan(groups, rows, question, z_floor, z_delta, pieces, faintest, seen):
    """Plans (plus, minus) of the given settings and what they need; ``faintest`` and ``seen`` have one entry for each."""
    out = []
    for chunk, real in _chunks(np.arange(len(rows)), 64 if pieces == 1 else 8, groups[0][1].shape[0]):
        mine = _take((faintest, seen), chunk)
        answer = _plan_program(_take(groups, rows[chunk]), z_floor, z_delta, question.rtol, *mine, pieces=pieces)
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], answer))  # noqa: B023
    plus, minus, steps = jax.tree.map(lambda *a: np.concatenate(a), *out)
    return (plus, minus), _needs(plus, minus, steps, question.rtol)


def _needs(plus: Plan, minus: Plan, steps, rtol) -> _Needs:
    sides = (plus, minus)
    most = lambda a, b: np.maximum(np.max(a, axis=1), np.max(b, axis=1))  # noqa: E731
    width = [p.high - p.low for p in sides]
    # expected relative width 0.14·h²·T/V, from the variance under the tilt; the brackets themselves decide later
    fine = np.sqrt(0.7 * rtol / 0.14)
    spacing = [fine * p.smooth / np.sqrt(steps[:, None]) for p in sides]
    points = most(*(1.02 * w / h for w, h in zip(width, spacing, strict=True)))
    bandwidth = most(*(1.05 * w * p.bandwidth / (2.0 * np.pi) for w, p in zip(width, sides, strict=True)))
    # vertices: enough of them across the composed law, and between the thresholds asked for
    across = most(*(w / (fine * p.spread) for w, p in zip(width, sides, strict=True)))
    asked = most(*(w / np.maximum(p.cut_high - p.cut_low, 1e-300) for w, p in zip(width, sides, strict=True)))
    vertices = np.maximum(0.9 * across, _VERTICES * np.sqrt(1e-3 / rtol) * asked)

    def reach(p, low):
        moved = p.middle - p.centre
        return np.max(p.reach_low + moved if low else p.reach_high - moved, axis=-1)

    short, long = (
        most(*(reach(p, low) / w for p, low, w in zip(sides, lows, width, strict=True)))
        for lows in ((True, False), (False, True))
    )
    dense = most(*(np.sqrt(steps[:, None]) * w / (fine * p.spread) for w, p in zip(width, sides, strict=True)))
    whole = short >= 0.9 / 32
    dense = dense * np.maximum(np.where(whole, 2.0 * np.maximum(long, short), 2.0 * long), 1.0)
    dense = np.maximum(dense, 1.4 * vertices)
    return _Needs(points, dense, bandwidth, vertices, short * points, long * points, steps, whole)


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
    z_delta = None if deepest is None else -float(ndtri_exp(jnp.asarray(np.log(deepest))))

    stored: dict[int, Any] = {}
    queue: dict[_Lattice, list] = {}

    faintest = np.full(number, np.clip(_FAINTEST + np.log(question.rtol), 6.0, 19.0))
    seen = tuple((np.full(number, np.inf), np.zeros(number)) for _ in range(2))

    def enqueue(rows, pieces):
        """Plan the rows with this many pieces and put them where they belong."""
        mine = _take((faintest, seen), rows)
        plans, needs = _plan(groups, rows, question, z_floor, z_delta, pieces, *mine)
        if pieces not in stored:
            empty = (plans, needs)
            stored[pieces] = jax.tree.map(lambda a: np.zeros((number,) + a.shape[1:], a.dtype), empty)
        for kept, new in zip(jax.tree.leaves(stored[pieces]), jax.tree.leaves((plans, needs)), strict=True):
            kept[rows] = new
        length = np.maximum(plans[0].length[:, 0], plans[1].length[:, 0])
        long = (length > _PIECE) & (pieces < _PIECES[-1])
        for row in rows[~long]:
            place(row, pieces)
        if np.any(long):
            enqueue(rows[long], _PIECES[_PIECES.index(pieces) + 1])

    def place(row, pieces):
        lattice = _lattice(stored[pieces][1], row, detail[row], question.rtol, pieces, max_size, dense[row])
        queue.setdefault(lattice, []).append(row)

    detail, dense = np.ones(number), np.zeros(number, bool)
    enqueue(np.arange(number), _PIECES[1 if question.keep else 0])
    results: dict[str, Any] = {}
    status = np.full(number, WIDE)
    used = np.zeros(number, np.int64)
    width = np.full(number, np.inf)
    tries, shortened, brighter = np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros(number, bool)
    curves: list = [None] * number if question.keep else []
    while queue:
        lattice = min(queue)
        rows = np.asarray(queue.pop(lattice))
        shape, tables = lattice.grids()
        largest = max(1, min(32, _CHUNK // (lattice.work() * groups[0][1].shape[-1])))
        for chunk, real in _chunks(rows, largest, number):
            plans = _take(stored[lattice.pieces][0], chunk)
            out = _curve_program(_take(groups, chunk), plans, log_floor, tables, shape=shape, question=question)
            (found, ends, curve), plans = jax.tree.map(lambda a: np.asarray(a)[:real], (out, plans))  # noqa: B023
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
            stuck = (relative > 0.5 * width[chunk]) & (tries[chunk] > 0)
            used[chunk[better]], width[chunk[better]] = lattice.size, relative[better]
            tries[chunk] += 1
            done = relative <= question.rtol
            status[chunk[done]] = OK
            sparse = lattice.kind == "sparse"
            largest_yet = not sparse and lattice.size >= min(max_size, 2 ** _SIZES[lattice.kind][-1])
            # the first look shows where the rates asked for are: a window that reaches no further is cheaper and sharper
            near = [end[0] < 0.9 * plan.cut_high[:, -1] for end, plan in zip(ends, plans, strict=True)]
            shorter = ~done & (near[0] | near[1]) & (shortened[chunk] < 2) & (lattice.pieces == 1)
            # a finer lattice did not help: look from nearer to the far end
            closer = ~done & ~shorter & stuck & ~brighter[chunk]
            finer = ~done & ~shorter & ~closer & (not largest_yet) & (~stuck | (sparse & (relative > 0.3)))
            for row, wide in zip(chunk[finer], relative[finer], strict=True):
                factor = np.sqrt(min(wide / (0.8 * question.rtol), 16.0))
                detail[row] *= max(factor, 1.1)
                if sparse and wide > 0.3:
                    dense[row], detail[row] = True, 1.0
                place(row, lattice.pieces)
            if np.any(shorter):
                for stored_end, end in zip(seen, ends, strict=True):
                    for kept, new in zip(stored_end, end, strict=True):
                        kept[chunk[shorter]] = new[shorter]
            shortened[chunk[shorter]] += 1
            brighter[chunk[closer]], faintest[chunk[closer]] = True, 0.5 * faintest[chunk[closer]]
            again = shorter | closer
            tries[chunk[again]] = 0
            if np.any(again):
                enqueue(chunk[again], lattice.pieces)
            finished(int(np.sum(~(finer | again))))
    return Answer(results, status, used, curves)


__all__ = ["MAX_SIZE", "STATUS", "Answer", "Plan", "Question", "answer"]
