"""The entry points of gdpnum, riskcal and jax_privacy under their own names and arguments, on the
safe side.
"""

import inspect
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri

import jaxgdp
from jaxgdp.interop import gdpnum, riskcal

DPSGD = {"noise_multiplier": 2.0, "sample_rate": 0.1, "num_steps": 400}


def parameters(function):
    return list(inspect.signature(function).parameters)


def test_functions_of_others_have_their_arguments():
    three = ["noise_multiplier", "sample_rate", "num_steps"]
    assert parameters(gdpnum.get_mu_and_regret_for_dpsgd) == [*three, "grid_step", "err"]
    assert parameters(gdpnum.get_worst_case_regret) == ["alphas", "betas", "mu", "tol"]
    assert parameters(riskcal.get_beta_for_dpsgd) == [*three, "alpha", "grid_step"]
    assert parameters(riskcal.get_advantage_for_dpsgd) == [*three, "grid_step"]
    searched = ["sample_rate", "num_steps", "grid_step"]
    assert parameters(riskcal.find_noise_multiplier_for_advantage)[:4] == ["advantage", *searched]
    assert parameters(riskcal.find_noise_multiplier_for_err_rates)[:5] == [
        "alpha",
        "beta",
        *searched,
    ]


@pytest.mark.parametrize("name", ["get_mu_and_regret_for_dpsgd", "get_worst_case_regret"])
def test_gdpnum_s_own_signatures(name):
    theirs = pytest.importorskip("gdpnum", reason="gdpnum is not installed")
    assert parameters(getattr(gdpnum, name)) == parameters(
        getattr(theirs, name, None) or getattr(theirs.dpsgd, name)
    )


def test_mu_regret_beta_and_advantage_of_dpsgd_are_the_safe_sides():
    mu, regret = gdpnum.get_mu_and_regret_for_dpsgd(**DPSGD, grid_step=1e-3, err=1e-8)
    alpha = np.array([0.0, 1e-3, 0.1, 1.0])
    beta = riskcal.get_beta_for_dpsgd(**DPSGD, alpha=alpha)
    advantage = riskcal.get_advantage_for_dpsgd(**DPSGD)
    found = jaxgdp.measure(
        jaxgdp.dpsgd(2.0, 0.1, 400),
        ("mu", "regret", "beta", "advantage"),
        fpr_floor=1e-8,
        fpr=alpha[1:3],
    ).brackets
    assert np.allclose([mu, regret], [found["mu"].upper[0], found["regret"].upper[0]], rtol=1e-4)
    assert (
        found["mu"].lower[0] <= mu
        and found["regret"].lower[0] <= regret
        and found["advantage"].lower[0] <= advantage
    )
    assert np.allclose(beta, [1.0, *found["beta"].lower, 0.0], rtol=1e-3)
    assert np.isclose(advantage, found["advantage"].upper[0], rtol=1e-3)
    # attacks on the mechanism do at most as well as we say, and nearly so
    assert np.all(beta[1:3] <= found["beta"].upper) and np.allclose(
        beta[1:3], found["beta"].upper, rtol=5e-3
    )
    assert isinstance(riskcal.get_beta_for_dpsgd(**DPSGD, alpha=0.1), float)


def test_regret_between_breakpoints_is_not_missed():
    # randomized response at ε = 1: breakpoints alone give 0
    p = 1.0 / (1.0 + math.e)
    mu = float(jaxgdp.gdp.mu_from_pure_dp(epsilon=1.0))
    assert math.isclose(
        gdpnum.get_worst_case_regret([0.0, p, 1.0], [1.0, p, 0.0], mu), 0.0575464, abs_tol=5e-8
    )
    # the Gaussian curve itself, finely drawn, and by definition for a coarse one
    alpha = np.linspace(0.0, 1.0, 20_001)
    assert gdpnum.get_worst_case_regret(alpha, jaxgdp.gdp.beta(fpr=alpha, mu=1.0), 1.0) < 1e-4
    alphas, betas = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 0.6, 0.2, 0.0])
    delta = gdpnum.get_worst_case_regret(alphas, betas, 1.5)
    x = np.linspace(0.0, 1.0, 200_001)
    holds = lambda d: np.all(
        np.interp(np.minimum(x + d, 1.0), alphas, betas) - d
        <= jaxgdp.gdp.beta(fpr=x, mu=1.5) + 1e-12
    )
    assert holds(delta + 1e-6) and not holds(delta - 1e-4)
    with pytest.raises(ValueError, match="out of order"):
        gdpnum.get_worst_case_regret([0.0, 1.0], [0.0, 1.0], 1.0)


