"""The regret of finite tables used several times, beside their exact law by enumeration."""

import jax
import numpy as np
import pytest
from by_day import first
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import norm

import jaxgdp
from jaxgdp.accounting.certify.curve import Curve
from jaxgdp.accounting.certify.vertices import Vertices
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities.regret import regret


def _exact_law(p, q, uses):
    """Logs of both masses of every number of times that each outcome may be seen."""

    def counts(left, kinds):
        if kinds == 1:
            return [[left]]
        return [[k, *rest] for k in range(left + 1) for rest in counts(left - k, kinds - 1)]

    seen = np.array(counts(uses, len(p)), float)
    ways = gammaln(uses + 1) - gammaln(seen + 1).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [np.where(seen > 0, seen * np.log(law), 0.0).sum(axis=1) for law in (p, q)]
    return ways + each[0], ways + each[1]


def _profile(log_p, log_q, epsilon):
    excess = np.exp(log_q) - np.exp(np.asarray(epsilon)[:, None] + log_p)
    return np.maximum(excess, 0.0).sum(axis=1)


def _exact_regret(p, q, uses, order, mu):
    """The largest gap by all slopes at which a profile has a kink, or one crosses the other, and
    3,000 more.
    """
    log_p, log_q = _exact_law(p, q, uses)
    with np.errstate(invalid="ignore"):
        kinks = np.abs(log_q - log_p)
    epsilon = np.unique(np.concatenate([kinks[kinks < 60.0], np.linspace(0.0, 60.0, 3000)]))
    sides = (log_p, log_q), (log_q, log_p)
    apart = lambda e: _profile(*sides[0], e) - _profile(*sides[1], e)
    signs = np.sign(apart(epsilon))
    crossings = [
        brentq(lambda e: apart([e])[0], *epsilon[i : i + 2], xtol=1e-15)
        for i in np.flatnonzero(signs[:-1] * signs[1:] < 0)
    ]
    epsilon = np.unique(np.append(epsilon, crossings))
    each = np.stack([_profile(*side, epsilon) for side in sides])
    delta = each.max(axis=0) if order == "add_remove" else each
    shown = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    return float(np.max((shown - delta) / (1.0 + np.exp(epsilon))))


_ALIKE = (
    # each order is the worse one between some slopes
    ([0.2, 0.8], [0.7, 0.3], 12),
    ([0.5, 0.5], [0.8, 0.2], 4),
    ([0.52, 0.29, 0.19], [0.05, 0.11, 0.84], 2),
    ([0.085, 0.013, 0.516, 0.386], [0.078, 0.073, 0.24, 0.609], 8),
    # outcomes that tell all, seen by one law or by each
    ([0.5, 0.4, 0.0, 0.1], [0.3, 0.3, 0.4, 0.0], 5),
    ([0.7, 0.3, 0.0], [0.3, 0.5, 0.2], 9),
    ([0.7, 0.3 - 1e-12, 1e-12], [0.3, 0.5, 0.2], 9),
    # one that hardly ever tells all: in one order the other half's best test gains most
    ([0.6, 0.4, 1e-200], [0.5, 0.2, 0.3], 3),
    ([0.1, 0.9, 1e-200], [0.2, 0.5, 0.3], 1),
)


@pytest.mark.parametrize(("p", "q", "uses"), _ALIKE)
@pytest.mark.parametrize("order", ["add_remove", "add", "remove"])
def test_regret_of_tables_is_the_exact_one(p, q, uses, order):
    table = jaxgdp.compose([(jaxgdp.FromPMFs(p=np.array(p), q=np.array(q)), uses)])
    found = jaxgdp.measure(table, ("mu", "regret"), adjacency=order)
    # (both sides hold for the upper μ, which is the one that is reported)
    exact = _exact_regret(np.array(p), np.array(q), uses, order, float(found.mu.upper))
    assert found.regret.lower - 1e-12 <= exact <= found.regret.upper
    assert found.regret.upper - exact <= 1e-6
    assert found.status["regret"] == 0


def _half(p, q):
    """The half-curve of one use of a table without outcomes that tell all."""
    loss = np.log(q) - np.log(p)
    order = np.argsort(-loss)
    alpha, tpr = (np.append(0.0, np.cumsum(law[order]))[::-1] for law in (p, q))
    begins = np.append(loss[order][::-1], np.inf)  # (of the slopes for which each test is the best)
    begins = np.append(-np.inf, begins)
    with np.errstate(divide="ignore"):
        rates = np.log(alpha), np.log(tpr), np.log1p(-tpr)
    keep = (begins[1:] > 0.0) & (begins[:-1] < np.inf)
    at = np.maximum(begins[np.append(keep, True)], 0.0)
    at[-1] = 700.0
    some = np.ones(int(keep.sum()), bool)
    return Vertices(
        np.array([0.0]), np.array([1.0]), *(a[keep][None] for a in rates), some[None], some[None],
        top=np.array([loss.max()]), log_infinity_mass=np.array([-np.inf]), at=at[None],
    )  # fmt: skip


@pytest.mark.parametrize(("p", "q"), first(2, [case[:2] for case in _ALIKE[:4]]))
def test_programs_see_both_orders_of_a_table_too(p, q):
    p, q = np.array(p) / sum(p), np.array(q) / sum(q)
    plus, minus = _half(p, q), _half(q, p)
    curve, mu = Curve(plus, minus, plus, minus, np.inf), 2.5
    read = lambda curve: regret(
        curve, jaxgdp.Bracket(np.float64(mu), np.float64(mu)), symmetric=True
    )
    exact = _exact_regret(p, q, 1, "add_remove", mu)
    with np.errstate(all="ignore"):
        by_numpy = read(curve)
    by_jax = jax.tree.map(np.asarray, with_float64(jax.jit(read))(curve))
    for found in (by_numpy, by_jax):
        assert found.lower - 1e-13 <= exact <= found.upper + 1e-13
        assert found.upper - found.lower <= 1e-12


@pytest.mark.parametrize("order", ["add_remove", "add"])
def test_runs_that_are_nearly_certain_to_show_all_have_hardly_any_regret(order):
    """Where the advantage is 1 − η no curve has a regret above η, as both lie below η at their
    fixed points: a path of tests ends where it never errs without the record.
    """
    leak = jaxgdp.FromProfile(np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.1, 0.01]))
    run = jaxgdp.compose([(jaxgdp.RandomizedResponse(1.2), 54), (leak, 154)])
    found = jaxgdp.measure(run, ("advantage", "regret"), adjacency=order)
    left = 1.0 - float(found.advantage.lower)
    assert left < 1e-4
    assert 0.0 <= found.regret.lower <= found.regret.upper <= left
