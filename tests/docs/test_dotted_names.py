"""Every dotted name of the README, the documentation, the notebooks, the examples and the
docstrings resolves in a fresh process that has imported the package and nothing else of it.

A name of the package is followed from ``import jaxgdp`` by attributes alone, as a reader would. A
name of another library is followed from that library, if it is installed. The other names in code
spans are those of objects in an example: each of their parts has to stand in the code of the
package or of the same page, so that a name that was renamed is found.
"""

import ast
import builtins
import functools
import io
import json
import keyword
import os
import re
import subprocess
import sys
import tokenize
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import jaxgdp

ROOT, PACKAGE = Path(jaxgdp.__file__).parents[1], Path(jaxgdp.__file__).parent
# names of these libraries are followed: what the package and its extras need, and usual short names
LIBRARIES = {
    **{
        name: name
        for name in (
            "dask",
            "distributed",
            "dp_accounting",
            "h5py",
            "jax",
            "matplotlib",
            "numpy",
            "optax",
            "scipy",
            "sklearn",
            "xarray",
            "zarr",
        )
    },
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "np": "numpy",
    "plt": "matplotlib.pyplot",
    "xr": "xarray",
}
DOTTED = re.compile(r"(?<![\w./\\-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/-])")
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?\.?([\w.]+)`")
SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.S)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.S | re.M)
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.M)
PROMPT = re.compile(r"^ *(?:>>>|\.\.\.) ?(.*)$", re.M)
PATH = re.compile(r"^[\w./-]+/[\w.-]+\.(?:py|md|toml|ipynb|json|template)$")
# what a reader reaches by attributes, after `import jaxgdp` alone
PUBLIC = {*jaxgdp.__all__, "interop", "landscape", "plot", "reproduce", "samplers", "scale"}
ENDINGS = ("csv", "html", "ipynb", "json", "md", "nc", "pdf", "png", "py", "svg", "toml", "txt")
ENDINGS = (*ENDINGS, "gz", "yaml", "yml", "zarr")


class Page:
    """A text with names: its code, its code spans, and what its code imports."""

    def __init__(self, name: str, prose: str, code: str = "", scope: str | None = None):
        self.name, self.prose, self.code, self.scope = name, prose, code, scope
        self.imports = dict(imported(code))

    def spans(self) -> list[str]:
        return [span for _, span in SPAN.findall(self.prose)]

    def names(self) -> set[str]:
        """Dotted names of code, spans, Sphinx roles and mkdocstrings directives."""
        found = {role for role in ROLE.findall(self.prose) if "." in role}
        found.update(DIRECTIVE.findall(self.prose))
        for text in (without_strings(self.code), *map(without_quotes, self.spans())):
            found.update(DOTTED.findall(text))
        return {name for name in found if name.rpartition(".")[2] not in ENDINGS}


def imported(code: str):
    """(name, dotted name that it stands for) of the imports in code, whatever else is in it."""
    for line in re.findall(r"^\s*(?:from [\w.]+ )?import [^(\n]+$|^\s*from .*?\)$", code, re.M):
        try:
            (node,) = ast.parse(line.strip()).body
        except SyntaxError:
            continue
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
            elif alias.asname:
                yield alias.asname, alias.name
            else:
                yield alias.name.split(".")[0], alias.name.split(".")[0]


def without_quotes(code: str) -> str:
    return re.sub(r"\"[^\"]*\"|'[^']*'", '""', code)


def without_strings(code: str) -> str:
    """Code without its strings and comments, which hold file names and sentences."""
    return re.sub(r"#.*$", "", without_quotes(code), flags=re.M)


def from_markdown(name: str, text: str) -> Page:
    """A page of the documentation; its examples are the lines after prompts, or whole blocks."""
    blocks = [body for kind, body in FENCE.findall(text) if kind in ("python", "pycon", "py")]
    code = "\n".join("\n".join(PROMPT.findall(b)) if ">>>" in b else b for b in blocks)
    return Page(name, FENCE.sub("", text), code)


def from_notebook(path: Path) -> Page:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    kinds = {
        kind: "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == kind)
        for kind in ("markdown", "code")
    }
    return Page(path.name, kinds["markdown"], kinds["code"])


def from_module(path: Path) -> Page:
    """Docstrings of a module; the examples in them are code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    lines = "\n".join(texts)
    prose = "\n".join(re.sub(r"^ *(?:>>>|\.\.\.).*$", "", text, flags=re.M) for text in texts)
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    scope = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Page(str(path.relative_to(ROOT)), prose, "\n".join(PROMPT.findall(lines)), scope)


def from_script(path: Path) -> Page:
    """A script whose own code is an example."""
    source = path.read_text(encoding="utf-8")
    return Page(str(path.relative_to(ROOT)), ast.get_docstring(ast.parse(source)) or "", source)


@functools.cache
def pages() -> tuple[Page, ...]:
    found = [from_module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    texts = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += [
        from_markdown(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        for path in texts
        if path.exists()
    ]
    found += [from_notebook(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    scripts = [*(ROOT / "docs" / "gallery").glob("*.py"), *(ROOT / "examples").glob("*.py")]
    return (*found, *map(from_script, sorted(scripts)))


@functools.cache
def builtins_and_libraries() -> frozenset[str]:
    """Attributes of what every Python knows, and of arrays."""
    kinds = (str, bytes, list, dict, set, tuple, float, int, complex, Path, re.Pattern, np.ndarray)
    return frozenset({*dir(builtins), *keyword.kwlist, *LIBRARIES, *sum(map(dir, kinds), [])})


@functools.cache
def written(path: Path) -> frozenset[str]:
    """The identifiers of a file's code, and its strings that are one: fields that are looked up."""
    source = path.read_text(encoding="utf-8")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found = {t.string for t in tokens if t.type == tokenize.NAME}
    found |= {t.string.strip("\"'") for t in tokens if t.type == tokenize.STRING}
    return frozenset(found)


@functools.cache
def known() -> frozenset[str]:
    """The identifiers of the package, its files and folders among them."""
    found = {part for path in PACKAGE.rglob("*") for part in (path.stem,)}
    return frozenset(found.union(*(written(path) for path in PACKAGE.rglob("*.py"))))


def assigned(page: Page) -> set[str]:
    """Names that the code of a page gives to objects of its own."""
    loops = " ".join(re.findall(r"\bfor ([\w, ()*]+?) in\b", page.code))
    given = re.findall(r"\b(\w+)\b(?=[^=\n]*(?<![=!<>])=(?!=))", page.code)
    return {*given, *re.findall(r"\w+", loops)}


def followed(page: Page) -> dict[str, tuple[str, bool]]:
    """Name on the page → the dotted name to follow, and whether by attributes alone.

    Attributes alone have to lead to public names of the package. Other names are reached by an
    import, as on the page itself, or as the pages of the method name the inside of the package.
    """
    found = {}
    targets = set(re.findall(r"(?:from|import) ([\w.]+)", page.code))
    targets.update(DIRECTIVE.findall(page.prose))
    for name in page.names():
        root, _, rest = name.partition(".")
        base = page.imports.get(root) or ("jaxgdp" if root == "jaxgdp" else LIBRARIES.get(root))
        if base is None and root in jaxgdp.__dir__() and root not in assigned(page):
            base = f"jaxgdp.{root}"
        if base is not None and find_spec(base.partition(".")[0]) is not None:
            public = root == "jaxgdp" and rest.partition(".")[0] in PUBLIC and name not in targets
            found[name] = f"{base}.{rest}", public
    return found


FOLLOW = """
import dataclasses, importlib, json, os, sys
import jax, numpy, optax, scipy.special, scipy.fft
import jaxgdp

def attribute(value, name):
    if hasattr(value, name):
        return getattr(value, name)
    if name in getattr(value, "__dataclass_fields__", {}) | getattr(value, "__annotations__", {}):
        return object()  # a field without a default
    raise AttributeError(f"{value!r} has no attribute {name!r}")

def resolve(dotted, by_attributes_alone):
    root, *rest = dotted.split(".")
    value = sys.modules[root] if by_attributes_alone else importlib.import_module(root)
    for i, part in enumerate(rest):
        if not isinstance(value, (type(sys), type)) and not callable(value):
            return  # an object, whose attributes depend on its values
        if not by_attributes_alone and isinstance(value, type(sys)):
            try:
                value = importlib.import_module(".".join([root, *rest[: i + 1]]))
                continue
            except ModuleNotFoundError:
                pass
        value = attribute(value, part)

def group(names, by_attributes_alone):
    # in a process that has imported nothing else of the package
    read, write = os.pipe()
    if os.fork() == 0:
        failed = {}
        for name in names:
            try:
                resolve(name, by_attributes_alone)
            except BaseException as error:
                failed[name] = f"{type(error).__name__}: {error}"[:200]
        with os.fdopen(write, "w") as pipe:
            json.dump(failed, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        failed = json.load(pipe)
    os.wait()
    return failed

public, others = json.load(sys.stdin)
failed = group(others, False)
folders = {}
for name in public:
    folders.setdefault(name.rpartition(".")[0], []).append(name)
for names in folders.values():
    failed |= group(names, True)
print(json.dumps(failed))
"""


def unresolved(names) -> dict[str, str]:
    """Dotted names that a fresh process cannot follow, and why.

    Args:
        names: pairs (name, whether attributes alone have to lead there).
    """
    parts = [sorted({name for name, alone in names if alone is kind}) for kind in (True, False)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FOLLOW],
        input=json.dumps(parts),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        check=True,
    )
    return json.loads(done.stdout)


def outdated(page: Page, names: frozenset[str]) -> list[str]:
    """Names of a page that are no longer those of anything, if ``names`` are all there are."""
    names = names.union(re.findall(r"\w+", page.code), builtins_and_libraries())
    here = set(followed(page))
    return [
        name
        for name in sorted(page.names() - here) + private(page)
        if not names.issuperset(name.split("."))
    ]


def private(page: Page) -> list[str]:
    """Spans that are one private name."""
    return [span for span in page.spans() if re.fullmatch(r"_[A-Za-z]\w+", span)]


skip_without_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="names are followed in forked processes"
)


@skip_without_fork
def test_dotted_names_resolve_after_importing_the_package_alone():
    wanted = {(page.name, name): full for page in pages() for name, full in followed(page).items()}
    assert len(set(wanted.values())) > 300
    failed = unresolved(set(wanted.values()))
    assert not {
        f"{page}: {name}": failed[full]
        for (page, name), (full, _) in wanted.items()
        if full in failed
    }


@skip_without_fork
def test_dotted_names_that_are_stale_are_found():
    text = "See `xarray.unclearzarr(path)`, :func:`jaxgdp.measures` and `jaxgdp.gdp.beta`.\n"
    text += "```python\n>>> import numpy as np\n>>> np.nothing(1)\n```\n"
    page = from_markdown("page.md", text)
    failed = unresolved(set(followed(page).values()))
    assert set(failed) == {"xarray.unclearzarr", "jaxgdp.measures", "numpy.nothing"}


def test_names_of_objects_stand_in_the_code():
    found = {page.name: outdated(page, known()) for page in pages()}
    assert not {name: stale for name, stale in found.items() if stale}


def test_names_of_objects_that_are_stale_are_found():
    text = "``engine._half_program``, ``summaries.quantities``, `_half_program`, `plan.at`"
    assert outdated(Page("module", text), frozenset({"engine", "quantities", "plan", "at"})) == [
        "engine._half_program",
        "summaries.quantities",
        "_half_program",
    ]


def test_paths_lead_to_files():
    folders = (ROOT, PACKAGE, ROOT / "docs")
    assert not {
        f"{page.name}: {span}"
        for page in pages()
        for span in page.spans()
        if PATH.match(span) and not span.startswith(("out/", "reproduction/", "~", "/"))
        if not any((folder / span).exists() for folder in folders)
    }
