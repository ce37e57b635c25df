"""Records of OpenDP's registry of deployments (MIT, © 2025 OpenDP; see ``data/registry/LICENSE``):
read, bracketed, written.
"""

import importlib.util
import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

import jaxgdp
from jaxgdp import conversions, gdp
from jaxgdp.bracket import Bracket
from jaxgdp.interop import registry
from jaxgdp.interop.registry.claims import parts, plain, printed
from jaxgdp.interop.registry.implied import from_epsilon_delta, from_rho

yaml = pytest.importorskip("yaml")

DATA = Path(__file__).parent / "data" / "registry"
FILES = sorted(path for path in DATA.glob("*.yaml") if path.name != "deployments-schema.yaml")
SCHEMA = yaml.safe_load((DATA / "deployments-schema.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def records():
    return {path.stem: registry.read(path) for path in FILES}


def _check(value, schema, place="record"):
    """A validator of the part of JSON Schema that the registry's schema uses; a list of what is
    wrong.
    """
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}
    allowed = schema.get("type")
    wrong = []
    if allowed is not None:
        names = allowed if isinstance(allowed, list) else [allowed]
        if not any(isinstance(value, kinds[name]) for name in names):
            wrong.append(f"{place}: not {names}")
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{place}: {value!r}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if schema.get("additionalProperties") is False:
            wrong += [f"{place}.{key}: unknown" for key in value if key not in known]
        wrong += [
            f"{place}.{key}: missing" for key in schema.get("required", ()) if key not in value
        ]
        for key, inner in value.items():
            wrong += _check(inner, known.get(key, {}), f"{place}.{key}")
    if isinstance(value, list):
        wrong += [] if len(value) >= schema.get("minItems", 0) else [f"{place}: too short"]
        wrong += [line for each in value for line in _check(each, schema.get("items", {}), place)]
    return wrong


def _same_schema(branch, schema, place=""):
    assert set(branch) == set(schema["properties"]), place
    assert set(registry.REQUIRED.get(place, ())) == set(schema.get("required", ())), place
    assert schema["additionalProperties"] is False
    for key, inner in branch.items():
        theirs = schema["properties"][key]
        if isinstance(inner, dict):
            _same_schema(inner, theirs, f"{place}.{key}".strip("."))
        else:
            assert inner.one_of == tuple(theirs.get("enum", ())), key
            assert inner.tier == theirs.get("tier", 0), key
            kind = {
                "text": "string",
                "texts": "array",
                "whole": "integer",
                "number": "number",
                "date": "string",
            }.get(inner.kind)
            assert theirs.get("type") in (kind, ["number", "string"]), key


def test_schema_is_theirs_key_by_key():
    _same_schema(registry.SCHEMA, SCHEMA)
    assert registry.VARIANTS == (
        "Pure DP",
        "Approximate DP",
        "Zero-concentrated DP",
        "Renyi DP",
        "Custom",
    )


def test_every_public_record_is_read(records):
    assert len(records) == 41
    numeric = {name for name, record in records.items() if record.claims}
    for path in FILES:
        loss = registry.load(path)["deployment"]["privacy_loss"]
        numbers = [
            v for v in (loss.get("privacy_parameters") or {}).values() if isinstance(v, float)
        ]
        assert (path.stem in numeric) == bool(numbers), path.stem
    for record in records.values():
        assert bool(record.brackets) == (
            bool(record.claims) and record.slug != records["uber"].slug
        ), record.name
        assert all(
            isinstance(b, Bracket) and 0.0 <= b.lower <= b.upper < np.inf
            for b in record.brackets.values()
        )
        assert bool(record.assumptions) == bool(record.claims)
    # (their own check of the records is stricter about nothing that these break)
    assert {name for name, record in records.items() if record.problems} == {
        path.stem for path in FILES if _check(registry.load(path), SCHEMA)
    }


def test_record_without_numbers_has_none(records):
    empty = records["korean_statistics_datahub"]
    assert (
        empty.claims == ()
        and empty.brackets == {}
        and empty.assumptions == ()
        and empty.disagreements == ()
    )
    assert "no number is stated" in str(empty)
    # δ as a formula of n determines nothing
    uber = records["uber"]
    assert (
        uber.brackets == {}
        and uber.claims[0].epsilon.value == 0.01
        and "formula" in uber.assumptions[-1]
    )


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1.0, 0.0),
        (0.01, 0.0),
        (8.0, 1e-6),
        (0.66, 2.1e-29),
        (12.0, 5.8e-6),
        (0.0, 0.01),
        (2.0, 0.3),
        (34.9, 7e-9),
    ],
)
def test_epsilon_delta_against_fifty_digits(epsilon, delta):
    """The trade-off curve of the most revealing (ε, δ)-DP mechanism, looked at on a grid in 50
    digits.
    """
    found = from_epsilon_delta(epsilon, delta, 1e-3, 1e-10)
    with mpmath.workdps(50):
        e, d = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(delta)
        beta = lambda a: max(0, 1 - d - e * a, (1 - d - a) / e)
        corner = (1 - d) / (1 + e)
        normal = lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1) if p > 1e-30 else -mpmath.inf
        floor = min(mpmath.mpf("1e-10"), corner)
        grid = [floor * (corner / floor) ** (mpmath.mpf(k) / 60) for k in range(61)]
        points = [normal(1 - a) - normal(beta(a)) for a in grid]
        exact = {
            "mu": max(points),
            "advantage": 1 - 2 * corner,
            "tpr": 1 - beta(mpmath.mpf("1e-3")),
        }
    for name, value in exact.items():
        assert float(value) * (1 - 1e-8) <= found[name].upper and found[name].lower <= float(
            value
        ) * (1 + 1e-8), name
        assert found[name].upper - found[name].lower <= 1e-8 * found[name].upper + 1e-15
    # another way: the library's own pair
    if epsilon <= 12.0 and epsilon > 0.0:
        pair = jaxgdp.ApproximateDP(epsilon, delta) if delta else jaxgdp.PureDP(epsilon)
        curve = jaxgdp.tradeoff(pair)
        for name, other in {
            "mu": curve.mu(1e-10),
            "advantage": curve.advantage(),
            "tpr": curve.tpr(1e-3),
        }.items():
            assert found[name].lower <= other.upper and other.lower <= found[name].upper, name


