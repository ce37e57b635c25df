"""Tilts at which a composed loss has a given mean."""

import numpy as np
import pytest
from scipy.stats import norm

import jaxgdp
from jaxgdp.accounting.run.engine import Engine
from jaxgdp.accounting.steer import plan_whole, tilts
from jaxgdp.accounting.steer.cumulants import composed, quadrature
from jaxgdp.accounting.steer.refinement import DONE
from jaxgdp.bracket import Status


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [(1.0, 0.01, 1000), (0.173, 0.00141, 29_589_636), (0.192, 0.259, 519_474)],
)
def test_tilt_at_zero_has_its_mean_there_whatever_single_steps_add_to_it(sigma, p, steps):
    groups = jaxgdp.dpsgd(sigma, p, steps).stacked()
    with np.errstate(all="ignore"):
        loss = quadrature(groups, np.array([400.0]), np.array([False, True]))
        _, mean, square = composed(loss, tilts.at_zero(loss))
    assert np.all(np.abs(mean) <= 1e-3 * np.sqrt(square))


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [(5.07, 0.0206, 600_000_000), (9.82, 0.796, 53_000_000), (0.06, 0.015, 470_000)],
)
def test_both_laws_have_all_of_their_mass_however_deep_the_loss_is_looked_at(sigma, p, steps):
    """log E_P 1 and log E_P e^ℓ of all uses, which are 0."""
    groups = jaxgdp.dpsgd(sigma, p, steps).stacked()
    with np.errstate(all="ignore"):
        deep = quadrature(groups, np.array([1400.0]), np.array([False, True]))
        ends = [composed(deep, s + np.zeros(2)).value for s in (0.0, 1.0)]
    assert np.all(np.abs(ends) <= 1e-3)


@pytest.mark.parametrize("of_q", [False, True])
@pytest.mark.parametrize(
    ("sigma", "p", "steps", "log_mass"),
    [(1.0, 1e-3, 2000, -28.0), (5.0, 0.01, 400, -20.0), (0.6, 0.2, 10, -40.0), (2.0, 0.9, 3, -9.0)],
)
def test_longest_likely_step_is_exceeded_as_seldom_as_is_stated(sigma, p, steps, log_mass, of_q):
    """Against the normal tail of the noise beyond which the loss is so long. Nodes are up to a
    third of a standard deviation of the noise apart."""
    groups = jaxgdp.dpsgd(sigma, p, steps).stacked()
    with np.errstate(all="ignore"):
        loss = quadrature(groups, np.array([200.0]), np.array([False]))
        longest = float(loss.likely(np.asarray(log_mass), of_q))

    def log_exceeded(further):
        x = sigma * np.log1p(np.expm1(longest) / p) + 0.5 / sigma + further  # (in units of σ)
        plain = norm.logsf(x)
        return np.log(steps) + (
            np.logaddexp(np.log1p(-p) + plain, np.log(p) + norm.logsf(x - 1.0 / sigma))
            if of_q
            else plain
        )

    assert log_exceeded(0.35) < log_mass < log_exceeded(-0.35)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([], True),
        ([(jaxgdp.dpsgd(0.8, 1e-4, 50), 1)], True),
        ([(jaxgdp.Gaussian(3.0), 1)], False),
        ([(jaxgdp.RandomizedResponse(0.1), 5)], False),
    ],
)
def test_longest_likely_step_is_told_of_laws_that_nodes_stand_for(others, told):
    """Neither of losses that are exactly Gaussian, whose nodes nothing is computed by, nor of
    atoms; and never of the swapped pair, whose steps are cut at their other end."""
    with np.errstate(all="ignore"):
        groups = jaxgdp.compose([(jaxgdp.dpsgd(1.0, 1e-3, 2000), 1), *others]).stacked()
        depth = np.full(sum(count.shape[-1] for _, count in groups), 200.0)
        loss = quadrature(groups, depth, np.array([False, True]))
        longest = plan_whole._longest_likely(loss, np.asarray(6.4), None)
    assert np.isfinite(longest[0]) == told and np.isinf(longest[1])


def test_whole_curves_of_rare_large_steps_take_one_pass(monkeypatch):
    """Settings whose far end looked farther away than it is: each took a second pass."""
    again, carry_out = [], Engine._carry_out

    def watched(self, decision):
        if decision.action != DONE:
            again.append(decision)
        carry_out(self, decision)

    monkeypatch.setattr(Engine, "_carry_out", watched)
    settings = [(1.0, 4.99e-4, 2000), (1.5, 8.96e-4, 400), (1.0, 1e-4, 2000), (5.0, 1.04e-3, 400)]
    sigma, p, steps = np.transpose(settings)
    found = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, steps), ("mu", "regret"), fpr_floor=1e-10, nested=False
    )
    assert all(np.all(found.status[name] == Status.OK) for name in ("mu", "regret"))
    assert again == []
