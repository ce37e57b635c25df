"""Each step keeps its side: what is composed, cut off or moved allows no less from above, and no
more from below, than what it was made from."""

import dataclasses
import random

import pytest

flint = pytest.importorskip("flint")
from jaxgdp.proof import laws as steps  # noqa: E402
from jaxgdp.proof.balls import exact, precision  # noqa: E402
from jaxgdp.proof.cells import Range, laws_of  # noqa: E402
from jaxgdp.proof.laws import Grid, LowerLaw, UpperLaw  # noqa: E402
from jaxgdp.proof.uses import SampledGaussian, SampledLaplace  # noqa: E402

BITS = 24  # so few that roundings matter
SLOPES = [-2.0, -0.75, -0.1, 0.0, 0.3, 0.31, 1.0, 2.5]


@pytest.fixture(autouse=True)
def many_bits():
    with precision(300):
        yield


def random_upper(rng: random.Random, spacing: float = 0.1) -> UpperLaw:
    number = rng.randrange(2, 12)
    weights = [rng.random() ** 4 for _ in range(number)]
    total = sum(weights) * rng.uniform(1.0, 1.1)
    masses = [flint.fmpz(int(w / total * 2**BITS)) for w in weights]
    shift = exact(rng.choice([0.0, 0.03, -1.25]))
    return UpperLaw(Grid(exact(spacing), shift, BITS), rng.randrange(-8, 4), masses)


def random_lower(rng: random.Random, spacing: float = 0.1) -> LowerLaw:
    law = random_upper(rng, spacing)
    tilted = [flint.fmpz(int(int(m) * rng.uniform(0.8, 1.25)) + 1) for m in law.masses]
    infinite = flint.fmpz(rng.choice([0, 3, 2**16]))
    return LowerLaw(law.grid, law.first, law.masses, tilted, infinite)


def delta(law: UpperLaw, slope: float):
    """δ of an upper law at ε = slope, any sign, with its mass at +∞."""
    total = exact(law.infinite())
    for i, mass in enumerate(law.masses):
        gain = 1 - (exact(slope) - law.grid.at(law.first + i)).exp()
        total += mass * gain if gain > 0 else 0
    return total / 2**law.grid.bits


def swapped_delta(law: UpperLaw, slope: float):
    """δ of the swapped pair at ε = slope: what the denominator shows and the numerator does not."""
    total, shown = exact(0), exact(0)
    for i, mass in enumerate(law.masses):
        denominator = mass * (-law.grid.at(law.first + i)).exp()
        shown += denominator
        gain = denominator - exact(slope).exp() * mass
        total += gain if gain > 0 else 0
    return (total - shown) / 2**law.grid.bits + 1


def product_delta(a: UpperLaw, b: UpperLaw, slope: float, read=delta):
    """The same of the exact product, atom by atom: no rounding."""
    grid = dataclasses.replace(a.grid.beside(b.grid), bits=a.grid.bits + b.grid.bits)
    masses: dict[int, int] = {}
    for i, x in enumerate(a.masses):
        for j, y in enumerate(b.masses):
            k = a.first + i + b.first + j
            masses[k] = masses.get(k, 0) + int(x) * int(y)
    first = min(masses)
    row = [flint.fmpz(masses.get(k, 0)) for k in range(first, max(masses) + 1)]
    return read(UpperLaw(grid, first, row), slope)


# units that a side may lose, and where a window begins at the latest, from the first point on
CUTS = [(1, -3), (2**10, 0), (2**18, 0), (1, 2), (2**10, 4), (1, 10**6)]


def certainly_no_less(a, b) -> bool:
    return bool(a >= b) or not bool(a < b)  # (equal numbers are balls that overlap)


@pytest.mark.parametrize("seed", range(12))
def test_every_step_from_above_keeps_the_side(seed):
    rng = random.Random(seed)
    a, b = random_upper(rng), random_upper(rng)
    for slope in SLOPES:
        for read in (delta, swapped_delta):
            product = steps.multiply_upper(a, b)
            assert certainly_no_less(read(product, slope), product_delta(a, b, slope, read))
            for least, first in CUTS:
                cut = steps.trim_upper(a, flint.fmpz(least), a.first + first)
                assert certainly_no_less(read(cut, slope), read(a, slope))
            wide = steps.coarsen_upper(a)
            assert certainly_no_less(read(wide, slope), read(a, slope))
            # an atom that is split between points 0.1 away adds tanh(0.1/2) at most
            assert read(wide, slope) - read(a, slope) < 0.05 + 1e-6
        fine = steps.refine_upper(a)
        assert abs(float(delta(fine, slope) - delta(a, slope))) < 1e-12
    assert steps.refine_upper(a).infinite() == a.infinite()
    assert steps.coarsen_upper(a).infinite() >= a.infinite() >= 0
    assert steps.trim_upper(a, flint.fmpz(2**18), a.first).infinite() >= a.infinite()


def rates(law: LowerLaw) -> dict[int, tuple]:
    """By label: (TPR, FPR) of accusing that label and all above it."""
    found, tpr, fpr = {}, exact(law.infinite), exact(0)
    for i in reversed(range(len(law.numerator))):
        tpr += law.numerator[i]
        fpr += law.tilted[i] * (-law.grid.at(law.first + i)).exp()
        found[law.first + i] = tpr / 2**law.grid.bits, fpr / 2**law.grid.bits
    return found


