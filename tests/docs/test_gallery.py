"""Every script of the gallery runs, in short, and draws a figure that can be read; and what cannot
be read is found.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from by_day import some

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure
from matplotlib.text import Text

import jaxgdp
from jaxgdp import plot
from jaxgdp.training import plan_budget

DOCS = Path(jaxgdp.__file__).parents[1] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="run without the documentation")


def gallery():
    spec = importlib.util.spec_from_file_location("draw_gallery", DOCS / "draw_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = gallery().NAMES if DOCS.exists() else ()


def test_page_shows_every_script_and_its_figure():
    assert len(NAMES) >= 12
    assert set(NAMES) == {path.stem for path in (DOCS / "gallery").glob("*.py")}
    page = gallery().page()
    for name in NAMES:
        assert f"({name}.svg)" in page and f'??? note "{name}.py"' in page
        drawn = (DOCS / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
        assert (
            drawn.startswith("<?xml")
            and "<dc:title>" in drawn
            and f"jaxgdp {jaxgdp.__version__}" in drawn
        )
        assert "; FPR floor " in drawn


@pytest.mark.parametrize("name", some(3, NAMES))
def test_script_draws_a_figure_that_can_be_read(name):
    for package in ("xarray", "optax"):
        pytest.importorskip(package)
    found, floor = gallery().load(name).figure(quick=True)
    assert plot.faults(found) == []
    # a μ in the figure is told with its floor, which the file repeats
    texts = " ".join(text.get_text() for text in found.findobj(Text))
    assert (floor is None) == ("FPR $\\geq" not in texts and "every FPR" not in texts), (
        floor,
        texts,
    )
    # what was drawn is data: a line or a bar beyond the reference lines
    assert all(ax.lines or ax.patches for ax in found.axes)


def drawn(x_label="steps", y_label="risk"):
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], "-", color="#0072B2")
    ax.set(xlabel=x_label, ylabel=y_label)
    return figure, ax


def test_figure_without_faults_has_none():
    assert plot.faults(drawn()[0]) == []


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda ax: ax.set_xlabel(""), "axes without an x label"),
        (lambda ax: ax.set_ylabel(" "), "axes without a y label"),
        (
            lambda ax: ax.text(1.9, 2.0, "far to the right, beyond the page").set_in_layout(False),
            "outside the figure: 'far to",
        ),
        (
            lambda ax: (ax.text(0.2, 3.0, "one"), ax.text(0.22, 3.02, "two")),
            "on top of each other: 'one' and 'two'",
        ),
        (
            lambda ax: ax.set_xticks([1.0, 1.02], ["1.00", "1.02"]),
            "on top of each other: '1.00' and '1.02'",
        ),
        (lambda ax: ax.text(0.9, 0.9, "through me"), "a curve runs through 'through me'"),
        (
            lambda ax: (ax.text(0.2, 3.0, "struck"), ax.plot([0.0, 1.0], [2.8, 3.6], "k--")),
            "a curve runs through 'struck'",
        ),
        (
            lambda ax: (ax.text(0.2, 3.0, "barred"), ax.errorbar(0.3, 2.0, 1.5, fmt="ks")),
            "a curve runs through 'barred'",
        ),
        (lambda ax: ax.text(0.2, 3.0, "tiny", fontsize=4), "below 6 points: 'tiny'"),
        (
            lambda ax: ax.plot([0.0, 1.0], [3.0, 3.0], "-", color="#D55E00"),
            "only their hue tells lines in",
        ),
    ],
)
def test_every_kind_of_fault_is_found(spoil, message):
    figure, ax = drawn()
    spoil(ax)
    assert any(each.startswith(message) for each in plot.faults(figure)), plot.faults(figure)


@pytest.mark.parametrize(
    "harmless",
    [
        # below the chord of the curve, and above the curve
        lambda ax: ax.text(0.95, 2.0, "between", ha="right"),
        # beyond the axes, where no curve is drawn
        lambda ax: (
            ax.set_ylim(0.0, 2.0),
            ax.plot([0.0, 1.0, 2.0], [0.5, 2.2, 0.5], "k--"),
            ax.text(0.9, 2.1, "above"),
        ),
        # an arrow may cross the curve, the words may not
        lambda ax: ax.annotate(
            "here", (1.5, 0.5), xytext=(0.2, 3.0), arrowprops={"arrowstyle": "-"}
        ),
        # words beside a line along the axis
        lambda ax: (ax.axhline(3.0, color="black", ls="--"), ax.text(0.2, 2.95, "limit")),
    ],
)
def test_legible_figures_have_no_fault(harmless):
    figure, ax = drawn()
    harmless(ax)
    assert plot.faults(figure) == []


def test_dashes_markers_and_greys_tell_lines_apart():
    for style in (
        {"linestyle": "--", "color": "#D55E00"},
        {"marker": "s", "color": "#D55E00"},
        {"color": "black"},
    ):
        figure, ax = drawn()
        ax.plot([0.0, 1.0], [3.0, 3.0], **style)
        assert plot.faults(figure) == [], style


def test_styles_of_lines_differ_without_colour():
    styles = [plot.line_style(k) for k in range(6)]
    assert len({(str(s["linestyle"]), s["marker"]) for s in styles}) == 6


def test_points_below_the_axis_are_not_drawn_along_it():
    xarray = pytest.importorskip("xarray")
    values = np.array([1e-3, 1e-7, 0.0])[None, :, None]
    axes = ("noise_multiplier", "sampling_prob", "num_steps")
    coords = {"noise_multiplier": [2.0], "sampling_prob": [0.01, 0.1, 1.0], "num_steps": [400]}
    grid = xarray.Dataset(
        {"regret_upper": (axes, values), "regret_lower": (axes, 0.5 * values)},
        coords,
        attrs={"fpr_floor": 1e-10},
    )
    ax = plot.regret_landscape(grid, Figure().add_subplot())
    low, _ = ax.get_ylim()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), values[0, :, 0])
    assert np.sum(ax.lines[0].get_ydata() == low) == 0 and "FPR" in ax.get_ylabel()
    assert (
        ax.lines[0].get_marker() != "None" and ax.lines[0].get_markevery() is None
    )  # few rates, a marker each


@pytest.mark.parametrize(("quantity", "limit"), [("mu", 1.001), ("beta", 0.9)])
def test_staircase_is_what_the_plan_tells_and_within_the_budget_up_to_its_last_step(
    quantity, limit
):
    plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=100, quantities=quantity)
    ax = plot.budget(plan, Figure().add_subplot(), quantity, limit=limit)
    steps, shown = ax.lines[1].get_data()
    last = plan.max_steps_within(**{quantity: limit})
    told = plan.at(np.arange(101))[quantity]
    safe, within = (
        (told.lower, shown >= limit) if quantity == "beta" else (told.upper, shown <= limit)
    )
    np.testing.assert_array_equal(shown[np.searchsorted(steps, np.arange(101))], safe)
    assert last in steps and np.array_equal(within, steps <= last)
    assert ax.get_legend_handles_labels()[1][-1] == f"budget: {last} steps"
