"""What long work says on a terminal."""

import io
import time


class Terminal(io.StringIO):
    def isatty(self):
        return True


def until(condition):
    """Wait for something that another thread does; however busy the machine, it happens."""
    end = time.monotonic() + 600.0
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def on_a_terminal(monkeypatch, work):
    """What work says on a terminal on which every line is seen at least once, however short the
    work.
    """
    from jaxgdp import progress

    def seen_and_closed(display):
        assert until(lambda: display.width)
        close(display)

    terminal, close = Terminal(), progress._Display.close
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_rich", lambda: False)
    monkeypatch.setattr(progress._Display, "close", seen_and_closed)
    work()
    return terminal.getvalue()
