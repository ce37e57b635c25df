"""A report as one HTML page."""

from . import Format

FORMAT = Format("html", ".html", lambda report: report.to_html(), needs=("matplotlib",), order=40)
