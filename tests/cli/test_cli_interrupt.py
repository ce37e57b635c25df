"""Ctrl-C, as a real signal to a real process, is answered with a word and the exit code of an
interrupted program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")

import jaxgdp

ROOT = Path(jaxgdp.__file__).parent.parent
_SLOW = """
import time

def make(scale):
    print("ready", flush=True)
    time.sleep(600)
"""
# a command whose work goes on in a thread that no exception reaches, as a compilation does
_DEAF = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import jaxgdp.deployments

# that the pool has its thread: an interrupt before would leave nothing to wait for
known = threading.Event()

def deaf():
    known.wait()
    print("ready", flush=True)
    time.sleep(600)

def names():
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(deaf)
        try:
            known.set()
            return future.result()
        except KeyboardInterrupt:
            print("again", flush=True)
            raise

jaxgdp.deployments.names = names
from jaxgdp.cli import main
sys.exit(main(["deployments"]))
"""


# (a shell's background job is told to ignore Ctrl-C, and so are the processes it starts: what is
# interrupted first heeds it again, and then becomes the command; to do so between fork and exec
# would not be safe beside JAX's threads)
_HEED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def _start(command, folder):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAXGDP_NO_CACHE": "1",
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [sys.executable, "-c", _HEED, *command], cwd=folder, env=environment, **pipes
    )


def _interrupted(process, *cues):
    """Send Ctrl-C after each of the words that the process prints."""
    try:
        for cue in cues:
            assert process.stdout.readline().strip() == cue, process.stderr.read()
            process.send_signal(signal.SIGINT)
        process.wait(timeout=300)
        return process.returncode, process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_interrupted_command_says_so(tmp_path):
    (tmp_path / "slow.py").write_text(_SLOW, encoding="utf-8")
    command = ["-m", "jaxgdp", "calibrate", "--advantage", "0.1", "--black-box", "slow:make"]
    code, said = _interrupted(_start(command, tmp_path), "ready")
    assert code == 130 and said == "jaxgdp: error: interrupted\n", said


def test_second_interrupt_does_not_wait_for_other_threads(tmp_path):
    code, said = _interrupted(_start(["-c", _DEAF], tmp_path), "ready", "again")
    assert code == 130 and said == "jaxgdp: error: interrupted\n", said


def test_caller_keeps_its_own_handler():
    from jaxgdp.cli import main

    before = signal.getsignal(signal.SIGINT)
    assert main(["--version"]) == 0
    assert signal.getsignal(signal.SIGINT) is before
