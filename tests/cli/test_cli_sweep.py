"""``jaxgdp sweep`` and ``jaxgdp landscape --from``: axes as typed, stores gone on with, figures of
what is there.
"""

from __future__ import annotations

import contextlib
import csv
import shutil
import sys

import numpy as np
import pytest

pytest.importorskip("click")
xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("dask")

import jaxgdp  # noqa: E402
from jaxgdp.cli import main  # noqa: E402
from jaxgdp.cli.options import axis  # noqa: E402
from jaxgdp.report import rows_of  # noqa: E402

AXES = [
    "--noise-multiplier",
    "1:4:3:log",
    "--sampling-prob",
    "0.1,1",
    "--num-steps",
    "10:20:2",
    "--rtol",
    "1e-2",
]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "sweep.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXGDP_NO_CACHE", "1")
        assert main(["sweep", "--store", str(path), *AXES, "--quiet"]) == 0
    return path


@pytest.mark.parametrize(
    "texts, found",
    [
        (["1,2", "3"], [1, 2, 3]),
        (["1:3:5"], [1, 1.5, 2, 2.5, 3]),
        (["1:100:3:log,7"], [1, 10, 100, 7]),
        (["2:2:1"], [2]),
        (["1/4:1:2:linear"], [0.25, 1]),
        (["3:1:3"], [3, 2, 1]),
    ],
)
def test_axes(texts, found):
    np.testing.assert_allclose(axis("--x", texts), found, rtol=1e-15)


def test_ranges_of_whole_numbers_are_rounded_and_numbers_as_typed_are_not():
    assert axis("--num-steps", ["1:4:7", "2.5"], rounded=True) == [1.0, 2.0, 3.0, 4.0, 2.5]


