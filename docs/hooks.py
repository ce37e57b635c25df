"""What is written into the reference pages while they are built."""

from jaxgdp.quantities import table

MARK, SECTIONS = "<!-- quantities -->", "<!-- each quantity -->"


def on_page_markdown(markdown, **_):
    """The table of quantities and a section for each, from the registry, in place of their marks."""
    return markdown.replace(MARK, table.markdown()).replace(SECTIONS, table.sections())
