"""Tutorials, recipes and guides beside them: their Python runs, their commands are understood."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

import jaxgdp

DOCS = Path(jaxgdp.__file__).parents[1] / "docs"
PAGES = [
    *sorted((DOCS / "tutorials").glob("*.md")),
    *(DOCS / name for name in ("recipes.md", "guides/calibration.md", "guides/histograms.md")),
]
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="run without the documentation")


def _blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_of_pages_gives_what_is_printed(page):
    pytest.importorskip("xarray")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    text = "\n".join(_blocks(page, "python"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, page.name, 0)
    told = []
    runner.run(examples, out=told.append)
    assert runner.failures == 0, "".join(told)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_pages_are_understood(page):
    pytest.importorskip("click")
    from jaxgdp.cli.command import COMMANDS

    for line in "".join(_blocks(page, "sh")).splitlines():
        if not line.startswith("jaxgdp "):
            continue
        _, name, *arguments = shlex.split(line, comments=True)
        # (options are read and checked, nothing is computed)
        COMMANDS[name].make_context(name, arguments).close()


def test_recipes_are_thirty_and_short():
    sections = (DOCS / "recipes.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(sections) >= 30 and max(len(each.splitlines()) for each in sections) <= 25


def test_every_status_has_a_line_among_the_messages():
    from jaxgdp.bracket import STATUS

    page = (DOCS / "messages.md").read_text(encoding="utf-8")
    assert all(f"`status {int(code)}`" in page for code in STATUS)
