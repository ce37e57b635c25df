"""Events and accountants of dp_accounting: counts, nesting, neighbouring relations, and what is
refused.
"""

import copy
import math

import mpmath
import numpy as np
import pytest

import jaxgdp

dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
ev = pytest.importorskip("dp_accounting.dp_event")

from jaxgdp.interop.dp_accounting import Accountant, UnsupportedEvent, from_event  # noqa: E402
from jaxgdp.interop.dp_accounting.events import spending  # noqa: E402

ADD, REPLACE, SPECIAL = "ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"
RELATIONS = (ADD, REPLACE, SPECIAL)
GAUSS = ev.GaussianDpEvent(2.0)

# event → the relations that have a sound pair
SUPPORTED = {
    "gaussian": (GAUSS, RELATIONS),
    "laplace": (ev.LaplaceDpEvent(2.0), RELATIONS),
    "discrete laplace": (ev.DiscreteLaplaceDpEvent(0.5, 1), RELATIONS),
    "discrete laplace, two steps": (ev.DiscreteLaplaceDpEvent(0.5, 2), RELATIONS),
    "zcdp": (ev.ZCDpEvent(0.1, 0.01), RELATIONS),
    "randomized response": (ev.RandomizedResponseDpEvent(0.5, 3), (REPLACE, SPECIAL)),
    "sampled gaussian": (ev.PoissonSampledDpEvent(0.1, GAUSS), (ADD, SPECIAL)),
    "sampled laplace": (ev.PoissonSampledDpEvent(0.1, ev.LaplaceDpEvent(2.0)), (ADD, SPECIAL)),
    "sampled discrete laplace": (
        ev.PoissonSampledDpEvent(0.1, ev.DiscreteLaplaceDpEvent(0.5, 2)),
        (ADD, SPECIAL),
    ),
    "sampled gaussians": (
        ev.PoissonSampledDpEvent(
            0.1, ev.ComposedDpEvent([ev.SelfComposedDpEvent(GAUSS, 3), GAUSS])
        ),
        (ADD, SPECIAL),
    ),
    "one nonzero sensitivity": (
        ev.MixtureOfGaussiansDpEvent(2.0, [0.0, 0.5], [0.9, 0.1]),
        (ADD, SPECIAL),
    ),
    "several sensitivities": (
        ev.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.8, 0.1, 0.1]),
        (ADD, SPECIAL),
    ),
    "sample without replacement": (
        ev.SampledWithoutReplacementDpEvent(100, 10, GAUSS),
        (REPLACE, SPECIAL),
    ),
    "tree": (ev.SingleEpochTreeAggregationDpEvent(2.0, [5, 8]), (SPECIAL,)),
    "truncated batches": (
        ev.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 2.0),
        (ADD, SPECIAL),
    ),
}
REFUSED = {
    "sample with replacement": ev.SampledWithReplacementDpEvent(100, 10, GAUSS),
    "sensitivities of both signs": ev.MixtureOfGaussiansDpEvent(1.0, [-1.0, 1.0], [0.5, 0.5]),
    "several laplace on one sample": ev.PoissonSampledDpEvent(
        0.1, ev.SelfComposedDpEvent(ev.LaplaceDpEvent(1.0), 2)
    ),
    "unsupported": ev.UnsupportedDpEvent(),
}
PAIRS = [pytest.param(e, r, id=f"{n}, {r}") for n, (e, rs) in SUPPORTED.items() for r in rs]


def accountant(relation=ADD):
    return Accountant(dpa.NeighboringRelation[relation])


def same(*spent):
    first, *others = [
        (dict(s.uses), round(s.rho, 12), round(s.xi, 12), s.non_private) for s in spent
    ]
    return all(first == other for other in others)


