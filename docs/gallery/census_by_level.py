"""The redistricting data of the 2020 Census, level by level.

μ of the queries at each geographic level, composed from their discrete Gaussian mechanisms, and
that of the whole release."""

from matplotlib.figure import Figure

import jaxgdp
from jaxgdp import deployments, plot


def figure(quick=False):
    """The figure, and the FPR floor of the numbers in it."""
    name = "census_2020_pl94_persons"
    release = deployments.about(name)
    queries = {}
    for level, _, _, _, sigma, touched in release.rows:
        queries.setdefault(level, []).append((jaxgdp.DiscreteGaussian(sigma=sigma), touched))
    if quick:
        queries = dict(list(queries.items())[:2])
    levels = [jaxgdp.compose(rows) for rows in queries.values()]
    total = jaxgdp.compose([row for rows in queries.values() for row in rows])
    floor = 1e-10
    found = [jaxgdp.mu(each, fpr_floor=floor) for each in (*levels, total)]
    drawn = Figure(figsize=(6.0, 3.6), layout="constrained")
    plot.parts(dict(zip(queries, found, strict=False)), found[-1], floor, drawn.add_subplot())
    return drawn, floor


if __name__ == "__main__":
    drawn, floor = figure()
    plot.save(drawn, "census_by_level.svg", question=__doc__.partition("\n")[0], fpr_floor=floor)
