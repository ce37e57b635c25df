"""What ``repr`` and notebooks show of results: a few lines, tables that are well formed, and sides
that are never rounded inward.
"""

import html.parser
import re

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp import targets
from jaxgdp.numerics.showing import MOST_ROWS, html_table, short, sides
from jaxgdp.optimization import Optimized, Schedule
from jaxgdp.training import plan_budget


class Table(html.parser.HTMLParser):
    """Rows of cells of one or more tables; every element closes."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def shown():
    gaussian = jaxgdp.Gaussian(2.0)
    batch = jaxgdp.Gaussian(np.linspace(1.0, 9.0, 14))
    parts = [(jaxgdp.ApproximateDP(0.1 * k, 1e-5), 2) for k in range(1, 8)]
    calibration = jaxgdp.calibrate(targets.Mu(0.5), num_steps=4)
    schedule = Schedule(
        np.array([1.0, 2.0]), np.array([0.1, 0.2]), np.array([10.0, 20.0]), np.array([1.0, 1.0])
    )
    return {
        "curve": jaxgdp.tradeoff(gaussian),
        "parts": jaxgdp.tradeoff(jaxgdp.compose(parts), rtol=1e-2),
        "curves": jaxgdp.tradeoff(jaxgdp.Gaussian([1.0, 2.0]), rtol=1e-2),
        "measured": jaxgdp.measure(gaussian, ("mu", "epsilon")),
        "many": jaxgdp.measure(batch, ("mu", "advantage")),
        "calibration": calibration,
        "calibrations": jaxgdp.calibrate(targets.Mu([0.5, 1.0]), num_steps=4),
        "plan": plan_budget(
            noise_multiplier=4.0, sampling_prob=1.0, max_steps=16, quantities=("mu", "epsilon")
        ),
        "schedule": schedule,
        "optimized": Optimized(schedule, calibration, 1.0, schedule, 2.0, np.arange(5.0)),
    }


def test_every_repr_is_short(shown):
    for name, value in shown.items():
        text = repr(value)
        assert len(text) <= 700 and text.count("\n") <= 4, (name, text)
        assert text.startswith(type(value).__name__ + "(") and "array(" not in text, (name, text)
    assert "Gaussian(noise_multiplier=2) x 1" in repr(shown["curve"]) and "status ok" in repr(
        shown["curve"]
    )
    assert "epsilon at delta = 1e-05: [" in repr(shown["measured"])
    assert "<shape (14,), " in repr(shown["many"]) and "2 stages" in shown["schedule"]._repr_html_()


def test_every_table_is_well_formed(shown):
    for name, value in shown.items():
        rows = Table(value._repr_html_()).rows
        assert len(rows) >= 2 and all(
            len(row) == len(rows[0]) or row == rows[0] for row in rows[: len(rows) // 2]
        ), name
    assert len(Table(shown["many"]._repr_html_()).rows) == MOST_ROWS + 1
    assert f"({28 - MOST_ROWS} more rows)" in shown["many"]._repr_html_()


def test_sides_are_rounded_outward(shown):
    measured = shown["measured"]
    low, high = re.search(r"mu: \[([0-9.]+), ([0-9.]+)\]", repr(measured)).groups()
    assert float(low) <= measured.brackets["mu"].lower and measured.brackets["mu"].upper <= float(
        high
    )
    (row,) = (row for row in Table(measured._repr_html_()).rows if row[0] == "mu")
    assert float(row[2]) <= measured.brackets["mu"].lower and measured.brackets[
        "mu"
    ].upper <= float(row[3])
    assert row[4] == "upper" and row[5] == "ok"
    curve = Table(shown["curve"]._repr_html_()).rows
    assert [row[0] for row in curve[1:]] == ["mu", "regret", "advantage", "epsilon", "tpr"]
    assert float(curve[1][2]) <= 0.5 <= float(curve[1][3])
    plan = Table(shown["plan"]._repr_html_()).rows
    assert float(plan[-1][1]) <= 1.0 <= float(plan[-1][2]) and plan[-1][0] == "16"
    assert sides((np.nan, np.inf)) == "[nan, inf]"


def test_traced_value_has_a_repr():
    def seen(x):
        assert "<" in repr(Schedule(x, x, x, x)) and short(x) == f"<{type(x).__name__}>"
        return x

    jax.jit(seen)(np.ones(2))


def test_text_in_tables_is_escaped():
    assert "<script>" not in html_table("<script>", ["<script>"], [["<script>"]])
