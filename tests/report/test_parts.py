"""A release by its parts: budgets become noise on the safe side; ρ stands beside the mechanisms."""

import math
from fractions import Fraction

import pytest

import jaxgdp
from jaxgdp import conversions, spec
from jaxgdp.report import Report, differences, recompute
from jaxgdp.report.parts import rho_of

LEVELS = {"nation": "1/5", "counties": "3/10", "blocks": "1/2"}
CONTENT = {
    "title": "Three levels",
    "rho": 1,
    "rtol": 1e-2,
    "mechanism": [
        {"type": "DiscreteGaussian", "name": name, "share": share} for name, share in LEVELS.items()
    ],
}


@pytest.fixture(scope="module")
def report():
    return jaxgdp.report(spec.from_dict(CONTENT))


def test_shares_become_noise_that_costs_no_less(report):
    for part, share in zip(report.parts, LEVELS.values(), strict=True):
        exact = Fraction(share)
        assert Fraction(part.sigma) ** 2 <= 1 / (2 * exact)
        assert part.sigma == pytest.approx(math.sqrt(1 / (2 * exact)), rel=1e-14)
        assert Fraction(part.rho) >= exact and part.rho == pytest.approx(float(exact), rel=1e-12)
        assert part.share == float(exact)
        # the discrete Gaussian is about 1/σ-GDP
        own = (1.0 + 1.0 / (24.0 * part.sigma**2)) / part.sigma
        assert part.mu.upper == pytest.approx(own, rel=2e-2)
    assert Fraction(report.rho) >= 1 and report.rho == pytest.approx(1.0, rel=1e-12)


def test_rho_alone_says_more_than_the_mechanisms(report):
    alone = conversions.epsilon_from_zcdp(delta=1e-10, rho=1.0)
    assert dict(report.epsilons)[1e-10].upper < alone
    line = next(line for line in str(report).splitlines() if line.startswith("rho "))
    assert line.startswith("rho        rho <= 1; ")
    assert "at delta = 1e-10, rho alone says epsilon <= 10.04, the mechanisms say 9.6" in line
    assert "| counties | 30 % |" in report.to_markdown() and "blocks" in report.to_html()


def test_parts_are_stored_and_computed_again(report):
    assert Report.from_dict(report.to_dict()) == report
    assert differences(report, recompute(report)) == []
    assert report.spec["mechanism"] == CONTENT["mechanism"] and report.spec["rho"] == 1


def test_registry_entry_states_rho(report):
    entry = report.to_registry()["deployment"]
    assert entry["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    stated = entry["privacy_loss"]["privacy_parameters"]
    assert stated["rho"] == 1.0 and stated["delta"] == 1e-5
    assert stated["epsilon"] >= conversions.epsilon_from_zcdp(delta=1e-5, rho=1.0)
    smaller = f"ε at δ = 1e-05: {report['epsilon'][1e-5].upper:.3f}"[:-1]
    assert smaller in entry["privacy_loss"]["privacy_parameters_details"]
    plain = jaxgdp.report(jaxgdp.dpsgd(2.0, 0.1, 10), rtol=1e-2).to_registry()["deployment"]
    assert plain["dp_variant"]["variant_name"] == "Approximate DP"
    assert "rho" not in plain["privacy_loss"]["privacy_parameters"]


def test_uses_share_the_budget_of_their_part():
    entry = {"type": "Gaussian", "rho": 0.5, "count": 4}
    (part,) = spec.from_dict({"mechanism": [entry]}).parts
    assert float(part.mechanism.noise_multiplier) == pytest.approx(2.0, rel=1e-14)
    assert rho_of(part.mechanism, 4) == pytest.approx(0.5, rel=1e-12)
    assert rho_of(jaxgdp.Laplace(1.0)) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 0}, "rho must be a finite number > 0, got 0"),
        ({"mechanism": [{"type": "Laplace", "scale": 1.0, "rho": 1}]}, "rho is for Gaussian and"),
        ({"mechanism": [{"type": "Gaussian", "noise_multiplier": 1.0, "rho": 1}]}, "not both"),
        ({"mechanism": [{"type": "Gaussian"}]}, "needs the field 'noise_multiplier', or rho"),
        ({"mechanism": [{"type": "Gaussian", "share": 1.5}]}, "share must be in (0, 1], got 1.5"),
        ({"mechanism": [{"type": "Gaussian", "share": 0.7}] * 2}, "must sum to at most 1, got 1.4"),
        ({"mechanism": [{"type": "Gaussian", "noise_multiplier": 1.0}]}, "give parts a share"),
        ({"run": {}}, "only one of these"),
    ],
)
def test_bad_budgets_are_refused_by_name(change, message):
    with pytest.raises(ValueError) as caught:
        spec.from_dict(CONTENT | change)
    assert message in str(caught.value)


def test_bad_runs_in_files_are_refused_by_name():
    for run, message in (
        ({"noise_multiplier": 1}, "run needs the key 'dataset_size'"),
        ({"sigma": 1}, "run: unknown key 'sigma'; did you mean 'noise_multiplier'?"),
        (3, "run must be a table of keys, got 3"),
    ):
        with pytest.raises(ValueError) as caught:
            spec.from_dict({"run": run})
        assert message in str(caught.value)
