"""A report as an entry of the registry."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ...conversions import epsilon_from_zcdp
from ...numerics.rounding import rounded_outward
from ...numerics.validation import one_of
from .schema import SCHEMA, leaves, problems

NOT_STATED = "Not stated"
_TEXTS = ("name", "data_curators", "intended_use", "data_product_region", "description",
          "registry_authors", "data_product_type", "publication_date")  # fmt: skip
_COMPUTED = ("privacy_parameters", "epsilon", "delta", "rho")


def _places() -> dict[str, tuple[str, ...]]:
    """The place of every key that a caller may give; no two have one name."""
    found = {path[-1]: path for path in leaves() if path[-1] not in _COMPUTED}
    sections = {name: ("deployment", name) for name in SCHEMA["deployment"]}
    return found | sections | {"deployment": ("deployment",)}


def _computed(key: str) -> ValueError:
    return ValueError(f"metadata must not hold {key!r}: the report computes it")


def _unknown(name: str, key: str, known: Iterable[str]) -> ValueError:
    known = sorted(set(known) - set(_COMPUTED))
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return ValueError(f"metadata has the unknown key {name!r}{hint} known are {', '.join(known)}")


def _given(metadata: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """The caller's keywords, by place: flat keys, or sections as tables."""
    places = _places()
    found: dict[tuple[str, ...], Any] = {}

    def add(path: tuple[str, ...], value: Any) -> None:
        branch: Any = SCHEMA
        for key in path:
            if not isinstance(branch, dict) or key not in branch:
                raise _unknown(".".join(path), key, branch if isinstance(branch, dict) else ())
            branch = branch[key]
        if path[-1] in _COMPUTED:
            raise _computed(path[-1])
        if not isinstance(branch, dict):
            found[path] = value
        elif isinstance(value, dict):
            for key, inner in value.items():
                add((*path, key), inner)
        else:
            raise ValueError(f"metadata {'.'.join(path)!r} must be a table of keys, got {value!r}")

    for key, value in metadata.items():
        if key in _COMPUTED:
            raise _computed(key)
        if key not in places:
            raise _unknown(key, key, places)
        add(places[key], value)
    return found


def _budget(report: Any, delta: float) -> dict[str, Any]:
    """Variant, ρ, and the ε that follows from it, of a release whose budget is stated in ρ.

    The mechanisms give a smaller ε, which is among the details."""
    stated = any("rho" in part or "share" in part for part in report.spec.get("mechanism", ()))
    if report.rho is None or not (stated or "deployment" in report.spec):
        return {}
    # (but for the rounding of the noise that a budget became)
    rho = float(rounded_outward(report.rho * (1.0 - 1e-12), up=True))
    epsilon = float(epsilon_from_zcdp(delta=delta, rho=rho))
    return {
        "variant_name": "Zero-concentrated DP",
        "rho": rho,
        "epsilon": float(rounded_outward(epsilon, up=True)),
    }


