"""Runs in which a record is hardly ever sampled, by the law given that it is."""

from .curve import both_sides
from .layout import Run, serves, work

__all__ = ["Run", "both_sides", "serves", "work"]