@pytest.mark.parametrize(
    "text, mention",
    [
        ("1:2", "FROM:TO:NUMBER"),
        ("1:2:3:cubic", "FROM:TO:NUMBER"),
        ("1:2:0", "whole number of values"),
        ("0:2:3:log", "above 0"),
        ("1:2:2.5", "whole number of values"),
        ("a:2:3", "must be a number"),
        ("1:inf:3", "finite"),
        ("1:2:9e9", "from 1 to"),
    ],
)
def test_bad_ranges_are_one_line(capsys, tmp_path, text, mention):
    assert (
        main(
            [
                "sweep",
                "--store",
                str(tmp_path / "s.zarr"),
                "--noise-multiplier",
                text,
                "--num-steps",
                "1",
            ]
        )
        == 2
    )
    said = capsys.readouterr().err
    assert (
        said.startswith("jaxgdp: error: --noise-multiplier ")
        and mention in said
        and said.count("\n") == 1
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "more, mention",
    [
        (["--workers", "2", "--scheduler", "tcp://x:1"], "--workers or --scheduler"),
        (["--workers", "0"], "--workers must be"),
        (["--quantity", "mu,nonsense"], "nonsense"),
        (["--chunk-size", "0"], "--chunk-size must be"),
        (["--executor", "abacus"], "executor must be one of"),
    ],
)
def test_bad_options_are_one_line(capsys, tmp_path, more, mention):
    assert main(["sweep", "--store", str(tmp_path / "s.zarr"), *AXES, *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxgdp: error: ") and mention in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_store_is_the_sweep(store):
    grid = {
        "noise_multiplier": [1.0, 2.0, 4.0],
        "sampling_prob": [0.1, 1.0],
        "num_steps": [10, 20],
        "rtol": 1e-2,
    }
    with xarray.open_zarr(store) as found:
        xarray.testing.assert_identical(found.load(), jaxgdp.sweep(**grid, executor="eager"))


def test_same_command_goes_on_and_another_is_refused(store, capsys, monkeypatch):
    import sys

    def never(*_, **__):
        raise AssertionError("everything was there")

    monkeypatch.setattr(sys.modules["jaxgdp.grids.grid"], "measure", never)
    assert main(["sweep", "--store", str(store), *AXES]) == 0
    assert "12 settings, 12 as narrow as requested, 0 wider" in capsys.readouterr().out
    assert main(["sweep", "--store", str(store), *AXES, "--fpr-floor", "1e-9"]) == 2
    assert (
        f"store {store} is of another question: its fpr_floor is 1e-10, here it is 1e-09"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_workers_of_its_own(store, tmp_path):
    pytest.importorskip("distributed")
    path = tmp_path / "sweep.zarr"
    assert (
        main(
            ["sweep", "--store", str(path), *AXES, "--quiet", "--workers", "2", "--chunk-size", "4"]
        )
        == 0
    )
    with xarray.open_zarr(path) as found, xarray.open_zarr(store) as other:
        xarray.testing.assert_identical(found.load(), other.load())


@pytest.mark.parametrize("kind", ["lines", "heat-map"])
def test_landscape_of_a_store(store, tmp_path, capsys, kind):
    pytest.importorskip("matplotlib")
    pytest.importorskip("h5netcdf")
    paths = {name: tmp_path / f"landscape.{name}" for name in ("csv", "nc", "png")}
    options = [
        "--csv",
        str(paths["csv"]),
        "--netcdf",
        str(paths["nc"]),
        "--figure",
        str(paths["png"]),
    ]
    wanted = ["--noise-multiplier", "4,1", "--figure-type", kind]
    assert main(["landscape", "--from", str(store), *options, *wanted]) == 0
    assert "8 settings" in capsys.readouterr().out
    rows = list(csv.DictReader(rows_of(paths["csv"])))
    assert [float(row["noise_multiplier"]) for row in rows] == [4.0] * 4 + [1.0] * 4
    with xarray.open_zarr(store) as found, xarray.open_dataset(paths["nc"]) as written:
        assert float(rows[0]["mu_upper"]) == float(found["mu"].sel(noise_multiplier=4.0)[0, 0])
        assert written.sizes == {"noise_multiplier": 2, "sampling_prob": 2, "num_steps": 2}
    assert paths["png"].stat().st_size > 5000


def test_landscape_of_what_cannot_be_drawn_says_why(store, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)

    def said(*options):
        assert main(["landscape", *options]) == 2
        return capsys.readouterr().err

    assert "num_steps must be one of the store's 2 values, got 15" in said(
        "--from", str(store), "--num-steps", "15"
    )
    assert "--rtol is what the store was computed at" in said(
        "--from", str(store), "--rtol", "1e-2"
    )
    assert "--figure-type must be one of 'lines', 'heat-map', got 'pie'" in said(
        "--figure-type", "pie"
    )
    assert "does not exist" in said("--from", "nowhere.zarr") or "no store" in said(
        "--from", "nowhere.zarr"
    )
    partial = jaxgdp.sweep(1.0, 1.0, [1, 2], store="part.zarr", chunk_size=1)
    partial.close()
    (tmp_path / "part.zarr" / "jaxgdp" / "done" / "c" / "1" / "0" / "0").unlink()
    (tmp_path / "part.zarr" / "status" / "c" / "0" / "0" / "1").unlink()
    assert "must be whole, 1 of its 2 settings are missing" in said("--from", "part.zarr")
    jaxgdp.sweep(1.0, 1.0, 1, quantities="mu", store="mu.zarr").close()
    assert "must hold mu and regret, it lacks regret" in said("--from", "mu.zarr")


@pytest.mark.parametrize("how", ["other numbers", "no numbers"])
def test_landscape_of_a_damaged_store_names_the_file(store, tmp_path, capsys, how):
    """Even where what lies there can be read as numbers."""
    pytest.importorskip("matplotlib")
    other = tmp_path / "damaged.zarr"
    shutil.copytree(store, other)
    file, *_ = (
        path
        for path in sorted((other / "regret").rglob("*"))
        if path.parent.name == "0" and path.is_file()
    )
    was = file.read_bytes()
    file.write_bytes(was[::-1] if how == "other numbers" else b"garbage")
    outputs = [
        "--csv",
        str(tmp_path / "a.csv"),
        "--netcdf",
        str(tmp_path / "a.nc"),
        "--figure",
        str(tmp_path / "a.png"),
    ]
    assert main(["landscape", "--from", str(other), *outputs]) == 2
    said = capsys.readouterr().err
    assert (
        "damaged: it is not what was written" in said
        and str(file) in said
        and said.count("\n") == 1
    )
    assert not (tmp_path / "a.csv").exists()


def test_worker_that_is_missing_is_one_line(capsys, tmp_path, monkeypatch):
    from jaxgdp.scale import cluster

    def refused(client, function, items):
        monkeypatch.setattr(cluster, "versions", lambda: {"jaxgdp": "0"})
        return cluster._same_as({"jaxgdp": "1"})

    monkeypatch.setattr(cluster, "each", refused)
    monkeypatch.setattr(cluster, "connected", contextlib.nullcontext)
    monkeypatch.setattr(sys.modules["jaxgdp.grids.sweep"], "connected", contextlib.nullcontext)
    options = ["--noise-multiplier", "2", "--num-steps", "4", "--scheduler", "tcp://nowhere:1"]
    assert main(["sweep", "--store", str(tmp_path / "refused.zarr"), *options]) == 2
    assert capsys.readouterr().err == "jaxgdp: error: this worker has jaxgdp 0 (the client has 1)\n"


def some_regrets():
    """Upper sides, and a data set of them with its coordinates in descending order."""
    sigmas, rates, steps = [4.0, 1.0], [0.01, 0.1, 1.0], [10.0, 40.0]
    upper = np.arange(1.0, 13.0).reshape(2, 3, 2) * 2e-3
    dimensions = ("noise_multiplier", "sampling_prob", "num_steps")
    data = xarray.Dataset(
        {"regret_upper": (dimensions, upper), "regret_lower": (dimensions, upper * 1e-6)},
        coords=dict(zip(dimensions, (sigmas, rates, steps), strict=True)),
    )
    return upper, data


def test_heat_map_tells_a_setting_beside_the_mouse():
    """A mouse that moves over the figure, as a notebook's would: the note is there, with Δ, σ, p
    and T, and goes with it.
    """
    pytest.importorskip("mplcursors")
    from matplotlib.backend_bases import MouseEvent
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from jaxgdp.plot import regret_heat_map

    upper, data = some_regrets()
    figure = Figure()
    canvas = FigureCanvasAgg(figure)
    axes = regret_heat_map(data, figure.subplots(1, 2))
    canvas.draw()
    for k, steps in ((0, 10), (1, 40)):
        MouseEvent(
            "motion_notify_event", canvas, *axes[k].transData.transform((0.13, 3.2))
        )._process()
        (note,) = [
            text.get_text() for text in figure.findobj(lambda a: type(a).__name__ == "Annotation")
        ]
        assert (
            note == f"σ = 4, p = 0.1, T = {steps}: Δ in [{upper[0, 1, k] * 1e-6:.4g},"
            f" {upper[0, 1, k]:.4g}]"
        )


def test_heat_map_says_what_the_data_say():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from jaxgdp.plot import regret_heat_map

    upper, data = some_regrets()
    rates, steps = ([float(x) for x in data[name]] for name in ("sampling_prob", "num_steps"))
    axes = Figure().subplots(1, 2)
    assert regret_heat_map(data, axes) is axes
    for k, ax in enumerate(axes):
        mesh = ax.collections[0]
        np.testing.assert_array_equal(
            mesh.get_array(), upper[::-1, :, k]
        )  # noise multipliers ascending
        corners = mesh.get_coordinates()
        assert (
            corners[0, 0, 0] < 0.01 < corners[0, 1, 0] < 0.1
            and corners[0, 0, 1] < 1.0 < corners[1, 0, 1] < 4.0
        )
        assert ax.get_title() == f"$T$ = {steps[k]:g}"
        said = (
            f"σ = 4, p = 0.1, T = {steps[k]:g}: Δ in [{upper[0, 1, k] * 1e-6:.4g},"
            f" {upper[0, 1, k]:.4g}]"
        )
        assert ax.format_coord(0.09, 3.9) == said
    with pytest.raises(ValueError, match="one for each of the 2 numbers of steps, got 1"):
        regret_heat_map(data, axes[:1])
    # a level that the values cross is drawn where they do: between 0.008 and 0.012 along the rates
    contours = [c for c in axes[0].collections[1:] if len(c.get_paths())]
    assert contours
