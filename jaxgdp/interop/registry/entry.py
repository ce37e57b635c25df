"""An entry of the registry: its claims, what they imply, what is assumed, where it disagrees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import options
from ...bracket import Bracket
from ...numerics.validation import floor_rate, open_unit
from .claims import Part, StatedGuarantee, parts, structured
from .disagreements import disagreements
from .files import load
from .implied import brackets
from .schema import problems

_ADDED = re.compile(
    r"\b(add(ing|ed|ition)?|remov(e|al|ing|ed)|deletion|symmetric distance)\b", re.I
)
_REPLACED = re.compile(r"\bbounded neighbors\b|\bchange-one\b|\bmodification\b|\breplac", re.I)
_PERIOD = re.compile(
    r"\b(day|week|month|quarter|event|action|trip|record|tuple|birth|contribution)", re.I
)


@dataclass(frozen=True)
class Entry:
    """A published use of DP as the registry describes it; from :func:`read` or :func:`from_dict`.

    Attributes:
        name: of the data product.
        slug: its ``url_slug``.
        variant: of differential privacy, or "".
        unit: of privacy, or "".
        claims: every guarantee with numbers: the structured ones, then those of the text about
            parameters; empty where none is stated.
        brackets: quantity → :class:`Bracket` of the first claim: "mu" above ``fpr_floor``,
            "approximate_mu" but for probability δ where δ > 0 is stated, "advantage", and "tpr" at
            ``fpr``. They bracket the most revealing mechanism that the claim allows: report the
            upper side. Empty where nothing is claimed in numbers.
        assumptions: what the brackets take for granted, in words.
        disagreements: where its own numbers do not fit together, in words.
        problems: what keeps it from fitting the registry's schema; empty where it fits.
        fpr: of the TPR.
        fpr_floor: of μ.
        data: the entry itself.
    """

    name: str
    slug: str
    variant: str
    unit: str
    claims: tuple[StatedGuarantee, ...]
    assumptions: tuple[str, ...]
    disagreements: tuple[str, ...]
    problems: tuple[str, ...]
    fpr: float
    fpr_floor: float
    data: dict[str, Any] = field(repr=False)

    @property
    def brackets(self) -> dict[str, Bracket]:
        return self.claims[0].brackets if self.claims else {}

    def __str__(self) -> str:
        lines = [
            f"{self.name} ({self.variant or 'no variant stated'}; unit:"
            f" {self.unit or 'not stated'})"
        ]
        for claim in self.claims:
            told = ", ".join(
                f"{name} in [{b.lower:.6g}, {b.upper:.6g}]" for name, b in claim.brackets.items()
            )
            lines.append(
                f"  {claim.label or 'the whole'}: {claim.stated}: {told or 'no guarantee follows'}"
            )
        lines += [] if self.claims else ["  no number is stated"]
        lines += [f"  disagrees: {line}" for line in self.disagreements]
        return "\n".join([*lines, *(f"  assumed: {line}" for line in self.assumptions)])


def _section(deployment: dict[str, Any], name: str) -> dict[str, Any]:
    found = deployment.get(name)
    return found if isinstance(found, dict) else {}


def _assumptions(deployment: dict[str, Any], claims: tuple[StatedGuarantee, ...]) -> list[str]:
    """Statements that have to be true for the brackets to be."""
    if not claims:
        return []
    loss, model = _section(deployment, "privacy_loss"), _section(deployment, "deployment_model")
    unit, details = (
        str(loss.get("privacy_unit") or "").strip(),
        str(loss.get("privacy_unit_details") or ""),
    )
    found = [
        "the claim is true: only the printed numbers are used, and the mechanisms may reveal less"
        " than these numbers allow"
    ]
    found.append(
        f"one unit is protected, as stated: {unit}"
        if unit
        else "one unit is protected; the entry does not state which"
    )
    if _PERIOD.search(unit):
        found.append("whoever contributes more than one such unit is protected less")
    if _REPLACED.search(details):
        found.append("neighbouring data sets: one record replaced by another")
    elif _ADDED.search(details):
        found.append("neighbouring data sets: one unit added or removed")
    else:
        found.append(
            "neighbouring data sets: not stated; the brackets hold for the relation of the claim"
        )
    if model.get("model_name") == "Local":
        found.append("local model: of one report of one user, before anything is added up")
    if model.get("release_type") == "Many releases":
        found.append(
            "many releases: the claim may cover only some releases, not all of them together,"
            " unless it states so"
        )
    if any(
        claim.delta is None and claim.epsilon is not None and claim.rho is None for claim in claims
    ):
        found.append("δ = 0 where ε is stated without δ")
    if any(claim.rho is not None for claim in claims):
        found.append(
            "ρ alone is used where it is stated: lower sides are those of a Gaussian mechanism, μ ="
            " √(2ρ)"
        )
    if _section(deployment, "dp_variant").get("unprotected_quantities"):
        found.append("what is released without noise (unprotected quantities) reveals nothing more")
    if not _section(deployment, "implementation").get("preprocessing_and_hyperparameter_tuning"):
        found.append(
            "preparing the data and choosing hyperparameters cost nothing: the entry does not"
            " mention them"
        )
    return found


def _same(claim: StatedGuarantee, other: StatedGuarantee) -> bool:
    """Whether a text only repeats a structured claim."""
    return all(
        (mine := getattr(claim, name)) is None
        or ((its := getattr(other, name)) is not None and mine.value == its.value)
        for name in ("epsilon", "delta", "rho", "mu")
    )


def from_dict(
    data: Any,
    *,
    fpr: float = options.FPR,
    fpr_floor: float = options.FPR_FLOOR,
    source: str = "entry",
) -> Entry:
    """An entry that is already a dictionary.

    Args:
        data: as read from YAML or JSON.
        fpr: at which to give the TPR, in (0, 1).
        fpr_floor: of μ, in [1e-300, 0.5).
        source: how messages call it.

    Returns:
        An :class:`Entry`; whether it fits the schema is in its ``problems``.

    Raises:
        ValueError: it is no entry at all: no table of keys with a table ``deployment``; or a rate
            is out of range.

    Example:
        >>> loss = {"privacy_parameters": {"epsilon": 1.0}}
        >>> variant = {"variant_name": "Pure DP"}
        >>> entry = from_dict({"deployment": {"dp_variant": variant, "privacy_loss": loss}})
        >>> round(float(entry.brackets["mu"].upper), 6), entry.disagreements
        (1.232035, ())
    """
    if not isinstance(data, dict) or not isinstance(data.get("deployment"), dict):
        raise ValueError(f"{source}: must hold a table of keys with a table 'deployment'")
    rate, floor = float(open_unit("fpr", fpr)), float(floor_rate("fpr_floor", fpr_floor))
    deployment = data["deployment"]
    loss = _section(deployment, "privacy_loss")
    parameters = loss.get("privacy_parameters")
    own = structured(parameters if isinstance(parameters, dict) else {})
    _check_range(own, source)
    variant = str(_section(deployment, "dp_variant").get("variant_name") or "")
    if variant != "Zero-concentrated DP":
        own.sort(key=lambda claim: claim.epsilon is None)
    texts: dict[str, list[Part]] = {
        key: parts(section.get(key), key)
        for section, key in (
            (loss, "privacy_parameters_details"),
            (_section(deployment, "accounting"), "composition"),
            (_section(deployment, "implementation"), "mechanisms"),
        )
    }
    told = [part.claim for part in texts["privacy_parameters_details"]]
    told = [
        c
        for c in told
        if (c.epsilon or c.rho or c.mu) is not None and not any(_same(c, main) for main in own)
    ]
    text_delta = None if not isinstance(parameters, dict) else parameters.get("delta")
    stated = [*own, *told]
    if isinstance(text_delta, str):
        claims = tuple(
            claim if claim.rho is not None else claim._replace(brackets={}) for claim in stated
        )
    else:
        claims = tuple(claim._replace(brackets=brackets(claim, rate, floor)) for claim in stated)
    assumptions = _assumptions(deployment, claims)
    if isinstance(text_delta, str):
        assumptions.append(f"no bracket of ε: δ is stated as a formula, {text_delta}")
    basic = _section(deployment, "basic")
    return Entry(
        name=str(basic.get("name") or data.get("url_slug") or source),
        slug=str(data.get("url_slug") or ""),
        variant=variant,
        unit=str(loss.get("privacy_unit") or "").strip(),
        claims=claims,
        assumptions=tuple(assumptions),
        disagreements=disagreements(variant or None, own, texts),
        problems=tuple(problems(data)),
        fpr=rate,
        fpr_floor=floor,
        data=data,
    )


def _check_range(claims: list[StatedGuarantee], source: str) -> None:
    """Numbers that no guarantee can have."""
    for claim in claims:
        for name, valid, words in (
            ("epsilon", lambda v: v >= 0.0, ">= 0"),
            ("rho", lambda v: v >= 0.0, ">= 0"),
            ("delta", lambda v: 0.0 <= v < 1.0, "in [0, 1)"),
        ):
            number = getattr(claim, name)
            if number is not None and not valid(number.value):
                raise ValueError(
                    f"{source}: {name} of privacy_parameters must be {words}, got {number.value!r}"
                )


def read(
    path: str | Path, *, fpr: float = options.FPR, fpr_floor: float = options.FPR_FLOOR
) -> Entry:
    """An entry of the registry from a file, with its claims turned into brackets.

    Args:
        path: of a YAML file, or JSON if its name ends in .json.
        fpr: at which to give the TPR.
        fpr_floor: smallest FPR of μ.

    Returns:
        An :class:`Entry`. One without numbers has no claims and no brackets, and is no error.

    Raises:
        ValueError: the file cannot be read, is malformed or is no entry; names the file.
        ImportError: pyyaml is missing where it is needed (the ``report`` extra).
    """
    return from_dict(load(path), fpr=fpr, fpr_floor=fpr_floor, source=str(path))
