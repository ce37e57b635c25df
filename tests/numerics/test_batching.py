"""What is run for many rows at once is what is run for one row after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfcx

from jaxgdp.numerics import batching
from jaxgdp.numerics import namespace as xp

RNG = np.random.default_rng(5)
ROWS = 5
VECTORS = RNG.uniform(0.1, 2.0, (ROWS, 7))
MATRICES = RNG.uniform(0.1, 2.0, (ROWS, 4, 7))
SCALARS = RNG.uniform(0.2, 1.5, ROWS)
PLAIN = RNG.uniform(0.1, 2.0, 7)
SQUARE = RNG.uniform(0.1, 2.0, (7, 7))

# of a number, a vector of 7 and a matrix of 4 × 7
FUNCTIONS = {
    "arithmetic": lambda s, v, m: (
        ((-v + s) * m - PLAIN / v) ** 2.0 % 1.5 + 2.0 * abs(m) - 1.0 / (s + m)
    ),
    "comparisons": lambda s, v, m: xp.where((m > v) & ~(m == s) | (v <= 1.0), m, s),
    "ufuncs": lambda s, v, m: np.logaddexp(xp.exp(m), erfcx(v)) + xp.maximum(PLAIN, s),
    "sums": lambda s, v, m: (
        xp.sum(m),
        xp.sum(m, axis=-1),
        xp.sum(m, axis=0),
        xp.max(m, axis=(0, 1)),
        xp.max(m, axis=-1, initial=1.0),
        xp.max(m[:0], initial=0.0),
        xp.mean(v),
    ),
    "kept": lambda s, v, m: m - xp.max(m, axis=-1, keepdims=True),
    "where the largest is": lambda s, v, m: (
        xp.argmax(m, axis=-1),
        xp.argmin(v),
        xp.all(m > s),
        xp.any(m > s, axis=0),
    ),
    "products": lambda s, v, m: (
        m @ v,
        v @ v,
        m @ SQUARE,
        SQUARE @ v,
        v @ SQUARE,
        m @ PLAIN,
        PLAIN @ v,
        PLAIN @ (v * SQUARE),
    ),
    "einsum": lambda s, v, m: (xp.einsum("c,ck->k", m[:, 0], m), xp.einsum("cj,qj->qc", m, SQUARE)),
    "shapes": lambda s, v, m: (
        m.reshape(2, 14),
        m.reshape(-1),
        xp.swapaxes(m, 0, 1),
        xp.moveaxis(m, 0, -1),
        v[:, None] * PLAIN,
    ),
    "slices": lambda s, v, m: (
        m[1:, ::-1],
        m[..., -1],
        v[None, 2:4],
        m[:, [0, 3, 3]],
        m[0],
        len(m),
        [row[0] for row in m],
    ),
    "joined": lambda s, v, m: (
        xp.concatenate([v, PLAIN, v[:2]]),
        xp.stack([v, PLAIN], axis=-1),
        xp.append(v, s),
        xp.stack([s, 1.0]),
    ),
    "padded": lambda s, v, m: (
        xp.pad(v, (1, 2)),
        xp.pad(m, ((0, 0), (0, 1)), mode="edge"),
        xp.pad(m, 1, constant_values=-1.0),
    ),
    "along": lambda s, v, m: (
        xp.cumsum(m, axis=0),
        xp.diff(v, prepend=0.0),
        xp.argsort(m),
        xp.cummax(v),
        xp.cumulative_logaddexp(v),
    ),
    "alike": lambda s, v, m: (
        xp.zeros_like(m),
        xp.ones_like(v),
        xp.full_like(v, s),
        xp.round(m),
        xp.broadcast_to(v, (2, 7)),
    ),
    "polynomial": lambda s, v, m: xp.polyval(np.array([1.0, -2.0, 0.5]), v),
    "searches": lambda s, v, m: (
        xp.searchsorted(np.sort(PLAIN), v),
        xp.searchsorted(np.sort(PLAIN), s, side="right"),
        xp.interp(v, np.sort(PLAIN), PLAIN),
    ),
    "gathered": lambda s, v, m: (
        v[xp.argmax(m, axis=-1)],
        xp.take(PLAIN, xp.argmax(v)),
        m[xp.argmin(m[:, 0])],
    ),
    "along an axis": lambda s, v, m: xp.take_along_axis(m, xp.argmax(m, axis=-1)[:, None], -1),
    "set": lambda s, v, m: (
        xp.at_set(m, (slice(None), 0), v[:4]),
        xp.at_set(PLAIN, -1, s),
        xp.at_set(v, xp.argmax(v), 9.0),
    ),
    "added": lambda s, v, m: xp.at_add(xp.zeros((7,)), xp.argsort(v) // 2, v),
    "raised": lambda s, v, m: xp.at_max(PLAIN, xp.argsort(v) // 2, v + s),
    "transforms": lambda s, v, m: (
        xp.rfft(m).real,
        xp.rfft(v).imag,
        xp.irfft(xp.complex(v, PLAIN), 12),
    ),
    "sums of logs": lambda s, v, m: (xp.logsumexp(m, axis=-1), xp.logsumexp(v)),
    "either": lambda s, v, m: xp.cond(s > 0.7, lambda x: (x, s), lambda x: (-x, 2.0 * s), m),
    "loop": lambda s, v, m: xp.fori_loop(
        0, 9, lambda i, x: xp.where(x > 2.0, x, x * 1.5 + i), v, lambda x: x > 2.0
    ),
    "rows within": lambda s, v, m: xp.vmap(lambda row, x: (row * s + v, xp.sum(row) * x, PLAIN))(
        m, v[:4]
    ),
    "rows within rows": lambda s, v, m: xp.vmap(
        lambda row: xp.vmap(lambda x: row[0] * x + s + v)(row)
    )(m),
    "plain rows within": lambda s, v, m: xp.vmap(lambda row, x: xp.sum(row * v) + x)(SQUARE, PLAIN),
}


def both_ways(function, room):
    """The results one by one, and together; the latter are refused to fall back."""
    columns = SCALARS, VECTORS, MATRICES
    return batching.run(function, columns, 1), batching.mapped(function, columns, room)


@pytest.mark.parametrize("room", [2, 5, 100])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_together_are_rows_one_by_one(name, room):
    one, many = both_ways(FUNCTIONS[name], room)
    assert jax.tree.structure(one) == jax.tree.structure(many)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("room", [1, 2, 4, 100])
def test_arrays_alike_in_all_rows_are_handed_to_each(room):
    alike = (VECTORS[0], {"matrix": SQUARE, "number": 0.3})
    function = lambda v, more, s: (
        v[xp.argmin(xp.abs(v - s))],
        more["matrix"][xp.argmax(s * v)] * more["number"],
        xp.sum(v),
        xp.cond(s > 0.7, lambda x: x, lambda x: -x, v),
        xp.vmap(lambda row: xp.sum(row * s) * v)(more["matrix"]),
    )
    found = batching.run(function, (SCALARS,), room, alike)
    expected = [function(*alike, s) for s in SCALARS]
    for a, b in zip(found, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(a, np.stack(b), rtol=1e-14, atol=1e-15)


def test_arrays_alike_are_plain_where_rows_are_run_one_by_one():
    found = batching.run(lambda v, s: s * np.median(v), (SCALARS,), 10, (VECTORS[0],))
    assert np.array_equal(found, SCALARS * np.median(VECTORS[0]))


def _filled(s):
    found = np.zeros(3)
    found[0] = s
    return found


REFUSED = {
    "asked whether it is true": lambda s, v, m: v if s > 0.5 else -v,
    "made a number": lambda s, v, m: float(s) * v,
    "made a plain array": lambda s, v, m: np.array(v),
    "counted by": lambda s, v, m: np.arange(3)[xp.argmax(v) // 3],
    "handed to what has no rule": lambda s, v, m: np.median(m),
    "masked": lambda s, v, m: xp.sum(v[v > 1.0]),
    "reduced by a ufunc": lambda s, v, m: np.multiply.reduce(v),
    "over all axes but kept": lambda s, v, m: np.max(m, keepdims=True),
    "an index beside a slice": lambda s, v, m: m[:, xp.argmax(v)],
    "asked for another method": lambda s, v, m: m.sum(),
    "asked with another argument": lambda s, v, m: np.sum(m, dtype=float),
    "asked with another argument of the namespace": lambda s, v, m: xp.sum(m, dtype=float),
    "written into a plain array": lambda s, v, m: _filled(s),
    "a key": lambda s, v, m: {s: v}[s],
    "written as text": lambda s, v, m: float(f"{s:.3f}") * v,
    "handed to JAX": lambda s, v, m: np.asarray(jnp.sum(m)),
    "compiled by JAX": lambda s, v, m: np.asarray(jax.jit(lambda x: x + 1.0)(m)),
    "two results of one ufunc": lambda s, v, m: np.modf(v)[0],
    "where it is true": lambda s, v, m: np.where(m[0] > 0.0)[0],
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_without_a_rule_are_run_row_by_row(name):
    function, columns = REFUSED[name], (SCALARS, VECTORS, MATRICES)
    with pytest.raises((TypeError, ValueError)):
        batching.mapped(function, columns, 10)
    for a, b in zip(
        batching.run(function, columns, 10), batching.run(function, columns, 1), strict=True
    ):
        assert np.array_equal(a, b)
    # … and nothing is left of the attempt
    assert not batching.inside()


WRONG = {
    ValueError: lambda s: np.reshape(s, (2, 2)),
    TypeError: lambda s: xp.exp(s, s, s, s, s),
    IndexError: lambda s: xp.stack([s, s])[2],
    AttributeError: lambda s: None.no_such_thing,
    KeyError: lambda s: {}["no such thing"],
    ZeroDivisionError: lambda s: 1 / 0,
}


@pytest.mark.parametrize("error", WRONG, ids=lambda error: error.__name__)
def test_error_of_the_function_is_raised_where_rows_are_together(error):
    calls = []

    def wrong(s):
        calls.append(s)
        return WRONG[error](s)

    with pytest.raises(error):
        batching.run(wrong, (SCALARS,), 10)
    # … and nobody tries again, row by row
    assert len(calls) == 1 and not batching.inside()


def test_errors_of_rows_are_no_reason_to_go_row_by_row():
    """A rule that is wrong is a fault of the rule, and shall be seen."""

    def function(s):
        if isinstance(s, batching.Batched):
            raise ValueError("wrong for rows")
        return s

    with pytest.raises(ValueError, match="wrong for rows"):
        batching.run(function, (SCALARS,), 10)


def test_rows_within_count_for_the_room():
    seen = []

    def inner(x):
        seen.append(np.size(getattr(x, "value", x)))
        return x

    batching.run(lambda s, v: xp.vmap(inner)(v), (SCALARS, VECTORS), 10)
    assert sum(seen) == VECTORS.size and max(seen) <= 10


@pytest.mark.parametrize("room", [1, 14, 40, 1000])
def test_products_in_parts_are_whole_products(room, monkeypatch):
    monkeypatch.setattr(batching.products, "ONE_THREAD", room)
    for rows in (MATRICES[0], MATRICES[0][:0]):
        assert np.allclose(batching.in_one_thread(rows, SQUARE), rows @ SQUARE, rtol=1e-14)
    together = batching.mapped(lambda m: m @ SQUARE, (MATRICES,), 100)
    assert np.allclose(together, MATRICES @ SQUARE, rtol=1e-14)


@pytest.mark.parametrize("shape", [(5, 7, 9), (24, 32, 700), (61, 32, 700), (50, 3000, 4)])
def test_products_cut_for_one_thread_are_those_of_whole_matrices(monkeypatch, shape):
    monkeypatch.setattr(batching.products, "ONE_THREAD", 4000)
    number, inner, width = shape
    a, b = RNG.uniform(0.1, 2.0, (number, inner)), RNG.uniform(0.1, 2.0, (inner, width))
    found = batching.in_one_thread(a, b)
    assert np.allclose(found, np.einsum("ij,jk->ik", a, b), rtol=1e-12, atol=0.0)
    for some in (slice(0, 1), slice(1, 4), slice(2, None)):
        assert np.array_equal(batching.in_one_thread(a[some], b), found[some])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7,), (7,)),
        ((20000,), (20000,)),
        ((40, 300), (300,)),
        ((9, 5, 3000), (3000,)),
        ((3,), (3, 5000)),
        ((3,), (2, 3, 5000)),
        ((1, 64), (64, 2000)),
        ((500, 64), (64, 1)),
        ((700, 32), (32, 32)),
        ((3, 700, 32), (32, 32)),
        ((5, 400), (400, 300)),
        ((2, 3), (3, 4)),
    ],
)
def test_products_are_matrix_products(left, right):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    found, size = batching.matmul(a, b), np.abs(a) @ np.abs(b)
    assert found.shape == (a @ b).shape
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    assert np.all(np.abs(found - exact) <= left[-1] * 2.0**-53 * size)
    if max(len(left), len(right)) > 2:
        return
    # rows that are run together have the bits of each alone
    a, b = rng.standard_normal((5, *left)), rng.standard_normal((5, *right))
    for number in (1, 2, 5):
        together = batching.mapped(xp.matmul, (a[:number], b[:number]), 100)
        for row, one in zip(together, zip(a, b, strict=True), strict=False):
            assert np.array_equal(row, batching.matmul(*one))


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
@pytest.mark.parametrize(("rounds", "expected"), [(50, 3), (2, 2), (0, 0)])
def test_loop_ends_when_it_is_done_everywhere(array, rounds, expected):
    start = array(np.array([0.0, 1.0]))
    found = xp.fori_loop(0, rounds, lambda i, x: x + 1.0, start, lambda x: x >= 3.0)
    np.testing.assert_array_equal(found, [expected, expected + 1.0])


def test_loop_of_rows_leaves_those_alone_that_are_done():
    halve = lambda i, state: (0.5 * state[0], state[1] + 1, 0.5 * state[0] < 1.0)
    loop = lambda x: xp.fori_loop(0, 99, halve, (x, 0, x < 1.0), lambda state: state[2])[1]
    np.testing.assert_array_equal(jax.jit(jax.vmap(loop))(jnp.array([0.5, 7.0, 1e3])), [0, 3, 10])
