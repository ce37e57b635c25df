"""A new quantity is one new file: the example of the authors' guide, taken through everything that
asks for quantities.

The file is made of the guide's own lines, so that guide and test say the same. The odds gain of a
Gaussian mechanism is e^ε(δ) in closed form.
"""

import dataclasses
import doctest
import importlib
import json
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.quantities import __path__ as folders
from jaxgdp.quantities import registry, table
from jaxgdp.training import plan_budget

ROOT = Path(jaxgdp.__file__).parents[1]
DELTA = 1e-6


def lines_of_the_guide() -> str:
    """Python source of the guide's section on quantities, up to the record."""
    guide = ROOT / "docs" / "guides" / "authors.md"
    if not guide.exists():
        pytest.skip("run without the documentation")
    section = guide.read_text(encoding="utf-8").split("\n## A quantity\n")[1].split("\n## ")[0]
    lines = []
    for example in doctest.DocTestParser().get_examples(section.replace("\n```", "\n\n")):
        lines.append(example.source)
        if example.source.startswith("QUANTITY = "):
            return '"""The odds gain."""\n\n' + "\n".join(lines)
    raise AssertionError("the guide makes no QUANTITY")


@pytest.fixture
def odds_gain(tmp_path):
    """The guide's quantity, as one new file of the folder of quantities."""
    (tmp_path / "odds_gain.py").write_text(lines_of_the_guide(), encoding="utf-8")
    folders.append(str(tmp_path))
    registry.discover()
    yield registry.named("odds_gain")
    folders.remove(str(tmp_path))
    registry.unregister("odds_gain")
    del sys.modules["jaxgdp.quantities.odds_gain"]


