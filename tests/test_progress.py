"""Long work says what it does on a terminal, and nothing anywhere else."""

import io
import subprocess
import sys
import time

import pytest
from terminal import Terminal, on_a_terminal, until

import jaxgdp
from jaxgdp import targets
from jaxgdp.progress import telling
from jaxgdp.reproduce import reproduce
from jaxgdp.training import plan_budget


def test_says_what_it_does_and_how_far_it_is_and_leaves_nothing():
    terminal = Terminal()
    with telling("planning", about=8, after=0.0, stream=terminal) as count:
        assert until(lambda: "planning, 0 of about 8 evaluations" in terminal.getvalue())
        count(3)
        assert until(lambda: "planning, 3 of about 8 evaluations" in terminal.getvalue())
        count(9)  # more than was expected
        assert until(lambda: "planning, 12 of about 12 evaluations" in terminal.getvalue())
    said = terminal.getvalue()
    assert said.endswith(" \r") and "\n" not in said
    with telling("compiling, once", after=0.0, stream=terminal):
        assert until(lambda: "compiling, once, 0 s" in terminal.getvalue())


def test_says_nothing_where_nobody_looks_or_where_it_is_done_at_once():
    elsewhere, terminal = io.StringIO(), Terminal()
    with telling("planning", about=8, after=0.0, stream=elsewhere) as count:
        count(1)
    with telling("planning", about=8, after=1000.0, stream=terminal) as count:
        count(1)
    assert elsewhere.getvalue() == terminal.getvalue() == ""


def test_an_error_ends_the_line_and_a_closed_terminal_ends_nothing():
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt), telling("planning", after=0.0, stream=terminal):
        assert until(lambda: terminal.getvalue())
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith(" \r")
    with telling("planning", after=0.0, stream=terminal):
        terminal.close()
        terminal.isatty = lambda: True


def test_work_inside_other_work_has_no_line_of_its_own():
    terminal = Terminal()
    with telling("figure-3", about=4, noun="figures", after=0.0, stream=terminal):
        with telling("calibrating", about=0, after=0.0, stream=terminal) as told:
            told.expect(8)
            told(3)
            wanted = "figure-3, 0 of about 4 figures: calibrating, 3 of about 8 evaluations"
            assert until(lambda: wanted in terminal.getvalue())
            told.expect(2)
            told.say("asking again")
            assert until(
                lambda: "figures: asking again, 3 of about 5 evaluations" in terminal.getvalue()
            )
        length = len(terminal.getvalue())
        assert until(lambda: "figure-3, 0 of about 4 figures, " in terminal.getvalue()[length:])
    assert terminal.getvalue().endswith(" \r")


def test_compiling_is_told_while_it_lasts():
    from jax import monitoring

    terminal = Terminal()
    with telling("measuring", after=0.0, stream=terminal):
        assert until(lambda: "measuring, 0 s" in terminal.getvalue())
        # the same events as of a compilation, which lasts until it has been seen
        monitoring.record_event_duration_secs(
            "/jax/core/compile/jaxpr_to_mlir_module_duration", 0.1
        )
        assert until(lambda: "measuring; compiling, once, " in terminal.getvalue())
        monitoring.record_event_duration_secs("/jax/core/compile/backend_compile_duration", 0.1)
        length = len(terminal.getvalue())
        assert until(lambda: "measuring, " in terminal.getvalue()[length:])


def test_jax_tells_of_a_compilation_before_and_after():
    import jax
    from jax import monitoring

    seen = []
    heed = lambda event, *_, **__: seen.append(event)
    monitoring.register_event_duration_secs_listener(heed)
    try:
        jax.jit(lambda x: x * 3.0 + 0.125)(1.0)
    finally:
        monitoring.unregister_event_duration_listener(heed)
    events = [
        event.rsplit("/", 1)[1]
        for event in seen
        if "jaxpr_to_mlir" in event or "backend_compile" in event
    ]
    assert events == ["jaxpr_to_mlir_module_duration", "backend_compile_duration"]


