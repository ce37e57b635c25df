"""Every event of jax_privacy's accounting and its banded plans, against the accountants that
jax_privacy itself uses for them and against closed forms.

Releases differ in what they have: a test of what the installed one lacks is skipped."""

import math

import numpy as np
import pytest

import jaxgdp

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]
dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
accounting = pytest.importorskip("jax_privacy.accounting", reason="jax_privacy is not installed")

DELTA = 1e-5
ADD, SPECIAL, REPLACE = (
    dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
    dpa.NeighboringRelation.REPLACE_SPECIAL,
    dpa.NeighboringRelation.REPLACE_ONE,
)


def event(name, *given, **named):
    function = getattr(accounting, name, None)
    if function is None:
        pytest.skip(f"the installed jax_privacy has no {name}")
    return function(*given, **named)


def ours(which, relation=None):
    from jaxgdp.interop.dp_accounting import Accountant

    accountant = Accountant(neighboring_relation=relation or ADD)
    return accountant.compose(which).get_epsilon(DELTA)


def by_distributions(which, relation=None):
    accountant = dpa.pld.PLDAccountant(relation or ADD, value_discretization_interval=1e-3)
    return accountant.compose(which).get_epsilon(DELTA)


def test_dpsgd_event():
    which = event("dpsgd_event", 1.1, 1000, sampling_prob=0.01)
    known = jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 1000), "epsilon", delta=DELTA).epsilon
    assert known.lower <= ours(which) <= known.upper * (1.0 + 1e-12)
    assert math.isclose(ours(which), by_distributions(which), rel_tol=2e-3)


def test_dpsgd_event_by_zcdp_is_refused_where_it_is_sampled():
    which = event("dpsgd_event", 1.1, 10, sampling_prob=0.01, use_zcdp=True)
    with pytest.raises(dpa.UnsupportedEventError, match="ZCDpEvent"):
        ours(which)
    # all records in every step: no sampling is left of it, and ρ-zCDP has an ε of its own
    whole = dpa.SelfComposedDpEvent(dpa.ZCDpEvent(0.5 / 1.1**2), 10)
    rho = 10 * 0.5 / 1.1**2
    assert ours(whole) <= (rho + 2.0 * math.sqrt(rho * math.log(1.0 / DELTA))) * (1.0 + 1e-9)
    # what is ρ-zCDP may be Gaussian noise
    gaussian = jaxgdp.measure(jaxgdp.dpsgd(1.1, 1.0, 10), "epsilon", delta=DELTA).epsilon
    assert ours(whole) >= gaussian.lower


def test_truncated_dpsgd_event():
    cut = event(
        "truncated_dpsgd_event",
        1.1,
        200,
        sampling_prob=0.01,
        num_examples=1000,
        truncated_batch_size=20,
    )
    found, theirs = ours(cut, SPECIAL), by_distributions(cut, SPECIAL)
    # no less than without truncation, and no more than their pair says
    plain = jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 200), "epsilon", delta=DELTA).epsilon
    assert plain.lower <= found <= theirs * 1.001


@pytest.mark.parametrize("replace", [False, True])
def test_fixed_dpsgd_event(replace):
    which = event("fixed_dpsgd_event", 2.0, 50, dataset_size=1000, batch_size=20, replace=replace)
    if replace:
        with pytest.raises(dpa.UnsupportedEventError, match="SampledWithReplacement"):
            ours(which, REPLACE)
        return
    # (their Rényi accountant counts a replacement as one move; their loss distributions as two)
    twice = event("fixed_dpsgd_event", 1.0, 50, dataset_size=1000, batch_size=20)
    rdp = dpa.rdp.RdpAccountant(neighboring_relation=REPLACE)
    assert 0.0 < ours(which, REPLACE) <= rdp.compose(twice).get_epsilon(DELTA) * (1.0 + 1e-9)


def test_amplified_bandmf_event():
    which = event("amplified_bandmf_event", 1.3, 101, num_bands=4, sampling_prob=0.08)
    known = jaxgdp.measure(jaxgdp.dpsgd(1.3, 0.08, 26), "epsilon", delta=DELTA).epsilon
    assert known.lower <= ours(which) <= known.upper * (1.0 + 1e-12)


def test_truncated_amplified_bandmf_event():
    which = event(
        "truncated_amplified_bandmf_event",
        1.3,
        101,
        num_bands=4,
        sampling_prob=0.08,
        largest_group_size=250,
        truncated_batch_size=30,
    )
    one = dpa.dp_event.TruncatedSubsampledGaussianDpEvent(250, 0.08, 30, 1.3)
    same = dpa.SelfComposedDpEvent(one, 26)
    assert ours(which, SPECIAL) == ours(same, SPECIAL)
    assert ours(which, SPECIAL) <= by_distributions(which, SPECIAL) * 1.001


@pytest.fixture
def plans():
    return pytest.importorskip(
        "jax_privacy.execution_plan", reason="the installed jax_privacy has no such plans"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"strategy": np.array([1.0])},
        {"column_normalize": True},
        {"truncated_batch_size": 60, "num_examples": 1000},
        {"num_examples": 1000},
    ],
    ids=["three bands", "one band", "normalized", "truncated", "known size"],
)
def test_banded_configuration_is_counted_as_its_plan_is(plans, fields):
    from jaxgdp.interop import jax_privacy

    given = {
        "iterations": 102,
        "expected_participations": 5.0,
        "strategy": np.array([1.0, 0.5, 0.25]),
        "noise_multiplier": 2.0,
    }
    config = plans.BandMFConfig(**(given | fields))
    plan = config.make()
    own = jaxgdp.measure(jax_privacy.from_band_config(config), "epsilon", delta=DELTA).epsilon
    # their event supposes that every column has the largest norm
    event = jaxgdp.measure(jax_privacy.from_plan(plan), "epsilon", delta=DELTA).epsilon
    assert own.lower <= event.upper * (1.0 + 1e-9)
    theirs = by_distributions(plan.dp_event, plan.neighboring_relation)
    assert event.lower <= theirs * (1.0 + 1e-9)
    assert event.upper <= theirs * 1.01


@pytest.mark.slow
def test_banded_configuration_is_calibrated_by_our_accountant(plans):
    from jaxgdp.interop import jax_privacy

    config = plans.BandMFConfig(
        iterations=102, expected_participations=5.0, strategy=np.array([1.0, 0.5, 0.25])
    ).calibrate(epsilon=2.0, delta=DELTA, accountant_fn=jax_privacy.accountant_fn)
    found = jaxgdp.measure(jax_privacy.from_plan(config.make()), "epsilon", delta=DELTA).epsilon
    assert 1.99 < found.lower <= found.upper <= 2.0
