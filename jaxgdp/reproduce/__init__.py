"""Reproductions of published results: figures, tables, and a verdict on every number."""

from .result import Row
from .run import FORMATS, PAPERS, Reproduction, check, items, outputs, reproduce

__all__ = ["FORMATS", "PAPERS", "Reproduction", "Row", "check", "items", "outputs", "reproduce"]