def exact(mu, delta=DELTA):
    """e^ε(δ) of the Gaussian mechanism, from δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    with mpmath.workdps(40):
        mu, delta = mpmath.mpf(mu), mpmath.mpf(delta)

        def excess(epsilon):
            near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far) - delta

        guess = float(jaxgdp.gdp.epsilon(delta=float(delta), mu=float(mu)))
        return float(mpmath.exp(mpmath.findroot(excess, guess)))


def holds(bracket, value, rtol=2e-2):
    return bool(
        bracket.lower <= value * (1 + 1e-12)
        and value * (1 - 1e-12) <= bracket.upper
        and bracket.upper - bracket.lower <= rtol * value
    )


def test_numbers_and_curves(odds_gain):
    mechanism = jaxgdp.Gaussian([1.0, 2.0])
    found = jaxgdp.measure(mechanism, ("odds_gain", "mu"), delta=DELTA)
    for i, mu in enumerate((1.0, 0.5)):
        lower, upper = found.brackets["odds_gain"]
        assert holds(jaxgdp.Bracket(lower[i], upper[i]), exact(mu))
    assert found.at["odds_gain"] == DELTA and found.status["odds_gain"].tolist() == [0, 0]
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0))
    for bracket in (curve.quantity("odds_gain", DELTA), curve.odds_gain(DELTA)):
        assert holds(bracket, exact(1.0))
    assert holds(curve.odds_gain(), exact(1.0, 1e-5))


def test_sweeps(odds_gain):
    pytest.importorskip("xarray")
    grid = jaxgdp.sweep(2.0, 1.0, [1, 4], quantities=("odds_gain",), delta=DELTA)
    for t, mu in ((0, 0.5), (1, 1.0)):
        lower, upper = grid.odds_gain_lower.values.flat[t], grid.odds_gain_upper.values.flat[t]
        assert holds(jaxgdp.Bracket(lower, upper), exact(mu))
        assert grid.odds_gain.values.flat[t] == upper


def test_targets(odds_gain):
    target = jaxgdp.targets.OfQuantity("odds_gain", exact(1.0), at=DELTA)
    assert target.safe == "upper" and float(target.parameters()["delta"]) == DELTA
    # (a quantity without a closed form is searched for, whatever the mechanism)
    for mechanism in (jaxgdp.Gaussian, jaxgdp.Gaussian(1.0)):
        found = jaxgdp.calibrate(target, mechanism=mechanism)
        assert float(found.value) == pytest.approx(1.0, rel=5e-3)
        assert holds(found.achieved, exact(1.0 / float(found.value)))
    found = jaxgdp.calibrate(target, sampling_prob=1.0, num_steps=4)
    assert float(found.value) == pytest.approx(2.0, rel=5e-3)
    with pytest.raises(ValueError, match="value must be above 1, where odds_gain is"):
        jaxgdp.targets.OfQuantity("odds_gain", 1.0, at=DELTA)


def test_plans_ask_at_the_delta_that_is_given(odds_gain):
    plan = plan_budget(2.0, 1.0, 4, "odds_gain", every=4, delta=1e-8)
    value = exact(1.0, 1e-8)
    assert value == pytest.approx(322.50, abs=5e-3)
    assert holds(plan.at(4)["odds_gain"], value)
    nothing = plan.at(0)["odds_gain"]
    assert (float(nothing.lower), float(nothing.upper)) == (1.0, 1.0)
    for beyond in (5, -1):
        assert plan.at(beyond)["odds_gain"].upper == np.inf
    assert plan.max_steps_within(odds_gain=1.01 * value) == 4
    assert plan.max_steps_within(odds_gain=0.9 * value) < 4
    target = jaxgdp.targets.OfQuantity("odds_gain", 1.01 * exact(1.0), at=DELTA)
    assert plan.max_steps_within(target) == 4


def test_plans_pay_for_an_overflow_as_the_quantity_says(odds_gain):
    overflow, delta = 1e-8, 2e-8
    plan = plan_budget(2.0, 1.0, 4, "odds_gain", every=4, delta=delta, overflow=overflow)
    bracket = plan.at(4)["odds_gain"]
    # all that is left of δ is (δ − d)/(1 − d)
    left = (delta - overflow) / (1.0 - overflow)
    assert bracket.lower <= exact(1.0, delta) and bracket.upper >= exact(1.0, left) * (1 - 1e-9)
    assert bracket.upper <= 1.01 * exact(1.0, left)
    with pytest.raises(ValueError, match="delta must be above the overflow 1e-08, got 1e-09"):
        plan_budget(2.0, 1.0, 4, "odds_gain", delta=1e-9, overflow=overflow)


def test_plans_refuse_an_overflow_that_the_quantity_does_not_know(odds_gain):
    registry.unregister("odds_gain")
    registry.register(dataclasses.replace(odds_gain, overflow=None))
    assert plan_budget(2.0, 1.0, 1, "odds_gain", delta=1e-8).at(1)["odds_gain"].upper < 322.5
    with pytest.raises(ValueError, match="overflow must be 0 for 'odds_gain', got 1e-08"):
        plan_budget(2.0, 1.0, 4, "odds_gain", delta=1e-6, overflow=1e-8)


def test_accounts(odds_gain):
    from jaxgdp.training import accountant

    account = accountant.step(accountant.init([(2.0, 1.0)]), 0, count=4)
    assert holds(account.spent("odds_gain", delta=1e-8)["odds_gain"], exact(1.0, 1e-8))
    nothing = accountant.init([(2.0, 1.0)]).spent("odds_gain")["odds_gain"]
    assert (float(nothing.lower), float(nothing.upper)) == (1.0, 1.0)


def test_derivatives_are_refused_by_name(odds_gain):
    import jax

    refusal = "no derivatives of 'odds_gain'"
    with jax.enable_x64(True):
        with pytest.raises(NotImplementedError, match=refusal):
            jaxgdp.differentiable.odds_gain(jaxgdp.Gaussian(1.0), DELTA)
        with pytest.raises(NotImplementedError, match=refusal):
            jaxgdp.differentiable.quantity("odds_gain", jaxgdp.Gaussian(1.0), DELTA)
        with pytest.raises(NotImplementedError, match=refusal):
            jaxgdp.differentiable.noise_multiplier("odds_gain", 2.0, at=DELTA)
    target = jaxgdp.targets.OfQuantity("odds_gain", 2.0, at=DELTA)
    with pytest.raises(NotImplementedError, match=refusal):
        jaxgdp.optimize(lambda s: s.clip.sum(), target, noise_multiplier=[1.0, 2.0])


def test_reports_the_command_line_and_the_reference(odds_gain, capsys):
    pytest.importorskip("click")
    from jaxgdp.cli.app import main

    report = jaxgdp.report(jaxgdp.Gaussian(1.0))
    ((name, delta, bracket),) = report.others
    assert (name, delta) == ("odds_gain", 1e-5) and holds(bracket, exact(1.0, 1e-5))
    assert "odds_gain at delta = 1e-05" in str(report)
    assert main(["report", "--noise-multiplier", "1", "--num-steps", "1"]) == 0
    assert "odds_gain at delta = 1e-05" in capsys.readouterr().out
    assert main(["quantities"]) == 0
    assert "odds_gain" in capsys.readouterr().out
    assert "| `odds_gain` | G | delta = 1e-05 |" in table.markdown()
    assert "## `odds_gain`" in table.sections()


def test_attacks(odds_gain, monkeypatch):
    pytest.importorskip("mpmath")
    from attack import __main__ as attack
    from attack import setting_of
    from attack.check import failures
    from attack.curve import Curve
    from attack.questions import question_of

    # asked without an exact answer at first, and against one then
    assert "odds_gain" in setting_of(1, 0, "discrete").quantities
    assert attack.main(["--number", "1", "--seed", "1", "--only", "discrete"]) == 0
    monkeypatch.setattr(
        Curve, "odds_gain", lambda self, delta: mpmath.exp(self.epsilon(delta)), raising=False
    )
    for index in range(3):
        assert failures(setting_of(1, index, "discrete")) == []
    monkeypatch.setattr(Curve, "odds_gain", lambda self, delta: mpmath.mpf(0.5))
    assert any(line.startswith("odds_gain at delta") for line in failures(setting_of(1, 0)))
    asked = [question_of(1, i, number=10) for i in range(2)]
    assert all("odds_gain" in question.quantities for question in asked)


def test_quantity_may_bring_an_argument_of_its_own(odds_gain):
    """An argument that no other quantity has is asked for by its name, everywhere."""
    from jaxgdp.numerics.validation import open_unit

    registry.unregister("odds_gain")
    registry.register(dataclasses.replace(odds_gain, argument="failure", check=open_unit))
    found = jaxgdp.measure(jaxgdp.Gaussian(1.0), "odds_gain", failure=1e-8).brackets["odds_gain"]
    assert holds(found, exact(1.0, 1e-8))
    plan = plan_budget(2.0, 1.0, 4, "odds_gain", every=4, failure=1e-8)
    assert holds(plan.at(4)["odds_gain"], exact(1.0, 1e-8))
    with pytest.raises(ValueError, match="failure"):
        plan_budget(2.0, 1.0, 4, "odds_gain", failure=1.5)
    with pytest.raises(TypeError, match="plan_budget.* unexpected keyword argument 'chance'"):
        plan_budget(2.0, 1.0, 4, "odds_gain", chance=0.5)


def test_module_is_found_by_its_file_alone(odds_gain):
    module = importlib.import_module("jaxgdp.quantities.odds_gain")
    assert module.QUANTITY is odds_gain and json.dumps(list(registry.REGISTRY)).count("odds") == 1
