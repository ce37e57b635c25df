"""The examples of the README run, and give what it says they do; its table is what the stored
measurements give.
"""

import doctest
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxgdp

ROOT = Path(jaxgdp.__file__).parents[1]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="run without the README")


def text() -> str:
    return README.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text(), re.S)


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [4, pytest.param(30, marks=pytest.mark.nightly)])
def test_every_example_gives_what_is_printed(iterations):
    """Nightly as they are; by day with a shorter search for a schedule."""
    pytest.importorskip("xarray")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    printed = "\n\n".join(blocks("pycon"))
    assert printed.count("iterations=30") == 1
    examples = doctest.DocTestParser().get_doctest(
        printed.replace("iterations=30", f"iterations={iterations}"),
        {},
        "README.md",
        "README.md",
        0,
    )
    assert sum(bool(example.want) for example in examples.examples) >= 12
    assert text().count(">>> ") == len(examples.examples)
    told = []
    runner.run(examples, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_training_stays_within_the_budget_that_is_printed():
    """The training example, with a model and data in place of the reader's."""
    import jax.numpy as jnp

    (source,) = blocks("python")
    steps = int(re.search(r"# (\d+): certified", source).group(1))
    scope = {
        "loss": lambda params, image, label: jnp.sum((image @ params["w"] - label) ** 2),
        "images": jnp.ones((60_000, 2), jnp.float32),
        "labels": jnp.ones(60_000, jnp.float32),
    }
    exec(compile(source, "README.md", "exec"), scope)
    assert scope["steps"] == steps
    plan = scope["plan"]
    assert plan.at(steps)["epsilon"].upper <= 1.2 < plan.at(steps + 1)["epsilon"].upper
    params = {"w": jnp.zeros(2)}
    params, state, mu = scope["step"](
        params, scope["optimiser"].init(params), scope["jax"].random.key(1)
    )
    assert int(state.step) == 1 and 0.0 < float(mu) <= 1.005 * plan.at(1)["mu"].upper
    assert np.all(np.isfinite(params["w"])) and np.any(params["w"] != 0.0)


def test_numbers_between_the_examples():
    curve = jaxgdp.tradeoff(
        jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000)
    )
    limit, mu = map(
        float, re.search(r"\(([0-9.]+) for the run above, against ([0-9.]+)\)", text()).groups()
    )
    assert 0.0 <= limit - float(curve.tail_mu) < 1e-3 and 0.0 <= mu - float(curve.mu().upper) < 1e-4


def test_links_lead_somewhere_and_there_are_three_figures():
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text())
    assert len(figures) == 3
    for target in re.findall(r"\]\(([^)#]+)\)", text()):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_tables_are_those_of_the_stored_measurements(monkeypatch):
    folder = ROOT / "benchmarks"
    if not (folder / "results").exists():
        pytest.skip("run without the benchmarks")
    monkeypatch.syspath_prepend(str(folder))
    ours = {
        "update_readme",
        "accuracy",
        "landscape_speed",
        "landscape_table",
        "composition_speed",
        "calibration_speed",
        "first_answer",
        "group_privacy_speed",
        "device",
        "training_speed",
        "scale_speed",
    }
    spec = importlib.util.spec_from_file_location("update_readme", folder / "update_readme.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        for path, made in (
            (README, module.summary()),
            (ROOT / "docs" / "measurements.md", module.everything()),
        ):
            stored = path.read_text(encoding="utf-8")
            assert module.between_marks(stored, made) == stored, (
                f"{path.name}: run benchmarks/update_readme.py"
            )
    finally:
        for name in ours & set(sys.modules):
            del sys.modules[name]


def test_commands_that_run_the_tests_install_the_same():
    """What runs for every change is what `make test` runs, with the same extras."""
    makefile, script = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", ".ci/run")
    )
    ready = makefile.split("$(VENV)/.ready:")[1].split("touch")[0]
    (extras,), (others,) = (re.findall(r'"\.\[([a-z,]+)\]"', part) for part in (ready, script))
    assert extras == others and "test" in extras.split(",")
    (command,) = re.findall(r"^test:.*\n\t\$\(BIN\)/python (.*)$", makefile, re.M)
    assert command in script
