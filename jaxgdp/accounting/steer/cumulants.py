"""The privacy loss of every component by quadrature, and its cumulants: for tilts and windows.

Nothing here is part of a certificate. Arrays have the two directions of the pair (Q against P, P
against Q) on an axis of their own, "sides"; the axis of components is last."""

from __future__ import annotations

from typing import NamedTuple

from ...mechanisms.base import Mechanism
from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float


class LossQuadrature(NamedTuple):
    """Quadrature of each component's privacy loss, ready for cumulants.

    Attributes:
        nodes: privacy losses, shape (1 or sides, components, nodes).
        log_weight: their log P-masses, shape (components, nodes).
        precision: 1/σ² of components that are exactly Gaussian, else 0, shape (components,).
        uses: number of uses, shape (components,).
        bottom, top: ends of each component's loss under P, ∓∞ where there are none, shape
            (components,).
        atomic: 1 for components whose law never gets smooth, else 0, shape (components,).
        bounded: whether any class of mechanisms has such ends (static).
        reverse: whether the pair is swapped (Q against P), shape (sides,).
    """

    nodes: Float[Array, "sides components nodes"]
    log_weight: Float[Array, "components nodes"]
    precision: Float[Array, " components"]
    uses: Float[Array, " components"]
    bottom: Float[Array, " components"]
    top: Float[Array, " components"]
    atomic: Float[Array, " components"]
    bounded: bool
    reverse: Bool[Array, " sides"]

    def cut(self, longest: Float[Array, " sides"]) -> LossQuadrature:
        """The same loss with no node beyond ``longest``."""
        return self._replace(nodes=xp.minimum(self.nodes, longest[:, None, None]))

    def likely(self, log_mass: Float[Array, ""], of_q: bool) -> Float[Array, ""]:
        """The longest step that any use exceeds with probability e^log_mass at least, by nodes, not
        swapped: under Q or under P.
        """
        log_weight = self.log_weight + (self.nodes[0] if of_q else 0.0)
        beyond = xp.cumsum(xp.exp(log_weight)[:, ::-1], axis=-1)[:, ::-1]
        exceeded = self.uses[:, None] * beyond >= xp.exp(log_mass)
        return xp.max(xp.where(exceeded, self.nodes[0], -xp.inf))

    def node_range(self) -> tuple[Array, Array]:
        """Smallest and largest node of each component, shape (sides, components)."""
        first, last, swap = self.nodes[..., 0], self.nodes[..., -1], self.reverse[:, None]
        return xp.where(swap, -last, first), xp.where(swap, -first, last)

    def support(self) -> tuple[Array, Array]:
        """Smallest and largest composed loss, in the direction of the pair, shape (sides,)."""
        low = xp.sum(self.uses * self.bottom)
        high = xp.sum(self.uses * xp.minimum(self.top, xp.max(self.nodes, axis=-1)), axis=-1)
        return xp.where(self.reverse, -high, low), xp.where(self.reverse, -low, high)


class Cumulants(NamedTuple):
    """Cumulant generating function of a loss at a tilt, and its first two derivatives.

    Attributes:
        value: K(s) = log E_P e^{s·ℓ}.
        mean: K'(s), the mean under the tilt.
        variance: K''(s), the variance under the tilt.
    """

    value: Array
    mean: Array
    variance: Array


def quadrature(
    groups: tuple, depth: Float[Array, " components"], reverse: Bool[Array, " sides"]
) -> LossQuadrature:
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
    return LossQuadrature(
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


class _Tilted(NamedTuple):
    """K of each component at a tilt, the nodes' weights under it and their sums, and the tilt of
    the pair as it is, not swapped.
    """

    value: Array
    weight: Array
    total: Array
    tilt: Array


def _tilted(loss: LossQuadrature, s: Array) -> _Tilted:
    s = xp.where(loss.reverse[:, None], 1.0 - s, s)
    exponent = loss.log_weight + s[..., None] * loss.nodes
    top = xp.max(exponent, axis=-1, keepdims=True)
    weight = xp.exp(exponent - top)
    total = xp.sum(weight, axis=-1)
    value = top[..., 0] + xp.log(total)
    value = xp.where(loss.precision > 0.0, 0.5 * s * (s - 1.0) * loss.precision, value)
    return _Tilted(value, weight, total, s)


def cumulant(loss: LossQuadrature, s: Array) -> Array:
    """K of each component's loss at s, as :func:`cumulants` has it."""
    return _tilted(loss, s).value


def cumulants(loss: LossQuadrature, s: Array) -> Cumulants:
    """K, K', K'' of each component's loss at s; shapes (…, sides, components).

    ``s`` has shape (…, sides, components), or 1 in the place of components for one tilt for all.
    The swapped pair has K(1 − s).

    Method: docs/method/tilting.md#saddle
    """
    value, weight, total, s = _tilted(loss, s)
    mean = xp.sum(weight * loss.nodes, axis=-1) / total
    square = xp.sum(weight * (loss.nodes - mean[..., None]) ** 2, axis=-1) / total
    exact = loss.precision > 0.0
    mean = xp.where(exact, (s - 0.5) * loss.precision, mean)
    square = xp.where(exact, loss.precision, square)
    mean = xp.where(loss.reverse[:, None], -mean, mean)
    return Cumulants(value, mean, xp.maximum(square, 1e-300))


def composed(loss: LossQuadrature, s: Float[Array, "... sides"]) -> Cumulants:
    """Λ, Λ', Λ'' of the composed loss at s, all of shape (…, sides)."""
    each = cumulants(loss, s[..., None])
    return Cumulants(*(xp.sum(loss.uses * k, axis=-1) for k in each))


def common_unit(groups: tuple) -> Array:
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
