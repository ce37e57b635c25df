"""The disclosure avoidance system of the US Census 2020: discrete Gaussian noise on every count.

A query of one geographic level that gets ρ_q of the budget has noise of variance k/(2ρ_q) on each
count, where one record changes k counts of it by one each: k uses of the discrete Gaussian with
sensitivity one. Every query's own σ is composed; queries of equal σ become one entry with a larger
count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..mechanisms import Composition, DiscreteGaussian, compose
from .deployment import Deployment, read_data

NAMES = (
    "census_2020_pl94_persons",
    "census_2020_pl94_units",
    "census_2020_dhc_persons",
    "census_2020_dhc_housing",
    "census_2022_august",
)


def query_budgets(name: str) -> list[tuple[str, str, Fraction]]:
    """(level, query, ρ_q), exact, of every query that gets a budget.

    Raises:
        ValueError: the shares of the data file do not sum to one.
    """
    data = read_data(name)
    found = []
    if "budget_unit" in data:
        unit = Fraction(data["budget_unit"])
        for level in data["level"]:
            rhos = [unit * number for number in level["query_budgets"]]
            found += [(level["name"], *pair) for pair in zip(data["queries"], rhos, strict=True)]
    else:
        total = Fraction(data["rho"]) if "rho" in data else 1 / Fraction(data["global_scale"]) ** 2
        if sum(Fraction(level["share"]) for level in data["level"]) != 1:
            raise ValueError(f"shares of the levels must sum to 1 in {name}.toml")
        for level in data["level"]:
            over = level["query_shares_over"]
            if sum(level["query_shares"]) != over:
                raise ValueError(
                    f"query_shares of level {level['name']} must sum to {over} in {name}.toml"
                )
            own = total * Fraction(level["share"])
            rhos = [own * Fraction(part, over) for part in level["query_shares"]]
            found += [(level["name"], *pair) for pair in zip(data["queries"], rhos, strict=True)]
    return [row for row in found if row[2] > 0]


def total_budget(name: str) -> Fraction:
    """ρ of the whole release, exact: the sum over its queries."""
    return sum((rho for _, _, rho in query_budgets(name)), Fraction(0))


def _composed(name: str) -> Composition:
    cells = read_data(name)["cells_touched"]
    uses: dict[Fraction, int] = {}
    for _, _, rho in query_budgets(name):
        uses[rho] = uses.get(rho, 0) + cells
    sigma = lambda rho: float(np.sqrt(float(Fraction(cells) / (2 * rho))))
    return compose([(DiscreteGaussian(sigma=sigma(rho)), count) for rho, count in uses.items()])


def deployment(name: str) -> Deployment:
    """A census release: level, query, ρ_q, share of the whole, σ, counts one record touches."""
    data = read_data(name)
    cells = data["cells_touched"]
    total = total_budget(name)
    rows = tuple(
        (level, query, rho, rho / total, float(np.sqrt(float(Fraction(cells) / (2 * rho)))), cells)
        for level, query, rho in query_budgets(name)
    )
    return Deployment(
        name,
        data["title"],
        data["neighbours"],
        data["citation"],
        tuple(data["sources"]),
        data["note"],
        ("level", "query", "rho", "share", "sigma", "counts touched"),
        rows,
        f"{name}.toml",
        lambda: _composed(name),
    )


def census_2020_pl94_persons() -> Composition:
    """Persons in the redistricting data of 2020: 65 queries over 6 levels (Abowd et al. 2022).

    A Gaussian of its budget would have μ = √(2ρ) = 2.26107.

    Example:
        >>> float(total_budget("census_2020_pl94_persons")).__round__(6)
        2.556226
    """
    return _composed("census_2020_pl94_persons")


def census_2020_pl94_units() -> Composition:
    """Housing units in the redistricting data of 2020: a query at 6 levels (Abowd et al. 2022).

    A Gaussian of its budget would have μ = √(2ρ) = 0.38715.

    Example:
        >>> float(total_budget("census_2020_pl94_units")).__round__(7)
        0.0749437
    """
    return _composed("census_2020_pl94_units")


def census_2020_dhc_persons() -> Composition:
    """Persons in the Demographic and Housing Characteristics: ρ = 4.9622, 80 queries (2023).

    Returns:
        A :class:`jaxgdp.Composition` of discrete Gaussians; a Gaussian of its budget would have μ =
        √(2ρ) = 3.15030.

    Example:
        >>> float(total_budget("census_2020_dhc_persons"))
        4.9622
    """
    return _composed("census_2020_dhc_persons")


def census_2020_dhc_housing() -> Composition:
    """Households and units in the Demographic and Housing Characteristics of 2020: ρ = 7.7005, 80
    queries (Cumings-Menon et al. 2023).

    Returns:
        A :class:`jaxgdp.Composition` of discrete Gaussians; a Gaussian of its budget would have μ =
        √(2ρ) = 3.92441.

    Example:
        >>> float(total_budget("census_2020_dhc_housing"))
        7.7005
    """
    return _composed("census_2020_dhc_housing")


def census_2022_august() -> Composition:
    """The allocation of 25 August 2022 as Gomez 2025 analyses it: ρ = 3.65 (Su et al. 2024).

    Returns:
        A :class:`jaxgdp.Composition` of discrete Gaussians; Gomez 2025, Section 5, gives μ = 2.702.

    Example:
        >>> float(total_budget("census_2022_august"))
        3.65
    """
    return _composed("census_2022_august")
