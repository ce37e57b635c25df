"""What is computed for many tasks at once: half-curves composed, and numbers read off.

Tasks that share a lattice make a pass, chunk after chunk, by an executor (``executors``). What is
computed next is the engine's business."""

from __future__ import annotations

import collections
import contextvars
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ...bracket import Bracket
from ...numerics.compiling import Program
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Float, Int
from ..certify.curve import Curve
from ..certify.vertices import Vertices, lengthened, trimmed
from ..plan import Plan
from ..steer.lattices import Lattices
from . import devices
from .batch import Batch, half_program, read_program
from .executor import Halves
from .executors import COMPILED, EAGER, Executor
from .rows import chunks, joined, take

# vertices of a half that NumPy reads numbers off at once: as many as stay in cache
_READ_TOGETHER = 2**14
# chunks of a compiled program that NumPy works on at once, of sparse lattices
_EAGER_CHUNKS = 4
# points of an octave beyond which a program takes minutes to compile, as every 64 of them are
# summed by operations of their own
_LONGEST_OCTAVE = 256
# components of a single setting from which on a thread for each side pays
_MANY_COMPONENTS = 256


class Pass(NamedTuple):
    """Tasks of one kind and quantity on the same lattices, computed together.

    Attributes:
        lattices: of all tasks.
        quantity: position of the one quantity that is read off, or None for all of them.
        side: the one half-curve that is composed and read, or None for both.
        settings: rows of the tasks in the batch.
        plans: of the tasks, leaves of shape (tasks, sides, pieces, …).
        executor: who composes their halves.
        reader: the executor that reads numbers off them; None leaves that to what is compiled.
    """

    lattices: Lattices
    quantity: int | None
    side: int | None
    settings: Int[Array, " tasks"]
    plans: Plan
    executor: Executor
    reader: Executor | None


class Readings(NamedTuple):
    """What was read off the curves of several tasks.

    Attributes:
        numbers: quantity → its brackets.
        by_order: quantity → its brackets for each order alone, of shape (tasks, sides), where both
            count and it is the worse of them.
        located: quantity → thresholds at which it was read off, for those that are.
        required_reach: how far out each half must be known: thresholds, and log FPRs there.
        curves: one for each task where they are kept; else as many Nones.
    """

    numbers: dict[str, Bracket]
    by_order: dict[str, Bracket]
    located: dict[str, Float[Array, " tasks *sides"]]
    required_reach: tuple[Float[Array, "tasks sides"], Float[Array, "tasks sides"]]
    curves: list[Curve | None]


class _Part(NamedTuple):
    """A chunk of the tasks of a pass, with their halves.

    Attributes:
        position: of the pass, among those run together.
        first: the first of the pass's tasks in it.
        settings: rows of the tasks in the batch, of which ``real`` are not filling.
        real: how many tasks there are.
        reader: who reads their numbers.
        vertices: of both sides, or of the one that both are, each from above and from below.
    """

    position: int
    first: int
    settings: Int[Array, " rows"]
    real: int
    reader: Executor
    vertices: list[Vertices]

    @property
    def length(self) -> int:
        """Vertices of a piece."""
        return self.vertices[0].used.shape[-1]


class _Reader(NamedTuple):
    """Parts that can be read off together have these in common."""

    executor: Executor
    quantity: int | None
    side: int | None
    pieces: int
    length: int


class _Reading(NamedTuple):
    """What was read off a part."""

    first: int
    numbers: tuple
    curves: list


def run_passes(batch: Batch, passes: list[Pass]) -> list[Readings]:
    """The numbers of the tasks of each pass.

    NumPy takes as long for the numbers of one task as for those of twenty, so what it has to read
    is laid by until there is enough of it, of whatever lattice."""
    found: list[list[_Reading]] = [[] for _ in passes]
    waiting: dict[_Reader, list[_Part]] = {}
    for position, one in enumerate(passes):
        _compile_halves_beside(batch, one)
        for part in _composed(batch, position, one):
            length = part.length
            reader = _Reader(part.reader, one.quantity, one.side, one.lattices.pieces, length)
            if part.reader.padded:
                _read(batch, reader, [part], found)
                continue
            if part.first == 0:
                _compile_reading_beside(batch, one, part)
            parts = waiting.setdefault(reader, [])
            parts.append(part)
            if sum(len(p.settings) for p in parts) * reader.pieces * length >= _READ_TOGETHER:
                _read(batch, reader, waiting.pop(reader), found)
    for reader, parts in waiting.items():
        _read(batch, reader, parts, found)
    return [_in_order(readings) for readings in found]


