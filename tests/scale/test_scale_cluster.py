"""Workers of a Dask cluster compute what one process would, and one that is killed loses only what
it was doing.
"""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

from filling import compute, files, filled, nothing, template  # noqa: E402

import jaxgdp  # noqa: E402
from jaxgdp.scale import cluster  # noqa: E402
from jaxgdp.scale.compute import compute_missing  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def client():
    """Two processes, each with one thread; the scheduler gives a task up as soon as one worker died
    of it.
    """
    import dask

    settings = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "silence_logs": 50,
    }
    impatient = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with impatient, distributed.LocalCluster(**settings) as here, distributed.Client(here) as found:
        yield found


def _slowly(region, progress):
    return compute(region, progress, pause=0.2)


def test_workers_fill_a_store_even_if_one_is_killed(client, tmp_path):
    finished = []
    (victim, *_) = client.run(os.getpid).values()

    def kill_once(number):
        finished.append(number)
        if len(finished) == 1:
            threading.Thread(target=os.kill, args=(victim, signal.SIGKILL)).start()

    compute_missing(tmp_path / "store.zarr", template(), _slowly, nothing, kill_once, client)
    client.wait_for_workers(2)
    assert victim not in client.run(os.getpid).values() and len(finished) == 5
    assert files(tmp_path / "store.zarr") == files(filled(tmp_path / "undisturbed.zarr"))


def test_sweep_by_workers_is_the_sweep(client, tmp_path):
    grid = {
        "noise_multiplier": [1.0, 2.0, 3.0],
        "sampling_prob": [0.1, 1.0],
        "num_steps": [20],
        "rtol": 1e-2,
    }
    plain = jaxgdp.sweep(**grid, executor="eager")
    done = []
    stored = jaxgdp.sweep(
        **grid, store=tmp_path / "s.zarr", chunk_size=2, client=client, progress=done.append
    )
    xarray.testing.assert_identical(stored.load(), plain)
    assert done[0] == 0 and sum(done) == 6
    address = client.scheduler.address
    xarray.testing.assert_identical(jaxgdp.sweep(**grid, executor="eager", client=address), plain)


def test_measure_by_workers_is_measure(client):
    batch = jaxgdp.compose(
        [(jaxgdp.Gaussian(np.linspace(2.0, 4.0, 20)), 3), (jaxgdp.Laplace(10.0), 2)]
    )
    asked = {
        "quantities": ("mu", "epsilon"),
        "delta": np.geomspace(1e-8, 1e-4, 20),
        "rtol": 1e-2,
        "executor": "eager",
    }
    here, there = jaxgdp.measure(batch, **asked), jaxgdp.measure(batch, **asked, client=client)
    for name, bracket in here.brackets.items():
        np.testing.assert_array_equal(there.brackets[name], bracket)
    np.testing.assert_array_equal(there.lattice_size, here.lattice_size)
    np.testing.assert_array_equal(there.executor, here.executor)


@pytest.mark.slow
def test_calibrations_by_workers_meet_their_targets(client):
    goals = np.linspace(0.05, 0.3, 3)
    asked = {"sampling_prob": [[0.1], [1.0]], "num_steps": 4, "rtol": 2e-2}
    done = []
    here = jaxgdp.calibrate(jaxgdp.targets.Advantage(goals), **asked)
    there = jaxgdp.calibrate(
        jaxgdp.targets.Advantage(goals), **asked, client=client, progress=done.append
    )
    np.testing.assert_allclose(there.value, here.value, rtol=2e-2)
    assert np.all(there.achieved.upper <= goals) and np.all(there.status == 0) and sum(done) == 6
    np.testing.assert_array_equal(there.closed_form, here.closed_form)
    for other in ({"mechanism": jaxgdp.Laplace(1.0)}, {"black_box": abs}):
        with pytest.raises(
            ValueError, match=f"client .* must not be given with {next(iter(other))}"
        ):
            jaxgdp.calibrate(jaxgdp.targets.Advantage(0.1), **other, client=client)


def test_other_versions_and_32_bits_are_refused(client, monkeypatch):
    versions = cluster.versions()
    monkeypatch.setattr(cluster, "versions", lambda: versions | {"jax": "0.0.1"})
    with pytest.raises(
        RuntimeError, match=rf"this worker has jax {versions['jax']} \(the client has 0.0.1\)"
    ):
        list(cluster.each(client, abs, [1]))
    monkeypatch.undo()
    import jax

    monkeypatch.setattr(jax.numpy, "ones", lambda n: np.ones(n, np.float32))
    with pytest.raises(RuntimeError, match="cannot compute in 64 bits"):
        cluster._same_as(versions)


def _fails(item):
    raise FloatingPointError(f"item {item}")


def test_error_of_the_work_itself_ends_it(client):
    with pytest.raises(FloatingPointError, match="item"):
        list(cluster.each(client, _fails, range(3)))
