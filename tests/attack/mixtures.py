"""Normal noise beside a random shift, for users and groups: one use with many digits, few uses from
losses rounded to a grid in both directions."""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf
from scipy.special import log_ndtr, logsumexp

from jaxgdp.mechanisms.groups import binomial_weights, hypergeometric_weights
from jaxgdp.quantities import registry

from .rounded import Law, Rounded, composed
from .setting import Setting, adjacency_of, built, of_adjacency, rates
from .smooth import Smooth

_DIGITS = 90  # of rates down to the tail of the most distant shift
_OUTPUTS, _GRID, _ZOOMS = 60, 8, 9
_POINTS = 4000
_ACCURACY = 1e-10  # of sums of products of doubles
_BY_QUANTILES = ("mu", "approximate_mu", "regret")
_OF_MANY = ("epsilon", "delta", "tpr", "advantage")


class OneUse(Smooth):
    """A curve of one use, which may have several maxima of whatever is looked for: the losses of
    equally spaced outputs find them.
    """

    def __init__(self, rates, losses, **how):
        super().__init__(rates, losses[0], losses[-1], **how)
        self.losses = losses

    def _turned(self, **how):
        return OneUse(self.rates, self.losses, **how)

    def _span(self):
        # (losses may be so small that what is searched must not be wider than they are)
        widest, room = max(abs(self.low), abs(self.high)), (self.high - self.low) / 16
        if self.both:
            return -widest - room, widest + room
        low, high = (-self.high, -self.low) if self.swap else (self.low, self.high)
        return low - room, high + room

    def _highest(self, rough):
        values = [rough(loss) for loss in self.losses]
        last = len(values) - 1
        peaks = [
            k
            for k in range(last + 1)
            if values[k] >= values[max(k - 1, 0)] and values[k] >= values[min(k + 1, last)]
        ]
        found = []
        for k in sorted(peaks, key=lambda k: -values[k])[:3]:
            low, high = self.losses[max(k - 1, 0)], self.losses[min(k + 1, last)]
            for _ in range(_ZOOMS):
                at = [low + (high - low) * i / _GRID for i in range(_GRID + 1)]
                near = [rough(e) for e in at]
                best = max(range(len(at)), key=lambda i: near[i])
                low, high = at[max(best - 1, 0)], at[min(best + 1, _GRID)]
            found.append((near[best], at[best]))
        return max(found)[1]


def exact(sigma: float, shifts, weights) -> OneUse:
    """The curve of one use: log Σ w·e^{τz − τ²/2} rises with z, and Newton's method from the right
    falls to where it has any value, as it is convex.
    """
    rows = [
        (mpf(float(c)) / mpf(sigma), mpf(float(w)))
        for c, w in zip(shifts, weights, strict=True)
        if w > 0
    ]
    total = mpmath.fsum(w for _, w in rows)
    rows = [(t, w / total) for t, w in rows]
    rest = mpmath.fsum(w for t, w in rows if t == 0)
    moved = [(t, w) for t, w in rows if t > 0]

    def output(loss):
        level = mpmath.exp(loss)
        if level <= rest:
            return -mpmath.inf
        z = min((loss - mpmath.log(w)) / t + t / 2 for t, w in moved)
        for _ in range(400):
            parts = [(t, w * mpmath.exp(t * z - t * t / 2)) for t, w in moved]
            ratio = mpmath.fsum(part for _, part in parts)
            slope = mpmath.fsum(t * part for t, part in parts)
            # (of the logarithm of what is left without the shift 0, which cancels nothing)
            step = mpmath.log(ratio / (level - rest)) * ratio / slope
            z -= step
            if abs(step) <= mpf(10) ** (4 - mpmath.mp.dps) * (1 + abs(z)):
                break
        return z

    tail = lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2

    def rate(epsilon):
        z = output(mpf(epsilon))
        if z == -mpmath.inf:
            return mpf(1), mpf(1)
        return tail(z), mpmath.fsum(w * tail(z - t) for t, w in rows)

    loss = lambda z: mpmath.log(mpmath.fsum(w * mpmath.exp(t * z - t * t / 2) for t, w in rows))
    top = max(t for t, _ in rows) + 9
    return OneUse(rate, [loss(-14 + (top + 14) * mpf(i) / _OUTPUTS) for i in range(_OUTPUTS + 1)])


def _one_law(tau, w, spacing: float, ends: tuple, swap: bool, up: bool) -> Law:
    """The loss of one use, rounded to a grid between ``ends`` (in spacings)."""
    sign = -1.0 if swap else 1.0
    edges = sign * spacing * np.arange(ends[0], ends[1] + 1)
    z = _outputs(tau, w, edges)
    z = z[::-1] if swap else z
    z = np.concatenate([[-np.inf], z, [np.inf]])
    # of Q where the mixture comes first, else of P: of either tail the smaller one
    means, shares = (np.zeros(1), np.ones(1)) if swap else (tau, w)
    a, b = z[:-1, None] - means, z[1:, None] - means
    right = a > 0.0
    high, low = np.where(right, -a, b), np.where(right, -b, a)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = log_ndtr(low) - log_ndtr(high)
        part = np.where(a < b, np.exp(log_ndtr(high)) * -np.expm1(np.minimum(gap, 0.0)), 0.0)
    mass = np.nan_to_num(part) @ shares
    mass = mass[::-1] if swap else mass
    masses = np.zeros(len(edges))
    if up:
        masses[0], masses[1:] = mass[0], mass[1:-1]
        return Law(ends[0], masses, mass[-1])
    masses[:-1] = mass[1:-1]
    masses[-1] += mass[-1]
    return Law(ends[0], masses, 0.0)


