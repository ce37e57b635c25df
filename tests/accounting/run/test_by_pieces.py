"""Weak privacy in many pieces, of which only those that decide are composed finely."""

import jax
import numpy as np
import pytest
from by_day import first
from scipy.special import gammaln, log_ndtr, logsumexp, ndtri_exp

import jaxgdp
from jaxgdp import options
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import by_jumps, by_moments, by_pieces, by_share
from jaxgdp.accounting.run.running_brackets import unknown
from jaxgdp.adjacency import Adjacency
from jaxgdp.bracket import Bracket
from jaxgdp.quantities.registry import REGISTRY

_ALWAYS = 1.0 - 2.0**-45  # at most one run in a thousand million leaves a record out


def _narrowed(run, name, at, adjacency="add_remove", rtol=1e-5):
    """What this route alone finds, of which next to nothing is known before."""
    stacked = jax.tree.map(lambda a: np.asarray(a)[None], run.stacked())
    asked = ((REGISTRY[name], at),)
    question = Question(rtol, 1e-10, Adjacency.checked(adjacency), asked)
    results = {name: Bracket(np.array([41.0]), np.array([1e6]))}
    assert by_pieces.served(question, results, 0)
    by_pieces.narrow(stacked, 0, question, results, 2**20)
    return results[name]


@pytest.mark.parametrize(
    ("name", "at", "sigma", "steps"),
    [
        ("mu", None, 0.7643, 2564),
        pytest.param("approximate_mu", 4.2e-4, 1.0, 6000, marks=pytest.mark.nightly),
    ],
)
def test_records_that_are_nearly_always_sampled_are_known_in_closed_form(name, at, sigma, steps):
    found = _narrowed(jaxgdp.dpsgd(sigma, _ALWAYS, steps), name, at)
    given = {} if at is None else {"approximation": at}
    exact = jaxgdp.measure(jaxgdp.dpsgd(sigma, 1.0, steps), name, **given)[name]
    assert found.lower[0] <= exact.upper * (1.0 + 1e-8)
    assert found.upper[0] >= exact.lower * (1.0 - 1e-8)
    assert found.upper[0] - found.lower[0] <= 1e-5 * exact.upper


def _by_located_tests(sigma, p, steps, log_d):
    """The largest approximate μ of tests by which steps had the record, by its formula, at so many
    thresholds that between two of them it hardly changes.
    """
    j = np.arange(1.0, 8.0 * p * steps + 60.0)
    logs = j * np.log(p) + (steps - j) * np.log1p(-p)
    ways = gammaln(steps + 1.0) - gammaln(j + 1.0) - gammaln(steps - j + 1.0)
    deviation = np.sqrt(j) / sigma
    found = -np.inf
    t = np.linspace(0.0, 3.0 * p * steps * 0.5 / sigma**2, 3001)
    for _ in range(3):
        moved = (logs - t[:, None]) / deviation
        log_tpr = logsumexp(ways + logs + log_ndtr(moved + 0.5 * deviation), axis=1)
        log_fpr = logsumexp(ways + log_ndtr(moved - 0.5 * deviation), axis=1)
        with np.errstate(all="ignore"):
            above = log_tpr + np.log(-np.expm1(np.minimum(log_d - log_tpr, 0.0)))
        value = np.where(above > -np.inf, ndtri_exp(above) - ndtri_exp(log_fpr), -np.inf)
        found, k = max(found, np.max(value)), int(np.argmax(value))
        t = np.linspace(t[k - 1], t[k + 1], 301)
    return found


