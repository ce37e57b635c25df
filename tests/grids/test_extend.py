"""Stores are extended by new settings alone; what a grid costs is known before it begins."""

import numpy as np
import pytest

pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("dask")

import jaxgdp
from jaxgdp.grids import grid as gridding
from jaxgdp.grids.cost import Cost

GRID = {"noise_multiplier": [1.0, 2.0], "sampling_prob": 1.0, "num_steps": [1, 4], "rtol": 1e-2}


@pytest.fixture
def asked(monkeypatch):
    """Numbers of settings that were computed, call by call."""
    module, sizes = gridding, []

    def counting(mechanism, *args, **given):
        sizes.append(int(np.prod(mechanism.shape)))
        return measure(mechanism, *args, **given)

    measure = module.measure
    monkeypatch.setattr(module, "measure", counting)
    return sizes


def test_new_settings_alone_are_computed(tmp_path, asked):
    store = tmp_path / "s.zarr"
    jaxgdp.sweep(**GRID, store=store, chunk_size=3)
    del asked[:]
    done, more = [], GRID | {"noise_multiplier": [0.5, 1.0, 1.5, 2.0], "num_steps": [1, 2, 4]}
    found = jaxgdp.sweep(**more, store=store, chunk_size=5, progress=done.append).load()
    assert sum(asked) == 12 - 4 and sum(done) == 12
    alone = jaxgdp.sweep(**more)
    for name in alone.data_vars:
        assert np.array_equal(found[name], alone[name]), name
    del asked[:]
    assert jaxgdp.sweep(**more, store=store, chunk_size=5).sizes["num_steps"] == 3
    assert asked == [] and sorted(p.name for p in tmp_path.iterdir()) == ["s.zarr"]


def test_killed_extension_goes_on_and_leaves_the_old_store(tmp_path, asked):
    store = tmp_path / "s.zarr"
    jaxgdp.sweep(**GRID, store=store)
    more = GRID | {"num_steps": [1, 2, 3, 4]}

    def killed(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jaxgdp.sweep(**more, store=store, chunk_size=2, progress=killed)
    assert jaxgdp.sweep(**GRID, store=store).sizes["num_steps"] == 2
    assert (jaxgdp.sweep(**more, store=store, chunk_size=2).status >= 0).all()


@pytest.mark.parametrize("change", [{"rtol": 1e-3}, {"num_steps": [2, 4]}, {"adjacency": "add"}])
def test_other_questions_extend_nothing(tmp_path, change):
    store = tmp_path / "s.zarr"
    jaxgdp.sweep(**GRID, store=store)
    with pytest.raises(ValueError, match="is of another question"):
        jaxgdp.sweep(**GRID | change, store=store)


def test_runs_have_batches_and_epochs_as_axes():
    found = jaxgdp.sweep(
        [1.0, 2.0], dataset_size=1000, batch_size=[10, 100], num_epochs=[1, 3], quantities="mu",
        rtol=1e-2, sampler="opacus", executor="eager",
    )  # fmt: skip
    assert dict(found.sizes) == {"noise_multiplier": 2, "batch_size": 2, "num_epochs": 2}
    one = jaxgdp.run(2.0, 1000, 100, num_epochs=3, sampler="opacus")
    assert float(found.mu[1, 1, 1]) == jaxgdp.mu(one, rtol=1e-2, executor="eager").upper
    assert found.attrs["dataset_size"] == 1000.0 and found.attrs["sampler"] == "opacus"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"noise_multiplier": [1.0, 1.0]},
            "noise_multiplier must hold each value once, got 1 more",
        ),
        ({"num_steps": None}, "num_steps must be given, or dataset_size"),
        ({"dataset_size": 10}, "sampling_prob follows from dataset_size"),
        ({"sampler": "shuffled"}, "sampler 'shuffled' needs dataset_size"),
        (
            {"num_steps": np.arange(1, 10**5), "noise_multiplier": np.arange(1, 10**5)},
            "give store=",
        ),
    ],
)
def test_bad_grids_are_refused_before_anything_is_computed(change, message, asked):
    with pytest.raises(ValueError, match=message):
        jaxgdp.sweep(**GRID | change)
    assert asked == []


def test_days_of_work_need_a_yes(tmp_path, asked):
    axis = np.arange(1.0, 3001.0)
    grid = {"noise_multiplier": axis, "sampling_prob": 1.0 / axis, "num_steps": axis}
    with pytest.raises(ValueError, match=r"27,000,000,000 settings: about 6 years .*yes=True"):
        jaxgdp.sweep(**grid, store=tmp_path / "s.zarr")
    assert asked == [] and not list(tmp_path.iterdir())
    assert "2.2 TB" in str(Cost.of((3000, 3000, 3000), quantities=2))


@pytest.mark.nightly
def test_memory_is_bounded_by_a_chunk_whatever_the_grid(tmp_path):
    import resource

    axis = np.arange(1.0, 3001.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jaxgdp.sweep(axis, 1.0, axis, store=tmp_path / "a.zarr", chunk_size=8, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        jaxgdp.sweep(axis, 1.0 / axis, axis, store=tmp_path / "b.zarr", yes=True, chunk_size=8,
                     progress=stop)  # fmt: skip
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000  # KiB, of which most is the code that is loaded
