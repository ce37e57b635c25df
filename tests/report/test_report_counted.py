"""What a report has counted beside the noise: a search over runs, and the table of it."""

import pytest

import jaxgdp
from jaxgdp.mechanisms.runs import parse
from jaxgdp.report import Report
from jaxgdp.report.counted import counted, not_counted


@pytest.fixture(scope="module")
def found():
    return jaxgdp.report(jaxgdp.Gaussian(2.0), tuning=jaxgdp.runs.Geometric(10.0))


def test_search_is_counted_and_no_longer_among_the_omissions(found):
    assert 3.009 < found["epsilon"][1e-5].upper < 3.1463
    (row,) = counted(found)
    assert row.law == "Geometric(mean=10)" and abs(row.without - 0.5) < 1e-6
    assert abs(row.share - (1.0 - (0.5 / found.mu.upper) ** 2)) < 1e-6
    assert not any("hyperparameters" in text for text in not_counted(found.spec))
    for text in (str(found), found.to_markdown()):
        assert "the choice of one run" in text and "choosing hyperparameters" not in text
    plain = jaxgdp.report(jaxgdp.Gaussian(2.0))
    assert not counted(plain) and "choosing hyperparameters" in str(plain)


def test_search_is_stored_and_computed_again(found):
    again = Report.from_dict(found.to_dict())
    assert again == found and again.spec["mechanism"][0]["runs"]["type"] == "Geometric"
    assert "hyperparameter" in str(found.to_registry())


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