@pytest.mark.parametrize(
    ("sigma", "p", "steps", "d"),
    [(0.0566, 2.9e-6, 29_000_000, 1e-4), (0.096, 1.3e-5, 22_000_000, 1e-6)],
)
def test_tests_by_which_steps_had_the_record_are_close_where_they_show_most(sigma, p, steps, d):
    stacked = jax.tree.map(lambda a: np.asarray(a)[None], jaxgdp.dpsgd(sigma, p, steps).stacked())
    asked = ((REGISTRY["approximate_mu"], d),)
    question = Question(1e-5, 1e-10, Adjacency.ADD_REMOVE, asked)
    results = {"approximate_mu": unknown(1)}
    by_jumps.narrow_by_located(stacked, 0, question, results)
    assert np.isclose(
        results["approximate_mu"].lower[0], _by_located_tests(sigma, p, steps, np.log(d)), rtol=1e-6
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sigma", "p", "steps", "d"), [(0.096, 1.3e-4, 22_000_000, 1e-6), (0.1, 1.3e-4, 2e7, 1e-11)]
)
def test_thousands_of_jumps_of_little_noise_are_as_accurate_as_asked(sigma, p, steps, d):
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = jaxgdp.measure(run, "approximate_mu", approximation=d, rtol=1e-5, executor="eager")
    assert found.status["approximate_mu"] == 0 and found.lattice_size == 0
    exact = _by_located_tests(sigma, p, steps, np.log(d))
    assert found.approximate_mu.lower >= exact * (1.0 - 1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "sigma", "p", "steps", "adjacency", "at"),
    [
        ("mu", 0.13727867396078075, 0.7154637881223121, 9628, "remove", {}),
        (
            "approximate_mu",
            0.1220582122084235,
            0.14922458817630585,
            1741,
            "add",
            {"approximation": 7.6e-08},
        ),
    ],
)
def test_weak_privacy_of_little_noise_is_as_accurate_as_asked(name, sigma, p, steps, adjacency, at):
    run, own = jaxgdp.dpsgd(sigma, p, steps), {"adjacency": adjacency, **at}
    fine = jaxgdp.measure(run, name, rtol=1e-5, **own)
    usual = jaxgdp.measure(run, name, **own)[name]
    assert fine.status[name] == 0
    assert usual.lower <= fine[name].upper and fine[name].lower <= usual.upper


@pytest.mark.parametrize("adjacency", ["add", pytest.param("remove", marks=pytest.mark.nightly)])
def test_many_steps_in_pieces_agree_with_their_moments(adjacency):
    """Both sides against a certificate that has no lattice, and each narrower than that one."""
    run = jaxgdp.dpsgd(1.3, 0.0716, 12_080_300)
    found = _narrowed(run, "mu", None, adjacency)
    by_moments = jaxgdp.measure(run, "mu", adjacency=adjacency)
    other = by_moments["mu"]
    assert by_moments.lattice_size == 0
    assert found.lower[0] <= other.upper and other.lower <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= min(1e-4 * other.lower, other.upper - other.lower)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "sigma", "p", "steps", "adjacency", "at"),
    [
        ("mu", 0.173043461443, 0.001414199, 29_589_636, "remove", {}),
        ("mu", 0.2024559682, 0.0085431, 20_065_928, "add_remove", {}),
        ("approximate_mu", 0.19237635, 0.258924446, 519_474, "remove", {"approximation": 1e-9}),
        ("epsilon", 0.173043461443, 0.001414199, 29_589_636, "remove", {"delta": 1.86e-8}),
        ("epsilon", 0.19237635, 0.258924446, 519_474, "add_remove", {"delta": 2.9e-10}),
        ("approximate_mu", 1.22488, 0.7468961, 214_283_027, "add", {"approximation": 1.5e-11}),
        ("mu", 5.0656563, 0.020580996, 591_763_875, "remove", {}),
        ("mu", 9.823003, 0.79572703, 53_048_887, "remove", {}),
    ],
)
def test_numbers_of_large_runs_are_as_accurate_as_asked(name, sigma, p, steps, adjacency, at):
    run, own = jaxgdp.dpsgd(sigma, p, steps), {"adjacency": adjacency, **at}
    fine = jaxgdp.measure(run, name, rtol=1e-5, executor="eager", **own)
    # (by moments alone)
    usual = jaxgdp.measure(run, name, executor="eager", **own)
    assert usual.lattice_size == 0 and fine.status[name] == 0
    assert usual[name].lower <= fine[name].upper and fine[name].lower <= usual[name].upper


def test_served_settings_are_weak_and_asked_for_what_is_largest():
    asked = ((REGISTRY["mu"], None),)
    results = {"mu": Bracket(np.array([50.0, 3.0, 50.0]), np.array([51.0, 4.0, np.inf]))}
    fine = Question(1e-5, 1e-10, Adjacency.ADD_REMOVE, asked)
    assert [by_pieces.served(fine, results, row) for row in range(3)] == [True, False, False]
    kept = Question(1e-5, 1e-10, Adjacency.ADD_REMOVE, asked, keep=True)
    assert not by_pieces.served(kept, results, 0)


