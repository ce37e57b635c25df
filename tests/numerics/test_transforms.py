"""What the bounds on transforms assume of SciPy, NumPy and XLA on CPU: their passes, and the roots
of unity in them, which ball arithmetic holds; and that no output is off by more.

The passes are those of pocketfft (NumPy, and SciPy before 1.18) and of DUCC (SciPy from 1.18, and
XLA on CPU), as their sources have them. The transform of a point mass is a product of roots without
any addition: of one root where only one pass has a factor for it."""

import math

import jax
import numpy as np
import pytest
import scipy.fft

from jaxgdp.numerics import transforms
from jaxgdp.numerics.errors import ROOT, UNIT

flint = pytest.importorskip("flint")

RANDOM = np.random.default_rng(3)
_FACTOR = math.sqrt(5.0) + ROOT  # units of a product with a root
_IN_PASS = {2: 1.0, 4: 2.0, 8: 6.0}  # additions; turns by 45° are three units more
_LONG = 10_000  # numbers from which DUCC splits a complex transform in two
_COMPLEX = 1_000  # numbers from which it may make a real transform of a complex one
_KINDS = ("heavy", "whole", "jump")  # of dense lattices
LONGEST = 21  # doublings of the longest transform that is made


def by_jax(function, x):
    with jax.enable_x64(True):
        return np.asarray(function(x))


LIBRARIES = {
    "scipy": (scipy.fft.rfft, scipy.fft.irfft),
    "numpy": (np.fft.rfft, np.fft.irfft),
    "xla": (lambda x: by_jax(jax.numpy.fft.rfft, x), lambda x: by_jax(jax.numpy.fft.irfft, x)),
}
COMPLEX = {"scipy": scipy.fft.fft, "xla": lambda x: by_jax(jax.numpy.fft.fft, x)}
BY_DUCC = ["xla"] + ["scipy"] * (tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18))
libraries = pytest.mark.parametrize("library", LIBRARIES)
by_ducc = pytest.mark.parametrize("library", BY_DUCC)


@pytest.fixture
def known_passes(library):
    """Skips what needs the passes of a library where nobody can look them up."""
    if library == "xla" and jax.default_backend() != "cpu":
        pytest.skip("the passes of transforms on accelerators are not known")


