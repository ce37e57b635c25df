"""Mechanisms with finitely many outputs, or integers, composed by enumeration: every quantity
exactly.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
from mpmath import mpf

from .polygon import Polygon, convolved, repeated
from .setting import Setting, adjacency_of, built, of_adjacency, rates

_MOST = 3000  # outputs of a composition
_DIGITS = 260
_LOUDEST = 250.0  # largest composed loss that so many digits hold


def _number(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def randomized_response(rng):
    epsilon, categories = _number(rng, 1e-6, 20.0), int(rng.choice([2, 2, 3, 10, 1000]))
    e = mpmath.exp(mpf(epsilon))
    total = e + categories - 1
    outputs = [(e / total, 1 / total), (1 / total, e / total)]
    if categories > 2:
        outputs.append(((categories - 2) / total,) * 2)
    return f"jaxgdp.RandomizedResponse({epsilon!r}, {categories})", outputs, epsilon


def pure_dp(rng):
    epsilon = _number(rng, 1e-6, 20.0)
    e = mpmath.exp(mpf(epsilon))
    return (
        f"jaxgdp.PureDP({epsilon!r})",
        [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))],
        epsilon,
    )


def approximate_dp(rng):
    epsilon, delta = _number(rng, 1e-4, 8.0), float(rng.choice([0.0, _number(rng, 1e-14, 0.5)]))
    e, d = mpmath.exp(mpf(epsilon)), mpf(delta)
    outputs = [
        ((1 - d) * e / (1 + e), (1 - d) / (1 + e)),
        ((1 - d) / (1 + e), (1 - d) * e / (1 + e)),
    ]
    if delta:
        outputs += [(d, mpf(0)), (mpf(0), d)]
    return f"jaxgdp.ApproximateDP({epsilon!r}, {delta!r})", outputs, epsilon


def discrete_laplace(rng):
    scale = _number(rng, 0.1, 50.0)
    e = mpmath.exp(1 / mpf(scale))
    outputs = [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]
    return f"jaxgdp.DiscreteLaplace({scale!r})", outputs, 1.0 / scale


def from_pmfs(rng):
    number = int(rng.integers(2, 6))
    kind = rng.choice(["plain", "zeros", "near", "single"])
    p, q = rng.dirichlet(np.ones(number)), rng.dirichlet(np.ones(number))
    if kind == "near":
        q = np.abs(p * (1.0 + 1e-6 * rng.standard_normal(number)))
    if kind == "zeros":
        p[rng.integers(number)] = 0.0
        q[rng.integers(number)] = 0.0
    if kind == "single":
        p, q = p[:2] / p[:2].sum(), np.array([0.0, 1.0])
    if not np.any(p * q):
        return from_pmfs(rng)  # without a common output there is no mechanism
    p, q = p / p.sum(), q / q.sum()
    text = f"jaxgdp.FromPMFs({p.tolist()!r}, {q.tolist()!r})"
    exact = [[Fraction(v) / sum(map(Fraction, a.tolist())) for v in a.tolist()] for a in (p, q)]
    outputs = [
        tuple(mpf(v.numerator) / v.denominator for v in row)
        for row in zip(*exact, strict=True)
        if any(row)
    ]
    inner = [abs(float(mpmath.log(b / a))) for a, b in outputs if a > 0 and b > 0]
    return text, outputs, max([1e-9, *inner])


def from_profile(rng):
    """The largest convex profile through a list: atoms from the hull of (e^ε, δ) and of its mirror
    image.
    """
    number = int(rng.integers(1, 5))
    epsilons = np.sort(rng.uniform(0.0, 4.0, number))
    if rng.uniform() < 0.3:
        epsilons[0] = 0.0
    deltas = np.sort(rng.uniform(0.0, 0.9, number))[::-1] ** rng.choice([1, 4])
    if rng.uniform() < 0.3:
        deltas[-1] = 0.0
    text = f"jaxgdp.FromProfile({epsilons.tolist()!r}, {deltas.tolist()!r})"
    points = []
    for e, d in zip(epsilons.tolist(), deltas.tolist(), strict=True):
        e, d = mpf(e), mpf(d)
        points += [(mpmath.exp(e), d), (mpmath.exp(-e), 1 - mpmath.exp(-e) * (1 - d))]
    # δ(−∞) = 1, and at the far end the profile is level
    points = sorted({*points, (mpf(0), mpf(1))})
    last = min(d for _, d in points)
    hull: list = []
    for x, y in points:
        if hull and x == hull[-1][0]:
            hull[-1] = (x, min(y, hull[-1][1]))
            continue
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (
            y - hull[-2][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
        if y == last:
            break
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(hull[:-1], hull[1:], strict=True)] + [
        mpf(0)
    ]
    outputs = [
        (slopes[i] - slopes[i - 1], (slopes[i] - slopes[i - 1]) * hull[i][0])
        for i in range(1, len(hull))
    ]
    # beyond the smallest loss α is what is left at −∞: the slope at 0 is −(1 − mass at −∞)
    if 1 + slopes[0] > mpf(10) ** (8 - mpmath.mp.dps):
        outputs.append((1 + slopes[0], mpf(0)))
    if last > 0:
        outputs.append((mpf(0), last))
    return text, outputs, float(epsilons[-1]) or 1.0


FEW = (randomized_response, pure_dp, approximate_dp, discrete_laplace, from_pmfs, from_profile)


def integer_gaussian(rng, doubled=False):
    """Discrete Gaussians used several times: the loss depends on the sum of the integers alone."""
    sigma, s = _number(rng, 0.3, 12.0), int(rng.choice([1, 1, 2, 5]))
    uses = int(rng.integers(1, 9)) if sigma < 4 else int(rng.integers(1, 4))
    shift = 2 * s if doubled else s
    reach = int(17 * sigma) + 3
    own = [mpmath.exp(-(mpf(k) ** 2) / (2 * mpf(sigma) ** 2)) for k in range(-reach, reach + 1)]
    total = mpmath.fsum(own)
    own = [a / total for a in own]
    law = [mpf(1)]
    for _ in range(uses):
        law = [
            mpmath.fdot(
                law[max(0, k - 2 * reach) : k + 1], own[max(0, k - len(law) + 1) : k + 1][::-1]
            )
            for k in range(len(law) + 2 * reach)
        ]
    # P-mass of each sum; the likelihood ratio is e^{s·Σk/σ² − uses·s²/(2σ²)}
    centre, outputs = uses * reach, []
    for i, p in enumerate(law):
        loss = (mpf(shift) * (i - centre) - mpf(uses) * shift**2 / 2) / mpf(sigma) ** 2
        outputs.append((p, p * mpmath.exp(loss)))
    # the far right end of Q lies beyond the table: as far as Q reaches from its own middle
    return (
        f"jaxgdp.compose([(jaxgdp.DiscreteGaussian({sigma!r}, {s}), {uses})])",
        outputs,
        shift * uses / sigma + uses * shift**2 / 2 / sigma**2,
    )


def draw(rng) -> Setting:
    """A random composition of mechanisms with few outputs, in any relation that is sound."""
    with mpmath.workdps(_DIGITS):
        if rng.uniform() < 0.2:
            adjacency = adjacency_of(rng, ("add_remove", "add", "remove", "replace_one"))
            text, outputs, largest = integer_gaussian(rng, doubled=adjacency == "replace_one")
            curve = of_adjacency(Polygon(_complete(outputs)), adjacency)
            return Setting(
                text, built(text), adjacency, curve, rates(rng, largest), _DIGITS, accuracy=1e-25
            )
        adjacency = adjacency_of(rng, ("add_remove", "add_remove", "add", "remove", "replace_one"))
        parts, outputs, largest, loudest = [], [(mpf(1), mpf(1))], 0.0, 0.0
        for _ in range(int(rng.integers(1, 4))):
            text, own, loss = FEW[rng.integers(len(FEW))](rng)
            if adjacency == "replace_one" and "DiscreteLaplace" in text:
                own, loss = _two_apart(loss), 2 * loss
            uses = int(rng.choice([1, 1, 2, 3, 5, 10, 40, 200]))
            while (
                uses > 1
                and len(outputs) * mpmath.binomial(uses + len(own) - 1, len(own) - 1) > _MOST
            ):
                uses //= 2
            uses = max(1, min(uses, int((_LOUDEST - loudest) / loss)))
            if loudest + uses * loss > _LOUDEST:
                continue
            grown = repeated(own, uses)
            if len(outputs) * len(grown) > 2 * _MOST:
                continue
            outputs = convolved(outputs, grown)
            parts.append(f"({text}, {uses})")
            largest, loudest = largest + loss * np.sqrt(uses) * 2, loudest + uses * loss
        if not parts:
            return draw(rng)
        text = f"jaxgdp.compose([{', '.join(parts)}])"
        curve = of_adjacency(Polygon(outputs), adjacency)
        at = rates(rng, largest)
        if rng.uniform() < 0.3:
            _touch(rng, at, curve)
        return Setting(text, built(text), adjacency, curve, at, _DIGITS)


def _complete(outputs):
    """Both laws with what a finite table leaves out (below 1e-60) given to their heaviest
    output.
    """
    p, q = (mpmath.fsum(column) for column in zip(*outputs, strict=True))
    return [(a / p, b / q) for a, b in outputs]


def _two_apart(loss):
    """Discrete Laplace noise two apart: below both, between, above both."""
    r = mpmath.exp(-mpf(1) / mpf(1.0 / loss))
    return [
        (1 / (1 + r), r * r / (1 + r)),
        ((r - r * r) / (1 + r),) * 2,
        (r * r / (1 + r), 1 / (1 + r)),
    ]


def _touch(rng, at, curve):
    """Ask at doubles next to breakpoints of the curve."""
    alpha, tpr = curve.vertices[rng.integers(len(curve.vertices))]
    if 1e-300 < alpha < 1 - 1e-15:
        at["fpr"] = float(alpha)
        if alpha < 0.49:
            at["fpr_floor"] = max(float(alpha), 1e-290)
    losses = [float(k) for k, _ in curve.kinks() if 0 <= k < 600]
    if losses:
        at["epsilon"] = float(rng.choice(losses))
    infinite = float(curve.vertices[0][1])
    if 1e-300 < infinite < 1:
        # (rates go by their logs, which tell one double from another to a few last digits)
        at["delta"] = float(
            rng.choice([infinite * (1 - 5e-13), infinite * (1 - 5e-15), infinite * (1 + 5e-15)])
        )
