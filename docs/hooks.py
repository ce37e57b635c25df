"""What is written into the reference pages while they are built."""

from jaxgdp.quantities import table

MARK = "<!-- quantities -->"


def on_page_markdown(markdown, **_):
    """The table of quantities, from the registry, in place of its mark."""
    return markdown.replace(MARK, table.markdown())
