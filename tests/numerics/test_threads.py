"""Short turns of the interpreter, for as long as they are asked for."""

import sys
import threading

import pytest

import jaxgdp
from jaxgdp.accounting.run import jobs
from jaxgdp.numerics.threads import taking_turns


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.02)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_inside_only():
    with taking_turns():
        with taking_turns():
            assert sys.getswitchinterval() < 1e-3
        assert sys.getswitchinterval() < 1e-3
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_error_ends_them():
    with pytest.raises(KeyboardInterrupt), taking_turns():
        raise KeyboardInterrupt
    assert sys.getswitchinterval() == pytest.approx(0.02)


@pytest.mark.parametrize("microseconds", [1, 7, 50, 51, 99, 4999, 20001])
def test_interval_is_left_as_it_was_set(microseconds):
    """Turns that are shorter already stay; nothing is cut off however often it is set."""
    sys.setswitchinterval(1e-6 * microseconds + 5e-7)
    before = sys.getswitchinterval()
    for _ in range(3):
        with taking_turns():
            assert sys.getswitchinterval() == pytest.approx(min(before, 1e-4), rel=1e-9)
    assert sys.getswitchinterval() == before


def test_threads_that_leave_first_leave_the_others_theirs():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with taking_turns():
            inside.set()
            leave.wait(10.0)

    thread = threading.Thread(target=other)
    with taking_turns():
        thread.start()
        inside.wait(10.0)
    assert sys.getswitchinterval() < 1e-3
    leave.set()
    thread.join()
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_answer_leaves_the_interval_as_it_was(monkeypatch):
    seen, run = [], jobs.run_all

    def watched(pool, functions):
        seen.append(sys.getswitchinterval())
        return run(pool, functions)

    monkeypatch.setattr(jobs, "run_all", watched)
    jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 200), "mu")
    assert seen and max(seen) < 1e-3 and sys.getswitchinterval() == pytest.approx(0.02)
