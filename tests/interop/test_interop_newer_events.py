"""Events that only newer versions of dp_accounting have: stand-ins with their fields where the
installed one lacks them.
"""

import math

import attr
import numpy as np
import pytest

import jaxgdp

pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
from dp_accounting import dp_event as ev

from jaxgdp.interop.dp_accounting import from_event
from jaxgdp.interop.dp_accounting.events import spending

FIELDS = {
    "EpsilonDeltaDpEvent": {"epsilon": attr.NOTHING, "delta": attr.NOTHING},
    "ApproximateDpEvent": {"event": attr.NOTHING, "delta": attr.NOTHING},
    "ExponentialMechanismDpEvent": {"epsilon": attr.NOTHING},
    "PermuteAndFlipDpEvent": {"epsilon": attr.NOTHING},
    "RandomAllocationDpEvent": {
        "event": attr.NOTHING,
        "num_selected": attr.NOTHING,
        "num_steps": attr.NOTHING,
    },
    "DiscreteGaussianDpEvent": {"sigma": attr.NOTHING, "sensitivity": 1.0, "dimension": None},
}
ADD, REPLACE, SPECIAL = "ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"


@pytest.fixture
def event(monkeypatch):
    """Builds an event by name."""

    def build(name, *values):
        if not hasattr(ev, name):
            fields = {field: attr.ib(default=default) for field, default in FIELDS[name].items()}
            monkeypatch.setattr(
                ev,
                name,
                attr.make_class(name, fields, bases=(ev.DpEvent,), frozen=True),
                raising=False,
            )
        return getattr(ev, name)(*values)

    return build


def only_use(tree, relation=ADD):
    ((use, times),) = spending(tree, relation).uses.items()
    assert times == 1
    return use


def test_guarantees_stand_for_themselves(event):
    for relation in (ADD, REPLACE, SPECIAL):
        assert only_use(event("EpsilonDeltaDpEvent", 1.0, 1e-6), relation) == (
            jaxgdp.ApproximateDP,
            (1.0, 1e-6),
        )
        assert only_use(event("EpsilonDeltaDpEvent", 1.0, 0.0), relation) == (jaxgdp.PureDP, (1.0,))
        assert only_use(event("ExponentialMechanismDpEvent", 0.5), relation) == (
            jaxgdp.ExponentialMechanism,
            (0.5,),
        )
    assert spending(event("EpsilonDeltaDpEvent", 0.0, 0.0), ADD).nothing
    assert spending(event("EpsilonDeltaDpEvent", 1.0, 1.0), ADD).non_private
    with pytest.raises(ValueError, match="delta of EpsilonDeltaDpEvent"):
        from_event(event("EpsilonDeltaDpEvent", 1.0, 1.5))


def test_permute_and_flip_spreads_wider_than_the_exponential_mechanism(event):
    # two candidates, scores 2Δ apart and equal: the true pair, its ε, and its range
    epsilon = 1.0
    wrong = 0.5 * math.exp(-epsilon)
    losses = np.log(np.array([0.5, 0.5]) / np.array([wrong, 1.0 - wrong]))
    assert losses.max() <= epsilon * (1 + 1e-12) and np.ptp(losses) > 1.4 * epsilon
    found = from_event(ev.SelfComposedDpEvent(event("PermuteAndFlipDpEvent", epsilon), 4))
    laplace = jaxgdp.epsilon(jaxgdp.compose([(jaxgdp.Laplace(1.0 / epsilon), 4)]), delta=1e-3)
    own = jaxgdp.epsilon(found, delta=1e-3)
    assert own.lower < own.upper < 3.99 and abs(own.upper - laplace.upper) < 1e-2
    sampled = ev.PoissonSampledDpEvent(0.1, event("PermuteAndFlipDpEvent", epsilon))
    assert jaxgdp.epsilon(from_event(sampled), delta=1e-9).upper < epsilon


