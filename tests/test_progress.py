"""Long work shows its progress on a terminal, and nothing anywhere else."""

import io
import subprocess
import sys
import time
import types

import pytest
from terminal import Terminal, on_a_terminal, until

import jaxgdp
from jaxgdp import progress, targets
from jaxgdp.progress import Progress, show_progress
from jaxgdp.reproduce import reproduce
from jaxgdp.training import plan_budget


@pytest.fixture
def terminal(monkeypatch):
    """A terminal for stderr, without rich, on which work is shown at once."""
    found = Terminal()
    # (pytest puts a stderr of its own in place between a fixture and its test)
    own = types.SimpleNamespace(stderr=found, modules=sys.modules)
    monkeypatch.setattr(progress, "sys", own)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_rich", lambda: False)
    return found


def test_progress_says_what_it_does_and_how_far_it_is_and_leaves_nothing(terminal):
    with show_progress("planning", 8) as count:
        assert until(lambda: "planning, 0 of about 8 evaluations" in terminal.getvalue())
        count(3)
        assert until(lambda: "planning, 3 of about 8 evaluations" in terminal.getvalue())
        count(9)  # more than was expected
        assert until(lambda: "planning, 12 of about 12 evaluations" in terminal.getvalue())
    said = terminal.getvalue()
    assert said.endswith(" \r") and "\n" not in said
    with show_progress("compiling, once"):
        assert until(lambda: "compiling, once, 0 s" in terminal.getvalue())


def test_progress_says_nothing_without_a_terminal_or_where_work_is_done_at_once(
    terminal, monkeypatch
):
    monkeypatch.setattr(progress, "_PATIENCE", 1000.0)
    with show_progress("planning", 8) as count:
        count(1)
    elsewhere = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", elsewhere)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with show_progress("planning", 8) as count:
        count(1)
    assert elsewhere.getvalue() == terminal.getvalue() == ""


def test_progress_ends_with_an_error_and_a_closed_terminal_ends_nothing(terminal):
    with pytest.raises(KeyboardInterrupt), show_progress("planning"):
        assert until(lambda: terminal.getvalue())
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith(" \r")
    with show_progress("planning"):
        terminal.close()
        terminal.isatty = lambda: True


def test_progress_inside_other_work_has_no_line_of_its_own(terminal):
    with show_progress("figure-3", 4, noun="figures"):
        with show_progress("calibrating", 0) as count:
            count.expect(8)
            count(3)
            wanted = "figure-3, 0 of about 4 figures: calibrating, 3 of about 8 evaluations"
            assert until(lambda: wanted in terminal.getvalue())
            count.expect(2)
            count.describe("asking again")
            assert until(
                lambda: "figures: asking again, 3 of about 5 evaluations" in terminal.getvalue()
            )
        length = len(terminal.getvalue())
        assert until(lambda: "figure-3, 0 of about 4 figures, " in terminal.getvalue()[length:])
    assert terminal.getvalue().endswith(" \r")


def test_progress_names_a_compilation_while_it_lasts(terminal):
    from jax import monitoring

    with show_progress("measuring"):
        assert until(lambda: "measuring, 0 s" in terminal.getvalue())
        # the same events as of a compilation, which lasts until it has been seen
        monitoring.record_event_duration_secs(
            "/jax/core/compile/jaxpr_to_mlir_module_duration", 0.1
        )
        assert until(lambda: "measuring; compiling, once, " in terminal.getvalue())
        monitoring.record_event_duration_secs("/jax/core/compile/backend_compile_duration", 0.1)
        length = len(terminal.getvalue())
        assert until(lambda: "measuring, " in terminal.getvalue()[length:])


def test_progress_relies_on_events_of_jax_before_and_after_a_compilation():
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


def test_progress_elsewhere_only_on_demand(terminal, monkeypatch):
    elsewhere = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", elsewhere)
    with show_progress("measuring", 9, True) as count:
        assert until(lambda: elsewhere.getvalue() == "measuring, 0 of about 9 evaluations, 0 s\n")
        count(1)
    assert elsewhere.getvalue().count("\n") == 1  # not every change: a log is no terminal


