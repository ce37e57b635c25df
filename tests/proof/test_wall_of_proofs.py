"""A proof shares nothing with what it proves."""

import ast
from pathlib import Path

import pytest

import jaxgdp

PACKAGE = Path(jaxgdp.__file__).parent
FORBIDDEN = {"accounting", "quantities", "pairs", "numerics", "measure", "tradeoff", "gdp"}
# what may be imported, and what for
ALLOWED = {
    "_version": "what the certificate says it was made by",
    "bracket": "the answer: two sides",
    "mechanisms": "classes whose fields are read",
    "options": "defaults",
    "proof": "the room itself",
    "spec": "mechanisms as files have them",
    "vocabulary": "hints in errors",
}


def imported(path: Path) -> set[str]:
    """First names below jaxgdp that a module of the room imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {name.split(".")[1] for name in names if name.startswith("jaxgdp.")}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 1:
                found.add("proof")
            elif node.level == 2:
                found |= {module.split(".")[0]} if module else {a.name for a in node.names}
            elif module.startswith("jaxgdp"):
                below = module.split(".")[1:2]
                found |= set(below) or {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            raise AssertionError(f"{path}: an import that this test cannot read")
    return found


FILES = sorted((PACKAGE / "proof").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_import_across_the_wall(path):
    assert imported(path) <= set(ALLOWED)
    assert not imported(path) & FORBIDDEN


def test_check_itself_finds_every_kind_of_import(tmp_path):
    path = tmp_path / "some.py"
    path.write_text(
        "from ..numerics import errors\nfrom .. import gdp\nimport jaxgdp.pairs.cells\n"
        "def f():\n    from jaxgdp.accounting.certify import curve\n"
        "    from jaxgdp import measure\n"
    )
    assert imported(path) == {"numerics", "gdp", "pairs", "accounting", "measure"}
    path.write_text("import importlib\nimportlib.import_module('jaxgdp.pairs')\n")
    with pytest.raises(AssertionError, match="cannot read"):
        imported(path)


def test_no_doubles_decide():
    """Formulas of probability come from FLINT alone."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "scipy" not in text and "mpmath" not in text and "jax." not in text, path
        if path.stem != "describe":
            assert "numpy" not in text, path
