"""Reproduction of Liu et al. 2022: published data, exact sums for Table 1, and the quick run of the
cheap items.
"""

import csv
import json

import pytest

from jaxgdp.report import rows_of
from jaxgdp.reproduce import items, reproduce
from jaxgdp.reproduce.liu2022 import profiles, table_1
from jaxgdp.reproduce.published import RELATIONS, numbers, read
from jaxgdp.reproduce.verdict import printed_range


def exact_epsilon(epsilon: float, uses: int, delta: float) -> float:
    """ε of the optimal composition, from binomial sums in 40 digits (Kairouz et al. 2015)."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        e = mpmath.mpf(epsilon)
        flip = 1 / (1 + mpmath.exp(e))
        weight = [mpmath.binomial(uses, i) for i in range(uses + 1)]
        p = [w * flip**i * (1 - flip) ** (uses - i) for i, w in enumerate(weight)]
        loss = [e * (2 * i - uses) for i in range(uses + 1)]

        def profile(x):
            return sum(
                m * (mpmath.exp(ell) - mpmath.exp(x))
                for m, ell in zip(p, loss, strict=True)
                if ell > x
            )

        low, high = mpmath.mpf(0), e * uses
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if profile(middle) > delta else (low, middle)
        return float(high)


def test_published_numbers_are_well_formed():
    listed = numbers("liu2022")
    assert len({p.name for p in listed}) == len(listed)
    for p in listed:
        assert p.item in items("liu2022") and p.relation in RELATIONS and p.where and p.quantity, p
        if p.relation != "words":
            printed_range(p.printed)
    assert {p.item for p in listed} == set(items("liu2022"))


def test_columns_are_those_that_three_rows_give_back():
    setting = read("liu2022")["composition"]
    printed = {p.name: printed_range(p.printed) for p in numbers("liu2022") if p.item == "table-1"}
    for route in ("basic", "advanced", "rdp"):
        for delta in map(float, setting["delta"]):
            low, high = printed[f"table-1-{route}-{delta:g}"]
            found = getattr(table_1, route)(setting["epsilon"], setting["uses"], delta)
            assert low <= found <= high, (route, delta)


def test_table_1_against_binomial_sums(tmp_path):
    pytest.importorskip("matplotlib")
    found = reproduce("liu2022", output=tmp_path, only=["table-1", "figure-3"], quick=True)
    rows = {row.name: row for row in found.rows}
    assert sum(row.verdict == "agrees" for row in found.rows) == 25
    differing = {name for name, row in rows.items() if row.verdict != "agrees"}
    assert differing == {f"table-1-optimal-{d}" for d in ("0.1", "0.01", "0.001", "0.0001")}
    assert all(rows[f"table-1-optimal-{d}"].because for d in ("0.1", "0.01", "0.001", "0.0001"))
    table = {row["route"]: row for row in csv.DictReader(rows_of(tmp_path / "table-1.csv"))}
    setting = read("liu2022")["composition"]
    for delta in map(float, setting["delta"]):
        exact = exact_epsilon(setting["epsilon"], setting["uses"], delta)
        for route, holds in (("optimal", True), ("summary", False)):
            low, high = (
                float(x) for x in table[route][f"delta = {delta:g}"].strip("[]").split(",")
            )
            assert (low - 1e-6 <= exact <= high + 1e-6) if holds else high >= exact
        # what is printed for δ = 1e-4 is not met by the mechanism
        if delta == 1e-4:
            assert exact > 5.5
    assert (tmp_path / "figure-3.png").stat().st_size > 1000
    data = json.loads((tmp_path / "liu2022.json").read_text(encoding="utf-8"))
    assert "2210.09269" in json.dumps(data) and (tmp_path / "liu2022.md").exists()


def test_figures_of_the_examples(tmp_path):
    pytest.importorskip("matplotlib")
    found = reproduce(
        "liu2022", output=tmp_path, only=["figure-1", "figure-2", "figure-e1"], quick=True
    )
    assert [row.verdict for row in found.rows] == ["agrees"] * 7
    for name in ("figure-1", "figure-2", "figure-e1"):
        assert (tmp_path / f"{name}.png").exists() and (tmp_path / f"{name}.csv").exists()


def test_examples_have_the_tails_they_are_said_to_have():
    (_, laplace, _), (_, noise, limit), (_, cloak, _) = profiles.three()
    assert laplace(1.0) == 0.0 and limit == pytest.approx(1.0, rel=1e-12)
    assert noise(0.0) == cloak(0.0) == 1.0 and 0.0 < cloak(1e6) < cloak(1.0) < 1.0
