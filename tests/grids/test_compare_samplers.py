"""One training by every sampler: labelled brackets, the one-line answer, the figure and the
command.
"""

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

import jaxgdp  # noqa: E402
from jaxgdp import samplers  # noqa: E402
from jaxgdp.grids import compare_samplers as comparison  # noqa: E402
from jaxgdp.grids import samplers_text  # noqa: E402
from jaxgdp.grids.implementations import WAYS  # noqa: E402
from jaxgdp.report import rows_of  # noqa: E402


@pytest.fixture(scope="module")
def found():
    names = ("deterministic", "shuffled", "poisson")
    return jaxgdp.compare_samplers([0.5, 2.0], 1000, 10, 1, rtol=1e-2, samplers=names)


def test_each_sampler_has_the_brackets_of_its_mechanism(found):
    assert found.sizes == {"sampler": 3, "noise_multiplier": 2, "batch_size": 1, "num_epochs": 1}
    made = {
        "deterministic": jaxgdp.Deterministic([0.5, 2.0]),
        "shuffled": jaxgdp.Shuffled([0.5, 2.0], 100),
        "poisson": jaxgdp.dpsgd([0.5, 2.0], 0.01, 100),
    }
    for name, mechanism in made.items():
        epsilon = jaxgdp.measure(mechanism, comparison.QUANTITIES, rtol=1e-2).brackets["epsilon"]
        one = found.sel(sampler=name)
        assert np.array_equal(one.epsilon.values.ravel(), epsilon.upper)
        assert np.array_equal(one.epsilon_lower.values.ravel(), epsilon.lower)
        assert np.array_equal(one.epsilon_upper.values.ravel(), epsilon.upper)
    assert found.epsilon.attrs["at"] == 1e-5 and found.epsilon.attrs["units"] == "nats"
    assert "shuffled: the upper side" in found.loose and "poisson" not in found.loose


def test_answer_is_a_line_and_true(found):
    first, second = found.answer.splitlines()
    assert first.startswith(
        "sigma = 0.5, 100 batches an epoch, 1 epoch: shuffled, but accounted for as Poisson"
    )
    told, truth = (
        found.sel(sampler=name).isel(noise_multiplier=0) for name in ("poisson", "shuffled")
    )
    ratio = float(first.split("at least ")[1].split(" times")[0])
    exact = float(truth.epsilon_lower.squeeze() / told.epsilon.squeeze())
    assert exact - 0.1 < ratio <= exact
    assert "delta = 1e-05" in second
    assert "not more than that" in samplers_text._how_wrong(
        jaxgdp.Bracket(2.0, 2.1), jaxgdp.Bracket(1.0, 1.5)
    )
    assert "up to 2 times" in samplers_text._how_wrong(
        jaxgdp.Bracket(2.0, 2.1), jaxgdp.Bracket(1.0, 4.0)
    )
    assert comparison.answers(found.sel(sampler=["poisson"])) == []


def test_tables_and_figures(found, tmp_path):
    plt = pytest.importorskip("matplotlib.figure")
    from jaxgdp.plot import sampler_bands

    comparison.write_csv(found, tmp_path / "a.csv")
    told = dict(
        line[2:].split(": ", 1)
        for line in (tmp_path / "a.csv").read_text().splitlines()
        if line[0] == "#"
    )
    assert (
        told["version"] == jaxgdp.__version__
        and float(told["fpr_floor"]) == found.attrs["fpr_floor"]
    )
    assert set(told) >= {"date", "question", "rtol", "adjacency", "dataset_size", "epsilon_at"}
    lines = rows_of(tmp_path / "a.csv")
    assert len(lines) == 7 and lines[0].startswith(
        "sampler,noise_multiplier,batch_size,num_epochs,epsilon,epsilon_lower,epsilon_upper"
    )
    for part in (found, found.isel(noise_multiplier=[0])):
        ax = sampler_bands(part, plt.Figure().add_subplot(), "mu")
        assert ax.get_ylabel() == r"$\mu$ (FPR $\geq 10^{-10}$)" and ax.get_yscale() == "log"
    with pytest.raises(
        ValueError, match="quantity must be one that the data set has both sides of, got 'delta'"
    ):
        sampler_bands(found, plt.Figure().add_subplot(), "delta")


