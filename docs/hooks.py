"""What is written into the pages while they are built, and what a finished page must not hold."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # (the folder of this file is no package)

import draw_gallery
import generated
import notebook_pages
from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*(?:\\\((.*?)\\\)|\\\[(.*?)\\\])\s*</\1>', re.S
)
_BAR = re.compile(r"<mo( [^>]*)?>(\||&#x0007C;|&#x02016;)</mo>")
_CODE = re.compile(r"<(code|pre|script|style)\b.*?</\1>", re.S)
# whatever a browser would fetch by itself
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|link(?![^>]*rel=\"canonical\"))\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\""
)
_IN_STYLE = re.compile(r"(?:@import\s+(?:url\()?|url\()[\"']?(?:https?:)?//")


_GALLERY = "<!-- gallery -->"


def on_files(files, config, **_):
    """Pages for the notebooks, with their outputs."""
    for file in notebook_pages.files(config):
        files.append(file)
    return files


def on_page_markdown(markdown, **_):
    """Tables and drawings that are computed, and the gallery, in place of their marks."""
    if _GALLERY in markdown:
        markdown = markdown.replace(_GALLERY, draw_gallery.page())
    for mark, made in generated.MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown


def on_page_content(html, **_):
    """Formulas as MathML, which browsers draw by themselves: nothing is fetched and no script
    runs.
    """
    return _FORMULA.sub(
        lambda found: formula(unescape(found[2] or found[3]), found[1] == "div"), html
    )


def formula(latex: str, displayed: bool) -> str:
    """MathML of a formula."""
    made = convert(latex.strip(), display="block" if displayed else "inline")
    # (bars are fences, not operators with room around them)
    return _BAR.sub(r'<mo lspace="0" rspace="0"\1>\2</mo>', made)


def on_post_page(output, page, **_):
    """A page that would fetch something from elsewhere, or that shows a formula as its source, is
    an error.
    """
    fetched = _FETCHED.findall(output) or _IN_STYLE.findall(output)
    if fetched:
        raise ValueError(f"{page.file.src_uri} fetches {fetched[0]!r}")
    if 'class="arithmatex"' in output or "<merror" in output or "$" in _CODE.sub("", output):
        raise ValueError(f"{page.file.src_uri} has a formula that is not drawn")
    return output
