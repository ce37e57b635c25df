"""Numbers read off tasks of several lattices together go back to the settings they belong to."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.run import passes

NAMES = "mu", "regret", "epsilon", "delta", "tpr"
# settings of many lattices (of 272 and of 1,088 vertices used, of one piece and of eight), in no
# order
SIGMA = np.array([0.5, 8.0, 1.1, 3.0, 0.7, 1.5, 0.6, 5.0, 0.9, 2.0, 0.55, 1.0])
RATE = np.array([0.9, 1e-4, 0.01, 1.0, 0.001, 0.3, 1.0, 0.02, 3e-4, 0.5, 0.05, 0.004])
USES = np.array(
    [2000.0, 400.0, 2000.0, 1000.0, 20000.0, 150.0, 400.0, 10000.0, 5000.0, 300.0, 1000.0, 700.0]
)


def asked(rows, executor="eager"):
    at = {"epsilon": 0.5 + 0.1 * np.arange(12.0)[rows], "delta": np.geomspace(1e-9, 1e-4, 12)[rows]}
    return jaxgdp.measure(
        jaxgdp.dpsgd(SIGMA[rows], RATE[rows], USES[rows]), NAMES, executor=executor, fpr=1e-4, **at
    )


@pytest.fixture(scope="module")
def alone():
    return [asked([i]) for i in range(12)]


NIGHTLY = [pytest.param(number, marks=pytest.mark.nightly) for number in (3000, 2**24)]


@pytest.mark.parametrize("together", [1, *NIGHTLY])
def test_every_setting_gets_its_own_numbers(monkeypatch, alone, together):
    calls, run_passes = [], passes.run_passes
    monkeypatch.setattr(passes, "_READ_TOGETHER", together)
    monkeypatch.setattr(
        jaxgdp.accounting.run.engine,
        "run_passes",
        lambda *mine: calls.append(len(mine[1])) or run_passes(*mine),
    )
    found = asked(np.arange(12))
    assert max(calls) > 2
    for name in NAMES:
        assert np.all(found.status[name] == 0)
        for i, single in enumerate(alone):
            mine, other = found.brackets[name], single.brackets[name]
            # (rows are summed in other orders)
            for side, own in ((mine.lower[i], other.lower[0]), (mine.upper[i], other.upper[0])):
                assert side == pytest.approx(
                    own, rel=1e-7, abs=1e-9 if name == "regret" else 1e-300
                ), (name, i)


# by day not the one setting whose whole curve takes longer than those of all others
@pytest.mark.parametrize(
    "rows", [slice(1, None, 2), pytest.param(slice(None), marks=pytest.mark.nightly)]
)
def test_whole_curves_stay_with_their_settings(alone, rows):
    found = jaxgdp.tradeoff(jaxgdp.dpsgd(SIGMA[rows], RATE[rows], USES[rows])).mu()
    for i, single in enumerate(alone[rows]):
        mu = single.brackets["mu"]
        assert found.lower[i] <= mu.upper[0] and mu.lower[0] <= found.upper[i]


def test_sides_of_a_setting_of_many_components_are_the_same_side_by_side(monkeypatch):
    sigma, rate = np.linspace(0.8, 2.0, 300), np.linspace(0.02, 0.005, 300)
    run = jaxgdp.compose(
        [(jaxgdp.SubsampledGaussian(s, p), 3) for s, p in zip(sigma, rate, strict=True)]
    )
    asked = {"executor": "eager", "delta": 1e-5, "nested": False}
    together = jaxgdp.measure(run, ("mu", "epsilon"), **asked)
    monkeypatch.setattr(passes, "_MANY_COMPONENTS", np.inf)
    one = jaxgdp.measure(run, ("mu", "epsilon"), **asked)
    assert together.mu == one.mu and together.epsilon == one.epsilon
