"""A sweep in a store equals one in memory, whatever its chunks, and goes on where it ended."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("dask")

from filling import files  # noqa: E402

import jaxgdp  # noqa: E402
from jaxgdp import sweep as sweep_function  # noqa: E402
from jaxgdp.scale.layout import Layout, chunk_shape  # noqa: E402

sweeping = importlib.import_module("jaxgdp.grids.sweep")
gridding = importlib.import_module("jaxgdp.grids.grid")
GRID = {
    "noise_multiplier": [1.0, 4.0, 2.0],
    "sampling_prob": [0.02, 1.0],
    "num_steps": [10, 40],
    "quantities": ("mu", "epsilon", "beta"),
    "rtol": 1e-2,
    "delta": 1e-6,
}


@pytest.fixture(scope="module")
def plain():
    return jaxgdp.sweep(**GRID, executor="eager")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "sweep.zarr"
    return path, jaxgdp.sweep(**GRID, store=path, chunk_size=5)


@pytest.fixture
def counted(monkeypatch):
    """How many settings every call of ``measure`` gets."""
    import sys

    module, sizes = sys.modules["jaxgdp.grids.grid"], []
    measure = module.measure

    def counting(mechanism, *args, **more):
        sizes.append(int(np.prod(mechanism.shape)))
        return measure(mechanism, *args, **more)

    monkeypatch.setattr(module, "measure", counting)
    return sizes


def test_layouts_cover_every_setting_once():
    for shape, settings in (((5, 4, 3), 7), ((1, 1, 1), 1), ((3, 8, 2), 1000), ((7, 2, 5), 10)):
        layout = Layout(shape, chunk_shape(shape, settings))
        seen = np.zeros(shape, int)
        for chunk in range(layout.number):
            seen[layout.region(chunk)] += 1
            assert layout.settings(chunk) == seen[layout.region(chunk)].size <= settings
        assert np.all(seen == 1)


def test_store_holds_what_a_sweep_in_memory_returns(plain, whole):
    path, returned = whole
    xarray.testing.assert_identical(returned.load(), plain)
    with xarray.open_zarr(path) as read:
        xarray.testing.assert_identical(read.load(), plain)
        for name in plain.variables:
            assert (
                read[name].dtype == plain[name].dtype
                and read[name].values.tobytes() == plain[name].values.tobytes()
            )


@pytest.mark.parametrize("chunk_size", [1, 1000])
def test_chunks_change_no_bit(plain, tmp_path, chunk_size):
    found = jaxgdp.sweep(**GRID, store=tmp_path / "sweep.zarr", chunk_size=chunk_size)
    for name in plain.variables:
        assert found[name].values.tobytes() == plain[name].values.tobytes(), name


@pytest.mark.slow
def test_chunks_change_no_bit_of_compiled_sweeps(tmp_path):
    grid = {
        "noise_multiplier": [1.0, 1.2],
        "sampling_prob": [0.2],
        "num_steps": [500, 600, 700],
        "rtol": 1e-2,
    }
    plain = jaxgdp.sweep(**grid, quantities="mu", executor="compiled")
    for size in (1, 5):
        path = tmp_path / f"{size}.zarr"
        found = jaxgdp.sweep(
            **grid, quantities="mu", executor="compiled", store=path, chunk_size=size
        )
        xarray.testing.assert_identical(found.load(), plain)
        assert (
            json.loads((path / "jaxgdp" / "zarr.json").read_text())["attributes"]["question"][
                "executor"
            ]
            == "compiled"
        )


def test_second_sweep_computes_only_what_is_missing(whole, tmp_path, counted):
    path, done = tmp_path / "sweep.zarr", []

    def stop(number):
        done.append(number)
        if sum(done) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jaxgdp.sweep(**GRID, store=path, chunk_size=5, progress=stop)
    assert counted == [4, 4] and [child.name for child in tmp_path.iterdir()] == ["sweep.zarr"]
    done = []
    jaxgdp.sweep(**GRID, store=path, chunk_size=5, progress=done.append)
    assert (
        counted == [4, 4, 4, 4] and done[0] == 4 and sum(done) == 12
    )  # the chunk in flight is computed again
    assert files(path) == files(whole[0])
    jaxgdp.sweep(**GRID, store=str(path), chunk_size=5)
    assert len(counted) == 4


@pytest.mark.parametrize(
    "name, value",
    [
        ("rtol", 1e-3),
        ("delta", 1e-5),
        ("fpr_floor", 1e-9),
        ("num_steps", [10, 41]),
        ("adjacency", "add"),
        ("quantities", ("mu", "epsilon")),
        ("executor", "compiled"),
        ("chunk_size", 2),
    ],
)
def test_question_of_another_store_is_refused_before_anything_is_computed(
    whole, counted, name, value
):
    path, _ = whole
    before = files(path)
    told = {"delta": "asked at", "chunk_size": "chunk"}.get(name, name)
    with pytest.raises(ValueError, match=f"store {path} is of another question: its {told} is "):
        jaxgdp.sweep(**(GRID | {"chunk_size": 5} | {name: value}), store=path)
    assert counted == [] and files(path) == before


def test_arguments_that_do_not_matter_make_no_other_question(whole, counted):
    path, returned = whole
    again = jaxgdp.sweep(
        **(GRID | {"prior": 0.1, "noise_multiplier": (1, 4, 2)}), store=path, chunk_size=5
    )
    xarray.testing.assert_identical(again.load(), returned.load())
    assert counted == []


@pytest.mark.parametrize(
    "more, message",
    [
        ({"store": 3}, "store must be a path"),
        ({"store": "s3://bucket/x.zarr"}, "store must be the path of a folder"),
        ({"store": "/nowhere/at/all.zarr"}, "store must lie in an existing folder"),
        ({"chunk_size": 0.5}, "chunk_size must be"),
        ({"executor": "abacus"}, "executor must be one of"),
        ({"adjacency": "replace_one"}, "replace_one"),
        ({"client": 3}, "client must be a dask"),
    ],
)
def test_bad_arguments_are_named_before_a_store_is_made(tmp_path, more, message):
    if "client" in more:
        pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=message):
        jaxgdp.sweep(**(GRID | {"store": tmp_path / "sweep.zarr"} | more))
    assert list(tmp_path.iterdir()) == []


def test_unfinished_store_does_not_look_finished(tmp_path):
    with pytest.raises(KeyboardInterrupt):

        def stop(_):
            raise KeyboardInterrupt

        jaxgdp.sweep(**GRID, store=tmp_path / "sweep.zarr", chunk_size=5, progress=stop)
    with xarray.open_zarr(tmp_path / "sweep.zarr") as read:
        assert (
            np.all(read["status"] == -1)
            and np.all(read["lattice_size"] == -1)
            and np.all(np.isnan(read["mu"]))
        )
        assert read["noise_multiplier"].values.tolist() == GRID["noise_multiplier"]


def test_bar_tells_the_rate_and_the_time_left(monkeypatch, capsys):
    from jaxgdp import progress

    told = progress.Progress("sweeping", 100, "settings", rate=True)
    told.skip(60)
    assert str(told) == "sweeping, 60 of about 100 settings"
    monkeypatch.setattr(progress.time, "monotonic", lambda: told.begin + 4.0)
    told(20)
    assert str(told) == "sweeping, 80 of about 100 settings, 5 a second, 4 s left"


def test_sweep_with_a_bar_is_the_same(plain, monkeypatch, capsys):
    from jaxgdp import progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    xarray.testing.assert_identical(jaxgdp.sweep(**GRID, executor="eager", progress=True), plain)
    assert "settings" in capsys.readouterr().err


def test_missing_variables_are_named(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"jaxgdp\[scale\]"):
        sweep_function(**GRID, store=tmp_path / "sweep.zarr")


@pytest.mark.slow
def test_first_settings_of_a_large_store_are_numpys_and_the_others_compiled(tmp_path, monkeypatch):
    """Which settings those are depends on their places alone, neither on chunks nor on what is
    there already.
    """
    monkeypatch.setattr(sweeping, "_FEW", 5)
    monkeypatch.setattr(gridding, "_FIRST", 4)
    asked, measure = [], gridding.measure

    def recording(mechanism, *args, executor, **named):
        asked.append((executor, mechanism.shape[0]))
        return measure(mechanism, *args, executor=executor, **named)

    monkeypatch.setattr(gridding, "measure", recording)
    grid = {
        "noise_multiplier": [1.0, 1.2],
        "sampling_prob": [0.2],
        "num_steps": [500, 600, 700],
        "rtol": 1e-2,
        "quantities": "mu",
    }
    found = [
        jaxgdp.sweep(**grid, store=tmp_path / f"{size}.zarr", chunk_size=size).load()
        for size in (6, 3)
    ]
    assert asked == [
        *(("eager", 4), ("compiled", 2)),
        *(("eager", 3), ("eager", 1), ("compiled", 2)),
    ]
    for name in found[0].variables:
        assert found[0][name].values.tobytes() == found[1][name].values.tobytes(), name
