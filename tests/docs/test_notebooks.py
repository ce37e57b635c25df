"""Every notebook is stored with the outputs of its own cells, which a fresh run gives again, and
uses public names only.
"""

import ast
import importlib.util
import math
import os
import re
from pathlib import Path

import jax
import pytest

nbformat = pytest.importorskip("nbformat")
FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
_NUMBER = re.compile(r"[-+]?(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?", re.I)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_VERSION = re.compile(r'"(jax|numpy|scipy|python)": "[\d.]+"')


def runner():
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code(book):
    return "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")


def outputs(book):
    """(kind, text) of every output, in order."""
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                yield "text", output.text
            else:
                yield from output.data.items()


def agree(stored: str, fresh: str, rtol=1e-6) -> bool:
    """The same words, and numbers that differ by no more than another machine's rounding does; of
    whatever date and with whatever versions of other packages.
    """
    stored, fresh = (_VERSION.sub(r"\1", _DATE.sub("date", text)) for text in (stored, fresh))
    a, b = _NUMBER.findall(stored), _NUMBER.findall(fresh)
    if _NUMBER.sub("#", stored).split() != _NUMBER.sub("#", fresh).split() or len(a) != len(b):
        return False
    pairs = (
        (float(x.replace(",", "")), float(y.replace(",", ""))) for x, y in zip(a, b, strict=True)
    )
    return all(math.isclose(x, y, rel_tol=rtol, abs_tol=1e-12) for x, y in pairs)


def test_notebooks_are_one_a_theme():
    numbers = [int(re.match(r"\d+", path.name).group()) for path in NOTEBOOKS]
    assert len(set(numbers)) == len(numbers) and {*range(1, 9), 10, 11} <= set(numbers)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_is_stored_with_the_outputs_of_its_own_cells(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), (
        "run `make notebooks`"
    )
    assert book.metadata["jaxgdp"]["sources"] == runner().sources(book), (
        "cells have changed: run `make notebooks`"
    )
    found = list(outputs(book))
    assert any(kind == "text" or kind.startswith("text/") for kind, _ in found)
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    # nothing of the machine that it ran on, and figures where there are any to draw
    text = "\n".join(text for kind, text in found if not kind.startswith("image/"))
    for mark in ("/tmp/", "/home/", "/root/", "site-packages", " at 0x", "execution"):
        assert mark not in text, mark
    assert "plot" not in code(book) or "image/png" in dict(found)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_public_names_only(path):
    for node in ast.walk(ast.parse(code(nbformat.read(path, as_version=4)))):
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), node.attr
        if isinstance(node, ast.ImportFrom):
            assert not any(alias.name.startswith("_") for alias in node.names), ast.unparse(node)


def test_stale_numbers_and_words_are_seen():
    assert agree("mu in [0.5223600001, 1,437]", "mu in [0.5223600002,  1,437]")
    assert agree("(jaxgdp 0.2.0, 2026-11-22) 5", "(jaxgdp 0.2.0, 2031-01-07) 5")
    assert not agree("(jaxgdp 0.2.0, 2026-11-22) 5", "(jaxgdp 0.2.0, 2026-11-22) 6")
    for other in (
        "mu in [0.52240, 1,437]",
        "nu in [0.52236, 1,437]",
        "mu in [0.52236]",
        "mu in [0.52236, 1,438]",
    ):
        assert not agree("mu in [0.52236, 1,437]", other), other


@pytest.fixture(scope="module")
def environment():
    """What kernels find: the package, and the compiled programs of the tests."""
    for package in ("nbclient", "ipykernel", "matplotlib", "xarray"):
        pytest.importorskip(package)
    path = os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        patch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
        yield


@pytest.fixture(scope="module")
def kernel(environment, flags_of_xla):
    """One kernel for all notebooks: each takes seconds to start and to load the libraries. It
    compiles as the tests do.
    """
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync

    manager = AsyncKernelManager(kernel_name="python3")
    flags = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags_of_xla}"}
    run_sync(manager.start_kernel)(
        extra_arguments=["--HistoryManager.hist_file=:memory:"], env=os.environ | flags
    )
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


def check_outputs(path, folder, kernel):
    stored = list(outputs(nbformat.read(path, as_version=4)))
    fresh = list(outputs(runner().execute(path, folder, kernel)))
    assert [kind for kind, _ in fresh] == [kind for kind, _ in stored]
    for (kind, old), (_, new) in zip(stored, fresh, strict=True):
        assert kind.startswith("image/") or agree(old, new), f"stored: {old}\nnow: {new}"


# (those that take longest are run nightly: what they show is tested beside them)
LONG = "5_", "8_", "9_", "10_", "11_"
BY_DAY = [
    pytest.param(
        path,
        marks=pytest.mark.nightly if path.stem.startswith(("5_", "8_", "9_", "10_", "11_")) else (),
    )
    for path in NOTEBOOKS
]


@pytest.mark.slow
@pytest.mark.parametrize("path", BY_DAY, ids=lambda p: p.stem)
def test_fresh_run_gives_what_is_stored(path, tmp_path, kernel):
    """With no names and no figures of the notebooks before it."""
    check_outputs(path, tmp_path, kernel)


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_process_of_its_own_gives_what_is_stored(path, tmp_path, environment):
    check_outputs(path, tmp_path, None)
