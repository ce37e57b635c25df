"""Statements: numbers on the safe side, the same as elsewhere, for every style and sampler."""

import json
import re

import numpy as np
import pytest

import jaxgdp
from jaxgdp import arguments, run_settings, spec
from jaxgdp.report import Report, differences, recompute, strength
from jaxgdp.report.audience import AUDIENCES

RUN = {"noise_multiplier": 0.9, "dataset_size": 45_000, "batch_size": 512, "num_epochs": 30}


@pytest.fixture(scope="module")
def poisson():
    return jaxgdp.report(jaxgdp.run(**RUN))


@pytest.fixture(scope="module")
def unknown():
    return jaxgdp.report(jaxgdp.run(**RUN, sampler="unknown"), delta=1e-5)


def _after(words, text):
    return float(re.search(re.escape(words) + r" ([0-9.]*[0-9])", text)[1])


def test_samplers_of_commands_are_those_of_runs():
    assert arguments.SAMPLERS == (*run_settings.SAMPLINGS, "unknown")


def test_report_gives_the_digits_of_measure_and_of_the_comparison(poisson):
    run = jaxgdp.run(**RUN)
    assert poisson["epsilon"][1e-5] == jaxgdp.epsilon(run, delta=1e-5)
    assert (poisson.mu, poisson.advantage) == (jaxgdp.mu(run), jaxgdp.advantage(run))
    pytest.importorskip("xarray")
    # (each by itself, as lattices are as fine as all that is asked takes)
    for name, reported in (("epsilon", poisson["epsilon"][1e-5]), ("mu", poisson.mu)):
        compared = jaxgdp.compare_samplers(**RUN, samplers="poisson", quantities=(name,))
        assert float(compared[name].squeeze()) == reported.upper


def test_sentence_rounds_to_the_safe_side(poisson):
    text = poisson.statement()
    assert text.startswith(
        "Trained with DP-SGD (noise multiplier 0.9, expected batch 512 of 45,000, 2,637 steps). If"
        " batches were Poisson samples: ε ≤ 4.29 at δ = 1e-5, μ ≤ 1.03 for error rates ≥ 1e-10,"
        " one record added or removed. If the data were shuffled: ε between 23 and 44."
    )
    upper = poisson["epsilon"][1e-5].upper
    assert upper <= _after("ε ≤", text) <= 1.01 * upper
    assert poisson.mu.upper <= _after("μ ≤", text) <= 1.01 * poisson.mu.upper
    (other,) = poisson.alternatives
    assert other.epsilon.lower >= _after("ε between", text)
    assert other.epsilon.upper <= _after("23 and", text)


def test_styles_say_the_same(poisson):
    assert poisson.statement("paragraph").startswith(poisson.statement())
    assert "success rises from 50 to at most 67.1 in 100" in poisson.statement("paragraph")
    latex = poisson.statement("latex")
    assert r"$\varepsilon \leq 4.29$ at $\delta = 10^{-5}$, $\mu \leq 1.03$" in latex
    assert latex.count("$") % 2 == 0 and latex.isascii() and "45{,}000" in latex
    yaml = pytest.importorskip("yaml")
    card = yaml.safe_load(poisson.statement("model-card"))["privacy"]
    assert card["statement"] == poisson.statement() and card["command"] == poisson.command
    first, second = card["guarantees"]
    assert first["delta"] == 1e-5 and first["epsilon"] == 4.29 and first["sampler"] == "poisson"
    assert second["epsilon_at_least"] == 23.0 and second["epsilon"] == 44.0
    with pytest.raises(ValueError, match="style must be one of 'sentence', 'paragraph'"):
        poisson.statement("tweet")


def test_unknown_sampler_reports_the_less_private_one_and_the_other(unknown, poisson):
    assert unknown.sampler == "shuffled" and unknown.alternatives[0].sampler == "poisson"
    assert unknown.alternatives[0].epsilon == poisson["epsilon"][1e-5]
    text = unknown.statement()
    assert "If the data were shuffled: ε ≤ 43.8 at δ = 1e-5 (an attack shows 23)" in text
    assert text.endswith("If batches were Poisson samples: ε ≤ 4.29.")
    assert "Protection: next to none" in str(unknown)


def test_runs_are_stored_and_computed_again(unknown, poisson):
    for report in (unknown, poisson):
        back = Report.from_dict(json.loads(report.to_json()))
        assert back == report and back.statement() == report.statement()
    assert differences(poisson, recompute(poisson)) == []
    assert poisson.command == (
        "jaxgdp report --noise-multiplier 0.9 --dataset-size 45000 --batch-size 512 --num-epochs 30"
        " --sampler poisson"
    )
    described = spec.from_dict(poisson.spec)
    assert described.run == jaxgdp.run(**RUN) and spec.to_toml(poisson.spec).startswith("[run]\n")


def test_large_delta_is_warned_of(poisson):
    with pytest.warns(UserWarning, match="delta 0.001 is not below 1/45,000"):
        assert "Caution: delta 0.001" in poisson.statement(delta=1e-3)
    assert "Caution" not in poisson.statement(delta=1e-6)
    with pytest.raises(ValueError, match="delta must be one of"):
        poisson.statement(delta=0.5)


def test_other_mechanisms_have_statements_too():
    text = jaxgdp.report(jaxgdp.Gaussian(2.0)).statement()
    assert text.startswith("Released with Gaussian noise (noise multiplier 2). ε ≤ 2 at δ = 1e-5")
    response = jaxgdp.report(jaxgdp.RandomizedResponse(1.0), rtol=1e-2, title="Survey")
    assert response.statement().startswith("Survey. ε ≤ 1")
    endless = jaxgdp.report(jaxgdp.ApproximateDP(1.0, 1e-3), rtol=1e-2)
    assert "No finite ε at δ = 1e-5" in endless.statement()


def test_worthless_guarantee_is_called_that():
    report = jaxgdp.report(jaxgdp.dpsgd(0.3, 0.0114, 2637), rtol=1e-2)
    assert report.tier == "I" and strength.sentence(report).startswith("Protection: next to none.")
    assert str(report).splitlines()[1].endswith("from 50 to at most 100 in 100.")


@pytest.mark.parametrize("mu", np.geomspace(0.01, 6.0, 12))
def test_grades_follow_the_attackers_success(mu):
    """Of a Gaussian mechanism the success is Φ(μ/2): 50 times 1 + (2Φ(μ/2) − 1)."""
    from scipy.special import ndtr

    right = 100.0 * ndtr(mu / 2.0)
    said = float(strength.success(2.0 * ndtr(mu / 2.0) - 1.0))
    assert right * (1.0 - 1e-12) <= said <= right * 1.01
    words = [grade.word for grade in strength.GRADES]
    expected = 0 if right <= 55.0 else 1 if right <= 70.0 else 2 if right <= 90.0 else 3
    found = strength.grade(said / 50.0 - 1.0, ndtr(mu + -3.0902323))
    assert words.index(found.word) >= expected - (said / 50.0 - 1.0 <= strength.GRADES[0].advantage)


def test_audiences_have_texts(poisson):
    legal = AUDIENCES["legal"].text(poisson)
    assert "Tier" not in legal and "regret" not in legal and "Protection: moderate" in legal
    paper = AUDIENCES["paper"].text(poisson)
    assert paper.count(r"\\") == len(poisson.epsilons) + len(poisson.tprs) - 1 + 5
    yaml = pytest.importorskip("yaml")
    card = AUDIENCES["card"].text(poisson).split("---")
    assert yaml.safe_load(card[1])["privacy"]["protection"] == "moderate"
