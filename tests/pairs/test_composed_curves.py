"""A few uses of pairs on a few outputs, against enumeration of every sequence of outputs."""

import warnings

import jax
import numpy as np
import pytest
from mpmath import mp, mpf

import jaxgdp
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.pairs.known_curves import FiniteCurve, composed, number_of_outputs
from jaxgdp.pairs.known_curves.base import ADD, REMOVE


def _random_pair(generator):
    """Masses as doubles, some at infinities, faint ones among them; the curve, and exact masses."""
    number = int(generator.integers(2, 5))
    spread = float(generator.choice([0.01, 1.0, 30.0, 800.0]))
    logs = generator.uniform(-spread, 0.0, (2, number))
    ends = np.exp(-generator.uniform(0.5, 40.0, 2)) * generator.integers(0, 2, 2)
    with mp.workdps(400):
        rows = []
        for log, end in zip(logs, ends, strict=True):
            masses = [mp.exp(mpf(x)) for x in log]
            rows.append([m / mp.fsum(masses) * (1 - mpf(end)) for m in masses])
        p, q = rows
        loss = [mp.log(b / a) for a, b in zip(p, q, strict=True)]
        log_p, log_q = (np.array([float(mp.log(m)) for m in row]) for row in rows)
        short = np.array([float(x) for x in loss])
        rest = np.array([float(x - mpf(s)) for x, s in zip(loss, short, strict=True)])
    with np.errstate(divide="ignore"):
        curve = FiniteCurve.of_atoms(
            short, log_p, log_q, mass_error=1e-15, loss_error=1e-30 * (1.0 + np.abs(short)),
            loss_rest=rest, log_p_minus=np.log(ends[0]), log_q_plus=np.log(ends[1]),
        )  # fmt: skip
    return curve, list(zip(loss, p, q, strict=True)), tuple(map(mpf, ends))


def _enumerated(pieces):
    """Losses, P- and Q-masses of every sequence of outputs, and the masses at both infinities."""
    rows, only = [(mpf(0), mpf(1), mpf(1))], [mpf(1), mpf(1)]
    for _, outputs, ends, uses in pieces:
        for _ in range(uses):
            rows = [(l + m, p * a, q * b) for l, p, q in rows for m, a, b in outputs]
        only = [x * (1 - end) ** uses for x, end in zip(only, ends, strict=True)]
    return rows, [1 - x for x in only]


@pytest.mark.parametrize("seed", range(12))
def test_composed_pairs_hold_every_sequence_of_outputs(seed):
    generator, pieces = np.random.default_rng([35, seed]), []
    for uses in generator.permutation([1, 2, 4])[: int(generator.integers(1, 3))]:
        pieces.append((*_random_pair(generator), int(uses)))
    found = composed([(curve, uses) for curve, *_, uses in pieces])
    assert len(found.loss) == number_of_outputs([(curve, uses) for curve, *_, uses in pieces])
    with mp.workdps(400), np.errstate(all="ignore"):
        rows, (minus, plus) = _enumerated(pieces)
        largest = float(max(abs(l) for l, *_ in rows))
        atoms = [abs(float(rows[int(k)][0])) for k in generator.integers(0, len(rows), 3)]
        for epsilon in [0.0, *atoms, *(generator.uniform(0.0, 1.1 * largest, 3))]:
            for order, side, infinite in ((REMOVE, 1, plus), (ADD, -1, minus)):
                growth = mp.exp(mpf(epsilon))
                each = [(l, p, q) if side > 0 else (-l, q, p) for l, p, q in rows]
                delta = infinite + mp.fsum(q - growth * p for l, p, q in each if l > epsilon)
                rest = mp.fsum(growth * p if l > epsilon else q for l, p, q in each)
                for bracket, value in (
                    (found.log_delta(order, np.array(epsilon)), delta),
                    (found.log_one_minus_delta(order, np.array(epsilon)), rest),
                ):
                    exact = mp.log(min(value, mpf(1))) if value > 0 else mp.ninf
                    assert bracket.lower <= exact <= bracket.upper
                    # (a loss at an atom is known to its rounding only)
                    if exact > -600 and epsilon not in atoms:
                        assert bracket.upper - bracket.lower < 1e-9


def test_few_uses_are_counted():
    """Of any adjacency and quantity, as narrow as rounding allows, in no time."""
    run = jaxgdp.compose([(jaxgdp.RandomizedResponse(1.0), 3), (jaxgdp.PureDP(0.3), 2)])
    (found,) = closed_forms.find(_groups(run))
    assert found.counted and len(found.known.loss) == 4 * 3
    for name in ("mu", "epsilon", "delta", "tpr", "advantage", "bayes_risk"):
        lower, upper = jaxgdp.measure(run, name)[name]
        assert 0.0 <= upper - lower <= 1e-10 * upper
    many = jaxgdp.compose([(jaxgdp.RandomizedResponse(1.0, 3), 60)])
    smooth = jaxgdp.compose([(jaxgdp.RandomizedResponse(1.0), 3), (jaxgdp.Laplace(1.0), 1)])
    assert closed_forms.find(_groups(many)) == closed_forms.find(_groups(smooth)) == [None]


