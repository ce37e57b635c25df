"""One of many steps of any mechanism: enumeration, integrals, simulation and closed forms."""

import itertools
import math
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp import mechanisms
from jaxgdp.mechanisms.description import describe
from jaxgdp.mechanisms.random_allocation import allocated, one_of_any, step_law
from jaxgdp.mechanisms.random_allocation.one_of_any import Beyond, within
from jaxgdp.pairs.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from mechanisms_of_every_class import SETTINGS, element

_P, _Q = [0.5, 0.25, 0.125, 0.125, 0.0], [0.25, 0.25, 0.3125, 0.0, 0.1875]
_EPSILONS = (0.0, 0.03, 0.2, 0.7, 1.3)


def allocation(mechanism, steps):
    return jaxgdp.RandomAllocation(mechanism=mechanism, num_steps=steps)


def law_of_mean(p, q, steps):
    """Likelihood ratios of one of many steps and their masses under both laws, 40 digits: from the
    multinomial numbers of outcomes of each kind, one-sided outcomes included.
    """
    p, q = ([mpmath.mpf(float(a)) for a in law] for law in (p, q))
    found = []
    for drawn in itertools.combinations_with_replacement(range(len(p)), steps):
        counts = [drawn.count(i) for i in range(len(p))]
        ways = math.factorial(steps)
        for count in counts:
            ways //= math.factorial(count)
        powers = [a**n for a, n in zip(p, counts, strict=True)]
        without = ways * mpmath.fprod(powers)
        # with the record: one of the steps, at random, has the other law
        shares = [
            mpmath.mpf(n) / steps * q[i] * p[i] ** (n - 1)
            * mpmath.fprod(a for j, a in enumerate(powers) if j != i)
            for i, n in enumerate(counts) if n
        ]  # fmt: skip
        found.append((without, ways * mpmath.fsum(shares)))
    return found


def delta_of(law, epsilon, order):
    """δ(ε) of a law of two masses for each outcome."""
    c = mpmath.exp(mpmath.mpf(epsilon))
    sides = law if order == "remove" else [(b, a) for a, b in law]
    return mpmath.fsum(max(b - c * a, mpmath.mpf(0)) for a, b in sides)


def composed(law, uses):
    """The law of several independent ones."""
    found = law
    for _ in range(uses - 1):
        found = [(a * c, b * d) for a, b in found for c, d in law]
    return found


def assert_holds(mechanism, exact, width, epsilons=_EPSILONS):
    """Brackets of δ hold the exact numbers, in both orders, and are narrow."""
    for order in ("remove", "add"):
        found = jaxgdp.measure(mechanism, "delta", epsilon=list(epsilons), adjacency=order).delta
        for k, epsilon in enumerate(epsilons):
            truth = exact(epsilon, order)
            assert mpmath.mpf(found.lower[k]) <= truth <= mpmath.mpf(found.upper[k])
            assert found.upper[k] - found.lower[k] <= width * float(truth) + 1e-12


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_finite_pair_with_one_sided_outcomes_is_an_enumeration(steps):
    with mpmath.workdps(40):
        law = law_of_mean(_P, _Q, steps)
        pair = mechanisms.FromPMFs(_P, _Q)
        exact = lambda epsilon, order: delta_of(law, epsilon, order)
        assert_holds(allocation(pair, steps), exact, 2e-3, (0.0, 0.03, 0.2))
        found = jaxgdp.delta(allocation(pair, steps), epsilon=40.0, adjacency="remove")
        assert found.lower <= _Q[-1] <= found.upper < _Q[-1] * (1.0 + 1e-6)


@pytest.mark.parametrize("steps", [2, 25, 200])
def test_randomized_response_is_a_binomial(steps):
    with mpmath.workdps(40):
        epsilon = mpmath.mpf(1.25)
        low = 1 / (1 + mpmath.exp(epsilon))
        law = law_of_mean([1 - low, low], [low, 1 - low], steps)
        pair = allocation(mechanisms.RandomizedResponse(1.25), steps)
        assert_holds(pair, lambda e, order: delta_of(law, e, order), 2e-3, (0.0, 0.03, 0.2))