def test_approximate_events_fail_with_their_probability(event):
    inner = ev.SelfComposedDpEvent(ev.GaussianDpEvent(2.0), 3)
    spent = spending(event("ApproximateDpEvent", inner, 1e-6), ADD)
    assert spent.uses == {(jaxgdp.Gaussian, (2.0,)): 3, (jaxgdp.ApproximateDP, (0.0, 1e-6)): 1}
    assert math.isclose(spent.infinite_mass(), 1e-6, rel_tol=1e-9)
    assert spending(event("ApproximateDpEvent", ev.NoOpDpEvent(), 0.0), ADD).nothing
    assert spending(event("ApproximateDpEvent", ev.NoOpDpEvent(), 1.0), ADD).non_private


def test_discrete_gaussians(event):
    assert only_use(event("DiscreteGaussianDpEvent", 3.0)) == (jaxgdp.DiscreteGaussian, (3.0, 1.0))
    # a replaced record moves an integer by up to twice the sensitivity; a fraction of a step moves
    # nothing
    assert only_use(event("DiscreteGaussianDpEvent", 3.0, 1.0, 1), REPLACE) == (
        jaxgdp.DiscreteGaussian,
        (3.0, 2.0),
    )
    assert only_use(event("DiscreteGaussianDpEvent", 3.0, 2.7, 1)) == (
        jaxgdp.DiscreteGaussian,
        (3.0, 2.0),
    )
    assert spending(event("DiscreteGaussianDpEvent", 3.0, 0.9), ADD).nothing
    # in several dimensions: two coordinates of one step each are a move of √2, of which 1/μ is all
    # but σ/√2
    kind, (sigma,) = only_use(event("DiscreteGaussianDpEvent", 3.0, math.sqrt(2.0), 5))
    assert kind is jaxgdp.Gaussian and 0.99 * 3.0 / math.sqrt(2.0) < sigma < 3.0 / math.sqrt(2.0)
    sampled = only_use(ev.PoissonSampledDpEvent(0.1, event("DiscreteGaussianDpEvent", 3.0)))
    assert sampled[0] is jaxgdp.SubsampledGaussian and 0.99 * 3.0 < sampled[1][0] < 3.0


@pytest.mark.parametrize("epsilon, delta, rate", [(1.0, 0.0, 0.1), (0.5, 1e-3, 0.3)])
def test_sampling_amplifies_a_guarantee_as_known(event, epsilon, delta, rate):
    kind, (p, q) = only_use(
        ev.PoissonSampledDpEvent(rate, event("EpsilonDeltaDpEvent", epsilon, delta))
    )
    p, q = np.asarray(p), np.asarray(q)
    assert kind is jaxgdp.FromPMFs and math.isclose(p.sum(), 1.0) and math.isclose(q.sum(), 1.0)
    # (log(1 + rate·(e^ε − 1)), rate·δ)-DP in both orders (Balle et al. 2018)
    gamma = 1.0 + rate * math.expm1(epsilon)
    assert math.isclose(np.maximum(q - gamma * p, 0.0).sum(), rate * delta, abs_tol=1e-15)
    assert np.maximum(p - gamma * q, 0.0).sum() <= rate * delta + 1e-15
    with pytest.raises(ValueError, match="PoissonSampledDpEvent"):
        from_event(
            ev.PoissonSampledDpEvent(rate, event("EpsilonDeltaDpEvent", epsilon, delta)), SPECIAL
        )


def test_response_is_not_sampled_however_it_is_wrapped():
    response = ev.ComposedDpEvent([ev.RandomizedResponseDpEvent(0.5, 3)])
    with pytest.raises(ValueError, match="PoissonSampledDpEvent"):
        from_event(ev.PoissonSampledDpEvent(0.1, response), SPECIAL)


