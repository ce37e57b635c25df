"""Ctrl-C is answered with a word and the exit code of an interrupted program."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jaxgdp

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def python_interrupts():
    """Ctrl-C as Python handles it, even where the tests run in the background of a shell that has
    it ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_command_line_says_that_it_was_interrupted(monkeypatch, capsys, python_interrupts):
    pytest.importorskip("click")
    from jaxgdp.cli import main

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        return ()

    monkeypatch.setattr(jaxgdp.deployments, "names", interrupted)
    assert main(["deployments"]) == 130
    assert capsys.readouterr().err.strip() == "jaxgdp: error: interrupted"


_PRESSED = """
import runpy, signal, sys
import {module} as module
signal.signal(signal.SIGINT, signal.default_int_handler)
setattr(module, "{function}", lambda *_, **__: signal.raise_signal(signal.SIGINT))
sys.argv = ["{path}"]
runpy.run_path("{path}", run_name="__main__")
"""


@pytest.mark.parametrize(
    "example, module, function",
    [
        ("dpsgd_digits", "jaxgdp.training", "poisson_sampler"),
        ("noise_schedule_digits", "jaxgdp", "calibrate"),
    ],
)
def test_examples_say_that_they_were_interrupted(example, module, function):
    pytest.importorskip("sklearn")
    path = EXAMPLES / f"{example}.py"
    if not path.exists():
        pytest.skip("the examples are in the source tree only")
    code = _PRESSED.format(module=module, function=function, path=path)
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 130 and found.stderr.strip().splitlines()[-1] == "interrupted", (
        found.stderr
    )
