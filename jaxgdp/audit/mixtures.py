"""Gaussian mixtures fitted to transformed losses, and their fit (Negoescu et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..numerics.optional import missing
from ..numerics.shapes import ArrayLike
from ..numerics.validation import whole
from .bound import ESTIMATE, Bound

MOST = 20  # components
_SPREAD = 1e-6  # least standard deviation, relative to the range of the data


class Mixture(NamedTuple):
    """A mixture of normal distributions.

    Attributes:
        weights, means, deviations: of its components, shape (components,).
    """

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    def below(self, x: ArrayLike):
        """Pr[X < x], shape of ``x``."""
        return ndtr((np.asarray(x, float)[..., None] - self.means) / self.deviations) @ self.weights

    def above(self, x: ArrayLike):
        """Pr[X ≥ x], accurate in the tail, shape of ``x``."""
        return ndtr((self.means - np.asarray(x, float)[..., None]) / self.deviations) @ self.weights

    def quantile(self, prob: ArrayLike):
        """The x with Pr[X < x] = prob, by bisection between the components' own quantiles."""
        prob = np.asarray(prob, float)
        ends = self.means + self.deviations * ndtri(prob)[..., None]
        low, high = ends.min(axis=-1), ends.max(axis=-1)
        for _ in range(60 if len(self.weights) > 1 else 0):
            middle = 0.5 * (low + high)
            less = self.below(middle) < prob
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return 0.5 * (low + high)

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws, shape (number,)."""
        which = rng.choice(len(self.weights), size=number, p=self.weights / self.weights.sum())
        return self.means[which] + self.deviations[which] * rng.standard_normal(number)


def transformed(member_losses: ArrayLike, nonmember_losses: ArrayLike):
    """The paper's transformation of losses: scaled to [0, 1], plus 1, p = e^{−·}, logit(p).

    Args:
        member_losses, nonmember_losses: shapes (n₁,) and (n₀,), finite.

    Returns:
        The two arrays, larger for smaller losses, between logit(e⁻²) and logit(e⁻¹).

    Example:
        >>> [x.round(4).tolist() for x in transformed(np.array([0.0]), np.array([2.0]))]
        [[-0.5413], [-1.8546]]
    """
    pooled = np.concatenate([member_losses, nonmember_losses])
    least, spread = pooled.min(), np.ptp(pooled)
    scale = 1.0 / spread if spread > 0.0 else 0.0

    def one(losses: np.ndarray):
        exponent = -((losses - least) * scale + 1.0)
        return exponent - np.log(-np.expm1(exponent))

    return one(np.asarray(member_losses, float)), one(np.asarray(nonmember_losses, float))


def fit(values: np.ndarray, components: int | str = 1, seed: int = 0) -> Mixture:
    """A mixture fitted by expectation maximisation; one component by mean and standard deviation.

    Args:
        values: shape (n,), at least ten.
        components: 1 to 20, or "bic" for the number with the least Bayesian information criterion.
        seed: of the starting points.

    Raises:
        ValueError: a number of components out of range. ImportError: scikit-learn is missing (the
            ``audit`` extra).

    Example:
        >>> found = fit(np.concatenate([np.arange(50.0), 1000.0 + np.arange(50.0)]), components=2)
        >>> found.means.round(1).tolist()
        [24.5, 1024.5]
    """
    values = np.asarray(values, float)
    least = max(_SPREAD * float(np.ptp(values)), 1e-300)
    if isinstance(components, str):
        if components != "bic":
            raise ValueError(
                f"components must be a whole number from 1 to {MOST} or 'bic', got {components!r}"
            )
        most = min(MOST, len(np.unique(values)) // 2)
        models = [_expectation_maximisation(values, k, seed) for k in range(1, max(most, 1) + 1)]
        model = min(models, key=lambda found: found.bic(values[:, None]))
    else:
        number = int(whole("components", components))
        if number > MOST:
            raise ValueError(
                f"components must be a whole number from 1 to {MOST} or 'bic', got {components!r}"
            )
        if number == 1:
            return Mixture(
                np.ones(1), np.array([values.mean()]), np.array([max(values.std(), least)])
            )
        model = _expectation_maximisation(values, number, seed)
    weights, means = np.asarray(model.weights_), np.asarray(model.means_)[:, 0]
    deviations = np.maximum(np.sqrt(np.asarray(model.covariances_).reshape(-1)), least)
    order = np.argsort(means)
    return Mixture(weights[order], means[order], deviations[order])


def _expectation_maximisation(values: np.ndarray, number: int, seed: int):
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise missing("Gaussian mixtures need scikit-learn", "audit") from None
    import warnings

    smallest = max((_SPREAD * float(np.ptp(values))) ** 2, 1e-300)
    model = GaussianMixture(
        number, covariance_type="spherical", reg_covar=smallest, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(values[:, None])


def goodness_of_fit(
    values: np.ndarray, components: int | str = 1, num_samples: int = 1000, seed: int = 0
) -> Bound:
    """p-value that a mixture fits: fit on one part, draw from the fit, compare with the other part
    (Appendix B, Kolmogorov-Smirnov).

    Args:
        values: transformed losses of one class, shape (n,).
        components: 1 to 20 or "bic".
        num_samples: of the part kept for the comparison, and of the draw; less than n − 10.
        seed: of the partition, the fit and the draw.

    Returns:
        The p-value, a :class:`jaxgdp.audit.Bound` that is an estimate: small means that the fit is
        refuted, large proves nothing.

    Raises:
        ValueError: fewer than ten values are left to fit.

    Example:
        >>> p = goodness_of_fit(np.random.default_rng(0).standard_normal(4000), num_samples=500)
        >>> p > 0.01
        True
    """
    from scipy.stats import ks_2samp

    values, number = np.asarray(values, float), int(whole("num_samples", num_samples))
    if number > len(values) - 10:
        raise ValueError(
            f"num_samples must leave at least ten of {len(values)} values to fit, got {number}"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    found = fit(values[order[number:]], components, seed)
    _, pvalue = ks_2samp(values[order[:number]], found.sample(number, rng))
    return Bound(
        float(np.asarray(pvalue)),
        "Kolmogorov-Smirnov p-value",
        ESTIMATE,
        details={"components": len(found.weights)},
    )
