"""Runs in which a record is hardly ever sampled, by the law given that it is."""

from .curve import both_sides
from .layout import MOST_EXPECTED, Run, serves

__all__ = ["MOST_EXPECTED", "Run", "both_sides", "serves"]
