"""Arguments have types, and shapes of arrays are words for type checkers alone."""

import ast
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import jaxgdp

PACKAGE = Path(jaxgdp.__file__).parent
LEAST = 0.85  # of the arguments of every folder
LEAST_CERTIFIED = 0.95  # of those that brackets rest on
MOST_ANY = 0.05  # of all fields
IMPLIED = {"self", "cls", "_"}

WITHOUT_JAXTYPING = """
import importlib, pkgutil, sys
sys.modules["jaxtyping"] = None  # an import of it fails
import jaxgdp
for name in jaxgdp.__all__:
    getattr(jaxgdp, name)
for module in pkgutil.walk_packages(jaxgdp.__path__, "jaxgdp."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def _nodes(place, *kinds):
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds):
                yield path, node


def _arguments(*places):
    """Share of the arguments that have a type, and those that have none."""
    typed, without = 0, []
    functions = (_nodes(place, ast.FunctionDef, ast.AsyncFunctionDef) for place in places)
    for path, function in itertools.chain.from_iterable(functions):
        a = function.args
        for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if argument is None or argument.arg in IMPLIED:
                continue
            if argument.annotation is None:
                without.append(f"{path.relative_to(PACKAGE)}: {function.name}({argument.arg})")
            else:
                typed += 1
    return typed / (typed + len(without)), without


@pytest.mark.parametrize(
    "folder", sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
)
def test_arguments_have_types(folder):
    share, without = _arguments(PACKAGE / folder)
    assert share >= LEAST, "\n".join(without)


def test_arguments_of_certified_steps_have_types():
    share, without = _arguments(PACKAGE / "accounting" / "certify")
    assert share >= LEAST_CERTIFIED, "\n".join(without)


def test_arguments_of_public_functions_have_types():
    """Everything that ``jaxgdp`` itself offers."""
    files = {
        Path(sys.modules[value.__module__].__file__)
        for value in (getattr(jaxgdp, name) for name in jaxgdp.__all__)
        if str(getattr(value, "__module__", "")).startswith("jaxgdp.")
    }
    share, without = _arguments(*sorted(files))
    assert share >= LEAST_CERTIFIED, "\n".join(without)


def test_fields_say_more_than_any():
    fields = [
        (path, field)
        for path, owner in _nodes(PACKAGE, ast.ClassDef)
        for field in owner.body
        if isinstance(field, ast.AnnAssign)
    ]
    bare = [
        f"{path.relative_to(PACKAGE)}:{field.lineno}: {ast.unparse(field)}"
        for path, field in fields
        if ast.unparse(field.annotation) in ("Any", "Any | None")
    ]
    assert len(bare) <= MOST_ANY * len(fields), "\n".join(bare)


def test_jaxtyping_is_for_type_checking_only():
    """Everything is imported where it cannot be."""
    subprocess.run([sys.executable, "-c", WITHOUT_JAXTYPING], check=True, timeout=300)