@pytest.mark.parametrize(
    "sigma, p, steps, adjacency, name, at",
    [
        (0.15714408600144358, 0.0005945092264738345, 2_019_448, "add", "mu", {}),
        pytest.param(
            0.14793394,
            0.0037312215,
            750_665,
            "add",
            "approximate_mu",
            {"approximation": 3.3e-9},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_weak_privacy_is_as_accurate_as_asked_at_the_usual_accuracy(
    sigma, p, steps, adjacency, name, at
):
    run, own = jaxgdp.dpsgd(sigma, p, steps), {"adjacency": adjacency, "executor": "eager", **at}
    found = jaxgdp.measure(run, name, **own)
    assert found.status[name] == 0
    fine = jaxgdp.measure(run, name, rtol=1e-4, **own)
    assert found[name].lower <= fine[name].upper and fine[name].lower <= found[name].upper


@pytest.mark.parametrize(
    "sigma, p, steps, name, at",
    first(
        3,
        [
            (0.0578, 0.936, 1_025, "approximate_mu", {"approximation": 5.9e-12}),
            (0.0683, 0.000915, 3_115_296, "mu", {}),
            (0.0961, 4.17e-5, 25_835_282, "approximate_mu", {"approximation": 2.8e-5}),
            (0.0533, 0.0395, 26_992, "approximate_mu", {"approximation": 1.1e-14}),
            (0.0506, 1.9e-5, 50_981_925, "approximate_mu", {"approximation": 1.6e-8}),
            (0.1280, 0.00107, 536_037, "approximate_mu", {"approximation": 7.2e-12}),
            (0.0688, 6.6e-6, 684_559_384, "approximate_mu", {"approximation": 0.0024}),
        ],
    ),
)
def test_many_jumps_of_little_noise_are_as_accurate_as_asked(sigma, p, steps, name, at):
    """Hundreds or thousands of steps that have the record and are told from others: against limit
    theorems alone, with many thresholds.
    """
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = jaxgdp.measure(run, name, executor="eager", **at)
    assert found.status[name] == 0
    groups = jax.tree.map(lambda a: np.asarray(a)[None], run.stacked())
    deepest = at.get("approximation")
    asked = ((REGISTRY[name], deepest),)
    question = Question(1e-3, options.FPR_FLOOR, Adjacency.ADD_REMOVE, asked, deepest)
    with np.errstate(all="ignore"):
        curve = by_moments.first_curve(groups, 0, question, 10)
        assert curve is not None
        other = closed_forms.read([curve], question)[name]
    assert found[name].lower <= other.upper[0] and other.lower[0] <= found[name].upper
    assert other.lower[0] >= 0.98 * found[name].upper


@pytest.mark.parametrize(
    "sigma, p, steps, approximation",
    [
        (0.1338, 0.000457, 24_949, 1.9e-8),
        pytest.param(0.0771, 4.22e-6, 896_535, 1.1e-5, marks=pytest.mark.nightly),
        (0.06, 0.05, 160, 1e-9),
    ],
)
def test_few_jumps_are_those_of_the_law_given_that_there_are_some(sigma, p, steps, approximation):
    run, own = jaxgdp.dpsgd(sigma, p, steps), {"approximation": approximation}
    found = jaxgdp.measure(run, "approximate_mu", executor="eager", **own)
    assert found.status["approximate_mu"] == 0
    groups = jax.tree.map(lambda a: np.asarray(a)[None], run.stacked())
    asked = ((REGISTRY["approximate_mu"], approximation),)
    order = Adjacency.ADD_REMOVE
    question = Question(1e-3, options.FPR_FLOOR, order, asked, approximation)
    other = by_share.answer(groups, np.array([0]), question).results["approximate_mu"]
    assert found["approximate_mu"].lower <= other.upper[0]
    assert other.lower[0] <= found["approximate_mu"].upper
    assert other.upper[0] <= 1.01 * found["approximate_mu"].lower
