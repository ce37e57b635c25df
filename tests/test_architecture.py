"""Data flows one way: a module imports only from stages before its own, and importing the package
asks for no extra.
"""

import ast
import importlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import jaxgdp

PACKAGE = Path(jaxgdp.__file__).parent

# modules and folders of the package, by stage
STAGES = (
    (
        "_version",
        "adjacency",
        "arguments",
        "bracket",
        "deprecation",
        "options",
        "progress",
        "vocabulary",
    ),
    ("numerics",),
    ("scale",),
    ("gdp",),
    ("conversions",),
    ("pairs", "participation"),
    ("mechanisms",),
    ("deployments", "run_settings", "samplers"),
    ("spec",),
    ("proof",),
    ("accounting",),
    ("quantities",),
    ("plot",),
    ("tradeoff",),
    ("measure",),
    ("differentiable", "targets"),
    ("calibration", "grids", "training"),
    ("bridge", "optimization"),
    ("audit",),
    ("interop", "report"),
    ("explore", "reproduce"),
    ("cli",),
)
STAGE_OF = {name: stage for stage, names in enumerate(STAGES) for name in names}
# entry points may import anything
ENTRY_POINTS = ("__init__", "__main__")


def _parts(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).with_suffix("").parts


def imported_units(source: str, package: tuple[str, ...]):
    """Modules and folders of jaxgdp that ``source`` imports anywhere, functions included.

    ``package`` is the dotted location of the package the source lives in, below jaxgdp.
    """
    for node in ast.walk(ast.parse(source)):
        targets = []
        if isinstance(node, ast.Import):
            targets = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                above = node.level - 1
                module = ("jaxgdp",) + package[: len(package) - above] + module
            # in `from . import engine` the module is the imported name
            targets = (
                [module + (alias.name,) for alias in node.names]
                if module == ("jaxgdp",)
                else [module]
            )
        for target in targets:
            if target[0] == "jaxgdp":
                yield target[1] if len(target) > 1 else "__init__"


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if _parts(path)[0] not in ENTRY_POINTS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: ".".join(_parts(p)))
def test_imports_only_earlier_stages(path):
    unit, package = _parts(path)[0], _parts(path)[:-1]
    assert unit in STAGE_OF, f"{unit} has no stage yet: give it one in STAGES"
    for other in imported_units(path.read_text(encoding="utf-8"), package):
        if other == "__version__":
            continue
        assert other in STAGE_OF, f"{unit} imports {other}: import from the module that defines it"
        assert STAGE_OF[other] <= STAGE_OF[unit], f"{unit} imports {other}, which comes later"


def _cycle(graph: dict[str, set[str]]) -> list[str] | None:
    done: set[str] = set()

    def visit(node, path):
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return None
        for other in sorted(graph.get(node, ())):
            if found := visit(other, [*path, node]):
                return found
        done.add(node)
        return None

    return next((found for node in sorted(graph) if (found := visit(node, []))), None)


def test_no_cycle_between_modules():
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        unit = _parts(path)[0]
        others = set(imported_units(path.read_text(encoding="utf-8"), _parts(path)[:-1]))
        graph.setdefault(unit, set()).update(others - {unit})
    assert _cycle(graph) is None


def _type_checking_only(tree: ast.AST) -> set[int]:
    """Nodes that only type checkers read."""
    blocks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    return {id(inner) for block in blocks for node in block.body for inner in ast.walk(node)}


def imported_modules(source: str, module: str, is_package: bool, known: set[str]) -> set[str]:
    """Modules of ``known`` that ``source`` imports anywhere, functions included.

    A name that is imported from a package is the module of that name, or else the package itself.
    """
    tree, found = ast.parse(source), set()
    skipped = _type_checking_only(tree)
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            target = ".".join([*above, *([node.module] if node.module else [])])
            names = {f"{target}.{alias.name}" for alias in node.names}
            found |= (names & known) | ({target} if names - known else set())
    return (found & known) - {module}


def _module_graph() -> dict[str, set[str]]:
    """Module → modules of the package that it imports."""
    files = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("jaxgdp", *_parts(path))
        is_package = parts[-1] == "__init__"
        files[".".join(parts[:-1] if is_package else parts)] = (path, is_package)
    return {
        name: imported_modules(path.read_text(encoding="utf-8"), name, is_package, set(files))
        for name, (path, is_package) in files.items()
    }