def real_passes(size):
    """Passes of a real transform: of four numbers, and one of two."""
    fours = int(math.log2(size)) // 2
    return [4] * fours + [2] * (size // 4**fours > 1)


def complex_passes(size):
    """Passes of a complex one: of eight numbers, and one of two or four; a long one is two."""
    if size > _LONG:
        half = 1 << math.ceil(math.log2(size) / 2)
        return complex_passes(half) + complex_passes(size // half)
    eights = int(math.log2(size)) // 3
    return [8] * eights + [size // 8**eights] * (size // 8**eights > 1)


def units(passes):
    """Of all passes together; the first one has no factors."""
    return sum(_IN_PASS[numbers] for numbers in passes) + _FACTOR * max(len(passes) - 1, 0)


@pytest.mark.parametrize("doublings", range(1, 25))
def test_transforms_have_no_more_passes_than_their_bounds(doublings):
    size = 2**doublings
    together, single = transforms.all_outputs(size) / UNIT, transforms.one_output(size) / UNIT
    assert units(real_passes(size)) <= together <= single
    if size > _COMPLEX:
        # (four numbers of a row may be transformed side by side: a pass of four, and the rest)
        for passes in (complex_passes(size // 2), [4, *complex_passes(size // 8)]):
            last = 2.0 + _FACTOR
            assert units(passes) + last <= together
            assert math.sqrt(2.0) * units(passes) + last <= single


@pytest.mark.parametrize("size", [0, 3, 12, 1000, 2**20 - 1])
def test_other_lengths_have_no_bound(size):
    with pytest.raises(ValueError, match="power of two"):
        transforms.all_outputs(size)


def test_no_transform_is_longer_than_those_whose_roots_are_checked():
    from jaxgdp.accounting.run import engine
    from jaxgdp.accounting.steer import lattice_choice
    from jaxgdp.mechanisms.random_allocation import lattice_sum

    dense = (lattice_choice.most_points(kind, engine.MAX_SIZE, True, 1.0) for kind in _KINDS)
    longest = max(lattice_sum.MOST, *lattice_choice._MOST_VERTICES.values(), *dense)
    assert longest <= 2**LONGEST
    assert set(lattice_choice.SIZES) == set(_KINDS)


def roots(size):
    """cos θ and −sin θ of θ = 2πk/size, k < size, as sums of two doubles each, from balls."""
    before, flint.ctx.prec = flint.ctx.prec, 160
    try:
        parts = np.zeros((4, size))
        for k in range(size // 8 + 1):
            angle = flint.arb(flint.fmpq(2 * k, size))
            for row, ball in ((0, angle.cos_pi()), (2, -angle.sin_pi())):
                parts[row, k] = float(ball.mid())
                parts[row + 1, k] = float((ball - parts[row, k]).mid())
                assert float(ball.rad()) < 1e-40
    finally:
        flint.ctx.prec = before
    # the other seven eighths by symmetry, which is exact
    k = np.arange(size // 8 + 1)
    for turn in (size // 4 - k, size // 4 + k, size // 2 - k, size // 2 + k):
        swapped = parts[[2, 3, 0, 1]][:, k] * -1.0, parts[:, k]
        quarter, plain = swapped[0], swapped[1]
        sign = np.ones((4, 1))
        if turn[0] == size // 4:
            if turn[-1] > size // 4:
                sign[:2] = -1.0
            parts[:, turn] = quarter * sign
        else:
            sign[:2] = -1.0
            if turn[-1] > size // 2:
                sign[2:] = -1.0
            parts[:, turn] = plain * sign
    k = np.arange(1, size // 2)
    parts[:2, size - k], parts[2:, size - k] = parts[:2, k], -parts[2:, k]
    return parts


def off_by(found, exact):
    """Distances of complex numbers from sums of two doubles for each of their parts, in units."""
    re, im = (found.real - exact[0]) - exact[1], (found.imag - exact[2]) - exact[3]
    return np.hypot(re, im) / UNIT


def test_roots_from_balls_are_those_of_mpmath():
    import mpmath

    with mpmath.workdps(40):
        exact = roots(64)
        for k in range(64):
            root = mpmath.expjpi(mpmath.mpf(-2 * k) / 64)
            for part, row in ((root.real, 0), (root.imag, 2)):
                assert abs(mpmath.mpf(exact[row, k]) + exact[row + 1, k] - part) < 1e-31


def check_roots(transform, size):
    """Every root that a real transform of passes of four and two has: the lowest digit of a place
    is that of the last pass, which has two numbers where one has."""
    exact, k = roots(size), np.arange(size // 2 + 1)
    first = 2 if real_passes(size)[-1] == 2 else 4
    places, unit = list(range(1, first)), first
    while unit < size:
        places += [digit * unit for digit in (1, 2, 3)]
        unit *= 4
    for place in places:
        mass = np.zeros(size)
        mass[place] = 1.0
        assert np.max(off_by(transform(mass), exact[:, k * place % size])) <= ROOT, place


@libraries
@pytest.mark.parametrize("doublings", [3, 6, 9, 12])
def test_roots_of_transforms_lie_next_to_balls(library, doublings, known_passes):
    if library in BY_DUCC and 2**doublings > _COMPLEX:
        pytest.skip("made of a complex transform, whose roots another test has")
    check_roots(LIBRARIES[library][0], 2**doublings)


@pytest.mark.nightly
@pytest.mark.parametrize("library", [name for name in ("scipy", "numpy") if name not in BY_DUCC])
@pytest.mark.parametrize("doublings", [d for d in range(3, LONGEST + 1) if d not in (3, 6, 9, 12)])
def test_roots_of_long_transforms_lie_next_to_balls(library, doublings):
    check_roots(LIBRARIES[library][0], 2**doublings)


def long_transform_roots(library, doublings):
    """What long transforms by DUCC have: those of complex transforms, in which an output with one
    digit has factors of one pass, and of the last step to real numbers.

    A power of two has one digit, whatever the passes are and in whatever order."""
    size = 2**doublings
    exact = roots(2 * size)
    outputs = 2 ** np.arange(doublings)
    worst = 0.0
    for place in RANDOM.integers(0, size, 400):
        mass = np.zeros(size, complex)
        mass[place] = 1.0
        found = COMPLEX[library](mass)[outputs]
        turns = 2 * outputs * int(place) % (2 * size)
        worst = max(worst, float(np.max(off_by(found, exact[:, turns]))))
    mass = np.zeros(2 * size)
    mass[1] = 1.0
    last = LIBRARIES[library][0](mass)
    return worst, float(np.max(off_by(last, exact[:, np.arange(size + 1)])))


@by_ducc
@pytest.mark.parametrize("doublings", [11, 13])
def test_roots_of_complex_transforms_lie_next_to_balls(library, doublings, known_passes):
    of_passes, of_last_step = long_transform_roots(library, doublings)
    assert of_last_step <= ROOT
    assert of_passes <= ROOT + 3.0  # (a turn by 45° is part of a pass)


@pytest.mark.nightly
@by_ducc
@pytest.mark.parametrize("doublings", [12, 14, 15, 16, 18, LONGEST - 1])
def test_roots_of_longer_complex_transforms_lie_next_to_balls(library, doublings, known_passes):
    of_passes, of_last_step = long_transform_roots(library, doublings)
    assert of_last_step <= ROOT
    assert of_passes <= ROOT + 3.0 + (math.sqrt(5.0) + ROOT) * (2**doublings > _LONG)


@libraries
@pytest.mark.parametrize("doublings", [4, 10, 14])
def test_outputs_are_off_by_no_more_than_their_bounds(library, doublings):
    """Of noise, of a bell, and of a row in step with one frequency; against extended precision."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision on this machine")
    size = 2**doublings
    forward, backward = LIBRARIES[library]
    place = np.arange(size)
    for x in (
        RANDOM.normal(size=size),
        np.exp(-0.5 * ((place - size / 3) / (size / 40)) ** 2),
        np.cos(2.0 * np.pi * 3 * place / size),
    ):
        exact = scipy.fft.rfft(x.astype(np.longdouble))
        found = forward(x)
        apart = np.abs(found - exact)
        assert np.max(apart) <= transforms.one_output(size) * np.sum(np.abs(x))
        assert apart[0] <= transforms.first_output(size) * np.sum(np.abs(x))
        twice = np.where(
            (place[: size // 2 + 1] == 0) | (place[: size // 2 + 1] == size // 2), 1, 2
        )
        root = np.sqrt(np.sum(twice * np.abs(exact) ** 2))
        assert np.sqrt(np.sum(twice * apart**2)) <= transforms.all_outputs(size) * root
        back = scipy.fft.irfft(found.astype(np.clongdouble), size)
        apart = backward(found) - back
        assert np.sqrt(np.sum(apart**2)) <= transforms.all_outputs(size) * np.sqrt(np.sum(back**2))