def _read(batch: Batch, reader: _Reader, parts: list[_Part], found: list[list[_Reading]]) -> None:
    """Read numbers off several parts together, and give each pass its own."""
    settings = np.concatenate([part.settings for part in parts])
    # (what stayed on a device is read there, part for part)
    vertices = parts[0].vertices if len(parts) == 1 else joined([part.vertices for part in parts])
    kind = batch.kind(reader.quantity, reader.side)
    parts_of = take(batch.parts, settings)
    *numbers, curves = reader.executor.read(
        # (the swapped pair is read as a pair of its own)
        parts_of.swapped() if reader.side == 1 else parts_of,
        vertices[:2],
        vertices[-2:],
        batch.rates_of(reader.quantity, settings),
        kind,
        reader.pieces,
    )
    program = read_program(reader.pieces, kind, reader.length)
    batch.remember(reader.executor, program)
    if reader.executor.keeps:
        *numbers, curves = jax.device_get((*numbers, curves))  # (all of them on their way at once)
    at = 0
    for part in parts:
        some = take(tuple(numbers), slice(at, at + part.real))
        own = [take(curves, at + i) for i in range(part.real)]
        found[part.position].append(_Reading(part.first, some, own))
        at += len(part.settings)


def _compile_halves_beside(batch: Batch, one: Pass) -> None:
    """Begin to compile what composes the halves of a pass by NumPy, if that is worth it."""
    if one.executor is not EAGER or not one.lattices.compiled:
        return
    if max(lattice.base for lattice in one.lattices) > _LONGEST_OCTAVE:
        return

    def compose_once() -> None:
        # (devices are counted here only: to count them starts the whole backend)
        first = slice(0, one.lattices.read_together() * COMPILED.chunks)
        settings, plans = one.settings[first], take(one.plans, first)
        compiled = one._replace(settings=settings, plans=plans, executor=COMPILED, reader=COMPILED)
        collections.deque(_composed(batch, 0, compiled), 0)

    work = len(one.settings) * one.lattices.work
    batch.compile_beside(work, half_program(one.lattices), compose_once)


def _compile_reading_beside(batch: Batch, one: Pass, part: _Part) -> None:
    """Begin to compile what reads the numbers of a pass, of which NumPy reads this first part, if
    that is worth it.
    """
    if part.reader is not EAGER or not one.lattices.compiled:
        return
    pieces = one.lattices.pieces

    def read_once() -> None:
        rows = one.lattices.read_together() * COMPILED.chunks
        some = np.arange(rows) % part.real
        units = (some[:, None] * pieces + np.arange(pieces)).reshape(-1)
        padded = part._replace(
            settings=part.settings[some], reader=COMPILED, vertices=take(part.vertices, units)
        )
        reader = _Reader(COMPILED, one.quantity, one.side, pieces, part.length)
        _read(batch, reader, [padded._replace(position=0)], [[]])

    program = read_program(pieces, batch.kind(one.quantity, one.side), part.length)
    batch.compile_beside(len(one.settings), program, read_once)


def _compile_reading_kept_beside(batch: Batch, one: Pass, part: _Part) -> None:
    """The same, of what stayed where it was composed."""
    program = read_program(one.lattices.pieces, batch.kind(one.quantity, one.side), part.length)
    reader = _Reader(part.reader, one.quantity, one.side, one.lattices.pieces, part.length)
    alone = part._replace(position=0)
    batch.compile_beside(len(one.settings), program, lambda: _read(batch, reader, [alone], [[]]))


def _in_order(readings: list[_Reading]) -> Readings:
    """What was read off the tasks of a pass, whenever it was read, in one."""
    readings = sorted(readings, key=lambda reading: reading.first)
    numbers, by_order, located, reach = joined([reading.numbers for reading in readings])
    curves = [curve for reading in readings for curve in reading.curves]
    return Readings(numbers, by_order, located, reach, curves)


