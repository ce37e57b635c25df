"""Exact curves of pairs with finitely many outputs, by enumeration and sorting."""

import mpmath
from mpmath import mpf

from .curve import ONE, ZERO, Curve, largest


class Polygon(Curve):
    """The curve of P against Q from the probabilities of every output, a list of (p, q)."""

    def __init__(self, outputs):
        never = [q for p, q in outputs if p == 0]
        ranked = sorted(((q / p, p, q) for p, q in outputs if p > 0), key=lambda row: -row[0])
        alpha, tpr = ZERO, mpmath.fsum(never)
        vertices, slopes = [(alpha, tpr)], []
        for i, (ratio, p, q) in enumerate(ranked):
            alpha, tpr = alpha + p, tpr + q
            if i + 1 < len(ranked) and abs(ranked[i + 1][0] - ratio) <= abs(ratio) * mpf(10) ** (
                10 - mpmath.mp.dps
            ):
                continue
            # (sums that are 1 but for the last digits are 1)
            vertices.append((_snapped(alpha), _snapped(tpr)))
            slopes.append(ratio)
        vertices[-1] = (ONE, ONE)
        self.vertices, self.slopes = vertices, slopes

    def best_inside(self, inside, d=ZERO):
        points = self.vertices[1:-1] if self.vertices[0][1] == 0 else self.vertices[:-1]
        return largest([point for point in points if inside(*point)], d)

    def kinks(self):
        return [
            (mpmath.log(slope), max(t - slope * a, ZERO, 1 - slope))
            for slope, (a, t) in zip(self.slopes, self.vertices, strict=False)
            if slope > 0
        ]

    def tpr(self, fpr):
        fpr = mpf(fpr)
        for (a0, t0), (a1, t1) in zip(self.vertices[:-1], self.vertices[1:], strict=True):
            if fpr <= a1:
                return t0 + (t1 - t0) * (fpr - a0) / (a1 - a0)
        return ONE

    def fpr(self, fnr):
        tpr = 1 - mpf(fnr)
        for (a0, t0), (a1, t1) in zip(self.vertices[:-1], self.vertices[1:], strict=True):
            if tpr <= t0:
                return a0
            if tpr <= t1 and t1 > t0:
                return a0 + (a1 - a0) * (tpr - t0) / (t1 - t0)
        return ONE

    def profile(self, epsilon):
        growth = mpmath.exp(epsilon)
        return max(max(tpr - growth * alpha for alpha, tpr in self.vertices), ZERO, 1 - growth)

    def epsilon(self, delta):
        delta = mpf(delta)
        if self.vertices[0][1] > delta:
            return mpmath.inf
        return max(
            [ZERO, *(mpmath.log((t - delta) / a) for a, t in self.vertices[1:] if t > delta)]
        )

    def swapped(self):
        """The curve of Q against P."""
        other = object.__new__(Polygon)
        other.vertices = [(1 - t, 1 - a) for a, t in reversed(self.vertices)]
        other.slopes = [1 / s for s in reversed(self.slopes) if s > 0]
        # a level piece at the end and a steep one at the start change places
        if other.vertices[0][0] == other.vertices[1][0]:
            other.vertices = other.vertices[1:]
        if other.vertices[-1] != (ONE, ONE):
            other.vertices.append((ONE, ONE))
        return other

    def symmetrised(self):
        """The concave hull of the curve and of its mirror image."""
        mirror = [(1 - t, 1 - a) for a, t in self.vertices]
        hull: list = []
        for a, t in sorted({*self.vertices, *mirror, (ONE, ONE), (ZERO, ZERO)}):
            if hull and a == hull[-1][0]:
                if t <= hull[-1][1]:
                    continue
                hull.pop()
            while len(hull) > 1:
                (a0, t0), (a1, t1) = hull[-2:]
                if (t1 - t0) * (a - a0) > (t - t0) * (a1 - a0):
                    break
                hull.pop()
            hull.append((a, t))
        found = Symmetrised()
        found.vertices, found.before = hull, self
        steps = zip(hull[:-1], hull[1:], strict=True)
        found.slopes = [(t1 - t0) / (a1 - a0) for (a0, t0), (a1, t1) in steps]
        return found


class Symmetrised(Polygon):
    """Both orders of a pair together."""

    def __init__(self):
        pass

    def plain(self):
        return self.before


def _snapped(rate):
    return ONE if 1 - rate < mpf(10) ** (12 - mpmath.mp.dps) else rate


def convolved(left, right):
    """All pairs of outputs of two mechanisms."""
    return [(p0 * p1, q0 * q1) for p0, q0 in left for p1, q1 in right]


def repeated(outputs, number):
    """``number`` uses of a mechanism with few outputs, by multinomial sums: (p, q) for every count
    of each output.
    """
    rows = [(number, ONE, ONE)]  # (uses left, p, q)
    for i, (p, q) in enumerate(outputs):
        last = i == len(outputs) - 1
        grown = []
        for left, a, b in rows:
            for k in range(left, left + 1) if last else range(left + 1):
                many = mpmath.binomial(left, k)
                grown.append((left - k, a * many * p**k, b * many * q**k))
        rows = grown
    return [(p, q) for _, p, q in rows]
