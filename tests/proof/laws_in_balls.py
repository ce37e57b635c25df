"""Exact laws of one use of every class in ball arithmetic, one formula each, written down from the
definitions; settings are drawn from extreme ranges. Needs python-flint.

A law is of Q (the numerator) against P (the denominator): its masses above a loss, atoms among
them, what only one of both shows (``minus`` and ``plus``), and the typical size of its losses where
the class sums to one.
"""

import functools
import math

import numpy as np
from flint import arb, fmpq

import jaxgdp
from jaxgdp.mechanisms.base import known_mechanisms
from jaxgdp.proof import uses
from jaxgdp.proof.balls import exact, upper_tail
from jaxgdp.proof.uses import Masses


class OfUse:
    """A use as proofs know it."""

    atom_bits = 1100

    def __init__(self, use, typical=None):
        self.use, self.typical = use, typical
        self.listed = use.atoms("remove", self.atom_bits)
        self.minus, self.plus = use.infinite("add"), use.infinite("remove")

    def reach(self):
        """Losses between which nearly all is, as doubles."""
        span = self.use.span("remove", 60)
        return min(span.low, -1e-300), max(span.high, 1e-300)

    def least(self):
        """The smallest loss, where there is one that points may be next to."""
        rate = float(getattr(self.use, "rate", 1.0))
        return math.log1p(-rate) if rate < 1.0 else None

    def above(self, loss):
        """Masses under Q and P of what has a larger finite loss."""
        q, p = self.use.tails("remove", loss)
        for atom in self.listed:
            if atom.loss > loss:
                q, p = q + atom.masses.numerator, p + atom.masses.denominator
        return Masses(q, p)


class Shifts:
    """N(0, 1) against a mixture of N(τ_i, 1): the output of a loss is enclosed by halving."""

    minus = plus = 0

    def __init__(self, mechanism):
        sigma = exact(float(mechanism.noise_multiplier))
        rows = zip(mechanism.shifts.tolist(), mechanism.weights.tolist(), strict=True)
        rows = [(exact(t) / sigma, exact(w)) for t, w in rows if w > 0.0]
        total = sum((w for _, w in rows), exact(0))
        self.rows = [(t, w / total) for t, w in rows if t > 0]
        self.rest = sum((w / total for t, w in rows if t == 0), exact(0))
        self.typical = float(sum((w * (t + t * t / 2) for t, w in self.rows), exact(0)))

    def ratio(self, z):
        return self.rest + sum((w * (t * z - t * t / 2).exp() for t, w in self.rows), exact(0))

    def reach(self):
        loss = lambda z: float(self.ratio(exact(z)).log())
        return loss(-10.0), loss(10.0 + max(float(t) for t, _ in self.rows))

    def least(self):
        return float(self.rest.log()) if self.rest > 0 else None

    def output(self, loss):
        """The output, to about 300 bits; None where even −∞ has more."""
        want = loss.exp()
        if want - self.rest <= 0:
            return None
        some = want - self.rest
        bounds = [((some / w).log() + t * t / 2) / t for t, w in self.rows]
        number = len(self.rows)
        least = [((some / w / number).log() + t * t / 2) / t for t, w in self.rows]
        high = functools.reduce(lambda a, b: a.min(b), bounds).upper()
        low = functools.reduce(lambda a, b: a.min(b), least).lower()
        z, slope = high, lambda z: sum((w * t * (t * z - t * t / 2).exp() for t, w in self.rows))
        for _ in range(60):  # (a convex function, from the right of its root)
            moved = (z - (self.ratio(z) - want) / slope(z)).mid()
            done, z = not abs(moved - z) > abs(z) * exact(2) ** -500, moved
            if done:
                break
        room = (abs(z) + 1) * exact(2) ** -300
        found = (z - room).union(z + room)
        if self.ratio(found.lower()) < want < self.ratio(found.upper()):
            return found
        return low.union(high)

    def above(self, loss):
        z = self.output(loss)
        if z is None:
            return Masses(exact(1), exact(1))
        p = upper_tail(z)
        moved = sum((w * upper_tail(z - t) for t, w in self.rows), exact(0))
        return Masses(self.rest * p + moved, p)


