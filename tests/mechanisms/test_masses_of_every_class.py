"""Masses of cells of every class against 40 digits, at random and at extreme settings: every tail
within the rounding it states, and no Q-mass that goes to +∞ too small.

An edge may lie a few units off its loss: of a tail both values are computed, at either end of that
range. The laws are written down here from their definitions.
"""

from __future__ import annotations

import bisect
import itertools

import mpmath
import numpy as np
import pytest
from by_day import some
from mpmath import mpf

import jaxgdp
from jaxgdp.accounting.certify.discretisation import dominating_weights
from jaxgdp.mechanisms.base import known_mechanisms
from jaxgdp.numerics.errors import UNIT

_PLACE = 64  # units of an edge
_DEEP = mpf(10) ** -290
_INF = mpmath.inf


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


class Noise:
    """P = N(0) against (1 − p)·N(0) + p·N(1) for noise with a likelihood ratio that rises."""

    def __init__(self, scale, prob):
        self.scale, self.prob = mpf(float(scale)), mpf(float(prob))
        self.lowest = abs(mpmath.log1p(-self.prob)) if self.prob < 1 else mpf(0)

    def edge(self, loss):
        """The output with that loss."""
        if self.prob == 1:
            return self.output(loss)
        ratio = (mpmath.exp(loss) - 1 + self.prob) / self.prob
        return self.output(mpmath.log(ratio)) if ratio > 0 else -_INF

    def tails(self, loss, above):
        at = self.edge(loss)
        x, y = (self.tail(at - mean, above) for mean in (0, 1))
        return x, (1 - self.prob) * x + self.prob * y


class Gaussian(Noise):
    def output(self, ratio):
        return self.scale**2 * ratio + mpf(1) / 2

    def tail(self, at, above):
        if abs(at) == _INF:
            return mpf((at < 0) == above)
        return mpmath.erfc((at if above else -at) / (self.scale * mpmath.sqrt(2))) / 2


class Laplace(Noise):
    def output(self, ratio):
        if abs(ratio) * self.scale >= 1:
            # (an atom at either end belongs below a point that is there)
            return (
                -_INF
                if ratio * self.scale < -1 or ratio < 0 > -1 - ratio * self.scale
                else (_INF if ratio > 0 else mpf(0))
            )
        return (self.scale * ratio + 1) / 2

    def tail(self, at, above):
        at = (at if above else -at) / self.scale
        if abs(at) == _INF:
            return mpf(at < 0)
        return mpmath.exp(-at) / 2 if at > 0 else 1 - mpmath.exp(at) / 2


class Shifts:
    """P = N(0, 1) against a mixture of N(τ_i, 1): the edge by bisection."""

    def __init__(self, tau, weights):
        total = mpmath.fsum(mpf(float(w)) for w in weights)
        self.rows = [
            (mpf(float(t)), mpf(float(w)) / total) for t, w in zip(tau, weights, strict=True)
        ]
        self.rows = [(t, w) for t, w in self.rows if w > 0]
        rest = mpmath.fsum(w for t, w in self.rows if t == 0)
        self.rest = mpmath.log(rest) if rest > 0 else -_INF
        self.lowest = abs(self.rest) if rest > 0 else mpf(0)

    def edge(self, loss):
        """The output with that loss."""
        if loss <= self.rest:
            return -_INF
        moved = [(t, w) for t, w in self.rows if t > 0]
        want = mpmath.exp(loss) - (mpmath.exp(self.rest) if self.rest > -_INF else 0)
        roots = [(mpmath.log(want / w) + t * t / 2) / t for t, w in moved]
        high = min(roots)
        low = min((mpmath.log(want / w / len(moved)) + t * t / 2) / t for t, w in moved)
        for _ in range(160):
            middle = (low + high) / 2
            found = mpmath.fsum(w * mpmath.exp(t * middle - t * t / 2) for t, w in moved)
            low, high = (low, middle) if found > want else (middle, high)
        return (low + high) / 2

    def tails(self, loss, above):
        at = self.edge(loss)
        if at == -_INF:
            return (mpf(above), mpf(above))
        side = lambda t: mpmath.erfc((at - t if above else t - at) / mpmath.sqrt(2)) / 2
        return side(mpf(0)), mpmath.fsum(w * side(t) for t, w in self.rows)