def test_progress_is_a_bar_where_rich_is_installed(terminal, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(progress, "_rich", lambda: True)
    with show_progress("measuring", 9, noun="settings") as count:
        count(4)
        assert until(lambda: "4 of about 9" in terminal.getvalue() and "━" in terminal.getvalue())


def test_progress_that_is_off_is_off_for_work_inside(terminal):
    with show_progress("reproducing", progress=False):
        with show_progress("calibrating") as count:
            count(1)
            time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_progress_of_plans_goes_to_their_caller_or_the_terminal(terminal, monkeypatch):
    finished = []
    plan = plan_budget(8.0, 1.0, 9, "mu", every=3, progress=finished.append)
    assert sum(finished) == 3
    plan.max_steps_within(mu=0.26, progress=finished.append)
    assert sum(finished) == 5 and terminal.getvalue() == ""
    shown = []

    def slow(run, *asked):
        shown.append(until(lambda: "planning, 0 of about 2 evaluations" in terminal.getvalue()))
        return real(run, *asked)

    from jaxgdp.training.runs import Run

    real = Run.certified
    monkeypatch.setattr(Run, "certified", slow)
    plan_budget(8.0, 1.0, 6, "mu", every=3)
    assert shown == [True]


def _optimize(**more):
    return jaxgdp.optimize(
        lambda s: (s.noise_multiplier**2).sum(),
        targets.Mu(0.5),
        noise_multiplier=[9.0],
        num_steps=[4],
        iterations=1,
        **more,
    )


@pytest.mark.parametrize(
    "work, said",
    [
        (lambda folder: jaxgdp.report(jaxgdp.Gaussian(2.0)), "measuring, "),
        (
            lambda folder: jaxgdp.calibrate(targets.Advantage(0.1), sampling_prob=0.1, num_steps=9),
            "calibrating, ",
        ),
        (lambda folder: plan_budget(8.0, 1.0, 9, "mu", every=9), "planning, "),
        (
            lambda folder: reproduce("gomez2025", output=folder, only=["table-3"], quick=True),
            "table-3, 1 of 1",
        ),
        pytest.param(lambda folder: _optimize(), "optimising, ", marks=pytest.mark.slow),
    ],
    ids=["report", "calibrate", "plan_budget", "reproduce", "optimize"],
)
def test_progress_of_long_work_of_every_kind(work, said, tmp_path, monkeypatch):
    assert said in on_a_terminal(monkeypatch, lambda: work(tmp_path))


@pytest.mark.parametrize(
    "work, said",
    [
        (lambda: jaxgdp.measure(jaxgdp.Gaussian([2.0, 3.0]), progress=True), "measuring, "),
        (lambda: jaxgdp.tradeoff(jaxgdp.Gaussian(2.0), progress=True), "measuring, "),
        (
            lambda: jaxgdp.calibrate(
                targets.Mu(1.0), sampling_prob=0.1, num_steps=9, progress=True
            ),
            "calibrating, ",
        ),
        pytest.param(lambda: _optimize(progress=True), "optimising, ", marks=pytest.mark.slow),
    ],
    ids=["measure", "tradeoff", "calibrate", "optimize"],
)
def test_progress_true_shows_it_elsewhere_too(work, said, monkeypatch):
    assert said in on_a_terminal(monkeypatch, work)


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
def test_progress_of_commands(command, said, tmp_path, monkeypatch):
    pytest.importorskip("click")
    from jaxgdp.cli import main

    monkeypatch.chdir(tmp_path)
    codes = []
    told = on_a_terminal(monkeypatch, lambda: codes.append(main(command.split())))
    assert codes == [0] and all(words in told for words in said), told


def test_progress_of_a_command_does_not_wait_for_jax():
    """What takes long to import is imported while the line says so."""
    pytest.importorskip("click")
    code = (
        "import sys, jaxgdp.cli; sys.exit(', '.join({'jax', 'numpy', 'scipy', 'rich'} &"
        " sys.modules.keys()) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_progress_tells_speed_and_time_left_before_anything_is_finished():
    work = Progress("sweeping", 27 * 10**9, "settings", 150.0)
    assert str(work).endswith(", 150 a second, 6 years left")
    work(300)
    work.begin -= 180.0  # three minutes in which 300 were finished, and 20 s at 150 a second
    assert ", 16.5 a second, " in str(work)
