"""Threads of Python that share the interpreter with threads that hand it work."""

from __future__ import annotations

import contextlib
import sys
import threading

_QUICK = 1e-4  # seconds after which a thread has to let another one run
_LOCK = threading.Lock()
_INSIDE: list[float] = []  # what the interval was before, for each of those inside


@contextlib.contextmanager
def taking_turns():
    """Short turns of the interpreter for as long as this lasts.

    A thread that keeps a compiled program busy needs the interpreter ever again for a few
    microseconds, and would wait for the five milliseconds that another one, which runs NumPy, may
    keep it for as a rule."""
    with _LOCK:
        _INSIDE.append(sys.getswitchinterval())
        _set(min(_QUICK, _INSIDE[0]))
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE[0]
            _INSIDE.pop()
            if not _INSIDE:
                _set(before)


def _set(seconds: float) -> None:
    # (whole microseconds are kept, and what is between is cut off)
    sys.setswitchinterval(seconds + 5e-7)
