"""What is written into the reference pages while they are built."""

from jaxgdp.bridge import verdicts
from jaxgdp.quantities import table

MARK, SECTIONS = "<!-- quantities -->", "<!-- each quantity -->"
VERDICTS = "<!-- verdicts -->"


def on_page_markdown(markdown, **_):
    """Tables that are computed in place of their marks: quantities and a section for each, and the verdict on every mechanism."""
    if VERDICTS in markdown:
        markdown = markdown.replace(VERDICTS, verdicts.markdown())
    return markdown.replace(MARK, table.markdown()).replace(SECTIONS, table.sections())
