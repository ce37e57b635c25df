"""The last model of noisy gradient descent on strongly convex losses."""

import mpmath
import numpy as np
import pytest

from jaxgdp.bridge import (
    convex_constrained_mu,
    strongly_convex_cyclic_batches_mu,
    strongly_convex_full_batch_mu,
)


def test_last_model_of_a_quadratic_loss():
    """x ← (1 − ηm)x + η·(shift + noise): mean and variance of the last x, step by step."""
    for eta, m, smooth, steps in ((0.1, 0.2, 1.0, 7), (1.8, 0.3, 1.0, 12), (0.5, 1.0, 1.0, 40)):
        with mpmath.workdps(60):
            eta_, m_, smooth_ = map(mpmath.mpf, (eta, m, smooth))
            c = max(abs(1 - eta_ * m_), abs(1 - eta_ * smooth_))
            mean = variance = mpmath.mpf(0)
            for _ in range(steps):
                mean, variance = c * mean + mpmath.mpf(0.3), c * c * variance + 1
            found = strongly_convex_full_batch_mu(
                0.3, steps, learning_rate=eta, strong_convexity=m, smoothness=smooth
            )
            truth = mean / mpmath.sqrt(variance)
            assert truth <= mpmath.mpf(float(found)) <= truth * (1 + mpmath.mpf("3e-12"))


def test_full_batches_are_never_below_the_closed_form():
    """60 digits of √((1 − c^t)/(1 + c^t)·(1 + c)/(1 − c)) with the doubles as they are, also where
    c is next to 0 or to 1, for whatever number of steps.
    """
    random = np.random.default_rng(11)
    number = 400
    smooth = 10.0 ** random.uniform(-6.0, 6.0, number)
    m = smooth * 10.0 ** random.uniform(-13.0, 0.0, number)
    m[::5] = smooth[::5]
    short = random.uniform(0.0, 2.0, number)
    near = 2.0 - 10.0 ** random.uniform(-9.0, 0.0, number)
    eta = np.where(random.random(number) < 0.3, near, short) / smooth
    eta[:20] = (1.0 + random.uniform(-4e-16, 4e-16, 20)) / m[:20]
    inside = (eta * smooth < 2.0) & (eta > 0.0)
    eta, m, smooth = eta[inside], m[inside], smooth[inside]
    steps = np.round(10.0 ** random.uniform(0.0, 12.0, len(eta)))
    found = strongly_convex_full_batch_mu(
        0.3, steps, learning_rate=eta, strong_convexity=m, smoothness=smooth
    )
    with mpmath.workdps(60):
        for rate, low, high, t, upper in zip(eta, m, smooth, steps, found, strict=True):
            rate_, low_, high_ = (mpmath.mpf(float(a)) for a in (rate, low, high))
            c = max(abs(1 - rate_ * low_), abs(1 - rate_ * high_))
            power = c ** mpmath.mpf(float(t))
            truth = mpmath.mpf(0.3) * mpmath.sqrt((1 - power) / (1 + power) * (1 + c) / (1 - c))
            room = mpmath.mpf("3e-12") + mpmath.mpf("2e-15") / (1 - c) * (
                rate * (low + high) >= 1.9
            )
            assert truth <= mpmath.mpf(float(upper)) <= truth * (1 + room)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (dict(learning_rate=3.0), "learning_rate must be below 2/smoothness"),
        (dict(strong_convexity=2.0), "strong_convexity must be at most smoothness"),
        (dict(smoothness=-1.0), "smoothness"),
    ],
)
def test_bad_input_is_refused_by_name(fields, words):
    usual = {"learning_rate": 0.1, "strong_convexity": 0.2, "smoothness": 1.0}
    with pytest.raises(ValueError, match=words):
        strongly_convex_full_batch_mu(0.1, 10, **(usual | fields))


def _steps_absorb(c, batches, epochs):
    """Σ λ² of a schedule that absorbs every shift, step by step: its own check that none is
    absorbed before it has come."""
    steps = batches * (epochs - 1)
    shifts = np.zeros(steps)
    shifts[::batches] = 1.0
    weights = c ** np.arange(steps - 1.0, -1.0, -1.0)
    absorbed = weights * ((weights @ shifts) / (weights @ weights)) if steps else weights
    distance = 0.0
    for shift, part in zip(shifts, absorbed, strict=True):
        distance = c * distance + shift - part
        assert distance >= -1e-9
    assert abs(distance) < 1e-9
    return absorbed @ absorbed + 1.0  # the last shift by its own step


@pytest.mark.parametrize(
    ("eta", "m", "smooth", "batches", "epochs"),
    [(0.1, 0.2, 1.0, 5, 10), (1.9, 0.5, 1.0, 3, 4), (0.5, 1.0, 1.0, 2, 7), (0.3, 1e-6, 1.0, 4, 30)],
)
def test_batches_in_turn_absorb_every_shift(eta, m, smooth, batches, epochs):
    c = max(abs(1 - eta * m), abs(1 - eta * smooth))
    given = dict(learning_rate=eta, strong_convexity=m, smoothness=smooth)
    found = strongly_convex_cyclic_batches_mu(0.3, epochs, batches, **given)
    np.testing.assert_allclose(found, 0.3 * _steps_absorb(c, batches, epochs) ** 0.5, rtol=1e-9)
    # quadratic losses show less, and one batch an epoch as much as is said of full batches
    mean = 0.3 * sum(c ** (batches * e) for e in range(epochs))
    shown = mean / sum(c ** (2.0 * k) for k in range(batches * epochs)) ** 0.5
    assert shown <= found
    one = strongly_convex_cyclic_batches_mu(0.3, epochs, 1, **given)
    assert one == strongly_convex_full_batch_mu(0.3, epochs, **given)
    assert strongly_convex_cyclic_batches_mu(0.3, 1, batches, **given) == pytest.approx(0.3)


@pytest.mark.parametrize("steps", [1, 3, 7, 200])
@pytest.mark.parametrize("diameter", [1e-3, 0.04, 0.5, 7.0])
def test_projected_steps_forget_all_but_the_diameter(steps, diameter):
    given = dict(learning_rate=0.2, smoothness=5.0, diameter=diameter, gradient_sensitivity=0.1)
    found = convex_constrained_mu(0.3, steps, **given)
    ratio = diameter / (0.2 * 0.1)
    least = min((ratio + tau) ** 2 / tau for tau in range(1, steps + 1))
    np.testing.assert_allclose(found, 0.3 * min(steps, least) ** 0.5, rtol=1e-11)
    assert found >= 0.3 * min(steps, least) ** 0.5
    published = (3.0 * 0.1 * diameter / 0.2 + 0.01 * np.ceil(ratio)) ** 0.5 * 3.0
    assert found <= 0.3 * steps**0.5 * (1 + 1e-11) and (steps < ratio or found <= published + 1e-9)
    with pytest.raises(ValueError, match="learning_rate must be at most 2/smoothness"):
        convex_constrained_mu(0.3, steps, **(given | {"learning_rate": 0.5}))