def laplace_delta(scale, epsilon, order):
    """δ(ε) of one of two steps of Laplace noise, by one integral: E(V − x)₊ = 1 − √x·e^{−1/(2b)}
    between the two ends of V, and 1 − x below.
    """
    largest, c = 1 / mpmath.mpf(scale), mpmath.exp(mpmath.mpf(epsilon))
    c = c if order == "remove" else 1 / c

    def call(x):
        if x <= mpmath.exp(-largest):
            return 1 - x
        return 1 - mpmath.sqrt(x) * mpmath.exp(-largest / 2) if x < mpmath.exp(largest) else 0

    inner = lambda loss: call(2 * c - mpmath.exp(loss))
    density = lambda loss: inner(loss) * mpmath.exp(-(loss + largest) / 2) / 4
    breaks = [2 * c - mpmath.exp(side * largest) for side in (1, -1)]
    inside = [mpmath.log(a) for a in breaks if a > 0 and abs(mpmath.log(a)) < largest]
    total = mpmath.quad(density, sorted([-largest, largest, *inside]))
    total += inner(-largest) / 2 + inner(largest) * mpmath.exp(-largest) / 2
    total = total / 2
    return total if order == "remove" else (total + c - 1) / c


@pytest.mark.parametrize("scale", [0.25, 1.0, 20.0])
def test_two_laplace_steps_are_an_integral(scale):
    with mpmath.workdps(30):
        exact = lambda epsilon, order: laplace_delta(scale, epsilon, order)
        epsilons = [share / scale for share in (0.0, 0.1, 0.6)]
        assert_holds(allocation(jaxgdp.Laplace(scale), 2), exact, 1e-3, epsilons)


def test_two_epochs_are_an_enumeration():
    with mpmath.workdps(40):
        p, q = [0.5, 0.375, 0.125], [0.25, 0.5, 0.25]
        law = composed(law_of_mean(p, q, 3), 2)
        twice = jaxgdp.compose([(allocation(mechanisms.FromPMFs(p, q), 3), 2)])
        assert_holds(twice, lambda e, order: delta_of(law, e, order), 3e-3, (0.0, 0.03, 0.2))


@pytest.mark.parametrize("mechanism", [jaxgdp.Laplace(1.0), jaxgdp.SubsampledLaplace(0.5, 0.2)])
def test_hundred_steps_against_simulation(mechanism):
    random, trials, steps = np.random.default_rng(7), 20_000, 100
    scale = float(mechanism.scale)
    rate = float(getattr(mechanism, "sampling_prob", 1.0))
    noise = random.laplace(0.0, scale, (trials, steps))
    ratio = np.exp((np.abs(noise) - np.abs(noise - 1.0)) / scale)
    mean = np.mean(1.0 - rate + rate * ratio, axis=1)
    for order, epsilon in itertools.product(("remove", "add"), (0.0, 0.03, 0.1)):
        c = math.exp(epsilon)
        seen = np.maximum(mean - c if order == "remove" else 1.0 - c * mean, 0.0)
        error = 5.0 * float(np.std(seen)) / math.sqrt(trials)
        found = jaxgdp.delta(allocation(mechanism, steps), epsilon=epsilon, adjacency=order)
        assert found.lower <= np.mean(seen) + error and np.mean(seen) - error <= found.upper
        assert found.upper - found.lower <= 1e-3 * found.upper


def test_single_step_is_the_mechanism_itself():
    for mechanism in (jaxgdp.Laplace(1.5), mechanisms.FromPMFs(_P, _Q)):
        for order in ("remove", "add"):
            asked = {"delta": 1e-5, "adjacency": order}
            quantities = ("epsilon", "advantage", "mu")
            one = jaxgdp.measure(allocation(mechanism, 1), quantities, **asked).brackets
            alone = jaxgdp.measure(mechanism, quantities, **asked).brackets
            for name, bracket in alone.items():
                np.testing.assert_array_equal(one[name].lower, bracket.lower)
                np.testing.assert_array_equal(one[name].upper, bracket.upper)


def test_batch_with_single_steps_in_it_holds_the_mechanism_itself():
    batch = jaxgdp.advantage(allocation(jaxgdp.Laplace([1.0, 2.0]), [[1], [4]]))
    assert batch.lower.shape == (2, 2)
    for k, scale in enumerate((1.0, 2.0)):
        exact = -math.expm1(-0.5 / scale)
        assert batch.lower[0, k] <= exact <= batch.upper[0, k]
        assert batch.upper[0, k] - batch.lower[0, k] <= 1e-3 * exact
        alone = jaxgdp.advantage(allocation(jaxgdp.Laplace(scale), 4))
        assert (batch.lower[1, k], batch.upper[1, k]) == (alone.lower, alone.upper)


