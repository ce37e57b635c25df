"""The pages of the method and the code point at each other: functions, tests, docstrings and places
all exist.
"""

import ast
import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import jaxgdp
from jaxgdp import mechanisms
from jaxgdp.bridge import verdicts
from jaxgdp.numerics import errors

ROOT = Path(jaxgdp.__file__).parents[1]
DOCS, PAGES = ROOT / "docs", ROOT / "docs" / "method"
pytestmark = pytest.mark.skipif(not PAGES.exists(), reason="run without the documentation")
POINTERS = re.compile(r"^Implemented by (.*?); checked by\s(.*?)\.$", re.S | re.M)
BACK = re.compile(r"^Method: docs/method/([\w-]+)\.md#([\w-]+)$", re.M)


@pytest.fixture(scope="module")
def generated():
    """What the pages compute while they are built."""
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("generated")
    finally:
        sys.path.remove(str(DOCS))


def sections(text: str):
    """(place, text) of every part of a page whose heading has a name to point to."""
    parts = re.split(r"^#+ .*?\{ #([\w-]+) \}$", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def pointed() -> list[tuple[str, str, str, str]]:
    """(page, place, function, test), one for each pointer; "" where a pointer has only one of
    both.
    """
    found = []
    for path in sorted(PAGES.glob("*.md")):
        for place, text in sections(path.read_text(encoding="utf-8")):
            for functions, tests in POINTERS.findall(text):
                found += [
                    (path.stem, place, name, "") for name in re.findall(r"`([^`]+)`", functions)
                ]
                found += [(path.stem, place, "", name) for name in re.findall(r"`([^`]+)`", tests)]
    return found


def resolved(name: str):
    """What a dotted name below jaxgdp stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(["jaxgdp", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = inspect.getattr_static(value, part)
        return value
    raise AssertionError(f"jaxgdp.{name} does not exist")


def docstring(value) -> str:
    value = getattr(value, "__func__", value)  # of a class method
    value = getattr(value, "__wrapped__", value)
    return inspect.cleandoc(value.__doc__ or "")


def test_pages_have_pointers():
    assert len({page for page, *_ in pointed()}) >= 11
    assert len([name for *_, name, test in pointed() if name]) > 60


def test_every_function_exists_and_leads_back():
    for page, place, name, _ in pointed():
        if name:
            assert (page, place) in BACK.findall(docstring(resolved(name))), (
                f"jaxgdp.{name}: Method: docs/method/{page}.md#{place}"
            )


def test_every_test_exists():
    known: dict[str, set[str]] = {}
    for *_, name in pointed():
        if not name:
            continue
        path, _, function = name.partition("::")
        if path not in known:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            known[path] = {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            }
        assert not function or function in known[path], name


def test_every_docstring_leads_to_a_place_that_names_it():
    there = {(page, place, name.rpartition(".")[2]) for page, place, name, _ in pointed() if name}
    number = 0
    for path in sorted((ROOT / "jaxgdp").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                for page, place in BACK.findall(inspect.cleandoc(ast.get_docstring(node) or "")):
                    assert not isinstance(node, ast.Module), path
                    assert (page, place, node.name) in there, (
                        f"{path}: {node.name} points to {page}.md#{place}"
                    )
                    number += 1
    assert number == len({(page, place, name) for page, place, name, _ in pointed() if name})


def test_links_between_places_exist():
    places = {
        path.name: {place for place, _ in sections(path.read_text("utf-8"))}
        for path in PAGES.glob("*.md")
    }
    for path in PAGES.glob("*.md"):
        for page, place in re.findall(
            r"\]\(([\w-]+\.md)?#([\w-]+)\)", path.read_text(encoding="utf-8")
        ):
            assert place in places[page or path.name], f"{path.name}: {page}#{place}"
    names = [place for here in places.values() for place in here]
    assert len(names) == len(set(names)), "a name is that of two places"


def test_every_constant_is_in_the_table(generated):
    """With its value as the code has it, words on what it covers, and a module that uses it."""
    table = generated.constants_table()
    declared = {name for name in vars(errors) if name.isupper()}
    rows = {row.split("`")[1]: row for row in table.splitlines() if row.startswith("| `")}
    assert set(rows) == declared
    for name, row in rows.items():
        _, _, value, words, modules, _ = re.split(r"(?<!\\)\|", row)
        assert len(words.split()) >= 3 and modules.strip(), name
        shown = [float(number) for number in value.split(",")]
        own = getattr(errors, name)
        assert shown == pytest.approx(list(own) if isinstance(own, tuple) else [own], rel=1e-3), (
            name
        )


def test_every_mechanism_says_which_relation_it_is_of(generated):
    classes = {getattr(mechanisms, name) for name in mechanisms.__all__}
    classes = {
        c
        for c in classes
        if isinstance(c, type)
        and issubclass(c, mechanisms.Mechanism)
        and c is not mechanisms.Mechanism
    }
    shown = {
        type(part)
        for m in verdicts.examples().values()
        for part in mechanisms.as_composition(m).mechanisms
    }
    assert shown == classes
    stated = {mechanisms.FromPMFs, mechanisms.FromDensities}
    assert {c for c in classes if "relation" not in vars(c)} == stated
    table = generated.relations(lambda mechanism, adjacency: "")
    for name, mechanism in verdicts.examples().items():
        (row,) = [row for row in table.splitlines() if row.startswith(f"| `{name}` |")]
        (part,) = mechanisms.as_composition(mechanism).mechanisms
        assert part.relation in row
        try:
            part.replace_one()
        except ValueError:
            assert "| refused |" in row
        else:
            assert "refused" not in row


def test_bracket_by_hand_meets_that_of_the_package():
    """The examples of the page, so that they run with every other test."""
    failed, number = doctest.testfile(
        str(PAGES / "example.md"), module_relative=False, encoding="utf-8"
    )
    assert number > 30 and not failed


@pytest.fixture
def hooks(monkeypatch):
    """What is done to every page; drawing formulas takes the extra "docs"."""
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("hooks")


def test_formulas_are_drawn_without_a_network(hooks):
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    formulas = re.findall(r"\$\$(.+?)\$\$|(?<![\\$])\$(?! )([^$\n]+?)(?<! )\$", text, re.S)
    assert len(formulas) > 300
    for displayed, inline in formulas:
        made = hooks.formula(displayed or inline, bool(displayed))
        # (a command that is not known would be drawn as its own name)
        assert made.startswith("<math") and "\\" not in made and "merror" not in made, (
            displayed or inline
        )
    page = '<p><span class="arithmatex">\\(\\alpha &lt; 1\\)</span></p>'
    assert "<mo>&#x0003C;</mo>" in hooks.on_page_content(
        page
    ) and "arithmatex" not in hooks.on_page_content(page)


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://example.org/mathjax.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img alt="" src="http://example.org/badge.svg">',
        "<style>@import url(https://example.org/fonts.css);</style>",
        '<span class="arithmatex">\\(x\\)</span>',
        "<p>as $x$ grows</p>",
    ],
)
def test_page_that_fetches_something_or_is_not_drawn_is_an_error(hooks, page):
    class Page:
        class file:
            src_uri = "page.md"

    with pytest.raises(ValueError, match="page.md"):
        hooks.on_post_page(page, Page)
    fine = '<a href="https://example.org">there</a><link rel="canonical" href="https://example.org/page/">'
    fine += '<img src="here.svg"><code>$HOME</code>'
    assert hooks.on_post_page(fine, Page) == fine


TITLES = (
    "(ε, δ) Considered Harmful: Best Practices for Reporting Differential Privacy Guarantees "
    "(later: Gaussian DP for Reporting Differential Privacy Guarantees in Machine Learning)"
)


def test_paper_with_two_titles_is_cited_one_way():
    """arXiv:2503.10945 has had two titles; whoever gives one gives both, in one way."""
    cited = 0
    for path in [
        *(ROOT / "jaxgdp").rglob("*.toml"),
        *DOCS.rglob("*.md"),
        *(ROOT / "jaxgdp").rglob("*.py"),
        ROOT / "CITATION.cff",
    ]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        rest = text.replace(TITLES, "")
        assert "Considered Harmful" not in rest and "Gaussian DP for Reporting" not in rest, path
        cited += text.count(TITLES)
    assert cited >= 5
