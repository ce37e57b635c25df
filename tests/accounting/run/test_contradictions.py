"""Two sides that exclude each other are reported, whoever asks, and their value is withheld."""

import dataclasses

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.run import routes
from jaxgdp.bracket import SAME, Bracket, Status
from jaxgdp.cli.app import main
from jaxgdp.measure import pieces
from jaxgdp.quantities import registry
from jaxgdp.tradeoff import ContradictionWarning

EXTENT = {"epsilon": (0.0, np.inf), "tpr": (0.0, 1.0), "beta": (0.0, 1.0), "mu": (0.0, np.inf)}


@pytest.fixture(params=["epsilon", "tpr", "mu"])
def crossed(request, monkeypatch):
    """A reading whose lower side is beyond its upper one by a millionth."""
    record = registry.named(request.param)

    def read(curve, query, *, symmetric):
        found = record.read(curve, query, symmetric=symmetric)
        return Bracket(found.upper * (1.0 + 1e-6), found.upper)

    monkeypatch.setitem(
        registry.REGISTRY, record.name, dataclasses.replace(record, read=read, read_known=None)
    )
    # (one pass each: what several passes have in common is the engine's to compare)
    monkeypatch.setitem(vars(pieces), "nested_answer", routes.answer)
    return record.name


def withheld(name, bracket):
    return np.all(bracket.lower == EXTENT[name][0]) and np.all(bracket.upper == EXTENT[name][1])


def test_measure_says_so(crossed):
    found = jaxgdp.measure(jaxgdp.Gaussian([2.0, 3.0]), ("advantage", crossed))
    assert np.all(found.status[crossed] == Status.CONTRADICTION) and withheld(
        crossed, found.brackets[crossed]
    )
    assert np.all(found.status["advantage"] == Status.OK) and np.all(
        found.worst == Status.CONTRADICTION
    )
    assert np.all(
        found.brackets["advantage"].contains(jaxgdp.gdp.advantage(mu=np.array([0.5, 1 / 3])))
    )


def test_curve_says_so(crossed):
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(2.0))
    bracket, status = curve.answer(crossed)
    assert status == Status.CONTRADICTION and withheld(crossed, bracket)
    with pytest.warns(ContradictionWarning, match=crossed):
        assert withheld(crossed, curve.quantity(crossed))
    with pytest.warns(ContradictionWarning, match=crossed):
        arguments = {"epsilon": (1e-5,), "tpr": (1e-3,), "mu": ()}
        assert withheld(crossed, getattr(curve, crossed)(*arguments[crossed]))


def test_report_and_the_command_line_say_so(crossed, capsys):
    report = jaxgdp.report(jaxgdp.Gaussian(2.0))
    told = f"CONTRADICTION: the two sides exclude each other, so the value is withheld ({crossed})"
    assert told in report.status and told in str(report) and told in report.to_markdown()
    rows = (
        report.tprs
        if crossed == "tpr"
        else report.epsilons
        if crossed == "epsilon"
        else ((None, report.mu),)
    )
    assert all(withheld(crossed, bracket) for _, bracket in rows)
    assert jaxgdp.Report.from_dict(report.to_dict()).status == report.status
    assert main(["report", "--noise-multiplier", "2", "--num-steps", "1"]) == 0
    assert "CONTRADICTION" in capsys.readouterr().out


def test_sweep_says_so(crossed):
    pytest.importorskip("xarray")
    grid = jaxgdp.sweep(2.0, 1.0, [1], quantities=("advantage", crossed))
    assert grid[f"status_{crossed}"].item() == grid.status.item() == Status.CONTRADICTION
    assert (
        grid.status_advantage.item() == Status.OK
        and "CONTRADICTION" in grid.status.attrs["meaning"]
    )
    assert withheld(crossed, Bracket(grid[f"{crossed}_lower"].values, grid[crossed].values))


def test_rounding_is_no_contradiction_and_widens():
    bracket, contradicted = Bracket.from_sides(
        [1.0, 1.0 + SAME / 2, 1.0 + 4 * SAME], [1.0, 1.0, 1.0], (0.0, 2.0)
    )
    assert contradicted.tolist() == [False, False, True]
    assert bracket.lower.tolist() == [1.0, 1.0, 0.0] and bracket.upper.tolist() == [
        1.0,
        1.0 + SAME / 2,
        2.0,
    ]


@pytest.mark.parametrize(
    "lower, upper",
    [
        (0.5, 0.4),
        (np.nan, 1.0),
        (0.0, np.nan),
        (1.5, 2.0),
        (-2.0, -1.0),
        (np.inf, 1.0),
        (1e-3, 0.0),
        (1e-200, 1e-201),
    ],
)
def test_impossible_brackets_are_contradictions(lower, upper):
    """Crossing sides, sides that are no numbers, and sides beyond what the number can be."""
    bracket, contradicted = Bracket.from_sides(lower, upper, extent=(0.0, 1.0))
    assert contradicted and bracket == (0.0, 1.0)


@pytest.mark.parametrize(
    "lower, upper",
    [(-np.inf, np.inf), (-1.0, 0.5), (0.2, 3.0), (0.0, 0.0), (1.0, np.inf), (-0.5, 0.0)],
)
def test_wide_sides_are_cut_to_what_the_number_can_be(lower, upper):
    bracket, contradicted = Bracket.from_sides(lower, upper, extent=(0.0, 1.0))
    assert not contradicted and bracket == (max(lower, 0.0), min(upper, 1.0))


def test_infinite_sides_that_meet_agree():
    found = jaxgdp.measure(jaxgdp.ApproximateDP(1.0, 1e-3), ("epsilon", "mu"), delta=1e-4)
    assert found.brackets["epsilon"] == (np.inf, np.inf) and found.status["epsilon"] == Status.OK
