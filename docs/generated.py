"""Tables and drawings of the pages that are computed when they are built; each replaces its
mark.
"""

from __future__ import annotations

import ast
import dataclasses
import html
import io
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jaxgdp
from jaxgdp import deployments, spec
from jaxgdp.bridge import verdicts
from jaxgdp.numerics import errors
from jaxgdp.numerics.rounding import rounded_outward
from jaxgdp.quantities import table

DOCS, PACKAGE = Path(__file__).parent, Path(jaxgdp.__file__).parent


def _table(titles, rows) -> str:
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(
        lines
        + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    )


# --- the error model ------------------------------------------------------------------------------


def used_in() -> dict[str, list[str]]:
    """Constant of the error model → modules that import it."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("errors"):
                for alias in node.names:
                    found.setdefault(alias.name, []).append(path.relative_to(PACKAGE).as_posix())
    # (what another constant is made of, and what only the tests of a promise import)
    found.setdefault("AT_INFINITY", []).append("numerics/errors.py")
    for name in ("ERFCX", "LOG_NDTR"):
        found.setdefault(name, []).append("numerics/normal.py")
    found.setdefault("ROOT", []).append("numerics/transforms.py")
    return found


def constants() -> list[tuple[str, str, object, str]]:
    """(section, name, value, what it covers and how that is known) of every constant, from the
    lines it stands in.
    """
    path = PACKAGE / "numerics" / "errors.py"
    with path.open("rb") as file:
        comments = {
            t.start[0]: t.string.lstrip("# ")
            for t in tokenize.tokenize(file.readline)
            if t.type == tokenize.COMMENT
        }
    source = path.read_text(encoding="utf-8")
    places = [
        (n.lineno, n.end_lineno or n.lineno, n.targets[0])
        for n in ast.parse(source).body
        if isinstance(n, ast.Assign)
    ]
    lines, found = source.splitlines(), []
    heads = {
        i: comments[i].strip(" -")
        for i in comments
        if comments[i].startswith("---") or "# ---" in lines[i - 1]
    }
    for first, last, target in places:
        words, above = [comments[i] for i in range(first, last + 1) if i in comments], first
        while not words or above < first:  # on the line itself, else above it
            above -= 1
            if above not in comments or not lines[above - 1].startswith("#") or above in heads:
                break
            words.insert(0, comments[above])
        section = heads[max(i for i in heads if i < first)]
        names = [e.id for e in target.elts] if isinstance(target, ast.Tuple) else [target.id]  # type: ignore[attr-defined]
        for name in names:
            found.append((section, name, getattr(errors, name), " ".join(words)))
    return found


def constants_table() -> str:
    """The constants with their values as the code has them."""

    def value(v) -> str:
        if isinstance(v, tuple):
            return ", ".join(map(value, v))
        return f"{v:.4g}"

    used, parts, section = used_in(), [], None
    for head, name, number, words in constants():
        if name == "LOG_AT_INFINITY":
            words = "log of `AT_INFINITY`"
        if head != section:
            section = head
            parts.append((head, []))
        parts[-1][1].append(
            (f"`{name}`", value(number), words, ", ".join(f"`{m}`" for m in used.get(name, ())))
        )
    titles = ("constant", "value", "what it covers, and how that is known", "used in")
    return "\n\n".join(
        f"### {head[:1].upper()}{head[1:]}\n\n{_table(titles, rows)}" for head, rows in parts
    )


# --- neighbouring data sets -----------------------------------------------------------------------


def _shown(mechanism) -> str:
    """A mechanism in short: its class and its numbers."""
    fields = [np.asarray(getattr(mechanism, name)) for name in mechanism.given_fields()]
    if any(a.dtype == object for a in fields):
        return f"`{type(mechanism).__name__}` of such parts"
    if any(a.ndim for a in fields) or type(mechanism).__name__ not in spec.known_mechanisms():
        return "a pair of its own"
    return f"`{type(mechanism).__name__}({', '.join(f'{float(a):g}' for a in fields)})`"


def _epsilon(mechanism, adjacency) -> str:
    found = jaxgdp.measure(mechanism, "epsilon", delta=1e-5, adjacency=adjacency, rtol=1e-2)
    return rounded_outward(float(found.brackets["epsilon"].upper), up=True, digits=4)


def relations(epsilon=_epsilon) -> str:
    """Which relation each mechanism's pair is of, what "replace_one" does to it, and ε of one use
    under each.
    """
    rows = []
    for name, mechanism in verdicts.examples().items():
        (part,) = jaxgdp.mechanisms.as_composition(mechanism).mechanisms
        try:
            other = part.replace_one()
            replaced, replaced_epsilon = (
                "as it is" if other is part else _shown(other),
                epsilon(mechanism, "replace_one"),
            )
        except ValueError:
            replaced, replaced_epsilon = "refused", "–"
        ends = epsilon(mechanism, "remove"), epsilon(mechanism, "add"), replaced_epsilon
        rows.append(
            (f"`{name}`", part.relation, replaced, *ends, "yes" if _tight(mechanism) else "no")
        )
    titles = (
        "mechanism, used once",
        '"remove" and "add" are',
        '"replace_one" is',
        "ε remove",
        "ε add",
        "ε replace",
        "sides meet",
    )
    return _table(titles, rows)


def _tight(mechanism) -> bool:
    return all(part.tight for part in jaxgdp.mechanisms.as_composition(mechanism).mechanisms)


# --- the pipeline as a picture --------------------------------------------------------------------


def stages(page: str = "architecture.md") -> list[list[str]]:
    """The stages that the page lists, in order."""
    block = re.search(r"```text\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    if block is None:
        raise ValueError(f"{page} lists no stages")
    return [
        [name.strip() for name in stage.split(",")]
        for stage in " ".join(block[1].split()).split("→")
    ]


def drawing(
    boxes: list[list[str]], columns: int, label: str, *, titles: bool = False, widest: int = 150
) -> str:
    """Boxes in reading order, each with its lines of text, and arrows between them; in the text's
    own colour.
    """
    line, gap, rows_gap = 17, 34, 30
    grid = [boxes[i : i + columns] for i in range(0, len(boxes), columns)]
    heights = [12 + line * max(map(len, row)) for row in grid]
    tops = [8 + sum(heights[:i]) + rows_gap * i for i in range(len(grid))]
    width, height = columns * (widest + gap), tops[-1] + heights[-1] + 8
    parts = []
    for row, (cells, top, tall) in enumerate(zip(grid, tops, heights, strict=True)):
        for column, lines in enumerate(cells):
            x, middle = 8 + column * (widest + gap), top + tall / 2
            parts.append(f'<rect x="{x}" y="{top}" width="{widest}" height="{tall}" rx="6"/>')
            start = middle - line * (len(lines) - 1) / 2 + 5
            for i, text in enumerate(lines):
                style = ' font-weight="bold"' if titles and i == 0 else ""
                parts.append(
                    f'<text x="{x + widest / 2}"'
                    f' y="{start + i * line:g}"{style}>{html.escape(text)}</text>'
                )
            if column + 1 < len(cells):
                parts.append(
                    f'<path d="M{x + widest + 3} {middle:g} h{gap - 8}"'
                    f' marker-end="url(#tip{columns})"/>'
                )
            elif row + 1 < len(grid):
                down, back, end = top + tall, tops[row + 1] - rows_gap / 2, 8 + widest / 2
                path = f"M{x + widest / 2:g} {down:g} V{back:g} H{end:g} V{tops[row + 1] - 4:g}"
                parts.append(f'<path d="{path}" marker-end="url(#tip{columns})"/>')
    marker = (
        f'<defs><marker id="tip{columns}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z"'
        ' fill="currentColor"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-label="{html.escape(label)}" '
        'style="width:100%;height:auto" font-family="sans-serif" font-size="13"'
        ' text-anchor="middle" fill="currentColor">'
        f"{marker}<style>rect,path[marker-end]{{fill:none;stroke:currentColor;stroke-width:1.3}}</style>{''.join(parts)}</svg>"
    )


def pipeline() -> str:
    """The stages of the package."""
    return drawing(
        stages(), 5, "Stages of the package, each of which imports only from those before it"
    )


# what is done for one setting, and the files that do it
ACCOUNTING = (
    ("exact law", "pairs/", "mechanisms/"),
    ("loss", "accounting/steer/cumulants.py"),
    (
        "window",
        "accounting/steer/plan_whole.py",
        "accounting/steer/plan_threshold.py",
        "accounting/steer/windows.py",
        "accounting/steer/tilts.py",
    ),
    ("discretise", "accounting/certify/discretisation.py"),
    ("compose", "accounting/certify/convolution.py", "accounting/certify/low_frequencies.py"),
    ("curve", "accounting/certify/half_curve.py", "accounting/certify/curve.py"),
    ("read", "accounting/certify/reading.py", "quantities/"),
    ("refine", "accounting/steer/refinement.py", "accounting/run/engine.py"),
)


def accounting() -> str:
    """From the exact law of one use to certified numbers of a composition."""
    return drawing(
        [list(box) for box in ACCOUNTING],
        4,
        "From the exact law of one use to certified numbers",
        titles=True,
        widest=210,
    )


# what each part of accounting/ may import of the others, and what it holds
WALL = {
    "plan": ((), "tilts and windows: the data that crosses the wall"),
    "question": ((), "what is asked, and the form of an answer"),
    "certify": (("plan", "question"), "everything a bracket rests on"),
    "steer": (("plan", "question", "certify"), "where to look: a poor choice makes a bracket wide"),
    "experimental": (
        ("plan", "question", "certify"),
        "what no device has proven yet: exact 32-bit products, transforms without an FFT",
    ),
    "run": (
        ("plan", "question", "certify", "steer", "experimental"),
        "passes over batches, executors, devices",
    ),
}


class Lines(NamedTuple):
    """Lines of some modules: all, and those that hold code."""

    all: int
    code: int


def lines_of(*rooms: str) -> Lines:
    """Lines of parts of accounting/, or of other folders of the package (``"pairs/"``)."""
    total = code = 0
    for room in rooms:
        place = PACKAGE / room if room.endswith("/") else PACKAGE / "accounting" / room
        paths = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for path in paths:
            source = path.read_text(encoding="utf-8")
            total += len(source.splitlines())
            code += len(_code(source))
    return Lines(total, code)


def _code(source: str) -> set[int]:
    """Numbers of the lines that are neither empty nor comment nor docstring."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (*skipped, tokenize.ENDMARKER):
            numbers |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            words = node.body[0]
            numbers -= set(range(words.lineno, (words.end_lineno or words.lineno) + 1))
    return numbers


