"""Runs from records, batches and epochs: exact counts, rounding in words, taken as mechanisms."""

import itertools
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

import jaxgdp
from jaxgdp import run_settings as runs

SIZE, BATCH, EPOCHS = 45_000, 512, 30


def one(sampler="poisson", **given):
    length = {} if "num_steps" in given else {"num_epochs": EPOCHS}
    return jaxgdp.run(0.9, SIZE, BATCH, sampler=sampler, **length | given)


def test_counts_are_exact_for_whole_numbers():
    sizes, batches, epochs = (1, 7, 100, 45_000, 10**9 + 7), (1, 3, 7, 512, 49), (1, 2, 30, 999)
    for size, batch, passes in itertools.product(sizes, batches, epochs):
        if batch > size:
            continue
        found = runs.counts(size, batch, passes, None)
        assert found.steps == ceil(Fraction(passes * size, batch)) and found.epochs == passes
        assert found.batches == ceil(Fraction(size, batch))
        loader = runs.counts(size, batch, passes, None, loader=True)
        assert loader.steps == passes * found.batches and loader.rate == 1.0 / found.batches


@pytest.mark.parametrize(
    ("sampler", "rate", "steps"), [("poisson", 512 / 45_000, 2637), ("opacus", 1 / 88, 2640)]
)
def test_poisson_runs_are_dpsgd(sampler, rate, steps):
    found = one(sampler).mechanism
    assert found.mechanisms[0].sampling_prob == rate and found.counts[0] == steps
    assert f"{steps:,}" in one(sampler).rounding


def test_runs_by_epochs_have_the_mechanism_of_their_sampler():
    shuffled = one("shuffled").mechanism.mechanisms[0]
    assert (float(shuffled.num_batches), float(shuffled.num_epochs)) == (88, 30)
    allocated = one("random_allocation").mechanism
    assert float(allocated.counts[0]) == 30
    # what does not fill the last epoch counts as all of it
    assert float(one("shuffled", num_steps=2600).mechanism.mechanisms[0].num_epochs) == 30
    assert "2,600 steps, counted as 30 epochs" in one("shuffled", num_steps=2600).rounding
    fixed = one("fixed_size").mechanism
    assert float(fixed.counts[0]) == 2637 and float(one("deterministic").mechanism.counts[0]) == 1


def test_unknown_sampler_is_poisson_and_shuffled():
    unknown = one("unknown")
    both = jaxgdp.epsilon(unknown, delta=1e-5, rtol=1e-2)
    each = [jaxgdp.epsilon(one(name), delta=1e-5, rtol=1e-2) for name in ("poisson", "shuffled")]
    assert both.upper.tolist() == [found.upper for found in each]
    assert both.lower.tolist() == [found.lower for found in each]
    with pytest.raises(ValueError, match="'unknown' stands for two mechanisms, Poisson and shuf"):
        jaxgdp.tradeoff(unknown)


def test_every_place_of_a_mechanism_takes_a_run():
    mine, same = one(), jaxgdp.dpsgd(0.9, 512 / 45_000, 2637)
    assert jaxgdp.spec.to_dict(mine) == jaxgdp.spec.to_dict(same)
    assert jaxgdp.mu(mine) == jaxgdp.mu(same)
    assert jaxgdp.mu([mine, same]).upper.tolist() == [jaxgdp.mu(same).upper] * 2
    twice = jaxgdp.compose([(mine, 2), jaxgdp.Gaussian(5.0)])
    assert [float(count) for count in twice.counts] == [5274.0, 1.0]
    assert jaxgdp.tradeoff(mine).mu() == jaxgdp.tradeoff(same).mu()
    assert jaxgdp.bridge.identify(mine) == jaxgdp.bridge.identify(same)
    goal = jaxgdp.targets.Mu(0.9)
    assert (
        jaxgdp.calibrate(goal, mechanism=mine).value == jaxgdp.calibrate(goal, mechanism=same).value
    )


def test_arrays_are_many_runs():
    many = jaxgdp.run([0.8, 1.0], SIZE, [[256], [512]], num_epochs=EPOCHS)
    assert many.shape == many.mechanism.shape == (2, 2)
    assert np.broadcast_to(many.counts().steps, (2, 2)).tolist() == [[5274.0] * 2, [2637.0] * 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_steps": 3, "num_epochs": 2}, "give one of num_epochs and num_steps, got both"),
        ({"num_epochs": None}, "give one of num_epochs and num_steps, got none"),
        ({"num_epochs": 0}, "num_epochs must be a finite number > 0, got 0"),
        ({"batch_size": 99_999}, "batch_size must be at most dataset_size 45000, got 99999"),
        ({"batch_size": 1.5}, "batch_size must be a whole number >= 1, got 1.5"),
        ({"sampler": "none"}, "sampler must be one of 'poisson', 'opacus', 'shuffled', "),
        ({"sampler": "shuffled", "records_per_user": 2}, "records_per_user must be 1 for samp"),
        ({"sampler": "random_allocation", "noise_multiplier": 0.1}, "noise_multiplier must be in"),
        ({"records_per_user": 0}, "records_per_user must be a whole number >= 1, got 0"),
    ],
)
def test_bad_runs_are_refused_by_name(given, message):
    known = {"noise_multiplier": 1.0, "dataset_size": SIZE, "batch_size": BATCH, "num_epochs": 2}
    with pytest.raises(ValueError, match=message):
        jaxgdp.run(**known | given)


def test_names_that_people_bring_are_answered_with_ours():
    with pytest.raises(TypeError, match="write num_epochs="):
        jaxgdp.run(1.0, 100, 10, epochs=2)
    with pytest.raises(TypeError, match=r"write jaxgdp.run\(…, batch_size=…\)"):
        jaxgdp.dpsgd(1.0, batch_size=3)
