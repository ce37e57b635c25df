"""``vmap`` for NumPy: a function of single arrays run once for many rows of them.

Most of what NumPy spends on small arrays is spent on each call and not on its numbers. Inside
:func:`run` the arguments of a function are :class:`Batched`: an array with axes of rows in front,
which has the shape of one row for the function. Operators, ufuncs and the functions that have a
rule (``rules``) act on all rows at once. A function may not test whether a row of many is true,
make a plain array or a number of it, or hand it to a function without a rule: that raises
:class:`Unbatchable`, and :func:`run` goes through the rows one by one. Every other error is the
function's own and is raised."""

from __future__ import annotations

from . import (
    products,
    rules,  # noqa: F401 (registers what NumPy's functions do with rows)
)
from .products import in_one_thread, matmul
from .rows import RULES, Batched, Unbatchable, by_rule, elementwise, implements, take, updated
from .running import assign, chosen, here, inside, mapped, of_last_axis, run

__all__ = [
    "RULES",
    "Batched",
    "Unbatchable",
    "assign",
    "by_rule",
    "chosen",
    "elementwise",
    "here",
    "implements",
    "in_one_thread",
    "inside",
    "mapped",
    "matmul",
    "of_last_axis",
    "products",
    "run",
    "take",
    "updated",
]
