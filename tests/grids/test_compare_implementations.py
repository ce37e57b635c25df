"""What the way in which a step is coded does to its guarantee."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.grids.compare_implementations import _mean_over_drawn, compare_implementations


def test_means_over_the_drawn_size_are_refuted():
    """The attack of the lower side, simulated: it does what is said of it, and beats the claim."""
    sigma, rate, number, batch = 1.0, 0.1, 1000, 100
    low = _mean_over_drawn(sigma, rate, number, batch, 1, 1e-5)
    claimed = jaxgdp.epsilon(jaxgdp.dpsgd(sigma, rate, 1), delta=1e-5)
    assert low > 1.5 * claimed.upper
    rng, trials, threshold = np.random.default_rng(5), 400_000, -1.0 + 3.4 / batch
    others = rng.binomial(number - 1, rate, trials)
    drawn = rng.random(trials) < rate
    noise = sigma / batch * rng.standard_normal(trials)
    size = np.maximum(others + drawn, 1)
    fpr = np.mean(-1.0 + noise > threshold)
    tpr = np.mean((-others + drawn) / size + noise > threshold)
    above, below = fpr + 5.0 * np.sqrt(fpr / trials), tpr - 5.0 * np.sqrt(tpr / trials)
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(sigma, rate, 1), adjacency="remove")
    assert below > 2.0 * curve.tpr(above).upper


@pytest.mark.nightly
def test_rows_of_one_training():
    rows = compare_implementations(1.0, 1000, 100)
    by_name = {row.name: row.epsilon for row in rows}
    first = by_name["divided by the expected size"]
    assert first.upper <= by_name["divided by the drawn size, a record zeroed"].upper * 1.001
    assert by_name["batches in a fixed order"].lower > first.upper
    assert all(row.epsilon.lower <= row.epsilon.upper for row in rows)
    assert np.isinf(rows[-1].epsilon.upper) and rows[-1].epsilon.lower > first.upper
    assert "shuffled batches" in str(rows)


def test_bad_input_by_name():
    with pytest.raises(ValueError, match="batch_size must be at most dataset_size"):
        compare_implementations(1.0, 10, 20)
