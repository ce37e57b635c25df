"""Exact cells of discrete losses: masses, connect-the-dots shares, open ends and mass at infinity,
against plain sums.
"""

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp.pairs.atoms import atom_cells, atom_nodes
from jaxgdp.pairs.cells import reverse


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def pair(seed=0, number=200):
    """A random discrete pair with a little mass at −∞ under P and at +∞ under Q."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(number, 0.3)) * 0.99, rng.dirichlet(np.full(number, 0.3)) * 0.98
    keep = (p > 1e-12) & (q > 1e-12)
    return np.log(p[keep]), np.log(q[keep]), np.log(1 - p[keep].sum()), np.log(1 - q[keep].sum())


def cells_of(ell, end=np.inf, seed=0):
    log_p, log_q, minus, plus = pair(seed)
    cells = atom_cells(log_q - log_p, log_p, log_q, ell, end, log_p_minus=minus, log_q_plus=plus)
    return cells, log_p, log_q, minus, plus


LATTICE = np.sort(np.random.default_rng(5).uniform(-6.0, 6.0, 60))


def test_masses_by_cell():
    cells, log_p, log_q, minus, plus = cells_of(LATTICE)
    edges = np.concatenate([[-np.inf], LATTICE, [np.inf]])
    loss = log_q - log_p
    for c in range(len(LATTICE) + 1):
        inside = (loss > edges[c]) & (loss <= edges[c + 1])
        x = np.exp(log_p[inside]).sum() + (np.exp(minus) if c == 0 else 0.0)
        y = np.exp(log_q[inside]).sum() + (np.exp(plus) if c == len(LATTICE) else 0.0)
        assert np.exp(cells.log_x[c]) == pytest.approx(x, rel=1e-13, abs=1e-300)
        assert np.exp(cells.log_y[c]) == pytest.approx(y, rel=1e-13, abs=1e-300)
    assert np.exp(cells.log_x).sum() == pytest.approx(1.0, rel=1e-13)
    assert np.exp(cells.log_y).sum() == pytest.approx(1.0, rel=1e-13)


def test_connecting_the_dots_keeps_both_masses():
    cells = cells_of(LATTICE)[0]
    x, y, up = np.exp(cells.log_x[1:-1]), np.exp(cells.log_y[1:-1]), np.asarray(cells.up)
    kept = x * ((1 - up) * np.exp(LATTICE[:-1]) + up * np.exp(LATTICE[1:]))
    assert np.allclose(kept, y, rtol=1e-12, atol=1e-300) and np.all((up >= 0) & (up <= 1))
    assert float(cells.lost) == 0.0


def test_open_cell_holds_everything_beyond_the_end():
    closed, log_p, log_q, *_ = cells_of(LATTICE)
    end = 1.0
    cells = cells_of(LATTICE, end)[0]
    first = np.searchsorted(LATTICE, end)
    beyond = log_q - log_p > LATTICE[first]
    x, y = np.exp(log_p[beyond]).sum(), np.exp(log_q[beyond]).sum()
    assert np.exp(cells.log_x[first + 1]) == pytest.approx(x, rel=1e-12)
    assert np.all(np.exp(cells.log_x[first + 2 :]) == 0.0)
    # its P-mass stays at the lower point, and the Q-mass this leaves over goes to +∞, never less
    assert cells.up[first] == 0.0
    lost = y - x * np.exp(LATTICE[first])
    assert lost <= float(cells.lost + cells.lost_error) <= lost * (1 + 1e-9)
    assert 0.0 < float(cells.lost_error) < 1e-12 * y
    assert np.array_equal(cells.log_x[: first + 1], closed.log_x[: first + 1])


def test_reverse_is_the_swapped_pair():
    cells, log_p, log_q, minus, plus = cells_of(LATTICE)
    swapped = atom_cells(
        log_p - log_q, log_q, log_p, -LATTICE[::-1], np.inf, log_p_minus=plus, log_q_plus=minus
    )
    turned = reverse(cells, LATTICE)
    assert np.allclose(np.exp(turned.log_x), np.exp(swapped.log_x), rtol=1e-12)
    assert np.allclose(np.exp(turned.log_y), np.exp(swapped.log_y), rtol=1e-12)
    full = np.exp(swapped.log_x[1:-1]) > 0
    assert np.allclose(np.asarray(turned.up)[full], np.asarray(swapped.up)[full], atol=1e-10)
    assert float(turned.log_p_minus) == plus and float(turned.log_q_plus) == minus


def test_atoms_on_lattice_points_are_not_split():
    loss = 0.1 * np.arange(-5, 6)  # a tenth is no binary fraction
    ell = 0.1 / 3.0 * np.arange(-20, 21)
    log_p = np.full(11, -np.log(11.0))
    cells = atom_cells(loss, log_p, log_p + loss, ell, np.inf)
    at = np.rint(loss / (0.1 / 3.0)).astype(int) + 20
    assert np.allclose(np.exp(cells.log_x)[at], 1 / 11, rtol=1e-12)
    assert np.all(np.asarray(cells.up)[at - 1] >= 1 - 1e-12)


@pytest.mark.parametrize("number", [5, 1000])
def test_nodes_have_the_cumulants_of_the_atoms(number):
    rng = np.random.default_rng(1)
    loss = rng.normal(0.0, 1.0, number)
    log_p = np.log(rng.dirichlet(np.ones(number)))
    nodes, weight = map(np.asarray, atom_nodes(loss, log_p))
    assert nodes[0] == loss.min() and nodes[-1] == loss.max() and np.all(np.diff(nodes) >= 0)
    for s in (0.0, 0.5, 1.0, 3.0):
        exact = np.log(np.sum(np.exp(log_p + s * loss)))
        assert np.log(np.sum(np.exp(weight + s * nodes))) == pytest.approx(exact, abs=1e-2)


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_laplace_cells_are_those_of_the_closed_form(scale):
    top = 1.0 / scale
    ell = top * np.linspace(-1.3, 1.25, 77)
    cells = jaxgdp.Laplace(np.float64(scale)).cells(ell, np.inf)

    def below(l):
        """P-mass and Q-mass of losses up to l: outputs up to (b·l + 1)/2, everything from L on."""
        o = 0.5 * (scale * l + 1.0)
        cdf = lambda z: np.where(z < 0, 0.5 * np.exp(z), 1 - 0.5 * np.exp(-np.abs(z)))
        inside = (l >= -top) & (l < top)
        return [
            np.where(l >= top, 1.0, np.where(inside, cdf((o - shift) / scale), 0.0))
            for shift in (0.0, 1.0)
        ]

    for log_mass, total in zip((cells.log_x, cells.log_y), below(ell), strict=True):
        exact = np.diff(np.concatenate([[0.0], total, [1.0]]))
        assert np.allclose(np.exp(log_mass), exact, rtol=1e-9, atol=3e-16)
    x, y, up = np.exp(cells.log_x[1:-1]), np.exp(cells.log_y[1:-1]), np.asarray(cells.up)
    assert np.allclose(
        x * ((1 - up) * np.exp(ell[:-1]) + up * np.exp(ell[1:])), y, rtol=1e-11, atol=1e-300
    )