def test_approximate_mu_holds_at_every_rate():
    """f(α) ≥ (1 − δ)·f_μ(α/(1 − δ)), with equality at the corner."""
    epsilon, delta = 2.0, 0.05
    mu = from_epsilon_delta(epsilon, delta, 1e-3, 1e-10)["approximate_mu"]
    corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
    alpha = np.append(np.geomspace(1e-12, 1.0 - delta, 200), corner)
    f = conversions.beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=delta)
    assert np.all(
        f
        >= (1.0 - delta) * gdp.beta(fpr=np.minimum(alpha / (1.0 - delta), 1.0), mu=mu.upper) - 1e-12
    )
    assert f[-1] < (1.0 - delta) * gdp.beta(fpr=corner / (1.0 - delta), mu=0.999 * mu.lower)


@pytest.mark.parametrize("rho", [0.0052, 0.81, 15.29])
def test_rho_between_a_gaussian_and_its_renyi_divergences(rho):
    found = from_rho(rho, 1e-3, 1e-10)
    mu = np.sqrt(2.0 * rho)
    assert found["mu"].lower == pytest.approx(mu, rel=1e-8) and found["mu"].lower <= mu
    assert found["tpr"].lower <= gdp.tpr(fpr=1e-3, mu=mu) and found[
        "advantage"
    ].lower <= gdp.advantage(mu=mu)
    # every curve that ρ allows lies above the Gaussian one of the upper μ, above the floor
    alpha = np.geomspace(1e-10, 0.5 * (1.0 - conversions.advantage_from_zcdp(rho=rho)), 399)
    beta = conversions.beta_from_zcdp(fpr=alpha, rho=rho)
    assert np.all(gdp.beta(fpr=alpha, mu=found["mu"].upper) <= beta)
    # and the upper μ is not far above what those curves need
    assert found["mu"].upper <= 1.005 * np.max(-ndtri(alpha) - ndtri(beta))


def test_claims_of_the_census_records(records):
    record = records["census_redistricting_data"]
    assert [claim.stated for claim in record.claims] == [
        "ρ = 2.63",
        "ε = 17.14, δ = 1e-10, ρ = 2.56",
        "ε = 2.47, δ = 1e-10, ρ = 0.07",
    ]
    assert [claim.label for claim in record.claims][1:] == ["Person Tables", "Housing Unit Tables"]
    assert record.disagreements == ()
    assert any("one record replaced by another" in line for line in record.assumptions)
    assert record.claims[1].brackets["mu"].lower == pytest.approx(np.sqrt(2 * 2.56), rel=1e-8)


