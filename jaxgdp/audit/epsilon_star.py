"""Epsilon* of a trained model: how well its losses distinguish its own training records from others
(Negoescu et al. 2023, Definition 2).

With t = Pr[loss ≤ τ] of a record from the population (FPR) and η = Pr[loss > τ] of a training
record (FNR),

    ε* = log max over τ of max{(1 − δ − η)/t, (1 − δ − t)/η, (η − δ)/(1 − t), (t − δ)/(1 − η), 1}.

It is a lower bound on the ε with which that one model is "(ε, δ)-empirically private" (their
Definition 1), whose randomness is the draw of the record, not of the training. It bounds no
mechanism: of a training mechanism only ε̄ ≤ log E[e^{ε*}] is known, over its models (Theorem 2).
And being the maximum of ratios of estimated rates, it is an estimate, of unknown side.

"empirical" counts rates, and uses thresholds at which both lie in (0.001, 0.999), as the paper does
(where there is none, the nearest rates that do). "parametric" fits a Gaussian, or a mixture, to
transformed losses of each class, and uses thresholds at quantiles of both at which both rates lie
in (δ, 1 − δ). The paper takes one million equally spaced quantiles of each; here they are taken
densest towards both ends, down to one in a million."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics.compiling import Program
from ..numerics.precision import with_float64
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import one_number, one_of, whole
from . import mixtures
from .bound import ESTIMATE, Bound
from .scores import confidence_level, losses
from .thresholds import FEW

CAVEAT = (
    "of this one model, whose losses tell members from others; not a bound on the training"
    " mechanism, of which only eps <= log E[exp(Epsilon*)] is known"
)
METHODS = ("empirical", "parametric")
_SAME = 1e-12  # ratios this near 1 are 1
KEPT = 1e-3  # empirical rates are kept in (KEPT, 1 − KEPT)
_QUANTILES = np.concatenate([tail := np.geomspace(1e-6, 0.5, 2000), 1.0 - tail[-2::-1]])


def log_ratio(fpr: Array, fnr: Array, delta: float, least: float = 0.0):
    """ε* of rates, maximised over the last axis: the formula at the top of this file.

    Args:
        fpr, fnr: t and η in [0, 1], shape (..., thresholds).
        delta: in [0, 1).
        least: rates are kept in (least, 1 − least).

    Returns:
        ε* in nats, shape (...), 0 where no threshold is left.

    Example:
        >>> round(float(log_ratio(np.array([0.1]), np.array([0.5]), 0.0)), 4)  # log(0.5/0.1)
        1.6094
    """
    xp = np if isinstance(fpr, np.ndarray) else jnp
    kept = (fpr > least) & (fpr < 1.0 - least) & (fnr > least) & (fnr < 1.0 - least)
    t, n = xp.where(kept, fpr, 0.5), xp.where(kept, fnr, 0.5)
    ratios = [
        (1.0 - delta - n) / t,
        (1.0 - delta - t) / n,
        (n - delta) / (1.0 - t),
        (t - delta) / (1.0 - n),
    ]
    largest = functools.reduce(xp.maximum, ratios)
    best = xp.max(xp.where(kept, largest, 1.0), axis=-1)
    return xp.where(best > 1.0 + _SAME, xp.log(xp.maximum(best, 1.0)), 0.0)


def _rates(member: Array, nonmember: Array):
    """Empirical (t, η) at every loss."""
    xp, how = (np, {}) if isinstance(member, np.ndarray) else (jnp, {"method": "sort"})
    member, nonmember = xp.sort(member), xp.sort(nonmember)
    at = xp.concatenate([member, nonmember])
    number = lambda x: xp.searchsorted(x, at, side="right", **how).astype(at.dtype)
    # of whole numbers, so that 1/1000 is no more than 0.001
    return (
        number(nonmember) / nonmember.shape[0],
        (member.shape[0] - number(member)) / member.shape[0],
    )


def _empirical(member: Array, nonmember: Array, delta: float):
    fpr, fnr = _rates(member, nonmember)
    found = log_ratio(fpr, fnr, delta, KEPT)
    # where no threshold has both rates inside (classes far apart, or few different losses), rates
    # are moved to the ends instead: those of no errors become few, which understates, and few
    # records cannot say as much
    xp = np if isinstance(fpr, np.ndarray) else jnp
    inside = lambda rate: (rate > KEPT) & (rate < 1.0 - KEPT)
    end = max(KEPT, 1.0 / min(member.shape[0], nonmember.shape[0]))
    moved = [xp.clip(rate, end, 1.0 - end) for rate in (fpr, fnr)]
    return xp.where(xp.any(inside(fpr) & inside(fnr)), found, log_ratio(*moved, delta))


_models = Program(jax.vmap(_empirical, (0, 0, None)))


def _resampled(key: Array, member: Array, nonmember: Array, delta: float):
    one, other = jax.random.split(key)
    draw = lambda k, x: x[jax.random.randint(k, x.shape, 0, x.shape[0])]
    return _empirical(draw(one, member), draw(other, nonmember), delta)


_bootstrap = Program(jax.vmap(_resampled, (0, None, None, None)))


def _checked_delta(delta: float) -> float:
    return one_number("delta", delta, "in [0, 0.5)", lambda a: (a >= 0.0) & (a < 0.5))


@with_float64
def epsilon_star(
    member_losses: ArrayLike,
    nonmember_losses: ArrayLike,
    delta: float = 0.0,
    method: str = "empirical",
    components: int | str = 1,
    seed: int = 0,
):
    """Epsilon* of a trained model (Negoescu et al. 2023, Def. 2): an estimate, of it only.

    Args:
        member_losses: of training records, shape (..., n₁); leading axes are models (empirical
            only).
        nonmember_losses: of records of the same population that were not trained on, shape (...,
            n₀).
        delta: δ in [0, 0.5). At δ = 0 the parametric value depends on the smallest rates
            considered, one in a million: the largest ratio of two Gaussian tails is infinite.
        method: "empirical" or "parametric".
        components: of the Gaussian mixtures, for "parametric": a number from 1 to 20, or "bic" to
            choose it for each class.
        seed: of the mixtures' starting points.

    Returns:
        ε* in nats: a :class:`jaxgdp.audit.Bound` whose side is "estimate" and whose caveat names
        what it is an estimate of; with "parametric", its details hold the numbers of components. An
        array over models if the losses have leading axes.

    Raises:
        ValueError: NaN or infinite losses, fewer than ten of a class, or an argument out of range.
        ImportError: scikit-learn is missing where mixtures are fitted (the ``audit`` extra).

    Example:
        >>> import numpy as np
        >>> losses = np.arange(1000.0)
        >>> [round(float(epsilon_star(losses, losses + shift)), 3) for shift in (0.0, 500.0)]
        [0.0, 5.525]
    """
    one_of("method", method, METHODS)
    delta = _checked_delta(delta)
    member, nonmember = losses(member_losses, nonmember_losses)
    lead = member.shape[:-1]
    if method == "parametric":
        if lead:
            raise ValueError(
                f"parametric Epsilon* takes one model at a time, got leading shape {lead}"
            )
        value, details = _parametric(member, nonmember, delta, components, seed)
        return Bound(value, f"Epsilon*(delta = {delta:g})", ESTIMATE, None, CAVEAT, details)
    flat = [side.reshape((-1, side.shape[-1])) for side in (member, nonmember)]
    if len(flat[0]) > FEW and jax.default_backend() != "cpu":
        found = np.asarray(_models(*flat, delta)).reshape(lead)
    else:
        found = np.array([_empirical(*pair, delta) for pair in zip(*flat, strict=True)]).reshape(
            lead
        )
    if lead:
        return found
    return Bound(
        float(found), f"Epsilon*(delta = {delta:g})", ESTIMATE, None, CAVEAT, {"method": method}
    )


def _parametric(member: Array, nonmember: Array, delta: float, components: int | str, seed: int):
    inside, outside = mixtures.transformed(member, nonmember)
    if np.ptp(np.concatenate([inside, outside])) == 0.0:
        return 0.0, {"method": "parametric", "components": (1, 1)}
    fits = mixtures.fit(inside, components, seed), mixtures.fit(outside, components, seed)
    value = of_mixtures(*fits, delta)
    return value, {
        "method": "parametric",
        "components": tuple(len(f.weights) for f in fits),
        "fits": fits,
    }


def of_mixtures(
    member: mixtures.Mixture, nonmember: mixtures.Mixture, delta: float, least: float | None = None
) -> float:
    """ε* of two fitted distributions of transformed losses (larger for smaller losses).

    Args:
        member, nonmember: :class:`jaxgdp.audit.mixtures.Mixture`.
        delta: in [0, 0.5).
        least: rates are kept in (least, 1 − least); default δ.

    Returns:
        ε* in nats.
    """
    at = np.concatenate([nonmember.quantile(_QUANTILES), member.quantile(_QUANTILES)])
    return float(
        log_ratio(nonmember.above(at), member.below(at), delta, delta if least is None else least)
    )


@with_float64
def epsilon_star_interval(
    member_losses: ArrayLike,
    nonmember_losses: ArrayLike,
    delta: float = 0.0,
    method: str = "empirical",
    confidence: float = 0.95,
    draws: int = 200,
    components: int | str = 1,
    seed: int = 0,
) -> tuple[float, float]:
    """Bootstrap interval of ε*: its variation over samples, not where the true ε* lies.

    Quantiles of ε* over records drawn again with replacement, each class by itself, moved so that
    the median of the resamples is the estimate. As ε* is a maximum of noisy ratios, the estimate
    lies above the truth where classes differ little, and resamples lie above the estimate: unmoved
    quantiles could leave out the very value whose variation they describe.

    Args:
        member_losses: of training records of one model, shape (n₁,).
        nonmember_losses: of others, shape (n₀,).
        delta: as for :func:`epsilon_star`.
        method: as for :func:`epsilon_star`.
        confidence: in [0.5, 1 - 1e-9].
        draws: number of resamples, ≥ 1; compiled and batched for "empirical".
        components: as for :func:`epsilon_star`.
        seed: of the resampling, and as for :func:`epsilon_star`.

    Returns:
        (lower, upper), on both sides of the value of :func:`epsilon_star`, and at least 0.

    Raises:
        ValueError: as for :func:`epsilon_star`.

    Example:
        >>> import numpy as np
        >>> low, high = epsilon_star_interval(np.arange(100.0), np.arange(100.0), draws=20)
        >>> 0.0 <= low <= high
        True
    """
    one_of("method", method, METHODS)
    delta, confidence = _checked_delta(delta), confidence_level("confidence", confidence)
    member, nonmember = losses(member_losses, nonmember_losses)
    if member.ndim > 1:
        raise ValueError(f"member_losses must be of one model, got shape {member.shape}")
    number = int(whole("draws", draws))
    if method == "empirical":
        values = np.asarray(
            _bootstrap(jax.random.split(jax.random.key(seed), number), member, nonmember, delta)
        )
    else:
        rng = np.random.default_rng(seed)
        again = lambda x: x[rng.integers(len(x), size=len(x))]
        values = [
            _parametric(again(member), again(nonmember), delta, components, seed)[0]
            for _ in range(number)
        ]
    tail = 0.5 * (1.0 - confidence)
    low, middle, high = np.quantile(values, [tail, 0.5, 1.0 - tail])
    value = float(epsilon_star(member, nonmember, delta, method, components, seed))
    return max(value - float(middle - low), 0.0), value + float(high - middle)
