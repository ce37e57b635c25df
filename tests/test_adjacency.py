"""A neighbouring relation is one value, made once: nobody else compares its names."""

import ast
import json
import pickle
from pathlib import Path

import pytest

import jaxgdp
from jaxgdp.adjacency import Adjacency

PACKAGE = Path(jaxgdp.__file__).parent
NAMES = {relation.value for relation in Adjacency}


def test_relation_says_what_it_covers():
    said = {a.value: (a.symmetric, a.swapped, a.replaces, a.order.value) for a in Adjacency}
    assert said == {
        "add_remove": (True, False, False, "add_remove"),
        "add": (False, True, False, "add"),
        "remove": (False, False, False, "remove"),
        "replace_one": (True, False, True, "add_remove"),
    }


def test_relation_is_the_string_that_users_pass():
    relation = Adjacency.checked("add")
    assert relation == "add" and {"add": 1}[relation] == 1
    assert (repr(relation), f"{relation}", json.dumps(relation)) == ("'add'", "add", '"add"')
    assert pickle.loads(pickle.dumps(relation)) is relation
    for unknown in ("replace", "", None, 1, ["add"]):
        with pytest.raises(ValueError, match="adjacency must be one of 'add_remove', 'add', "):
            Adjacency.checked(unknown)


def test_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="adjacency must be one of .*, got 'both'"):
        jaxgdp.measure(jaxgdp.Gaussian(1.0), adjacency="both")


def _constants(node):
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & NAMES


# (proofs share nothing with what they prove, and have two orders of a pair in place of relations)
ASKING = (p for p in PACKAGE.rglob("*.py") if p.name != "adjacency.py" and p.parent.name != "proof")


@pytest.mark.parametrize(
    "path", sorted(ASKING), ids=lambda p: ".".join(p.relative_to(PACKAGE).with_suffix("").parts)
)
def test_no_file_compares_names_of_relations(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            assert not _constants(node), f"line {node.lineno}: ask jaxgdp.adjacency.Adjacency"
