"""Low-frequency composition against sums and transforms written out in full."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_day import every_value
from engine_run import run_engine

import jaxgdp
from jaxgdp.accounting.certify import block_sums, frequency_tables, low_frequencies, trig_tables
from jaxgdp.accounting.certify.vertices import Vertices, trimmed
from jaxgdp.accounting.run import engine
from jaxgdp.accounting.steer.lattice_choice import choose
from jaxgdp.numerics import batching


@pytest.mark.parametrize("number", [1, 2, 16, 31, 33, 1024, 65536])
def test_sums_over_a_block(number):
    x, weight = frequency_tables._discrete_gauss(number, frequency_tables.NODES)
    i = np.arange(number)
    for decay in (0.0, 1e-6, 1.0, 30.0):
        for turn in (0.0, 1.0, np.pi):
            f = lambda t: np.exp(-decay * (t + 1) / number + 1j * turn * t / number)  # noqa: B023
            exact = np.sum(f(i).astype(np.clongdouble))
            assert abs(np.sum(weight * f(x)) - exact) <= low_frequencies.NODE_SUMS * np.sum(
                np.abs(f(i))
            )


def laws():
    """Skewed, spiky, smooth and two-sided laws on a sparse pattern, as rows."""
    offset = np.asarray(frequency_tables.tables(2**13, 128, 512, 32, 3, 5).offset)
    rng = np.random.default_rng(0)
    rows = [
        np.exp(-0.5 * (offset / 15.0) ** 2),
        np.exp(-np.abs(offset) / 8.0) * (offset >= -2),
        rng.random(len(offset)) * np.exp(-np.abs(offset) / 20.0),
        np.where(np.abs(offset) <= 1, 1.0, 1e-3 * np.exp(-np.abs(offset) / 200.0)),
    ]
    return offset, np.array([row / row.sum() for row in rows])


def test_dropped_frequencies_are_bounded():
    with jax.enable_x64(True):
        table = frequency_tables.tables(2**13, 128, 512, 32, 3, 5)
        offset, rows = laws()
        k = np.arange(128, 2**12 + 1)
        for row in rows:
            true = np.max(np.abs(np.exp(-2j * np.pi / 2**13 * np.outer(k, offset)) @ row))
            for steps in (1.0, 10.0, 300.0):
                log_bound = low_frequencies.sums(row[None], table).log_dropped
                bound = float(low_frequencies._dropped(log_bound, np.array([steps])))
                assert true**steps <= bound * (1 + 1e-9) <= 1.0 + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_bound_about_each_probe_is_at_least_the_transform_there(seed):
    rng = np.random.default_rng(seed)
    base, left, right = int(rng.choice([8, 16, 32])), *map(int, rng.integers(1, 8, 2))
    size, frequencies = 2 ** int(rng.integers(12, 16)), int(rng.choice([16, 32]))
    size = max(size, 2 * base * 2 ** (max(left, right) + 1))
    table = frequency_tables.tables(size, frequencies, 32, base, left, right)
    offset = np.asarray(table.offset)
    scale, far = 10.0 ** rng.uniform(0.0, 4.0), 10.0 ** rng.uniform(0.0, 3.0)
    apart = np.gradient(offset)
    rows = [
        apart * np.exp(-0.5 * (offset / scale) ** 2),
        # nearly all at one point, or at two, the rest far away
        1e3 * (offset == 0.0) + apart * np.exp(-0.5 * (offset / far - 5.0) ** 2) / far,
        1e6 * (np.abs(offset - 0.5) < 1.0) + apart * np.exp(-np.abs(offset) / far),
        apart * rng.random(len(offset)) ** 8 * np.exp(-np.abs(offset) / scale),
    ]
    first = 2.0 * np.pi * frequencies / size
    last = max(first, min(8.0 / base, np.pi))
    edge = np.append(np.geomspace(first, last, 25), np.linspace(last**0.5, np.pi**0.5, 25)[1:] ** 2)
    for row in rows:
        row = row / row.sum()
        found = low_frequencies._log_dropped(
            row[None], low_frequencies.fold(row[None], table), table
        )
        for probe, bound in enumerate(found[0]):
            angle = np.linspace(edge[probe], edge[probe + 1], 17)
            true = np.max(np.abs(np.exp(-1j * angle[:, None] * offset) @ row))
            assert true <= np.exp(bound) * (1.0 + 1e-12)


@pytest.mark.parametrize("library", [np, jnp])
def test_sums_by_distance_are_at_least_the_exact_ones(library):
    table = frequency_tables.tables(2**20, 64, 512, 320, 3, 12)
    offset = np.asarray(table.offset)
    row = np.gradient(offset) * np.exp(-np.abs(offset) / 3e3) / (1.0 + np.abs(offset))
    folded = low_frequencies.fold(row[None] / row.sum(), table)
    apart, distance = folded.even[0, :-1], np.asarray(table.distance)
    with jax.enable_x64(True):
        outside, square = low_frequencies._by_distance(library.asarray(folded.even), table)
    for probe, (far, near) in enumerate(zip(outside[0], square[0], strict=True)):
        inside = distance * table.probe_width[probe] <= 2.0
        pairs = zip(apart[inside], distance[inside], strict=True)
        near_exact = sum((Fraction(m) * Fraction(d) ** 2 for m, d in pairs), Fraction(0))
        exact = math.fsum(apart[~inside]), near_exact
        assert exact[0] <= float(far) <= exact[0] * (1.0 + 1e-11)
        assert float(exact[1]) <= float(near) <= float(exact[1]) * (1.0 + 1e-11)


def test_steps_that_nearly_always_show_nothing_have_small_dropped_frequencies():
    # (all but 1e-3 of the mass at two points, the rest over many octaves)
    table = frequency_tables.tables(2**20, 128, 2048, 64, 8, 9)
    offset = np.asarray(table.offset)
    row = np.gradient(offset) / (1.0 + np.abs(offset))
    row *= 1e-3 / row.sum()
    row[np.abs(offset - 0.5) < 1.0] += 0.4995
    folded = low_frequencies.fold(row[None], table)
    log_bound = low_frequencies._log_dropped(row[None], folded, table)
    assert low_frequencies._dropped(log_bound, np.array([1e7])) < 1e-60


def test_rare_steps_far_from_all_others_have_small_dropped_frequencies():
    # (where they turn once, Taylor about the centre says nothing)
    table = frequency_tables.tables(2**25, 64, 8192, 1280, 3, 9)
    offset = np.asarray(table.offset)
    row = np.gradient(offset) * np.exp(-0.5 * ((offset / 73_000.0 - 1.0) / 0.122) ** 2)
    row *= 4e-5 / row.sum()
    row[(offset == 0.0) | (offset == -1.0)] += 0.02, 0.98 - 4e-5
    folded = low_frequencies.fold(row[None], table)
    log_bound = low_frequencies._log_dropped(row[None], folded, table)
    assert low_frequencies._dropped(log_bound, np.array([1.2e7])) < 1e-20


def test_transform_of_few_points_is_the_long_one():
    with jax.enable_x64(True):
        table = frequency_tables.tables(2**13, 128, 512, 32, 3, 5)
        offset, rows = laws()
        even, odd = low_frequencies.fold(rows, table)
        versine, sine = (
            low_frequencies._in_rows(even, table.versine),
            low_frequencies._in_rows(odd, table.sine),
        )
        for row, cosine_part, sine_part in zip(rows, versine, sine, strict=True):
            long = np.zeros(2**13)
            np.add.at(long, offset.astype(int) % 2**13, row)
            exact = np.fft.rfft(long)[:128]
            assert np.allclose(1.0 - cosine_part - 1j * sine_part, exact, atol=1e-14)


@pytest.mark.parametrize(("size", "base"), every_value((2**12, 2**30), (32, 56)))
def test_waves_are_those_of_whole_turns_taken_off(size, base):
    """Looked up, where a table has more entries than there are angles, or worked out entry by
    entry; against 80-bit numbers.
    """
    distance, frequencies = trig_tables.points(base, 8), 2048
    turn = np.outer(distance.astype(int), np.arange(frequencies)) % size
    half = (
        np.where(turn > size // 2, turn - size, turn)
        * np.longdouble("3.14159265358979323846264338")
        / size
    )
    sine, cosine = np.sin(half), np.cos(half)
    exact, scale = (2.0 * sine * cosine, 2.0 * sine * sine), (np.abs(2.0 * sine), 2.0 * sine * sine)
    found = trig_tables.at_points(size, frequencies, base, 8)
    for octaves, other, whole in zip(found, exact, scale, strict=True):
        assert all(
            wave.shape == (2, base // trig_tables.row(base), trig_tables.row(base), 1024)
            for wave in octaves
        )
        assert np.all(np.abs(trig_tables.flat(octaves) - other) <= 2**-50 * whole)


def test_rows_of_waves_are_short():
    for base in (base << sharper for base in (40, 48, 56, 64) for sharper in range(5)):
        assert (
            trig_tables.LONGEST / 2 < trig_tables.row(base) <= trig_tables.LONGEST
            and base % trig_tables.row(base) == 0
        )


def test_lattices_of_other_lengths_share_their_waves():
    """Nine octaves and what is next to the centre on N points and on 4·N: all but two octaves, and
    the centre, are the same arrays.
    """
    few, many = (trig_tables.at_points(size, 128, 40, 8) for size in (2**14, 2**16))
    for one, other in zip(few, many, strict=True):
        assert len(one) == 10 and all(a is b for a, b in zip(one[1:8], other[3:], strict=True))
        assert not any(a is b for a in (one[0], *one[8:]) for b in other)


@pytest.mark.parametrize("products", [2**18, 5000])
def test_sums_of_many_laws_are_those_of_each(monkeypatch, products):
    """However they are cut, each law's low frequencies are its long transform."""
    monkeypatch.setattr(batching.products, "ONE_THREAD", products)
    table = frequency_tables.tables(2**14, 2048, 512, 32, 3, 5)
    rows = np.random.default_rng(2).random((27, len(table.offset)))
    rows /= rows.sum(axis=1, keepdims=True)
    found = low_frequencies.sums(rows, table)
    place = np.asarray(table.offset).astype(int) % 2**14
    exact = np.array([np.fft.rfft(np.bincount(place, row, 2**14))[:2048] for row in rows])
    assert np.allclose(1.0 - found.versine - 1j * found.sine, exact, rtol=0.0, atol=1e-14)
    for some in (slice(3, 4), slice(5, 19)):
        part = low_frequencies.sums(rows[some], table)
        assert np.array_equal(part.versine, found.versine[some])
        assert np.array_equal(part.sine, found.sine[some])


