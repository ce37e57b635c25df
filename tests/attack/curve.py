"""What an exact trade-off curve answers; both kinds of curve build on it."""

from math import exp

import mpmath
from mpmath import mpf

from .normal import delta as gaussian_delta
from .normal import quantile

ZERO, ONE = mpf(0), mpf(1)


class Curve:
    """Quantities that follow from a few others.

    ``tpr(fpr)`` and ``profile(ε)`` (δ at any real ε of the curve as it stands, symmetrised or not)
    come from the kind of curve."""

    def tpr(self, fpr):
        raise NotImplementedError

    def fpr(self, fnr):
        """The least FPR at which an FNR is reached."""
        raise NotImplementedError

    def profile(self, epsilon):
        raise NotImplementedError

    def best_inside(self, inside, d=ZERO):
        """Largest μ (d-approximate, see ``largest``) of the points (α, TPR) for which ``inside``
        holds.
        """
        raise NotImplementedError

    def kinks(self):
        """(ε, δ(ε)) of losses among which is the one where the regret is largest, but for 0."""
        raise NotImplementedError

    def beta(self, fpr):
        return ONE - self.tpr(fpr)

    def delta(self, epsilon):
        return self.profile(mpf(epsilon))

    def advantage(self):
        return self.profile(ZERO)

    def bayes_risk(self, prior):
        """min of π·α + (1 − π)·β = (1 − π)·(1 − δ(log(π/(1 − π))))."""
        prior = mpf(prior)
        return min(
            (1 - prior) * (1 - self.profile(mpmath.log(prior / (1 - prior)))), prior, 1 - prior
        )

    def mu(self, floor):
        """Largest Φ⁻¹(TPR) − Φ⁻¹(α) over points with both error rates at least the floor, or both
        at most.
        """
        floor = mpf(floor)
        plain = self.plain()
        ends = [(floor, plain.tpr(floor)), (plain.fpr(floor), 1 - floor)]
        hidden = 1 - ends[0][1] < floor
        inside = lambda a, t: (
            (a <= floor and 1 - t <= floor) if hidden else (a >= floor and 1 - t >= floor)
        )
        return max(ZERO, plain.best_inside(inside), largest(ends, ZERO))

    def approximate_mu(self, d):
        d = mpf(d)
        return max(ZERO, self.plain().best_inside(lambda a, t: True, d))

    def regret(self, floor):
        """Largest (δ_μ(ε) − δ(ε))/(1 + e^ε); None where μ is ∞. Between kinks the gap falls and
        then rises.
        """
        mu = self.mu(floor)
        if mu == mpmath.inf:
            return None
        gaps = lambda e, d: (gaussian_delta(mu, e) - d) / (1 + mpmath.exp(e))
        candidates = [(ZERO, self.profile(ZERO)), *self.kinks()]
        rough = [rough_gap(float(mu), float(e), float(d)) for e, d in candidates]
        near = sorted(range(len(rough)), key=lambda i: -rough[i])[:6]
        return max(ZERO, *(gaps(*candidates[i]) for i in near))

    def plain(self):
        """The curve of P against Q before it was symmetrised: it has the same μ."""
        return self


def rough_gap(mu, epsilon, delta):
    from scipy.special import ndtr

    if mu == 0.0 or abs(epsilon) > 600.0:
        return 0.0
    return (ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - delta) / (
        1.0 + exp(epsilon)
    )


def largest(points, d, rough=False):
    """Largest Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)): by doubles first, and of the best of these
    in many digits (unless rough).
    """
    from scipy.special import ndtri_exp

    rates = []
    for alpha, tpr in points:
        gain, alpha, beta = (tpr - d) / (1 - d), alpha / (1 - d), (1 - tpr) / (1 - d)
        if gain <= 0 or alpha >= 1:
            continue
        if alpha <= 0 or beta <= 0:
            return mpmath.inf
        z = [
            ndtri_exp(float(mpmath.ln(rate, prec=70)))
            if rate < 0.5
            else -ndtri_exp(float(mpmath.ln(1 - rate, prec=70)))
            for rate in (alpha, beta)
        ]
        rates.append((-z[0] - z[1], alpha, beta))
    if not rates:
        return -mpmath.inf
    best = max(value for value, _, _ in rates)
    if rough:
        return best
    near = sorted((r for r in rates if r[0] > best - 1e-9 * (1 + abs(best))), key=lambda r: -r[0])[
        :8
    ]
    return max(-quantile(alpha) - quantile(beta) for _, alpha, beta in near)
