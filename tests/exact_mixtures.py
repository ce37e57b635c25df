"""One use of a mixture of shifts, with 40 digits: an oracle that shares no code with brackets."""

import mpmath


def exact_delta(sigma, shifts, weights, epsilon, order):
    """δ of one use with 40 digits: the ratio rises, so the best event is a half-line."""
    with mpmath.workdps(40):
        rows = [
            (mpmath.mpf(float(c)) / sigma, mpmath.mpf(float(w)))
            for c, w in zip(shifts, weights, strict=True)
        ]
        total = mpmath.fsum(w for _, w in rows)
        ratio = lambda z: mpmath.fsum(w * mpmath.exp(t * z - t * t / 2) for t, w in rows) / total
        goal = mpmath.exp(epsilon if order == "remove" else -epsilon)
        low, high = mpmath.mpf(-60), 60 + max(t for t, _ in rows)
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if ratio(middle) < goal else (low, middle)
        above = lambda t: mpmath.erfc((high - t) / mpmath.sqrt(2)) / 2
        below = lambda t: mpmath.erfc((t - high) / mpmath.sqrt(2)) / 2
        e = mpmath.exp(epsilon)
        if order == "remove":
            return float(mpmath.fsum(w * above(t) for t, w in rows) / total - e * above(0))
        return float(below(0) - e * mpmath.fsum(w * below(t) for t, w in rows) / total)