def wall() -> str:
    """The parts of accounting/, what each may import, and how many lines certify."""
    rows = []
    for room, (allowed, words) in WALL.items():
        mine = lines_of(room)
        others = ", ".join(f"`{name}`" for name in allowed) or "–"
        rows.append((f"`{room}`", others, words, f"{mine.all:,}", f"{mine.code:,}"))
    table = _table(("part", "may import", "holds", "lines", "of them code"), rows)
    core, exact = lines_of("certify", "plan", "question"), lines_of("pairs/", "mechanisms/")
    read = lines_of("quantities/")
    return (
        f"{table}\n\n`certify` has {lines_of('certify').all:,} lines,"
        f" {lines_of('certify').code:,} of them code. With the data it is given (`plan`,"
        f" `question`) these are {core.code:,} lines of code: together with the exact laws of"
        f" `pairs/` and `mechanisms/` ({exact.code:,}), the readings of `quantities/`"
        f" ({read.code:,}) and the bounds of `numerics/`, they are what an auditor has to read."
    )


# --- pages made from the package ------------------------------------------------------------------


def commands() -> str:
    """Every command with its options, from the program itself."""
    from jaxgdp.cli import app

    parts = []
    for name, command in app.commands.items():
        rows = []
        for option in command.get_params(command.make_context(name, [], resilient_parsing=True)):
            if option.param_type_name == "argument":
                rows.append((f"`{option.human_readable_name}`", ""))
            elif option.name != "help":
                rows.append((", ".join(f"`{flag}`" for flag in option.opts), option.help or ""))
        examples = "\n".join(command.examples)
        parts.append(
            f"## jaxgdp {name}\n\n{command.help.strip()}\n\n```sh\n{examples}\n```\n\n"
            + _table(("option", "meaning"), rows)
        )
    return "\n\n".join(parts)