class Range:
    """Density e^{−ℓ/2}/(4·sinh(ε/2)) under P on [−ε, ε]."""

    minus = plus = 0
    typical = None

    def __init__(self, epsilon):
        self.end = exact(epsilon)

    def reach(self):
        return -float(self.end), float(self.end)

    def least(self):
        return None

    def above(self, loss):
        at = loss.max(-self.end).min(self.end)
        whole = 2 * (self.end / 2).sinh()
        return Masses(
            ((self.end / 2).exp() - (at / 2).exp()) / whole,
            ((-at / 2).exp() - (-self.end / 2).exp()) / whole,
        )


class Lines:
    """Log densities that are straight between points, over their integrals; or as they are, with
    what they lack at the infinities."""

    typical = None

    def __init__(self, x, log_p, log_q, *, normalized=True):
        rows = [[exact(v) for v in np.asarray(a, float).tolist()] for a in (x, log_p, log_q)]
        x, p, q = rows
        for a in (p, q):
            whole = self.whole(x, a)
            if normalized:
                a[:] = [v - whole.log() for v in a]
        self.plus, self.minus = (
            (0, 0) if normalized else ((1 - self.whole(x, a)).nonnegative_part() for a in (q, p))
        )
        self.pieces = list(zip(x, p, q, x[1:], p[1:], q[1:], strict=False))

    def whole(self, x, a):
        ends = zip(x, x[1:], a, a[1:], strict=False)
        return sum(
            (self.integral(c, d, r - l, exact(0), exact(1)) for l, r, c, d in ends), exact(0)
        )

    def reach(self):
        losses = [float(q - p) for _, p, q, *_ in self.pieces]
        return min(*losses, -1e-3), max(*losses, 1e-3)

    def least(self):
        return None

    @staticmethod
    def integral(a, b, width, low, high):
        """∫ of e^{line from a to b} over a part of the width."""
        first, change = a + (b - a) * low, (b - a) * (high - low)
        rise = change.expm1() / change if not change.contains(0) else exact(1).union(change.exp())
        if change == 0:
            rise = exact(1)
        return width * (high - low) * first.exp() * rise

    def above(self, loss):
        total = [exact(0), exact(0)]
        for x0, p0, q0, x1, p1, q1 in self.pieces:
            l0, l1, zero, one = q0 - p0, q1 - p1, exact(0), exact(1)
            if l1 == l0:
                cut = (zero, one) if l0 > loss else (zero, zero)
            else:
                t = ((loss - l0) / (l1 - l0)).max(zero).min(one)
                cut = (t, one) if l1 > l0 else (zero, t)
            for i, (a, b) in enumerate(((q0, q1), (p0, p1))):
                total[i] += self.integral(a, b, x1 - x0, *cut)
        return Masses(*total)


class Told:
    """One of several laws, with given probabilities, and it is told which."""

    typical = None

    def __init__(self, *parts):
        self.parts = [(share, law) for share, law in parts if share > 0]
        self.minus = self.plus = 0

    def reach(self):
        some = [law.reach() for _, law in self.parts]
        return min(low for low, _ in some), max(high for _, high in some)

    def least(self):
        return self.parts[0][1].least()

    def above(self, loss):
        found = [(share, law.above(loss)) for share, law in self.parts]
        return Masses(*(sum((s * masses[i] for s, masses in found), exact(0)) for i in (0, 1)))


class Listed:
    """Atoms (loss, Q-mass, P-mass) in balls."""

    typical = None

    def __init__(self, rows, minus=0, plus=0):
        self.rows, self.minus, self.plus = list(rows), minus, plus

    def reach(self):
        losses = [float(loss) for loss, _, _ in self.rows]
        return min(*losses, -1e-6), max(*losses, 1e-6)

    def least(self):
        return None

    def above(self, loss):
        some = [(q, p) for at, q, p in self.rows if at > loss]
        return Masses(*(sum((row[i] for row in some), exact(0)) for i in (0, 1)))