def test_disagreements(records):
    said = {name: record.disagreements for name, record in records.items() if record.disagreements}
    marks = {
        "apple_iconic_scenes_photo_selections_2023": ["pure DP, which has δ = 0, but δ = 1.5e-07"],
        "census_demographic_and_housing": [
            "ρ = 15.29 is stated for what adds up to 4.96 + 7.7 = 12.66",
            (
                "Person Tables: ε = 26.34 at δ = 1e-10 beside ρ = 4.96 is that of the simple"
                " conversion"
            ),
            (
                "Housing Unit Tables: ε = 34.33 at δ = 1e-10 beside ρ = 7.7 is that of the simple"
                " conversion"
            ),
        ],
        "covid19_search_trends_symptoms": [
            "ε = 0.042 is stated for what adds up to 0.0023 + 0.0047 + 0.014 = 0.021"
        ],
        "recurve_energy_dp": ["in the text ε = 0.843", "in the text ε = 6.8"],
        "uber": ["no number is stated for δ"],
        "user_url_privacy": ["it is that of the μ = 0.376 of the text"],
        "wikimedia_russian_editor_activity_statistics_2023": [
            "ε = 0.9 is stated for noise of scale 10 and sensitivity 1"
        ],
    }
    assert set(said) == set(marks)
    for name, lines in marks.items():
        assert len(said[name]) == len(lines), said[name]
        assert all(mark in line for mark, line in zip(lines, said[name], strict=True)), said[name]


def test_census_discrepancies_are_explained():
    """Printed ε are conversions of ρ: the optimal one for the redistricting data, the simple one
    for the DHC, whose ρ holds both files.
    """
    total = {
        name: float(jaxgdp.deployments.census.total_budget(f"census_2020_{name}"))
        for name in ("pl94_persons", "pl94_units")
    }
    dhc = {
        name: float(jaxgdp.deployments.census.total_budget(f"census_2020_{name}"))
        for name in ("dhc_persons", "dhc_housing")
    }
    assert [
        round(float(conversions.epsilon_from_zcdp(delta=1e-10, rho=rho)), 2)
        for rho in total.values()
    ] == [17.14, 2.47]
    assert [
        round(float(conversions.simple_epsilon_from_zcdp(delta=1e-10, rho=rho)), 2)
        for rho in dhc.values()
    ] == [26.34, 34.33]
    assert (
        round(sum(dhc.values()), 2) == 12.66
        and round(sum(dhc.values()) + sum(total.values()), 2) == 15.29
    )
    assert round(sum(total.values()), 2) == 2.63


def _loss(epsilon=None, details=None, variant="Pure DP", **parameters):
    parameters |= {} if epsilon is None else {"epsilon": epsilon}
    loss = {"privacy_parameters": parameters} | (
        {} if details is None else {"privacy_parameters_details": details}
    )
    return {"deployment": {"dp_variant": {"variant_name": variant}, "privacy_loss": loss}}


@pytest.mark.parametrize(
    ("record", "mark"),
    [
        (_loss(1.0), None),
        (_loss(1.0, variant="Approximate DP"), "no number is stated for δ"),
        (_loss(1.0, delta=1e-6), "δ = 1e-06 is stated"),
        (_loss(1.0, variant="Zero-concentrated DP"), "no ρ is stated"),
        (_loss(3.0, "- a: \\\\(\\epsilon\\\\) = 1\n- b: \\\\(\\epsilon = 2.0\\\\)"), None),
        (
            _loss(3.5, "- a: \\\\(\\epsilon\\\\) = 1.0\n- b: \\\\(\\epsilon = 2.0\\\\)"),
            "adds up to 1 + 2 = 3",
        ),
        # what rounding may hide is no disagreement
        (_loss(0.34, "- a: \\\\(\\epsilon\\\\) = 0.17\n- b: \\\\(\\epsilon\\\\) = 0.16"), None),
        (
            _loss(
                6.0, "a \\\\(\\epsilon = 1\\\\); b \\\\(\\epsilon = 2\\\\); and a factor 2 applies"
            ),
            None,
        ),
        (
            _loss(rho=0.5, delta=1e-6, epsilon=9.9, variant="Zero-concentrated DP"),
            "is more than ρ-zCDP implies",
        ),
        (
            _loss(rho=0.5, delta=1e-6, epsilon=5.76, variant="Zero-concentrated DP"),
            "simple conversion",
        ),
        (_loss(rho=0.5, delta=1e-6, epsilon=5.27, variant="Zero-concentrated DP"), None),
        (
            _loss(rho=0.5, delta=1e-6, epsilon=4.0, variant="Zero-concentrated DP"),
            "does not follow",
        ),
        (  # a Gaussian of μ = 1 has ε = 4.3772 at δ = 1e-5 (Balle and Wang 2018)
            _loss(rho=0.5, delta=1e-5, epsilon=3.0, variant="Zero-concentrated DP"),
            "4.377 for a Gaussian",
        ),
    ],
)
def test_each_kind_of_disagreement(record, mark):
    found = registry.from_dict(record).disagreements
    assert (found == ()) if mark is None else (len(found) == 1 and mark in found[0]), found


