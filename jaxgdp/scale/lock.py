"""One process at a time writes a store: a lock that dies with its process."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no POSIX
    fcntl = None

_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


def beside(store: Path) -> Path:
    """The lock of a store."""
    return store.with_name(store.name + ".lock")


def _owner(descriptor: int) -> dict:
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(descriptor, 4096, 0) or b"{}")
        if isinstance(found, dict):
            return found
    return {}


def _taken(path: Path, owner: dict) -> OSError:
    who = (
        f"process {owner.get('pid', 'of unknown number')} on"
        f" {owner.get('host', 'an unknown machine')}"
    )
    return BlockingIOError(
        errno.EWOULDBLOCK,
        f"{who} is writing this store (if that process is dead, remove the file)",
        str(path),
    )


def _open(path: Path) -> int:
    """A descriptor of the file of that name, locked.

    Raises:
        BlockingIOError: another process has it.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "writing a store needs POSIX file locks", str(path))
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            owner = _owner(descriptor)
            # where locks do not reach across machines, the name in the file does
            if owner.get("host", platform.node()) != platform.node():
                raise _taken(path, owner)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except OSError as error:
            owner = _owner(descriptor)
            os.close(descriptor)
            if error.errno in _TAKEN:
                raise _taken(path, owner) from None
            raise OSError(error.errno, f"cannot lock: {error.strerror}", str(path)) from error
        os.close(descriptor)  # whoever had it removed it in between: the name is free, or another's


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Hold the lock of a store, ``<store>.lock``, which names the process and its machine.

    A lock whose process died on this machine is free; one of another machine has to be removed by
    hand.

    Raises:
        BlockingIOError: another process holds it; names the file, the process and the machine.
        OSError: the file cannot be made or locked; names it.
    """
    path = beside(store)
    descriptor = _open(path)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": platform.node()}).encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)
