"""Deployments: budgets exact to the fraction, every query's σ composed, published totals met."""

from fractions import Fraction

import numpy as np
import pytest

import jaxgdp
from jaxgdp import conversions, deployments, gdp
from jaxgdp.deployments.census import query_budgets, total_budget

CENSUS = {
    # name: exact ρ, number of queries, μ of a Gaussian of that budget, ε at δ = 1e-10 of it, ρ +
    # 2√(ρ log 1/δ)
    "census_2020_pl94_persons": (Fraction(542, 339) ** 2, 65, 2.26107, 16.4652, 17.9002),
    "census_2020_pl94_units": (Fraction(3379, 12343) ** 2, 6, 0.38715, 2.3632, 2.7022),
    "census_2020_dhc_persons": (Fraction(49622, 10_000), 80, 3.15030, 24.4565, 26.3406),
    "census_2020_dhc_housing": (Fraction(77005, 10_000), 80, 3.92441, 32.0720, 34.3321),
    "census_2022_august": (Fraction(365, 100), 80, 2.70185, 20.3247, 21.9851),
}
LEVEL_BUDGETS = {
    "census_2020_dhc_persons": (0.0949, 1.2987, 0.496, 0.6214, 0.6214, 1.3888, 0.43, 0.011),
    "census_2020_dhc_housing": (0.4834, 1.7012, 1.4454, 0.9712, 0.9712, 1.6861, 0.426, 0.016),
    "census_2022_august": tuple(
        3.65 * s for s in (0.02, 0.274, 0.085, 0.131, 0.131, 0.238, 0.118, 0.003)
    ),
}


@pytest.mark.parametrize("name", CENSUS)
def test_census_budgets(name):
    rho, queries, mu, eps, simple = CENSUS[name]
    assert total_budget(name) == rho
    table = deployments.about(name)
    share, sigma = table.columns.index("share"), table.columns.index("sigma")
    assert sum(row[share] for row in table.rows) == 1
    assert len(table.rows) == queries and all(row[share] > 0 for row in table.rows)
    assert float(gdp.mu_from_zcdp_of_gaussian(rho=float(rho))) == pytest.approx(mu, abs=6e-6)
    assert float(
        gdp.epsilon(delta=1e-10, mu=gdp.mu_from_zcdp_of_gaussian(rho=float(rho)))
    ) == pytest.approx(eps, abs=6e-5)
    assert float(
        conversions.simple_epsilon_from_zcdp(delta=1e-10, rho=float(rho))
    ) == pytest.approx(simple, abs=6e-5)

    # what is composed: every query's own noise, as often as a record touches its counts
    mechanism = deployments.mechanism(name)
    assert mechanism.shape == () and all(
        isinstance(m, jaxgdp.DiscreteGaussian) for m in mechanism.mechanisms
    )
    uses: dict[float, int] = {}
    for row in table.rows:
        uses[row[sigma]] = uses.get(row[sigma], 0) + row[-1]
    composed = {
        float(m.sigma): int(c) for m, c in zip(mechanism.mechanisms, mechanism.counts, strict=True)
    }
    assert composed == uses
    assert sum(c / (2.0 * s * s) for s, c in composed.items()) == pytest.approx(
        float(rho), rel=1e-13
    )
    assert sum(composed.values()) == queries * (1 if name == "census_2022_august" else 2)


@pytest.mark.parametrize("name", LEVEL_BUDGETS)
def test_census_levels(name):
    levels: dict[str, Fraction] = {}
    for level, _, rho in query_budgets(name):
        levels[level] = levels.get(level, Fraction(0)) + rho
    assert [float(rho) for rho in levels.values()] == pytest.approx(LEVEL_BUDGETS[name], rel=1e-12)


def test_single_queries_by_hand():
    rows = {row[:2]: row for row in deployments.about("census_2020_pl94_persons").rows}
    rho = Fraction(542, 339) ** 2
    assert rows["State", "total"][2] == rho * Fraction(1440, 4099) * Fraction(3773, 4097)
    assert rows["Block", "detailed"][4] == pytest.approx(
        (float(rho) * 165 / 4099 * 3945 / 4097) ** -0.5, rel=1e-14
    )
    # two counts of variance σ² each cost 2/(2σ²), the query's budget
    assert rows["Tract", "hispanic * cenrace"][4] ** -2 == pytest.approx(
        float(rows["Tract", "hispanic * cenrace"][2])
    )
    assert ("US", "total") not in rows
    august = {row[:2]: row for row in deployments.about("census_2022_august").rows}
    assert august["US", "query 1"][4] == pytest.approx((10 / (2 * 3.65 * 0.02)) ** 0.5, rel=1e-14)


