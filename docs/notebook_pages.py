"""The notebooks as pages of the documentation, with the outputs that are stored in them; nothing is
run.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "notebooks"


def files(config):
    """A page for each notebook, and its figures.

    Args:
        config: of mkdocs.

    Yields:
        mkdocs ``File`` objects.
    """
    from mkdocs.structure.files import File
    from nbconvert import MarkdownExporter

    exporter = MarkdownExporter()
    # tables of data sets as text: as HTML they bring styles of their own
    exporter.register_preprocessor(_as_text, enabled=True)
    for path in sorted(FOLDER.glob("*.ipynb")):
        body, resources = exporter.from_filename(str(path))
        for name, content in resources["outputs"].items():
            body = body.replace(f"({name})", f"({path.stem}_{name})")
            yield File.generated(config, f"notebooks/{path.stem}_{name}", content=content)
        yield File.generated(config, f"notebooks/{path.stem}.md", content=body)


def _as_text(book, resources):
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if "text/plain" in output.get("data", {}) and "text/markdown" not in output["data"]:
                output["data"].pop("text/html", None)
    return book, resources