@pytest.mark.parametrize("event, relation", PAIRS)
def test_counts_and_nesting_say_the_same(event, relation):
    by_count = accountant(relation).compose(event, 6)
    one_by_one = accountant(relation)
    for _ in range(6):
        one_by_one.compose(event)
    nested = ev.ComposedDpEvent(
        [ev.SelfComposedDpEvent(ev.ComposedDpEvent([event, ev.NoOpDpEvent()]), 2), event]
    )
    ways = [
        by_count,
        one_by_one,
        accountant(relation).compose(ev.SelfComposedDpEvent(event, 6)),
        accountant(relation).compose(ev.SelfComposedDpEvent(event, 3), 2),
        accountant(relation).compose(ev.ComposedDpEvent([event] * 6)),
        accountant(relation).compose(ev.SelfComposedDpEvent(nested, 1), 2),
    ]
    assert same(*(way._spent for way in ways))
    # and six are six times one
    one = spending(event, relation)
    assert by_count._spent.uses == {use: 6 * times for use, times in one.uses.items()}
    assert math.isclose(by_count._spent.rho, 6 * one.rho)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SUPPORTED)
def test_relations_without_a_sound_pair_are_refused_by_name(name, relation):
    event, sound = SUPPORTED[name]
    known = accountant(relation)
    assert known.supports(event) == (relation in sound)
    if relation in sound:
        return
    with pytest.raises(ValueError, match=type(event).__name__):
        from_event(event, relation)
    with pytest.raises(dpa.UnsupportedEventError, match=relation):
        known.compose(ev.ComposedDpEvent([GAUSS, event]))
    # nothing of it was composed, not even the part that could have been
    assert known.get_epsilon(0.0) == 0.0 and isinstance(known.ledger, ev.NoOpDpEvent)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_events_are_refused_by_name(name, relation):
    event = ev.SelfComposedDpEvent(ev.ComposedDpEvent([GAUSS, REFUSED[name]]), 3)
    known = accountant(relation)
    assert not known.supports(event)
    with pytest.raises(dpa.UnsupportedEventError, match=type(REFUSED[name]).__name__):
        known.compose(event)
    with pytest.raises(UnsupportedEvent) as refused:
        from_event(event, relation)
    assert refused.value.event == REFUSED[name]
    assert isinstance(known.ledger, ev.NoOpDpEvent) and known._spent.nothing


def test_user_s_own_subclass_is_not_taken_for_its_parent():
    class GaussianDpEvent(ev.GaussianDpEvent):
        pass

    with pytest.raises(ValueError, match="GaussianDpEvent is not supported"):
        from_event(GaussianDpEvent(1.0))


@pytest.mark.parametrize(
    "event, named",
    [
        (ev.GaussianDpEvent(-1.0), "noise_multiplier of GaussianDpEvent"),
        (ev.GaussianDpEvent(math.nan), "noise_multiplier"),
        (ev.LaplaceDpEvent("much"), "noise_multiplier of LaplaceDpEvent"),
        (ev.SelfComposedDpEvent(GAUSS, -1), "count of SelfComposedDpEvent"),
        (ev.SelfComposedDpEvent(GAUSS, 1.5), "count"),
        (ev.PoissonSampledDpEvent(1.5, GAUSS), "sampling_probability"),
        (ev.RandomizedResponseDpEvent(0.5, 0), "num_buckets"),
        (ev.ZCDpEvent(-0.1), "rho of ZCDpEvent"),
    ],
)
def test_bad_values_are_named_and_change_nothing(event, named):
    known = accountant(SPECIAL).compose(GAUSS)
    with pytest.raises(ValueError, match=named):
        known.compose(ev.ComposedDpEvent([GAUSS, event]))
    assert known.ledger == GAUSS and known.mechanism().counts == (1,)


@pytest.mark.parametrize("count", [-1, 0, 2.0, True, "3"])
def test_bad_counts(count):
    known = accountant()
    with pytest.raises(ValueError, match="count must be"):
        known.compose(GAUSS, count)
    assert known._spent.nothing and isinstance(known.ledger, ev.NoOpDpEvent)


@pytest.mark.parametrize("relation", ["SIDEWAYS", None, 3])
def test_unknown_relations(relation):
    with pytest.raises(ValueError, match="neighboring_relation"):
        from_event(GAUSS, relation)
    with pytest.raises(ValueError, match="neighboring_relation"):
        Accountant(relation)