@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 20), (2.0, 300)])
def test_gaussian_steps_by_either_way_overlap(sigma, steps):
    for order in ("remove", "add"):
        asked = {"quantities": ("epsilon", "advantage"), "delta": 1e-6, "adjacency": order}
        own = jaxgdp.measure(jaxgdp.RandomAllocation(sigma, steps), **asked).brackets
        any_ = jaxgdp.measure(allocation(jaxgdp.Gaussian(sigma), steps), **asked).brackets
        for name, bracket in own.items():
            assert max(bracket.lower, any_[name].lower) <= min(bracket.upper, any_[name].upper)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 8.0, 40.0])
def test_bounded_losses_stay_bounded(epsilon):
    for steps in (2, 1000):
        pair = allocation(mechanisms.PureDP(epsilon), steps)
        assert float(jaxgdp.epsilon(pair, delta=1e-300).upper) <= epsilon * (1.0 + 1e-6)
        found = jaxgdp.advantage(pair)
        assert 0.0 < found.lower <= found.upper <= math.tanh(0.5 * epsilon) * (1.0 + 1e-9)


def test_infinite_masses_are_those_of_the_chosen_step_and_of_all_steps():
    # an outcome that only the record makes is seen in its step; one that only its absence makes has
    # to be seen in every step
    pair = allocation(mechanisms.ApproximateDP(0.5, 1e-4), 3)
    gone, added = (jaxgdp.delta(pair, epsilon=50.0, adjacency=a) for a in ("remove", "add"))
    assert gone.lower <= 1e-4 <= gone.upper <= 1e-4 * (1.0 + 1e-6)
    assert added.lower <= 1e-12 <= added.upper <= 1e-12 * (1.0 + 1e-3)
    found = jaxgdp.mu(jaxgdp.compose([(pair, 2)]))
    assert 0.0 < found.upper - found.lower <= 1e-3 * found.upper


def table_of(law):
    p, q = (np.array(a, float) for a in zip(*law, strict=True))
    loss = np.log(q / p)
    order = np.argsort(loss)
    return Table(loss[order], p[order], q[order], 0.0, 0.0, 1e-15)


def test_mass_within_the_largest_loss_keeps_the_profile_below_it_and_ends_there():
    random = np.random.default_rng(3)
    p = random.dirichlet(np.ones(40))
    v = np.sort(np.exp(random.normal(0.0, 0.4, 40)))
    v = v / (p @ v)
    found = table_of([(a, a * b) for a, b in zip(p, v, strict=True)])
    highest = float(np.log(v[-4]) + 1e-3)
    ended = within(found, highest, Beyond(np.zeros(0), np.zeros(0), 0.0))
    assert ended.loss[-1] == highest and ended.q_plus == 0.0
    call = lambda t, c: float(np.sum(t.p * np.maximum(np.exp(t.loss) - c, 0.0)))
    for c in np.exp(found.loss[found.loss < ended.loss[-2]]):
        assert call(ended, c) == pytest.approx(call(found, c), rel=1e-12)
    middle = math.exp(0.5 * (ended.loss[-2] + highest))
    chord = 0.5 * call(found, math.exp(ended.loss[-2]))
    share = (math.exp(highest) - middle) / (math.exp(highest) - math.exp(ended.loss[-2]))
    assert call(ended, middle) == pytest.approx(2.0 * chord * share, rel=1e-9)


@pytest.mark.parametrize("name", ["Laplace", "SubsampledLaplace", "DiscreteGaussian", "Gaussian"])
def test_table_of_one_step_dominates_and_is_dominated(name):
    pair = element(name, 0).canonical().gathered(np.ones(()))[0][0]
    with np.errstate(all="ignore"):
        step = step_law.step_law(pair)
    for found, sign in ((step.above, 1.0), (step.below, -1.0)):
        p, q = np.sum(found.p) + found.p_minus, np.sum(found.q) + found.q_plus
        room = 4.0 * (found.error + len(found.p) * 2e-16)
        assert abs(p - 1.0) <= room and abs(q - 1.0) <= room
        for epsilon in (0.0, 0.05, 0.2):
            for order, (a, b, more) in {
                "remove": (found.p, found.q, found.q_plus),
                "add": (found.q, found.p, found.p_minus),
            }.items():
                shown = float(np.sum(np.maximum(b - math.exp(epsilon) * a, 0.0))) + more
                truth = jaxgdp.delta(element(name, 0), epsilon=epsilon, adjacency=order)
                side = truth.lower if sign > 0.0 else truth.upper
                assert sign * (shown * (1.0 + sign * room) - side) >= 0.0