def gaussian(sigma, prob):
    typical = prob * (1.0 / sigma + 0.5 / sigma**2)
    return OfUse(uses.SampledGaussian(exact(sigma) ** 2, exact(prob)), typical)


def of_atoms(pair):
    """The atoms of a pair, as they are stored: losses and P-masses (or both masses)."""
    some = np.isfinite(pair.log_p)
    p, loss = (np.asarray(a)[some].tolist() for a in (pair.log_p, pair.loss))
    q = np.asarray(pair.log_q)[some].tolist() if hasattr(pair, "log_q") else None
    rest = np.asarray(getattr(pair, "loss_rest", np.zeros(len(some))))[some].tolist()
    rows = [
        (exact(l) + exact(r), exact(m if q is None else q[i]).exp(), exact(m).exp())
        for i, (l, r, m) in enumerate(zip(loss, rest, p, strict=True))
    ]
    if q is None:
        rows = [(l, p * l.exp(), p) for l, _, p in rows]
    at_infinity = (exact(float(getattr(pair, name, -np.inf))).exp() for name in _INFINITE)
    return Listed(rows, *at_infinity)


_INFINITE = ("log_p_minus", "log_q_plus")


def fractions(p, q):
    """Outputs of two tables of doubles, over their exact sums."""
    rows = [[_fraction(v) for v in np.asarray(a, float).tolist()] for a in (p, q)]
    p, q = ([v / sum(a, fmpq(0)) for v in a] for a in rows)
    both = [(arb(b) / arb(a), arb(b), arb(a)) for a, b in zip(p, q, strict=True) if a and b]
    only = lambda these, others: sum(
        (a for a, b in zip(these, others, strict=True) if not b), fmpq(0)
    )
    return Listed(((r.log(), b, a) for r, b, a in both), arb(only(p, q)), arb(only(q, p)))


def _fraction(value):
    return fmpq(*float(value).as_integer_ratio())


def capped(pair, q, batch, size):
    """Two sampled Gaussians, one of which is chosen by Pr[Bin(n − 1, q) ≥ B]; of the rate that was
    rounded up."""
    rate, others = _fraction(q), size - 1
    terms = [
        fmpq(math.comb(others, k)) * rate**k * (1 - rate) ** (others - k) for k in range(batch)
    ]
    rest = arb(sum(terms, fmpq(0)))
    first = gaussian(float(pair.noise_multiplier), float(pair.sampling_prob))
    second = gaussian(0.5 * float(pair.noise_multiplier), float(pair.replaced))
    return Told((rest, first), (1 - rest, second))


# --- settings -------------------------------------------------------------------------------------


def scale(rng):
    return 10.0 ** (rng.uniform(-6.0, 6.0) if rng.integers(2) else rng.uniform(-2.0, 1.0))


def prob(rng):
    choices = 1.0, 10.0 ** rng.uniform(-15.0, 0.0), 1.0 - 10.0 ** rng.uniform(-15.0, -1.0)
    return choices[rng.integers(3)]


def _epsilon(rng):
    return 10.0 ** rng.uniform(-9.0, 2.5)


def _pure(epsilon, delta=0.0, others=0):
    return OfUse(uses.pure(exact(epsilon), exact(delta), others))


def _plain(name):
    def draw(rng):
        s = scale(rng)
        return getattr(jaxgdp, name)(s), gaussian(s, 1.0)

    return draw


def _subsampled_gaussian(rng):
    s, p = scale(rng), prob(rng)
    return jaxgdp.SubsampledGaussian(s, p), gaussian(s, p)


def _last_iterate(rng):
    s, p = scale(rng), prob(rng)
    ((pair, _),) = jaxgdp.LastIterate(s, p, 20).gathered(1.0)
    return pair, gaussian(s, p)


