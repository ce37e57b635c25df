"""Batches of which NumPy answers some settings while compiled programs work on the others."""

import threading
import time

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.run import routes
from jaxgdp.accounting.run.executors import EAGER

# of lattices; then a record that is hardly ever sampled, one that always is, and jumps that tell
# nothing
PLAIN = [(sigma, p, 600) for sigma in (1.0, 1.5, 2.0) for p in np.linspace(0.01, 0.2, 25)]
OTHERS = [(0.9, 1e-6, 500), (5.0, 1.0, 500), (0.3, 1e-5, 40)]


@pytest.fixture
def threads(monkeypatch):
    """Whatever compiled programs would do is done by NumPy; settings of each part, and threads."""
    by_lattices, found = routes._by_lattices, []

    def by_numpy(groups, question, progress, max_size, executor, known=None):
        found.append((len(groups[0][1]), threading.get_ident()))
        return by_lattices(groups, question, progress, max_size, EAGER, known)

    monkeypatch.setattr(routes, "_by_lattices", by_numpy)
    return found


def asked(settings, executor, **more):
    sigma, p, steps = (np.array(column, float) for column in zip(*settings, strict=True))
    run = jaxgdp.dpsgd(sigma, p, steps)
    return jaxgdp.measure(run, ("mu", "advantage"), executor=executor, nested=False, **more)


def test_settings_of_all_ways_keep_their_places(threads):
    settings = [*PLAIN[:40], *OTHERS, *PLAIN[40:]]
    done = []
    found = asked(settings, "compiled", progress=done.append)
    assert (len(PLAIN), threading.get_ident()) not in threads
    assert any(number == len(PLAIN) for number, _ in threads)
    assert sum(done) == len(settings)
    alone = asked(settings, "eager")
    for name in ("mu", "advantage"):
        assert not np.any(found.status[name])
        for side, other in zip(found[name], alone[name], strict=True):
            np.testing.assert_allclose(side, other, rtol=1e-9)


def test_few_settings_are_one_batch(threads):
    asked([*PLAIN[:20], *OTHERS[1:2]], "compiled")
    assert {thread for _, thread in threads} == {threading.get_ident()}


def test_interrupt_does_not_wait_for_all_lattices(monkeypatch):
    rounds, whole, calls = [], routes.answer, []

    def lattices(groups, question, progress, max_size, executor, known=None):
        while len(rounds) < 500:
            time.sleep(0.02)
            rounds.append(None)
            progress(0)

    def interrupted_at_the_others(*args, **named):
        calls.append(None)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return whole(*args, **named)

    monkeypatch.setattr(routes, "_by_lattices", lattices)
    monkeypatch.setattr(routes, "answer", interrupted_at_the_others)
    with pytest.raises(KeyboardInterrupt):
        asked([*PLAIN, *OTHERS], "compiled")
    assert len(calls) == 2 and 0 < len(rounds) < 100