@pytest.mark.nightly
def test_rows_of_steps_as_they_are_implemented():
    found = jaxgdp.compare_samplers(
        1.0,
        100,
        20,
        samplers="poisson",
        as_implemented=True,
        rtol=1e-2,
        quantities=("epsilon", "mu"),
    )
    rows = jaxgdp.compare_implementations(1.0, 100, 20, rtol=1e-2)
    assert found.sampler.values.tolist()[1:] == [way.name for way in WAYS]
    for way in WAYS:
        one = found.sel(sampler=way.name).squeeze()
        (same,) = (row.epsilon for row in rows if row.name == way.title)
        # (μ, which is asked for beside it, has the lattices of its own plan)
        both = float(one.epsilon_lower), float(one.epsilon_upper)
        assert both == pytest.approx(tuple(same), rel=1e-2)
        assert way.reason in found.as_implemented and way.name in comparison.summary_text(found)
    told, means = found.sel(sampler="poisson").squeeze(), found.sel(sampler="micro_batch_means")
    assert float(means.mu_lower.squeeze()) > float(told.mu) and np.isinf(means.mu).all()
    figure = pytest.importorskip("matplotlib.figure").Figure()
    from jaxgdp.plot import sampler_bands

    sampler_bands(found, figure.add_subplot(), "epsilon").figure.canvas.draw()
    with pytest.raises(ValueError, match="as_implemented must be True or False, got 'yes'"):
        jaxgdp.compare_samplers(1.0, 100, 20, as_implemented="yes")


def test_command(tmp_path, monkeypatch, capsys):
    pytest.importorskip("click")
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")
    monkeypatch.chdir(tmp_path)
    from jaxgdp.cli import main

    call = [
        "samplers",
        "--noise-multiplier",
        "0.5",
        "--dataset-size",
        "1000",
        "--batch-size",
        "10",
        "--rtol",
        "1e-2",
    ]
    assert main([*call, "--sampler", "shuffled,poisson", "--csv", "s.csv"]) == 0
    out = capsys.readouterr().out
    assert "times as much (delta = 1e-05)" in out and (tmp_path / "s.csv").exists()
    assert main([*call[:-4], "--batch-size", "2000"]) == 2
    assert "batch_size must be a whole number in [1, 1000], got 2000" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"batch_size": 200}, r"batch_size must be a whole number in \[1, 100\], got 200"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"num_epochs": 0}, "num_epochs must be a whole number >= 1, got 0"),
        ({"noise_multiplier": [[1.0]]}, "noise_multiplier must be a scalar or one-dimensional"),
        ({"dataset_size": [100, 200]}, "dataset_size must be a single number"),
        ({"samplers": "foo"}, "sampler must be one of 'deterministic', 'shuffled', 'poisson'"),
        ({"samplers": ("poisson", "poisson")}, "each sampler once"),
        ({"samplers": ()}, "at least one sampler"),
        ({"delta": [1e-5, 1e-6]}, "delta must be a single number"),
        ({"samplers": "poisson", "adjacency": "replace_one"}, "got 'replace_one'"),
        ({"adjacency": "both"}, "adjacency must be one of"),
        (
            {"noise_multiplier": [2.0, 0.1], "samplers": ("poisson", "random_allocation")},
            "in \\[0.2, 10000\\] for Random",
        ),
        (
            {"samplers": "truncated_poisson"},
            "truncated_batch_size must be given for sampler 'truncated_poisson'",
        ),
        (
            {"samplers": "truncated_poisson", "truncated_batch_size": 101},
            "batch_size must be a whole number",
        ),
        (
            {"samplers": "truncated_poisson", "truncated_batch_size": [10, 20]},
            "one for each of 1 batch sizes",
        ),
    ],
)
def test_bad_input_is_refused_by_name_before_anything_is_measured(arguments, message, monkeypatch):
    monkeypatch.setattr(comparison, "measure", lambda *_, **__: pytest.fail("measured first"))
    given = {"noise_multiplier": 1.0, "dataset_size": 100, "batch_size": 10} | arguments
    with pytest.raises(ValueError, match=message):
        jaxgdp.compare_samplers(**given)