@pytest.mark.parametrize("frequencies", [128, 2048])
def test_sums_by_a_program_are_those_of_the_long_transform(frequencies):
    """With tables that were moved to the device, in one slab and in two: once, and in doubles."""
    table = frequency_tables.tables(2**14, frequencies, 512, 32, 3, 5)
    moved = frequency_tables.on_device(table)
    assert all(
        a is b
        for a, b in zip(
            jax.tree.leaves(moved), jax.tree.leaves(frequency_tables.on_device(table)), strict=True
        )
    )
    rows = np.random.default_rng(3).random((5, len(table.offset)))
    rows /= rows.sum(axis=1, keepdims=True)
    with jax.enable_x64(True):
        found = jax.jit(low_frequencies.sums)(rows, moved)
    place = np.asarray(table.offset).astype(int) % 2**14
    exact = np.array([np.fft.rfft(np.bincount(place, row, 2**14))[:frequencies] for row in rows])
    assert np.allclose(
        1.0 - np.asarray(found.versine) - 1j * np.asarray(found.sine), exact, rtol=0.0, atol=1e-14
    )


def test_sparse_and_dense_lattices_agree(monkeypatch):
    """Two different compositions of the same mechanisms: long FFTs of every point, or few points
    and frequencies.
    """
    sigma, p, steps = (
        np.array([0.7, 2.0, 1.5, 8.0]),
        np.array([1e-3, 0.1, 0.02, 0.3]),
        np.array([1000.0, 400.0, 200.0, 2000.0]),
    )
    mechanism, names = (
        jaxgdp.dpsgd(sigma, p, steps),
        {"mu": None, "regret": None, "advantage": None, "epsilon": 1e-5},
    )
    sparse = run_engine(mechanism, names)
    with monkeypatch.context() as dense_only:
        dense_only.setattr(
            engine, "choose", lambda *arguments, **more: choose(*arguments[:-1], True, **more)
        )
        dense = run_engine(mechanism, names, max_size=2**16)
    assert all(lattice.kind == "sparse" for lattice in sparse.lattices)
    assert all(lattice.kind != "sparse" for lattice in dense.lattices)
    for name, bracket in sparse.brackets.items():
        assert np.all(sparse.status[name] == 0), name
        other = dense.brackets[name]
        assert np.all(bracket.lower <= other.upper) and np.all(other.lower <= bracket.upper), name


