"""More noise, fewer steps or a smaller sampling rate never cost privacy: the upper side follows."""

import warnings

import numpy as np
import pytest

import jaxgdp
from jaxgdp.quantities.registry import REGISTRY

RTOL = 1e-3
_RANGES = {
    "epsilon": (0.1, 100.0),
    "delta": (1e-15, 1e-2),
    "fpr": (1e-12, 0.4),
    "approximation": (1e-15, 1e-2),
    "prior": (0.01, 0.99),
}


def _pair(seed):
    """A run, one of more privacy, a quantity and what it is asked at, an adjacency."""
    generator = np.random.default_rng([36, seed])
    log_uniform = lambda low, high: float(np.exp(generator.uniform(np.log(low), np.log(high))))
    sigma, p = log_uniform(0.05, 100.0), log_uniform(1e-9, 1.0)
    p = 1.0 if generator.random() < 0.1 else p
    steps, factor = round(log_uniform(1.0, 1e9)), 1.0 + log_uniform(1e-4, 1.0)
    less = [
        (sigma * factor, p, steps),
        (sigma, p / factor, steps),
        (sigma, p, max(int(steps / factor), 1)),
    ]
    name = str(generator.choice(sorted(REGISTRY)))
    argument = REGISTRY[name].own_argument
    given = {argument: log_uniform(*_RANGES[argument])} if argument in _RANGES else {}
    adjacency = str(generator.choice(["add_remove", "add", "remove"]))
    return (sigma, p, steps), less[generator.integers(3)], name, given, adjacency


def breaks(seed):
    """What a pair breaks the order by, over the worse one's safe side; its words; and whether both
    brackets are as narrow as asked."""
    worse, better, name, given, adjacency = _pair(seed)
    if not REGISTRY[name].monotone and name == "regret":
        return 0.0, "", True
    found = [
        jaxgdp.measure(
            jaxgdp.dpsgd(*run), name, rtol=RTOL, adjacency=adjacency, executor="eager", **given
        )
        for run in (worse, better)
    ]
    high, low = (f[name] for f in found)
    more, less = (high.upper, low.upper) if REGISTRY[name].grows else (low.lower, high.lower)
    met = all(int(f.status[name]) == 0 for f in found)
    excess = 0.0 if less <= more else (float(less) - float(more)) / max(float(more), 1e-300)
    return excess, f"{name} {given} {adjacency}: {worse} → {better}: {high} → {low}", met


@pytest.mark.nightly
@pytest.mark.parametrize("hundred", range(10))
def test_thousand_pairs_are_monotone(hundred):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for seed in range(100 * hundred, 100 * hundred + 100):
            excess, words, met = breaks(seed)
            assert excess <= RTOL or not met, words
