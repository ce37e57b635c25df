"""What every mechanism's cells have to satisfy, for the tests."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np

EPS = 1.1102230246251565e-16


@functools.cache
def _program(points):
    return jax.jit(lambda m, ell, end: m.cells(ell, end))


def cells_of(mechanism, ell, end=np.inf):
    """Cells of one (unbatched) mechanism in its canonical form, as NumPy arrays."""
    with jax.enable_x64(True):
        mechanism = jax.tree.map(jnp.asarray, mechanism.canonical())
        found = _program(len(ell))(
            mechanism, jnp.asarray(ell, dtype=float), jnp.asarray(end, dtype=float)
        )
        return jax.tree.map(np.asarray, found)


def reverse_of(cells, ell):
    """Cells of the swapped pair on the lattice −ℓ read backwards."""
    from jaxgdp.pairs.cells import reverse

    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, reverse(cells, jnp.asarray(ell, dtype=float)))


def check_cells(cells, ell):
    """All mass is there, each split keeps both masses, and each cell's likelihood ratio lies
    between its ends.
    """
    x, y = np.exp(cells.log_x), np.exp(cells.log_y)
    assert abs(x.sum() - 1.0) < 1e-13 and abs(y.sum() - 1.0) < 1e-13
    assert np.all((cells.up >= 0.0) & (cells.up <= 1.0))
    # everything over e^{upper end}, so that nothing overflows
    rest = np.exp(-np.diff(ell))
    inner = cells.log_x[1:-1] > -700.0
    ratio = (cells.log_y - np.where(cells.log_x > -np.inf, cells.log_x, 0.0))[1:-1]
    wanted = np.exp(np.minimum(ratio - ell[1:], 1.0))
    allowed = EPS * (cells.roundoff[1:-1] * wanted + cells.jitter[1:-1] * (1.0 - rest))
    assert np.all(
        np.abs((1.0 - cells.up) * rest + cells.up - wanted)[inner] <= allowed[inner] + 1e-300
    )
    ratio = ratio[inner]
    slack = EPS * (cells.roundoff[1:-1] + 8.0 * np.abs(ratio).max(initial=1.0))[inner]
    assert np.all(ratio >= ell[:-1][inner] - slack) and np.all(ratio <= ell[1:][inner] + slack)


def check_masses(cells, exact, deepest=-5000):
    """Log masses agree with exact (x, y) of every cell (mpmath numbers) within the stated
    rounding.
    """
    assert len(exact) == len(cells.log_x)
    for j, masses in enumerate(exact):
        allowed = EPS * (cells.roundoff[j] + cells.jitter[j])
        assert allowed < 1e-7
        for found, mass in zip((cells.log_x[j], cells.log_y[j]), masses, strict=True):
            if mass == 0 or mpmath.log(mass) < deepest:
                assert found < deepest / 2, (j, found)
            else:
                assert abs(mpmath.expm1(mpmath.mpf(float(found)) - mpmath.log(mass))) <= allowed, (
                    j,
                    found,
                    mass,
                )