def test_gaussians_are_exact_for_every_relation():
    for relation, mu in ((ADD, 1.0), (SPECIAL, 1.0), (REPLACE, 2.0)):
        known = accountant(relation).compose(GAUSS, 4)
        assert math.isclose(
            known.get_epsilon(1e-5), jaxgdp.gdp.epsilon(delta=1e-5, mu=mu), rel_tol=1e-9
        )
        assert math.isclose(
            known.get_delta(1.0), jaxgdp.gdp.delta(epsilon=1.0, mu=mu), rel_tol=1e-8
        )
        assert math.isclose(known.get_mu(), mu, rel_tol=1e-9) and known.get_mu() >= mu
        rates = known.get_true_positive_rates([0.0, 1e-6, 0.5, 1.0])
        assert np.allclose(
            rates,
            [0.0, jaxgdp.gdp.tpr(fpr=1e-6, mu=mu), jaxgdp.gdp.tpr(fpr=0.5, mu=mu), 1.0],
            rtol=1e-8,
        )
        assert isinstance(known.get_true_positive_rates(0.1), float)
        assert known.get_epsilon(0.0) == math.inf
    # below ε = 0: δ(ε) = 1 − e^ε·(1 − δ(−ε))
    known = accountant().compose(GAUSS, 4)
    exact = mpmath.ncdf(1.5) - mpmath.exp(-1) * mpmath.ncdf(0.5)
    assert math.isclose(known.get_delta(-1.0), exact, rel_tol=1e-8)


def test_pure_epsilons_add_up_whatever_the_nesting():
    response = ev.RandomizedResponseDpEvent(0.5, 2)  # ε = log 3
    assert math.isclose(
        accountant(REPLACE).compose(response, 10).get_epsilon(0.0), 10 * math.log(3), rel_tol=1e-9
    )
    # against a uniform answer: log(3/4 / (1/2)) one way, log(1/2 / (1/4)) the other
    assert math.isclose(
        accountant(SPECIAL).compose(response, 10).get_epsilon(0.0), 10 * math.log(2), rel_tol=1e-9
    )
    for relation, epsilon in ((ADD, 3 * 0.5), (REPLACE, 3 * 1.0)):
        assert math.isclose(
            accountant(relation).compose(ev.LaplaceDpEvent(2.0), 3).get_epsilon(0.0),
            epsilon,
            rel_tol=1e-9,
        )
        steps = ev.DiscreteLaplaceDpEvent(0.25, 2)
        assert math.isclose(
            accountant(relation).compose(steps, 3).get_epsilon(0.0), epsilon, rel_tol=1e-9
        )


def test_discrete_laplace_of_two_steps_is_the_law_shifted():
    a, k = 0.7, np.arange(-200, 201)
    law = np.tanh(a / 2) * np.exp(-a * np.abs(k))
    shifted = np.tanh(a / 2) * np.exp(-a * np.abs(k - 2))
    pair = from_event(ev.DiscreteLaplaceDpEvent(a, 2)).mechanisms[0]
    for gamma in np.exp(np.linspace(-1.4, 1.4, 9)):
        exact = np.maximum(shifted - gamma * law, 0.0).sum()
        assert math.isclose(
            np.maximum(np.asarray(pair.q) - gamma * np.asarray(pair.p), 0.0).sum(),
            exact,
            abs_tol=1e-14,
        )


def test_gaussians_on_one_sample_are_one_gaussian():
    inner = ev.ComposedDpEvent(
        [ev.SelfComposedDpEvent(ev.GaussianDpEvent(2.0), 3), ev.GaussianDpEvent(1.0)]
    )
    found = from_event(ev.PoissonSampledDpEvent(0.1, inner)).mechanisms[0]
    assert isinstance(found, jaxgdp.SubsampledGaussian)
    assert math.isclose(float(found.noise_multiplier), 1.0 / math.sqrt(3 / 4 + 1), rel_tol=1e-12)
    twice = from_event(
        ev.PoissonSampledDpEvent(0.5, ev.PoissonSampledDpEvent(0.2, GAUSS))
    ).mechanisms[0]
    assert math.isclose(float(twice.sampling_prob), 0.1)


