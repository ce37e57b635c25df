"""Where no executor is named NumPy answers while programs compile beside it, and those that are
compiled take over; a large batch is computed in blocks."""

import threading

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.run import background, batch, blocks, devices, executors


@pytest.fixture
def mine(monkeypatch):
    """A batch of a process that has compiled nothing, and its background."""
    monkeypatch.setattr(batch, "_EAGER_WORK_SO_FAR", {})
    monkeypatch.setattr(batch, "_COMPILED", set())
    monkeypatch.setattr(batch, "BACKGROUND", background.Background())
    groups = jaxgdp.dpsgd(1.1, 0.01, 2000).stacked()
    return batch.Batch(groups, None, None, None, None, None)


def test_program_is_compiled_beside_numpy_and_then_takes_over(mine):
    work, program, begun, free = executors.MANY_IN_ALL + 1, ("a",), [], threading.Event()

    def compile_it():
        begun.append(threading.current_thread())
        assert free.wait(60.0)

    assert mine.choose(work, program) is executors.EAGER
    mine.compile_beside(work, program, compile_it)
    assert mine.choose(work, program) is executors.EAGER  # (nothing waits for it)
    free.set()
    mine.wait_for(executors.COMPILED, program)
    assert mine.choose(work, program) is executors.COMPILED
    assert mine.choose(executors.MANY_ONCE_COMPILED, program) is executors.EAGER
    assert len(begun) == 1 and begun[0] is not threading.main_thread()


def test_programs_are_compiled_for_what_is_done_often_or_expected(mine):
    begun = []
    compiled = lambda name: lambda: begun.append(name)
    part = executors.MANY_IN_ALL / 4
    for _ in range(4):
        mine.compile_beside(part, ("often",), compiled("often"))
        mine.compile_beside(executors.MANY_ONCE_COMPILED, ("few",), compiled("few"))
    for _ in range(2000):
        mine.compile_beside(executors.MANY_ONCE_COMPILED, ("few",), compiled("few"))
    assert not begun
    mine.compile_beside(part, ("often",), compiled("often"))
    mine._replace(ahead=5.0).compile_beside(part, ("expected",), compiled("expected"))
    batch.BACKGROUND.wait_for_all()
    assert begun == ["often", "expected"]
    mine.compile_beside(part, ("often",), compiled("often"))
    batch.BACKGROUND.wait_for_all()
    assert begun == ["often", "expected"]


def test_program_that_fails_to_compile_is_left_to_numpy(mine):
    def fail():
        raise MemoryError("no room")

    with pytest.warns(RuntimeWarning, match="could not be compiled.*no room"):
        mine.compile_beside(executors.MANY_IN_ALL + 1, ("a",), fail)
        mine.wait_for(executors.COMPILED, ("a",))
    assert mine.choose(10**6, ("a",)) is executors.EAGER


def test_named_executor_does_everything_and_compiles_only_what_will_be_needed(mine):
    named, begun = mine._replace(executor=executors.EAGER), []
    assert mine._replace(executor=executors.PRODUCT).choose(1, ("a",)) is executors.PRODUCT
    named.compile_beside(10**9, ("a",), lambda: begun.append("a"))
    named._replace(prepare=True).compile_beside(10, ("b",), lambda: begun.append("b"))
    batch.BACKGROUND.wait_for_all()
    assert begun == ["b"] and named.choose(10**9, ("b",)) is executors.EAGER


def test_expectations_add_up():
    with background.expecting(5), background.expecting(2, compiled=True):
        assert background.expected() == background.Expectation(7, True)
    assert background.expected() == background.Expectation()


def test_blocks_cover_a_batch_and_expect_the_rest(monkeypatch):
    monkeypatch.setattr(devices, "chunks_of_each", lambda: 1)  # (of an accelerator there are more)
    groups = jaxgdp.dpsgd(np.linspace(1.0, 2.0, 4500), 0.01, 2000).stacked()
    seen, after = [], []
    for rows in blocks.in_blocks(groups, executors.EAGER):
        seen.append(rows)
        after.append(background.expected().settings)
    assert np.array_equal(np.concatenate(seen), np.arange(4500))
    assert after == [4500 - (rows[-1] + 1) for rows in seen]
    assert [len(rows) for rows in seen] == [128, 2048, 2324]
    assert background.expected() == background.Expectation()
    assert len(list(blocks.in_blocks(groups, executors.COMPILED))) == 2
    monkeypatch.setattr(devices, "chunks_of_each", lambda: 4)
    assert len(list(blocks.in_blocks(groups, executors.COMPILED))) == 1


def test_settings_in_blocks_are_what_they_are_in_one(monkeypatch):
    monkeypatch.setattr(blocks, "_SMALL", 4)
    monkeypatch.setattr(blocks, "_LARGE", 8)
    number, done = 37, []
    noise, epsilon = np.geomspace(1.0, 4.0, number), np.linspace(0.1, 1.0, number)
    asked = dict(
        quantities=("mu", "delta"), epsilon=epsilon, rtol=1e-2, executor="eager", fpr_floor=1e-5
    )
    found = jaxgdp.measure(jaxgdp.dpsgd(noise, 0.02, 500), progress=done.append, **asked)
    monkeypatch.setattr(blocks, "_SMALL", 64)
    whole = jaxgdp.measure(jaxgdp.dpsgd(noise, 0.02, 500), **asked)
    assert sum(done) == number and len([n for n in done if n]) >= 4
    for name in ("mu", "delta"):
        for side, other in zip(found[name], whole[name], strict=True):
            assert np.array_equal(side, other)
    assert np.array_equal(found.lattice_size, whole.lattice_size)


@pytest.mark.slow
def test_large_batch_is_begun_by_numpy_and_finished_by_what_was_compiled(monkeypatch):
    """Both answer settings of one call, and all brackets hold: those of the other overlap."""
    monkeypatch.setattr(blocks, "_SMALL", 32)
    monkeypatch.setattr(executors, "MANY_IN_ALL", 100)
    monkeypatch.setattr(batch, "_EAGER_WORK_SO_FAR", {})
    monkeypatch.setattr(batch, "_COMPILED", set())
    monkeypatch.setattr(batch, "BACKGROUND", background.Background())
    monkeypatch.delenv("JAXGDP_EXECUTOR", raising=False)
    number = 128
    mechanism = jaxgdp.dpsgd(np.geomspace(0.9, 5.0, number), 0.02, 1000)
    asked = dict(quantities=("mu",), rtol=1e-2, fpr_floor=1e-6)

    def wait_once(done):
        batch.BACKGROUND.wait_for_all()

    found = jaxgdp.measure(mechanism, progress=wait_once, **asked)
    assert {"eager", "compiled"} <= set(found.executor.tolist())
    other = jaxgdp.measure(mechanism, executor="eager", **asked)
    assert np.all(found["mu"].lower <= other["mu"].upper)
    assert np.all(other["mu"].lower <= found["mu"].upper)
    assert np.all(found.status["mu"] == 0)
