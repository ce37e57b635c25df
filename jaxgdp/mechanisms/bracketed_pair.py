"""A mechanism known from two tables: a pair that dominates, and one that an attack achieves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import BRACKETED, UNIT
from ..numerics.pytree import pytree
from ..numerics.shapes import Array
from ..pairs.atoms import atom_cells
from ..pairs.cells import Cells
from ..pairs.table import NOTHING, Table
from .base import Mechanism
from .finite_pair import padded

_NODES = 256  # for steering


def _atom_cells(
    loss: Array,
    log_p: Array,
    log_q: Array,
    ell: Array,
    end: Array | float,
    uncertain: Array | float,
    **infinity: Array | float,
) -> Cells:
    # a loss that is off by so much is a Q-mass that is: no noise of single masses either
    cells = atom_cells(loss, log_p, log_q, ell, end, **infinity)
    beyond = xp.sum(xp.where((loss > end) & (log_q > -xp.inf), xp.exp(log_q), 0.0))
    return cells._replace(
        uncertain=uncertain + BRACKETED * UNIT,
        lost_error=cells.lost_error + (uncertain + BRACKETED * UNIT) * beyond,
    )


@pytree
@dataclass(frozen=True)
class AttackPair(Mechanism):
    """The pair that an attack achieves; only its cells are requested.

    Attributes:
        loss, log_p, log_q: its atoms, shape (…, atoms).
        uncertain: bound on the relative error of every mass.
    """

    loss: Array
    log_p: Array
    log_q: Array
    uncertain: Array | float

    trailing: ClassVar[dict[str, int]] = dict.fromkeys(("loss", "log_p", "log_q"), 1)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Masses of the atoms by cell (unbatched)."""
        return _atom_cells(self.loss, self.log_p, self.log_q, ell, end, self.uncertain)


@pytree
@dataclass(frozen=True)
class BracketedPair(Mechanism):
    """Atoms of a pair that dominates, and of one that an attack achieves; not checked.

    Attributes:
        loss, log_p: increasing losses and log P-masses of the dominating pair, log_q = log_p +
            loss; shape (…, atoms).
        log_p_minus: log P-mass at loss −∞.
        log_q_plus: log Q-mass at loss +∞.
        uncertain: bound on the relative error of every mass.
        attack_loss, attack_p, attack_q, attack_uncertain: the same for the attack, which has no
            mass at the infinities.
        attack_apart: how far its q/p may be off (``Table.apart``).
        precision: square of a Gaussian-DP parameter that bounds one use at every FPR.
        node, node_p: losses and log P-masses for steering.
    """

    loss: Array
    log_p: Array
    log_p_minus: Array | float
    log_q_plus: Array | float
    uncertain: Array | float
    attack_loss: Array
    attack_p: Array
    attack_q: Array
    attack_uncertain: Array | float
    attack_apart: Array | float
    precision: Array
    node: Array
    node_p: Array

    trailing: ClassVar[dict[str, int]] = dict.fromkeys(
        ("loss", "log_p", "attack_loss", "attack_p", "attack_q", "node", "node_p"), 1
    )
    undifferentiable: ClassVar[str] = "its pair is made from known numbers"

    @classmethod
    def build(cls, above: np.ndarray, below: np.ndarray, precision: Array | float) -> BracketedPair:
        """Object arrays of tables from above and below, of one shape, and μ² of one use.

        A table from below may be ``None``: then the lower side is that of no attack.
        """
        rows = [
            _row(a, b if b is not None else NOTHING, float(p))
            for a, b, p in zip(above.flat, below.flat, np.asarray(precision).flat, strict=True)
        ]
        number = (
            padded(max(len(row["loss"]) for row in rows)),
            padded(max(len(row["attack_loss"]) for row in rows)),
        )
        columns = {}
        for name in rows[0]:
            column = [row[name] for row in rows]
            if name in ("loss", "log_p", "attack_loss", "attack_p", "attack_q"):
                length = number[name.startswith("attack")]
                column = [_pad(a, length, name.endswith("loss")) for a in column]
            column = np.stack(column)
            columns[name] = column.reshape(above.shape + column.shape[1:])
        return cls(**columns)

    def bracketed(self) -> BracketedPair:
        """Itself."""
        return self

    def reveals_nothing(self):
        """Whether no table holds a loss but 0, nor a mass at an infinite one."""
        infinite = xp.all(self.log_p_minus == -xp.inf) & xp.all(self.log_q_plus == -xp.inf)
        return xp.all(self.loss == 0.0) & xp.all(self.attack_loss == 0.0) & infinite

    def lower_bound_member(self) -> AttackPair:
        """The pair that the attack of the lower side is run on."""
        return AttackPair(self.attack_loss, self.attack_p, self.attack_q, self.attack_uncertain)

    def finite_loss_bounds(self):
        """Smallest and largest finite loss of the dominating pair, whose masses may be off."""
        real = self.log_p > -xp.inf
        low = xp.min(xp.where(real, self.loss, xp.inf))
        high = xp.max(xp.where(real, self.loss, -xp.inf))
        some, room = xp.any(real), 2.0 * (self.uncertain + BRACKETED * UNIT)
        return xp.where(some, low - room, 0.0), xp.where(some, high + room, 0.0)

    def loss_nodes(self, depth: Array | float):
        """Means of groups of atoms, out to where both P and Q have a tail of e^{−depth}."""
        loss, log_p = self.node, self.node_p
        log_q = log_p + loss
        beyond = lambda a: xp.cumulative_logaddexp(a)
        deep = lambda p, q: (beyond(p) < -depth) & (beyond(q) < -depth)
        below, above = deep(log_p, log_q), deep(log_p[::-1], log_q[::-1])[::-1]
        inside = ~(below | above)
        low, high = xp.min(xp.where(inside, loss, xp.inf)), xp.max(xp.where(inside, loss, -xp.inf))
        return xp.clip(loss, low, high), log_p

    def tail_precision(self):
        """μ² of one use, as given."""
        return self.precision

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Masses of the dominating pair's atoms by cell, with the mass at both infinities."""
        infinity = {"log_p_minus": self.log_p_minus, "log_q_plus": self.log_q_plus}
        return _atom_cells(
            self.loss, self.log_p, self.log_p + self.loss, ell, end, self.uncertain, **infinity
        )


