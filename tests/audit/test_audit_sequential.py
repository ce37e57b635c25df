"""Audits valid at any time: exact means by enumeration, level by simulation with a variant that
must fail, power, and every way in which scores may come.
"""

import json

import jax
import numpy as np
import pytest
from scipy.special import ndtri

from jaxgdp import audit
from jaxgdp.audit import bands

LEVEL = np.log(20.0)
CLAIM = audit.Sequential(1.0)


def scores(mu, pairs, seed):
    z = np.random.default_rng([11, seed]).standard_normal((2, pairs))
    return z[0] + mu, z[1]


def first_look(paths):
    """Pairs until the level is reached, infinite where it is not."""
    return np.array([np.argmax(p >= LEVEL) + 1.0 if p.max() >= LEVEL else np.inf for p in paths])


def too_often(refuted, level):
    refuted = np.asarray(refuted)
    return np.mean(refuted) > level + 3.0 * np.sqrt(level * (1.0 - level) / len(refuted))


def mean_of_coins(rates, pairs):
    """Exact, over all outcomes of some pairs with scores 0 and 1 under laws that a claim allows."""
    claim = audit.Sequential((1.0, 0.01) if rates[1] < 0.6 else (3.0, 0.05))
    p, q = rates
    chance = {0: (1 - q) * (1 - p), 1: (1 - q) * p, 2: q * (1 - p), 3: q * p}
    level = [(claim, 1.0)]
    for _ in range(pairs):
        following, rises = [], []
        for state, prob in level:
            after = [state.update([k // 2], [k % 2]) for k in range(4)]
            mean = sum(chance[k] * float(a.wealth) for k, a in enumerate(after))
            rises.append(mean - float(state.wealth))
            following += [(a, prob * chance[k]) for k, a in enumerate(after)]
        assert max(rises) <= 1e-12  # a supermartingale, whatever came before
        level = following
        assert sum(prob * float(a.wealth) for a, prob in level) <= 1.0 + 1e-12
    assert max(float(a.wealth) for a, _ in level) > 1.0  # and it does bet


@pytest.mark.parametrize("rates", [(0.2, 0.5), (0.05, 0.7)])
def test_wealth_of_coins_has_a_mean_of_at_most_one(rates):
    mean_of_coins(rates, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("rates", [(0.2, 0.5), (0.05, 0.7), (0.5, 0.5), (0.9, 0.95)])
def test_wealth_of_more_coins_has_a_mean_of_at_most_one(rates):
    mean_of_coins(rates, 6)


def fixed_size_at_every_look(member, nonmember, level):
    """What must not be done: limits for one look at one threshold, at every look and 25 thresholds,
    until they refute 1-GDP."""
    n, at = np.arange(1, len(member) + 1), np.linspace(-1.0, 2.0, 25)[:, None]
    fp, fn = np.cumsum(nonmember >= at, axis=1), np.cumsum(member < at, axis=1)
    a, b = bands.clopper_pearson(fp, n, 0.5 * level), bands.clopper_pearson(fn, n, 0.5 * level)
    return bool(np.any(-ndtri(a) - ndtri(b) > 1.0))


def level_holds(audits, looks, optimists):
    runs = [scores(1.0, looks, seed) for seed in range(max(audits, optimists))]
    peaks = np.array([CLAIM.path(*run).max() for run in runs[:audits]])
    for level in (0.2, 0.05):
        assert not too_often(peaks >= -np.log(level), level)
    optimistic = [fixed_size_at_every_look(*run, 0.2) for run in runs[:optimists]]
    assert too_often(optimistic, 0.2)


def test_true_claim_is_refuted_no_oftener_than_the_level_allows():
    level_holds(40, 200, 60)


@pytest.mark.nightly
def test_true_claim_over_ten_thousand_looks():
    level_holds(2000, 10_000, 50)


def test_power_against_half_the_noise():
    """About as many scores in the median as the fixed-size audit needs for power one half, without
    knowing the size beforehand, and half of its size for power 95 %."""
    runs = [scores(2.0, 160, seed) for seed in range(24)]
    needed = first_look([CLAIM.path(*run) for run in runs])
    assert np.median(needed) <= 55 and np.mean(needed <= 160) > 0.95
    fixed = lambda n: np.mean([audit.mu_lower_bound(m[:n], k[:n]) > 1.0 for m, k in runs])
    assert fixed(40) < 0.5 and fixed(90) < 0.97


def test_bounds_hold_and_come_close():
    member, nonmember = scores(1.0, 1000, 3)
    found = audit.Sequential((1.0, 1e-5)).update(member, nonmember)
    assert 0.7 < found.mu_lower < 1.0
    assert 0.2 < found.advantage_lower < 0.3829  # 2Φ(½) − 1
    assert 0.9 < found.epsilon_lower < 4.3766 and found.epsilon_lower(1e-2) < 2.3
    assert found.epsilon_lower.confidence == 0.95 and "delta = 1e-05" in str(found.epsilon_lower)


def test_path_is_the_wealth_after_every_pair():
    member, nonmember = scores(1.5, 120, 1)
    state = CLAIM.update(member[:20], nonmember[:20])
    path = state.path(member[20:], nonmember[20:])
    for m, k, expected in zip(member[20:], nonmember[20:], path, strict=True):
        state = state.update(m, k)
        assert state.log_wealth == pytest.approx(float(expected), abs=1e-9)


def test_order_of_arrival_does_not_matter():
    member, nonmember = scores(1.5, 900, 1)
    whole = CLAIM.update(member, nonmember)
    rng, state, i, j = np.random.default_rng(0), CLAIM, 0, 0
    while max(i, j) < 900 or min(i, j) < 900:
        more = rng.integers(0, 500, 2)
        state = state.update(member[i : i + more[0]], nonmember[j : j + more[1]])
        i, j = min(i + more[0], 900), min(j + more[1], 900)
    assert np.array_equal(state.counts.above, whole.counts.above) and state.waiting == 0
    assert state.log_wealth == whole.log_wealth and state.pairs == 900


def step(state, pair):
    state = state.update(*pair)
    return state, (state.log_wealth, state.refuted)


@pytest.fixture(scope="module")
def compiled():
    """An audit of 400 looks in one compiled program, in 32 bits."""
    return jax.jit(lambda state, *pairs: jax.lax.scan(step, state, pairs))


def test_compiled_wealth_is_never_above_the_exact_one(compiled):
    """The same counts worked out in doubles, and nearly the same wealth all along."""
    pairs = tuple(x.astype(np.float32) for x in scores(1.5, 400, 1))
    state, (wealth, refuted) = compiled(CLAIM, *pairs)
    assert wealth.dtype == np.float32
    assert np.array_equal(state.counts.above, CLAIM.update(*pairs).counts.above)
    assert float(wealth[-1]) <= float(state.log_wealth) < float(wealth[-1]) + 0.1
    # (guesses of an epoch may differ in their last digit)
    assert np.abs(np.asarray(wealth, float) - CLAIM.path(*pairs)).max() < 0.1
    assert bool(refuted[-1]) and state.refuted and not bool(refuted[0])
    # latched: what comes later does not take it back
    assert state.update(pairs[1], pairs[0]).refuted
    assert not CLAIM.update(pairs[1], pairs[0]).refuted


def test_nan_counts_against_refutation(compiled):
    member, nonmember = (x.astype(np.float32) for x in scores(2.0, 400, 1))
    with pytest.raises(ValueError, match="member_scores must hold no NaN, got 1 of 400"):
        CLAIM.update(np.where(np.arange(400) == 3, np.nan, member), nonmember)
    none = np.full(400, np.nan, np.float32)
    wealth = lambda *pairs: float(compiled(CLAIM, *pairs)[0].log_wealth)
    assert wealth(np.where(np.arange(400) % 2, none, member), nonmember) < wealth(member, nonmember)
    assert wealth(member, none) <= 1e-9 and wealth(none, nonmember) <= 1e-9


def test_checkpoints_restore_an_audit(tmp_path):
    state = CLAIM.update(*scores(2.0, 200, 2))
    np.savez(tmp_path / "state.npz", *jax.tree.leaves(state))
    with np.load(tmp_path / "state.npz") as file:
        again = jax.tree.unflatten(jax.tree.structure(CLAIM), [file[name] for name in file.files])
    assert again.log_wealth == state.log_wealth and again.mu_lower == state.mu_lower
    with pytest.raises(ValueError, match="worked out on the host"):
        jax.eval_shape(lambda s: s.mu_lower, state)


@pytest.mark.nightly
def test_batches_of_audits():
    member, nonmember = (x.reshape(3, 200).astype(np.float32) for x in scores(2.0, 600, 2))
    batch = jax.jit(jax.vmap(lambda m, k: CLAIM.update(m, k)))(member, nonmember)
    assert batch.refuted.shape == (3,) and batch.mu_lower.shape == (3,)
    one = CLAIM.update(member[1], nonmember[1])
    assert batch.mu_lower[1] == pytest.approx(float(one.mu_lower), rel=0.03)
    with pytest.raises(ValueError, match=r"updated by jax\.vmap"):
        batch.update(member[0], nonmember[0])


@pytest.mark.nightly
def test_scores_wait_for_partners_in_compiled_functions():
    compiled = jax.jit(lambda state, m, k: state.update(m, k))
    member, nonmember = (x.astype(np.float32) for x in scores(2.0, 500, 1))
    state = compiled(CLAIM, member[:400], nonmember[:100])
    assert (state.pairs, state.waiting, state.dropped) == (100, 256, 44)
    state = compiled(state, member[:0], nonmember[100:400])
    assert (state.pairs, state.waiting, state.dropped) == (356, 44, 44)
    expected = CLAIM.update(member[:356], nonmember[:356])
    assert np.array_equal(state.counts.above, expected.counts.above)


def test_scores_without_evidence_prove_nothing():
    none = CLAIM.update([], [])
    assert (none.pairs, none.wealth, none.refuted) == (0, pytest.approx(1.0), False)
    for member, nonmember in (
        (np.zeros(500), np.zeros(500)),
        scores(-3.0, 500, 0),  # members lower
        (np.arange(300.0), []),
        ([], np.arange(300.0)),
        (np.full(500, np.inf), np.full(500, np.inf)),
    ):
        found = CLAIM.update(member, nonmember)
        assert not found.refuted and float(found.wealth) <= 1.0 + 1e-9
        assert found.mu_lower == found.epsilon_lower == found.advantage_lower == 0.0
    assert found.line.startswith("consistent so far: 1-GDP is not refuted at confidence 95 % (500")
    assert "(0 pairs, 3 scores without a partner; wealth 1 of" in CLAIM.update([1.0] * 3, []).line


def test_scores_of_zero_and_one_are_enough():
    rng = np.random.default_rng(0)
    found = CLAIM.update(rng.random(200) < 0.85, rng.random(200) < 0.15)
    assert found.refuted and found.line.startswith("A BUG IS PROVEN: 1-GDP is refuted")
    json.dumps(float(found.mu_lower))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("strong",), "claim must be a mechanism"),
        ((1.0, 1.0), "confidence must be one number"),
        ((1.0, 0.95, 1.0), r"delta must be in \[0, 1\)"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        audit.Sequential(*arguments)


def test_bad_scores_are_refused():
    for bad, words in ((["a"], "must be an array of numbers"), (np.zeros((2, 2)), "one axis")):
        with pytest.raises(ValueError, match=f"^member_scores .*{words}"):
            CLAIM.update(bad, [0.0])