def test_functions_and_names_agree():
    for name in CENSUS:
        by_name, by_function = deployments.mechanism(name), getattr(deployments, name)()
        assert [float(m.sigma) for m in by_name.mechanisms] == [
            float(m.sigma) for m in by_function.mechanisms
        ]
        assert [int(c) for c in by_name.counts] == [int(c) for c in by_function.counts]
    assert (
        set(CENSUS) < set(deployments.names())
        and len(set(deployments.names())) == len(deployments.names()) == 15
    )
    for name in deployments.names():
        assert deployments.mechanism(name).shape == ()


def test_de_et_al_2022():
    table4, table5 = deployments.de_et_al_2022(table=4), deployments.de_et_al_2022(table=5)
    assert table4.shape == (6,) and table5.shape == (4,)
    np.testing.assert_array_equal(
        table4.mechanisms[0].noise_multiplier, [40.0, 24.0, 20.0, 16.0, 12.0, 9.4]
    )
    np.testing.assert_array_equal(table4.counts[0], [906, 1156, 1656, 1765, 2007, 2000])
    np.testing.assert_array_equal(table5.mechanisms[0].noise_multiplier, [21.1, 15.8, 12.0, 9.4])
    np.testing.assert_array_equal(table5.counts[0], [250, 500, 1000, 2000])
    one = deployments.de_et_al_2022(table=4, epsilon=8)
    assert float(one.mechanisms[0].sampling_prob) == 16384 / 50_000 and float(one.counts[0]) == 2000
    as_printed = deployments.de_et_al_2022(epsilon=8.0, dataset_size=60_000)
    assert float(as_printed.mechanisms[0].sampling_prob) == 16384 / 60_000


@pytest.mark.slow
def test_de_et_al_2022_spend_what_they_report():
    """The ε they trained for, at δ = 1e-5 and N = 50,000; their accountant was looser."""
    found = jaxgdp.tradeoff(deployments.de_et_al_2022(table=4), rtol=1e-2).epsilon(delta=1e-5)
    claimed = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
    assert np.all(np.abs(found.midpoint / claimed - 1.0) < 0.1)


def test_table_can_be_read():
    text = str(deployments.about("census_2020_pl94_persons"))
    assert "Abowd" in text and "github.com/uscensusbureau" in text and "hispanic * cenrace" in text
    assert len(text.splitlines()) == 1 + 4 + 1 + 2 + 65
    markdown = deployments.about("census_2020_pl94_persons").to_markdown()
    assert "| State | total |" in markdown and "hispanic \\* cenrace" in markdown
    found = deployments.about("de_et_al_2022_table5_epsilon_2")
    assert dict(zip(found.columns, found.rows[0], strict=True))["num_steps"] == 500
    assert "2204.13650" in found.citation


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (
            lambda: deployments.mechanism("census_2020_pl94_person"),
            "did you mean 'census_2020_pl94_persons'",
        ),
        (
            lambda: deployments.about("nothing at all"),
            "no deployment is called 'nothing at all'; there are census_2020_pl94_persons",
        ),
        (lambda: deployments.about(None), "no deployment is called None"),
        (lambda: deployments.de_et_al_2022(table=3), "table must be one of 4, 5, got 3"),
        (
            lambda: deployments.de_et_al_2022(table=5, epsilon=6.0),
            "epsilon must be one of 1.0, 2.0, 4.0, 8.0, got 6.0",
        ),
        (lambda: deployments.de_et_al_2022(dataset_size=0), "dataset_size must be"),
        (
            lambda: deployments.de_et_al_2022(dataset_size=1000),
            "at least the batch size 16384, got 1000",
        ),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_wrong_shares_are_noticed(monkeypatch):
    from jaxgdp.deployments import census

    data = dict(census.read_data("census_2020_pl94_units"))
    levels = [dict(level) for level in data["level"]]
    monkeypatch.setattr(census, "read_data", lambda name: data | {"level": levels})
    assert len(census.query_budgets("census_2020_pl94_units")) == 6
    levels[0]["share"] = "2/205"
    with pytest.raises(ValueError, match="shares of the levels must sum to 1"):
        census.query_budgets("census_2020_pl94_units")
    levels[0] |= {"share": "1/205", "query_shares": [2]}
    with pytest.raises(ValueError, match="query_shares of level US must sum to 1"):
        census.query_budgets("census_2020_pl94_units")


def test_curve_of_a_release():
    """The discrete Gaussian is as good as the Gaussian: the paper's μ = 2.702, from every query's
    own noise.
    """
    curve = jaxgdp.tradeoff(deployments.census_2022_august())
    mu = curve.mu()
    assert mu.lower <= 2.701853 <= mu.upper and mu.upper == pytest.approx(2.701853, rel=1e-3)
    assert curve.regret().upper < 0.01
    assert curve.epsilon(delta=1e-10).upper <= conversions.epsilon_from_zcdp(delta=1e-10, rho=3.65)
