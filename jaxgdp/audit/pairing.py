"""New scores of a sequential audit: paired in the order they come, then counted epoch by epoch.

Whether a score waits, is used or is dropped depends on numbers of scores alone, never on their
values, so that what is bet on a pair was fixed before the pair."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..numerics import namespace as xp
from ..numerics.shapes import Array, ArrayLike
from . import epochs
from .epochs import STARTS, WINDOW, Epoch
from .half_planes import HalfPlanes
from .wealth import Counts, log_wealth


def advance(
    lines: HalfPlanes, epoch: Epoch, counts: Counts, members: ArrayLike, nonmembers: ArrayLike
) -> tuple[Epoch, Counts]:
    """State after more scores: with NumPy, or with JAX inside of its functions.

    Args:
        lines: the claim's half-planes.
        epoch: what epochs are fixed by.
        counts: :class:`jaxgdp.audit.wealth.Counts`.
        members: shape (n₁,) or scalar.
        nonmembers: shape (n₀,) or scalar.

    Raises:
        ValueError: a NaN, no numbers, or an audit with leading axes outside of ``jax.vmap``.

    Method: docs/method/sequential.md#wealth
    """
    tree = (lines, epoch, counts, members, nonmembers)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree)):
        kind = jnp.result_type(float)
        tree = jax.tree.map(lambda x: _of_device(x, kind), tree)
        return _absorb(*tree[:3], *_paired(tree[2], jnp.ravel(tree[3]), jnp.ravel(tree[4])))
    member, nonmember = _row("member_scores", members), _row("nonmember_scores", nonmembers)
    lines, epoch, counts = jax.tree.map(_of_host, tree[:3])
    if counts.pairs.ndim:
        raise ValueError(
            "several audits are updated by jax.vmap: jax.vmap(lambda audit, m, n: audit.update(m,"
            f" n))(audits, …); got audits of shape {counts.pairs.shape}"
        )
    return _absorb(lines, epoch, counts, *_paired_on_host(counts, member, nonmember))


def new_hits(before: Counts, after: Any, members: ArrayLike, nonmembers: ArrayLike):
    """What each new pair adds to the counts, on the host, and the number of pairs with the first.

    Args:
        before: counts before an update.
        after: the audit after it.
        members: scores of the update.
        nonmembers: likewise.

    Returns:
        (counts of each pair, shape (epochs, pairs, thresholds, 2), the first one's with all counts
        before it; number of pairs).
    """
    before = jax.tree.map(_of_host, before)
    sides = _row("member_scores", members), _row("nonmember_scores", nonmembers)
    pairs, number, _ = _paired_on_host(before, *sides)
    done = int(before.pairs)
    place = done + np.arange(int(number))
    hits = pairs.T[None, :, None, :] > after.epoch.threshold[:, None, :, None]
    hits = (hits & (place >= STARTS[:, None])[:, :, None, None]).astype(float)
    if int(number):
        hits[:, 0] += before.above
    return hits, done + 1


def _row(name: str, values: ArrayLike) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" and array.size or array.dtype.kind not in "biufO":
        raise ValueError(f"{name} must be an array of numbers, got {type(values).__name__}")
    array = np.atleast_1d(array).astype(np.float64)
    if array.ndim > 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(
            f"{name} must hold no NaN, got {int(np.isnan(array).sum())} of {array.size}"
        )
    return array


def _of_host(value: Any) -> np.ndarray:
    value = np.asarray(value)
    return value.astype(float if value.dtype.kind == "f" else int)


def _of_device(value: Any, kind: Any) -> Array:
    value = jnp.asarray(value)
    return value.astype(kind) if jnp.issubdtype(value.dtype, jnp.floating) else value


def _paired_on_host(counts: Counts, member: np.ndarray, nonmember: np.ndarray):
    """Pairs, their number, and what waits; all that is left over waits."""
    number = int(counts.num_waiting)
    before = counts.waiting[: abs(number)]
    if number > 0:
        member = np.concatenate([before, member])
    elif number < 0:
        nonmember = np.concatenate([before, nonmember])
    pairs = min(len(member), len(nonmember))
    rest = np.concatenate([member[pairs:], nonmember[pairs:]])
    waiting = np.zeros(max(len(counts.waiting), len(rest)))
    waiting[: len(rest)] = rest
    left = len(member) - len(nonmember)
    found = counts._replace(waiting=waiting, num_waiting=np.array(left))
    return np.stack([nonmember[:pairs], member[:pairs]]), np.array(pairs), found


def _paired(counts: Counts, member: Array, nonmember: Array):
    """The same with fixed shapes: unused places come last, and what finds no room is dropped."""
    kind = counts.window.dtype
    # a NaN counts against refutation
    member = jnp.where(jnp.isnan(member), -jnp.inf, member.astype(kind))
    nonmember = jnp.where(jnp.isnan(nonmember), jnp.inf, nonmember.astype(kind))
    room = counts.waiting.shape[0]
    waiting = counts.num_waiting
    sides = []
    for new, number in ((nonmember, -waiting), (member, waiting)):
        number = jnp.maximum(number, 0)
        # those that wait first, then the new ones, then nothing
        whole = jnp.zeros(room + new.shape[0], kind)
        whole = whole.at[:room].set(counts.waiting)
        whole = jax.lax.dynamic_update_slice(whole, new, (number,))
        sides.append((whole, number + new.shape[0]))
    pairs = jnp.minimum(sides[0][1], sides[1][1])
    size = min(sides[0][0].shape[0], sides[1][0].shape[0])
    left = sides[1][1] - sides[0][1]
    longer = [
        jax.lax.dynamic_slice(jnp.pad(whole, (0, room)), (pairs,), (room,)) for whole, _ in sides
    ]
    found = counts._replace(
        waiting=jnp.where(left > 0, longer[1], longer[0]),
        num_waiting=jnp.clip(left, -room, room).astype(counts.num_waiting.dtype),
        dropped=counts.dropped + jnp.maximum(jnp.abs(left) - room, 0).astype(counts.dropped.dtype),
    )
    return jnp.stack([whole[:size] for whole, _ in sides]), pairs, found


def _absorb(
    lines: HalfPlanes, epoch: Epoch, counts: Counts, pairs: Array, number: Array, after: Counts
) -> tuple[Epoch, Counts]:
    """Count pairs: nonmembers' and members' scores, shape (2, n), the first ``number`` in use."""
    done = counts.pairs
    joined = xp.concatenate([counts.window, pairs], axis=1)
    place = np.arange(pairs.shape[1])

    def one(old: Epoch, above: Array, begin: Array):
        fresh = (begin > done) & (begin <= done + number)

        def started():
            found = epochs.start(_window(joined, begin - done), xp.minimum(begin, WINDOW), lines)
            return jax.tree.map(lambda a, b: a.astype(b.dtype), found, old)

        new = xp.cond(fresh, started, lambda: old)
        used = (place < number) & (done + place >= begin)
        hits = used & (pairs[None] > new.threshold[:, None, None])
        return new, above + xp.sum(hits, axis=-1).astype(above.dtype)

    epoch, above = _over_epochs(one, epoch, after.above, xp.is_jax(joined))
    window = _window(joined, number)
    total = (done + number).astype(done.dtype)
    wealth = log_wealth(epoch.factors, above, total)
    peak = xp.maximum(counts.peak, wealth).astype(counts.peak.dtype)
    return epoch, after._replace(pairs=total, above=above, window=window, peak=peak)


def _window(joined: Array, number: Array) -> Array:
    """The WINDOW pairs before position ``number`` of the new ones."""
    if xp.is_jax(joined, number):
        return jax.lax.dynamic_slice(joined, (0, number), (2, WINDOW))
    return joined[:, int(number) : int(number) + WINDOW]


def _over_epochs(one: Any, epoch: Epoch, above: Array, traced: bool) -> tuple[Epoch, Array]:
    if traced:
        return jax.lax.map(lambda row: one(*row), (epoch, above, jnp.asarray(STARTS)))
    rows = [
        one(jax.tree.map(lambda x, i=i: x[i], epoch), above[i], begin)
        for i, begin in enumerate(STARTS)
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
