"""Reproduction of Chua 2024: verdicts, and the numbers behind them from elsewhere."""

import csv
import json

import mpmath
import numpy as np
import pytest

from jaxgdp.report import rows_of
from jaxgdp.reproduce import items, reproduce
from jaxgdp.reproduce.published import numbers, read
from jaxgdp.reproduce.renyi import DP_ACCOUNTING, RenyiCurve


def test_every_printed_number_belongs_to_a_figure():
    assert list(items("chua2024")) == [f"figure-{k}" for k in range(1, 8)]
    listed = numbers("chua2024")
    assert len({n.name for n in listed}) == len(listed) == 31
    assert {n.item for n in listed} == set(items("chua2024"))
    assert read("chua2024")["paper"]["year"] == 2024


@pytest.fixture(scope="module")
def figure_7(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("chua")
    found = reproduce("chua2024", output=folder, only=["figure-7"], quick=True)
    return {row.name: row for row in found.rows}, folder


def test_figure_7_prints_numbers_of_another_epsilon(figure_7):
    found, folder = figure_7
    assert found["figure-7-poisson"].verdict == "agrees"
    one = found["figure-7-shuffled-1"]
    assert one.verdict == "undecided" and "at ε = 0.5" in one.because
    assert "8.448e-05 at ε = 0.5" in found["figure-7-renyi"].because
    rows = {
        float(row["epsilon"]): {k: float(v) for k, v in row.items()}
        for row in csv.DictReader(rows_of(folder / "figure-7.csv"))
    }
    assert rows[0.5]["shuffled_lower"] > 0.004 > rows[1.0]["shuffled_lower"]
    for row in rows.values():
        assert (
            0.0 < row["shuffled_lower"] <= row["shuffled_upper"]
            and row["poisson_lower"] <= row["poisson_upper"]
        )
        assert row["poisson_upper"] <= row["poisson_renyi"] and row["shuffled_lower"] <= row[
            "deterministic"
        ] * (1 + 1e-6)


def test_files_are_those_of_other_papers(figure_7):
    _, folder = figure_7
    text = (folder / "chua2024.md").read_text(encoding="utf-8")
    assert text.startswith("# Reproduction of Lynn Chua et al. 2024") and "figure-7.png" in text
    assert json.loads((folder / "chua2024.json").read_text(encoding="utf-8"))["quick"] is True


def test_renyi_divergences_of_whole_orders_are_binomial_sums():
    sigma, rate, steps = 0.8, 1e-3, 1000
    curve = RenyiCurve(sigma, rate, steps, DP_ACCOUNTING)
    with mpmath.workdps(40):
        for order in (2, 5, 12):
            terms = (
                mpmath.binomial(order, k)
                * (1 - mpmath.mpf(rate)) ** (order - k)
                * mpmath.mpf(rate) ** k
                * mpmath.exp(k * (k - 1) / (2 * mpmath.mpf(sigma) ** 2))
                for k in range(order + 1)
            )
            exact = steps * mpmath.log(sum(terms)) / (order - 1)
            (i,) = np.flatnonzero(np.isclose(curve.orders, order))
            assert float(exact) == pytest.approx(curve.divergence[i], rel=1e-6)
    # printed: 3.346e-5 and 3.43
    assert curve.delta(1.0) == pytest.approx(3.346e-5, rel=1e-3)
    other = RenyiCurve(0.5, 1e-4, 10_000, DP_ACCOUNTING)
    assert other.epsilon(1e-6) == pytest.approx(3.43, abs=0.01)