def _details(report: Any) -> str:
    up = lambda value: rounded_outward(float(value), up=True)
    lines = [
        (
            f"μ = {up(report.mu.upper)} for every FPR and FNR of at least {report.fpr_floor:g} (the"
            " FPR floor)"
        ),
        (
            f"μ = {up(report.approximate_mu.upper)} at every rate but for probability d ="
            f" {report.approximation:g}"
        ),
        f"a μ that holds at every rate: {up(report.tail_mu)}",
        (
            f"regret Δ of reporting the first μ: {up(report.regret.upper)} (tier {report.tier} of"
            " arXiv:2503.10945)"
        ),
        f"membership advantage: {up(report.advantage.upper)}",
        *(f"TPR at FPR {fpr:g}: {up(bracket.upper)}" for fpr, bracket in report.tprs[:-1]),
        *(f"ε at δ = {delta:g}: {up(bracket.upper)}" for delta, bracket in report.epsilons),
        (
            "All are certified upper bounds, rounded up, by jaxgdp"
            f" {report.version}{f' on {report.date}' if report.date else ''}; computed again by:"
            f" {report.command}"
        ),
        *([f"In exact arithmetic: {report.proven}"] if report.proven else []),
        f"The question: {report.question}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _tier(entry: dict[str, Any]) -> int:
    """The highest tier all of whose keys hold something that was stated."""

    def filled(path: tuple[str, ...]) -> bool:
        branch: Any = entry
        for key in path:
            branch = branch.get(key) if isinstance(branch, dict) else None
        return branch not in (None, "", NOT_STATED, [NOT_STATED])

    optional = {"data_product_sector", "notes", "sources", "unprotected_quantities"}
    reached = 1
    for tier in (2, 3):
        needed = [
            path
            for path, leaf in leaves().items()
            if leaf.tier and leaf.tier <= tier and path[-1] not in optional
        ]
        if not all(filled(path) for path in needed):
            break
        reached = tier
    return reached


def from_report(
    report: Any, said: dict[str, str], *, delta: float | None = None, **metadata: Any
) -> dict[str, Any]:
    """An entry that fits the registry's schema, with the report's numbers in it.

    Args:
        report: of one mechanism, with its brackets.
        said: "sampling", "adjacency", "unit" and "not_counted", in words.
        delta: which of the report's δ to state ε for; default 1e-5, or the first where that is not
            among them.
        **metadata: any key of the schema but the numbers, by its own name (``name``,
            ``data_curators``, ``model_name``, …) or in tables (``basic={…}``). A field that the
            schema requires and that is not given is "Not stated", and listed in the notes.

    Returns:
        A dictionary ready for YAML or JSON.

    Raises:
        ValueError: an unknown key, a value that the schema does not allow, a δ that the report does
            not have, or no finite ε.
    """
    given = _given(metadata)
    known = [d for d, _ in report.epsilons]
    usual = 1e-5 if 1e-5 in known else known[0]
    chosen = usual if delta is None else one_of("delta", delta, tuple(known))
    epsilon = float(dict(report.epsilons)[chosen].upper)
    if epsilon == float("inf"):
        raise ValueError(
            f"the report has no finite epsilon at delta = {chosen:g}: state another delta"
        )
    title = report.title or report.mechanism
    product = "Machine learning model" if "Poisson" in said["sampling"] else "Summary statistics"
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    slug = "-".join(words)[:80].strip("-")
    defaults = {("url_slug",): slug, ("status",): "Draft", ("tier",): 1}
    by_name = {
        "name": title,
        "data_curators": [NOT_STATED],
        "intended_use": NOT_STATED,
        "data_product_type": product,
        "data_product_region": NOT_STATED,
        "description": NOT_STATED,
        "publication_date": report.date or NOT_STATED,
        "variant_name": "Approximate DP",
        "privacy_unit": "Record-level",
        "privacy_unit_details": f"Adjacency: {said['adjacency']}. Unit: {said['unit']}.",
        "epsilon": float(rounded_outward(epsilon, up=True)),
        "delta": float(chosen),
        "privacy_parameters_details": _details(report),
        "composition": f"The whole trade-off curve of {report.mechanism} is bracketed numerically,"
        " by convolution of privacy losses (connect-the-dots) from above and by an attack from"
        " below.",
        "preprocessing_and_hyperparameter_tuning": (
            f"Counted: {said['counted']}. " if said.get("counted") else ""
        )
        + f"Not counted: {said['not_counted']}.",
        "mechanisms": f"{report.mechanism}. Sampling: {said['sampling']}.",
        "registry_authors": [NOT_STATED],
    }
    by_name |= _budget(report, chosen)
    defaults |= {path: by_name[path[-1]] for path in leaves() if path[-1] in by_name}
    missing = [path[-1] for path in defaults if path[-1] in _TEXTS and path not in given]
    notes = ("deployment", "administrative", "notes")
    if missing:
        told = (
            f"Not stated by whoever made this entry, or filled in by jaxgdp: {', '.join(missing)}."
        )
        given[notes] = f"{given[notes]}\n{told}" if notes in given else told
    entry: dict[str, Any] = {}
    for path in leaves():
        if (value := (defaults | given).get(path)) is not None:
            branch = entry
            for key in path[:-1]:
                branch = branch.setdefault(key, {})
            branch[path[-1]] = value
    if ("tier",) not in given:
        entry["tier"] = _tier(entry)
    wrong = problems(entry)
    if wrong:
        raise ValueError("; ".join(wrong))
    return entry