def _composed(batch: Batch, position: int, one: Pass) -> Iterator[_Part]:
    """The halves of all tasks of a pass, chunk after chunk; the next chunk is begun before one is
    given out, so that a compiled program works on it meanwhile."""
    executor = one.executor
    sides = batch.sides(one.side)
    largest = one.lattices.read_together() * _chunks_at_once(one)
    begun, first = None, 0
    for rows, real in chunks(len(one.settings), largest, executor.padded):
        settings, plans = one.settings[rows], take(one.plans, rows)
        half = functools.partial(_half, batch, one, settings=settings, plans=plans, real=real)
        halves = _of_sides(batch, half, sides)
        if begun is not None:
            yield _finished(batch, position, one, *begun)
        begun, first = (first, settings, real, halves), first + real
    if begun is not None:
        yield _finished(batch, position, one, *begun)


def _of_sides(batch: Batch, half: Callable[[int], list], sides: tuple[int, ...]) -> list[list]:
    """Both sides of a chunk: side by side where a single setting has so many components that
    nothing else is there to be done, else one after the other.
    """
    if len(sides) == 1 or batch.number > 1 or batch.components < _MANY_COMPONENTS:
        return [half(side) for side in sides]
    contexts = [contextvars.copy_context() for _ in sides]  # (NumPy's own settings are in them)
    with ThreadPoolExecutor(len(sides)) as pool:
        run = with_float64(lambda context, side: context.run(half, side))
        return list(pool.map(run, contexts, sides))


def _chunks_at_once(one: Pass) -> int:
    """How many chunks are worked on at once: one by each CPU, several by an accelerator, and by
    NumPy, which loses time with each, where their arrays are short.
    """
    if one.executor is EAGER:
        return _EAGER_CHUNKS if one.lattices.sparse else 1
    return one.executor.chunks


def _finished(
    batch: Batch, position: int, one: Pass, first: int, settings: Array, real: int, halves: list
) -> _Part:
    """A chunk with all vertices there: where they were composed, if they are read there, too; else
    only the used ones, and no filling where none is wanted.
    """
    pieces = one.lattices.pieces
    number = len(settings) * pieces
    if one.executor.keeps:
        whole = _whole(halves, number=number)
        part = _Part(position, first, settings, real, one.executor, whole)
        if _reader(batch, one, real, part.length) is one.executor:
            return part
        _compile_reading_kept_beside(batch, one, part)
    vertices = trimmed([half for both in halves for half in _filled(both, number)])
    reader = _reader(batch, one, real, vertices[0].used.shape[-1])
    if not reader.padded:
        settings, vertices = settings[:real], take(vertices, slice(0, real * pieces))
    return _Part(position, first, settings, real, reader, vertices)


def _reader(batch: Batch, one: Pass, real: int, length: int) -> Executor:
    """Who reads the numbers of ``real`` tasks of a pass off pieces of so many vertices."""
    kind = batch.kind(one.quantity, one.side)
    return one.reader or batch.choose(real, read_program(one.lattices.pieces, kind, length))


@functools.partial(Program, static_argnames=("number",))
def _whole(halves: list[list[Halves]], *, number: int) -> list[Vertices]:
    """The half-curves of a chunk, each in so many rows of the same length, where they are."""
    found = [half for parts in halves for half in devices.joined(parts, number)]
    length = max(half.used.shape[-1] for half in found)
    return [lengthened(half, length) for half in found]


def _half(batch: Batch, one: Pass, side: int, settings: Array, plans: Plan, real: int) -> list:
    """Vertices of one side of a chunk's ``real`` first tasks, both ways; see :func:`_filled`.

    As many at a time as the lattice allows; numbers are read off more of them at once.
    """
    lattice, executor = one.lattices[side], one.executor
    shape, table = lattice.grid(side)
    at = side if one.side is None else 0
    half = jax.tree.map(lambda a: a[:, at], plans)
    pieces, size, read = lattice.pieces, len(settings), one.lattices.read_together()
    together = min(size, lattice.together(batch.components, read) * _chunks_at_once(one))
    found = []
    for start in range(0, real, together):
        rows = np.minimum(np.arange(start, start + together), size - 1)
        rows = rows if executor.padded else rows[: real - start]
        groups = jax.tree.map(
            lambda a: np.repeat(a, pieces, axis=0), take(batch.groups, settings[rows])
        )
        plan = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[2:]), take(half, rows))
        found.append(executor.half(groups, plan, side == 1, table, shape))
    return found


def _filled(parts: list, number: int) -> Any:
    """The parts of a chunk in so many rows, the first part repeated to fill them."""
    found = joined(parts)
    (length,) = {leaf.shape[0] for leaf in jax.tree.leaves(found)}
    repeats = -(number // -length) - 1
    return jax.tree.map(lambda a: np.concatenate([a, *[a] * repeats])[:number], found)
