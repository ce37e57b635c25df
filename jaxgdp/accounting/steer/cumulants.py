"""The privacy loss of every component by quadrature, and its cumulants: what tilts and windows are
chosen from.

Nothing here is part of a certificate. Arrays have the two directions of the pair (Q against P, P
against Q) on an axis of their own, "sides"; the axis of components is last."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...mechanisms.base import Mechanism
from ...numerics import namespace as xp


class Loss(NamedTuple):
    """Quadrature of each component's privacy loss, ready for cumulants.

    Attributes:
        loss: nodes, shape (1 or sides, components, nodes). log_weight: their log P-masses, shape
            (components, nodes).
        precision: 1/σ² of components that are exactly Gaussian, else 0, shape (components,).
        count: number of uses, shape (components,).
        bottom, top: ends of each component's loss under P, ∓∞ where there are none, shape
            (components,).
        atomic: 1 for components whose law never gets smooth, else 0, shape (components,).
        bounded: whether any class of mechanisms has such ends (static).
        reverse: whether the pair is swapped (Q against P), shape (sides,).
    """

    loss: Any
    log_weight: Any
    precision: Any
    count: Any
    bottom: Any
    top: Any
    atomic: Any
    bounded: bool
    reverse: Any

    def cut(self, longest) -> Loss:
        """With no node beyond ``longest``, shape (sides,)."""
        return self._replace(loss=xp.minimum(self.loss, longest[:, None, None]))

    def ends(self):
        """Smallest and largest node of each component in the direction of the pair, shape (sides,
        components).
        """
        first, last, swap = self.loss[..., 0], self.loss[..., -1], self.reverse[:, None]
        return xp.where(swap, -last, first), xp.where(swap, -first, last)

    def support(self):
        """Smallest and largest composed loss, in the direction of the pair, shape (sides,)."""
        low = xp.sum(self.count * self.bottom)
        high = xp.sum(self.count * xp.minimum(self.top, xp.max(self.loss, axis=-1)), axis=-1)
        return xp.where(self.reverse, -high, low), xp.where(self.reverse, -low, high)


def quadrature(groups, depth, reverse) -> Loss:
    """Quadrature of every component's loss; ``depth`` per component (see ``Mechanism.loss_nodes``).

    Method: docs/method/index.md#steering
    """
    nodes, weights, precision, counts, ends, atomic, at = [], [], [], [], [], [], 0
    for mechanism, count in groups:
        here = slice(at, at + count.shape[0])
        at += count.shape[0]
        loss, weight = xp.vmap(lambda m, d: m.loss_nodes(d))(mechanism, depth[here])
        nodes.append(loss)
        weights.append(weight)
        precision.append(xp.vmap(lambda m: m.gaussian_precision())(mechanism))
        counts.append(count)
        ends.append(xp.vmap(lambda m: xp.stack(m.loss_bounds()))(mechanism))
        atomic.append(xp.full(count.shape, float(mechanism.atomic)))
    join = xp.concatenate
    most = max(loss.shape[-1] for loss in nodes)
    # fewer nodes: repeat the last one without weight
    short = [((0, 0), (0, most - loss.shape[-1])) for loss in nodes]
    nodes = [
        xp.pad(loss, wide, mode="edge") if wide[1][1] else loss
        for loss, wide in zip(nodes, short, strict=True)
    ]
    weights = [
        xp.pad(w, wide, constant_values=-xp.inf) if wide[1][1] else w
        for w, wide in zip(weights, short, strict=True)
    ]
    bottom, top = xp.moveaxis(join(ends), -1, 0)
    bounded = any(m.bounded() for m, _ in groups)
    return Loss(
        join(nodes)[None],
        join(weights),
        join(precision),
        join(counts),
        bottom,
        top,
        join(atomic),
        bounded,
        reverse,
    )


def _tilted(loss: Loss, s):
    """K at s, the weights of the nodes there and their sum, and the tilt of the pair as it is."""
    s = xp.where(loss.reverse[:, None], 1.0 - s, s)
    exponent = loss.log_weight + s[..., None] * loss.loss
    top = xp.max(exponent, axis=-1, keepdims=True)
    weight = xp.exp(exponent - top)
    total = xp.sum(weight, axis=-1)
    value = top[..., 0] + xp.log(total)
    return (
        xp.where(loss.precision > 0.0, 0.5 * s * (s - 1.0) * loss.precision, value),
        weight,
        total,
        s,
    )


def cumulant(loss: Loss, s):
    """K of each component's loss at s, as :func:`cumulants` has it."""
    return _tilted(loss, s)[0]


def cumulants(loss: Loss, s):
    """K, K', K'' of each component's loss at s, K(s) = log E_P e^{s·ℓ}; shapes (…, sides,
    components).

    ``s`` has shape (…, sides, components), or 1 in the place of components for one tilt for all.
    The swapped pair has K(1 − s).

    Method: docs/method/tilting.md#saddle
    """
    value, weight, total, s = _tilted(loss, s)
    mean = xp.sum(weight * loss.loss, axis=-1) / total
    square = xp.sum(weight * (loss.loss - mean[..., None]) ** 2, axis=-1) / total
    exact = loss.precision > 0.0
    mean = xp.where(exact, (s - 0.5) * loss.precision, mean)
    square = xp.where(exact, loss.precision, square)
    return value, xp.where(loss.reverse[:, None], -mean, mean), xp.maximum(square, 1e-300)


def composed(loss: Loss, s):
    """Λ, Λ', Λ'' of the composed loss at s, all of shape (…, sides)."""
    return tuple(xp.sum(loss.count * k, axis=-1) for k in cumulants(loss, s[..., None]))


def common_unit(groups):
    """Greatest common divisor of the units of all atoms (unbatched), by Euclid with room for
    rounding; 0 where there are none.
    """
    units = [
        xp.vmap(lambda m: m.loss_unit())(m)
        for m, _ in groups
        if type(m).loss_unit is not Mechanism.loss_unit
    ]
    if not units:
        return xp.zeros(())
    units = xp.concatenate(units)
    largest = xp.max(units)

    def divide(_, pair):
        a, b = pair
        rest = a - b * xp.round(a / xp.where(b > 0.0, b, 1.0))
        rest = xp.where(xp.abs(rest) > 1e-12 * largest, xp.abs(rest), 0.0)
        return xp.where(b > 0.0, b, a), xp.where(b > 0.0, rest, 0.0)

    def include(k, common):
        pair = xp.maximum(common, units[k]), xp.minimum(common, units[k])
        return xp.fori_loop(0, 24, divide, pair)[0]

    common = xp.fori_loop(0, units.shape[0], include, 0.0 * largest)
    return xp.where(common > 1e-6 * largest, common, 0.0)
