"""What is kept for the next time stays within its bytes."""

import gc
import threading

import jax
import numpy as np

from jaxgdp.accounting.certify import frequency_tables
from jaxgdp.numerics.recent import Recent, Shared


def number(kept, *keys, size=100):
    """How often something had to be made."""
    made = []
    for key in keys:
        kept.get(key, lambda key=key: made.append(key) or np.zeros(size // 8))
    return len(made)


def test_least_recently_used_is_forgotten_first():
    kept = Recent(208)
    assert number(kept, 1, 2, 1, 2) == 2
    assert number(kept, 1, 3) == 1
    assert number(kept, 1) == 0
    assert number(kept, 2) == 1


def test_latest_stays_however_large():
    kept = Recent(50)
    assert number(kept, 1, 1, 1) == 1
    assert number(kept, 2, 2) == 1
    assert number(kept, 1) == 1


def test_others_are_forgotten_before_what_takes_their_room_is_made():
    kept, seen = Recent(208), []
    for key in (1, 2):
        kept.get(key, lambda: np.zeros(12))
    kept.get(3, lambda: seen.append(list(kept._kept)) or np.zeros(12), room=96)
    kept.get(4, lambda: seen.append(list(kept._kept)) or np.zeros(50), room=400)
    assert seen == [[2], []]
    assert list(kept._kept) == [4]


def test_shared_arrays_count_once():
    kept, shared = Recent(208), np.zeros(25)
    kept.get(1, lambda: shared)
    kept.get(2, lambda: (shared, np.zeros(1)))
    assert kept.get(1, lambda: None) is shared
    kept.get(3, lambda: np.zeros(1))
    assert kept.get(1, lambda: None) is shared and kept.get(3, lambda: None) is not None
    assert kept.get(2, lambda: None) is None


def test_threads_that_make_the_same_get_the_same():
    kept, together, found = Recent(1000), threading.Barrier(2), []

    def make():
        together.wait(10.0)
        return np.zeros(1)

    threads = [
        threading.Thread(target=lambda: found.append(kept.get("key", make))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]


def test_tables_stay_within_their_bytes(monkeypatch):
    """Twenty lattices, one after the other, as a session asks for them: none of the first is left,
    the last is.
    """
    monkeypatch.setattr(frequency_tables, "_MADE", Recent(2**23))
    keys = [(2**k, 128, 512, 32 + 2 * j, 3, 5) for k in range(13, 18) for j in range(4)]
    tables = [frequency_tables.tables(*key) for key in keys]
    each = sum(a.nbytes for a in {id(a): a for t in tables for a in jax.tree.leaves(t)}.values())
    assert frequency_tables._MADE._bytes <= 2**23 < each
    assert frequency_tables.tables(*keys[-1]) is tables[-1]
    assert frequency_tables.tables(*keys[0]) is not tables[0]
    both = (
        frequency_tables.tables(*keys[-1]).sine,
        frequency_tables.tables(*keys[-1][:4], 5, 3).sine,
    )
    assert all(a is b for a, b in zip(*both, strict=True))


def test_tables_beside_compiled_programs_are_not_made_again(monkeypatch):
    """Ten lattices of a sweep, twice in turn: more than is kept where nothing is compiled."""
    monkeypatch.setattr(frequency_tables, "_MADE", Recent(2**27))
    monkeypatch.setattr(frequency_tables, "_MOVED", Recent(2**28))
    small = frequency_tables.tables(2**13, 128, 512, 32, 3, 5)
    frequency_tables.on_device(small)
    keys = [(2**20, 4096, 1024, 32 + 2 * j, 3, 9) for j in range(10)]
    tables = [frequency_tables.tables(*key) for key in keys]
    assert sum(a.nbytes for t in tables for a in t.sine + t.versine) > 2**27
    assert all(
        frequency_tables.tables(*key) is kept for key, kept in zip(keys, tables, strict=True)
    )


def test_small_arrays_take_their_places():
    """A thousand numbers are no thousand times nothing: with 128 bytes for each place 1 kB holds
    seven of them.
    """
    kept = Recent(1000, each=128)
    assert number(kept, *range(1000), size=8) == 1000
    assert number(kept, *range(999, 992, -1), size=8) == 0
    assert number(kept, 992, size=8) == 1


def test_shared_value_is_made_once_while_it_is_held():
    kept, made = Shared(), []

    def pair(key="key"):
        return kept.pair(key, lambda: made.append(key) or (np.zeros(2), np.ones(2)))

    held = pair()
    assert all(a is b for a, b in zip(pair(), held, strict=True)) and len(made) == 1
    assert pair("other")[0] is not held[0] and len(made) == 2
    held = held[1]
    gc.collect()
    assert len(pair()) == 2 and len(made) == 3


def test_threads_that_share_get_the_same():
    kept, together, found = Shared(), threading.Barrier(2), []

    def make():
        together.wait(10.0)
        return np.zeros(1), np.ones(1)

    threads = [
        threading.Thread(target=lambda: found.append(kept.pair("key", make))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for a, b in zip(*found, strict=True))


def test_shrink_forgets_the_least_recently_used_until_enough_is_free():
    recent, made = Recent(most=1000), []

    def make(key):
        return lambda: made.append(key) or np.zeros(10)

    for key in ("a", "b", "c"):
        recent.get(key, make(key))
    recent.get("a", make("a"))
    recent.shrink(160)  # of 240 bytes
    recent.get("c", make("c"))
    recent.get("a", make("a"))
    assert made == ["a", "b", "c"]
    recent.get("b", make("b"))
    recent.shrink(0)
    recent.get("a", make("a"))
    assert made == ["a", "b", "c", "b", "a"]


def test_large_tables_of_a_step_and_of_its_mirror_image_stay_together(monkeypatch):
    """Both take more than half of what is kept where nothing is compiled."""
    monkeypatch.setattr(frequency_tables._MADE, "most", 2**27)
    key = 2**21, 8192, 2048, 48
    one, other = (frequency_tables.tables(*key, *octaves) for octaves in ((3, 15), (15, 3)))
    assert sum(a.nbytes for a in one.sine + one.versine) > frequency_tables._MADE.most / 2
    for octaves, kept in (((3, 15), one), ((15, 3), other), ((3, 15), one)):
        assert frequency_tables.tables(*key, *octaves) is kept
    assert all(a is b for a, b in zip(one.sine, other.sine, strict=True))
    assert np.min(one.offset) == -768.0 and np.min(other.offset) < -1e6
