"""The name of a test begins with its subject: a noun, maybe with a number or an adjective."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
# what begins a clause or a phrase, and no subject
WORDS = frozenset(
    "a after agrees almost an and as at because becomes before between but by can does for from"
    " gives had has have her his holds how if in inside is it its keeps my needs never nor not of"
    " on only or our out says shows so such takes that the their them then there these they this"
    " those to too under until was were what when where whether which while who whoever whose why"
    " will with within without works your".split()
)


def names():
    """(file, name) of every test."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path.relative_to(TESTS), node.name


def test_names_begin_with_their_subject():
    assert not [f"{path}::{name}" for path, name in names() if name.split("_")[1] in WORDS]


def test_names_are_found():
    assert (Path("test_names_of_tests.py"), "test_names_are_found") in set(names())
