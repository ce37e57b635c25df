"""Runs in which a record is hardly ever sampled, by the law given that it is."""

from .curve import both_sides, counted
from .layout import Focus, LargeSteps, Products, Run, serves, work

__all__ = ["Focus", "LargeSteps", "Products", "Run", "both_sides", "counted", "serves", "work"]
