"""One use of a pair known from tables whose masses are off: what is read off them holds the exact
numbers.
"""

import math

import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.certify import finite_laws
from jaxgdp.mechanisms.bracketed_pair import BracketedPair
from jaxgdp.numerics.errors import UNIT
from jaxgdp.pairs.known_curves import FiniteCurve
from jaxgdp.pairs.table import Table

RATES = np.array([1e-6, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.99])
EPSILONS = np.array([0.0, 1e-4, 1e-3, 0.01, 0.1, 1.0])


def _pair(rng, spread):
    """A law p of a few outcomes and their likelihood ratios u, of mean one."""
    p = rng.dirichlet(np.full(8, 0.7))
    u = np.exp(spread * rng.normal(size=8))
    return p, u / (p @ u)


def _exact(p, u, reverse):
    """FPRs, TPRs of all tests of one order, and δ at EPSILONS."""
    q, p, u = (p, p * u, 1.0 / u) if reverse else (p * u, p, u)
    order = np.argsort(-u)
    delta = np.maximum(q[:, None] - np.exp(EPSILONS) * p[:, None], 0.0).sum(axis=0)
    points = [np.append(0.0, np.cumsum(a[order])) for a in (p, q)]
    return np.interp(RATES, *points), delta


def _off(rng, p, error):
    """Masses of which each is off, at random or all in one way."""
    return p * (
        1.0
        + error
        * (
            rng.uniform(-1.0, 1.0, p.shape)
            if rng.uniform() < 0.5
            else rng.choice([-1.0, 1.0], p.shape)
        )
    )


def _table(p, u, error, apart):
    order = np.argsort(u)
    p, u = p[order], u[order]
    return Table(np.log(u), p, p * u, 0.0, 0.0, error, apart)


def _asked(above, below):
    row = np.empty(1, object), np.empty(1, object)
    row[0][0], row[1][0] = above, below
    mechanism = BracketedPair.build(*row, np.array([1e4]))
    for adjacency, reverse in (("remove", False), ("add", True)):
        # (values of one batch, as the pair has a shape of its own)
        curve = jaxgdp.tradeoff(mechanism, adjacency=adjacency)
        yield reverse, curve.tpr(RATES), curve.delta(EPSILONS), curve.advantage()


def _holds(bracket, exact, room=1e-12):
    return np.all(bracket.lower <= exact * (1.0 + room)) and np.all(
        bracket.upper >= exact * (1.0 - room)
    )


@pytest.mark.parametrize("spread", [2.0, 0.1, 1e-3, 1e-5])
def test_masses_that_are_off_and_losses_that_are_known(spread):
    rng = np.random.default_rng(3)
    for error in (1e-2, 1e-5, 1e-8):
        for _ in range(4):
            p, u = _pair(rng, spread)
            above = _table(_off(rng, p, error), u, 1.02 * error, 0.0)
            below = _table(p, u, 1e-16, 1e-16)
            for reverse, tpr, delta, advantage in _asked(above, below):
                rates, profile = _exact(p, u, reverse)
                assert (
                    _holds(tpr, rates) and _holds(delta, profile) and _holds(advantage, profile[0])
                )
                # a small δ is uncertain by a share of itself
                assert advantage.upper <= profile[0] * (1.0 + 5.0 * error + 1e-9) + 1e-12


@pytest.mark.parametrize("spread", [2.0, 0.1, 1e-3, 1e-5])
def test_masses_and_their_ratio_off(spread):
    rng = np.random.default_rng(4)
    for error, apart in ((1e-2, 1e-9), (1e-5, 1e-6), (1e-8, 1e-13)):
        for _ in range(4):
            p, u = _pair(rng, spread)
            above = _table(p, u, 1e-16, 0.0)
            below = _table(
                _off(rng, p, error), _off(rng, u, apart), 1.02 * (error + apart), 1.02 * apart
            )
            for reverse, tpr, delta, advantage in _asked(above, below):
                rates, profile = _exact(p, u, reverse)
                assert (
                    _holds(tpr, rates) and _holds(delta, profile) and _holds(advantage, profile[0])
                )
                assert (
                    advantage.lower >= profile[0] * (1.0 - 5.0 * error - 1e-9) - 3.0 * apart - 1e-12
                )


