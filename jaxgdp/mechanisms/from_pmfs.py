"""A user's own mechanism: two probability mass functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import ClassVar

import numpy as np

from ..numerics.pytree import pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import broadcast, checked, known
from .base import Mechanism
from .finite_pair import FinitePair

_SUM = 1e-9  # how far from one a sum may be


@pytree
@dataclass(frozen=True)
class FromPMFs(Mechanism):
    """A mechanism with finitely many outputs, from probabilities without and with the record.

    The privacy loss of output o is log(q_o/p_o): the table is a *privacy loss distribution*.
    Outputs that are possible only under Q have loss +∞, those possible only under P loss −∞. This
    *infinity mass* is carried as such, so put there whatever a longer table would have held (the
    mass lost by *truncation*).

    Each probability is the number given, over the exact sum of all numbers of its side: that is
    what is meant by normalised, and no mass is too small to count. :meth:`from_logs` takes masses
    that are no doubles. The pair has to dominate every pair of neighbouring data sets of the
    relation it is meant for.

    Args:
        p: probabilities without the record, shape (…, outputs), summing to one along the last axis.
        q: probabilities with the record, of as many outputs; leading axes broadcast.

    Raises:
        ValueError: a value outside [0, 1], a sum that is not one within 1e-9, different numbers of
            outputs, leading shapes that do not broadcast, or no output that is possible under
            both: any output then gives the record away, and nothing is left to account for (before
            tracing).

    Example:
        >>> FromPMFs(p=[0.5, 0.5], q=[[0.4, 0.6], [0.3, 0.7]]).shape
        (2,)
    """

    p: Parameter
    q: Parameter

    trailing: ClassVar[dict[str, int]] = {"p": 1, "q": 1}
    sampling: ClassVar[str] = "whatever is in the given probabilities"
    examples: ClassVar[dict] = {
        "FromPMFs, same outputs": lambda: FromPMFs([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]),
        "FromPMFs, one output of Q only": lambda: FromPMFs([0.6, 0.4, 0.0], [0.5, 0.4, 0.1]),
    }

    def __post_init__(self):
        known(self, p=self.p, q=self.q)
        for name in ("p", "q"):
            value = checked(
                name, getattr(self, name), "in [0, 1]", lambda a: (a >= 0.0) & (a <= 1.0)
            )
            if value.ndim == 0:
                raise ValueError(
                    f"{name} must hold probabilities along its last axis, got the number {value:g}"
                )
            object.__setattr__(self, name, value)
        _check_shapes("p", "q", self.p, self.q, 0.0)
        for name in ("p", "q"):
            _check_sum(name, getattr(self, name))

    @classmethod
    def from_logs(cls, log_p: ArrayLike, log_q: ArrayLike) -> LogPMFs:
        """The mechanism of log probabilities: masses of e^{−745} and less, which are no doubles,
        count as well.

        Args:
            log_p, log_q: logs of what the class takes, −∞ for an output that is not possible.

        Raises:
            ValueError: as by the class.

        Example:
            >>> import jaxgdp
            >>> faint = FromPMFs.from_logs([0.0, -2000.0], [0.0, -1000.0])
            >>> bracket = jaxgdp.tradeoff(faint).log_delta(500.0)
            >>> round(float(bracket.lower), 6), round(float(bracket.upper), 6)
            (-1000.0, -1000.0)
        """
        return LogPMFs(log_p, log_q)

    def canonical(self) -> FinitePair:
        """Losses and log masses, sorted."""
        p, q = np.broadcast_arrays(self.p, self.q)
        more_p, more_q = (_excess(a) for a in (p, q))
        both, only_p, only_q = (p > 0.0) & (q > 0.0), (p > 0.0) & (q == 0.0), (p == 0.0) & (q > 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            log_p, log_q = (
                np.where(both, np.log(a) - np.log1p(more), -np.inf).astype(float)
                for a, more in ((p, more_p), (q, more_q))
            )
            long_p, long_q = p.astype(np.longdouble), q.astype(np.longdouble)
            # q·Σp − p·Σq, a difference of what is nearly equal only where that is exact
            change = (long_q - long_p) + (long_q * more_p - long_p * more_q)
            near = np.abs(q - p) < 0.5 * p
            loss = np.where(
                near,
                np.log1p(change / (long_p * (1.0 + more_q))),
                np.log(long_q) - np.log(long_p) + (np.log1p(more_p) - np.log1p(more_q)),
            )
            minus, plus = (
                np.log(_sums(np.where(only, a, 0.0))) - np.log1p(more[..., 0]).astype(float)
                for only, a, more in ((only_p, p, more_p), (only_q, q, more_q))
            )
        deep = np.where(near, 0.0, np.abs(log_p) + np.abs(log_q) + 1.0)
        return _pair(both, loss, log_p, log_q, minus, plus, deep, np.abs(more_p) + np.abs(more_q))

    def replace_one(self) -> FromPMFs:
        """Itself, for a pair that is meant for replacing a record."""
        return self


@pytree
@dataclass(frozen=True)
class LogPMFs(Mechanism):
    """A mechanism with finitely many outputs, from the logs of their probabilities; see
    :meth:`FromPMFs.from_logs`.

    Attributes:
        log_p, log_q: as there.
    """

    log_p: Parameter
    log_q: Parameter

    trailing: ClassVar[dict[str, int]] = {"log_p": 1, "log_q": 1}
    sampling: ClassVar[str] = FromPMFs.sampling

    def __post_init__(self):
        known(self, log_p=self.log_p, log_q=self.log_q)
        with np.errstate(under="ignore"):
            for name in ("log_p", "log_q"):
                object.__setattr__(self, name, _logs(name, getattr(self, name)))
            _check_shapes("log_p", "log_q", self.log_p, self.log_q)
            for name in ("log_p", "log_q"):
                _check_sum(f"exp({name})", np.exp(getattr(self, name)))

    def canonical(self) -> FinitePair:
        """Losses and log masses, sorted."""
        log_p, log_q = np.broadcast_arrays(self.log_p, self.log_q)
        has_p, has_q = log_p > -np.inf, log_q > -np.inf
        both = has_p & has_q
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            more = [
                np.log(np.sum(np.exp(a.astype(np.longdouble)), axis=-1, keepdims=True))
                for a in (log_p, log_q)
            ]
            loss = (log_q.astype(np.longdouble) - log_p) + (more[0] - more[1])
            logs = [
                np.where(both, (a - m).astype(float), -np.inf)
                for a, m in zip((log_p, log_q), more, strict=True)
            ]
            minus, plus = (
                np.logaddexp.reduce(np.where(only, a, -np.inf), axis=-1) - m[..., 0].astype(float)
                for only, a, m in (
                    (has_p & ~has_q, log_p, more[0]),
                    (has_q & ~has_p, log_q, more[1]),
                )
            )
        return _pair(
            both, loss, *logs, minus, plus, np.abs(logs[0]) + np.abs(logs[1]), 8.0 + log_p.shape[-1]
        )

    def replace_one(self) -> LogPMFs:
        """Itself, for a pair that is meant for replacing a record."""
        return self


def _logs(name: str, value: ArrayLike) -> Array:
    """Logs of probabilities, −∞ among them."""
    logs = np.asarray(value, float)
    good = logs <= _SUM
    if logs.ndim == 0 or not np.all(good):
        wrong = logs if logs.ndim == 0 else logs[~good].flat[0]
        raise ValueError(
            f"{name} must hold logs of probabilities along its last axis, numbers <= 0 or -inf, got"
            f" {wrong:g}"
        )
    return logs


def _pair(
    both: Array,
    loss: Array,
    log_p: Array,
    log_q: Array,
    minus: Array,
    plus: Array,
    deep: Array,
    sums: Array | float,
) -> FinitePair:
    """The pair of losses in the longest floating-point numbers that there are.

    Args:
        deep: size of the logs that a loss is the difference of, 0 where it is none.
        sums: size of what the sums of the masses add to its rounding.
    """
    unit = float(np.finfo(np.longdouble).eps)
    short = np.where(both, loss, 0.0).astype(float)
    rest = np.where(both, loss - short, 0.0).astype(float)
    with np.errstate(invalid="ignore"):
        place = np.where(both, 8.0 * unit * (np.abs(short) + deep) + 4.0 * unit * sums, 0.0)
    place = np.asarray(place, float) * (1.0 + unit)
    return FinitePair.build(short, np.asarray(log_p), np.asarray(log_q), minus, plus, place, rest)


def _check_shapes(name: str, other: str, p: Array, q: Array, nothing: float = -np.inf) -> None:
    """Refuse tables that do not belong together."""
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"{name} and {other} must have equally many outputs, got {p.shape[-1]} and"
            f" {q.shape[-1]}"
        )
    broadcast(**{name: p[..., 0], other: q[..., 0]})
    if np.any(np.all((p == nothing) | (q == nothing), axis=-1)):
        raise ValueError(
            f"{name} and {other} must have an output in common: without one whoever sees an output"
            " knows all, μ = ε = ∞"
        )


def _check_sum(name: str, value: Array) -> None:
    """Refuse masses that do not sum to one."""
    total = _sums(value)
    if np.any(np.abs(total - 1.0) > _SUM):
        worst = total.flat[np.argmax(np.abs(total - 1.0))]
        raise ValueError(
            f"{name} must sum to 1 along its last axis (within {_SUM:g}), got a sum of {worst:.12g}"
        )


def _excess(value: Array) -> Array:
    """Σ − 1 along the last axis, to the last digit of the longest floating-point numbers."""

    def exact(row: Array) -> np.longdouble:
        first = fsum([*row, -1.0])
        return np.longdouble(first) + fsum([*row, -1.0, -first])

    return np.apply_along_axis(lambda row: np.array([exact(row)]), -1, value)


def _sums(value: Array):
    """Correctly rounded sums along the last axis."""
    return np.apply_along_axis(fsum, -1, value)
