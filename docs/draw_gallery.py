"""Draw the figures of the gallery: each script of docs/gallery as an SVG beside it.

    python docs/draw_gallery.py                 # all of them, some minutes
    python docs/draw_gallery.py budget audit    # these

A figure that cannot be read (``jaxgdp.plot.faults``) is not written.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "gallery"
# in this order on the page
NAMES = (
    "regret_landscape",
    "tradeoff_curve",
    "report_tiers",
    "privacy_profile",
    "epsilon_against_delta",
    "mechanisms_compared",
    "risks_against_noise",
    "calibration_curves",
    "budget",
    "optimised_schedule",
    "noise_per_update",
    "census_by_level",
    "closing_brackets",
    "batch_samplers",
    "bridge_to_gdp",
    "audit",
    "wealth",
    "strategies",
    "users",
    "tuning",
)


class Script(NamedTuple):
    """A script of the gallery: its name, the first line of its docstring, the rest of it, and its
    source.
    """

    name: str
    title: str
    about: str
    source: str


def script(name: str) -> Script:
    """Read a script without running it."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    title, _, about = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return Script(name, title.rstrip("."), about.strip(), source)


def load(name: str):
    """The script as a module, from its file."""
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", FOLDER / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"no script named {name!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    """The gallery as Markdown: figure, words and script of each."""
    parts = []
    for each in map(script, NAMES):
        body = "\n".join("    " + line if line else "" for line in each.source.splitlines())
        parts.append(
            f"## {each.title}\n\n![{each.title}]({each.name}.svg)\n\n{each.about}\n\n"
            f'??? note "{each.name}.py"\n\n    ```python\n{body}\n    ```\n'
        )
    return "\n".join(parts)


def main(names) -> None:
    import matplotlib

    from jaxgdp.plot import faults, save

    matplotlib.rcParams["svg.hashsalt"] = "jaxgdp"  # the same figure, the same file
    unknown = set(names) - set(NAMES)
    if unknown:
        raise SystemExit(
            f"no script named {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    for name in names or NAMES:
        print(name, flush=True)
        figure, floor = load(name).figure()
        if found := faults(figure):
            raise SystemExit(f"{name} cannot be read: " + "; ".join(found))
        save(figure, FOLDER / f"{name}.svg", question=script(name).title, fpr_floor=floor)


if __name__ == "__main__":
    main(sys.argv[1:])
