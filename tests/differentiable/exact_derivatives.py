"""Derivatives at 50 digits or more, by one-sided differences of exact numbers: an oracle that
shares no code with the package.

Laws on the multiples of a unit (randomized response, discrete noise, (ε, δ)) are composed as
polynomials of whole numbers. The Laplace and the Gaussian mechanism, sampled or not, are used once,
with their profiles in closed form; Laplace noise several times by sums of uniform numbers."""

from __future__ import annotations

import functools

import mpmath
from mpmath import mp, mpf

DIGITS = 50
_BITS = 800  # of the fixed-point masses
_STEP = mpf(10) ** -18


def phi(z):
    return mpmath.erfc(-z / mpmath.sqrt(2)) / 2


def quantile(p):
    """Φ⁻¹, by Newton steps on log Φ."""
    if p > mpf(1) / 2:
        return -quantile(1 - p)
    z = (
        -mpmath.sqrt(-2 * mpmath.log(p))
        if p < mpf("0.02")
        else mpmath.erfinv(2 * p - 1) * mpmath.sqrt(2)
    )
    for _ in range(80):
        value = phi(z)
        step = (mpmath.log(value) - mpmath.log(p)) * value / mpmath.npdf(z)
        z -= step
        if abs(step) < mpf(10) ** (8 - mp.dps) * (1 + abs(z)):
            break
    return z


def gaussian_delta(mu, epsilon):
    return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


class Polygon:
    """The curve of finitely many losses: its vertices (α, TPR)."""

    def __init__(self, rows, shown=0):
        """``rows``: (loss, P-mass, Q-mass), losses falling; ``shown``: Q-mass at +∞."""
        alpha, tpr = mpf(0), mpf(shown)
        self.vertices, self.losses = [(alpha, tpr)], []
        for loss, p, q in rows:
            alpha, tpr = alpha + p, tpr + q
            self.vertices.append((alpha, tpr))
            self.losses.append(loss)

    def delta(self, epsilon):
        growth = mpmath.exp(epsilon)
        k = sum(loss > epsilon for loss in self.losses)
        alpha, tpr = self.vertices[k]
        return tpr - growth * alpha

    def advantage(self, _):
        return self.delta(mpf(0))

    def epsilon(self, delta):
        return max(
            [mpf(0), *(mpmath.log((t - delta) / a) for a, t in self.vertices[1:] if t > delta)]
        )

    def tpr(self, fpr):
        for (a, t), (b, u) in zip(self.vertices[:-1], self.vertices[1:], strict=True):
            if fpr <= b:
                return t + (u - t) * (fpr - a) / (b - a)
        return mpf(1)

    def fpr(self, fnr):
        tpr = 1 - fnr
        for (a, t), (b, u) in zip(self.vertices[:-1], self.vertices[1:], strict=True):
            if tpr <= u:
                return max(a, a + (b - a) * (tpr - t) / (u - t))
        return mpf(1)

    def beta(self, fpr):
        return 1 - self.tpr(fpr)

    def bayes_risk(self, prior):
        ends = [prior, 1 - prior]
        return min(ends + [prior * a + (1 - prior) * (1 - t) for a, t in self.vertices])

    def _near_best(self, points):
        """The few points whose μ may be largest, by floats."""
        from scipy.special import ndtri

        # (a rate next to 1 is a float only by what it lacks to 1)
        near = lambda p: -ndtri(float(1 - p)) if p > 0.5 else ndtri(float(p))
        rough = [(float(near(t) - near(a)), a, t) for a, t in points]
        most = max(r for r, *_ in rough)
        return [(a, t) for r, a, t in rough if r > most - 1e-6 * (1 + abs(most))]

    def mu(self, floor):
        # (FPRs from the floor to f(floor), or down to it where that is less)
        weak = self.beta(floor) < floor
        inside = lambda rate: rate <= floor if weak else rate >= floor
        points = [(a, t) for a, t in self.vertices[1:] if inside(a) and inside(1 - t)]
        points.append((floor, self.tpr(floor)))
        points.append((self.fpr(floor), 1 - floor))
        points = [(a, t) for a, t in points if 0 < a < 1 and 0 < t < 1]
        return max(quantile(t) - quantile(a) for a, t in self._near_best(points))

    def approximate_mu(self, d):
        points = [(a / (1 - d), (t - d) / (1 - d)) for a, t in self.vertices[1:] if t > d]
        points = [(a, t) for a, t in points if 0 < a < 1 and 0 < t < 1]
        if not points:
            return mpf(0)
        return max([mpf(0), *(quantile(t) - quantile(a) for a, t in self._near_best(points))])


