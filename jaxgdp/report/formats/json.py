"""A report as JSON, from which it can be read back."""

from . import Format

FORMAT = Format("json", ".json", lambda report: report.to_json(), order=20)
