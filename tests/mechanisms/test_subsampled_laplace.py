"""Subsampled Laplace: exact masses with mpmath, one use in closed form, two uses by quadrature."""

import mpmath
import numpy as np
import pytest
from exact_cells import cells_of, check_cells, check_masses, reverse_of
from scipy.integrate import quad

import jaxgdp
from jaxgdp import Laplace, SubsampledLaplace, compose, tradeoff

POINTS = 41
SLACK = 1e-9


@mpmath.workdps(40)
def exact_masses(b, p, ell):
    """Cell masses from the distribution functions of the output at the cells' edges."""
    b, p = mpmath.mpf(b), mpmath.mpf(p)
    below = lambda o: mpmath.exp(o / b) / 2 if o < 0 else 1 - mpmath.exp(-o / b) / 2
    edges = [(mpmath.mpf(0), mpmath.mpf(0))]
    for v in ell:
        r = (mpmath.expm1(mpmath.mpf(float(v))) + p) / p
        if r < mpmath.exp(-1 / b):
            edges.append((mpmath.mpf(0), mpmath.mpf(0)))
        elif r >= mpmath.exp(1 / b):
            edges.append((mpmath.mpf(1), mpmath.mpf(1)))
        else:
            o = (b * mpmath.log(r) + 1) / 2
            edges.append((below(o), below(o - 1)))
    edges.append((mpmath.mpf(1), mpmath.mpf(1)))
    return [
        (c[0] - a[0], (1 - p) * (c[0] - a[0]) + p * (c[1] - a[1]))
        for a, c in zip(edges[:-1], edges[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("b", "p"), [(1.0, 0.1), (0.3, 1.0), (5.0, 0.5), (0.05, 0.01), (1.0, 1e-5)]
)
def test_cells_are_exact(b, p):
    low, high = (np.log1p(p * np.expm1(s / b)) if p < 1 else s / b for s in (-1.0, 1.0))
    for left, right in ((1.3, 1.2), (0.9, 0.5), (3.0, -0.1)):
        ell = np.linspace(left * low, right * high if right > 0 else right * -low, POINTS) + 1e-9
        cells = cells_of(SubsampledLaplace(b, p), ell)
        check_cells(cells, ell)
        check_masses(cells, exact_masses(b, p, ell))
        check_cells(reverse_of(cells, ell), -ell[::-1])


def test_open_cell_holds_everything_beyond():
    ell = np.linspace(-1.1, 1.2, POINTS)
    closed, opened = (cells_of(SubsampledLaplace(1.0, 0.7), ell, end) for end in (np.inf, 0.2))
    k = np.searchsorted(ell, 0.2) + 1
    for name in ("log_x", "log_y"):
        whole, part = np.exp(getattr(closed, name)), np.exp(getattr(opened, name))
        assert np.allclose(part[:k], whole[:k], rtol=1e-15) and np.all(part[k + 1 :] == 0.0)
        assert part[k] == pytest.approx(whole[k:].sum(), rel=1e-13)
    x, y = np.exp(opened.log_x[k]), np.exp(opened.log_y[k])
    assert opened.up[k - 1] == 0.0 and opened.lost == pytest.approx(
        y - x * np.exp(ell[k - 1]), rel=1e-10
    )


def test_laplace_without_sampling():
    ell = np.linspace(-1.1, 1.2, POINTS)
    one, other = cells_of(SubsampledLaplace(1.0, 1.0), ell), cells_of(Laplace(1.0), ell)
    for name in ("log_x", "log_y", "up"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-14), name


def laws(b, p):
    """Loss and both densities at output o, and the atoms (loss, P, Q) left of 0 and right of 1."""
    loss = lambda v: np.log1p(p * np.expm1(v))
    density = lambda o: np.exp(-o / b) / (2 * b)
    v = lambda o: (2 * o - 1) / b
    end = 0.5 * np.exp(-1 / b)
    atoms = (
        (loss(-1 / b), 0.5, 0.5 * (1 - p) + p * end),
        (loss(1 / b), end, (1 - p) * end + 0.5 * p),
    )
    return (lambda o: loss(v(o))), density, atoms


def delta_of_one(b, p, epsilon, swap=False):
    """δ(ε) for any real ε, both parts in closed form or by quadrature over the outputs between 0
    and 1.
    """
    loss, density, atoms = laws(b, p)
    gain = (
        (lambda l: max(1 - np.exp(epsilon + l), 0.0))
        if swap
        else (lambda l: max(np.exp(l) - np.exp(epsilon), 0.0))
    )
    kink = -epsilon if swap else epsilon
    r = (np.expm1(kink) + p) / p
    at = [np.clip((b * np.log(r) + 1) / 2, 0, 1)] if r > 0 else []
    body = quad(lambda o: density(o) * gain(loss(o)), 0, 1, points=at, epsabs=0, epsrel=1e-12)[0]
    return body + sum(x * gain(l) for l, x, _ in atoms)


@pytest.fixture(scope="module")
def one_use():
    return {a: tradeoff(SubsampledLaplace([0.5, 2.0], 0.2), adjacency=a) for a in ("remove", "add")}


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_single_use(one_use, direction):
    for epsilon in (0.0, 0.05, 0.1):
        found = one_use[direction].delta(epsilon)
        for i, b in enumerate((0.5, 2.0)):
            exact = delta_of_one(b, 0.2, epsilon, swap=direction == "add")
            assert found.lower[i] <= exact * (1 + SLACK) and found.upper[i] >= exact * (1 - SLACK)
            assert found.upper[i] - found.lower[i] <= 5e-3 * exact + 1e-15


def test_two_uses():
    b, p = 1.0, 0.3
    loss, density, atoms = laws(b, p)
    curve = tradeoff(compose([(SubsampledLaplace(b, p), 2)]), adjacency="remove")
    for epsilon in (0.0, 0.4):
        inner = lambda o: density(o) * np.exp(loss(o)) * delta_of_one(b, p, epsilon - loss(o))  # noqa: B023
        exact = quad(inner, 0, 1, epsabs=1e-11, epsrel=1e-9, limit=200)[0]
        exact += sum(y * delta_of_one(b, p, epsilon - l) for l, _, y in atoms)
        found = curve.delta(epsilon)
        assert found.lower <= exact * (1 + 1e-7) and found.upper >= exact * (1 - 1e-7)
        assert found.upper - found.lower <= 5e-3 * exact
    mu = curve.mu()
    assert mu.upper - mu.lower <= 1e-3 * mu.upper <= 1e-3 * curve.tail_mu


def test_sampling_hides():
    mu = tradeoff(compose([(SubsampledLaplace(1.0, [0.01, 0.1, 1.0]), 30)])).mu()
    assert np.all(np.diff(mu.lower) > 0) and np.all(mu.upper - mu.lower <= 1e-3 * mu.upper)
    plain = tradeoff(compose([(Laplace(1.0), 30)])).mu()
    assert plain.lower <= mu.upper[2] * (1 + SLACK) and mu.lower[2] <= plain.upper * (1 + SLACK)


def test_bad_input():
    for call, named in (
        (lambda: SubsampledLaplace(0.0, 0.1), "scale"),
        (lambda: SubsampledLaplace(1.0, 0.0), "sampling_prob"),
        (lambda: SubsampledLaplace(1.0, [0.1, 1.1]), "sampling_prob"),
        (lambda: SubsampledLaplace([1.0, 2.0], [0.1, 0.2, 0.3]), "shapes"),
        (lambda: tradeoff(SubsampledLaplace(1.0, 0.1), adjacency="replace_one"), "adjacency"),
        (lambda: jaxgdp.compose([(SubsampledLaplace(1.0, 0.1), 0.5)]), "count"),
    ):
        with pytest.raises(ValueError, match=named):
            call()
