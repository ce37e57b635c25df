"""What the way in which a step is coded does to its guarantee."""

import numpy as np
import pytest
from scipy import stats

import jaxgdp
from jaxgdp.grids.compare_implementations import compare_implementations
from jaxgdp.mechanisms.noise_on_means import NoiseOnMean


def _epsilon_of_the_game(sigma, rate, number, batch, delta):
    """ε of the best test "above a threshold" of one step, all sizes of batches summed over."""
    sizes = np.arange(number)
    weights = stats.binom.pmf(sizes, number - 1, rate)[:, None]
    unit = sigma / batch

    def ratio(thresholds):
        above = lambda mean: np.sum(weights * stats.norm.sf((thresholds - mean) / unit), axis=0)
        without = above(np.where(sizes > 0, -1.0, 0.0)[:, None])
        drawn = above((1.0 - sizes[:, None]) / (1.0 + sizes[:, None]))
        tpr = (1.0 - rate) * without + rate * drawn
        return np.log(np.maximum(tpr - delta, 1e-300) / without)

    rough = -1.0 + np.linspace(-7.0, 29.0, 721) * unit
    best = rough[np.argmax(ratio(rough))]
    return float(np.max(ratio(best + np.linspace(-0.06, 0.06, 2001) * unit)))


@pytest.mark.parametrize(
    "setting",
    [
        (0.3, 0.5, 20),
        pytest.param((1.0, 0.1, 100), marks=pytest.mark.nightly),
        pytest.param((2.0, 1.0, 5), marks=pytest.mark.nightly),
        pytest.param((1.0, 0.01, 9), marks=pytest.mark.nightly),
    ],
)
def test_attack_on_means_reaches_no_more_than_the_game_itself(setting):
    delta = np.array([1e-9, 1e-5, 0.3, 0.6, 0.9])
    low = jaxgdp.epsilon(NoiseOnMean(*setting), delta=delta).lower
    sigma, rate, number = setting
    for own, at in zip(low, delta, strict=True):
        game = _epsilon_of_the_game(sigma, rate, number, rate * number, at)
        assert own <= max(game, 0.0) + 1e-7


@pytest.mark.parametrize(
    "setting", [(1.0, 0.3, 60), pytest.param((0.5, 0.1, 20), marks=pytest.mark.nightly)]
)
def test_attack_on_clipped_means_reaches_no_more_than_the_game_itself(setting):
    """Without the record −1, or 0 where nobody else is drawn; with it 1 where it is drawn."""
    sigma, rate, number = setting
    empty, thresholds = (1.0 - rate) ** (number - 1), np.linspace(-8.0, 12.0, 4001) * sigma
    above = lambda mean: stats.norm.sf((thresholds - mean) / sigma)
    without = (1.0 - empty) * above(-1.0) + empty * above(0.0)
    tpr = (1.0 - rate) * without + rate * above(1.0)
    delta = np.array([1e-9, 1e-5, 0.1])
    low = jaxgdp.epsilon(NoiseOnMean(*setting, True), delta=delta).lower
    with np.errstate(divide="ignore"):
        game = [np.max(np.log(np.maximum(tpr - at, 1e-300) / without)) for at in delta]
    assert np.all(low <= np.maximum(game, 0.0) + 1e-9)
    assert number < 60 or low[1] > 0.98 * game[1]


def test_one_record_alone_turns_no_mean():
    for clipped in (False, True):
        found = jaxgdp.measure(NoiseOnMean(1.0, 0.5, 1, clipped), ("epsilon", "mu", "advantage"))
        assert [found[name].lower for name in ("epsilon", "mu", "advantage")] == [0.0, 0.0, 0.0]
        assert (
            found.advantage.upper == 1.0 and np.isinf([found.mu.upper, found.epsilon.upper]).all()
        )


def test_means_over_the_drawn_size_are_refuted():
    """The attack of the lower side, simulated: it does what is said of it, and beats the claim."""
    sigma, rate, number, batch = 1.0, 0.1, 1000, 100
    low = jaxgdp.epsilon(NoiseOnMean(sigma, rate, number), delta=1e-5).lower
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