def test_no_circle_between_modules():
    """Imports within functions count: a circle that is broken by a late import is still one."""
    assert _cycle(_module_graph()) is None


def test_check_for_circles_sees_late_imports_and_no_type_hints():
    known = {"jaxgdp.a", "jaxgdp.b", "jaxgdp.b.c", "jaxgdp.b.d", "jaxgdp.e"}
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from .. import e\n"
        "def f():\n"
        "    from . import d\n"
        "    from ..a import g\n"
        "    from . import something\n"
    )
    expected = {"jaxgdp.b.d", "jaxgdp.a", "jaxgdp.b"}
    assert imported_modules(source, "jaxgdp.b.c", False, known) == expected
    assert imported_modules("import jaxgdp.e", "jaxgdp.b", True, known) == {"jaxgdp.e"}
    assert imported_modules("from .c import h", "jaxgdp.b", True, known) == {"jaxgdp.b.c"}


def test_check_itself_sees_every_kind_of_import():
    source = (
        "from . import cli\n"
        "def f():\n"
        "    from ..plot import draw\n"
        "    import jaxgdp.report\n"
        "from jaxgdp.sweep import sweep\n"
    )
    # the same text, read as a module of the package and as one in a folder
    assert set(imported_units(source.replace("..plot", ".plot"), ())) == {
        "cli",
        "plot",
        "report",
        "sweep",
    }
    assert set(imported_units(source, ("summaries",))) == {"summaries", "plot", "report", "sweep"}
    assert set(imported_units("from .. import engine, gdp", ("summaries",))) == {"engine", "gdp"}
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]


