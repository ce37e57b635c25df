"""Each argument of a public function has a line of its own in the docstring."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import jaxgdp
from jaxgdp.quantities import registry
from jaxgdp.training import plan_budget

# the entry points of the package
FUNCTIONS = (
    jaxgdp.measure,
    jaxgdp.tradeoff,
    jaxgdp.sweep,
    jaxgdp.compare_samplers,
    jaxgdp.report,
    jaxgdp.calibrate,
    jaxgdp.optimize,
    jaxgdp.dpsgd,
    jaxgdp.compose,
    plan_budget,
    *(
        f
        for f in (getattr(jaxgdp.audit, name) for name in jaxgdp.audit.__all__)
        if inspect.isfunction(f)
    ),
)


def documented(doc: str) -> list[str]:
    """Names that begin a line of the section on arguments."""
    found = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(doc), re.M | re.S)
    return [] if found is None else re.findall(r"^ {4}\*{0,2}(\w+):", found.group(1), re.M)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_argument_has_its_line(function):
    assert documented(function.__doc__) == list(inspect.signature(function).parameters)


def test_check_itself():
    doc = """One.

    Args:
        a: of that. b: of this.
        **c: others,
            on two lines.

    Returns:
        d: nothing.
    """
    assert documented(doc) == ["a", "c"]


def test_reference_has_every_quantity():
    docs = Path(jaxgdp.__file__).parents[1] / "docs"
    if not docs.exists():
        pytest.skip("run without the documentation")
    pytest.importorskip("latex2mathml")
    spec = importlib.util.spec_from_file_location("hooks", docs / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.on_page_markdown(
        (docs / "reference" / "quantities.md").read_text(encoding="utf-8")
    )
    assert "<!--" not in page
    for name, record in registry.REGISTRY.items():
        assert f"| `{name}` |" in page and f"## `{name}`" in page
        assert (
            f"report the {record.safe_side} side" in page.split(f"## `{name}`")[1].split("\n## ")[0]
        )
