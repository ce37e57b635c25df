"""Both sides of the curve of a run whose record is hardly ever sampled: with probability π it is,
and the curve of the law given that it is makes up all of the privacy loss."""

from __future__ import annotations

import math

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp
from ....numerics.recent import Recent
from ....numerics.shapes import Array
from ..curve import Curve, GaussianParts
from ..finite_laws import Columns, halves, padded
from ..vertices import Vertices
from . import laws
from .laws import Law
from .layout import Focus, Products, Run

# logs of the least rates of tests that are kept: those that lead to a rejection, what is carried of
# those given the record, and those of an error; and of how many times as much as products that are
# no doubles are off by
_LEAST_TPR, _LEAST_MASS, _LEAST_FPR = math.log(1e-292), math.log(1e-299), math.log(1e-298)
_DIGITS = math.log(1e17)
# (finer accuracies, and what is left wide, ask again)
_CURVES = Recent(most=2**25)
_ROOM = 8.0  # units of what half a dozen operations make of a log, for its size and 1
# … and of a log that little is added to: for its size, for the share, and for that times its log
_LAST, _OF_SHARE, _OF_LOG_SHARE = 5.0, 128.0, 8.0


def both_sides(
    run: Run,
    parts: GaussianParts,
    finer: float = 1.0,
    faint: float = 0.0,
    focus: Focus | None = None,
) -> Curve:
    """Both sides of the curve of a run, in the order of removing a record.

    Args:
        run: with a sampling probability below 1.
        parts: the Gaussian curves that its curve lies between.
        finer: how many times as many points there are as for an accuracy of 1e-3 of any number, a
            power of two or 3/2 of one, at least 1/8.
        faint: mass that does not matter, of all runs; 0 for as deep as doubles go.
        focus: where there are more points than elsewhere.

    Method: docs/method/seldom.md#seldom-share
    """
    return counted(run, parts, finer, faint, focus)[0]


def counted(
    run: Run,
    parts: GaussianParts,
    finer: float = 1.0,
    faint: float = 0.0,
    focus: Focus | None = None,
) -> tuple[Curve, Products]:
    """The same, and what it took.

    Args:
        run, parts, finer, faint, focus: as for :func:`both_sides`.
    """
    key = run, finer, faint, focus
    *halves, products = _CURVES.get(key, lambda: _half_curves(*key))
    return Curve(*halves, *parts), products


def _half_curves(run: Run, finer: float, faint: float, focus: Focus | None = None) -> tuple:
    """Of both orders, from above, and from below."""
    above, below = laws.dominating(run, finer, faint, focus), laws.attack(run, finer, faint, focus)
    infinite = above.log_m_plus - _log_mean(run), above.log_p_minus
    plus, minus, below_plus, below_minus = halves(
        _dominating_columns(above, run), infinite, _achieved_columns(below, run)
    )
    found = [
        _removed(plus, run, 1.0),
        _with_end(_added(minus, run, 1.0), run, above),
        _removed(_kept(below_plus, run, below, removing=True), run, -1.0),
        _added(_kept(below_minus, run, below, removing=False), run, -1.0),
    ]
    sums = above.tally, below.tally
    products = Products(*(sum(getattr(t, kind) for t in sums) for kind in ("usual", "finer")))
    return (*padded(found), products)


def _log_mean(run: Run) -> float:
    """log E(e^S − 1) = log((1 − p)^{−T} − 1)."""
    return math.log(math.expm1(run.log_never))


def _dominating_columns(law: Law, run: Run) -> Columns:
    """The pair of laws given that the record is sampled; where a loss is small it is the log of 1
    and a difference."""
    log_q = law.log_m - _log_mean(run)
    excess = np.expm1(law.s - run.log_never) / -math.expm1(-run.log_never)
    near = np.abs(excess) < 0.5
    loss = np.where(near, np.log1p(np.where(near, excess, 0.0)), log_q - law.log_p)
    return _columns(loss, log_q, law, run)


def _achieved_columns(law: Law, run: Run) -> Columns:
    """The same from below: a loss is that of the masses of a label, not the label."""
    log_q = law.log_m - _log_mean(run)
    return _columns(log_q - law.log_p, log_q, law, run)


def _columns(loss: Array, log_q: Array, law: Law, run: Run) -> Columns:
    rounded = abs(_log_mean(run)) + run.log_never
    return Columns(loss, law.log_p, log_q, law.error, law.near, (0.0, law.most_off), rounded)


def _kept(half: Vertices, run: Run, below: Law, removing: bool) -> Vertices:
    """Tests of which no rate is so small that what was not counted matters, with what was not
    counted in rates from above.

    Method: docs/method/seldom.md#seldom-least
    """
    # (what is carried of the record's mass is (1 − p)^−T − 1 in all)
    lost, mean = math.log(below.lost), _log_mean(run)
    of_record = lost + run.log_never - mean
    if removing:
        tpr, fpr = max(_LEAST_MASS - mean, of_record + _DIGITS), _LEAST_FPR
    else:
        tpr, fpr = lost + math.log(len(below.s)) + _DIGITS, max(_LEAST_MASS - mean, _LEAST_FPR)
    deep = (half.log_tpr < max(tpr, _LEAST_TPR)) | (half.log_alpha < fpr)
    faint = np.logaddexp(math.log(laws.FAINT), of_record)
    return half._replace(
        log_alpha=np.minimum(np.logaddexp(half.log_alpha, faint), 0.0),
        log_beta=np.minimum(np.logaddexp(half.log_beta, faint), 0.0),
        used=half.used & ~deep,
        above_noise=half.above_noise & ~deep,
    )


