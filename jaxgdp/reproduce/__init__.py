"""Reproductions of published results: every figure and table regenerated, every printed number
given a verdict.
"""

from .result import Row
from .run import FORMATS, PAPERS, Reproduction, check, items, outputs, reproduce

__all__ = ["FORMATS", "PAPERS", "Reproduction", "Row", "check", "items", "outputs", "reproduce"]
