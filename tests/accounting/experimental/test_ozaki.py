"""Sums by a device of 32 bits: without any rounding, with a bound on what is left out, and brackets
that hold.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from attack.narrow import disjoint, settings

import jaxgdp
from jaxgdp.accounting.certify import composed, frequency_tables
from jaxgdp.accounting.experimental import ozaki, ozaki_frequencies
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import executors, routes
from jaxgdp.quantities import registry

RANDOM = np.random.default_rng(11)


def exactly(numbers) -> list[Fraction]:
    return [Fraction(float(x)) for x in numbers]


def rows(number: int, length: int):
    """Of many sizes, both signs, with zeros."""
    size = np.exp(RANDOM.uniform(-30.0, 0.0, (number, length))) * (
        RANDOM.random((number, length)) < 0.9
    )
    return (
        size
        * RANDOM.choice([-1.0, 1.0], (number, length))
        * np.exp(RANDOM.uniform(-40.0, 40.0, (number, 1)))
    )


def test_slices_are_whole_numbers_of_seven_bits_and_leave_out_what_they_say():
    numbers = np.concatenate(
        [rows(5, 40), [np.zeros(40), np.full(40, 1.0), np.full(40, -(1.0 - 2.0**-53))]]
    )
    cut = ozaki.sliced(numbers)
    assert (
        cut.whole.dtype == np.float32
        and np.all(cut.whole == np.rint(cut.whole))
        and np.max(np.abs(cut.whole)) <= 64
    )
    for r, row in enumerate(numbers):
        unit = Fraction(2) ** int(cut.exponent[r])
        for j, number in enumerate(exactly(row)):
            digits = [
                Fraction(int(cut.whole[i, r, j]), 2 ** (6 + 7 * i)) for i in range(ozaki.SLICES)
            ]
            assert abs(number / unit - sum(digits)) <= Fraction(ozaki.LOST)


def test_sums_are_exact_at_their_largest():
    """As many as are added up, each as large as can be: the sum is 2²⁴, beyond which floats of 32
    bits have gaps.
    """
    length = ozaki.longest()
    assert length * 64 * 64 == 2**24
    ones = np.full((1, ozaki.SLICES, length), 64.0, np.float32)
    ones[:, :, 0] = 63.0
    found = np.asarray(ozaki.by_one_device(ones, np.moveaxis(ones, 1, 0)))
    assert found.dtype == np.float32 and np.all(found == (length - 1) * 64**2 + 63**2)


@pytest.mark.parametrize("length", [1, 30, 1000, 2500])
def test_products_are_as_exact_as_their_bound(length):
    left, right = rows(3, length), rows(4, length)
    found, bound = ozaki.products(ozaki.sliced(left), ozaki.sliced(right))
    for r, row in enumerate(left):
        for k, column in enumerate(right):
            exact = sum(a * b for a, b in zip(exactly(row), exactly(column), strict=True))
            # what putting the slices together in doubles adds is a few roundings of the largest
            rounding = (
                8
                * Fraction(2)
                ** (int(ozaki.sliced(left).exponent[r] + ozaki.sliced(right).exponent[k]) - 53)
                * length
            )
            assert (
                abs(Fraction(float(found[r, k])) - exact) <= Fraction(float(bound[r, k])) + rounding
            )


def test_bound_is_met_by_some():
    """Numbers that are all cut off alike: a bound ten times smaller would be wrong."""
    number = 0.5 + 0.49 * ozaki.LOST
    left = right = np.full((1, 512), number)
    found, bound = ozaki.products(ozaki.sliced(left), ozaki.sliced(right))
    off = abs(Fraction(float(found[0, 0])) - 512 * Fraction(number) ** 2)
    assert 0.1 * bound[0, 0] < off <= bound[0, 0]


def test_rows_that_are_too_long_are_refused():
    cut = ozaki.sliced(np.ones((1, ozaki.longest() + 1)))
    with pytest.raises(ValueError, match="4096 numbers"):
        ozaki.products(cut, cut)


@pytest.mark.parametrize("key", [(2**13, 128, 512, 32, 3, 5), (2**22, 128, 512, 32, 4, 12)])
def test_frequencies_are_as_exact_as_their_bound(key):
    tables = frequency_tables.tables(*key)
    offset = np.asarray(tables.offset)
    laws = np.exp(-0.5 * (offset / np.array([[15.0], [200.0], [3.0]])) ** 2) * (
        1.0 + 0.3 * np.sign(offset)
    )
    laws /= laws.sum(axis=1, keepdims=True)
    found = ozaki_frequencies.sums(laws, tables)
    k = np.arange(1, key[1], 42)
    with mpmath.workdps(40):
        for row, law in enumerate(laws):
            for place in k:
                angles = [2 * mpmath.pi * (int(place) * int(j) % key[0]) / key[0] for j in offset]
                weights = [mpmath.mpf(float(w)) for w in law]
                versine = mpmath.fsum(
                    w * (1 - mpmath.cos(a)) for w, a in zip(weights, angles, strict=True)
                )
                sine = mpmath.fsum(w * mpmath.sin(a) for w, a in zip(weights, angles, strict=True))
                rounding = 1e-14 * (
                    versine + mpmath.sqrt(2 * versine)
                )  # of folding, of the tables and of what is put together
                off = mpmath.sqrt(
                    (found.versine[row, place] - versine) ** 2
                    + (found.sine[row, place] - sine) ** 2
                )
                assert off <= found.off[row, place] + rounding
    # far below what 32 bits have by themselves
    assert np.max(found.off) < 2.0**-28


@pytest.mark.parametrize("first", [0, 1])
def test_step_and_its_mirror_image_have_tables_of_their_own(first):
    """They share their waves, but only one of them has a point at the largest distance."""
    sides = [(2**13, 128, 512, 32, *octaves) for octaves in ((3, 5), (5, 3))]
    for key in (sides[first], sides[1 - first]):
        tables = frequency_tables.tables(*key)
        law = np.where(np.abs(tables.offset) == np.max(np.abs(tables.offset)), 0.25, 0.0)
        law[np.flatnonzero(tables.offset == 0)] = 1.0 - np.sum(law)
        found = ozaki_frequencies.sums(law[None], tables)
        place = tables.offset.astype(int) % key[0]
        exact = np.fft.rfft(np.bincount(place, law, key[0]))[: key[1]]
        off = np.abs(found.versine[0] + 1j * found.sine[0] - (1.0 - exact))
        assert np.all(off <= found.off[0] + 1e-13)


def test_change_of_a_product_of_powers_is_bounded():
    steps = np.array([40.0, 3.0])
    for size in (1e-12, 1e-6, 1e-2, 0.5, 10.0):
        for _ in range(20):
            phi = RANDOM.uniform(0.0, 1.0, 2) * np.exp(2j * np.pi * RANDOM.random(2))
            delta = size * np.exp(2j * np.pi * RANDOM.random(2))
            change = abs(np.prod((phi + delta) ** steps) - np.prod(phi**steps))
            log_abs = np.log(np.abs(phi))
            log_power = steps @ log_abs
            growth = steps @ np.log1p(np.abs(delta) * np.exp(-log_abs))
            bound = composed.change_of_powers(np.exp(log_power), log_power, growth)
            assert change <= bound * (1 + 1e-9) + 1e-13


@pytest.fixture
def by_numpy(monkeypatch):
    """The host's part by NumPy, so that nothing but the device's part is compiled."""
    who = executors.Float32(executors.EAGER)
    monkeypatch.setitem(executors.BY_NAME, "float32", who)
    return who


@pytest.mark.slow
@pytest.mark.parametrize("number", [18, pytest.param(30, marks=pytest.mark.nightly)])
def test_brackets_of_random_settings_are_never_disjoint(number, by_numpy, monkeypatch):
    served, sums = [], ozaki_frequencies.sums
    monkeypatch.setattr(
        ozaki_frequencies, "sums", lambda *arguments: served.append(1) or sums(*arguments)
    )
    sigma, rate, steps = settings(np.random.default_rng(20260101), number)
    asked = {"quantities": ("mu", "epsilon"), "rtol": 3e-2, "nested": False}
    one, other = (
        jaxgdp.measure(jaxgdp.dpsgd(sigma, rate, steps), **asked, executor=who)
        for who in ("eager", "float32")
    )
    assert len(served) > 4
    for name, bracket in one.brackets.items():
        found = other.brackets[name]
        assert not np.any(disjoint(bracket, found)) and np.all(found.lower <= found.upper)
        # what is wider than asked says so
        wide = found.width > asked["rtol"] * found.upper
        assert np.all((other.status[name] == 1) == wide)
        assert np.mean(wide) < 0.2


@pytest.fixture(scope="module")
def look():
    """What one half of a look was called with, and what NumPy made of it."""
    calls = []

    class Recording(executors.Eager):
        def half(self, *arguments, **more):
            found = super().half(*arguments, **more)
            calls.append((arguments, found))
            return found

    groups = jaxgdp.dpsgd(2.0, 0.1, np.array([500.0])).stacked()
    question = Question(rtol=1e-2, fpr_floor=1e-6, asked=((registry.named("mu"), None),))
    routes.answer(groups, question, executor=Recording())
    return next((arguments, found) for arguments, found in calls if arguments[3] is not None)


@pytest.mark.parametrize("number", [3, 4, 7])
def test_omitted_terms_are_in_the_bracket(look, monkeypatch, number):
    """With few slices less is known, and what is known holds, rate by rate."""
    arguments, (above, below) = look
    monkeypatch.setattr(ozaki, "SLICES", number)
    monkeypatch.setattr(ozaki, "LOST", 2.0 ** (-ozaki.BITS * number))
    ozaki_frequencies._cut.cache_clear()
    try:
        upper, lower = executors.Float32(executors.EAGER).half(*arguments)
    finally:
        ozaki_frequencies._cut.cache_clear()
    same = 1e-9  # of logs of rates that are known far better than that by 64 bits
    known = above.used & (above.log_alpha > -15.0)
    assert np.all(upper.log_alpha[known] <= above.log_alpha[known] + same)
    assert np.all(upper.log_tpr[known] >= above.log_tpr[known] - same)
    both = below.used & lower.used & (below.log_alpha > -15.0)
    assert np.all(lower.log_alpha[both] >= below.log_alpha[both] - same)
    assert np.all(lower.log_tpr[both] <= below.log_tpr[both] + same)
    if number < 7:
        assert np.max(above.log_alpha[known] - upper.log_alpha[known]) > 1e3 * same


def test_lattices_that_the_device_does_not_serve():
    assert not ozaki_frequencies.serves(None)
    assert ozaki_frequencies.serves(frequency_tables.tables(2**13, 128, 512, 32, 3, 5))
    assert not ozaki_frequencies.serves(frequency_tables.tables(2**20, 4096, 2048, 48, 3, 15))
