"""A report as a Markdown list and tables."""

from . import Format

FORMAT = Format("markdown", ".md", lambda report: report.to_markdown(), order=30)