class Range:
    """Density e^{−ℓ/2}/(4·sinh(ε/2)) on [−ε, ε]."""

    lowest = mpf(0)

    def __init__(self, epsilon):
        self.epsilon = mpf(float(epsilon))

    def tails(self, loss, above):
        at, end = max(min(loss, self.epsilon), -self.epsilon), self.epsilon
        low, high = (at, end) if above else (-end, at)
        whole = 2 * mpmath.sinh(end / 2)
        return (
            -mpmath.exp(-low / 2) * mpmath.expm1((low - high) / 2) / whole,
            -mpmath.exp(high / 2) * mpmath.expm1((low - high) / 2) / whole,
        )


class Atoms:
    """Losses and masses of P and of Q."""

    lowest = mpf(0)

    def __init__(self, rows):
        rows = sorted(((mpf(loss), p, q) for loss, p, q in rows), key=lambda row: row[0])
        self.losses = [loss for loss, _, _ in rows]
        masses = [(p, q) for _, p, q in rows]
        # what lies before each row, and from each row on
        self.before, self.rest = self.sums(masses), self.sums(masses[::-1])[::-1]

    @staticmethod
    def sums(masses):
        add = lambda sums, row: (sums[0] + row[0], sums[1] + row[1])
        return list(itertools.accumulate(masses, add, initial=(mpf(0), mpf(0))))

    def tails(self, loss, above):
        return (self.rest if above else self.before)[bisect.bisect_right(self.losses, loss)]


class Lines:
    """Log densities that are straight between grid points."""

    lowest = mpf(0)

    def __init__(self, x, log_p, log_q):
        x, p, q = ([mpf(v) for v in np.asarray(a).tolist()] for a in (x, log_p, log_q))
        for a in (p, q):
            ends = zip(a, a[1:], x, x[1:], strict=False)
            parts = [self.integral(*two, b - c, (0, 1)) for *two, c, b in ends]
            a[:] = [v - mpmath.log(mpmath.fsum(parts)) for v in a]
        self.pieces = list(zip(x, p, q, x[1:], p[1:], q[1:], strict=False))

    def each(self, loss, above):
        for x0, p0, q0, x1, p1, q1 in self.pieces:
            l0, l1 = q0 - p0, q1 - p1
            if l0 == l1:
                cut = (mpf(0), mpf(1)) if (l0 > loss) == above else (mpf(0), mpf(0))
            else:
                t = min(max((loss - l0) / (l1 - l0), mpf(0)), mpf(1))
                cut = (t, mpf(1)) if (l1 > l0) == above else (mpf(0), t)
            yield [self.integral(a, b, x1 - x0, cut) for a, b in ((p0, p1), (q0, q1))]

    @staticmethod
    def integral(a, b, width, cut):
        first, last = (a + (b - a) * t for t in cut)
        mean = mpf(1) if first == last else mpmath.expm1(last - first) / (last - first)
        return width * (cut[1] - cut[0]) * mpmath.exp(first) * mean

    def tails(self, loss, above):
        return tuple(mpmath.fsum(part) for part in zip(*self.each(loss, above), strict=True))


class Mixture:
    """Pairs one of which is chosen with the given probabilities, and told."""

    def __init__(self, *parts):
        self.parts, self.lowest = parts, max(pair.lowest for _, pair in parts)

    def tails(self, loss, above):
        found = [(share, pair.tails(loss, above)) for share, pair in self.parts]
        return tuple(mpmath.fsum(share * tail[i] for share, tail in found) for i in (0, 1))


def _scale(rng):
    return 10.0 ** (rng.uniform(-6.0, 6.0) if rng.integers(2) else rng.uniform(-2.0, 1.0))


def _prob(rng):
    choices = 1.0, 10.0 ** rng.uniform(-15.0, 0.0), 1.0 - 10.0 ** rng.uniform(-15.0, -1.0)
    return choices[rng.integers(3)]


def _two(epsilon, others=0, delta=0.0):
    """Randomized response, but for probability δ."""
    e, rest = mpf(float(epsilon)), 1 - mpf(float(delta))
    whole = (mpmath.exp(e) + 1 + others) / rest
    rows = (-e, mpmath.exp(e), 1), (mpf(0), mpf(others), mpf(others)), (e, 1, mpmath.exp(e))
    return Atoms([(loss, p / whole, q / whole) for loss, p, q in rows])


def _discrete(sigma, s):
    k = range(int(-45 * sigma) - 2, int(45 * sigma) + s + 3)
    two = 2 * mpf(float(sigma)) ** 2
    p, q = ([mpmath.exp(-mpf((i - mean) ** 2) / two) for i in k] for mean in (0, s))
    whole = mpmath.fsum(p), mpmath.fsum(q)
    losses = ((mpf(s) * i - mpf(s * s) / 2) * 2 / two for i in k)
    return Atoms([(l, a / whole[0], b / whole[1]) for l, a, b in zip(losses, p, q, strict=True)])