def _outputs(tau, w, losses):
    """Outputs of given losses, by halving."""
    low = np.full(losses.shape, -60.0)
    high = np.full(losses.shape, 60.0 + float(np.max(tau)))
    with np.errstate(divide="ignore"):
        log_w = np.log(w)
    for _ in range(70):
        middle = 0.5 * (low + high)
        loss = logsumexp(log_w + tau * (middle[:, None] - 0.5 * tau), axis=-1)
        low, high = np.where(loss < losses, middle, low), np.where(loss < losses, high, middle)
    none = losses <= np.log(max(float(np.sum(w[tau == 0.0])), 1e-300))
    return np.where(none, -np.inf, high)


def rounded(sigma: float, shifts, weights, uses: int, most: float) -> tuple[Rounded, Rounded]:
    """(rounded down, rounded up) of several uses, good for ε from 0 to ``most``."""
    tau, w = np.asarray(shifts, float) / sigma, np.asarray(weights, float) / np.sum(weights)
    least = float(logsumexp(np.log(w[w > 0.0]) + tau[w > 0.0] * (-38.0 - 0.5 * tau[w > 0.0])))
    top = most + 40.0 - uses * least
    spacing = (top - uses * least) / _POINTS
    ends = int(np.floor(uses * least / spacing)) - uses, int(np.ceil(top / spacing)) + uses
    one, other = (ends[0], ends[1]), (-ends[1], int(np.ceil(-least / spacing)) + 1)
    found = []
    for up in (False, True):
        forward = _one_law(tau, w, spacing, one, False, up)
        backward = _one_law(tau, w, spacing, other, True, up)
        found.append(
            Rounded(
                composed(forward, uses, ends, up),
                composed(backward, uses, (-ends[1], ends[1]), up),
                spacing,
            )
        )
    return found[0], found[1]


def _weights(rng, number: int):
    """Weights of every size that sum to one, some of them 0 or next to it."""
    w = np.exp(rng.uniform(np.log(1e-12), 0.0, number))
    for _ in range(int(rng.integers(0, 3))):
        w[int(rng.integers(number))] = float(rng.choice([1e-300, 1e-100, 1e-17, 0.0, 1.0]))
    if not w.sum() > 0.0:
        w[-1] = 1.0
    return w / w.sum()


def _law(rng):
    """Shifts and weights: a user under Poisson sampling or in a fixed batch, or anything."""
    kind = rng.uniform()
    number = int(np.exp(rng.uniform(0.0, np.log(24.0))))
    if kind < 0.25:
        prob = float(rng.choice([np.exp(rng.uniform(np.log(1e-9), 0.0)), 1.0 - 1e-13, 1.0, 1e-9]))
        return np.arange(number + 1.0), np.array(binomial_weights(number, prob))
    if kind < 0.5:
        size = number + int(np.exp(rng.uniform(0.0, np.log(1e4))))
        batch = int(rng.choice([1, size, size - 1, int(rng.integers(1, size + 1))]))
        return np.arange(number + 1.0), np.array(hypergeometric_weights(number, batch, size))
    number = int(rng.integers(2, 6))
    shifts = np.sort(np.exp(rng.uniform(np.log(1e-5), np.log(5.0), number)))
    shifts[0] = float(rng.choice([0.0, 0.0, shifts[0], shifts[1]]))
    return shifts, _weights(rng, number)


def draw(rng) -> Setting:
    """One use at any size of noise, or a few of moderate noise."""
    shifts, w = _law(rng)
    while not np.any(shifts * w > 0.0):
        shifts, w = _law(rng)
    w = w / w.sum() if not abs(w.sum() - 1.0) < 1e-12 else w
    many = rng.uniform() < 0.3
    largest = float(np.max(shifts[w > 0.0], initial=0.0)) or 1.0
    low, high = (0.15, 8.0) if many else (0.08, 1e4)
    sigma = float(largest * np.exp(rng.uniform(np.log(low), np.log(high))))
    if not many and rng.uniform() < 0.1:
        sigma = largest * float(rng.choice([1e6, 1e9]))
    uses = int(rng.integers(2, 9)) if many else 1
    text = f"jaxgdp.GaussianMixture({sigma!r}, {shifts.tolist()!r}, {w.tolist()!r})"
    text = f"jaxgdp.compose([({text}, {uses})])"
    adjacency, t = adjacency_of(rng), largest / sigma
    if many:
        most = uses * (0.5 * t * t + 5.0 * t) + 1.0
        curves = rounded(sigma, shifts, w, uses, most)
        curve = tuple(of_adjacency(each, adjacency) for each in curves)
        at, named = rates(rng, most / 1.1), rng.choice(_OF_MANY, 2, replace=False)
        names = tuple(str(name) for name in named)
        return Setting(
            text, built(text), adjacency, curve, at, accuracy=_ACCURACY, quantities=names
        )
    at = rates(rng, 0.5 * t * t + 6.0 * t)
    with mpmath.workdps(_DIGITS):
        # (what is left to 1 is multiplied by e^ε)
        digits = _DIGITS + int(1.1 * float(exact(sigma, shifts, w).high) / np.log(10.0))
    # (quantiles are known to 30 digits, too few for what next to no weight shows)
    faint = bool(np.any(shifts * w > 0.0)) and float(w[(shifts > 0.0) & (w > 0.0)].max()) < 1e-13
    names = tuple(name for name in registry.REGISTRY if not (faint and name in _BY_QUANTILES))
    digits += 320 if faint else 0
    with mpmath.workdps(digits):
        curve = of_adjacency(exact(sigma, shifts, w), adjacency)
    return Setting(
        text, built(text), adjacency, curve, at, digits, accuracy=1e-13, quantities=names
    )