def test_random_allocation(event):
    gauss = ev.GaussianDpEvent(2.0)
    for relation in (ADD, SPECIAL):
        assert only_use(event("RandomAllocationDpEvent", gauss, 1, 100), relation) == (
            jaxgdp.RandomAllocation,
            (2.0, 100.0, 1.0),
        )
    epochs = from_event(ev.SelfComposedDpEvent(event("RandomAllocationDpEvent", gauss, 1, 100), 3))
    assert int(epochs.counts[0]) == 3 and isinstance(epochs.mechanisms[0], jaxgdp.RandomAllocation)
    with pytest.raises(ValueError, match="REPLACE_ONE"):
        from_event(event("RandomAllocationDpEvent", gauss, 1, 100), REPLACE)
    with pytest.raises(ValueError, match="num_selected of RandomAllocationDpEvent"):
        from_event(event("RandomAllocationDpEvent", gauss, 11, 10))
    twice = ev.SelfComposedDpEvent(ev.LaplaceDpEvent(1.0), 2)
    for inner, selected in ((ev.LaplaceDpEvent(1.0), 2), (twice, 1), (ev.ZCDpEvent(0.1), 1)):
        with pytest.raises(ValueError, match="GaussianDpEvent inside, or for num_selected = 1"):
            from_event(event("RandomAllocationDpEvent", inner, selected, 10))


def test_random_allocation_of_other_noise(event):
    laplace = event("RandomAllocationDpEvent", ev.LaplaceDpEvent(2.0), 1, 10)
    same = jaxgdp.RandomAllocation(mechanism=jaxgdp.Laplace(2.0), num_steps=10)
    assert jaxgdp.advantage(from_event(laplace)) == jaxgdp.advantage(same)
    stated = event("RandomAllocationDpEvent", event("EpsilonDeltaDpEvent", 1.0, 1e-6), 1, 10)
    assert spending(stated, ADD).infinite_mass() >= 1e-6
    assert spending(event("RandomAllocationDpEvent", ev.NonPrivateDpEvent(), 1, 3), ADD).non_private


@pytest.mark.parametrize(
    ("mean", "shape", "law"),
    [
        (10.0, 1.0, jaxgdp.runs.Geometric(10.0)),
        (10.0, 0.0, jaxgdp.runs.Logarithmic(10.0)),
        (0.5, math.inf, jaxgdp.runs.Poisson(0.5)),
        (10.0, 0.5, jaxgdp.runs.NegativeBinomial(10.0, 0.5)),
        (3.0, -0.5, jaxgdp.runs.NegativeBinomial(3.0, -0.5)),
    ],
)
def test_best_of_several_runs_is_a_selection(mean, shape, law):
    run = ev.ComposedDpEvent([ev.GaussianDpEvent(3.0), ev.LaplaceDpEvent(2.0)])
    spent = spending(ev.RepeatAndSelectDpEvent(run, mean, shape), ADD)
    found = spent.plus(spent).mechanism()  # (equal events are one use twice)
    assert int(found.counts[0]) == 2 and len(found.mechanisms) == 1
    selected = found.mechanisms[0]
    assert isinstance(selected, jaxgdp.Selected) and repr(selected.runs) == repr(law)
    assert {type(part).__name__ for part in selected.mechanism.mechanisms} == {
        "Gaussian", "Laplace"
    }  # fmt: skip


def test_best_of_several_runs_fails_no_less_often_than_any_of_them():
    if not hasattr(ev, "EpsilonDeltaDpEvent"):
        pytest.skip("the installed dp_accounting has no event that fails")
    run = ev.EpsilonDeltaDpEvent(1.0, 1e-6)
    one = spending(run, SPECIAL).infinite_mass()
    best = spending(ev.RepeatAndSelectDpEvent(run, 10.0, 1.0), SPECIAL)
    # some run fails with probability 1 − E(1 − δ)^K, at least; the law is geometric
    fails = 1.0 - (1.0 - one) / (10.0 - 9.0 * (1.0 - one))
    assert 0.0 < fails <= best.infinite_mass() <= 10.0 * one * (1.0 + 1e-9)


