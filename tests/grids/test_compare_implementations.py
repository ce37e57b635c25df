"""What the way in which a step is coded does to its guarantee."""

import numpy as np
import pytest
from scipy import stats

import jaxgdp
from jaxgdp.grids.compare_implementations import _mean_over_drawn, compare_implementations


def _epsilon_of_the_game(sigma, rate, number, batch, delta):
    """ε of the best test "above a threshold" of one step, all sizes of batches summed over."""
    sizes = np.arange(number)
    weights = stats.binom.pmf(sizes, number - 1, rate)[:, None]
    thresholds = np.linspace(-6.0, 30.0, 3601) * sigma / batch

    def above(mean):
        return np.sum(weights * stats.norm.sf((thresholds - 1.0 - mean) * batch / sigma), axis=0)

    without = above(np.where(sizes > 0, -1.0, 0.0)[:, None])
    drawn = above((1.0 - sizes[:, None]) / (1.0 + sizes[:, None]))
    tpr = (1.0 - rate) * without + rate * drawn
    return float(np.max(np.log(np.maximum(tpr - delta, 1e-300) / without)))


@pytest.mark.parametrize("delta", [1e-9, 0.3, 0.6, 0.9])
def test_attack_on_means_reaches_no_more_than_the_game_itself(delta):
    for sigma, rate, number, batch in ((1.0, 0.1, 100, 10), (0.3, 0.5, 20, 10), (2.0, 1.0, 5, 5)):
        low = _mean_over_drawn(sigma, rate, number, batch, 1, delta)
        assert low <= max(_epsilon_of_the_game(sigma, rate, number, batch, delta), 0.0) + 1e-9


def test_means_over_the_drawn_size_are_refuted():
    """The attack of the lower side, simulated: it does what is said of it, and beats the claim."""
    sigma, rate, number, batch = 1.0, 0.1, 1000, 100
    low = _mean_over_drawn(sigma, rate, number, batch, 1, 1e-5)
    claimed = jaxgdp.epsilon(jaxgdp.dpsgd(sigma, rate, 1), delta=1e-5)
    assert low > 1.5 * claimed.upper
    # (the game written out: sizes summed over, tests "above a threshold", by scipy alone)
    assert low <= _epsilon_of_the_game(sigma, rate, number, batch, 1e-5)
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