def test_gaussian_calibration_is_the_closed_form_and_never_below_it():
    exact = 1.0 / (2.0 * ndtri((0.3 + 1.0) / 2.0))
    found = riskcal.find_noise_multiplier_for_advantage(0.3, sample_rate=1.0, num_steps=1)
    assert exact * (1 - 1e-12) <= found < exact * 1.002
    exact = 1.0 / (ndtri(1.0 - 0.05) - ndtri(0.7))
    found = riskcal.find_noise_multiplier_for_err_rates(
        alpha=0.05, beta=0.7, sample_rate=1.0, num_steps=1
    )
    assert exact * (1 - 1e-12) <= found < exact * 1.002
    assert riskcal.find_noise_multiplier_for_advantage(0.3, 1.0, 1, noise_min=20.0) == 20.0
    with pytest.raises(ValueError, match="noise_max must be at least"):
        riskcal.find_noise_multiplier_for_advantage(0.001, 1.0, 1)
    with pytest.raises(ValueError, match="noise_max"):
        riskcal.find_noise_multiplier_for_advantage(0.3, 1.0, 1, noise_min=2.0, noise_max=1.0)
    with pytest.raises(ValueError, match="advantage"):
        riskcal.find_noise_multiplier_for_advantage(-0.1, 1.0, 1)


def test_dpsgd_calibration_meets_its_target():
    sigma = riskcal.find_noise_multiplier_for_err_rates(
        alpha=0.01, beta=0.8, sample_rate=0.1, num_steps=400
    )
    assert riskcal.get_beta_for_dpsgd(sigma, 0.1, 400, alpha=0.01) >= 0.8
    assert riskcal.get_beta_for_dpsgd(0.99 * sigma, 0.1, 400, alpha=0.01) < 0.8


def test_conversions_keep_riskcal_s_argument_order():
    assert math.isclose(riskcal.get_beta_from_gdp(1.0, 0.05), jaxgdp.gdp.beta(fpr=0.05, mu=1.0))
    assert math.isclose(
        riskcal.get_bayes_risk_from_gdp(1.0, 0.5), 0.5 * (1.0 - jaxgdp.gdp.advantage(mu=1.0))
    )
    assert math.isclose(
        riskcal.get_beta_from_adp(1.0, 0.001, 0.8), math.exp(-1) * (1 - 0.001 - 0.8)
    )
    assert math.isclose(riskcal.get_advantage_from_adp(0.0, 0.001), 0.001)
    assert math.isclose(riskcal.get_advantage_from_gdp(1.0), jaxgdp.gdp.advantage(mu=1.0))
    # weaker knowledge of a Gaussian never promises more than the Gaussian keeps
    assert riskcal.get_beta_from_zcdp(0.5, 0.1) <= jaxgdp.gdp.beta(fpr=0.1, mu=1.0)
    assert riskcal.get_beta_from_rdp(epsilon=1.0, alpha=0.1, order=2.0) <= jaxgdp.gdp.beta(
        fpr=0.1, mu=1.0
    )
    assert riskcal.get_advantage_from_zcdp(0.5) >= jaxgdp.gdp.advantage(mu=1.0)
    assert riskcal.get_epsilon_from_err_rates(0.0, 0.5, 0.5) == 0.0
    assert riskcal.get_epsilon_from_err_rates(0.1, 0.0, 0.5) == math.inf


def test_distributions_of_dp_accounting_with_mass_at_infinity():
    pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
    from dp_accounting.pld import common, privacy_loss_distribution

    pld = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(1.0, 0.1), 1e-2
    )
    converter = gdpnum.PLDConverter(pld)
    epsilon, delta = 1.0, 0.1
    alpha = np.array([0.0, 1e-6, 0.05, 0.5])
    exact = np.maximum.reduce(
        [1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha), 0 * alpha]
    )
    beta = converter.get_beta(alpha)
    assert np.all(beta <= exact) and np.allclose(beta, exact, rtol=1e-6)
    assert np.allclose(riskcal.get_beta_from_pld(pld, alpha[2:]), exact[2:], rtol=1e-6)
    # at FPR 1e-10 a tenth of all records is given away: Φ⁻¹(TPR) − Φ⁻¹(FPR), where gdpnum has
    # 1.3995
    assert math.isclose(
        converter.get_mu(1e-10),
        ndtri(delta + math.exp(epsilon) * 1e-10) - ndtri(1e-10),
        rel_tol=1e-6,
    )
    assert math.isclose(
        riskcal.get_advantage_from_pld(pld), 1 - 2 * (1 - delta) / (1 + math.e), rel_tol=1e-6
    )
    assert math.isclose(
        riskcal.get_bayes_risk_from_pld(pld, 0.5), (1 - delta) / (1 + math.e), rel_tol=1e-6
    )
    assert np.allclose(riskcal.get_bayes_risk_from_pld(pld, [0.0, 1.0]), 0.0)


def band_config(**fields):
    given = {
        "iterations": 101,
        "expected_participations": 5.0,
        "strategy": [1.0, 0.5, 0.25],
        "noise_multiplier": 2.0,
        "truncated_batch_size": None,
        "num_examples": None,
        "column_normalize": False,
    }
    return SimpleNamespace(**(given | fields))