def shipped() -> str:
    """Every deployment that is shipped: what it is, who its neighbours are, where it is from."""
    rows = []
    for name in deployments.names():
        found = deployments.about(name)
        rows.append((f"`{name}`", found.title, found.neighbours, found.citation))
    return _table(("name", "what it is", "neighbouring data sets", "source"), rows)


def specified() -> str:
    """The mechanisms that a file may name, with their fields."""
    rows = []
    for name, kind in spec.known_mechanisms().items():
        fields = []
        for field in kind.given_fields().values():
            given = field.default is not dataclasses.MISSING
            fields.append(f"`{field.name}`" + (f" (default {field.default})" if given else ""))
        rows.append((f"`{name}`", ", ".join(fields), (kind.__doc__ or "").strip().splitlines()[0]))
    return _table(("type", "fields", "what it is"), rows)


MARKS = {
    "<!-- quantities -->": table.markdown,
    "<!-- each quantity -->": table.sections,
    "<!-- verdicts -->": verdicts.markdown,
    "<!-- constants -->": constants_table,
    "<!-- relations -->": relations,
    "<!-- pipeline -->": pipeline,
    "<!-- accounting -->": accounting,
    "<!-- wall -->": wall,
    "<!-- commands -->": commands,
    "<!-- deployments -->": shipped,
    "<!-- specification -->": specified,
}