def test_every_stage_names_something_that_exists():
    for name in STAGE_OF:
        assert (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists(), name


def test_documentation_draws_the_stages_and_the_folder_holds_them(monkeypatch):
    docs = PACKAGE.parent / "docs"
    if not docs.exists():
        pytest.skip("run without the documentation")
    monkeypatch.syspath_prepend(str(docs))
    generated = importlib.import_module("generated")
    assert [tuple(stage) for stage in generated.stages()] == [tuple(stage) for stage in STAGES]
    # the picture has a box for each stage, in order, and an arrow between any two
    drawn = re.findall(r"<text [^>]*>([^<]*)</text>", generated.pipeline())
    assert drawn == [name for stage in STAGES for name in stage]
    assert generated.pipeline().count("<rect ") == len(STAGES)
    assert generated.pipeline().count('marker-end="url(#tip') == len(STAGES) - 1
    page = (docs / "architecture.md").read_text(encoding="utf-8")
    for name in set(STAGE_OF) - {"_version"}:
        assert f"`{name}`" in page, f"{name} has no line in the table"
    # what is done for one setting, by file
    for title, *files in generated.ACCOUNTING:
        assert title in generated.accounting()
        for file in files:
            assert (PACKAGE / file).exists(), file
    files = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert files - set(ENTRY_POINTS) == set(STAGE_OF)


def test_readme_draws_the_stages_of_this_list():
    text = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    assert "Data flows one way" in text, "the README draws the stages after these words"
    block = text.split("Data flows one way", 1)[1].split("\n\n")[1]
    drawn = [
        tuple(name.strip() for name in stage.split(","))
        for stage in " ".join(block.split()).split("→")
    ]
    assert drawn == [tuple(stage) for stage in STAGES]


def _run(code: str) -> None:
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert found.returncode == 0, found.stderr


def test_import_needs_no_extra_and_leaves_the_configuration_alone():
    _run(
        "import sys\n"
        "extras = 'xarray h5netcdf h5py pandas matplotlib click rich dp_accounting zarr dask "
        "distributed'\n"
        "for name in extras.split():\n"
        "    sys.modules[name] = None\n"
        "import jax\n"
        "before = dict(jax.config.values)\n"
        "import jaxgdp\n"
        "for name in jaxgdp.__all__:\n"
        "    getattr(jaxgdp, name)\n"
        "import jaxgdp.cli, jaxgdp.reproduce, jaxgdp.grids.landscape\n"
        "assert dict(jax.config.values) == before\n"
        "assert not jax.config.jax_enable_x64\n"
    )


def _not_loaded(code: str, modules: tuple[str, ...], before: str = "") -> None:
    """What ``before`` loads does not count."""
    _run(
        f"import sys\n{before}\nbefore = set(sys.modules)\n{code}\n"
        f"loaded = [name for name in {modules} if name in set(sys.modules) - before]\n"
        "assert not loaded, loaded\n"
    )


def test_import_is_light():
    _not_loaded(
        "import jaxgdp",
        ("jax", "numpy", "scipy", "optax", "xarray", "matplotlib", "jaxgdp.measure"),
    )
    slow = ("scipy.optimize", "scipy.stats", "xarray", "matplotlib", "dp_accounting", "torch")
    _not_loaded("import jaxgdp\nfor name in jaxgdp.__all__:\n    getattr(jaxgdp, name)", slow)


def test_answer_loads_only_what_it_needs():
    ours = (
        "calibration",
        "differentiable",
        "interop",
        "optimization",
        "report",
        "reproduce",
        "targets",
        "training",
    )
    heavy = ("optax", "scipy.optimize", "scipy.stats", "scipy.linalg", "tomllib", "xarray")
    _not_loaded(
        "import jaxgdp\njaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 2000), ('mu', 'epsilon'),"
        " rtol=1e-2)",
        heavy + tuple(f"jaxgdp.{name}" for name in ours),
        # (SciPy 1.18 has no special functions without its linear algebra)
        before="import scipy.special",
    )


def _typed_names() -> dict[str, str]:
    """Public name → module it is imported from, as type checkers read ``jaxgdp/__init__.py``."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (typed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        a.name: node.module or ""
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for a in node.names
    }


def test_type_checkers_and_users_see_the_same_names():
    typed = _typed_names()
    # (`from jaxgdp import *` must not replace anybody's own delta)
    quantities = set(jaxgdp.quantities.registry.REGISTRY)
    assert set(typed) | {"__version__"} == set(jaxgdp.__all__) | quantities
    assert not quantities & set(jaxgdp.__all__)
    assert set(jaxgdp.__all__) <= set(dir(jaxgdp))
    for name, module in typed.items():
        home = importlib.import_module(f"jaxgdp.{module or name}")
        assert getattr(jaxgdp, name) is (getattr(home, name) if module else home), name
    with pytest.raises(AttributeError, match="no attribute 'measur'"):
        jaxgdp.measur  # noqa: B018
    with pytest.raises(ImportError, match="measur"):
        exec("from jaxgdp import measur")


def test_function_is_not_replaced_by_the_module_of_its_name():
    _run(
        "import types\n"
        "import jaxgdp.report, jaxgdp.measure, jaxgdp.calibration\n"
        "from jaxgdp.tradeoff import TradeoffCurve\n"
        "import jaxgdp\n"
        "for name in ('report', 'sweep', 'measure', 'tradeoff', 'calibrate', 'optimize'):\n"
        "    assert isinstance(getattr(jaxgdp, name), types.FunctionType), name\n"
        "from jaxgdp import measure, report\n"
        "from jaxgdp import *\n"
        "assert measure is jaxgdp.measure and TradeoffCurve is jaxgdp.TradeoffCurve\n"
        "assert isinstance(jaxgdp.calibration, types.ModuleType)\n"
        "import pickle\n"
        "again = pickle.loads(pickle.dumps(jaxgdp.dpsgd(1.1, 0.01, 10)))\n"
        "assert type(again) is jaxgdp.Composition\n"
    )


def test_answers_leave_the_configuration_alone_and_are_float64():
    _run(
        "import jax, jax.numpy as jnp, numpy as np\n"
        "before = dict(jax.config.values)\n"
        "import jaxgdp\n"
        "curve = jaxgdp.tradeoff(jaxgdp.Gaussian(noise_multiplier=1.0), rtol=1e-2)\n"
        "mu = curve.mu()\n"
        "assert np.asarray(mu.upper).dtype == np.float64\n"
        "assert dict(jax.config.values) == before and not jax.config.jax_enable_x64\n"
        "assert jnp.ones(2).dtype == jnp.float32\n"
    )


def test_version_is_the_packaged_one():
    try:
        packaged = metadata.version("jaxgdp")
    except metadata.PackageNotFoundError:
        pytest.skip("run from a source tree that is not installed")
    assert jaxgdp.__version__ == packaged


def test_no_file_of_tests_sets_the_digits_of_the_others():
    """A file has ``DIGITS``, a block ``workdps``: what is set at import, the next file undoes."""
    sets = re.compile(r"\bmp\.(dps|prec) [-+*/]?= ")
    files = Path(__file__).parent.rglob("*.py")
    assert [str(file) for file in files if sets.search(file.read_text(encoding="utf-8"))] == []
