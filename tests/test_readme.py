"""The examples of the README run, and say what it says they do."""

import re
from pathlib import Path

import numpy as np
import pytest

import jaxgdp

README = Path(jaxgdp.__file__).parents[1] / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="run without the README")


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def block(mark: str) -> str:
    (found,) = [each for each in blocks() if mark in each]
    return found


def run(mark: str, **names) -> dict:
    scope = {"jaxgdp": jaxgdp, "targets": jaxgdp.targets, "np": np, **names}
    exec(compile(block(mark), "README.md", "exec"), scope)
    return scope


def number(mark: str, pattern: str) -> float:
    """The number that stands in a block behind ``pattern``."""
    return float(re.search(pattern + r"([0-9.e+-]*[0-9])", block(mark)).group(1))


def test_every_block_is_python():
    assert len(blocks()) >= 8
    for source in blocks():
        compile(source, "README.md", "exec")


def test_sweep():
    pytest.importorskip("xarray")
    scope = run("grid.mu.sel(num_steps=1000)")
    grid = scope["grid"]
    rows = re.findall(r"\[+([0-9.]+) ([0-9.]+)\]", block("grid.mu.sel(num_steps=1000)"))
    said = np.array(rows, float)
    found = grid.mu.sel(num_steps=1000).values
    assert said.shape == found.shape
    # a sharper method moves the last digits: what is said is an upper side, and one of the accuracy promised
    assert np.all(said >= grid.mu_lower.sel(num_steps=1000).values) and np.all(np.abs(said / found - 1.0) <= 2e-4)
    assert np.all(grid.status.values == 0) and set(grid.data_vars) >= {"status_mu", "status_regret"}


def test_calibration():
    mark = "targets.FNR(fnr=0.7, fpr=0.1), sampling_prob"
    found = run(mark)["found"]
    # (answers are so fine: the default tolerance is 1e-3)
    assert float(found.value) == pytest.approx(number(mark, r"found\.value  # "), rel=1e-3)
    assert float(found.achieved.lower) == pytest.approx(number(mark, "lower="), rel=1e-3)
    assert float(found.achieved.upper) == pytest.approx(number(mark, "upper="), rel=1e-3)
    assert float(found.rejected) == pytest.approx(number(mark, r"rejected_achieved\.lower  # "), rel=1e-3)
    assert float(found.rejected_achieved.lower) < 0.7 <= float(found.achieved.lower)


def test_budget():
    """The plan of the training example, without the training."""
    source = block("plan_budget(")
    lines = [line for line in source.splitlines() if line.startswith(("sampler =", "plan =", "steps ="))]
    scope = {}
    exec("from jaxgdp.training import plan_budget, poisson_sampler\n" + "\n".join(lines), scope)
    said = int(re.search(r"# (\d+): certified", source).group(1))
    assert abs(scope["steps"] - said) <= 3
    assert float(scope["plan"].at(scope["steps"])["epsilon"].upper) <= 1.2


def test_calibration_of_a_black_box():
    run("my_accountant", my_accountant=lambda sigma, epsilon: jaxgdp.gdp.delta(epsilon, 1.0 / sigma))


def test_brackets():
    mark = "curve.answer("
    curve = run(mark)["curve"]
    text = block(mark)
    for line, found in (("curve.mu(", curve.mu(fpr_floor=1e-10)), ("curve.epsilon(", curve.epsilon(delta=1e-5))):
        lower, upper = re.search(re.escape(line) + r".*?lower=([0-9.]+), upper=([0-9.]+)", text).groups()
        # (the method may get sharper: what is said must hold, and to four digits)
        assert float(lower) == pytest.approx(float(found.lower), rel=2e-4)
        assert float(upper) == pytest.approx(float(found.upper), rel=2e-4)
    assert int(curve.status) == 0


def test_mechanisms_and_reports():
    run("print(jaxgdp.report(jaxgdp.deployments")