@pytree
@dataclass(frozen=True)
class OpenPair(BracketedPair):
    """The same where the tables are of different mechanisms: no lattice joins the sides."""

    tight: ClassVar[bool] = False


@pytree
@dataclass(frozen=True)
class TailPair(OpenPair):
    """Tables that end at a faint mass, of a mechanism whose tail is known; not checked.

    Attributes:
        limit: square of limsup ε/√(−2 log δ(ε)) of one use, NaN where it is not known.
    """

    limit: Array

    @classmethod
    def of(cls, pair: BracketedPair, limit: Array) -> TailPair:
        """A pair of tables with its limit."""
        fields = {field.name: getattr(pair, field.name) for field in dataclasses.fields(pair)}
        return cls(**fields, limit=limit)

    def limit_precision(self) -> Array:
        """The limit, as given."""
        return self.limit


def _row(above: Table, below: Table, precision: float) -> dict:
    # (windows and tilts have to serve the attack where there is nothing else)
    node, node_p = _nodes(below if above is NOTHING else above)
    rounded = 1.0 + above.error + 64.0 * UNIT
    with np.errstate(divide="ignore"):
        minus, plus = (np.log(min(mass * rounded, 1.0)) for mass in (above.p_minus, above.q_plus))
    return {
        "loss": above.loss,
        "log_p": np.log(above.p),
        "log_p_minus": minus,
        "log_q_plus": plus,
        "uncertain": above.error,
        "attack_loss": below.loss,
        "attack_p": np.log(below.p),
        "attack_q": np.log(below.q),
        "attack_uncertain": below.error,
        "attack_apart": below.apart,
        "precision": precision,
        "node": node,
        "node_p": node_p,
    }


def _pad(values: np.ndarray, number: int, edge: bool):
    extra = (0, number - len(values))
    return (
        np.pad(values, extra, mode="edge")
        if edge
        else np.pad(values, extra, constant_values=-np.inf)
    )


def _nodes(table: Table):
    """Nodes and log P-masses for steering: a table's atoms in equal groups, at their means."""
    number = len(table.loss)
    group = np.arange(number) * min(_NODES, number) // number
    log_mass = np.log(table.p)
    log_weight = log_mass + 0.5 * table.loss
    top = np.full(group[-1] + 1, -np.inf)
    np.maximum.at(top, group, log_weight)
    weight = np.exp(log_weight - top[group])
    mean = np.bincount(group, weight * table.loss) / np.bincount(group, weight)
    log_p = np.full(group[-1] + 1, -np.inf)
    np.logaddexp.at(log_p, group, log_mass)
    extra = _NODES - len(mean)
    return np.pad(mean, (0, extra), mode="edge"), np.pad(log_p, (0, extra), constant_values=-np.inf)
