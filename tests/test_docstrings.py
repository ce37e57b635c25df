"""Each argument of a public function has a line of its own in the docstring."""

import inspect
import re

import pytest

import jaxgdp
from jaxgdp.training import plan_budget

# the entry points of the package
FUNCTIONS = (
    jaxgdp.measure,
    jaxgdp.tradeoff,
    jaxgdp.sweep,
    jaxgdp.report,
    jaxgdp.calibrate,
    jaxgdp.optimize,
    jaxgdp.dpsgd,
    jaxgdp.compose,
    plan_budget,
)


def documented(doc: str) -> list[str]:
    """Names that begin a line of the section on arguments."""
    found = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(doc), re.M | re.S)
    return [] if found is None else re.findall(r"^ {4}\*{0,2}(\w+):", found.group(1), re.M)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_argument_has_its_line(function):
    assert documented(function.__doc__) == list(inspect.signature(function).parameters)


def test_the_check_itself():
    doc = """One.

    Args:
        a: of that. b: of this.
        **c: others,
            on two lines.

    Returns:
        d: nothing.
    """
    assert documented(doc) == ["a", "c"]