def test_best_of_one_or_none_and_of_nothing():
    gauss = ev.GaussianDpEvent(3.0)
    select = lambda *given: spending(ev.RepeatAndSelectDpEvent(*given), ADD)
    assert select(gauss, 1.0, 1.0).uses == spending(gauss, ADD).uses
    assert select(gauss, 0.0, math.inf).nothing
    assert select(ev.NoOpDpEvent(), 7.0, 1.0).nothing
    assert select(ev.NonPrivateDpEvent(), 7.0, 1.0).non_private
    for mean, shape, named in (
        (0.5, 1.0, "mean of RepeatAndSelectDpEvent"),
        (math.nan, math.inf, "mean of RepeatAndSelectDpEvent"),
        (10.0, 101.0, "shape of RepeatAndSelectDpEvent"),
        (10.0, -1.0, "shape of RepeatAndSelectDpEvent"),
    ):
        with pytest.raises(ValueError, match=named):
            select(gauss, mean, shape)
    with pytest.raises(ValueError, match="is supported for Gaussian noise"):
        from_event(ev.PoissonSampledDpEvent(0.1, ev.RepeatAndSelectDpEvent(gauss, 10.0, 1.0)))


def test_every_event_of_the_library_is_counted_or_refused_by_name():
    from jaxgdp.interop.dp_accounting.events import SUPPORTED

    kinds = {
        name for name, kind in vars(ev).items()
        if isinstance(kind, type) and issubclass(kind, ev.DpEvent) and kind is not ev.DpEvent
    }  # fmt: skip
    assert kinds - set(SUPPORTED) == {"SampledWithReplacementDpEvent", "UnsupportedDpEvent"}
    with pytest.raises(ValueError, match="SampledWithReplacementDpEvent is not supported"):
        from_event(ev.SampledWithReplacementDpEvent(100, 10, ev.GaussianDpEvent(1.0)))


def test_truncated_batches_have_a_pair_of_their_own():
    found = from_event(ev.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 2.0)).mechanisms[0]
    assert isinstance(found, jaxgdp.TruncatedPoisson)
    assert (float(found.batch_size), float(found.dataset_size)) == (150.0, 1001.0)


def test_mixtures_are_sums_of_what_is_alike():
    """Weights of equal sensitivities count together, zeros of either kind as the rest."""
    moves, weights = [2.0, 0.0, 1.0, 2.0, 9.0], [0.005, 0.8, 0.19, 0.005, 0.0]
    found = from_event(ev.MixtureOfGaussiansDpEvent(1.5, moves, weights), ADD)
    same = jaxgdp.GaussianMixture(1.5, [0.0, 1.0, 2.0], [0.8, 0.19, 0.01])
    one, two = (jaxgdp.mu(jaxgdp.compose([(m, 20)])) for m in (found, same))
    np.testing.assert_allclose([*one], [*two], rtol=1e-9)
    mirrored = from_event(ev.MixtureOfGaussiansDpEvent(1.5, [-a for a in moves], weights), ADD)
    np.testing.assert_allclose([*jaxgdp.mu(jaxgdp.compose([(mirrored, 20)]))], [*two], rtol=1e-9)


def test_samples_without_replacement_are_batches_of_a_fixed_size():
    inner = ev.SampledWithoutReplacementDpEvent(1000, 20, ev.GaussianDpEvent(2.0))
    tree = inner
    for relation, adjacency in ((SPECIAL, "add_remove"), (REPLACE, "replace_one")):
        one = jaxgdp.epsilon(from_event(tree, relation), delta=1e-6)
        run = jaxgdp.FixedSize(2.0, 20, 1000)
        two = jaxgdp.epsilon(run, delta=1e-6, adjacency=adjacency)
        np.testing.assert_allclose(one.upper, two.upper, rtol=1e-9)
    with pytest.raises(ValueError, match="`REPLACE_ONE` or `REPLACE_SPECIAL`"):
        from_event(tree, ADD)
