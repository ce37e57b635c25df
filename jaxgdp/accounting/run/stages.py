"""What is computed for one setting, in three stages: plan its passes, compose half a curve, read
numbers off both halves.

Unbatched functions of arrays, of whichever library the arrays are (``namespace``); an executor runs
them over many settings."""

from __future__ import annotations

from typing import Any

import jax

from ...numerics import namespace as xp
from ...numerics.normal import argmax
from ...numerics.once import sharing
from ..certify.curve import Curve, both_sides
from ..certify.half_curve import half_curve, merge, step
from ..certify.vertices import Vertices
from ..question import Kind, Rates
from ..steer import windows


def plan_whole(groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
    """Plans of both half-curves (leading axes: sides, pieces), and the merged number of steps."""
    merged, count = merge(groups)
    return windows.plan_whole(
        merged, count, *depths, rtol, max_neg_log_density, known_reach, anchor, pieces
    ), xp.sum(count)


def plan_threshold(groups, threshold, rtol, share):
    """Plans of both half-curves (leading axes: sides, one piece) about one threshold, and the
    merged number of steps.
    """
    merged, count = merge(groups)
    plan = windows.plan_threshold(merged, count, threshold, rtol, share)
    return jax.tree.map(lambda a: a[:, None], plan), xp.sum(count)


def half(groups, plan, grid, reverse, known=None):
    """Vertices of one planned piece of a half-curve, from above and from below; ``known`` as for
    ``half_curve``.
    """
    return half_curve(*merge(groups), plan, grid, reverse, known=known)


def steps(groups, plan, grid, reverse):
    """One step of every component of a planned piece, on its lattice."""
    return step(merge(groups)[0], plan, grid, reverse)


def read(
    parts, plus, minus, rates: Rates, kind: Kind
) -> tuple[dict[str, Any], dict[str, Any], tuple, Curve | None]:
    """Numbers asked for, at which thresholds they were read off, how far out each half has to be
    known, and the curve (if asked for).

    ``parts`` are the Gaussian curves that it lies between (``curve.gaussian_parts``).

    Method: docs/method/adjacency.md#symmetrisation
    """
    ends = tuple(xp.vmap(lambda v: _seen(v, rates))(both_sides(plus[0], minus[0])))
    if kind.adjacency.swapped:
        plus, minus = minus, plus
    curve = Curve(plus[0], minus[0], plus[1], minus[1], *parts)
    symmetric = kind.adjacency.symmetric
    with sharing():
        found = numbers(curve, rates, kind)
        located = {
            quantity.name: quantity.locate(curve, query, found[quantity.name], symmetric=symmetric)
            for quantity, query in _asked(rates, kind)
            if quantity.locate is not None and not kind.keep
        }
    return found, located, ends, curve if kind.keep else None


def numbers(curve: Curve, rates: Rates, kind: Kind) -> dict[str, Any]:
    """Numbers asked for, read off a curve that is oriented already."""
    found: dict[str, Any] = {}
    for quantity, query in sorted(_asked(rates, kind), key=lambda each: bool(each[0].after)):
        known = {"given": found[quantity.after]} if kind.shared and quantity.after in found else {}
        found[quantity.name] = quantity.read(
            curve, query, symmetric=kind.adjacency.symmetric, **known
        )
    return found


def _asked(rates: Rates, kind: Kind):
    """Quantities and what each is asked at: the very same array where that is the same."""
    return [
        (quantity, rates.queries[first])
        for quantity, first in zip(kind.quantities, kind.alike, strict=True)
    ]


def _seen(v: Vertices, rates: Rates):
    """How far out a half-curve has to be known: the first firm vertex past every rate asked for,
    (threshold, log FPR).

    Where the firm vertices end before, the rest of the way is guessed from them; (inf, 0) where
    there are none."""
    t, log_alpha, log_tpr, log_beta = (
        a.reshape(-1) for a in (v.threshold(), v.log_alpha, v.log_tpr, v.log_beta)
    )
    firm = (v.used & v.firm).reshape(-1)
    log_floor = rates.log_floor
    past = firm & (log_alpha <= log_floor - 0.05) & (log_beta >= log_floor + 0.05)
    if rates.log_deepest is not None:
        past = past & (log_tpr <= rates.log_deepest - 0.05)
    k = argmax(-xp.where(past, t, xp.inf))
    last = argmax(xp.where(firm, t, -xp.inf))
    short = xp.minimum(log_floor - 0.05 - log_alpha[last], 0.0)
    ahead = t[last] * (1.0 + 2.0 * short / log_alpha[last])
    guess = xp.where(firm[last], ahead, xp.inf), xp.where(firm[last], log_alpha[last] + short, 0.0)
    return xp.where(past[k], t[k], guess[0]), xp.where(past[k], log_alpha[k], guess[1])
