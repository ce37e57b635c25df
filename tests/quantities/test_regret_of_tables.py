"""The regret of finite tables used several times, beside their exact law by enumeration."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import norm

import jaxgdp


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


def test_programs_see_both_orders_of_a_table_too():
    p, q, uses = _ALIKE[0]
    table = jaxgdp.FromPMFs(p=np.array(p), q=np.array(q))
    run = jaxgdp.compose([(table, uses), (jaxgdp.Laplace(300.0), 3)])
    found = [jaxgdp.measure(run, ("mu", "regret"), executor=by) for by in ("eager", "compiled")]
    assert all(each.lattice_size > 0 and each.status["regret"] == 0 for each in found)
    assert found[0].regret.lower <= found[1].regret.upper
    assert found[1].regret.lower <= found[0].regret.upper
    # (losses of .01 in all move the regret by about as much, times a density)
    exact = _exact_regret(np.array(p), np.array(q), uses, "add_remove", float(found[0].mu.upper))
    assert abs(exact - float(found[0].regret.upper)) <= 2e-3


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
