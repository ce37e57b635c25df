"""From a batch of mechanisms to certified numbers: by closed forms, by which steps had the record,
by moments, and by lattices where these leave a number too wide.

An executor that is named gives a batch the same bits whatever the process did before, and NumPy
gives a setting the same bits beside whichever others (``numerics.batching.products``). Those of
compiled programs may differ beside others, as sums over rows have other orders; and where no
executor is named, what is compiled already decides who computes. Brackets hold in every case."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...numerics.precision import with_float64
from ...numerics.shapes import Array
from ..certify import closed_forms
from ..question import USUAL, Answer, Question
from . import (
    after_lattices,
    by_far_shifts,
    by_jumps,
    by_moments,
    by_pieces,
    by_place,
    by_share,
    executors,
    far_out,
    largest,
    share_settings,
)
from .engine import MAX_SIZE, Engine
from .executors import EAGER, Executor
from .jobs import SEVERAL
from .rows import take
from .running_brackets import RunningBrackets, worst


def answer(
    groups: tuple,
    question: Question,
    progress: Callable[[int], Any] | None = None,
    max_size: int = MAX_SIZE,
    executor: Executor | None = None,
) -> Answer:
    """Certified numbers of a flat batch of mechanisms.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest dense lattice to try, but for tasks about one threshold that need not much
            more than 2^20 points.
        executor: who computes; None lets the environment variable ``JAXGDP_EXECUTOR`` decide, else
            the number of settings.
    """
    executor, progress = executor or executors.by_name(None), progress or (lambda done: None)
    known = closed_forms.find(groups)
    number, left = len(known), np.array([each is None for each in known])
    found = RunningBrackets(number, question)
    nothing = left & far_out.narrow(groups, question, found, left)
    nothing[nothing] = ~_wide(found, question, np.flatnonzero(nothing))
    alone = _by_one_order(groups, question, found, left & ~nothing, progress, max_size, executor)
    left &= ~(nothing | alone)
    seldom = left & share_settings.asked_first(groups, question)
    # (jumps first: what is far from private by them is seldom so by quadratures of its loss)
    jumps = left & by_jumps.jumps_tell(groups, question)
    helped = left & ~jumps & by_jumps.jumps_help(groups, question)
    long = by_moments.served(groups, left & ~jumps & ~seldom, question.rtol)
    far = left & by_far_shifts.served(groups, question)
    plain = left & ~(long.tried | jumps | helped | seldom | far)
    if np.all(plain):
        return _by_lattices(groups, question, progress, max_size, executor)
    if executor not in (None, EAGER) and np.count_nonzero(plain) > SEVERAL:
        return _side_by_side(groups, question, plain, progress, max_size, executor)
    # a curve in closed form needs no lattice, nor do most very long runs
    rows = np.flatnonzero(~(left | nothing | alone))
    if len(rows):
        closed = [each for each in known if each is not None]
        found.put(rows, closed_forms.answer(closed, question.take(rows, number)))
        # (of several uses that were counted a lattice may know more at a very fine accuracy)
        several = np.array([each.counted for each in closed])
        left[rows] = several & _wide(found, question, rows) & (not question.keep)
    counted = _by_jumps_and_pieces(groups, question, found, jumps | helped, left, max_size)
    _by_share(groups, question, found, seldom, left)
    _by_far_shifts(groups, question, found, far, left)
    _by_moments(groups, question, found, long, left, max_size, executor)
    _by_pieces(groups, question, found, left, (left | long.hopeless) & ~counted, max_size)
    some = jumps | helped
    _by_steps(groups, question, found, some, counted, seldom, left, max_size, executor)
    progress(int(np.count_nonzero(~left & ~alone)))
    others = np.flatnonzero(left)
    if len(others):
        part = take(groups, others), question.take(others, number)
        so_far = found.of(others, part[1])
        found.put(others, _by_lattices(*part, progress, max_size, executor, so_far))
    return found.answer()


def _side_by_side(
    groups: tuple,
    question: Question,
    plain: Array,
    progress: Callable[[int], Any],
    max_size: int,
    executor: Executor,
) -> Answer:
    """Answers of a batch of which compiled programs work out the ``plain`` settings by lattices
    while NumPy goes the ways of the others.
    """
    found, lock = RunningBrackets(len(plain), question), threading.Lock()
    stopped = threading.Event()

    def count(done: int) -> None:
        if stopped.is_set():
            raise RuntimeError("what this was counted for was stopped")
        with lock:
            progress(done)

    def of(way: Callable[..., Answer], some: Array) -> tuple[Array, Answer]:
        rows = np.flatnonzero(some)
        part = take(groups, rows), question.take(rows, len(plain))
        return rows, way(*part, count, max_size, executor)

    with ThreadPoolExecutor(1) as pool:
        # (what is expected after this batch, and NumPy's own settings, are in the context)
        lattices = pool.submit(contextvars.copy_context().run, of, _by_lattices, plain)
        try:
            parts = of(answer, ~plain), lattices.result()
        except BaseException:
            stopped.set()  # (an interrupt waits for the passes that run, not for all of them)
            raise
    for rows, part in parts:
        found.put(rows, part)
    return found.answer()


def _by_one_order(
    groups: tuple,
    question: Question,
    found: RunningBrackets,
    some: np.ndarray,
    progress: Callable[[int], Any],
    max_size: int,
    executor: Executor | None,
) -> np.ndarray:
    """Put brackets of those of ``some`` settings of which one order shows nothing, as they are of
    the other one alone; which ones these are.
    """
    left = far_out.one_order_left(groups, question, some)
    for order, those in ((Adjacency.ADD, left.adding), (Adjacency.REMOVE, left.removing)):
        rows = np.flatnonzero(those)
        if len(rows):
            own = replace(question.take(rows, len(some)), adjacency=order)
            alone = answer(take(groups, rows), own, progress, max_size, executor)
            found.put(rows, far_out.with_nothing(alone))
    return left.adding | left.removing


def _by_share(
    groups: tuple, question: Question, found: RunningBrackets, some: Array, left: Array
) -> None:
    """Put brackets of ``some`` settings by the law given that a record is sampled, and mark those
    that are left, in place.
    """
    rows, number = np.flatnonzero(some & left), len(left)
    if len(rows) == 0:
        return
    found.put(rows, by_share.answer(groups, rows, question.take(rows, number)))
    left[rows] = _wide(found, question, rows) & (not question.keep)
    for row in map(int, rows[left[rows]]):
        own = question.take(np.array([row]), number)
        left[row] = not by_share.on_most_points(groups, row, own, found.results)


def _by_moments(
    groups: tuple,
    question: Question,
    found: RunningBrackets,
    long: by_moments.Long,
    left: Array,
    max_size: int,
    executor: Executor | None,
) -> None:
    """Put brackets of long runs by their moments, and mark those that are left, in place."""
    rows = np.flatnonzero((long.hopeless if question.keep else long.tried) & left)
    if len(rows) == 0:
        return
    own = question.take(rows, len(left))
    found.put(rows, by_moments.answer(groups, rows, own, long))
    left[rows] = _wide(found, question, rows)
    if question.rtol < USUAL:
        some = np.asarray(left & long.hopeless)
        by_place.narrow(groups, question, found.results, some, max_size, executor, found_only=True)
    left[rows] &= ~long.hopeless[rows]


def _by_pieces(
    groups: tuple,
    question: Question,
    found: RunningBrackets,
    left: Array,
    some: Array,
    max_size: int,
) -> None:
    """Narrow brackets of ``some`` settings, as far as they take many tilts, and mark those that are
    left, in place.
    """
    if not all(mechanism.tight for mechanism, _ in groups):
        return
    for row in map(int, np.flatnonzero(some)):
        if by_pieces.served(question, found.results, row):
            own = question.take(np.array([row]), len(left))
            told = by_pieces.narrow(groups, row, own, found.results, max_size)
            left[row] &= _wide(found, question, np.array([row]))[0] and not told


def _by_jumps_and_pieces(
    groups: tuple,
    question: Question,
    found: RunningBrackets,
    some: Array,
    left: Array,
    max_size: int,
) -> Array:
    """Narrow brackets of ``some`` settings by the steps that have the record, and by pieces of
    their curves where those leave most open, and mark those that are left, in place; which settings
    these are.
    """
    told = np.zeros(len(left), bool)
    for row in map(int, np.flatnonzero(some & left)):
        if question.keep or not largest.asked(question):
            break
        own, told[row] = question.take(np.array([row]), len(left)), True
        curve = by_jumps.narrow(groups, row, own, found.results, found)
        if curve is not None and by_pieces.served(question, found.results, row):
            by_pieces.narrow(groups, row, own, found.results, max_size, (curve,))
        left[row] = _wide(found, question, np.array([row]))[0]
    return told


def _by_steps(
    groups: tuple,
    question: Question,
    found: RunningBrackets,
    some: Array,
    counted: Array,
    seldom: Array,
    left: Array,
    max_size: int,
    executor: Executor | None,
) -> None:
    """Narrow brackets by the steps that have the record, of ``some`` settings and of those where
    lattices show little, and mark those that are left, in place; of those that are ``counted`` it
    is known already how many they are.
    """
    number = len(left)
    little, told = _lattices_show_little(groups, question), np.zeros(number, bool)
    for row in map(int, np.flatnonzero((some | little) & left)):
        if not counted[row]:
            own = question.take(np.array([row]), number)
            by_jumps.narrow(groups, row, own, found.results, found)
        told[row] = seldom[row] and _more_by_share(groups, question, row, found) and little[row]
        # (lattices take long where there is little noise, or little to see, and show less)
        left[row] &= _wide(found, question, np.array([row]))[0] and not told[row]
    # (beyond the usual accuracy a lattice about a place takes longer than twice as many points)
    for row in map(int, np.flatnonzero(told)):
        by_share.narrow_at_last(groups, row, question.take(np.array([row]), number), found.results)
    by_place.narrow(groups, question, found.results, told, max_size, executor)
    for row in map(int, np.flatnonzero(told)):
        own = question.take(np.array([row]), number)
        if own.rtol >= USUAL and by_place.served(own):
            by_share.narrow_further(groups, row, own, found.results)
        by_share.narrow_at_last(groups, row, own, found.results)


def _lattices_show_little(groups: tuple, question: Question) -> Array:
    """Whether settings are narrower without lattices, where anything makes them so."""
    little = share_settings.seldom(groups, share_settings.LITTLE_NOISE)
    if question.rtol < USUAL:
        little |= share_settings.hardly_ever(groups)
    return little


def _wide(found: RunningBrackets, question: Question, rows: Array) -> Array:
    """Whether settings have a number that is wider than asked."""
    return ~np.all(found.width_over_promise(question.rtol, rows) <= 1.0, axis=0)


def _by_far_shifts(
    groups: tuple, question: Question, found: RunningBrackets, far: Array, left: Array
) -> None:
    """Narrow brackets of settings with shifts that are far, and mark those that are left, in
    place."""
    for row in map(int, np.flatnonzero(far & left)):
        own = question.take(np.array([row]), len(left))
        by_far_shifts.narrow(groups, row, own, found, answer)
        left[row] = not question.keep and _wide(found, question, np.array([row]))[0]
        left[row] &= not by_far_shifts.hopeless(groups, row)


def _more_by_share(groups: tuple, question: Question, row: int, found: RunningBrackets) -> bool:
    """Narrow brackets of one setting whose record is seldom sampled; whether that told all it
    may.
    """
    own = question.take(np.array([row]), len(groups[0][1]))
    left = worst(found.results, own, row)
    if own.rtol >= USUAL and left > by_share.TWICE and by_place.served(own):
        return left <= by_share.FAR  # (what takes longer than a lattice comes after it)
    return by_share.narrow_further(groups, row, own, found.results)


@with_float64
def _by_lattices(
    groups: tuple,
    question: Question,
    progress: Callable[[int], Any],
    max_size: int,
    executor: Executor | None,
    known: RunningBrackets | None = None,
) -> Answer:
    found = Engine(groups, question, progress, max_size, executor, known).answer()
    before = {name: Bracket(*map(np.copy, sides)) for name, sides in found.results.items()}
    after_lattices.narrow_what_is_wide(groups, question, found)
    new = by_place.new_places(question, found.results, before, len(found.sizes))
    by_place.narrow(groups, question, found.results, new, max_size, executor, found_only=True)
    return found
