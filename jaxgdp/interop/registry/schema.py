"""Keys, kinds, enumerations and tiers of an entry (OpenDP's ``deployments-schema.yaml``, 2025).

The schema is © 2025 OpenDP, under the MIT licence; its authors name as its ground the research of
Elena Ghazi, Priyanka Nanayakkara and Salil Vadhan."""

from __future__ import annotations

import datetime
import difflib
from typing import Any, NamedTuple


class Leaf(NamedTuple):
    """One key that holds a value.

    Attributes:
        kind: "text", "texts", "whole", "number", "number or text", "date" or "anything".
        one_of: the values allowed, or ().
        tier: of completeness that it belongs to; 0 for none.
    """

    kind: str = "text"
    one_of: tuple[Any, ...] = ()
    tier: int = 0


VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
STATUSES = ("Converted", "Draft", "Pending", "Changes Required", "Approved",
            "Approved (Update Requested)", "Approved (Pending)")  # fmt: skip
_PRODUCTS = ("Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
             "Interactive API", "SQL queries")  # fmt: skip
_SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_MODELS = ("Local", "Central", "Shuffle", "Federated", "Varies")

SCHEMA: dict[str, Any] = {
    "url_slug": Leaf(),
    "status": Leaf(one_of=STATUSES),
    "tier": Leaf("whole", (1, 2, 3)),
    "deployment": {
        "basic": {
            "name": Leaf(tier=1),
            "data_curators": Leaf("texts", tier=1),
            "intended_use": Leaf(tier=1),
            "data_product_type": Leaf(one_of=_PRODUCTS, tier=1),
            "data_product_region": Leaf(tier=1),
            "description": Leaf(tier=1),
            "publication_date": Leaf("date", tier=1),
            "data_product_sector": Leaf(one_of=_SECTORS, tier=1),
        },
        "dp_variant": {
            "variant_name": Leaf(one_of=VARIANTS, tier=2),
            "data_domain": Leaf(tier=3),
            "unprotected_quantities": Leaf(tier=3),
        },
        "privacy_loss": {
            "privacy_unit": Leaf(tier=2),
            "privacy_unit_details": Leaf(tier=3),
            "privacy_parameters": {
                "epsilon": Leaf("number"),
                "delta": Leaf("number or text"),
                "rho": Leaf("number"),
            },
            "privacy_parameters_details": Leaf("anything", tier=3),
        },
        "deployment_model": {
            "model_name": Leaf(one_of=_MODELS, tier=2),
            "model_name_details": Leaf(),
            "actors": Leaf(tier=3),
            "release_type": Leaf(one_of=("One release", "Many releases"), tier=2),
            "release_type_details": Leaf(),
            "data_source_type": Leaf(one_of=("Static", "Dynamic"), tier=2),
            "data_source_type_details": Leaf("anything", tier=3),
            "access_type": Leaf(one_of=("Interactive", "Non-interactive"), tier=2),
            "access_type_details": Leaf(tier=3),
        },
        "accounting": {"post_processing": Leaf(tier=3), "composition": Leaf(tier=3)},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": Leaf(tier=3),
            "mechanisms": Leaf(tier=3),
            "justification": Leaf(tier=3),
        },
        "administrative": {
            "sources": Leaf(tier=1),
            "notes": Leaf(tier=1),
            "registry_authors": Leaf("texts"),
        },
    },
}
REQUIRED = {
    "": ("url_slug", "status", "tier", "deployment"),
    "deployment": ("basic",),
    "deployment.basic": ("name", "data_curators", "description", "intended_use",
                         "data_product_type", "data_product_region", "publication_date"),
    "deployment.administrative": ("registry_authors",),
}  # fmt: skip


def leaves(
    branch: dict[str, Any] = SCHEMA, above: tuple[str, ...] = ()
) -> dict[tuple[str, ...], Leaf]:
    """Every key that holds a value, by the keys that lead to it."""
    found: dict[tuple[str, ...], Leaf] = {}
    for key, inner in branch.items():
        path = (*above, key)
        found |= {path: inner} if isinstance(inner, Leaf) else leaves(inner, path)
    return found


def _is_date(value) -> bool:
    if isinstance(value, datetime.date):
        return True
    if not isinstance(value, str) or len(value) != 10:
        return False
    try:
        return bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS = {
    "text": lambda v: isinstance(v, str),
    "texts": lambda v: isinstance(v, list) and bool(v) and all(isinstance(each, str) for each in v),
    "whole": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": _is_number,
    "number or text": lambda v: _is_number(v) or isinstance(v, str),
    "date": _is_date,
    "anything": lambda v: True,
}


def problems(data: Any, branch: dict[str, Any] = SCHEMA, name: str = "") -> list[str]:
    """The reasons why an entry does not fit the schema, in words; empty where it fits.

    Args:
        data: an entry, as read from YAML or JSON.

    Example:
        >>> entry = {"url_slug": "mine", "status": "Draft", "tier": 4, "deployment": {"basics": {}}}
        >>> print("\\n".join(problems(entry)))
        tier must be one of 1, 2, 3, got 4
        deployment has the unknown key 'basics'; did you mean 'basic'?
        deployment needs the key 'basic'
    """
    if not isinstance(data, dict):
        return [f"{name or 'an entry'} must be a table of keys, got {data!r}"]
    found = []
    place = f"{name}." if name else ""
    for key, value in data.items():
        if key not in branch:
            close = difflib.get_close_matches(str(key), branch, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            found.append(f"{name or 'the entry'} has the unknown key {key!r}{hint}")
            continue
        inner = branch[key]
        if isinstance(inner, dict):
            found += problems(value, inner, f"{place}{key}")
        elif inner.one_of and value not in inner.one_of:
            found.append(
                f"{place}{key} must be one of {', '.join(map(str, inner.one_of))}, got {value!r}"
            )
        elif not _KINDS[inner.kind](value):
            found.append(f"{place}{key} must be {inner.kind}, got {value!r}")
    return found + [
        f"{name or 'the entry'} needs the key {key!r}"
        for key in REQUIRED.get(name, ())
        if key not in data
    ]
