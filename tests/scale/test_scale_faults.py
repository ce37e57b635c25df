"""Whatever happens to a store or to who writes it: what was whole stays, what is not is named."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("zarr")
pytest.importorskip("dask")

from filling import CHUNK, SHAPE, compute, files, filled, nothing, template

import jaxgdp
from jaxgdp.scale import template as templates
from jaxgdp.scale.compute import compute_missing
from jaxgdp.scale.lock import beside, locked

PROGRAM = Path(__file__).parents[1] / "filling.py"
CHUNKS = SHAPE[0] // CHUNK[0]


@pytest.fixture
def undisturbed(tmp_path):
    return filled(tmp_path / "undisturbed.zarr")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.zarr"


def started(store, pause):
    environment = os.environ | {"PYTHONPATH": str(Path(jaxgdp.__file__).parent.parent)}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(store), str(pause)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_store_holds_the_table(undisturbed):
    import xarray

    x, y = np.arange(SHAPE[0]), np.arange(SHAPE[1])
    with xarray.open_zarr(undisturbed) as found:
        np.testing.assert_array_equal(found["product"], np.multiply.outer(x, y), strict=False)
        assert (
            found["odd"].dtype == np.int64
            and int(found["odd"].sum()) == (x % 2).sum() * (y % 2).sum()
        )
        assert found.attrs == {"title": "products"} and found["product"].attrs == {"units": "1"}


def test_store_is_the_same_byte_by_byte_if_killed_at_random_moments(store, undisturbed):
    moments, done = random.Random(20261122), 0
    for _ in range(3):
        process = started(store, 0.3)  # five chunks: no run comes to its end within half a second
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        whole = len(list((store / "jaxgdp" / "done").rglob("c/*/0/0")))
        assert done <= whole < CHUNKS, "something that was whole is lost"
        done = whole
    filled(store)
    assert files(store) == files(undisturbed)
    assert [path.name for path in store.parent.iterdir() if path.name.startswith("store")] == [
        "store.zarr"
    ]


def test_each_chunk_is_computed_once(store):
    regions, there, finished = [], [], []

    def counted(region, progress):
        regions.append(region)
        if len(regions) == 3:
            raise KeyboardInterrupt
        return compute(region, progress)

    with pytest.raises(KeyboardInterrupt):
        compute_missing(store, template(), counted, nothing, nothing)
    assert not beside(store).exists()
    compute_missing(store, template(), counted, there.append, finished.append)
    assert len(regions) == CHUNKS + 1 and regions[2] == regions[3]
    chunk = CHUNK[0] * CHUNK[1]
    assert there == [2 * chunk] and finished == [chunk] * (CHUNKS - 2)
    compute_missing(store, template(), counted, there.append, nothing)
    assert len(regions) == CHUNKS + 1 and there[-1] == SHAPE[0] * SHAPE[1]


def test_half_a_chunk_counts_as_none(store, undisturbed):
    filled(store)
    (store / "jaxgdp" / "done" / "c" / "1" / "0" / "0").unlink()
    (store / "product" / "c" / "1" / "0").write_bytes(b"torn")
    (store / "odd" / "c" / "1" / "0").unlink()
    (store / "odd" / "c" / "1" / "0.123.partial").write_bytes(b"torn")
    store.with_name("store.zarr.partial").mkdir()
    filled(store)
    assert files(store) == files(undisturbed)


@pytest.mark.parametrize("name", ["product/c/3/0", "odd/c/0/0", "jaxgdp/done/c/2/0/0"])
@pytest.mark.parametrize("how", ["a bit", "cut short", "empty"])
def test_damaged_file_is_named_and_its_chunk_alone_is_computed_anew(store, undisturbed, name, how):
    filled(store)
    content = bytearray((store / name).read_bytes())
    content[5] ^= 4
    (store / name).write_bytes(
        {"a bit": bytes(content), "cut short": bytes(content[:9]), "empty": b""}[how]
    )
    chunk = int(name.split("/c/")[1].split("/")[0])
    culprit = (
        name if how != "a bit" or "done" not in name else f"product/c/{chunk}/0"
    )  # sums and files disagree
    before = files(store)
    with pytest.raises(OSError, match="damaged") as error:
        filled(store)
    assert error.value.errno == errno.EIO and error.value.filename == str(store / culprit)
    assert files(store) == before
    (store / name).unlink()
    regions = []
    compute_missing(
        store, template(), lambda r, p: regions.append(r) or compute(r, p), nothing, nothing
    )
    assert [region[0].start for region in regions] == [chunk * CHUNK[0]]
    assert files(store) == files(undisturbed)


@pytest.mark.parametrize(
    "name", ["zarr.json", "x/c/0", "odd/zarr.json", "jaxgdp/zarr.json", "jaxgdp/fingerprint/c/0/0"]
)
def test_damaged_template_is_named(store, name):
    filled(store)
    (store / name).write_bytes((store / name).read_bytes()[:-1])
    with pytest.raises(OSError, match="damaged") as error:
        filled(store)
    assert error.value.filename == str(store / name)


def test_questions_and_versions_of_another_store_are_refused_by_name(store, monkeypatch):
    filled(store)
    before = files(store)
    with pytest.raises(
        ValueError,
        match=r"store .*store.zarr is of another question: its rtol is null, here it is 0.1",
    ):
        filled(store, rtol=0.1)
    versions = templates.versions()
    monkeypatch.setattr(templates, "versions", lambda: versions | {"jax": "99"})
    with pytest.raises(
        ValueError, match=rf'another version: its jax is "{versions["jax"]}", here it is "99"'
    ):
        filled(store)
    assert files(store) == before


def test_folder_that_is_no_store_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine")
    for name in ("file", "folder"):
        with pytest.raises(FileExistsError) as error:
            filled(tmp_path / name)
        assert error.value.filename == str(tmp_path / name)
    assert (
        (tmp_path / "folder" / "thesis.txt").read_text()
        == (tmp_path / "file").read_text()
        == "mine"
    )
    (tmp_path / "empty").mkdir()
    assert files(filled(tmp_path / "empty"))


def test_second_process_is_told_who_writes_and_takes_over_from_a_dead_one(store, undisturbed):
    process = started(store, 600.0)
    try:
        while not (beside(store).exists() and beside(store).read_bytes()):
            assert process.poll() is None
            time.sleep(0.05)
        with pytest.raises(BlockingIOError, match=f"process {process.pid} on ") as error:
            filled(store)
        assert error.value.filename == str(beside(store))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert beside(store).exists()
    filled(store)
    assert files(store) == files(undisturbed) and not beside(store).exists()


def test_two_threads_of_one_process_do_not_share_a_store(store):
    with (
        locked(store),
        pytest.raises(BlockingIOError, match=f"process {os.getpid()} on "),
        locked(store),
    ):
        pass
    assert not beside(store).exists()


def test_lock_of_another_machine_is_respected_even_if_the_file_system_forgot_it(store):
    beside(store).write_text(json.dumps({"pid": 1, "host": "elsewhere.example"}))
    with pytest.raises(
        BlockingIOError, match="process 1 on elsewhere.example is writing this store"
    ):
        filled(store)
    beside(store).unlink()
    filled(store)


@contextlib.contextmanager
def without_privileges():
    """Somebody whom permissions bind."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_read_only_store_names_a_file_and_can_be_read():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, part = filled(folder / "whole.zarr"), filled(folder / "part.zarr")
        (part / "jaxgdp" / "done" / "c" / "1" / "0" / "0").unlink()
        os.chmod(folder, 0o555)
        try:
            with without_privileges():
                filled(whole)
                for path in (folder / "new.zarr", part):
                    with pytest.raises(PermissionError) as error:
                        filled(path)
                    assert error.value.filename == str(beside(path))
        finally:
            os.chmod(folder, 0o755)
        assert len(files(part)) == len(files(whole)) - 1


def test_full_disk_is_named_and_loses_nothing(store, undisturbed):
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    regions = []

    def compute_until_full(region, progress):
        regions.append(region)
        if len(regions) == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (CHUNK[0] * CHUNK[1] * 8 - 1, hard))
        return compute(region, progress)

    try:
        with pytest.raises(OSError) as error:
            compute_missing(store, template(), compute_until_full, nothing, nothing)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    assert error.value.errno == errno.EFBIG and error.value.filename == str(
        store / "product" / "c" / "2" / "0"
    )
    there = []
    filled(store, already=there.append)
    assert there == [2 * CHUNK[0] * CHUNK[1]] and files(store) == files(undisturbed)


def test_errors_without_a_name_get_that_of_the_file(store, monkeypatch):
    import zarr

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zarr.Array, "__setitem__", full)
    with pytest.raises(OSError, match="No space left") as error:
        filled(store)
    assert error.value.errno == errno.ENOSPC and error.value.filename == str(store)