def test_truncated_batches_cost_at_least_the_plain_ones_and_no_more_than_what_truncation_reveals():
    event = ev.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 2.0)
    found = accountant(SPECIAL).compose(event)
    # 0.1·Pr[Bin(999, 0.1) ≥ 150]
    tail = mpmath.fsum(
        mpmath.binomial(999, k) * mpmath.mpf("0.1") ** k * mpmath.mpf("0.9") ** (999 - k)
        for k in range(150, 1000)
    )
    for epsilon in (0.1, 0.5, 1.0):
        plain = jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.1, 1), "delta", epsilon=epsilon).delta
        delta = found.get_delta(epsilon)
        assert plain.lower * (1.0 - float(tail)) <= delta <= plain.upper + 0.1 * float(tail)


def test_non_private_and_no_op():
    known = accountant().compose(ev.NoOpDpEvent())
    with pytest.raises(ValueError, match="nothing was spent"):
        known.mechanism()
    known.compose(ev.GaussianDpEvent(0.0))
    assert (
        known.get_epsilon(0.5) == math.inf
        and known.get_delta(3.0) == 1.0
        and known.get_mu() == math.inf
    )
    assert np.all(known.get_true_positive_rates([1e-3, 0.1]) == 1.0)
    with pytest.raises(ValueError, match="non-private"):
        known.mechanism()


def test_zcdp_is_no_better_than_its_gaussian_and_adds_up_first():
    known = accountant().compose(ev.ZCDpEvent(0.125), 4)  # as 4 Gaussians with σ = 2: μ = 1
    mechanism = known.mechanism()
    assert len(mechanism.mechanisms) == 1
    profile = mechanism.mechanisms[0]
    assert np.all(profile.deltas + 1e-15 >= jaxgdp.gdp.delta(epsilon=profile.epsilons, mu=1.0))
    assert np.allclose(
        profile.deltas, jaxgdp.conversions.delta_from_zcdp(epsilon=profile.epsilons, rho=0.5)
    )
    shifted = accountant().compose(ev.ZCDpEvent(0.5, 0.3)).mechanism().mechanisms[0]
    assert np.allclose(shifted.epsilons[1:], 0.3 + profile.epsilons) and shifted.deltas[0] == 1.0


def test_dpsgd_next_to_their_accountant():
    step = ev.PoissonSampledDpEvent(0.01, ev.GaussianDpEvent(1.0))
    theirs = dpa.pld.PLDAccountant().compose(step, 1000)
    ours = accountant().compose(ev.SelfComposedDpEvent(step, 500), 2)
    assert abs(ours.get_epsilon(1e-5) - theirs.get_epsilon(1e-5)) < 1e-3 * theirs.get_epsilon(1e-5)
    assert abs(ours.get_delta(1.0) - theirs.get_delta(1.0)) < 1e-2 * theirs.get_delta(1.0)
    mu, regret = ours.get_mu_and_regret()
    assert 0.5222 < mu < 0.5228 and 0.02 < regret < 0.025
    assert ours.get_true_positive_rates(1e-6) > 1e-6  # gdpnum reports 9e-14 here
    fnr = ours.get_false_negative_rates([1e-3, 0.1])
    assert np.all(fnr <= 1.0 - ours.get_true_positive_rates([1e-3, 0.1]) + 1e-12) and np.all(
        fnr > 0.5
    )
    again = copy.deepcopy(ours)
    assert (
        again.compose(step).get_epsilon(1e-5)
        > ours.get_epsilon(1e-5)
        == again.__class__().compose(step, 1000).get_epsilon(1e-5)
    )


def test_accountant_is_taken_by_calibrate_dp_mechanism():
    make = lambda sigma: ev.SelfComposedDpEvent(ev.GaussianDpEvent(sigma), 4)
    sigma = dpa.calibrate_dp_mechanism(
        Accountant, make, target_epsilon=1.0, target_delta=1e-5, tol=1e-6
    )
    exact = 2.0 / float(jaxgdp.gdp.mu_from_epsilon_delta(epsilon=1.0, delta=1e-5))
    assert exact <= sigma < exact + 2e-6
    steps = dpa.calibrate_dp_mechanism(
        Accountant,
        lambda number: ev.SelfComposedDpEvent(ev.GaussianDpEvent(10.0), number),
        1.0,
        1e-5,
        bracket_interval=dpa.LowerEndpointAndGuess(1, 16),
        discrete=True,
    )
    assert steps == math.floor(
        (10.0 * float(jaxgdp.gdp.mu_from_epsilon_delta(epsilon=1.0, delta=1e-5))) ** 2
    )
