"""Long work says what it does on a terminal, and nothing anywhere else."""

import io
import time

import pytest

from jaxgdp.training import plan_budget
from jaxgdp.training.progress import telling


class Terminal(io.StringIO):
    def isatty(self):
        return True


def until(condition):
    """Wait for something that another thread does; however busy the machine, it happens."""
    end = time.monotonic() + 600.0
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_says_what_it_does_and_how_far_it_is_and_leaves_nothing():
    terminal = Terminal()
    with telling("planning", about=8, after=0.0, stream=terminal) as count:
        assert until(lambda: "planning, 0 of about 8 evaluations" in terminal.getvalue())
        count(3)
        assert until(lambda: "planning, 3 of about 8 evaluations" in terminal.getvalue())
        count(9)  # more than was expected
        assert until(lambda: "planning, 12 of about 12 evaluations" in terminal.getvalue())
    said = terminal.getvalue()
    assert said.endswith(" \r") and "\n" not in said
    with telling("compiling, once", after=0.0, stream=terminal):
        assert until(lambda: "compiling, once, 0 s" in terminal.getvalue())


def test_says_nothing_where_nobody_looks_or_where_it_is_done_at_once():
    elsewhere, terminal = io.StringIO(), Terminal()
    with telling("planning", about=8, after=0.0, stream=elsewhere) as count:
        count(1)
    with telling("planning", about=8, after=1000.0, stream=terminal) as count:
        count(1)
    assert elsewhere.getvalue() == terminal.getvalue() == ""


def test_an_error_ends_the_line_and_a_closed_terminal_ends_nothing():
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt), telling("planning", after=0.0, stream=terminal):
        assert until(lambda: terminal.getvalue())
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith(" \r")
    with telling("planning", after=0.0, stream=terminal):
        terminal.close()
        terminal.isatty = lambda: True


def test_plans_tell_their_caller_or_the_terminal(monkeypatch, capsys):
    finished = []
    plan = plan_budget(8.0, 1.0, 9, "mu", every=3, progress=finished.append)
    assert sum(finished) == 3
    plan.max_steps_within(mu=0.26, progress=finished.append)
    assert sum(finished) == 5 and capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("jaxgdp.training.progress._PATIENCE", 0.0)
    told = []

    def slow(mechanism, names, asked, overflow, progress):
        told.append(until(lambda: "planning, 0 of about 2 evaluations" in terminal.getvalue()))
        return real(mechanism, names, asked, overflow, progress)

    from jaxgdp.training import plan as module

    real = module.certified
    monkeypatch.setattr(module, "certified", slow)
    plan_budget(8.0, 1.0, 6, "mu", every=3)
    assert told == [True]