def _shuffled(rng):
    """The Gaussian pair from above, or the slices of the attack."""
    s, batches = 10.0 ** rng.uniform(-1.0, 2.0), int(10.0 ** rng.uniform(0.31, 4.0))
    ((pair, _),) = jaxgdp.Shuffled(s, batches).canonical().gathered(1.0)
    if rng.integers(2):
        return pair, gaussian(float(pair.noise_multiplier), 1.0)
    return pair.lower_bound_member(), of_atoms(pair)


def _gaussian_mixture(rng):
    k = int(rng.integers(1, 6))
    shifts = rng.permutation(np.append(0.0, 10.0 ** rng.uniform(-1.5, 1.0, k)))
    weights = 10.0 ** rng.uniform(-15.0, 0.0, k + 1)
    weights[shifts == 0.0] *= rng.choice([0.0, 1e-9, 1.0, 1e6])
    sigma = 10.0 ** (rng.uniform(-6.0, 6.0) if rng.integers(2) else rng.uniform(-0.5, 0.5))
    mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights / weights.sum())
    return mechanism, Shifts(mechanism)


def _laplace(rng):
    s = scale(rng)
    return jaxgdp.Laplace(s), OfUse(uses.SampledLaplace(1 / exact(s), exact(1)))


def _sparse_vector(rng):
    """The pair that dominates, which is that of Laplace noise, as it is stored."""
    pair = jaxgdp.SparseVector(scale(rng), scale(rng), 9).gathered(1.0)[0][0]
    return pair, OfUse(uses.SampledLaplace(1 / exact(float(pair.scale)), exact(1)))


def _subsampled_laplace(rng):
    s, p = scale(rng), prob(rng)
    law = OfUse(uses.SampledLaplace(1 / exact(s), exact(p)))
    return jaxgdp.SubsampledLaplace(s, p), law


def _discrete_gaussian(rng):
    s, k = 10.0 ** rng.uniform(-0.5, 1.4), int(rng.integers(1, 17))
    return jaxgdp.DiscreteGaussian(s, k), OfUse(uses.DiscreteNormal(exact(s), k))


def _discrete_laplace(rng):
    s = 1.0 / _epsilon(rng)
    return jaxgdp.DiscreteLaplace(s), OfUse(uses.pure(1 / exact(s), exact(0)))


def _pure_dp(rng):
    e = _epsilon(rng)
    return jaxgdp.PureDP(e), _pure(e)


def _randomized_response(rng):
    e, k = _epsilon(rng), int(10.0 ** rng.uniform(0.31, 9.0))
    return jaxgdp.RandomizedResponse(e, k), _pure(e, others=k - 2)


def _approximate_dp(rng):
    e, d = _epsilon(rng), 10.0 ** rng.uniform(-300.0, -0.01)
    return jaxgdp.ApproximateDP(e, d), _pure(e, d)


def _partition_selection(rng):
    e, d = min(max(_epsilon(rng), 1e-6), 50.0), 10.0 ** rng.uniform(-12.0, -2.0)
    return jaxgdp.PartitionSelection(e, d).gathered(1.0)[0][0], _pure(e, d)


def _exponential(rng):
    e = _epsilon(rng)
    return jaxgdp.ExponentialMechanism(e), Range(e)


def _from_densities(rng):
    x = np.sort(rng.uniform(-3.0, 3.0, int(rng.integers(2, 9))))
    size = float(rng.choice([1e-6, 0.1, 2.0, 9.0, 300.0]))
    log_p, log_q = rng.normal(0.0, size, (2, len(x)))
    found = jaxgdp.FromDensities.normalized(x, log_p, log_q)
    return found, Lines(found.outputs, found.log_p, found.log_q)


