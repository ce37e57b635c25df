"""What is written into the pages while they are built."""

import sys
from pathlib import Path

from jaxgdp.bridge import verdicts
from jaxgdp.quantities import table

sys.path.insert(0, str(Path(__file__).parent))

import draw_gallery  # noqa: E402
import notebook_pages  # noqa: E402

MARK, SECTIONS = "<!-- quantities -->", "<!-- each quantity -->"
VERDICTS = "<!-- verdicts -->"
GALLERY = "<!-- gallery -->"


def on_files(files, config, **_):
    """Pages for the notebooks, with their outputs."""
    for file in notebook_pages.files(config):
        files.append(file)
    return files


def on_page_markdown(markdown, **_):
    """What is computed, in place of its mark: quantities and a section for each, the verdict on every mechanism, the gallery."""
    if VERDICTS in markdown:
        markdown = markdown.replace(VERDICTS, verdicts.markdown())
    if GALLERY in markdown:
        markdown = markdown.replace(GALLERY, draw_gallery.page())
    return markdown.replace(MARK, table.markdown()).replace(SECTIONS, table.sections())
