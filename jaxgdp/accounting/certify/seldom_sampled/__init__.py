"""Runs in which a record is hardly ever sampled, by the law given that it is."""

from .curve import both_sides, counted
from .layout import Focus, Products, Run, large_steps, serves, work

__all__ = ["Focus", "Products", "Run", "both_sides", "counted", "large_steps", "serves", "work"]
