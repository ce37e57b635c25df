"""Writes the certified grid that comes with the package: jaxgdp/explore/grid.json.

Noise levels are computed one by one and kept in a folder, so that it can be ended and called again.

    python docs/make_explorer_grid.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jaxgdp.explore import grid

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
pieces = []
for sigma in grid.STOPS.noise_multiplier:
    place = folder / f"{sigma:g}.json"
    if not place.exists():
        found = grid.computed(grid.STOPS._replace(noise_multiplier=sigma.reshape(1)))
        place.write_text(json.dumps(found), encoding="utf-8")
    pieces.append(json.loads(place.read_text(encoding="utf-8")))
whole = dict(pieces[0])
for name in ("noise_multiplier", "mu", "advantage"):
    whole[name] = [value for piece in pieces for value in piece[name]]
for name in ("epsilon", "ordered"):
    rows = zip(*(piece[name] for piece in pieces), strict=True)
    whole[name] = [[value for part in row for value in part] for row in rows]
text = json.dumps(whole, separators=(",", ":"), allow_nan=False)
Path(grid.__file__).with_name(grid.FILE).write_text(text + "\n", encoding="utf-8")