def _mixture(log_share: float, log_never: float, base: Array, other: Array) -> Array:
    """log((1 − π)·e^base + π·e^other): nothing is added to what it is a small share of, and π,
    which may be next to 1, is not taken from 1.
    """
    gap = other - base
    small = np.abs(gap) < 1.0
    with np.errstate(all="ignore"):
        near = base + np.log1p(math.exp(log_share) * np.expm1(np.where(small, gap, 0.0)))
        far = np.logaddexp(base - log_never, other + log_share)
    return np.where(small, near, far)


def _outward(log_rate: Array, side: float) -> Array:
    return np.minimum(log_rate + side * _rounded(log_rate), 0.0)


def _rounded(log_rate: Array) -> Array:
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(log_rate), np.abs(log_rate), 0.0)
    return _ROOM * UNIT * (1.0 + size)


def _near(log_share: float, log_never: float, base: Array, other: Array, side: float) -> Array:
    """The mixture of two rates, moved by its rounding to one side: by next to nothing but that of
    the last addition where the rates are about the same and the share is small.

    Method: docs/method/seldom.md#seldom-share
    """
    found = _mixture(log_share, log_never, base, other)
    with np.errstate(invalid="ignore"):
        small = np.abs(other - base) < 1.0
    share = math.exp(log_share) * (_OF_SHARE + _OF_LOG_SHARE * abs(log_share))
    little = UNIT * (_LAST * np.abs(found) + share * (1.0 + np.abs(found)))
    moved = np.where(small, np.minimum(little, _rounded(found)), _rounded(found))
    return np.minimum(found + side * moved, 0.0)


def _removed(half: Vertices, run: Run, side: float) -> Vertices:
    """P against (1 − π)·P + π·Q′ from P against Q′: TPR − FPR is π times what it was.

    ``side``: 1 from above, −1 from below.
    """
    share = float(np.log(-np.expm1(-run.log_never))), run.log_never
    alpha, tpr, beta = half.log_alpha, half.log_tpr, half.log_beta
    if side < 0.0:
        tpr = np.maximum(tpr, log1mexp(beta))
    assert half.at is not None  # losses are not equally far apart
    at = _mixture(*share, np.zeros_like(half.at), half.at)
    tpr, beta = _near(*share, alpha, tpr, side), _mixture(*share, log1mexp(alpha), beta)
    done = half._replace(log_tpr=tpr, log_beta=_outward(beta, -side), at=at)
    if half.top is None or half.log_infinity_mass is None or side < 0.0:
        return done
    return done._replace(
        top=_mixture(*share, np.zeros_like(half.top), half.top),
        log_infinity_mass=np.minimum(half.log_infinity_mass + share[0], 0.0),
    )


def _added(half: Vertices, run: Run, side: float) -> Vertices:
    """The same for the other order: what was the FPR is one of the mixture."""
    share = float(np.log(-np.expm1(-run.log_never))), run.log_never
    tpr = half.log_tpr if side > 0.0 else np.maximum(half.log_tpr, log1mexp(half.log_beta))
    assert half.at is not None  # losses are not equally far apart
    at = -_mixture(*share, np.zeros_like(half.at), -half.at)
    # (one that follows from its FNR is off by more)
    alpha = np.where(
        tpr == half.log_tpr,
        _near(*share, tpr, half.log_alpha, -side),
        _outward(_mixture(*share, tpr, half.log_alpha), -side),
    )
    done = half._replace(log_alpha=alpha, log_tpr=tpr, at=at)
    if side < 0.0:
        return done
    return done


def _with_end(half: Vertices, run: Run, above: Law) -> Vertices:
    """With what has a loss of −∞ given the record, where the mixture has log(1 − π): a vertex of
    its own, beyond which there is nothing.
    """
    assert half.at is not None  # losses are not equally far apart
    none = run.log_never * (1.0 + _ROOM * UNIT)
    # (which may be all but the rest: a sum with one rounding of a log for each mass)
    deepest = float(np.max(np.abs(above.log_p), initial=0.0))
    slack = above.error + (len(above.log_p) + 4.0) * (deepest + 4.0) * UNIT
    rest = np.logaddexp.reduce(above.log_p, initial=-np.inf) - np.log1p(slack)
    log_beta = np.maximum(log1mexp(np.array([above.log_p_minus])), min(rest, 0.0))
    log_tpr = np.minimum(np.array([above.log_p_minus]), _outward(log1mexp(log_beta), 1.0))
    rates = {
        "log_alpha": _outward(log_tpr - none, -1.0),
        "log_tpr": log_tpr,
        "log_beta": log_beta,
        "used": np.ones(1, bool),
        "above_noise": np.ones(1, bool),
    }
    ends = {
        name: np.append(getattr(half, name), last[None], axis=-1) for name, last in rates.items()
    }
    at = np.append(np.minimum(half.at, none), [[none]], axis=-1)
    end = np.full(1, none), np.full(1, -np.inf)
    return half._replace(**ends, at=at, top=end[0], log_infinity_mass=end[1])