_SINGLE = [
    name for name in SETTINGS
    if name not in ("LastIterate", "MatrixMechanism", "ThresholdedLaplace")
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("name", _SINGLE)
def test_every_class_is_allocated_between_its_own_steps(name):
    one = element(name, 0) if SETTINGS[name][0].shape else SETTINGS[name][0]
    quantities = ("epsilon", "advantage", "mu")
    for order in ("remove", "add"):
        asked = {"delta": 1e-5, "adjacency": order}
        alone = jaxgdp.measure(one, quantities, **asked).brackets
        before = alone
        for steps in (2, 7):
            found = jaxgdp.measure(allocation(one, steps), quantities, **asked).brackets
            for quantity, bracket in found.items():
                assert 0.0 <= bracket.lower <= bracket.upper
                # (whoever is told which half of the steps it is sees fewer steps)
                assert bracket.lower <= before[quantity].upper
            before = found


@pytest.mark.parametrize("name", ["LastIterate", "MatrixMechanism"])
def test_composition_in_one_step_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"one use of {name} is a composition of several"):
        jaxgdp.advantage(allocation(element(name, 0), 2))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"num_steps": 3}, "either noise_multiplier or mechanism"),
        ({"noise_multiplier": 1.0, "num_steps": 3, "mechanism": jaxgdp.Laplace(1.0)}, "either"),
        ({"mechanism": jaxgdp.Laplace(1.0)}, "num_steps must be"),
        ({"noise_multiplier": 1.0}, "num_steps must be"),
        ({"mechanism": 1.0, "num_steps": 3}, "mechanism must be one mechanism"),
        ({"mechanism": jaxgdp.compose([(jaxgdp.Laplace(1.0), 2)]), "num_steps": 3}, "composition"),
        ({"mechanism": jaxgdp.Laplace(1.0), "num_steps": 3, "num_selected": 2}, "num_selected"),
        ({"mechanism": jaxgdp.Laplace([1.0, 2.0]), "num_steps": [3, 4, 5]}, "do not broadcast"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.RandomAllocation(**arguments)


def test_replacing_a_record_is_refused_by_name():
    with pytest.raises(ValueError, match="RandomAllocation, got 'replace_one'"):
        jaxgdp.advantage(allocation(jaxgdp.Laplace(1.0), 3), adjacency="replace_one")


def test_description_as_a_file_and_back():
    pair = allocation(jaxgdp.Laplace(2.0), 30)
    described = jaxgdp.spec.to_dict(pair)
    entry = described["mechanism"][0]
    assert entry["mechanism"] == [{"type": "Laplace", "scale": 2.0, "count": 1}]
    assert "noise_multiplier" not in entry
    again = jaxgdp.spec.from_dict(described).mechanism
    assert jaxgdp.advantage(again) == jaxgdp.advantage(pair)
    line = describe(again)
    assert line.startswith("RandomAllocation(num_steps=30, num_selected=1, mechanism=Laplace(sc")


def test_tables_are_made_once():
    pair = jaxgdp.Laplace(1.0).canonical()
    assert allocated._key(pair) == allocated._key(jaxgdp.Laplace(1.0).canonical())
    assert allocated._key(pair) != allocated._key(jaxgdp.Laplace(1.0 + 1e-15).canonical())
    assert one_of_any.ONE_SIDED > 500.0


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_attack_counts_no_masses_that_underflow(adjacency):
    """P- and Q-masses of 1e-320 have hardly a digit, and their ratio is no loss."""
    response, steps, epsilon = 1.5288776616616327e-6, 2662, 1.1e-6
    with mpmath.workdps(40):
        growth, slope = (mpmath.exp(mpmath.mpf(x)) for x in (response, epsilon))
        true, share = mpmath.mpf(0), 1 / (1 + growth)
        for told in range(steps * 6 // 10, steps + 1):
            p = mpmath.binomial(steps, told) * share**told * (1 - share) ** (steps - told)
            q = p * (told * growth + (steps - told) / growth) / steps
            true += max(q - slope * p if adjacency == "remove" else 0, 0)
        for told in range(steps * 4 // 10 if adjacency == "add" else 0):
            p = mpmath.binomial(steps, told) * share**told * (1 - share) ** (steps - told)
            true += max(p - slope * p * (told * growth + (steps - told) / growth) / steps, 0)
        run = allocation(mechanisms.RandomizedResponse(response), steps)
        found = jaxgdp.measure(run, "delta", epsilon=epsilon, adjacency=adjacency).delta
        assert found.lower <= true <= found.upper
