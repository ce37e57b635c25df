"""Write ``docs/registry.md``: every number of it is computed from the entries and the shipped
deployments.

    python docs/make_registry.py [FOLDER OF RECORDS]

The entries are those of OpenDP's registry of deployments of differential privacy (MIT licence, ©
2025 OpenDP)."""

from __future__ import annotations

import sys
from pathlib import Path

import jaxgdp
from jaxgdp import conversions, deployments
from jaxgdp.interop import registry
from jaxgdp.report import rounded_outward

HERE = Path(__file__).parent
RECORDS = HERE.parent / "tests" / "interop" / "data" / "registry"
MARKS = "<!-- {} -->"
DELTA = 1e-10

# which claim is about which shipped deployment: (entry, label of its claim, deployment)
CENSUS = (
    ("census_redistricting_data", "Person Tables", "census_2020_pl94_persons"),
    ("census_redistricting_data", "Housing Unit Tables", "census_2020_pl94_units"),
    ("census_demographic_and_housing", "Person Tables", "census_2020_dhc_persons"),
    ("census_demographic_and_housing", "Housing Unit Tables", "census_2020_dhc_housing"),
)

# why, and what is not known; of the entries that arithmetic finds at odds with themselves
EXPLAINED = {
    "apple_iconic_scenes_photo_selections_2023": (
        "The two fields exclude each other. The brackets are those of (ε, δ), the weaker claim."
        " Which of the two fields is wrong is not established."
    ),
    "census_demographic_and_housing": (
        "See [the census](#the-census) below: the printed ρ is that of the redistricting data and"
        " the DHC together, and the printed ε are those of an older, looser conversion."
    ),
    "covid19_search_trends_symptoms": (
        "The parts are exactly half of the stated share, which is 2.5 % of 1.68 as the text says;"
        " the parts of the search counts do add up. Whether each normalisation count is used twice"
        " or a digit is wrong is not established. Where ε = 0.042 was spent the total stands; where"
        " 0.021 was, it is an overestimate."
    ),
    "recurve_energy_dp": (
        "The entry says why: the paper's ε = 0.843 comes from a wrong amplification formula, 4.72"
        " from the right one, and 6.8 holds if the sampling does not amplify at all. Which sampling"
        " was used is not established; 6.8 is the safe one."
    ),
    "uber": "δ is a formula in the number of records, n, which the entry does not state.",
    "user_url_privacy": (
        "Two accountings side by side: ε comes from μ = 0.376, ρ from adding up 14 times 0.0052."
        " Both may hold at once, but ε does not follow from the printed ρ. Why the ρ of the"
        " Gaussian accounting is a little smaller is not established."
    ),
    "wikimedia_russian_editor_activity_statistics_2023": (
        "The noise scale of the same line gives 0.1, as the parameters say. The value 0.9 stands in"
        " the same place of another entry, of editor activity; that it was copied from there is"
        " likely, not established."
    ),
}


def read_entries(folder=RECORDS) -> dict[str, registry.Entry]:
    """Every entry of a folder by the stem of its file."""
    paths = sorted(
        path for path in Path(folder).glob("*.yaml") if path.name != "deployments-schema.yaml"
    )
    return {path.stem: registry.read(path) for path in paths}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def _table(header, rows) -> str:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def _sides(bracket) -> str:
    """One number where both sides are the same to four digits, else both."""
    if bracket is None:
        return "–"
    low, high = (
        rounded_outward(float(side), up=up, digits=4)
        for side, up in zip(bracket, (False, True), strict=True)
    )
    close = float(bracket.upper) - float(bracket.lower) <= 1e-6 * float(bracket.upper)
    return high if close else f"{low} … {high}"