def test_faint_outputs_with_large_losses_are_counted():
    """(no lattice resolves losses of 1e-435 and 1000 together)"""
    run = jaxgdp.compose([(jaxgdp.FromPMFs.from_logs([0.0, -2000.0], [0.0, -1000.0]), 3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jaxgdp.measure(run, "epsilon").epsilon == (0.0, 0.0)
        found = jaxgdp.tradeoff(run).log_delta(500.0)
    assert np.allclose(found, np.log(3.0) - 1000.0, rtol=1e-12)


def _groups(run):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], run.stacked())


@pytest.mark.parametrize("deep", [1e-300, 1e-17, 1e-3, 0.7324814689158041, 1.0 - 1e-9])
@pytest.mark.parametrize("uses", [2, 10, 37])
def test_masses_at_infinity_are_rounded_up_and_by_little(deep, uses):
    """Also where they are next to 1 and what they leave is what counts."""
    one = jaxgdp.ApproximateDP(0.0, deep).known_curve()
    with mp.workdps(600):
        left = (1 - mpf(deep)) ** uses
        twice = composed([(one, uses), (one, uses)])
        for found, rest in ((composed([(one, uses)]), left), (twice, left * left)):
            for log in (found.log_q_plus, found.log_p_minus):
                mass = mp.exp(mpf(log))
                assert 1 - rest <= mass <= (1 - rest) * (1 + mpf(found.mass_error))
                if 1e-300 < rest < 0.5:
                    assert 1 - mass >= rest * (1 - 1e-11)


def test_mu_of_what_is_only_found_at_infinity_is_rounded_up():
    generator = np.random.default_rng(36)
    for _ in range(8):
        deep, floor = generator.uniform(0.3, 0.8), 10.0 ** generator.uniform(-12.0, -8.0)
        run = jaxgdp.compose([(jaxgdp.ApproximateDP(0.0, deep), 10)])
        found = jaxgdp.measure(run, "mu", fpr_floor=floor)["mu"]
        with mp.workdps(60):
            quantile = lambda rate: -mp.sqrt(2) * mp.erfinv(1 - 2 * rate)
            left = (1 - mpf(deep)) ** 10
            truth = -quantile(left - mpf(floor)) - quantile(mpf(floor))
            assert mpf(float(found.lower)) <= truth <= mpf(float(found.upper))


def test_largest_loss_of_a_faint_pair_is_rounded_up():
    """ε at a δ far below its Q-mass is the last atom's loss, between two doubles."""
    p = [3.12212965e-174, 1.33415788e-100, 3.78945357e-219, 3.41696614e-157, 1.0]
    q = [1.0, 1.86670344e-56, 6.46047168e-70, 9.10801713e-295, 3.20875511e-162]
    with mp.workdps(50):
        total_p, total_q = (sum(map(mpf, side)) for side in (p, q))
        swapped = mp.log(mpf(p[-1]) / total_p) - mp.log(mpf(q[-1]) / total_q)
        for uses in (1, 2, 3):
            run = jaxgdp.compose([(jaxgdp.FromPMFs(p, q), uses)])
            found = jaxgdp.epsilon(run, delta=6.4e-25, adjacency="add")
            exact = uses * swapped + mp.log1p(mpf("-6.4e-25"))
            assert found.lower <= exact <= found.upper


@pytest.mark.parametrize("scale", [3.0, 16.416456552909207, 0.13877265, 43.0])
@pytest.mark.parametrize("uses", [1, 3])
def test_discrete_laplace_has_the_reciprocal_of_its_scale_as_loss(scale, uses):
    """1/b is no double: next to the largest loss δ is the difference of both."""
    with mp.workdps(60):
        loss = 1 / mpf(scale)
        top = float(uses * loss)
        for epsilon in (top, float(np.nextafter(top, 0.0)), top * (1.0 - 1e-12)):
            gap = uses * loss - mpf(epsilon)
            share = (1 / (1 + mp.exp(-loss))) ** uses
            exact = max(-mp.expm1(-gap), mpf(0)) * share
            found = jaxgdp.delta(
                jaxgdp.compose([(jaxgdp.DiscreteLaplace(scale), uses)]), epsilon=epsilon
            )
            assert found.lower <= exact <= found.upper


def test_masses_next_to_one_at_infinity_are_composed():
    faint = jaxgdp.FromPMFs([0.0, 1.0], [1.0, 2.1612068e-271])
    found = jaxgdp.delta(jaxgdp.compose([(faint, 30)]), epsilon=0.01, adjacency="remove")
    assert found.lower > 1.0 - 1e-9
    assert found.upper == 1.0