def _table(pair):
    some = np.isfinite(pair.log_p)
    p, loss = ([mpf(v) for v in a[some].tolist()] for a in (pair.log_p, pair.loss))
    return Atoms([(l, mpmath.exp(m), mpmath.exp(m + l)) for m, l in zip(p, loss, strict=True)])


def _capped(pair):
    """The two Gaussian pairs of a capped batch, of the rates as they were rounded."""
    first = Gaussian(pair.noise_multiplier, pair.sampling_prob)
    second = Gaussian(0.5 * pair.noise_multiplier, pair.replaced)
    return Mixture((mpf(float(pair.rest)), first), (mpf(float(pair.cut)), second))


def _some_shifts(rng):
    """Shifts of any sizes and weights; most of the weight on 0, or none."""
    k = int(rng.integers(1, 6))
    shifts = rng.permutation(np.append(0.0, 10.0 ** rng.uniform(-1.5, 1.0, k)))
    weights = 10.0 ** rng.uniform(-12.0, 0.0, k + 1)
    weights[shifts == 0.0] *= rng.choice([0.0, 1e-9, 1.0, 1e6])
    weights = weights / weights.sum()
    sigma = 10.0 ** (rng.uniform(-4.0, 4.0) if rng.integers(2) else rng.uniform(-0.5, 0.5))
    mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
    return mechanism, Shifts(mechanism.shifts / mechanism.noise_multiplier, mechanism.weights)


def _shifted_laplace(rng):
    x = np.sort(rng.uniform(-3.0, 3.0, 7))
    log_p, log_q = rng.normal(0.0, float(rng.choice([0.1, 2.0, 9.0])), (2, 7))
    return x, log_p, log_q


def _drawn(name, rng):
    """A mechanism in the form that is composed, and its law."""
    s, p, e = _scale(rng), _prob(rng), 10.0 ** rng.uniform(-9.0, 2.5)
    if name in ("Gaussian", "Deterministic"):
        return getattr(jaxgdp, name)(s), Gaussian(s, 1.0)
    if name == "SubsampledGaussian":
        return jaxgdp.SubsampledGaussian(s, p), Gaussian(s, p)
    if name == "GaussianMixture":
        return _some_shifts(rng)
    if name == "Laplace":
        return jaxgdp.Laplace(s), Laplace(s, 1.0)
    if name == "SubsampledLaplace":
        return jaxgdp.SubsampledLaplace(s, p), Laplace(s, p)
    if name == "DiscreteLaplace":
        return jaxgdp.DiscreteLaplace(1.0 / e), _two(1.0 / (1.0 / e))
    if name == "PureDP":
        return jaxgdp.PureDP(e), _two(e)
    if name == "RandomizedResponse":
        k = int(rng.integers(2, 1000))
        return jaxgdp.RandomizedResponse(e, k), _two(e, k - 2)
    if name == "ApproximateDP":
        delta = 10.0 ** rng.uniform(-300.0, -0.01)
        return jaxgdp.ApproximateDP(e, delta), _two(e, delta=delta)
    if name == "ExponentialMechanism":
        return jaxgdp.ExponentialMechanism(e), Range(e)
    if name == "DiscreteGaussian":
        sigma, moved = 10.0 ** rng.uniform(-0.5, 1.3), int(rng.integers(1, 5))
        return jaxgdp.DiscreteGaussian(sigma, moved), _discrete(sigma, moved)
    if name == "FromDensities":
        found = _shifted_laplace(rng)
        return jaxgdp.FromDensities.normalized(*found), Lines(*found)
    if name == "TruncatedPoisson":
        sigma, rate = 10.0 ** rng.uniform(-2.0, 1.0), float(rng.choice([0.01, 0.1, 0.5]))
        pair = jaxgdp.TruncatedPoisson(sigma, rate, 20, 150).canonical()
        return pair, _capped(pair)
    if name in ("FromPMFs", "FromProfile", "FixedSize"):
        pair = next(iter(known_mechanisms()[name].examples.values()))().canonical()
        return pair, _table(pair)
    if name == "LastIterate":
        ((pair, _),) = jaxgdp.LastIterate(s, p, 20).gathered(1.0)
        return pair, Gaussian(s, p)
    if name == "MatrixMechanism":
        sigma = 10.0 ** rng.uniform(-0.3, 1.0)
        run = jaxgdp.MatrixMechanism([1.0, 0.5], sigma, "BallsInBins(cycle=2)", 2)
        ((pair, _),) = run.gathered(1.0)
        return pair, _table(pair)
    if name == "RandomAllocation":
        ((pair, _),) = jaxgdp.RandomAllocation(10.0 ** rng.uniform(-0.3, 1.0), 9).gathered(1.0)
        return pair, _table(pair)
    if name in (
        *("ThresholdedGaussian", "ThresholdedLaplace", "DrawnBatchSize", "ShuffledReports"),
        "NoisyMaximum",
    ):
        (pair, _), *_ = next(iter(known_mechanisms()[name].examples.values()))().gathered(1.0)
        return pair, _table(pair)
    if name == "PartitionSelection":
        e = max(e, 1e-6)
        return jaxgdp.PartitionSelection(e, 1e-3).gathered(1.0)[0][0], _two(e, delta=1e-3)
    if name == "SparseVector":
        pair = jaxgdp.SparseVector(2.0 / e, 4.0 / e, 9).gathered(1.0)[0][0]
        return pair, Laplace(float(pair.scale), 1.0)
    if name == "Selected":
        run, law = jaxgdp.RandomizedResponse(0.7), jaxgdp.runs.Geometric(3.0)
        pair = jaxgdp.Selected(run, law).canonical()
        return pair, _table(pair)
    member = jaxgdp.Shuffled(10.0 ** rng.uniform(-0.5, 1.0), 50).canonical().lower_bound_member()
    return member, _table(member)