def results(entries: dict[str, registry.Entry]) -> str:
    """A row for each claim with numbers."""
    rows = []
    for entry in entries.values():
        for position, claim in enumerate(entry.claims):
            name = entry.name if position == 0 else f"… {claim.label or 'the same, otherwise'}"
            cells = [
                _sides(claim.brackets.get(key))
                for key in ("mu", "approximate_mu", "advantage", "tpr")
            ]
            rows.append(
                (
                    name,
                    entry.variant if position == 0 else "",
                    entry.unit if position == 0 else "",
                    claim.stated,
                    *cells,
                )
            )
    header = (
        "data product",
        "variant",
        "unit",
        "stated",
        "μ above 1e-10",
        "μ but for δ",
        "advantage",
        "TPR at FPR 1e-3",
    )
    return _table(header, rows)


def silent(entries: dict[str, registry.Entry]) -> str:
    """The entries without numbers."""
    return "; ".join(sorted(entry.name for entry in entries.values() if not entry.claims)) + "."


def at_odds(entries: dict[str, registry.Entry]) -> str:
    """A section for each entry that disagrees with itself."""
    parts = []
    for stem, entry in entries.items():
        if entry.disagreements:
            lines = [
                f"### {entry.name}",
                "",
                *(f"- {line}" for line in entry.disagreements),
                "",
                EXPLAINED[stem],
                "",
            ]
            parts.append("\n".join(lines))
    return "\n".join(parts)


def _of(bracket) -> str:
    return (
        f"{rounded_outward(float(bracket.lower), up=False, digits=5)} …"
        f" {rounded_outward(float(bracket.upper), up=True, digits=5)}"
    )


def census(entries: dict[str, registry.Entry]) -> str:
    """Printed ε against both conversions of the exact budget and against the composed
    mechanisms.
    """
    rows = []
    for stem, label, name in CENSUS:
        (claim,) = (claim for claim in entries[stem].claims if claim.label == label)
        rho = float(deployments.census.total_budget(name))
        curve = jaxgdp.tradeoff(deployments.mechanism(name))
        rows.append(
            (
                f"`{name}`",
                f"{claim.rho.value:g}",
                f"{rho:.7g}",
                f"{claim.epsilon.value:g}",
                f"{float(conversions.epsilon_from_zcdp(delta=DELTA, rho=rho)):.4f}",
                f"{float(conversions.simple_epsilon_from_zcdp(delta=DELTA, rho=rho)):.4f}",
                _of(curve.epsilon(DELTA)),
                _of(curve.mu(1e-10)),
            )
        )
    header = (
        "deployment",
        "printed ρ",
        "exact ρ",
        "printed ε",
        "optimal conversion",
        "simple conversion",
        "composed",
        "μ of the composition",
    )
    return _table(header, rows)


def budgets() -> str:
    """How the printed total of the DHC comes about."""
    exact = {name: float(deployments.census.total_budget(name)) for _, _, name in CENSUS}
    rows = [(f"`{name}`", f"{rho:.7g}") for name, rho in exact.items()]
    values = list(exact.values())
    rows += [
        ("redistricting data together", f"{sum(values[:2]):.7g}"),
        ("DHC together", f"{sum(values[2:]):.7g}"),
        ("all four", f"{sum(values):.7g}"),
    ]
    return _table(("release", "ρ"), rows)


def page(entries: dict[str, registry.Entry]) -> str:
    """The whole page: the text of ``registry.template`` with what is computed in the place of its
    marks.
    """
    text = (HERE / "registry.template").read_text(encoding="utf-8")
    made = {
        "results": results(entries),
        "silent": silent(entries),
        "at odds": at_odds(entries),
        "census": census(entries),
        "budgets": budgets(),
        "count": (
            f"{len(entries)} entries, {sum(bool(r.claims) for r in entries.values())} of them with"
            " numbers"
        ),
        "version": jaxgdp.__version__,
    }
    for name, found in made.items():
        text = text.replace(MARKS.format(name), found)
    return text


if __name__ == "__main__":
    (HERE / "registry.md").write_text(page(read_entries(*sys.argv[1:2])), encoding="utf-8")