def test_numbers_in_text():
    text = "\\\\(\\epsilon = 0.66\\\\) and \\\\(\\delta = 2.1 × 10−29\\\\), \\\\(\\rho\\\\)=2.5"
    (part,) = parts(text, "details")
    assert part.claim.stated == "ε = 0.66, δ = 2.1e-29, ρ = 2.5"
    assert plain("\\\\(\\delta = 4.08 \\times 10^{-8}\\\\)") == "delta = 4.08 × 10^{-8}"
    assert parts("\\(\\delta = 10^{-10}\\)", "details")[0].claim.delta.value == 1e-10
    assert printed(2.63).half == pytest.approx(0.005) and printed(1.5e-07).half == pytest.approx(
        5e-9
    )
    # several values of one symbol are none
    assert parts("\\(\\epsilon = 1\\) or \\(\\epsilon = 2\\)", "details")[0].claim.epsilon is None


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("a: [", "bad.yaml, line 1"),
        ("- 1", "must hold a table of keys with a table 'deployment'"),
        (
            "deployment: {privacy_loss: {privacy_parameters: {epsilon: -1.0}}}",
            "epsilon of privacy_parameters must be >= 0, got -1.0",
        ),
        (
            "deployment: {privacy_loss: {privacy_parameters: {epsilon: 1.0, delta: 2}}}",
            "delta of privacy_parameters must be in [0, 1)",
        ),
    ],
)
def test_files_that_are_not_records(text, mark, tmp_path):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError) as caught:
        registry.read(tmp_path / "bad.yaml")
    assert "bad.yaml" in str(caught.value) and mark in str(caught.value)


def test_malformed_record_is_read_as_far_as_it_goes():
    record = registry.from_dict({"deployment": {"basic": 3, "privacy_loss": [1], "other": {}}})
    assert record.claims == () and len(record.problems) >= 5


