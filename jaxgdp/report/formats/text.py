"""A report as plain text."""

from . import Format

FORMAT = Format("text", ".txt", str, order=10)