@pytest.mark.parametrize("tilt", [0.3, 1.0, 4.0])
def test_joined_blocks_are_those_of_a_wider_block(tilt):
    """Block sums written out over single lattice points, in blocks of 8 and of 64."""
    h, blocks, fine, wide = 0.01, 16, 8, 64
    mass = np.random.default_rng(3).random(blocks * wide)

    def sums(block):
        i = np.arange(1.0, block + 1.0)
        decay = np.exp(-tilt * i * h)
        rows = mass.reshape(-1, block)
        return rows @ decay, rows @ (decay * np.expm1(i * h) / np.expm1(block * h))

    plain, split = (side.reshape(blocks, -1) for side in sums(fine))
    with jax.enable_x64(True):
        joined = block_sums.joined(plain, split, tilt, h * fine)
    for found, exact in zip(joined, sums(wide), strict=True):
        assert np.allclose(found, exact, rtol=1e-13)


def test_trimmed_rows_hold_every_used_vertex():
    rng = np.random.default_rng(4)
    number, length = 5, 3000
    used = np.zeros((number, length), bool)
    for row, (start, stop) in enumerate([(0, 10), (2990, 3000), (700, 2500), (5, 5), (100, 101)]):
        used[row, start:stop] = rng.random(stop - start) < 0.9
    used[4, 100] = True
    rates = {name: rng.random((number, length)) for name in ("log_alpha", "log_tpr", "log_beta")}
    half = Vertices(
        first=rng.integers(-9, 9, number) * 1.0,
        step=rng.random(number),
        used=used,
        above_noise=~used,
        **rates,
    )
    short = trimmed([half, half._replace(used=used[:, ::-1])])[0]
    assert short.used.shape[1] == trimmed([half])[0].used.shape[1] >= 1800
    for row in range(number):
        assert np.array_equal(_kept(half, row), _kept(short, row))


def _kept(v, row):
    k = np.flatnonzero(v.used[row])
    return np.stack(
        [
            v.step[row] * (v.first[row] + k),
            v.log_alpha[row, k],
            v.log_tpr[row, k],
            v.log_beta[row, k],
        ]
    )


@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 15, 34])
def test_sums_in_pairs_add_each_term_a_few_times(number):
    class Term:
        def __init__(self, value, depth=0):
            self.value, self.depth = value, depth

        def __add__(self, other):
            return Term(self.value + other.value, 1 + max(self.depth, other.depth))

    found = low_frequencies._in_pairs([Term(2**k) for k in range(number)])
    assert found.value == 2**number - 1 and found.depth == np.ceil(np.log2(number))


def test_tables_of_both_orders_of_a_step_share_what_is_alike():
    key = 2**22, 64, 512, 40
    plus, minus = frequency_tables.tables(*key, 3, 5), frequency_tables.tables(*key, 5, 3)
    assert plus.even is minus.even and plus.odd is minus.odd and plus.sine[0] is minus.sine[0]
    # … and are made anew for another lattice
    other = frequency_tables.tables(2**23, *key[1:], 3, 5)
    assert other.even.shape == plus.even.shape and not np.array_equal(other.even, plus.even)
