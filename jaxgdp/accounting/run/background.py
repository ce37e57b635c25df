"""Programs that are compiled beside NumPy's work, one after the other by one thread.

A call for which no executor is named waits for none of them: NumPy answers until they are
there. An executor that is named waits for the programs that it needs."""

from __future__ import annotations

import collections
import contextlib
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import jax

from ...numerics.precision import with_float64


class _Request(NamedTuple):
    """A program to be compiled.

    Attributes:
        key: of the program.
        compile_it: compiles it by running it once.
        device: the one that the caller had chosen (``jax.default_device``), or None.
        done: set once it is compiled, or never will be.
    """

    key: Hashable
    compile_it: Callable[[], None]
    device: Any
    done: threading.Event


class Background:
    """A queue of programs and the thread that compiles them.

    The thread is none of those that die with the interpreter, since a compiler that is cut off
    takes the process with it; when the program of the user ends, the queue is dropped, and no more
    than the compilation in progress is waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: collections.deque[_Request] = collections.deque()
        self._known: dict[Hashable, _Request] = {}
        self._busy = False

    def begin(self, key: Hashable, compile_it: Callable[[], None]) -> None:
        """Compile a program when those before it are compiled; each is requested once."""
        with self._lock:
            if key in self._known:
                return
            device = getattr(jax.config, "jax_default_device", None)
            request = _Request(key, compile_it, device, threading.Event())
            self._known[key] = request
            self._queue.append(request)
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._work, name="jaxgdp-compiler").start()

    def wait(self, key: Hashable) -> None:
        """Return when a program that was requested is compiled; at once where none was."""
        request = self._known.get(key)
        if request is not None:
            request.done.wait()

    def wait_for_all(self) -> None:
        """Return when every program that was requested is compiled."""
        for request in list(self._known.values()):
            request.done.wait()

    def _work(self) -> None:
        while (request := self._next()) is not None:
            try:
                with jax.default_device(request.device):
                    with_float64(request.compile_it)()
            except Exception as error:
                # (NumPy goes on, and no other attempt is made)
                warnings.warn(
                    f"a program could not be compiled, and NumPy does its work: {error}",
                    RuntimeWarning,
                    stacklevel=1,
                )
            finally:
                request.done.set()

    def _next(self) -> _Request | None:
        with self._lock:
            if self._queue and threading.main_thread().is_alive():
                return self._queue.popleft()
            for request in self._queue:
                request.done.set()
            self._queue.clear()
            self._busy = False
            return None


BACKGROUND = Background()
_HERE = threading.local()


class Expectation(NamedTuple):
    """What is known of the work after a batch.

    Attributes:
        settings: so many follow, like those of the batch.
        compiled: whether compiled programs will compute them in any case.
    """

    settings: int = 0
    compiled: bool = False


@contextlib.contextmanager
def expecting(settings: int, compiled: bool = False) -> Iterator[None]:
    """Inside, so many settings more follow those of the current batch.

    Args:
        settings: like those of the batch.
        compiled: whether compiled programs will compute settings to come in any case, so that NumPy
            prepares them even where it was named.
    """
    before = expected()
    _HERE.expectation = Expectation(before.settings + settings, before.compiled or compiled)
    try:
        yield
    finally:
        _HERE.expectation = before


def expected() -> Expectation:
    """What follows the current batch, as far as is known here."""
    return getattr(_HERE, "expectation", Expectation())