def test_banded_configurations_of_jax_privacy():
    dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
    from jaxgdp.interop import jax_privacy

    rate, norm = 5.0 * 3 / 101, math.sqrt(1.0 + 0.25 + 0.0625)
    own = jaxgdp.mu(jax_privacy.from_band_config(band_config()))
    # all columns but the last two have the largest norm: against it the noise is the multiplier,
    # 34 rounds of the first group at most (two of the last columns are smaller), 33 at least
    most = jaxgdp.mu(jaxgdp.dpsgd(2.0, rate, 34))
    least = jaxgdp.mu(jaxgdp.dpsgd(2.0, rate, 33))
    assert least.lower <= own.upper and own.lower <= most.upper
    same = jax_privacy.from_band_config(band_config(column_normalize=True))
    (part,), (count,) = same.mechanisms, same.counts
    assert math.isclose(float(part.noise_multiplier), 2.0 * norm, rel_tol=1e-15)
    assert (float(part.sampling_prob), int(count)) == (rate, 34)
    cut = jax_privacy.from_band_config(band_config(truncated_batch_size=60, num_examples=1000))
    one = dpa.dp_event.TruncatedSubsampledGaussianDpEvent(334, rate, 60, 2.0)
    from jaxgdp.interop.dp_accounting import from_event

    exact = from_event(dpa.SelfComposedDpEvent(one, 34), "REPLACE_SPECIAL")
    assert [type(m) for m in cut.mechanisms] == [type(m) for m in exact.mechanisms]
    assert jaxgdp.mu(cut) == jaxgdp.mu(exact)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"noise_multiplier": None}, "noise_multiplier of config must be set"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be"),
        ({"expected_participations": 34.0}, "expected_participations must be"),
        ({"expected_participations": 0.0}, "expected_participations must be"),
        ({"strategy": [[1.0]]}, "strategy must hold"),
        ({"truncated_batch_size": 10}, "num_examples of config must be set"),
        ({"truncated_batch_size": 0, "num_examples": 50}, "truncated_batch_size must be"),
        (
            {"truncated_batch_size": 9, "num_examples": 50, "column_normalize": True,
             "strategy": [0.5]},
            "strategy must have a norm",
        ),
    ],
)  # fmt: skip
def test_bad_banded_configurations_are_refused_by_name(fields, named):
    pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
    from jaxgdp.interop import jax_privacy

    with pytest.raises(ValueError, match=named):
        jax_privacy.from_band_config(band_config(**fields))
    with pytest.raises(ValueError, match="iterations is missing in object"):
        jax_privacy.from_band_config(object())


def test_plans_of_jax_privacy():
    dpa = pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")
    from jaxgdp.interop import jax_privacy

    step = dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(2.0))
    plan = SimpleNamespace(dp_event=dpa.SelfComposedDpEvent(step, 400))
    composition = jax_privacy.from_plan(plan)
    (mechanism,), (count,) = composition.mechanisms, composition.counts
    assert (float(mechanism.noise_multiplier), float(mechanism.sampling_prob), int(count)) == (
        2.0,
        0.1,
        400,
    )
    replaced = SimpleNamespace(
        dp_event=plan.dp_event, neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE
    )
    with pytest.raises(ValueError, match="PoissonSampledDpEvent"):
        jax_privacy.from_plan(replaced)
    with pytest.raises(ValueError, match="dp_event"):
        jax_privacy.from_plan(object())
    for relation in dpa.NeighboringRelation:
        accountant = jax_privacy.accountant_fn(relation)
        assert (
            isinstance(accountant, dpa.PrivacyAccountant)
            and accountant.neighboring_relation is relation
        )
    with pytest.raises(ValueError, match="neighboring_relation"):
        jax_privacy.accountant_fn("sideways")


@pytest.mark.slow
def test_real_plan_of_jax_privacy_calibrated_by_our_accountant():
    plans = pytest.importorskip(
        "jax_privacy.experimental.execution_plan", reason="jax_privacy is not installed"
    )
    dpa = pytest.importorskip("dp_accounting")
    from jaxgdp.interop import jax_privacy

    budget = {"epsilon": 2.0, "delta": 1e-5}
    build = {
        "num_bands": 1,
        "iterations": 200,
        "strategy_optimization_steps": 2,
        "sampling_prob": 0.1,
    }
    config = plans.BandMFExecutionPlanConfig
    if hasattr(config, "calibrate"):
        plan = (
            config.default(**build)
            .calibrate(**budget, accountant_fn=jax_privacy.accountant_fn)
            .make()
        )
    else:
        accountant = jax_privacy.accountant_fn(dpa.NeighboringRelation.REPLACE_SPECIAL)
        plan = config.default(**build, **budget, accountant=accountant).plan
    found = jaxgdp.measure(jax_privacy.from_plan(plan), "epsilon", delta=1e-5).brackets["epsilon"]
    assert 1.995 < found.lower <= found.upper <= 2.0