_FEW = {
    "RandomAllocation": 1,
    "MatrixMechanism": 1,
    "GaussianMixture": 2,
    "FixedSize": 1,
    "Shuffled": 1,
    "Selected": 1,
    "DiscreteGaussian": 3,
    "DrawnBatchSize": 2,
    "ShuffledReports": 1,
    "ThresholdedGaussian": 4,
    "NoisyMaximum": 1,
}


def _lattice(law, rng, number=16):
    """Increasing points: evenly across all losses, next to the smallest one, or around 0."""
    losses = [
        next(mpf(2) ** k for k in range(60, -60, -1) if sum(law.tails(mpf(2) ** k, True)) > 1e-30)
        if sum(law.tails(mpf(2) ** -60, True)) > 1e-30
        else mpf(2) ** -60
    ]
    reach, lowest = 2.0 * float(losses[0]), float(law.lowest)
    kind = rng.integers(3)
    if kind == 0:
        return reach * np.linspace(-1.0, 1.05, number) * rng.uniform(0.3, 1.0) + 1e-3 * reach
    if kind == 1 and 0.0 < lowest < np.inf:
        away = lowest * np.append(0.0, 10.0 ** rng.uniform(-10.0, 0.0, number))
        return np.unique(np.append(away, -away[1:3]) - lowest)
    away = reach * 10.0 ** rng.uniform(-6.0, 0.1, number)
    return np.unique(np.concatenate([-away[: number // 2], [0.0], away]))


def _open(ell, end):
    """The index of the open cell, or None."""
    first = int(np.searchsorted(ell, end))
    return first + 1 if first < len(ell) - 1 else None


@pytest.mark.parametrize("name", some(2, sorted(known_mechanisms())))
def test_tails_are_as_exact_as_stated_and_no_lost_mass_is_too_small(name):
    rng = np.random.default_rng(sum(map(ord, name)))
    _check_masses(name, rng, (_drawn(name, rng) for _ in range(_FEW.get(name, 12))))


_LARGER = {  # class → a setting with a larger table than that of every day
    "DrawnBatchSize": lambda: jaxgdp.DrawnBatchSize(1.0, 0.1, 1000),
    "MatrixMechanism": lambda: jaxgdp.MatrixMechanism([1.0, 0.5], 2.0, "BallsInBins(cycle=3)", 3),
    "ThresholdedGaussian": lambda: jaxgdp.ThresholdedGaussian(2.0, 12.0, 3),
    "ShuffledReports": lambda: jaxgdp.ShuffledReports(4.0, 20_000, "16-ary"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(_LARGER))
def test_tails_of_larger_settings_are_as_exact_as_stated(name):
    (pair, _), *_ = _LARGER[name]().gathered(1.0)
    rng = np.random.default_rng(sum(map(ord, name)))
    _check_masses(name, rng, [(pair, _table(pair))] * 12)


def _check_masses(name, rng, drawn):
    for mechanism, law in drawn:
        mechanism = mechanism.canonical()
        ell = _lattice(law, rng)
        end = float(rng.choice(np.append(ell, [np.inf, 0.0])))
        if name == "DiscreteGaussian" and mechanism.sigma >= 10.0:
            end = np.inf  # (no cell is open there)
        with np.errstate(all="ignore"):
            cells = mechanism.cells(ell, end)
        _check_tails(cells, law, ell, end)
        _check_lost(cells, law, ell, end)
        _check_shares(cells, ell, end)


def _check_tails(cells, law, ell, end):
    infinite = [[mpmath.exp(mpf(float(m))) for m in (cells.log_p_minus, cells.log_q_plus)]]
    last = _open(ell, end) or len(ell)
    units = cells.roundoff + cells.jitter + float(cells.uncertain) / UNIT
    for law_index, logs in enumerate((cells.log_x, cells.log_y)):
        masses = [mpmath.exp(mpf(float(log))) for log in logs]
        rooms = [m * mpf(float(unit)) * UNIT for m, unit in zip(masses, units, strict=True)]
        for k in range(last):
            off = _PLACE * UNIT * max(abs(mpf(float(ell[k]))), law.lowest)
            for above in (False, True):
                some = slice(k + 1, None) if above else slice(0, k + 1)
                found, room = mpmath.fsum(masses[some]), mpmath.fsum(rooms[some])
                extra = infinite[0][law_index] if above == bool(law_index) else mpf(0)
                exact = [
                    law.tails(mpf(float(ell[k])) + o, above)[law_index] + extra for o in (-off, off)
                ]
                if max(*exact, found) > _DEEP:
                    assert min(exact) - room <= found <= max(exact) + room, (k, above, law_index)


def _check_lost(cells, law, ell, end):
    opened = _open(ell, end)
    if opened is None:
        assert cells.lost == 0.0
        return
    point = mpf(float(ell[opened - 1]))
    x, y = law.tails(point, True)
    exact = y - x * mpmath.exp(point)
    lost, error = mpf(float(cells.lost)), mpf(float(cells.lost_error))
    # (what is uncertain by a share of itself is so here)
    error += mpf(float(cells.uncertain)) * lost
    if exact > _DEEP:
        assert lost - error <= exact <= lost + error


def _check_shares(cells, ell, end):
    """Connecting the dots keeps the Q-mass of every cell."""
    opened = _open(ell, end)
    for k in range(1, opened or len(ell)):
        if cells.log_x[k] == -np.inf:
            continue
        ratio = mpmath.exp(mpf(float(cells.log_y[k])) - mpf(float(cells.log_x[k])))
        low, high = (mpmath.exp(mpf(float(point))) for point in ell[k - 1 : k + 1])
        up = mpf(float(cells.up[k - 1]))
        room = UNIT * mpf(float(2.0 * cells.roundoff[k] + 2.0 * cells.jitter[k] + 16.0))
        room += _PLACE * UNIT * mpf(float(max(abs(ell[k - 1]), abs(ell[k]))))
        assert 0 <= up <= 1
        assert (
            abs((1 - up) * low + up * high - ratio)
            <= room * high + 2 * mpf(float(cells.uncertain)) * ratio
        )


def test_mass_at_infinity_of_little_noise():
    """p·(1 − 2Φ(−1/(2σ))) at ε = 0, of logs of a thousand to 10¹³."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        sigma, prob = 10.0 ** rng.uniform(-6.0, -0.5), _prob(rng)
        step = jaxgdp.SubsampledGaussian(sigma, prob)
        ell = np.array([-1e-3, 0.0, 1e-3, 2e-3])
        one = np.ones(4)
        with np.errstate(all="ignore"):
            cells = step.cells(ell, 0.0)
            _, found = dominating_weights(cells, ell, one, np.float64(0.0), np.float64(0.0))
        exact = mpf(prob) * (1 - mpmath.erfc(1 / (2 * mpf(sigma) * mpmath.sqrt(2))))
        assert exact <= mpf(float(found)) <= exact * (1 + mpf(10) ** -3)
    bracket = jaxgdp.measure(
        jaxgdp.SubsampledGaussian(0.0030622764907209184, 0.0907530456191219),
        "delta",
        epsilon=0.0,
        adjacency="remove",
    ).delta
    assert bracket.lower <= 0.0907530456191219 <= bracket.upper
