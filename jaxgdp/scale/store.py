"""A store of a sweep: every chunk is written once, and counts only with its marker.

The marker of a chunk holds the checksum of each of its files. Files are written under another name
and renamed. A process that is killed leaves a chunk without a marker, which is computed again; a
chunk with a marker is whole."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .layout import Layout, Region
from .template import DIGEST, OWN, Template, check, chunk_file, create, damaged, digest

_REMEDY = "remove it and call again: its chunk alone is computed anew"


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the operating system name this path where they name none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def local(path: str | os.PathLike[str]) -> Path:
    """A path on this machine's file systems.

    Raises:
        ValueError: it is a URL, or its folder does not exist.
    """
    try:
        text = os.fspath(path)
    except TypeError:
        raise ValueError(f"store must be a path, got {path!r}") from None
    if not isinstance(text, str) or not text or "://" in text:
        raise ValueError(f"store must be the path of a folder on a file system, got {path!r}")
    found = Path(os.path.abspath(text))
    if not found.parent.is_dir():
        raise ValueError(f"store must lie in an existing folder, got {text!r}")
    return found


class Store:
    """The chunks of a store that exists.

    Args:
        path: of the store.
        names: its variables, in the order of its markers.
        layout: its grid and chunks.
    """

    def __init__(self, path: Path, names: tuple[str, ...], layout: Layout):
        self.path, self.names, self.layout = path, names, layout
        self._arrays: dict[str, Any] = {}

    def file(self, name: str, chunk: int) -> Path:
        """The file of one variable of a chunk."""
        return self.path / chunk_file(name, self.layout.place(chunk))

    def marker(self, chunk: int) -> Path:
        """The file that marks a chunk as complete."""
        return self.path / chunk_file(f"{OWN}/done", (chunk, 0, 0))

    def _put(self, name: str, place: int | Region, values: np.ndarray) -> None:
        import zarr

        if name not in self._arrays:
            array = zarr.open_array(self.path / name, mode="r+")
            self._arrays[name] = array.with_config({"write_empty_chunks": True})
        self._arrays[name][place] = values

    def write(self, chunk: int, values: dict[str, np.ndarray]) -> None:
        """All variables of a chunk, then its marker.

        Raises:
            OSError: names the file that could not be written; the chunk then counts as missing.
        """
        sums = []
        for name in self.names:
            file = self.file(name, chunk)
            with naming(file):
                self._put(name, self.layout.region(chunk), values[name])
                _to_disk(file)
                sums.append(np.frombuffer(digest(file), np.uint8))
        with naming(self.marker(chunk)):
            self._put(f"{OWN}/done", chunk, np.stack(sums))
            _to_disk(self.marker(chunk))

    def whole(self, chunk: int) -> bool:
        """Whether a chunk has a marker and all of its files.

        Raises:
            OSError: a file of it is not what was written; names the file.
        """
        marker = self.marker(chunk)
        try:
            sums = marker.read_bytes()
        except FileNotFoundError:
            return False
        if len(sums) != DIGEST * len(self.names):
            raise damaged(marker, _REMEDY)
        for row, name in enumerate(self.names):
            file = self.file(name, chunk)
            try:
                if digest(file) != sums[DIGEST * row : DIGEST * (row + 1)]:
                    raise damaged(file, _REMEDY)
            except FileNotFoundError:
                return False
        return True

    def missing(self) -> Sequence[int]:
        """Chunks that are still to be computed; all others are checked.

        A store without any is answered at once, however many chunks it is to have.

        Raises:
            OSError: a file is not what was written; names the first and counts the chunks that have
                one.
        """
        if not any((self.path / OWN / "done" / "c").glob("*")):
            return range(self.layout.number)
        missing, broken = [], []
        for chunk in range(self.layout.number):
            try:
                if not self.whole(chunk):
                    missing.append(chunk)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                broken.append(error)
        if broken:
            first, more = broken[0], len(broken) - 1
            also = f"; so is one of {more} more chunks each" if more else ""
            raise OSError(first.errno, f"{first.strerror}{also}", first.filename)
        return missing

    def tidy(self) -> None:
        """Remove what a killed process left half written; only for who holds the lock."""
        for file in self.path.rglob("*.partial"):
            file.unlink(missing_ok=True)


def undamaged(path: str | os.PathLike[str]) -> None:
    """Check every chunk that has a marker, whatever the question of the store; for readers.

    Raises:
        OSError: a file is not what was written; names it.
    """
    import zarr

    path = Path(path)
    if not (path / OWN / "zarr.json").exists():
        return
    arrays = {
        name: array for name, array in zarr.open_group(path, mode="r").arrays() if array.ndim == 3
    }
    layouts = {Layout(array.shape, array.chunks) for array in arrays.values()}
    for layout in layouts:
        store = Store(path, tuple(arrays), layout)
        for chunk in range(layout.number):
            marker = store.marker(chunk)
            if not marker.exists():
                continue
            sums = marker.read_bytes()
            known = {sums[i : i + DIGEST] for i in range(0, len(sums), DIGEST)}
            for file in (store.file(name, chunk) for name in arrays):
                if file.exists() and digest(file) not in known:
                    raise damaged(file, _REMEDY)


def _to_disk(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def opened(path: Path, template: Template) -> Store | None:
    """The store of this template, or None if there is none yet; errors of ``template.check``."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return None
    check(path, template)
    return Store(path, tuple(template.variables), template.layout)


def opened_or_made(path: Path, template: Template) -> Store:
    """The store of this template, made where there is nothing yet; only for who holds the lock."""
    store = opened(path, template)
    if store is None:
        with naming(path):
            create(path, template)
        return Store(path, tuple(template.variables), template.layout)
    store.tidy()
    return store
