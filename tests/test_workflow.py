"""The workflow of the forge runs the scripts of this repository, for the Pythons that the package
supports.
"""

import os
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
FILE = ROOT / ".github" / "workflows" / "checks.yml"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="run without the workflow")


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_jobs_run_the_scripts(workflow):
    jobs = workflow["jobs"]
    assert commands(jobs["run"]) == [".ci/run"]
    assert commands(jobs["matrix"]) == [".ci/matrix ${{ matrix.python }}"]
    assert commands(jobs["nightly"]) == ["make attack"]
    for script in (".ci/run", ".ci/matrix"):
        assert os.access(ROOT / script, os.X_OK), script
    assert re.search(r"^attack:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_events_are_changes_and_a_clock(workflow):
    # YAML 1.1 has `on` for true
    assert {"push", "pull_request", "schedule"} <= set(workflow[True])
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in FILE.read_text(encoding="utf-8")


def test_pythons_are_those_of_the_package(workflow):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert workflow["jobs"]["matrix"]["strategy"]["matrix"]["python"] == supported
    script = (ROOT / ".ci" / "matrix").read_text(encoding="utf-8")
    assert f"for version in ${{asked:-{' '.join(supported)}}}" in script
    for job in workflow["jobs"].values():
        version = next(s["with"]["python-version"] for s in job["steps"] if "with" in s)
        assert version in (*supported, "${{ matrix.python }}")


def test_actions_have_a_major_version(workflow):
    used = [s["uses"] for job in workflow["jobs"].values() for s in job["steps"] if "uses" in s]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in used)


@pytest.mark.parametrize("script", [".ci/run", ".ci/matrix"])
def test_scripts_name_files_that_exist(script):
    text = (ROOT / script).read_text(encoding="utf-8")
    named = re.findall(r"tests/[\w/]+\.py", text)
    assert named and all((ROOT / name).exists() for name in named), named