def test_elsewhere_only_where_asked_for():
    elsewhere = io.StringIO()
    with telling("measuring", about=9, after=0.0, stream=elsewhere, anywhere=True) as told:
        assert until(lambda: elsewhere.getvalue() == "measuring, 0 of about 9 evaluations, 0 s\n")
        told(1)
    assert elsewhere.getvalue().count("\n") == 1  # not every change: a log is no terminal


def test_a_bar_where_rich_is_installed():
    pytest.importorskip("rich")
    terminal = Terminal()
    with telling(
        "measuring", about=9, noun="settings", after=0.0, stream=terminal, bar=True
    ) as told:
        told(4)
        assert until(lambda: "measuring" in terminal.getvalue() and "4/9" in terminal.getvalue())


def test_silence_holds_for_work_inside():
    terminal = Terminal()
    with telling("reproducing", after=0.0, stream=terminal, silent=True):
        with telling("calibrating", after=0.0, stream=terminal) as told:
            told(1)
            time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_plans_tell_their_caller_or_the_terminal(monkeypatch, capsys):
    finished = []
    plan = plan_budget(8.0, 1.0, 9, "mu", every=3, progress=finished.append)
    assert sum(finished) == 3
    plan.max_steps_within(mu=0.26, progress=finished.append)
    assert sum(finished) == 5 and capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("jaxgdp.progress._PATIENCE", 0.0)
    told = []

    def slow(run, *asked):
        told.append(until(lambda: "planning, 0 of about 2 evaluations" in terminal.getvalue()))
        return real(run, *asked)

    from jaxgdp.training.runs import Run

    real = Run.certified
    monkeypatch.setattr(Run, "certified", slow)
    plan_budget(8.0, 1.0, 6, "mu", every=3)
    assert told == [True]


def _optimize():
    jaxgdp.optimize(
        lambda s: (s.noise_multiplier**2).sum(),
        targets.Mu(0.5),
        noise_multiplier=[9.0],
        num_steps=[4],
        iterations=1,
    )


@pytest.mark.parametrize(
    "work, said",
    [
        (lambda folder: jaxgdp.report(jaxgdp.Gaussian(2.0)), "measuring, "),
        (lambda folder: jaxgdp.calibrate(targets.Advantage(0.1), 0.1, 9), "calibrating, "),
        (lambda folder: plan_budget(8.0, 1.0, 9, "mu", every=9), "planning, "),
        (
            lambda folder: reproduce("gomez2025", output=folder, only=["table-3"], quick=True),
            "table-3, 1 of 1",
        ),
        pytest.param(lambda folder: _optimize(), "optimising, ", marks=pytest.mark.slow),
    ],
    ids=["report", "calibrate", "plan_budget", "reproduce", "optimize"],
)
def test_long_work_of_every_kind_tells_what_it_does(work, said, tmp_path, monkeypatch):
    assert said in on_a_terminal(monkeypatch, lambda: work(tmp_path))


@pytest.mark.parametrize(
    "command, said",
    [
        ("report --noise-multiplier 2 --sampling-prob 1 --num-steps 4", ("loading, ",)),
        ("calibrate --advantage 0.1", ("loading, ", "solving for noise_multiplier")),
        (
            "reproduce gomez2025 --output . --only table-3 --quick",
            ("loading, ", "reproducing, 0 of about 1"),
        ),
    ],
    ids=["report", "calibrate", "reproduce"],
)
def test_commands_tell_what_they_do(command, said, tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from jaxgdp.cli import main

    monkeypatch.chdir(tmp_path)
    codes = []
    told = on_a_terminal(monkeypatch, lambda: codes.append(main(command.split())))
    assert codes == [0] and all(words in told for words in said), told


def test_the_first_word_of_a_command_does_not_wait_for_jax():
    """What takes long to import is imported while the line says so."""
    pytest.importorskip("typer")
    code = (
        "import sys, jaxgdp.cli; sys.exit(', '.join({'jax', 'numpy', 'scipy', 'rich'} &"
        " sys.modules.keys()) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
