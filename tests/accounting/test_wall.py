"""The wall in ``jaxgdp/accounting``: a bracket holds because of ``certify`` and of what it imports,
whatever the rest does.
"""

import ast
import importlib
from pathlib import Path

import pytest

import jaxgdp

PACKAGE = Path(jaxgdp.__file__).parent
ACCOUNTING = PACKAGE / "accounting"

# room → rooms of accounting/ that it may import, and why no others
ROOMS = {
    "plan": ((), "what crosses the wall is data, made of arrays alone"),
    "question": ((), "what is asked says nothing about how it is answered"),
    "certify": (
        ("plan", "question"),
        "a bracket holds whatever steers or runs: an auditor reads certify and needs neither",
    ),
    "steer": (
        ("plan", "question", "certify"),
        "where to look depends on nothing that runs, so it can be tested as a function of arrays",
    ),
    "experimental": (
        ("plan", "question", "certify"),
        "it is handed to certify by run, and is given what runs it over devices",
    ),
    "run": (("plan", "question", "certify", "steer", "experimental"), "it may use all of them"),
}
# what certify may import from the rest of the package, and what for
ELSEWHERE = {
    "adjacency": "the order that a neighbouring relation takes a pair in",
    "bracket": "the answer: two sides and a status",
    "mechanisms": "the exact pairs that are composed; whether a curve has an end",
    "numerics": "arrays of either library, special functions, and the model of their rounding",
    "pairs": "the cells that a mechanism hands to the discretisation",
}
LONGEST = 60  # lines of a function, docstring included
SHORT = (
    "certify",
    "steer",
    "run",
    "experimental",
    "plan",
    "question",
)  # rooms in which none is longer


def files(room: str) -> list[Path]:
    """The modules of a room."""
    alone = ACCOUNTING / f"{room}.py"
    return [alone] if alone.exists() else sorted((ACCOUNTING / room).rglob("*.py"))


def imported(source: str, package: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Dotted names below jaxgdp that a module imports, at its top, in functions, for type checkers
    or by ``import_module``; those taken out of a module with their own name at the end.

    ``package`` is the place of the package that the module lives in, below jaxgdp.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = ("jaxgdp", *package[: len(package) - node.level + 1], *module)
            found += [(*module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found += [
                tuple(given.value.split("."))
                for given in node.args
                if isinstance(given, ast.Constant) and isinstance(given.value, str)
            ]
    return [name[1:] for name in found if name[0] == "jaxgdp" and len(name) > 1]


def trespasses(room: str, path: str, source: str) -> list[str]:
    """One sentence for each import that the room may not have."""
    allowed, why = ROOMS[room]
    package = ("accounting", *Path(path).parts[:-1])
    found = []
    for name in imported(source, package):
        words = ".".join(("jaxgdp", *name))
        if name[0] != "accounting":
            if room == "certify" and name[0] not in ELSEWHERE:
                known = ", ".join(ELSEWHERE)
                found.append(
                    f"accounting/{path} imports {words}: of the rest of the package certify"
                    f" imports {known} alone, so that an auditor need not read more"
                )
        elif len(name) > 1 and name[1] not in (*allowed, room):
            found.append(f"accounting/{path} imports {words}, but {room} may not: {why}")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_wall_holds(room):
    for path in files(room):
        place = path.relative_to(ACCOUNTING).as_posix()
        assert not (found := trespasses(room, place, path.read_text("utf-8"))), "\n".join(found)


@pytest.mark.parametrize(
    ("room", "path", "line", "words"),
    [
        ("certify", "certify/a.py", "from ..steer import windows", "steer.windows, but certify"),
        ("certify", "certify/a.py", "from ..run.stages import half", "run.stages.half"),
        ("certify", "certify/a.py", "from ..experimental.ozaki import BITS", "experimental.ozaki"),
        ("certify", "certify/a.py", "from .. import run", "accounting.run, but certify"),
        ("certify", "certify/a.py", "from ... import accounting, quantities", "quantities: of the"),
        ("certify", "certify/a.py", "from ...quantities.base import Quantity", "quantities.base"),
        ("certify", "certify/a.py", "import jaxgdp.accounting.run as r", "accounting.run, but"),
        ("certify", "certify/b/a.py", "from ...steer.tilts import ends", "steer.tilts.ends"),
        ("steer", "steer/a.py", "from jaxgdp.accounting.run import engine", "run.engine, but st"),
        ("steer", "steer/a.py", "from ..experimental import ozaki", "experimental.ozaki"),
        ("experimental", "experimental/a.py", "from ..run import devices", "run.devices, but ex"),
        ("plan", "plan.py", "from .certify.lattice import Dense", "certify.lattice.Dense"),
        ("question", "question.py", "from . import steer", "steer, but question"),
        ("steer", "steer/a.py", "importlib.import_module('jaxgdp.accounting.run')", "run, but"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["{}", "def f():\n    {}", "if TYPE_CHECKING:\n    {}"])
def test_wall_sees_every_kind_of_import(room, path, line, words, place):
    """And says which file, which import and why not."""
    found = trespasses(room, path, "import numpy\n" + place.format(line) + "\n")
    assert len(found) == 1 and words in found[0] and found[0].startswith(f"accounting/{path} ")
    assert ROOMS[room][1] in found[0] or "an auditor" in found[0]


def test_wall_lets_through_what_is_allowed():
    source = (
        "from ...numerics import namespace as xp\nfrom ..plan import Plan\n"
        "from . import trig_tables\nimport jax\n"
    )
    assert trespasses("certify", "certify/a.py", source) == []
    assert trespasses("run", "run/a.py", "from ..steer.tilts import ends\n") == []


def test_wall_covers_every_room_and_lists_nothing_for_nothing():
    rooms = {path.stem for path in ACCOUNTING.iterdir() if path.suffix == ".py"}
    rooms |= {path.parent.name for path in ACCOUNTING.glob("*/__init__.py")}
    assert rooms - {"__init__"} == set(ROOMS)
    used = {
        name[0]
        for path in files("certify")
        for name in imported(path.read_text("utf-8"), _package(path))
    }
    assert used - {"accounting"} == set(ELSEWHERE)


def _package(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).parts[:-1]


@pytest.mark.parametrize("room", SHORT)
def test_functions_are_short(room):
    for path in files(room):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= LONGEST, f"{path.name}: {node.name} has {lines} lines"


def test_documentation_shows_the_wall_and_counts_the_lines(monkeypatch):
    docs = PACKAGE.parent / "docs"
    if not docs.exists():
        pytest.skip("run without the documentation")
    monkeypatch.syspath_prepend(str(docs))
    generated = importlib.import_module("generated")
    page = (docs / "architecture.md").read_text("utf-8")
    assert "<!-- wall -->" in page
    table = generated.wall()
    for room, (allowed, _) in ROOMS.items():
        (row,) = [row for row in table.splitlines() if row.startswith(f"| `{room}`")]
        assert [part for part in ROOMS if f"`{part}`" in row.split("|")[2]] == list(allowed)
        number = sum(len(path.read_text("utf-8").splitlines()) for path in files(room))
        assert f" {number:,} " in row
    assert f"{generated.lines_of('certify').all:,} lines" in table
