"""The command line's options come from registries and shared arguments: what is registered appears,
old names work, and wrong numbers are refused before JAX is loaded.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

pytest.importorskip("click")

import jaxgdp
from jaxgdp import arguments
from jaxgdp.cli import app, known_options, main
from jaxgdp.cli.command import COMMANDS
from jaxgdp.quantities import registry
from jaxgdp.report import formats
from jaxgdp.targets import REGISTRY, Mu


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Commands whose options are made again, in this test and after it."""
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")
    for name, command in COMMANDS.items():
        module = sys.modules[command.callback.__module__]
        # (a file's options are those of the command that is named like it)
        if module.__name__ == f"jaxgdp.cli.{name}" and hasattr(module, "_options"):
            monkeypatch.setattr(command, "make", module._options)
    yield


def options(name: str) -> set[str]:
    command = app.commands[name]
    context = command.make_context(name, [], resilient_parsing=True)
    return {flag for option in command.get_params(context) for flag in option.opts}


def test_registered_target_is_an_option(capsys):
    @dataclass(frozen=True)
    class TwiceMu(Mu):
        """Twice μ."""

        twice: Any = 0.0
        option: ClassVar[str] = "of_twice_mu"
        meaning: ClassVar[str] = "a target of this test"

    try:
        assert REGISTRY["of_twice_mu"] is TwiceMu
        assert {"--of-twice-mu", "--twice", "--mu"} <= options("calibrate")
        assert main(["calibrate", "--help"]) == 0
        assert "a target of this test, at most" in " ".join(capsys.readouterr().out.split())
    finally:
        del REGISTRY["of_twice_mu"]


def test_registered_quantity_has_its_argument_as_an_option():
    quantity = dataclasses.replace(
        registry.named("tpr"), name="own_tpr", argument="own_rate", default=0.25
    )
    registry.register(quantity)
    try:
        assert "--own-rate" in options("sweep")
        (own,) = (o for o in app.commands["sweep"].params if o.name == "own_rate")
        assert own.help == "Own_rate of own_tpr. [default: 0.25]"
    finally:
        registry.unregister("own_tpr")


def test_registered_format_writes_reports(tmp_path, capsys):
    new = formats.Format("tier", ".tier", lambda report: f"Tier {report.tier}")
    formats.register(new)
    try:
        path = tmp_path / "a.tier"
        argv = ["report", "--noise-multiplier", "2", "--num-steps", "1", "--output", str(path)]
        assert main(argv) == 0
        assert path.read_text(encoding="utf-8") == "Tier I\n"
        jaxgdp.report(jaxgdp.Gaussian(2.0)).save(tmp_path / "b.txt", "tier")
        assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "Tier I\n"
        with pytest.raises(ValueError, match="there is a format 'tier' already"):
            formats.register(dataclasses.replace(new, suffix=".x"))
    finally:
        del formats.FORMATS["tier"]


@pytest.mark.parametrize(
    "argv, old, new",
    [
        ("calibrate --mu 1 --tolerance=1e-2 --json", "--tolerance", "--rtol"),
        (
            "samplers --noise-multiplier 1 --dataset-size 100 --batch-size 50 --epochs 2"
            " --sampler deterministic",
            "--epochs",
            "--num-epochs",
        ),
        (
            "sweep --noise-multiplier 1 --num-steps 1 --quantity approximate_mu --d 1e-6"
            " --store {folder}/a.zarr --quiet",
            "--d",
            "--approximation",
        ),
    ],
)
def test_old_option_works_and_warns(capsys, tmp_path, argv, old, new):
    for module in ("xarray", "zarr", "dask"):
        pytest.importorskip(module)
    assert main(argv.format(folder=tmp_path).split()) == 0
    assert capsys.readouterr().err == f"jaxgdp: warning: {old} is deprecated: write {new}\n"
    assert old not in options(argv.split()[0])


def test_papers_are_those_of_the_package(capsys):
    assert main(["reproduce", "--help"]) == 0
    help = " ".join(capsys.readouterr().out.split())
    assert f"PAPER is one of {', '.join(jaxgdp.reproduce.PAPERS)}." in help


@pytest.mark.parametrize(
    "argv, mention",
    [
        ("report --noise-multiplier 1 --num-steps 1 --sampling-prob 512", "sampling_prob must be"),
        ("report --noise-multiplier 1 --num-steps 1 --fpr 2", "fpr must be in (0, 1), got 2"),
        ("landscape --num-steps 1.5", "num_steps must be a whole number >= 1, got 1.5"),
        ("bridge --epsilon-delta 1,1e-5 --rtol 2", "rtol must be in [1e-8, 1), got 2"),
        ("report --noise 1", "No such option"),
        ("calibrate --epsilom 3", "No such option '--epsilom'"),
        ("sweep --store=x --nois 3", "No such option '--nois'"),
        ("samplers --batch 3", "Did you mean"),
        ("sweep --store x --num-steps 3 --noise-multiplier=0:2:3", "noise_multiplier must be a"),
        ("samplers --dataset-size 9 --batch-size 2 --noise-multiplier -1", "got -1"),
        ("calibrate --mu 1 --num-steps 3 --sampling-prob 512", "sampling_prob must be in (0, 1]"),
        ("explore --live --output explore.html", "give one of --output and --live"),
    ],
)
def test_wrong_option_is_refused_before_jax_is_loaded(argv, mention):
    code = (
        "import sys\nfrom jaxgdp.cli import main\ncode = main(sys.argv[1:])\n"
        "assert 'jax' not in sys.modules\nsys.exit(code)"
    )
    command = [sys.executable, "-c", code, *argv.split()]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2 and mention in found.stderr, found.stderr


def test_stored_names_of_options_are_those_of_the_registries():
    stored = json.loads(known_options.PATH.read_text(encoding="utf-8"))
    assert stored == known_options.of_registries(app.commands), known_options.__doc__


def test_option_registered_after_import_is_no_unknown_one():
    known_options.refuse_unknown("calibrate", ["--of-a-later-target=1"], None)


def test_executor_help_lists_all():
    from jaxgdp.accounting.run.executors import BY_NAME

    assert all(name in arguments.ARGUMENTS["executor"].meaning for name in BY_NAME)


def test_every_option_has_a_help_and_every_command_an_example():
    for name, command in app.commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        for option in command.get_params(context):
            assert option.param_type_name == "argument" or option.help, option
        assert all(example.startswith("jaxgdp ") for example in command.examples)
