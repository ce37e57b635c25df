"""DP-SGD on the digits: against plain gradient descent written apart, and what noise does to it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

import jaxgdp
from jaxgdp.report import rows_of
from jaxgdp.reproduce import digits, reproduce


def descent(data, steps, rate, clip):
    """Clipped full-batch gradient descent with momentum in NumPy, float64; accuracy on the test
    images.
    """
    x, y = data.train_images.astype(float), np.eye(10)[data.train_labels]
    weights, moment = np.zeros((x.shape[1], 10)), 0.0
    for _ in range(steps):
        logits = x @ weights
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        residual = p / p.sum(axis=1, keepdims=True) - y
        norms = np.linalg.norm(residual, axis=1) * np.linalg.norm(x, axis=1)
        scaled = residual * np.minimum(1.0, clip / norms)[:, None]
        moment = digits.MOMENTUM * moment + x.T @ scaled / len(x) / clip
        weights = weights - rate * moment
    return np.mean(np.argmax(data.test_images @ weights, axis=1) == data.test_labels)


@pytest.mark.parametrize("clip", [0.5, 100.0])
def test_training_without_noise_on_whole_batches_is_gradient_descent(clip):
    # updates are divided by the clip: a large one needs a rate as much larger
    rate = 0.3 * max(clip, 1.0)
    found = digits.train(
        1e-6, clip=clip, sampling_prob=1.0, num_steps=30, seeds=[0, 1], learning_rate=rate
    )
    expected = descent(digits.load(), 30, rate, clip)
    assert 0.7 < expected < 1.0
    # one test image more or less, by float32
    np.testing.assert_allclose(found, expected, atol=1.5 / len(digits.load().test_labels))


def test_split_that_stays_and_images_of_unit_length():
    data = digits.load()
    assert data.records + len(data.test_labels) == 1797
    np.testing.assert_allclose(np.linalg.norm(data.train_images[:, :-1], axis=1), 1.0, rtol=1e-5)
    assert set(data.train_labels) == set(data.test_labels) == set(range(10))
    both = {image.tobytes() for image in data.train_images} & {
        image.tobytes() for image in data.test_images
    }
    assert not both


def test_seeds_repeat_and_noise_costs_accuracy():
    quiet, again = (digits.train(0.5, num_steps=60, seeds=[3, 4]) for _ in range(2))
    np.testing.assert_array_equal(quiet, again)
    loud = digits.train(40.0, num_steps=60, seeds=[3, 4])
    assert np.all(quiet > 0.7) and np.all(loud < quiet - 0.2)


def test_schedule_of_equal_numbers_is_a_constant_and_others_are_not():
    constant = digits.train(2.0, num_steps=60, seeds=[5, 6])
    even = digits.train(
        np.full(60, 2.0), clip=np.ones(60), sampling_prob=np.full(60, digits.RATE), seeds=[5, 6]
    )
    np.testing.assert_array_equal(even, constant)
    # three loud steps at the start act on through the momentum; at the end they have hardly begun
    # to
    when = np.arange(60)
    early, late = (
        digits.train(np.where(loud, 20.0, 0.5), seeds=[0, 1]).mean()
        for loud in (when < 3, when >= 57)
    )
    assert early < late - 0.05


@pytest.mark.parametrize(
    ("changes", "mention"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier must be a finite number > 0, got 0"),
        ({"clip": -1.0}, "clip must be a finite number > 0, got -1"),
        ({"sampling_prob": 1.5}, "sampling_prob must be in (0, 1], got 1.5"),
        ({"num_steps": None}, "schedules must be scalars or rows of num_steps"),
        ({"noise_multiplier": np.ones(7)}, "got shape (7,)"),
        ({"noise_multiplier": np.ones(10), "clip": np.ones(9)}, "shapes do not broadcast"),
        ({"num_steps": 2.5}, "num_steps"),
        ({"seeds": []}, "seeds must hold at least one"),
    ],
)
def test_bad_input_is_refused(changes, mention):
    with pytest.raises(ValueError) as caught:
        digits.train(**({"noise_multiplier": 1.0, "num_steps": 10} | changes))
    assert mention in str(caught.value)


@pytest.mark.slow
def test_stages_of_equal_noise_are_the_constant_schedule():
    path = Path(__file__).parents[2] / "examples" / "noise_schedule_digits.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    stages, found = example.certified((1.0, 1.0), steps_per_stage=30, tolerance=1e-2)
    alone = jaxgdp.calibrate(example.TARGET, sampling_prob=digits.RATE, num_steps=60, rtol=1e-2)
    assert stages[0] == stages[1] == pytest.approx(float(alone.value), rel=2e-2)
    assert found.achieved.upper <= example.TARGET.mu and alone.achieved.upper <= example.TARGET.mu
    accuracy = example.train(np.repeat(stages, 30), seeds=[0, 1])
    assert accuracy.shape == (2,) and np.all(accuracy > 0.5)
    assert (
        np.all(np.diff(example.learning_rates(10)) < 0)
        and example.learning_rates(10)[0] == example.PEAK
    )


@pytest.mark.nightly
def test_utility_on_the_digits(tmp_path):
    pytest.importorskip("matplotlib")
    (row,) = reproduce("kulynych2024", output=tmp_path, only=["figure-1-digits"], quick=True).rows
    assert row.verdict == "agrees" and "shape agrees on other data" in row.because
    assert (tmp_path / "figure-1-digits.png").read_bytes().startswith(b"\x89PNG")
    gains = np.genfromtxt(
        rows_of(tmp_path / "figure-1-digits-gain.csv"),
        delimiter=",",
        names=True,
        dtype=None,
        encoding="utf-8",
    )
    standard, direct = (gains[gains["calibration"] == kind] for kind in ("standard", "direct"))
    assert np.all(direct["noise_multiplier"] < standard["noise_multiplier"])
    assert np.all(direct["accuracy_mean"] > standard["accuracy_mean"])
    lines = np.genfromtxt(rows_of(tmp_path / "figure-1-digits.csv"), delimiter=",", names=True)
    assert np.all(lines["tpr_lower"] <= lines["tpr_upper"]) and np.all(
        lines["tpr_upper"] < lines["tpr_standard"]
    )