def true_rates(pairs: dict[int, tuple], infinite) -> dict[int, tuple]:
    """The same of exact masses by label."""
    found, tpr, fpr = {10**6: (infinite, exact(0))}, infinite, exact(0)
    for k in sorted(pairs, reverse=True):
        tpr, fpr = tpr + pairs[k][0], fpr + pairs[k][1]
        found[k] = tpr, fpr
    return found


def masses(law: LowerLaw) -> dict[int, tuple]:
    unit = exact(1) / 2**law.grid.bits
    return {
        law.first + i: (n * unit, law.tilted[i] * unit * (-law.grid.at(law.first + i)).exp())
        for i, n in enumerate(law.numerator)
    }


def holds(claimed: dict[int, tuple], true: dict[int, tuple]) -> bool:
    """Every claimed threshold has a true one with no smaller TPR and no larger FPR."""
    return all(
        any(not tpr > t and not fpr < f for t, f in true.values()) for tpr, fpr in claimed.values()
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_step_from_below_keeps_the_side(seed):
    rng = random.Random(seed)
    a, b = random_lower(rng), random_lower(rng)
    unit = exact(1) / 2**BITS
    pairs: dict[int, tuple] = {}
    for j, (n, d) in masses(a).items():
        for k, (m, e) in masses(b).items():
            x, y = pairs.get(j + k, (exact(0), exact(0)))
            pairs[j + k] = x + n * m, y + d * e
    all_of_b = sum(b.numerator) + b.infinite
    infinite = (a.infinite * all_of_b + sum(a.numerator) * b.infinite) * unit * unit
    product = steps.multiply_lower(a, b)
    assert holds(rates(product), true_rates(pairs, infinite))
    true = true_rates(masses(a), a.infinite * unit)
    for least, first in CUTS:
        assert holds(rates(steps.trim_lower(a, flint.fmpz(least), a.first + first)), true)
    # (labels may be moved: only which tests there are counts)
    assert holds(rates(steps.coarsen_lower(a)), true)
    assert holds(rates(steps.recentre(a)), true)
    assert holds(rates(steps.refine_lower(a)), true)
    assert len(rates(steps.recentre(a))) == len(true) - 1


def test_product_rounds_each_coefficient_as_whole_numbers_do():
    rng = random.Random(5)
    a = [flint.fmpz(rng.choice([0, 1, 2**BITS, rng.getrandbits(BITS)])) for _ in range(30)]
    b = [flint.fmpz(rng.choice([0, 3, 2**BITS - 1, rng.getrandbits(BITS)])) for _ in range(17)]
    exact_row = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            exact_row[i + j] += int(x) * int(y)
    down, up = steps.product(a, b, BITS), steps.product(a, b, BITS, up=True)
    assert [int(value) for value in down] == [value >> BITS for value in exact_row]
    assert [int(value) for value in up] == [-(-value >> BITS) for value in exact_row]


@pytest.mark.parametrize("order", ("remove", "add"))
@pytest.mark.parametrize("use", [SampledGaussian, SampledLaplace], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("range_of", [None, Range(30), Range(30, -0.1), Range(8, 0.0)])
def test_upper_law_dominates_what_it_was_made_from(use, order, range_of):
    """δ of one use, in closed form in balls, lies between those of both laws."""
    mechanism = use(exact(1.25), exact(0.3))
    grid = Grid(exact(2.0**-5), exact(0), BITS)
    upper, lower = laws_of(mechanism, order, grid, 0, 1e-3, 0.25, range_of)
    atoms = mechanism.atoms(order, BITS)
    tests = rates(lower)
    for slope in (0.0, 0.05, 0.1, 0.25):
        point = exact(slope)
        growth, tails = point.exp(), mechanism.tails(order, point)
        true = tails.numerator - growth * tails.denominator
        for atom in atoms:
            gain = atom.masses.numerator - growth * atom.masses.denominator
            true += gain if atom.loss > point else 0
        assert delta(upper, slope) >= true
        assert max(float(t - growth * f) for t, f in tests.values()) <= float(true)
        room = 2e-3 if range_of is None or range_of.tail_bits == 30 else 2e-2
        assert float(delta(upper, slope)) < float(true) + room


@pytest.mark.parametrize("place", (0, 7, -1))
def test_corrupted_integer_is_noticed(place):
    rng = random.Random(3)
    a = flint.fmpz_poly([rng.getrandbits(90) for _ in range(40)])
    b = flint.fmpz_poly([rng.getrandbits(90) for _ in range(30)])
    result = a * b
    steps.check(a, b, result)
    row = result.coeffs()
    row[place] += 1 << 41  # one bit
    with pytest.raises(steps.CorruptedProduct, match="computes wrongly"):
        steps.check(a, b, flint.fmpz_poly(row))


def test_product_that_is_corrupted_ends_a_proof(monkeypatch):
    import jaxgdp

    def flipped(first, second, result):
        row = result.coeffs()
        row[len(row) // 2] += 1
        return unflipped(first, second, flint.fmpz_poly(row))

    unflipped = steps.check
    monkeypatch.setattr(steps, "check", flipped)
    with pytest.raises(steps.CorruptedProduct):
        jaxgdp.prove(jaxgdp.dpsgd(1.0, 0.5, 2), "delta", (0.0, 1.0), epsilon=1.0)
