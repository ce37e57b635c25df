"""An ε of hundreds of large steps, against sums of the law that their number leaves."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

import jaxgdp

# noise, sampling probability and steps: a step with the record is told from others by 6 deviations
# and more, so that which steps had it is known all but certainly
RUNS = [(0.0775, 3.2e-7, 820_000_000), (0.08, 2.5e-3, 400_000)]
DELTA = 1e-9


def log_delta(sigma: float, p: float, steps: int, epsilon: float) -> float:
    """log δ(ε) of removing where it is seen which steps had the record: the sum over their number
    of δ of N(J·v, J/σ²) beyond ε, v the mean of log p + (2o − 1)/(2σ²) there.
    """
    number = np.arange(1, int(steps * p + 40.0 * np.sqrt(steps * p)))
    others = (steps - number) * np.log1p(-p)
    mean = number * (np.log(p) + 0.5 / sigma**2) + others
    spread = np.sqrt(number) / sigma
    # δ = Φ((m − ε)/s) − e^{ε − m + s²/2}·Φ((m − ε)/s − s), with m of the loss under Q
    place = (mean - epsilon) / spread
    less = epsilon - mean + 0.5 * spread**2 + log_ndtr(place - spread)
    with np.errstate(invalid="ignore"):
        each = log_ndtr(place) + np.log1p(-np.exp(np.minimum(less - log_ndtr(place), -1e-300)))
    return float(np.logaddexp.reduce(stats.binom.logpmf(number, steps, p) + each))


# one by day in the order that takes less, nightly both in both
@pytest.mark.parametrize(
    "sigma, p, steps, adjacency",
    [
        (*RUNS[0], "remove"),
        pytest.param(*RUNS[1], "add_remove", marks=pytest.mark.nightly),
        pytest.param(*RUNS[0], "add_remove", marks=pytest.mark.nightly),
        pytest.param(*RUNS[1], "remove", marks=pytest.mark.nightly),
    ],
)
def test_many_large_steps_are_as_accurate_as_asked(sigma, p, steps, adjacency):
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = jaxgdp.measure(
        run, "epsilon", delta=DELTA, adjacency=adjacency, rtol=1e-3, executor="eager"
    )
    low, high = found.epsilon
    assert found.status["epsilon"] == 0 and high - low <= 1e-3 * high
    # (the law that is summed is off by less than 1e-4 of ε)
    assert log_delta(sigma, p, steps, low * (1.0 - 1e-4)) >= np.log(DELTA)
    assert log_delta(sigma, p, steps, high * (1.0 + 1e-4)) <= np.log(DELTA)