def _convolved(left, right):
    """Product of two polynomials with whole coefficients (Kronecker)."""
    size = 2 * _BITS + 24
    pack = lambda row: int.from_bytes(
        b"".join(c.to_bytes(size // 8, "little") for c in row), "little"
    )
    number = len(left) + len(right) - 1
    data = (pack(left) * pack(right)).to_bytes(size // 8 * (number + 1), "little")
    cut = [
        int.from_bytes(data[k * size // 8 : (k + 1) * size // 8], "little") for k in range(number)
    ]
    return [c >> _BITS for c in cut]


def powered(row, count):
    """The masses of so many uses, from those of one (mpf) on whole numbers."""
    one = [int(mpmath.floor(mpmath.ldexp(p, _BITS))) for p in row]
    found = [1 << _BITS]
    while count:
        if count % 2:
            found = _convolved(found, one)
        count //= 2
        if count:
            one = _convolved(one, one)
    return [mpmath.ldexp(mpf(c), -_BITS) for c in found]


def on_multiples(unit, first, p, q, count, shown=0):
    """The curve of ``count`` uses of a law with P- and Q-masses at unit·(first, first + 1, …)."""
    p, q = powered(p, count), powered(q, count)
    rows = [
        (unit * (count * first + k), a, b)
        for k, (a, b) in enumerate(zip(p, q, strict=True))
        if a > 0
    ]
    return Polygon(rows[::-1], 1 - (1 - shown) ** count)


def randomized_response(epsilon, count, others=0):
    e = mpmath.exp(epsilon)
    total = 1 + others + e
    row = [e / total, others / total, 1 / total]
    return on_multiples(epsilon, -1, row, row[::-1], count)


def approximate_dp(epsilon, delta, count):
    e = mpmath.exp(epsilon)
    row = [(1 - delta) * e / (1 + e), mpf(0), (1 - delta) / (1 + e)]
    return on_multiples(epsilon, -1, row, row[::-1], count, delta)


def discrete_gaussian(sigma, count):
    """Masses at x, against those at x − 1: the loss is (2x − 1)/(2σ²)."""
    reach = int(mpmath.ceil(26 * sigma)) + 2
    mass = lambda x: mpmath.exp(-x * x / (2 * sigma**2))
    total = mpmath.fsum(mass(x) for x in range(-reach, reach + 1))
    p = [mass(x) / total for x in range(-reach, reach + 1)]
    q = [mass(x - 1) / total for x in range(-reach, reach + 1)]
    unit = 1 / sigma**2
    curve = on_multiples(unit, -reach, p, q, count)
    curve.losses = [loss - count * unit / 2 for loss in curve.losses]
    return curve


class Smooth:
    """A curve by its profile: δ(ε) and the FPR of the threshold ε, for one order or both."""

    def __init__(self, *orders):
        """Each order: (δ(ε), P(L > ε)), functions of ε, which may be negative."""
        self.orders = orders

    def delta(self, epsilon):
        return max(delta(epsilon) for delta, _ in self.orders)

    def advantage(self, _):
        return self.delta(mpf(0))

    def epsilon(self, delta):
        if self.delta(mpf(0)) <= delta:
            return mpf(0)
        low, high = mpf(0), mpf(1)
        while self.delta(high) > delta:
            low, high = high, 2 * high
        return bisected(lambda e: self.delta(e) > delta, low, high)

    def tpr(self, fpr):
        return (
            min(self._line(fpr, delta, above) for delta, above in self.orders[:1])
            if len(self.orders) == 1
            else min(self._hull(fpr), mpf(1))
        )

    def _line(self, fpr, delta, above):
        e = bisected(lambda e: above(e) > fpr, mpf(-80), mpf(80))
        return delta(e) + mpmath.exp(e) * fpr

    def _hull(self, fpr):
        """min over ε of δ(ε) + e^ε·α of the symmetrised profile."""
        full = lambda e: self.delta(e) if e >= 0 else 1 - mpmath.exp(e) * (1 - self.delta(-e))
        line = lambda e: full(e) + mpmath.exp(e) * fpr
        low, high = mpf(-60), mpf(60)
        ratio = (mpmath.sqrt(5) - 1) / 2
        for _ in range(150):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, b) if line(a) <= line(b) else (a, high)
        return line((low + high) / 2)

    def beta(self, fpr):
        return 1 - self.tpr(fpr)

    def bayes_risk(self, prior):
        odds = abs(mpmath.log(prior / (1 - prior)))
        return min(prior, 1 - prior) * (1 - self.delta(odds))


def bisected(holds, low, high):
    """Where ``holds`` ends."""
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def subsampled_gaussian(sigma, p):
    def delta(e):
        if e == mpmath.inf:
            return mpf(0)
        return gaussian_delta(1 / sigma, e)

    def removing(e):
        growth = mpmath.expm1(e) / p
        return mpmath.mpf(-mpmath.expm1(e)) if growth <= -1 else p * delta(mpmath.log1p(growth))

    def adding(e):
        # sup of P − e^ε·((1 − p)·P + p·Q)
        rest = 1 - mpmath.exp(e) * (1 - p)
        if rest <= 0:
            return mpf(0)
        return rest * delta(mpmath.log(mpmath.exp(e) * p / rest))

    return Smooth((removing, None), (adding, None))


def laplace_delta(scale, e):
    loss = 1 / scale
    if e >= loss:
        return mpf(0)
    return 1 - mpmath.exp((e - loss) / 2) if e > -loss else 1 - mpmath.exp(e)


def subsampled_laplace(scale, p):
    delta = functools.partial(laplace_delta, scale)

    def removing(e):
        growth = mpmath.expm1(e) / p
        return mpmath.mpf(-mpmath.expm1(e)) if growth <= -1 else p * delta(mpmath.log1p(growth))

    def adding(e):
        rest = 1 - mpmath.exp(e) * (1 - p)
        if rest <= 0:
            return mpf(0)
        return rest * delta(mpmath.log(mpmath.exp(e) * p / rest))

    return Smooth((removing, None), (adding, None))


def laplace(scale, count):
    """So many uses: each loss is one of ∓1/b, or between them with density ¼·e^{−(ℓ + 1/b)/2}.

    With m losses between, j at −1/b and k at 1/b, the sum is (k − j)/b + S; under the law
    tilted by half, P has density (e^{−1/(2b)}/4)^m·f_m(S)·e^{−S/2} with f_m the m-fold
    convolution of the indicator of [−1/b, 1/b]."""
    loss = 1 / scale
    half = mpmath.exp(-loss / 2)

    def pieces():
        for m in range(count + 1):
            for k in range(count - m + 1):
                j = count - m - k
                many = mpmath.factorial(count) / (
                    mpmath.factorial(m) * mpmath.factorial(k) * mpmath.factorial(j)
                )
                # P-masses: ½ at −loss, ½·e^{−loss} at loss
                yield (
                    m,
                    (k - j) * loss,
                    many * (half / 4) ** m * mpf(0.5) ** (j + k) * mpmath.exp(-k * loss),
                )

    table = list(pieces())

    def power_tail(rate, start, m):
        """∫ from ``start`` to m·loss of f_m(s)·e^{rate·s} ds."""
        end = m * loss
        start = max(start, -end)
        if start >= end:
            return mpf(0)
        total = mpf(0)
        for i in range(m + 1):
            corner = (2 * i - m) * loss
            low = max(start, corner)
            if low >= end:
                continue
            sign = (-1) ** i * mpmath.binomial(m, i) / mpmath.factorial(m - 1)

            # ∫ (s − corner)^{m−1} e^{rate s}: by parts
            def primitive(s, corner=corner):
                value, term = mpf(0), mpmath.exp(rate * s)
                for d in range(m):
                    value += (
                        (-1) ** d
                        * mpmath.ff(m - 1, d)
                        * (s - corner) ** (m - 1 - d)
                        * term
                        / rate ** (d + 1)
                    )
                return value

            total += sign * (primitive(end) - primitive(low))
        return total

    def above(epsilon, half_sign):
        total = mpf(0)
        for m, shift, mass in table:
            if m == 0:
                weight = mass * (mpmath.exp(shift) if half_sign > 0 else 1)
                total += weight if shift > epsilon else 0
                continue
            factor = mass * (mpmath.exp(shift) if half_sign > 0 else 1)
            total += factor * power_tail(half_sign * mpf(0.5), epsilon - shift, m)
        return total

    def delta(epsilon):
        return above(epsilon, 1) - mpmath.exp(epsilon) * above(epsilon, -1)

    return Smooth((delta, lambda e: above(e, -1)))


class Gaussian:
    """Every number of the Gaussian mechanism."""

    def __init__(self, mu):
        self.parameter = mu

    def mu(self, _):
        return self.parameter

    def delta(self, epsilon):
        return gaussian_delta(self.parameter, epsilon)

    def advantage(self, _):
        return self.delta(mpf(0))

    def epsilon(self, delta):
        if self.delta(mpf(0)) <= delta:
            return mpf(0)
        low, high = mpf(0), mpf(1)
        while self.delta(high) > delta:
            low, high = high, 2 * high
        return bisected(lambda e: self.delta(e) > delta, low, high)

    def tpr(self, fpr):
        return phi(quantile(fpr) + self.parameter)

    def beta(self, fpr):
        return phi(-quantile(fpr) - self.parameter)

    def bayes_risk(self, prior):
        odds = abs(mpmath.log(prior / (1 - prior)))
        return min(prior, 1 - prior) * (1 - self.delta(odds))


def one_sided(number, at, digits=DIGITS):
    """Slopes of ``number(x)`` at a double, from the left and from the right."""
    with mpmath.workdps(digits):
        at = mpf(at)
        step = at * _STEP
        here = number(at)
        return (here - number(at - step)) / step, (number(at + step) - here) / step