@pytest.mark.parametrize("share", [0.2, 0.49, 0.55])
@pytest.mark.parametrize("spread", [6.0, 1e-6])
def test_many_masses_that_vanish_beside_a_faint_one_add_up(share, spread):
    """At e^−500 a log is rounded to 5.7e-14: masses of less than half of that, one after the other,
    are lost from the log of a sum, and all of them are 1e-11 of it."""
    top, number = math.exp(-500.0), 900
    p = np.append(top * np.exp(-spread), np.full(number, top * share * np.spacing(500.0)))
    q = p * np.exp(np.append(spread, np.linspace(spread / 2.0, spread / 10.0, number)))
    known = FiniteCurve.of_atoms(
        np.log(np.append(q / p, (1.0 - q.sum()) / (1.0 - p.sum()))),
        np.log(np.append(p, 1.0 - p.sum())),
        np.log(np.append(q, 1.0 - q.sum())),
        mass_error=2e-15,
    )
    curve = finite_laws.finite_curve(known, (np.float64(np.inf), np.float64(0.0)))
    with mpmath.workdps(40):
        rate = lambda logs: np.array([mpmath.exp(mpmath.mpf(float(x))) for x in logs])
        sums = lambda logs: np.cumsum(rate(logs[::-1]))[::-1]
        fpr, tpr = sums(known.log_p), sums(known.log_q)
        start = int(np.searchsorted(known.loss, 0.0, "right"))
        above, last = curve.upper_plus, len(known.loss) - start
        assert last >= number
        assert np.all(rate(above.log_alpha[0, :last]) <= fpr[start:])
        assert np.all(rate(above.log_tpr[0, :last]) >= tpr[start:])
        used = np.flatnonzero(curve.lower_plus.used[0, : len(known.loss)])
        found = curve.lower_plus.log_alpha[0, used], curve.lower_plus.log_tpr[0, used]
        more, fpr, tpr = rate(found[0]) - fpr[used], fpr[used], tpr[used]
        assert np.all(more >= 0)
        # (a test that is mixed with one that always rejects)
        assert np.all(rate(found[1]) <= tpr + more * (1 - tpr) / (1 - fpr))


def test_sums_of_masses_hold_exact_ones():
    rng, units = np.random.default_rng(8), 8.0 * UNIT
    for number, spread in ((3000, 0.0), (3000, 5.0), (400, 200.0)):
        logs = -spread * rng.random(number) - np.log(number) - spread * rng.random()
        share = units * (np.abs(logs) + 4.0)
        off = finite_laws._Off(0.0, 0.0)
        found = finite_laws._Sums.of(logs, off, share, 0)
        with mpmath.workdps(40):
            exact = np.cumsum([mpmath.exp(mpmath.mpf(float(x))) for x in logs[::-1]])[::-1]
            assert np.all(np.abs(found.value - exact) <= found.off)
        # a sum is off by as much as its masses, however many there are
        mean = np.sum(np.exp(logs) * share) / found.value[0]
        assert found.off[0] <= (1.001 * mean + 5.0 * UNIT) * found.value[0]


def test_kept_curve_holds_delta_a_few_doubles_from_an_atom():
    """There an atom may lie on either side of ε, and next to what lies beyond it is not small."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(60):
        for tail in 10.0 ** np.linspace(-40.0, -14.0, 8):
            a = rng.uniform(0.1, 0.4)
            b = a * rng.uniform(1.2, 2.2)
            p, q = np.array([1.0 - a, a, 0.05 * tail]), np.array([1.0 - b, b, tail])
            curve = jaxgdp.tradeoff(jaxgdp.FromPMFs(p, q), adjacency="remove")
            exact = [[mpmath.mpf(float(x)) for x in law] for law in (p, q)]
            exact = [[x / mpmath.fsum(law) for x in law] for law in exact]
            atom = float(mpmath.log(exact[1][1] / exact[0][1]))
            epsilon = atom + np.arange(-4, 5) * np.spacing(atom)
            found = curve.delta(epsilon)
            for k, e in enumerate(epsilon):
                grown = mpmath.exp(mpmath.mpf(float(e)))
                delta = mpmath.fsum(max(y - grown * x, 0) for x, y in zip(*exact, strict=True))
                assert found.lower[k] <= delta <= found.upper[k], (tail, k)
