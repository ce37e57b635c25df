"""Worst cases and the rule of thumb are decided by the brackets, on data sets made by hand."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest

from jaxgdp import landscape, sweep
from jaxgdp.report import rows_of

xarray = pytest.importorskip("xarray")

RATES = [0.01, 0.1, 1.0]


def made(lower, upper, sigmas=(2.0,), steps=(400,), status=None, mu_width=0.0):
    """A data set from nested lists indexed (σ, p, T)."""
    dimensions = ("noise_multiplier", "sampling_prob", "num_steps")
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    status = np.zeros(lower.shape, int) if status is None else np.asarray(status)
    variables = {
        "regret_lower": lower,
        "regret": upper,
        "regret_upper": upper,
        "mu_lower": np.ones(lower.shape),
        "mu": 1.0 + mu_width * np.ones(lower.shape),
        "mu_upper": 1.0 + mu_width * np.ones(lower.shape),
        "status": status,
    }
    return xarray.Dataset(
        {name: (dimensions, values) for name, values in variables.items()},
        coords=dict(
            zip(dimensions, (np.array(sigmas), np.array(RATES), np.array(steps)), strict=True)
        ),
        attrs={"fpr_floor": 1e-10},
    )


def one_line(lower, upper, **more):
    return made([[[a] for a in lower]], [[[a] for a in upper]], **more)


def test_worst_regret_brackets_the_maximum_even_if_the_sides_peak_at_different_rates():
    (row,) = landscape.worst_regret(one_line([0.001, 0.006, 0.0], [0.009, 0.007, 1e-6]))
    assert row == (2.0, 400, 0.01, 0.006, 0.009)


def test_worst_regret_gives_one_row_per_sigma_and_steps():
    values = np.arange(12.0).reshape(2, 3, 2) * 1e-3
    rows = landscape.worst_regret(made(values, values + 1e-4, sigmas=(1.0, 3.0), steps=(400, 1000)))
    assert [(r.noise_multiplier, r.num_steps) for r in rows] == list(
        itertools.product((1.0, 3.0), (400, 1000))
    )
    np.testing.assert_allclose([r.lower for r in rows], values.max(axis=1).ravel(), rtol=0, atol=0)
    np.testing.assert_allclose(
        [r.upper for r in rows], values.max(axis=1).ravel() + 1e-4, rtol=0, atol=0
    )
    assert all(isinstance(r.num_steps, int) for r in rows)


def test_worst_regret_does_not_depend_on_the_order_of_dimensions():
    dataset = one_line([0.001, 0.006, 0.0], [0.009, 0.007, 1e-6])
    turned = dataset.transpose("num_steps", "sampling_prob", "noise_multiplier").isel(
        sampling_prob=[2, 0, 1]
    )
    assert landscape.worst_regret(turned) == landscape.worst_regret(dataset)


@pytest.mark.parametrize(
    ("lower", "upper", "verdict", "where"),
    [
        ([0.001, 0.009, 0.0], [0.002, 0.0099, 0.0001], "holds", ()),
        ([0.001, 0.0, 0.0], [0.002, 0.01, 0.0001], "undecided", (0.1,)),
        ([0.001, 0.009, 0.0], [0.002, 0.011, 0.0001], "undecided", (0.1,)),
        ([0.01, 0.009, 0.0], [0.01, 0.011, 0.0001], "fails", (0.01,)),
        ([0.012, 0.013, 0.0], [0.013, 0.014, 0.0001], "fails", (0.01, 0.1)),
        ([0.0, 0.0, 0.0], [0.0, np.inf, 0.0], "undecided", (0.1,)),
    ],
)
def test_rule_of_thumb_is_decided_by_the_bracket(lower, upper, verdict, where):
    (found,) = landscape.rule_of_thumb(one_line(lower, upper))
    assert (found.verdict, found.sampling_probs) == (verdict, where)


def test_rule_of_thumb_counts_wide_brackets_and_takes_another_limit():
    dataset = one_line([0.001, 0.02, 0.0], [0.002, 0.5, 0.1], status=[[[0], [1], [1]]])
    assert landscape.rule_of_thumb(dataset)[0].verdict == "fails"
    assert landscape.rule_of_thumb(dataset, limit=0.3)[0].verdict == "undecided"
    assert landscape.rule_of_thumb(dataset, limit=0.6)[0].verdict == "holds"
    text = landscape.summary_text(dataset)
    assert "1 as narrow as requested, 2 wider" in text
    assert "0.1  (mu bracket wider than asked)" in text


def test_rule_of_thumb_is_decided_by_the_lower_side():
    """At the limit's edge: a bracket across 0.01 decides nothing, one whose lower side reaches it
    does.
    """
    assert (
        landscape.rule_of_thumb(one_line([0.0, 0.0099999, 0.0], [0.0, 0.0100679, 0.0]))[0].verdict
        == "undecided"
    )
    assert (
        landscape.rule_of_thumb(one_line([0.0, 0.01, 0.0], [0.0, 0.0100679, 0.0]))[0].verdict
        == "fails"
    )


def test_rule_of_thumb_speaks_only_of_large_sigma_and_many_steps():
    values = np.full((2, 3, 2), 0.5)
    verdicts = landscape.rule_of_thumb(made(values, values, sigmas=(1.99, 2.0), steps=(399, 400)))
    assert [(v.noise_multiplier, v.num_steps) for v in verdicts] == [(2.0, 400)]
    nothing = made(values, values, sigmas=(1.0, 1.5), steps=(399, 400))
    assert landscape.rule_of_thumb(nothing) == []
    assert "no setting of this grid" in landscape.summary_text(nothing)


def test_summary_names_the_rates_where_the_rule_fails():
    text = landscape.summary_text(one_line([0.012, 0.013, 0.0], [0.013, 0.014, 0.0001]))
    assert "sigma = 2, T = 400: fails at p = 0.01 to 0.1 (2 of the grid's rates)" in text
    assert "FPR floor 1e-10" in text


def test_csv_keeps_every_digit_of_both_sides(tmp_path):
    dataset = one_line(
        [1 / 3, 0.2, 1e-12], [0.35, 0.25, 1e-9], status=[[[0], [1], [0]]], mu_width=0.1
    )
    landscape.write_csv(dataset, tmp_path / "grid.csv")
    rows = list(csv.DictReader(rows_of(tmp_path / "grid.csv")))
    assert [float(r["sampling_prob"]) for r in rows] == RATES
    assert [float(r["regret_lower"]) for r in rows] == [1 / 3, 0.2, 1e-12]
    assert [(float(r["mu_lower"]), float(r["mu_upper"])) for r in rows] == [(1.0, 1.1)] * 3
    assert [(r["status"], r["num_steps"]) for r in rows] == [
        ("0", "400"),
        ("1", "400"),
        ("0", "400"),
    ]


def test_default_grid_is_that_of_the_paper():
    assert (
        len(landscape.NOISE_MULTIPLIERS) * len(landscape.NUM_STEPS) * len(landscape.SAMPLING_PROBS)
        == 1536
    )
    assert (landscape.SAMPLING_PROBS[0], landscape.SAMPLING_PROBS[-1]) == (1e-4, 1.0)


def test_figure_has_a_line_per_sigma_and_steps_and_marks_the_limit():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from jaxgdp.plot import regret_landscape

    values = np.full((2, 3, 2), 1e-3)
    axes = Figure().add_subplot()
    assert (
        regret_landscape(made(values, values * 1.1, sigmas=(1.0, 2.0), steps=(400, 1000)), axes)
        is axes
    )
    assert len(axes.lines) == 2 * 2 + 1
    assert axes.lines[-1].get_ydata()[0] == 0.01
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylim()[0]) == ("log", "log", 1e-5)


def test_command_compiles_nothing_for_few_settings(monkeypatch, tmp_path):
    """It asks once, and NumPy is done before a program is compiled."""
    pytest.importorskip("click")
    from jaxgdp.cli import main

    seen = []
    monkeypatch.delenv("JAXGDP_EXECUTOR", raising=False)
    monkeypatch.setattr(landscape, "sweep", lambda **asked: seen.append(asked) or sweep(**asked))
    monkeypatch.chdir(tmp_path)
    asked = ["--noise-multiplier", "2", "--sampling-prob", "0.5,1", "--num-steps", "10", "--quiet"]
    assert (
        main(["landscape", *asked]) == 0
        and seen[0].get("executor") is None
        and (tmp_path / "landscape.csv").exists()
    )
