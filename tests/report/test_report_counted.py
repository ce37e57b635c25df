"""What a report has counted beside the noise: a search over runs, and the table of it."""

import math

import pytest

import jaxgdp
from jaxgdp.mechanisms.runs import parse
from jaxgdp.report import Report
from jaxgdp.report.audience import legal, paper
from jaxgdp.report.counted import not_counted
from jaxgdp.spec import from_dict


@pytest.fixture(scope="module")
def found():
    return jaxgdp.report(jaxgdp.Gaussian(2.0), tuning=jaxgdp.runs.Geometric(10.0))


def test_search_is_counted_and_no_longer_among_the_omissions(found):
    assert 3.009 < found["epsilon"][1e-5].upper < 3.1463
    (row,) = found.counted
    assert row.law == "Geometric(mean=10)" and abs(row.without - 0.5) < 1e-6
    assert abs(row.share - (1.0 - (0.5 / found.mu.upper) ** 2)) < 1e-6
    assert not any("hyperparameters" in text for text in not_counted(found))
    for text in (str(found), found.to_markdown()):
        assert "the choice of one run" in text and "choosing hyperparameters" not in text
    plain = jaxgdp.report(jaxgdp.Gaussian(2.0))
    assert not plain.counted and "choosing hyperparameters" in str(plain)


def test_search_is_stored_and_computed_again(found):
    again = Report.from_dict(found.to_dict())
    assert again == found and again.spec["mechanism"][0]["runs"]["type"] == "Geometric"
    assert "hyperparameter" in str(found.to_registry())


def _entry(kind, **fields):
    return from_dict({"mechanism": [{"type": kind, **fields}]})


@pytest.mark.parametrize(
    "described, what, without",
    [
        # (of Gaussian counts in two known cells, of Poisson sampling; of nothing where all is it)
        (
            _entry("ThresholdedGaussian", noise_multiplier=2, threshold=16, max_cells=2),
            "keys that only one record has",
            lambda how: math.sqrt(2.0) / 2.0,
        ),
        pytest.param(
            _entry("DrawnBatchSize", noise_multiplier=1, sampling_prob=0.1, dataset_size=40),
            "the number of records that every step draws",
            lambda how: jaxgdp.mu(jaxgdp.dpsgd(1.0, 0.1, 1), **how).upper,
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            _entry("PartitionSelection", epsilon=1, delta=1e-6),
            "which keys",
            lambda how: 0.0,
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            _entry("GaussianMixture", noise_multiplier=1, shifts=[0, 2], weights=[0.9, 0.1]),
            "all records of a user",
            None,
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_every_row_has_its_share_in_every_format(described, what, without):
    found = jaxgdp.report(described, fpr_floor=1e-4)
    (row,) = found.counted
    assert row.what.startswith(what) and Report.from_dict(found.to_dict()) == found
    if without is None:
        assert row.without is row.share is None
    else:
        left = without({"fpr_floor": 1e-4})
        assert abs(row.without - left) <= 1e-3 * left
        assert row.share == pytest.approx(1.0 - (row.without / found.mu.upper) ** 2, abs=1e-12)
    card, paragraph = found.statement("model-card"), found.statement("paragraph")
    texts = (str(found), found.to_markdown(), found.to_json(), card, paragraph, legal(found))
    assert all(what in text for text in (*texts, paper(found), str(found.to_registry())))


@pytest.mark.nightly
def test_run_of_users_counts_their_records():
    run = jaxgdp.run(1.0, 1000, 100, num_steps=10, records_per_user=3)
    found = jaxgdp.report(run, fpr_floor=1e-4)
    single = jaxgdp.mu(jaxgdp.run(1.0, 1000, 100, num_steps=10), fpr_floor=1e-4)
    (row,) = found.counted
    assert row.law == "records_per_user=3" and row.without == single.upper < found.mu.upper
    assert len(not_counted(found)) == 3 and "more than one record" not in str(found)


def test_words_of_shuffled_reports_are_of_replacing():
    found = jaxgdp.report(jaxgdp.ShuffledReports(1.0, 50), fpr_floor=1e-4)
    (row,) = found.counted
    assert row.what == "shuffled reports of users" and row[2:] == (0.0, 1.0)
    assert "(one user's value being another one; both orders)" in str(found)
    assert "one record replaced by another" in found.statement()
    assert not any("added or removed" in text for text in (str(found), found.to_html()))
    assert "being another one" in str(found.to_registry())


def test_laws_on_the_command_line():
    assert str(parse("negative_binomial:10:0.5")) == "NegativeBinomial(mean=10, shape=0.5)"
    for text, said in (
        ("geom:10", "tuning must be one of geometric"),
        ("geometric", "tuning must be geometric:MEAN"),
        ("fixed:many", "tuning must hold numbers"),
        ("geometric:0.5", "mean must be a number"),
    ):
        with pytest.raises(ValueError, match=said):
            parse(text)