def _truncated_poisson(rng):
    sigma, size = 10.0 ** rng.uniform(-2.0, 2.0), int(rng.integers(2, 300))
    q = float(rng.choice([10.0 ** rng.uniform(-6.0, 0.0), rng.uniform(), 1.0 - 1e-9]))
    batch = int(rng.integers(1, size + 1))
    pair = jaxgdp.TruncatedPoisson(sigma, q, batch, size).canonical()
    return pair, capped(pair, q, batch, size)


def _from_pmfs(rng):
    rows = 10.0 ** rng.uniform(-float(rng.choice([0.1, 3.0, 290.0])), 0.0, (2, rng.integers(2, 40)))
    if rng.integers(2):
        rows[1, 1:] = rows[0, 1:] * (1.0 + 1e-9 * rng.normal(size=rows.shape[1] - 1))
    if rng.integers(2) and rows.shape[1] > 3:
        rows[0, 1], rows[1, 2] = 0.0, 0.0
    p, q = rows / rows.sum(axis=1, keepdims=True)
    return jaxgdp.FromPMFs(p, q), fractions(p, q)


def _stored(pair_of):
    """Tables: their cells are checked against the atoms as they are stored."""

    def draw(rng):
        pair = pair_of(rng)
        return pair, of_atoms(pair)

    return draw


def _example(name):
    def pair(rng):
        (found, _), *_ = next(iter(known_mechanisms()[name].examples.values()))().gathered(1.0)
        return found.canonical()

    return pair


def _balls_in_bins(rng):
    sigma = 10.0 ** rng.uniform(-0.3, 1.0)
    run = jaxgdp.MatrixMechanism([1.0, 0.5], sigma, "BallsInBins(cycle=3)", 3)
    return run.gathered(1.0)[0][0]


def _allocation(rng):
    return jaxgdp.RandomAllocation(10.0 ** rng.uniform(-0.3, 1.0), 9).gathered(1.0)[0][0]


def _selected(rng):
    run = jaxgdp.RandomizedResponse(10.0 ** rng.uniform(-1.0, 0.5))
    return jaxgdp.Selected(run, jaxgdp.runs.Geometric(3.0)).canonical()


def _profile(rng):
    e = np.cumsum(10.0 ** rng.uniform(-6.0, 0.5, 8)) - rng.choice([0.0, 1e-7])
    d = np.sort(10.0 ** rng.uniform(-200.0, -1e-3, 8))[::-1]
    return jaxgdp.FromProfile(np.maximum(e, 0.0), d).canonical()


def _fixed_size(rng):
    size = int(rng.integers(2, 10_000))
    sigma = 10.0 ** rng.uniform(-1.0, 2.0)
    return jaxgdp.FixedSize(sigma, int(rng.integers(1, size + 1)), size).canonical()


DRAWN = {
    "ApproximateDP": _approximate_dp,
    "Deterministic": _plain("Deterministic"),
    "DiscreteGaussian": _discrete_gaussian,
    "DiscreteLaplace": _discrete_laplace,
    "ExponentialMechanism": _exponential,
    "FixedSize": _stored(_fixed_size),
    "FromDensities": _from_densities,
    "FromPMFs": _from_pmfs,
    "FromProfile": _stored(_profile),
    "Gaussian": _plain("Gaussian"),
    "GaussianMixture": _gaussian_mixture,
    "Laplace": _laplace,
    "LastIterate": _last_iterate,
    "MatrixMechanism": _stored(_balls_in_bins),
    "PartitionSelection": _partition_selection,
    "PureDP": _pure_dp,
    "RandomAllocation": _stored(_allocation),
    "RandomizedResponse": _randomized_response,
    "Selected": _stored(_selected),
    "Shuffled": _shuffled,
    "SparseVector": _sparse_vector,
    "SubsampledGaussian": _subsampled_gaussian,
    "SubsampledLaplace": _subsampled_laplace,
    "TruncatedPoisson": _truncated_poisson,
}
DRAWN.update({name: _stored(_example(name)) for name in known_mechanisms() if name not in DRAWN})
