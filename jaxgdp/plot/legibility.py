"""Faults that make a figure hard to read, found from the bounding boxes of its renderer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..numerics.optional import Axes, Figure
from .style import need_matplotlib

_PIXELS = 1.0  # by which boxes may touch
_LIGHTNESS = 25.0  # by which greys differ that the eye tells apart, in L* of CIELAB
_SMALLEST = 6.0  # points


def faults(figure: Figure) -> list[str]:
    """Reasons why a figure cannot be read, in words; an empty list where there are none.

    Text outside the figure or on top of other text, notes that a curve runs through, text below 6
    points, axes without labels, and lines that differ only in hue (same dashes and marker,
    and greys within 25 of CIELAB's L*).

    Args:
        figure: matplotlib ``Figure``; it is drawn once.

    Returns:
        List of texts.

    Example:
        >>> from matplotlib.figure import Figure
        >>> figure = Figure()
        >>> ax = figure.add_subplot()
        >>> ax.set_xlabel("steps") and None
        >>> faults(figure)
        ['axes without a y label']
    """
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [(text, _box(text, renderer)) for text in _drawn(figure)]
    found = []
    for text, box in texts:
        room = figure.bbox.padded(_PIXELS)
        if box.x0 < room.x0 or box.y0 < room.y0 or box.x1 > room.x1 or box.y1 > room.y1:
            found.append(f"outside the figure: {text.get_text()!r}")
        if text.get_fontsize() < _SMALLEST:
            found.append(f"below {_SMALLEST:g} points: {text.get_text()!r}")
    for (first, a), (second, b) in itertools.combinations(texts, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > _PIXELS and high > _PIXELS:
            found.append(f"on top of each other: {first.get_text()!r} and {second.get_text()!r}")
    for ax in figure.axes:
        if ax.get_visible() and ax.axison:
            found += [*_unlabelled(ax), *_covered(ax, renderer), *_alike(ax)]
    return found


def _drawn(figure: Figure) -> Iterator[Any]:
    """Every text that is drawn; of tick labels those within the axes' limits."""
    from matplotlib.text import Text

    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            scale = axis.get_transform()
            low, high = sorted(scale.transform(axis.get_view_interval()))
            slack = 1e-9 * (high - low)
            shown = ax.get_visible() and ax.axison and axis.get_visible()
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not shown or not low - slack <= scale.transform(tick.get_loc()) <= high + slack:
                    hidden |= {id(tick.label1), id(tick.label2)}
            if not shown:
                hidden |= {id(axis.label), id(axis.get_offset_text())}
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            yield text


def _box(text: Any, renderer: Any) -> Any:
    """The box of the letters; of an annotation without its arrow."""
    from matplotlib.text import Text

    return Text.get_window_extent(text, renderer)


def _unlabelled(ax: Axes) -> Iterator[str]:
    """Axes that have numbers but no label; those of a row or column may share one."""
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        numbers = axis.get_visible() and any(
            label.get_visible() and label.get_text() for label in axis.get_ticklabels()
        )
        if numbers and not (axis.label.get_visible() and axis.label.get_text().strip()):
            yield f"axes without {'an' if name == 'x' else 'a'} {name} label"


def _covered(ax: Axes, renderer: Any) -> Iterator[str]:
    """Notes and legends that a curve or an error bar runs through; straight lines may."""
    from matplotlib.collections import LineCollection
    from matplotlib.transforms import Bbox

    legend = ax.get_legend()
    notes = [text for text in ax.texts if text.get_visible() and text.get_text().strip()]
    if legend is not None:
        notes += [text for text in legend.get_texts() if text.get_text().strip()]
    seen = (line for line in ax.lines if line.get_visible())
    paths = [line.get_path().transformed(line.get_transform()) for line in seen]
    paths = [path for path in paths if np.shape(path.vertices)[0] > 2 or _slanted(path)]
    for bars in ax.collections:
        if isinstance(bars, LineCollection) and bars.get_visible():
            paths += [path.transformed(bars.get_transform()) for path in bars.get_paths()]
    for note in notes:
        # (curves are not drawn beyond the axes)
        box = Bbox.intersection(_box(note, renderer).padded(-_PIXELS), ax.bbox)
        if box is not None and any(path.intersects_bbox(box, filled=False) for path in paths):
            yield f"a curve runs through {note.get_text()!r}"


def _slanted(path: Any) -> bool:
    """Whether a path is long in both directions."""
    return len(path.vertices) > 1 and all(abs(path.vertices[-1] - path.vertices[0]) > _PIXELS)


def _alike(ax: Axes) -> Iterator[str]:
    """Pairs of lines that differ only in hue."""
    from matplotlib.colors import to_hex, to_rgb

    lines = {}
    for line in ax.lines:
        if line.get_visible() and np.size(line.get_xdata()):
            marker = line.get_marker() if line.get_marker() not in (None, "None", "", " ") else None
            lines[line] = (line.get_linestyle(), marker, to_hex(line.get_color()))
    styles = sorted(set(lines.values()), key=str)
    for (dash, marker, colour), other in itertools.combinations(styles, 2):
        apart = abs(_lightness(to_rgb(colour)) - _lightness(to_rgb(other[2])))
        if (dash, marker) == other[:2] and apart < _LIGHTNESS:
            yield f"only their hue tells lines in {colour} and {other[2]} apart"


def _lightness(rgb: Any) -> float:
    """L* of an sRGB colour (CIE 1976)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    bright = luminance > 216 / 24389
    return 116.0 * luminance ** (1 / 3) - 16.0 if bright else 24389 / 27 * luminance