def test_samplers_without_a_bracket_are_left_out_by_name_where_nobody_asked_for_them(monkeypatch):
    for name in ("shuffled", "poisson"):
        monkeypatch.delitem(samplers.REGISTRY, name)
    found = jaxgdp.compare_samplers([0.1, 0.3], 1000, 100, quantities="advantage", rtol=0.1)
    assert found.sampler.values.tolist() == ["deterministic"]
    assert found.left_out.startswith("random_allocation: noise_multiplier must be in [0.2, 10000]")
    assert f"left out: {found.left_out}" in comparison.summary_text(found)
    swapped = jaxgdp.compare_samplers(
        1.0, 1000, 100, quantities="advantage", rtol=0.1, adjacency="replace_one"
    )
    assert (
        swapped.sampler.values.tolist() == ["deterministic"]
        and "RandomAllocation" in swapped.left_out
    )
    monkeypatch.delitem(samplers.REGISTRY, "deterministic")
    with pytest.raises(
        ValueError, match="no sampler has brackets for these settings: random_allocation: noise"
    ):
        jaxgdp.compare_samplers(0.1, 1000, 100)


def test_cut_and_fixed_batches_are_compared_where_asked_for():
    names = ("truncated_poisson", "fixed_size")
    found = jaxgdp.compare_samplers(
        2.0,
        40,
        [10, 20],
        samplers=names,
        quantities="advantage",
        rtol=0.1,
        truncated_batch_size=[12, 40],
    )
    own = {
        "truncated_poisson": [(jaxgdp.TruncatedPoisson(2.0, [0.25, 0.5], [12, 40], 40), [4, 2])],
        "fixed_size": [(jaxgdp.FixedSize(2.0, [10, 20], 40), [4, 2])],
    }
    for name, parts in own.items():
        advantage = jaxgdp.measure(jaxgdp.compose(parts), "advantage", rtol=0.1).brackets[
            "advantage"
        ]
        assert np.array_equal(found.sel(sampler=name).advantage.values.ravel(), advantage.upper)
        assert f"{name}: the upper side" in found.loose
    assert not set(names) & set(comparison._chosen(None, False))


def test_new_sampler_is_one_registration(monkeypatch):
    monkeypatch.setattr(samplers, "REGISTRY", dict(samplers.REGISTRY))
    own = samplers.Sampler(
        "all",
        "whole data",
        lambda at: jaxgdp.dpsgd(at.noise_multiplier, 1.0, at.num_batches * at.num_epochs),
    )
    assert samplers.register(own) is samplers.named("all")
    assert samplers.mechanism("all", 1.0, 4, 2).counts[0] == 8.0
    with pytest.raises(ValueError, match="registered already"):
        samplers.register(own)


def test_epochs_is_an_old_name_that_warns():
    with pytest.warns(DeprecationWarning, match=r"write compare_samplers\(num_epochs=…\)"):
        found = jaxgdp.compare_samplers(
            1.0, 10, 10, epochs=2, samplers="deterministic", quantities="mu", rtol=0.1
        )
    assert found.num_epochs.values.tolist() == [2.0]
    with pytest.warns(DeprecationWarning, match="by position is deprecated: write compare_samp"):
        jaxgdp.compare_samplers(1.0, 10, 10, 1, "mu", "deterministic", rtol=0.1)
