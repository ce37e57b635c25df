"""Privacy profiles with their curves at 40 digits: Gaussian, Laplace, and mixtures of randomized
responses with mass at infinity.
"""

import mpmath as mp

from jaxgdp import targets

DIGITS = 40


def phi(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def quantile(p):
    """Φ⁻¹ by Newton steps on log Φ."""
    if p > mp.mpf(1) / 2:
        return -quantile(1 - p)
    z = -mp.sqrt(-2 * mp.log(p)) if p < mp.mpf("0.02") else mp.sqrt(2) * mp.erfinv(2 * p - 1)
    for _ in range(60):
        value = phi(z)
        step = (mp.log(value) - mp.log(p)) * value / mp.npdf(z)
        z -= step
        if abs(step) < mp.mpf(10) ** (5 - mp.mp.dps) * (1 + abs(z)):
            break
    return z


class Gaussian:
    def __init__(self, mu):
        self.mu = mp.mpf(mu)

    def delta(self, epsilon):
        ratio = epsilon / self.mu
        with mp.workdps(min(70 + int(0.3 * ratio + 0.5 * ratio * ratio), 700)):
            return phi(self.mu / 2 - ratio) - mp.exp(epsilon) * phi(-self.mu / 2 - ratio)

    def beta(self, alpha):
        return phi(-quantile(alpha) - self.mu)

    def tpr(self, alpha):
        return phi(quantile(alpha) + self.mu)

    def most_mu(self, floor, d):
        if d == 0:
            return self.mu
        low, high = self.mu / 2, self.mu - quantile(d)
        value = lambda z: _mu_at(self, phi(-z), d)
        start = max((low + (high - low) * k / 40 for k in range(41)), key=value)
        low, high = max(low, start - (high - low) / 40), min(high, start + (high - low) / 40)
        ratio = (mp.sqrt(5) - 1) / 2
        for _ in range(50):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, b) if value(a) >= value(b) else (a, high)
        return max(value(start), value((low + high) / 2), mp.mpf(0))


class Responses:
    """Randomized response of loss l_i with probability w_i, and with the rest everything is
    shown.
    """

    def __init__(self, losses, weights, shown=0):
        self.losses, self.shown = [mp.mpf(x) for x in losses], mp.mpf(shown)
        total = sum(mp.mpf(w) for w in weights)
        self.weights = [(1 - self.shown) * mp.mpf(w) / total for w in weights]

    def delta(self, epsilon):
        one = lambda loss: mp.exp(epsilon) * mp.expm1(loss - epsilon) / (1 + mp.exp(loss))
        return self.shown + sum(
            w * one(x) for w, x in zip(self.weights, self.losses, strict=True) if x > epsilon
        )

    def _lines(self):
        return [(self.delta(e), mp.exp(e)) for e in [mp.mpf(0), *self.losses]]

    def beta(self, alpha):
        return max(0, *(max(1 - d - g * alpha, (1 - d - alpha) / g) for d, g in self._lines()))

    def tpr(self, alpha):
        return min(1, *(min(d + g * alpha, 1 - (1 - d - alpha) / g) for d, g in self._lines()))

    def corners(self):
        atoms = []
        for w, x in zip(self.weights, self.losses, strict=True):
            atoms += [(x, w / (1 + mp.exp(x))), (-x, w / (1 + mp.exp(-x)))]
        alpha, found = mp.mpf(0), []
        for _, mass in sorted(atoms, reverse=True):
            alpha += mass
            found.append(alpha)
        return found

    def most_mu(self, floor, d):
        return _over_corners(self, self.corners(), floor, d)


class Laplace:
    def __init__(self, epsilon):
        self.epsilon = mp.mpf(epsilon)

    def delta(self, epsilon):
        return max(mp.mpf(0), -mp.expm1((epsilon - self.epsilon) / 2))

    def beta(self, alpha):
        ratio = mp.exp(self.epsilon)
        if alpha <= 1 / (2 * ratio):
            return 1 - ratio * alpha
        return 1 / (4 * alpha * ratio) if alpha <= mp.mpf(1) / 2 else (1 - alpha) / ratio

    def tpr(self, alpha):
        ratio = mp.exp(self.epsilon)
        return alpha * ratio if alpha <= 1 / (2 * ratio) else 1 - self.beta(alpha)

    def most_mu(self, floor, d):
        """At these rates at least: between them μ may be larger, so this is for lower sides (and
        the upper ones must exceed it).
        """
        first, middle = mp.exp(-self.epsilon) / 2, mp.exp(-self.epsilon / 2) / 2
        return _over_corners(self, [first + (middle - first) * k / 24 for k in range(25)], floor, d)


def _mu_at(curve, alpha, d):
    rest, beta, gain = 1 - d, curve.beta(alpha), curve.tpr(alpha) - d
    if gain <= 0 or alpha >= rest:
        return -mp.inf
    if beta <= 0:
        return mp.inf
    z = quantile(gain / rest) if gain < rest / 2 else -quantile(beta / rest)
    return z - quantile(alpha / rest)


def _over_corners(curve, corners, floor, d):
    """Corners of the half of the curve with α ≤ β, from the smaller rate at the floor on."""
    least = mp.mpf(0) if d else min(floor, curve.beta(floor))
    if d and getattr(curve, "shown", 0) > d or not d and least <= 0:
        return mp.inf
    slack = 1 - mp.mpf(10) ** (10 - DIGITS)
    rates = [a for a in corners if a >= least and curve.beta(a) >= a * slack] + (
        [] if d else [least]
    )
    return max([mp.mpf(0)] + [_mu_at(curve, a, d) for a in rates])


def truth(curve, target):
    """The target's own quantity."""
    at = lambda name: mp.mpf(float(getattr(target, name)))
    if isinstance(target, targets.Mu):
        return curve.most_mu(at("fpr_floor"), mp.mpf(0))
    if isinstance(target, targets.ApproximateMu):
        return curve.most_mu(mp.mpf(0), at("approximation"))
    if isinstance(target, targets.Advantage):
        return curve.delta(mp.mpf(0))
    if isinstance(target, targets.EpsilonDelta):
        low, high, delta = mp.mpf(0), mp.mpf(900), at("delta")
        if curve.delta(low) <= delta:
            return low
        if curve.delta(high) > delta:
            return mp.inf
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (low, middle) if curve.delta(middle) <= delta else (middle, high)
        return high
    if isinstance(target, targets.BayesRisk):
        rare = min(at("prior"), 1 - at("prior"))
        return rare * (1 - curve.delta(mp.log((1 - rare) / rare)))
    if isinstance(target, targets.AttackSuccess):
        return curve.tpr(at("baseline"))
    fpr = at("fpr")
    if isinstance(target, targets.TPR):
        return curve.tpr(fpr)
    if isinstance(target, targets.FNR):
        return curve.beta(fpr)
    if isinstance(target, targets.Accuracy):
        return 1 - (fpr + curve.beta(fpr)) / 2
    assert isinstance(target, targets.Precision)
    return curve.tpr(fpr) / (curve.tpr(fpr) + fpr)