ABOUT = {
    "name": "Digits",
    "url_slug": "digits-2026",
    "data_curators": ["Us"],
    "intended_use": "Teaching",
    "data_product_region": "Nowhere",
    "description": "A model of digits",
    "data_product_type": "Machine learning model",
    "publication_date": "2026-01-31",
    "registry_authors": ["Me"],
    "deployment_model": {
        "model_name": "Central",
        "release_type": "One release",
        "data_source_type": "Static",
    },
    "access_type": "Non-interactive",
}


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_reports_go_there_and_back(suffix, tmp_path):
    report = jaxgdp.report(jaxgdp.compose([(jaxgdp.Gaussian(2.0), 4)]))
    record = report.to_registry(**ABOUT)
    assert _check(record, SCHEMA) == [] and registry.problems(record) == []
    assert set(record) == {"url_slug", "status", "tier", "deployment"} and record["tier"] == 2
    path = tmp_path / f"record.{suffix}"
    path.write_text(
        registry.dump(record) if suffix == "yaml" else json.dumps(record), encoding="utf-8"
    )
    back = registry.read(path)
    assert back.data == record and back.problems == () and back.disagreements == ()
    (claim,) = back.claims
    epsilon = dict(report.epsilons)[1e-5]
    assert (
        epsilon.upper <= claim.epsilon.value <= epsilon.upper * (1.0 + 2e-5)
        and claim.delta.value == 1e-5
    )
    # what (ε, δ) alone implies is weaker than what the report knows
    assert back.brackets["advantage"].upper >= report.advantage.upper
    details = record["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert "μ = 1" in details and "1e-10 (the FPR floor)" in details and report.command in details


def test_missing_fields_are_said_not_to_be_stated():
    record = jaxgdp.report(jaxgdp.dpsgd(9.4, 0.32768, 2000), rtol=1e-2).to_registry(
        status="Pending", delta=1e-6
    )
    assert _check(record, SCHEMA) == [] and record["status"] == "Pending" and record["tier"] == 1
    deployment = record["deployment"]
    assert deployment["basic"]["data_curators"] == ["Not stated"]
    assert "intended_use" in deployment["administrative"]["notes"]
    assert deployment["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    assert "Poisson sampling" in deployment["implementation"]["mechanisms"]


@pytest.mark.parametrize(
    ("metadata", "mark"),
    [
        ({"nam": "x"}, "unknown key 'nam'; did you mean 'name'?"),
        ({"basic": {"nam": "x"}}, "unknown key 'deployment.basic.nam'; did you mean 'name'?"),
        ({"epsilon": 1.0}, "the report computes it"),
        ({"privacy_loss": {"privacy_parameters": {"epsilon": 1.0}}}, "the report computes it"),
        ({"variant_name": "Gaussian DP"}, "variant_name must be one of Pure DP, Approximate DP"),
        ({"data_curators": "Us"}, "data_curators must be texts"),
        ({"publication_date": "June"}, "publication_date must be date"),
        ({"basic": 3}, "must be a table of keys"),
        ({"delta": 0.5}, "delta must be one of"),
    ],
)
def test_bad_metadata(metadata, mark):
    with pytest.raises(ValueError) as caught:
        jaxgdp.report(jaxgdp.Gaussian(2.0), rtol=1e-2).to_registry(**metadata)
    assert mark in str(caught.value)


def test_infinite_numbers_make_no_record():
    with pytest.raises(ValueError, match="no finite epsilon at delta = 1e-10"):
        jaxgdp.report(jaxgdp.ApproximateDP(1.0, 0.01), rtol=1e-2).to_registry(delta=1e-10)


def test_every_leaf_has_a_name_of_its_own():
    """Metadata are given by these names."""
    names = [path[-1] for path in registry.leaves()]
    assert len(names) == len(set(names))


def test_page_of_results_is_what_is_computed(records):
    """All but the composed mechanisms of the census, which take long; ``make registry`` writes the
    page.
    """
    docs = Path(jaxgdp.__file__).parents[1] / "docs"
    if not (docs / "registry.md").exists():
        pytest.skip("run without the documentation")
    spec = importlib.util.spec_from_file_location("make_registry", docs / "make_registry.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    page = (docs / "registry.md").read_text(encoding="utf-8")
    for made in (
        make.results(records),
        make.silent(records),
        make.at_odds(records),
        make.budgets(),
    ):
        assert made in page
    assert set(make.EXPLAINED) == {stem for stem, record in records.items() if record.disagreements}
    assert "<!--" not in page and "| 16.464 … 16.466 |" in page


@pytest.mark.slow
def test_composed_census_mechanisms_on_the_page():
    curve = jaxgdp.tradeoff(jaxgdp.deployments.mechanism("census_2020_pl94_persons"))
    assert 16.463 <= curve.epsilon(1e-10).lower <= 16.46516 <= curve.epsilon(1e-10).upper <= 16.467


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-12, 1e-8, 1e-3, 0.3])
@pytest.mark.parametrize("delta", [0.0, 1e-20, 1e-11])
def test_mu_of_next_to_nothing_is_on_both_sides_of_the_truth(epsilon, delta):
    with mpmath.workdps(60):
        grown, floor = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf("1e-10")
        half = (mpmath.expm1(epsilon) + 2 * mpmath.mpf(delta)) / (2 * (1 + grown))
        true = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * half)
        if delta:
            root = lambda p: mpmath.findroot(lambda t: mpmath.ncdf(t) - p, -6.36)
            true = max(true, root(delta + grown * floor) - root(floor))
    found = registry.from_dict(_minimal(epsilon, delta)).brackets["mu"]
    assert found.lower <= true <= found.upper and found.upper <= true * (1 + 1e-8) + 3e-13


def test_small_rho_is_answered_soon_and_from_above():
    loss = {"privacy_unit": "Person-level", "privacy_parameters": {"rho": 1e-8}}
    found = registry.from_dict(
        {
            "deployment": {
                "dp_variant": {"variant_name": "Zero-concentrated DP"},
                "privacy_loss": loss,
            }
        }
    )
    assert found.brackets["mu"].lower <= np.sqrt(2e-8) <= found.brackets["mu"].upper


def _minimal(epsilon, delta):
    stated = {"epsilon": epsilon} | ({"delta": delta} if delta else {})
    loss = {"privacy_unit": "Person-level", "privacy_parameters": stated}
    return {"deployment": {"dp_variant": {"variant_name": "Approximate DP"}, "privacy_loss": loss}}
